"""Sinks: exact bytes of each format, what a destination means, and what is refused."""

from __future__ import annotations

import builtins
import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from deltastar.delta import Binding, Delta
from deltastar.errors import InvariantError, SourceError, UsageError
from deltastar.rdf.terms import IRI, BlankNode, Literal
from deltastar.sink import exists, open_sink
from deltastar.sink.memo import Memo

VARIABLES = {"triangle": ("a", "b"), "flag": (), "names": ("b", "seq")}
DELTAS = [
    Delta("triangle", 0, "+", {"a": IRI("http://ex/a"), "b": Literal("x", language="en")}),
    Delta("flag", 7, "+", {}),
    Delta("names", 7, "-", {"b": BlankNode("n1"), "seq": Literal("5", datatype="http://ex/int")}),
]
JSONL = (
    '{"query":"triangle","seq":0,"op":"+","binding":{"a":{"type":"uri","value":"http://ex/a"},'
    '"b":{"type":"literal","value":"x","xml:lang":"en"}}}\n'
    '{"query":"flag","seq":7,"op":"+","binding":{}}\n'
    '{"query":"names","seq":7,"op":"-","binding":{"b":{"type":"bnode","value":"n1"},'
    '"seq":{"type":"literal","value":"5","datatype":"http://ex/int"}}}\n'
)
CSV = (
    "query,seq,op,a,b,?seq\r\n"
    'triangle,0,+,<http://ex/a>,"""x""@en",\r\n'
    "flag,7,+,,,\r\n"
    'names,7,-,,_:n1,"""5""^^<http://ex/int>"\r\n'
)
TSV = (
    "query\tseq\top\ta\tb\t?seq\n"
    'triangle\t0\t+\t<http://ex/a>\t"x"@en\t\n'
    "flag\t7\t+\t\t\t\n"
    'names\t7\t-\t\t_:n1\t"5"^^<http://ex/int>\n'
)
BYTES = {"jsonl": JSONL, "csv": CSV, "tsv": TSV}


def written(path: Path, deltas: list[Delta], **options: Any) -> bytes:
    with open_sink(str(path), None, VARIABLES, **options) as sink:
        assert sink.write(deltas) == len(deltas)
    return path.read_bytes()


@pytest.mark.parametrize("format", BYTES)
def test_bytes_of_a_format(tmp_path: Path, format: str) -> None:
    assert written(tmp_path / f"deltas.{format}", DELTAS).decode() == BYTES[format]


@pytest.mark.parametrize("format", BYTES)
def test_bindings_of_the_engine_are_written_like_mappings(tmp_path: Path, format: str) -> None:
    of_engine = [delta._replace(binding=Binding.of(delta.binding)) for delta in DELTAS]
    assert written(tmp_path / f"deltas.{format}", of_engine + of_engine).decode().startswith(BYTES[format])


def test_positions_of_a_binding_may_be_in_any_order(tmp_path: Path) -> None:
    one, two = Literal("1"), Literal("2")
    shuffled = Delta("triangle", 1, "+", Binding({"b": 1, "a": 0}, (one, two)))
    binding = json.loads(written(tmp_path / "deltas.jsonl", [shuffled]))["binding"]
    assert binding == {"a": one.to_json(), "b": two.to_json()}
    assert written(tmp_path / "deltas.tsv", [shuffled]).splitlines()[1] == b'triangle\t1\t+\t"1"\t"2"\t'


def test_parquet_has_typed_columns_and_nulls(tmp_path: Path) -> None:
    with open_sink(str(tmp_path / "out"), "parquet", VARIABLES) as sink:
        sink.write(DELTAS)
    assert os.listdir(tmp_path / "out") == ["part-00000.parquet"]
    table = parquet.read_table(tmp_path / "out")
    assert table.schema.names == ["query", "seq", "op", "a", "b", "?seq"]
    assert [str(kind) for kind in table.schema.types] == ["string", "int64", *["string"] * 4]
    assert table.to_pylist()[2] == {
        "query": "names", "seq": 7, "op": "-", "a": None, "b": "_:n1", "?seq": '"5"^^<http://ex/int>',
    }  # fmt: skip


def test_parquet_without_deltas_still_has_a_schema(tmp_path: Path) -> None:
    with open_sink(str(tmp_path / "out.parquet"), None, VARIABLES):
        pass
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


