"""Sources: formats by name, chunks, positions, directories and pipes."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from deltastar.errors import SourceError, UsageError
from deltastar.rdf.files import WholeLines
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.source import Position, open_stream, read_graph
from deltastar.rdf.update import DELETE, Mark, Update
from tests.support.rows import GRAPHS, NT, events_of, row, update, write

# Formats --------------------------------------------------------------------------------------------------------------

FILES = [
    ("a.rdfp", row(1)),
    ("a.rdfp.gz", row(1)),
    ("a.rdfp.zst", row(1)),
    ("a.nt", NT),
    ("a.NT.GZ", None),
    ("a.nq", NT.replace(" .", " <http://ex/g> .")),
    ("a.nq.zst", NT),
    ("a.ru", "INSERT DATA { <http://ex/1> <http://ex/p> <http://ex/o> }"),
    ("a.b.ru.gz", "INSERT DATA { GRAPH <a:g> { <http://ex/1> <http://ex/p> <http://ex/o> } }"),
]


@pytest.mark.parametrize(("name", "text"), FILES)
def test_formats_of_updates_by_extension(tmp_path: Path, name: str, text: str | None) -> None:
    path = tmp_path / name
    if text is None:
        path.write_bytes(gzip.compress(NT.encode()))
    else:
        write(path, text)
    stream = open_stream(str(path))
    assert [event for event in events_of(stream) if isinstance(event, Update)] == [update(1)]
    assert stream.named_graphs_seen is (name in ("a.nq", "a.b.ru.gz"))


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("rdfp", row(1)),
        ("rdf-patch", row(1)),
        ("application/rdf-patch", row(1)),
        ("nt", NT),
        ("application/n-triples", NT),
        ("NQ", NT),
        ("application/n-quads", NT),
        (".ru", "INSERT DATA { <http://ex/1> <http://ex/p> <http://ex/o> }"),
        ("application/sparql-update", "INSERT DATA { <http://ex/1> <http://ex/p> <http://ex/o> }"),
    ],
)
def test_a_named_format_counts_more_than_the_extension(tmp_path: Path, named: str, text: str) -> None:
    for name in ("a.txt", "a.ttl.gz", "a"):
        events = events_of(open_stream(write(tmp_path / name, text), named))
        assert [event for event in events if isinstance(event, Update)] == [update(1)]


@pytest.mark.parametrize(("extension", "text"), GRAPHS)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_formats_of_graphs(tmp_path: Path, extension: str, text: str, packed: str) -> None:
    assert events_of(read_graph(write(tmp_path / f"g.{extension}{packed}", text))) == [update(1)]
    assert events_of(read_graph(write(tmp_path / f"g.txt{packed}", text), extension)) == [update(1)]


def test_a_directory_of_graphs_in_all_formats(tmp_path: Path) -> None:
    for number, (extension, text) in enumerate(GRAPHS):
        write(tmp_path / f"{number}.{extension}.gz", text)
    assert events_of(read_graph(str(tmp_path))) == [update(1)] * len(GRAPHS)


WRONG = [
    ("missing.rdfp", None, "missing.rdfp is not there"),
    ("missing", None, "missing is not there"),
    ("kafka://host:9092/topic", None, "Kafka is read by the Spark engine"),
    ("a.ttl", None, "a.ttl is Turtle, which can only be an initial graph; updates are rdfp, nt, nq or ru"),
    ("a.trig.gz", None, "is TriG, which can only be an initial graph"),
    ("a.jsonld", None, "is JSON-LD, which can only be an initial graph"),
    ("a.rdf.zst", None, "is RDF/XML, which can only be an initial graph"),
    ("a.txt", None, "its name does not say what it holds; known are .rdfp, .nt, .nq, .ru, each also with .gz or .zst"),
    ("a.rdfp.bz2", None, "its name does not say what it holds"),
    ("a.gz", None, "its name does not say what it holds"),
    ("rdfp", None, "its name does not say what it holds"),
    ("a.rdfp", "text", "'text' is not an input format; use one of rdfp, nt, nq or ru"),
    ("a.rdfp", "ttl", "the input format 'ttl' is Turtle, which can only be an initial graph"),
]


@pytest.mark.parametrize(("name", "named", "reason"), WRONG)
def test_what_cannot_be_updates_is_refused_at_once(tmp_path: Path, name: str, named: str | None, reason: str) -> None:
    spec = name if ":" in name else str(tmp_path / name)
    if "missing" not in name and ":" not in name:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        open_stream(spec, named)
    assert reason in str(caught.value)


WRONG_GRAPHS = [
    ("a.rdfp", None, "is RDF Patch, a stream of updates and not a graph; an initial graph is nt, nq, ttl,"),
    ("a.ru.gz", None, "is SPARQL Update, a stream of updates and not a graph"),
    ("a.txt", None, "known are .nt, .nq, .ttl, .trig, .rdf, .jsonld"),
    ("missing.nt", None, "is not there"),
    ("-", None, "a graph on standard input needs its format"),
    ("a.nt", "rdfp", "the input format 'rdfp' is RDF Patch, a stream of updates"),
]


@pytest.mark.parametrize(("name", "named", "reason"), WRONG_GRAPHS)
def test_what_cannot_be_a_graph_is_refused_at_once(tmp_path: Path, name: str, named: str | None, reason: str) -> None:
    if name != "-" and "missing" not in name:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError) as caught:
        read_graph(name if name == "-" else str(tmp_path / name), named)
    assert reason in str(caught.value)


# Chunks and positions -------------------------------------------------------------------------------------------------

LINES = [
    "",
    "# c",
    "TX .",
    "TC .",
    row(1)[:-1],
    row(2, "D")[:-1],
    'A <a:s> <a:p> "é\u2028😀" .',
    "oops",
    "A <a:s> \ufffd",
    "A _:b",
]
TEXTS = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(["\n", "\r", "\r\n"])), max_size=8).map(
    lambda pairs: "".join(line + end for line, end in pairs)
)
PACKINGS = ["", ".gz", ".zst"]
WITH_FILES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@WITH_FILES
@given(TEXTS, st.sampled_from(LINES), st.integers(1, 40), st.sampled_from(PACKINGS))
@example("a\r\nb\r\n", "", 2, "")
@example("a\r", "b", 1, "")
def test_events_do_not_depend_on_the_chunks(
    tmp_path: Path, text: str, last: str, chunk_bytes: int, packing: str
) -> None:
    data = (text + last).encode()
    path = write(tmp_path / f"a.rdfp{packing}", data)
    whole = scan(data, path, 1, Syntax.PATCH)
    batches = list(open_stream(path, chunk_bytes=chunk_bytes))
    assert [event for batch in batches for event in batch.events] == whole.events
    if data:
        assert batches[-1].position == Position(path, len(data), whole.lines + 1)


@WITH_FILES
@given(TEXTS, st.sampled_from(LINES), st.integers(1, 60), st.sampled_from(PACKINGS), st.integers(1, 60))
def test_every_position_continues_with_the_rest(
    tmp_path: Path, text: str, last: str, chunk_bytes: int, packing: str, again_bytes: int
) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    write(tmp_path / f"1.rdfp{packing}", text + last)
    write(tmp_path / "2.nt", NT)
    write(tmp_path / "3.ru", "INSERT DATA { <a:s> <a:p> <a:o> }")
    write(tmp_path / "4.rdfp", text)
    batches = list(open_stream(str(tmp_path), chunk_bytes=chunk_bytes))
    for index, batch in enumerate(batches):
        rest = open_stream(str(tmp_path), start=batch.position, chunk_bytes=again_bytes)
        assert events_of(rest) == [event for later in batches[index + 1 :] for event in later.events]


def test_a_position_must_fit_the_input(tmp_path: Path) -> None:
    path = write(tmp_path / "a" / "1.rdfp", row(1) * 3)
    other = write(tmp_path / "b" / "1.rdfp", row(1))
    with pytest.raises(UsageError, match="the earlier run stopped in"):
        open_stream(other, start=Position(path, 0, 1))
    with pytest.raises(UsageError, match="is not in"):
        open_stream(str(tmp_path / "b"), start=Position(path, 0, 1))
    with pytest.raises(SourceError, match=r"2\.rdfp was being read last, and is not there; put it back"):
        open_stream(str(tmp_path / "a"), start=Position(str(tmp_path / "a" / "2.rdfp"), 0, 1))
    for packing in PACKINGS:
        short = write(tmp_path / f"short.rdfp{packing}", row(1))
        stream = open_stream(short, start=Position(short, 1000, 10))
        with pytest.raises(SourceError, match="it is shorter than it was when it was read before"):
            events_of(stream)
    assert events_of(open_stream(str(tmp_path / "b"), start=Position(str(tmp_path / "b"), 0, 1))) == [update(1)]


@given(st.lists(st.binary(max_size=4).map(lambda piece: piece.translate(bytes(b"a\r\nb"[n % 4] for n in range(256))))))
def test_whole_lines_come_at_once_and_nothing_is_lost(pieces: list[bytes]) -> None:
    lines = WholeLines()
    given_so_far = b""
    for index, piece in enumerate(pieces):
        whole = lines.push(piece) if piece else b""
        given_so_far += whole
        text = b"".join(pieces[: index + 1])
        assert text.startswith(given_so_far)
        rest = text[len(given_so_far) :]
        assert b"\n" not in rest
        assert b"\r" not in rest[:-1]
        assert bool(lines) is bool(rest)
        assert whole[-1:] in (b"", b"\n", b"\r")
        assert not (whole.endswith(b"\r") and rest.startswith(b"\n"))
    assert given_so_far + lines.flush() == b"".join(pieces)
    assert not lines


# Directories ----------------------------------------------------------------------------------------------------------


def test_a_directory_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path / "10.rdfp", row(1)[:-1])  # the last row has no line end
    write(tmp_path / "2.nt.gz", "<http://ex/4> <http://ex/p> <http://ex/o> .\n")
    write(tmp_path / "10b.nq.zst", "<http://ex/2> <http://ex/p> <http://ex/o> <a:g> .")
    write(tmp_path / "11.ru", "DELETE DATA { <http://ex/3> <http://ex/p> <http://ex/o> }")
    write(tmp_path / "1.rdfp", "")
    for ignored in (".hidden.txt", "12.rdfp.tmp", "13.rdfp.part", "14.rdfp~", "sub/15.rdfp"):
        write(tmp_path / ignored, row(99))
    stream = open_stream(str(tmp_path))
    assert events_of(stream) == [update(1), update(2), Mark.BEGIN, update(3, DELETE), Mark.COMMIT, update(4)]
    assert stream.named_graphs_seen


@pytest.mark.parametrize(
    ("name", "reason"), [("notes.txt", "its name does not say"), ("x.ttl", "can only be an initial graph")]
)
def test_a_directory_with_another_file_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    write(tmp_path / "1.rdfp", row(1))
    other = write(tmp_path / name, "A <a:s> <a:p> <a:o> .")
    with pytest.raises(SourceError) as caught:
        open_stream(str(tmp_path))
    assert other in str(caught.value)
    assert reason in str(caught.value)
    assert "move it out of" in str(caught.value)
    assert len(events_of(open_stream(str(tmp_path), "rdfp"))) == 2


def test_an_empty_directory_is_an_empty_stream(tmp_path: Path) -> None:
    assert list(open_stream(str(tmp_path))) == []


# Pipes ----------------------------------------------------------------------------------------------------------------

READER = """
import sys
from deltastar.rdf.source import open_stream
for batch in open_stream(*sys.argv[1:]):
    for event in batch.events:
        print(event, flush=True)
