"""Damaged input: every row in front of the fault, then an error that says what happened; never one of a codec's."""

from __future__ import annotations

import gzip
import os
import random
import re
import time
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
import zstandard

from deltastar.errors import SourceError
from deltastar.rdf.compression import Damage, Decoder, Gunzip, Plain, Unzstd
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.source import Batch, Stream, open_stream, read_graph
from deltastar.rdf.update import INSERT, Event, Malformed, Update

RNG = random.Random(7)
ROWS = [
    f'A <http://ex/{RNG.randrange(10**9)}> <http://ex/p> "value {RNG.randrange(10**6)}"@en .\n' for _ in range(3000)
]
TEXT = "".join(ROWS).encode()
EVENTS = scan(TEXT, "", 1, Syntax.PATCH).events
GZIP = gzip.compress(TEXT, mtime=0)
TWO_MEMBERS = gzip.compress(TEXT[:100_000], mtime=0) + gzip.compress(TEXT[100_000:], mtime=0)
ZSTD = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
_streamed = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
STREAMED = (
    b"".join(  # blocks of their own, of some rows each
        _streamed.compress(TEXT[start : start + 7000]) + _streamed.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for start in range(0, len(TEXT), 7000)
    )
    + _streamed.flush()
)
PACKED = {"one.gz": GZIP, "two.gz": TWO_MEMBERS, "one.zst": ZSTD, "streamed.zst": STREAMED}


def drain(stream: Stream) -> tuple[list[Event], SourceError | None]:
    """The events, and the error behind them, if there is one."""
    events: list[Event] = []
    try:
        for batch in stream:
            events += batch.events
    except SourceError as error:
        return events, error
    return events, None


def read_to_fault(path: Path) -> tuple[list[Event], SourceError]:
    """The events, and the error that must be behind them."""
    events, error = drain(open_stream(str(path)))
    assert error is not None
    return events, error


def check(events: list[Event], text: bytes, path: Path) -> None:
    """Every whole row of the text is there; what is cut is a dead letter, and nothing is behind it."""
    whole = text[: text.rfind(b"\n") + 1]
    assert events[: whole.count(b"\n")] == scan(whole, str(path), 1, Syntax.PATCH).events
    rest = events[whole.count(b"\n") :]
    if len(whole) < len(text):
        (cut,) = rest
        assert isinstance(cut, Malformed)
        assert "the row is cut here, where the file is damaged" in cut.reason
        assert (cut.line, cut.is_message, cut.source) == (whole.count(b"\n") + 1, False, str(path))
        assert cut.text == text[len(whole) :].decode()
        assert cut.column == len(cut.text) + 1
    else:
        assert not rest


def text_in_front_of(fault_at: int, name: str, packed: bytes) -> bytes:
    """What a decoder gives that is fed one byte at a time: all that can be known."""
    out = b""
    if name.endswith(".gz"):
        decoder = zlib.decompressobj(wbits=31)
        for at in range(fault_at):
            if decoder.eof:
                decoder = zlib.decompressobj(wbits=31)
            out += decoder.decompress(packed[at : at + 1])
        return out
    frame = zstandard.ZstdDecompressor().decompressobj()
    for at in range(fault_at):
        out += frame.decompress(packed[at : at + 1])
    return out


CUTS = [0.003, 0.1, 0.5, 0.77, 0.999]


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("share", CUTS)
def test_what_is_in_front_of_a_cut_is_read(tmp_path: Path, name: str, share: float) -> None:
    packed = PACKED[name]
    size = max(1, int(len(packed) * share))
    path = tmp_path / f"a.rdfp.{name.split('.')[1]}"
    path.write_bytes(packed[:size])
    events, error = read_to_fault(path)
    check(events, text_in_front_of(size, name, packed), path)
    kind = "gzip" if name.endswith("gz") else "zstd"
    rows = sum(isinstance(event, Update) for event in events)
    extent = f"its rows up to line {rows:,} were read" if rows else "nothing of it was read"
    assert str(error) == f"{path}: its {kind} data is cut short; {extent}; get a whole copy of it and run again"