TIMED = [Delta("flag", 1, "+", {}, "2026-01-31T12:00:00Z"), Delta("flag", 2, "-", {})]


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (
            "jsonl",
            '{"query":"flag","seq":1,"op":"+","time":"2026-01-31T12:00:00Z","binding":{}}\n'
            '{"query":"flag","seq":2,"op":"-","binding":{}}\n',
        ),
        ("csv", "query,seq,op,time\r\nflag,1,+,2026-01-31T12:00:00Z\r\nflag,2,-,\r\n"),
        ("tsv", "query\tseq\top\ttime\nflag\t1\t+\t2026-01-31T12:00:00Z\nflag\t2\t-\t\n"),
    ],
)
def test_time_is_written_where_there_is_one(tmp_path: Path, format: str, expected: str) -> None:
    with open_sink(str(tmp_path / "out"), format, {"flag": ()}, with_time=True) as sink:
        sink.write(TIMED)
    assert (tmp_path / "out").read_bytes().decode() == expected


NASTY = [
    'quo"te',
    "line\nbreak\r\n",
    "tab\t",
    "nul\0 esc\x1b del\x7f",
    "🎉 caf\u00e9 \u2028 \u0085",
    "=cmd()",
    "a,b",
    "\\",
]


@pytest.mark.parametrize("text", [*NASTY, "long" * 100_000])
def test_nasty_literals_stay_in_their_line_and_cell(tmp_path: Path, text: str) -> None:
    literal = Literal(text)
    delta = Delta('q,"\t\n\\', 1, "+", {"a": literal})
    rows: dict[str, list[str]] = {}
    for format in BYTES:
        with open_sink(str(tmp_path / "out"), format, {delta.query: ("a",)}) as sink:
            sink.write([delta])
        rows[format] = (tmp_path / "out").read_bytes().decode().split("\n")
    assert json.loads(rows["jsonl"][0]) == {
        "query": delta.query, "seq": 1, "op": "+", "binding": {"a": literal.to_json()},
    }  # fmt: skip
    assert rows["tsv"][1:] == ['q,"\\t\\n\\\\\t1\t+\t' + literal, ""]
    csv.field_size_limit(1 << 30)
    assert list(csv.reader(io.StringIO("\n".join(rows["csv"]), newline="")))[1] == [delta.query, "1", "+", literal]


def test_json_is_not_ascii_escaped(tmp_path: Path) -> None:
    assert "é🎉".encode() in written(tmp_path / "d.jsonl", [Delta("flag", 1, "+", {"é": Literal("é🎉")})])


def test_a_flush_is_visible_and_the_file_is_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "deltas.jsonl"
    with open_sink(str(path), None, VARIABLES) as sink:
        assert path.read_bytes() == b""
        sink.write(iter(DELTAS))
        sink.flush()
        assert path.read_bytes().decode() == JSONL


def test_what_an_iterable_gave_before_it_failed_is_kept(tmp_path: Path) -> None:
    def failing() -> Iterator[Delta]:
        yield from DELTAS
        raise KeyboardInterrupt

    path = tmp_path / "deltas.jsonl"
    with pytest.raises(KeyboardInterrupt), open_sink(str(path), None, VARIABLES) as sink:
        sink.write(failing())
    assert path.read_bytes().decode() == JSONL


def test_many_deltas_cross_the_batches(tmp_path: Path) -> None:
    path = tmp_path / "deltas.tsv"
    with open_sink(str(path), None, {"flag": ()}) as sink:
        assert sink.write(Delta("flag", seq, "+-"[seq % 2], {}) for seq in range(50_000)) == 50_000
    assert [line.split("\t")[1] for line in path.read_text().splitlines()[1:]] == [str(seq) for seq in range(50_000)]


def test_an_existing_output_is_replaced_without_touching_other_files(tmp_path: Path) -> None:
    (tmp_path / "deltas.jsonl").write_text("old")
    assert written(tmp_path / "deltas.jsonl", []) == b""
    out = tmp_path / "out"
    out.mkdir()
    for name in ("part-00000.csv", "part-00009.jsonl", ".part-00001.parquet.tmp", "notes.jsonl", "part-1-x.jsonl"):
        (out / name).write_text("old")
    open_sink(f"{out}/", None, VARIABLES).close()
    assert sorted(os.listdir(out)) == ["notes.jsonl", "part-00000.jsonl", "part-1-x.jsonl"]


@pytest.mark.parametrize(
    ("dest", "format", "file"),
    [
        ("d", None, "d"), ("d.csv", None, "d.csv"), ("d.CSV", None, "d.CSV"), ("d.csv", "jsonl", "d.csv"),
        ("d/", None, "d/part-00000.jsonl"), ("d/", "tsv", "d/part-00000.tsv"), ("d.csv/", None, "d.csv/part-00000.csv"),
        ("d.parquet", None, "d.parquet/part-00000.parquet"), ("d", "parquet", "d/part-00000.parquet"),
    ],
)  # fmt: skip
def test_what_a_destination_means(tmp_path: Path, dest: str, format: str | None, file: str) -> None:
    with open_sink(f"{tmp_path}/{dest}", format, VARIABLES) as sink:
        sink.write(DELTAS)
    assert (tmp_path / file).is_file()