"""


def start_reader(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", READER, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")


def test_standard_input_gives_rows_as_they_arrive() -> None:
    with start_reader("-") as reader:
        assert reader.stdin
        assert reader.stdout
        for number in range(3):
            reader.stdin.write(row(number))
            reader.stdin.flush()
            assert reader.stdout.readline() == f"{update(number)}\n"
        reader.stdin.write(row(7) + row(8)[:-1])
        reader.stdin.close()
        assert reader.stdout.read() == f"{update(7)}\n{update(8)}\n"
    assert reader.returncode == 0


def test_standard_input_in_another_format_and_its_name() -> None:
    with start_reader("-", "ru") as reader:
        assert reader.communicate("CLEAR ALL")[0].startswith("standard input: line 1, column 1: CLEAR is not supported")


def test_standard_input_is_passed_over_up_to_a_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((row(1) + row(2)).encode())))
    assert events_of(open_stream("-", follow=True, start=Position("-", len(row(1)), 2))) == [update(2)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row(1).encode())))
    with pytest.raises(SourceError, match="standard input: it is shorter"):
        events_of(open_stream("-", start=Position("-", 1000, 2)))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SourceError, match="there is no standard input; nothing of it was read; name a file"):
        events_of(open_stream("-"))


def test_a_graph_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    for named, text in GRAPHS:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert events_of(read_graph("-", named)) == [update(1)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_rdf_patch_unless_its_name_says_otherwise(tmp_path: Path) -> None:
    for name, text in (("pipe", row(1)), ("pipe.nt", NT)):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_text, args=(text,))
        writer.start()
        assert events_of(open_stream(str(tmp_path / name))) == [update(1)]
        writer.join()


def test_closing_lets_go_of_the_file(tmp_path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system does not list open files in /proc")
    path = write(tmp_path / "a.rdfp", row(1) * 100)

    def is_open() -> bool:
        return any(os.path.realpath(entry) == path for entry in folder.iterdir())

    stream = open_stream(path, chunk_bytes=100)
    next(stream)
    assert is_open()
    stream.close()
    assert not is_open()
    assert list(open_stream(path))
    assert not is_open()


def test_compressed_text_is_the_text(tmp_path: Path) -> None:
    rng = random.Random(3)
    rows = [row(rng.randrange(10**9)) for _ in range(30_000)]
    expected = scan("".join(rows).encode(), "", 1, Syntax.PATCH).events
    cut = len(rows) // 2
    halves = ["".join(rows[:cut]).encode(), "".join(rows[cut:]).encode()]
    streaming = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
    skippable = b"\x51\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"skip!"
    packings = {
        "one.gz": gzip.compress(b"".join(halves)),
        "two.gz": b"".join(map(gzip.compress, halves)) + b"\0" * 100,
        "one.zst": zstandard.compress(b"".join(halves)),
        "two.zst": skippable + zstandard.compress(halves[0]) + skippable + zstandard.compress(halves[1], 19),
        "streamed.zst": streaming.compress(b"".join(halves)) + streaming.flush(),
    }
    for name, data in packings.items():
        path = tmp_path / f"a.rdfp.{name}"
        path.write_bytes(data)
        renamed = path.rename(tmp_path / f"{name.split('.')[0]}.rdfp.{name.split('.')[1]}")
        for chunk_bytes in (1000, 1 << 18):
            assert events_of(open_stream(str(renamed), chunk_bytes=chunk_bytes)) == expected, name