@pytest.mark.parametrize("name", PACKED)
def test_every_last_byte_counts(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"a.rdfp.{name.split('.')[1]}"
    for missing in range(1, 12):
        path.write_bytes(PACKED[name][:-missing])
        events, error = read_to_fault(path)
        assert "cut short" in str(error)
        if missing <= 4:  # the checksums
            assert events == EVENTS


@pytest.mark.parametrize("name", PACKED)
def test_flipped_bits_never_show_the_codec(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    path = tmp_path / f"a.rdfp.{name.split('.')[1]}"
    found = 0
    for _ in range(60):
        packed = bytearray(PACKED[name])
        at = rng.randrange(len(packed))
        packed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(packed)
        events, error = drain(open_stream(str(path)))
        if error is None:
            assert events == EVENTS, "damage passed unseen"
        else:
            found += 1
            assert str(path) in str(error)
            assert "run again" in str(error)
            assert error.__cause__ is None
        # what was decoded before the flipped byte came by is beyond doubt
        sure = text_in_front_of(at, name, PACKED[name]).count(b"\n")
        assert events[:sure] == EVENTS[:sure]
    assert found > 50


def test_damage_is_named(tmp_path: Path) -> None:
    damaged = bytearray(GZIP)
    damaged[-6] ^= 1
    checksum = bytearray(ZSTD)
    checksum[-1] ^= 1
    cases = [
        ("a.rdfp.gz", TEXT, "it is not gzip data, whatever its name says; nothing of it was read"),
        ("a.rdfp.gz", b"", "its gzip data is cut short; nothing of it was read"),
        ("a.rdfp.gz", GZIP + TEXT, "something other than gzip data follows its gzip data; its rows up to line 3,000"),
        ("a.rdfp.gz", bytes(damaged), "its gzip data is damaged (incorrect data check); its rows up to line 3,000"),
        ("a.rdfp.zst", TEXT, "it is not zstd data, whatever its name says; nothing of it was read"),
        ("a.rdfp.zst", b"A", "it is not zstd data"),
        ("a.rdfp.zst", b"", "its zstd data is cut short"),
        ("a.rdfp.zst", ZSTD + TEXT, "something other than zstd data follows its zstd data; its rows up to line 3,000"),
        (
            "a.rdfp.zst",
            bytes(checksum),
            "its zstd data is damaged (restored data doesn't match checksum); its rows up to",
        ),
        ("a.rdfp.zst", GZIP, "it is not zstd data"),
        ("a.rdfp.gz", ZSTD, "it is not gzip data"),
    ]
    for name, data, reason in cases:
        (tmp_path / name).write_bytes(data)
        events, error = read_to_fault(tmp_path / name)
        assert reason in str(error)
        assert events == (EVENTS if "3,000" in reason or "checksum" in reason else [])


LARGE_GRAPHS = {
    "ttl": "".join(f"<http://ex/{n}> <http://ex/p> {n} .\n" for n in range(5000)),
    "trig": "".join(f"{{ <http://ex/{n}> <http://ex/p> {n} }}\n" for n in range(5000)),
    "rdf": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex/">'
    + "".join(f'<rdf:Description rdf:about="http://ex/{n}"><ex:p>{n}</ex:p></rdf:Description>\n' for n in range(5000))
    + "</rdf:RDF>",
    "jsonld": "[" + ",\n".join(f'{{"@id": "http://ex/{n}", "http://ex/p": {n}}}' for n in range(5000)) + "]",
}


@pytest.mark.parametrize("extension", LARGE_GRAPHS)
def test_a_damaged_graph_file_gives_what_is_in_front(tmp_path: Path, extension: str) -> None:
    packed = gzip.compress(LARGE_GRAPHS[extension].encode())
    path = tmp_path / f"a.{extension}.gz"
    path.write_bytes(packed[: len(packed) // 2])
    events, error = drain(read_graph(str(path)))
    assert re.search(r"its gzip data is cut short; the first [\d,]+ bytes of its text were read", str(error))
    assert len(events) > 1000
    assert [event[1] for event in events if isinstance(event, Update)] == [
        f"<http://ex/{n}>" for n in range(len(events))
    ]


def test_a_damaged_request_is_not_applied(tmp_path: Path) -> None:
    data = b"INSERT DATA { " + b"<a:s> <a:p> <a:o> . " * 1000 + b"}"
    (tmp_path / "a.ru.gz").write_bytes(gzip.compress(data)[:-3])
    events, error = read_to_fault(tmp_path / "a.ru.gz")
    assert events == []
    assert "nothing of it was read" in str(error)


def test_a_row_that_is_cut_inside_a_character(tmp_path: Path) -> None:
    text = 'A <a:s> <a:p> "caf\u00e9'.encode()[:-1]
    packed = zlib.compressobj(wbits=31)
    (tmp_path / "a.rdfp.gz").write_bytes(packed.compress(text) + packed.flush(zlib.Z_SYNC_FLUSH))
    (cut,), _ = read_to_fault(tmp_path / "a.rdfp.gz")
    assert isinstance(cut, Malformed)
    assert (cut.column, cut.text) == (19, 'A <a:s> <a:p> "caf\\xc3')
    assert cut.reason.startswith("the row is cut here, where the file is damaged; byte 0xc3")


def test_a_last_line_that_ends_with_cr_is_whole(tmp_path: Path) -> None:
    packed = zlib.compressobj(wbits=31)
    data = packed.compress(b"A <a:s> <a:p> <a:o> .\r") + packed.flush(zlib.Z_SYNC_FLUSH)
    (tmp_path / "a.rdfp.gz").write_bytes(data)
    events, _ = read_to_fault(tmp_path / "a.rdfp.gz")
    assert events == [Update(INSERT, "<a:s>", "<a:p>", "<a:o>")]


class FaultyDisk:
    """`os.read` that fails, or comes to an early end, after some bytes."""

    def __init__(self, good_bytes: int, failure: OSError | None) -> None:
        self.left, self.failure, self.read = good_bytes, failure, os.read

    def __call__(self, descriptor: int, size: int) -> bytes:
        if self.left == 0 and self.failure:
            raise self.failure
        data = self.read(descriptor, min(size, self.left))
        self.left -= len(data)
        return data


@pytest.mark.parametrize(
    ("failure", "reason"), [(OSError(5, "Input/output error"), "input/output error"), (None, "it became shorter")]
)
def test_a_file_that_fails_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: OSError | None, reason: str
) -> None:
    path = tmp_path / "a.rdfp"
    path.write_bytes(TEXT)
    monkeypatch.setattr(os, "read", FaultyDisk(100_010, failure))
    events, error = read_to_fault(path)
    monkeypatch.undo()
    check(events, TEXT[:100_010], path)
    assert reason in str(error)


def test_a_file_that_vanishes_before_its_turn(tmp_path: Path) -> None:
    for name in ("1.rdfp", "2.rdfp"):
        (tmp_path / name).write_bytes(TEXT)
    stream = open_stream(str(tmp_path))
    (tmp_path / "2.rdfp").unlink()
    events, error = drain(stream)
    assert events == EVENTS
    assert (
        str(error)
        == f"{tmp_path / '2.rdfp'}: it is not there any more; nothing of it was read; put it back and run again"
    )


def test_a_directory_in_place_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.rdfp"
    path.write_bytes(TEXT)
    stream = open_stream(str(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(SourceError, match="is a directory; nothing of it was read; make it readable"):
        list(stream)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.rdfp"
    path.write_bytes(TEXT)
    path.chmod(0)
    with pytest.raises(SourceError, match="permission denied"):
        list(open_stream(str(path)))


# Decoders on their own -----------------------------------------------------------------------------------------------

BOMB = b"a" * 50_000_000


@pytest.mark.parametrize(
    ("decoder", "packed", "largest"),
    [(Gunzip(1000), gzip.compress(BOMB), 1000), (Unzstd(), zstandard.compress(BOMB), 1 << 17)],
    ids=["gzip", "zstd"],
)
def test_pieces_are_small_however_much_comes_of_a_byte(decoder: Decoder, packed: bytes, largest: int) -> None:
    assert max(map(len, islice(decoder.feed(packed), 500))) <= largest


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000, 1 << 20])
def test_decoders_take_pieces_of_any_size(name: str, size: int) -> None:
    packed = PACKED[name]
    decoder: Decoder = Gunzip(5000) if name.endswith("gz") else Unzstd()
    out: list[bytes] = []
    for start in range(0, len(packed), size):
        out += decoder.feed(packed[start : start + size])
    decoder.close()
    assert b"".join(out) == TEXT


def test_plain_text_passes() -> None:
    assert list(Plain().feed(b"a")) == [b"a"]
    assert list(Plain().feed(b"")) == []
    Plain().close()


def test_a_frame_header_out_of_bounds_is_damage() -> None:
    window_of_terabytes = zstandard.FRAME_HEADER + b"\x00\xff"
    with pytest.raises(Damage, match="its zstd data is damaged"):
        list(Unzstd().feed(window_of_terabytes + b"\0" * 100))


# Lines without end ----------------------------------------------------------------------------------------------------


def big_line(size: int) -> Iterator[bytes]:
    yield b'A <a:s> <a:p> "'
    for _ in range(size >> 20):
        yield b"x" * (1 << 20)
    yield b'" .\n'


def write_line(path: Path, kind: str, size: int) -> None:
    """One row of so many bytes, sound or broken at its end."""
    ends = {"good": b'" .\n', "malformed": b"\n", "no line end": b'" .', "not utf-8": b'"\xff .\n'}
    with path.open("wb") as file:
        for piece in big_line(size):
            file.write(ends[kind] if piece.endswith(b"\n") else piece)


def read_time_s(path: Path) -> tuple[float, Batch]:
    """The fewest seconds that reading took in some tries: whatever else the machine does only adds to it."""
    fewest = float("inf")
    for _ in range(4):
        started = time.process_time()
        (batch,) = list[Batch](open_stream(str(path)))
        _ = batch.position  # reads it
        fewest = min(fewest, time.process_time() - started)
    return fewest, batch


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["good", "malformed", "no line end", "not utf-8"])
def test_a_line_of_100_mb_takes_linear_time(tmp_path: Path, kind: str) -> None:
    seconds = []
    path = tmp_path / "a.rdfp"
    for size in (25 << 20, 100 << 20):
        write_line(path, kind, size)
        spent_s, batch = read_time_s(path)
        seconds.append(spent_s)
        (event,) = batch.events
        if kind in ("good", "no line end"):
            assert isinstance(event, Update)
            assert len(event[3]) == size + 2
        else:
            assert isinstance(event, Malformed)
            assert len(event.text) == 1 << 20
            assert "its first MiB is kept here" in event.reason
        assert batch.position.offset == path.stat().st_size
    # Linear is 4 times as long. Joining the pieces read so far for each new one took 100 times as long.
    assert seconds[1] < 10 * seconds[0] + 0.2