@pytest.mark.parametrize(
    ("dest", "format", "message"),
    [
        ("kafka://h:1/t", None, "kafka://h:1/t needs the Spark engine; without it, write to -, FILE or DIR/"),
        ("", None, "the destination of the deltas is empty; give -, FILE or DIR/"),
        ("x", "xml", "'xml' is not a format of deltas; choose from jsonl, csv, tsv, parquet"),
        ("-", "parquet", "parquet cannot go to standard output; give a directory"),
        ("d.jsonl.gz", None, "d.jsonl.gz: deltas are not written compressed; write d.jsonl and compress it"),
        ("no/d", None, "cannot write no/d: the directory no does not exist; create it first"),
        ("no/d/", None, "cannot write no/d: the directory no does not exist; create it first"),
        ("no/d", "parquet", "cannot write no/d: the directory no does not exist; create it first"),
        ("dir", None, "dir is a directory; to fill it with part files, write dir/"),
        ("file/", None, "cannot write file/: file is a file, and a directory is needed"),
        ("file", "parquet", "cannot write file/: file is a file, and a directory is needed"),
    ],
)
def test_destinations_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str, format: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UsageError) as caught:
        open_sink(dest, format, VARIABLES)
    assert str(caught.value) == message
    assert (tmp_path / "file").read_text() == "kept"


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_pyarrow(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(UsageError, match=r"pip install 'deltastar\[parquet\]'"):
        open_sink(str(tmp_path / "d"), "parquet", VARIABLES)


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet"])
def test_a_binding_without_a_column_is_a_bug_and_not_lost(tmp_path: Path, format: str) -> None:
    with open_sink(str(tmp_path / "d"), format, {"q": ("a",)}) as sink:
        sink.write([Delta("q", 1, "+", {"a": Literal("1"), "b": Literal("2")})])
        with pytest.raises(InvariantError, match="not opened for q with the variables"):
            sink.flush()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_an_error_with_the_path() -> None:
    sink = open_sink("/dev/full", None, VARIABLES)
    sink.write(DELTAS)
    for action in (sink.flush, sink.close):
        with pytest.raises(SourceError, match="cannot write /dev/full: No space left on device"):
            action()


def test_a_device_can_be_written_but_not_committed() -> None:
    with open_sink("/dev/null", None, VARIABLES) as sink:
        sink.write(DELTAS)
        with pytest.raises(UsageError, match="/dev/null is not a regular file; output to it cannot be resumed"):
            sink.commit()


def test_exists(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "full").write_text("x")
    (tmp_path / "bare").mkdir()
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-00000.jsonl").touch()
    there = {name: exists(f"{tmp_path}/{name}") for name in ("no", "empty", "full", "bare/", "parts/", "parts")}
    assert there == {"no": False, "empty": False, "full": True, "bare/": False, "parts/": True, "parts": True}
    assert not exists("-")
    assert not exists("kafka://h/t")


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with open_sink("-", "csv", VARIABLES) as sink:
        sink.write(DELTAS)
        with pytest.raises(UsageError, match="standard output cannot be resumed"):
            sink.commit()
    assert capfdbinary.readouterr().out.decode() == CSV
    with pytest.raises(UsageError, match="standard output cannot be resumed"):
        open_sink("-", None, VARIABLES, resume={})


WRITER = """
import sys
from deltastar.delta import Delta
from deltastar.errors import SourceError
from deltastar.sink import open_sink
try:
    with open_sink("-", None, {}) as sink:
        for seq in range(100_000):
            sink.write([Delta("q", seq, "+", {})])
except BrokenPipeError:
    sys.exit(9)
except SourceError as error:
    sys.exit(str(error))
"""


def test_a_reader_that_leaves_is_a_broken_pipe_and_nothing_more() -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 9


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_standard_output_is_one_error_and_no_traceback() -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run([sys.executable, "-c", WRITER], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.stderr == b"cannot write standard output: No space left on device\n"
    assert result.returncode == 1


def test_a_memo_forgets_but_stays_right() -> None:
    asked: list[str] = []
    memo: Memo[str, int] = Memo(lambda key: asked.append(key) or len(key), limit_bytes=1000)
    keys = ["a" * size for size in range(50)]
    for _ in range(3):
        assert [memo[key] for key in keys] == list(range(50))
    assert len(memo) < 10
    assert len(asked) > 50
    recent = len(asked)
    assert memo[keys[-1]] == 49
    assert len(asked) == recent
