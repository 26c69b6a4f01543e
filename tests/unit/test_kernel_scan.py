"""The compiled scanner against the reader in `rdf/ntriples.py`: every line, any cut; and what it drops."""

from __future__ import annotations

import gzip
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltastar.kernel import scan as kernel
from deltastar.kernel import text
from deltastar.kernel.jit import IS_COMPILED
from deltastar.kernel.jit import kernel as compiled
from deltastar.rdf import ntriples
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.update import DELETE as DELETED
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.scan_layout import (
    ABORT,
    ADD,
    BEGIN,
    COMMIT,
    CURSOR,
    DELETE,
    ENTRY,
    K_MASK,
    KEYS,
    NQUADS,
    NTRIPLES,
    OTHER,
    OTHER_MESSAGE,
    P_ANY,
    P_COUNT,
    P_SETTINGS,
    PATCH,
    PREDICATES_FULL,
    R_GRAPH,
    R_KIND,
    R_LINE,
    R_MESSAGE,
    R_NUMBER,
    R_OBJECT,
    R_PREDICATE,
    R_SUBJECT,
    R_TEXT,
    ROW,
    S_AT,
    S_GRAPHS,
    S_LINES,
    S_MESSAGES,
    PredicateArrays,
)
from tests.unit.test_ntriples import JUNK, NEAR_ROWS, SLOW_IF_QUADRATIC

SYNTAX = {Syntax.PATCH: PATCH, Syntax.NTRIPLES: NTRIPLES, Syntax.NQUADS: NQUADS}
MARKS = {BEGIN: Mark.BEGIN, COMMIT: Mark.COMMIT, ABORT: Mark.ABORT}
OPS = {ADD: INSERT, DELETE: DELETED}
SCALE = 1 if IS_COMPILED else 50
"""Without the compiler everything takes a hundred times as long: fewer lines then."""
EXAMPLES = 400 if IS_COMPILED else 40


def make_keys() -> np.ndarray:
    keys = np.random.default_rng(11).integers(-(2**63), 2**63, KEYS)
    keys[K_MASK] = 2**31 - 1
    return keys


KEY = make_keys()


def make_predicates(entries: int = 100, slots: int = 1024, size: int = 10_000) -> PredicateArrays:
    return PredicateArrays(
        settings=np.zeros(P_SETTINGS, np.int64),
        slots=np.zeros(slots, np.int32),
        entries=np.zeros((entries + 1) * ENTRY, np.int32),
        text=np.zeros(size, np.uint8),
    )


def register(predicates: PredicateArrays, term: bytes, number: int) -> int:
    data = np.frombuffer(term, np.uint8)
    hash_ = text.hash_bytes(KEY, data, 0, len(data))
    return int(kernel.set_predicate(predicates, data, 0, len(data), hash_, number))


ANY = make_predicates()
ANY.settings[P_ANY] = 1


def scan_all(data: bytes, syntax: int, predicates: PredicateArrays = ANY, records: int = 1000, cursor=None):
    """All row records, from as many calls as it takes, with numbers that go on from call to call."""
    array = np.frombuffer(data, np.uint8)
    cursor = np.zeros(CURSOR, np.int64) if cursor is None else cursor
    rows = np.zeros(records * ROW, np.int32)
    parts = []
    while cursor[S_AT] < len(array):
        before, lines, messages = cursor[[S_AT, S_LINES, S_MESSAGES]].tolist()
        count = kernel.scan_rows(array, len(array), syntax, KEY, predicates, cursor, rows)
        assert cursor[S_AT] > before
        parts.append(rows[: count * ROW].copy())
        parts[-1][R_LINE::ROW] += lines
        parts[-1][R_MESSAGE::ROW] += messages
    return np.concatenate([*parts, np.zeros(0, np.int32)]).reshape(-1, ROW)


def events_of(data: bytes, table: np.ndarray, syntax: Syntax) -> Iterator[tuple[int, Event, bool]]:
    """Each record's line, event, and whether it named a graph; what the exact reader takes goes there."""
    for row in table.tolist():
        kind = row[R_KIND]
        if kind in OPS:
            parts = (data[row[at] : row[at + 1]].decode() for at in (R_SUBJECT, R_PREDICATE, R_OBJECT))
            yield row[R_LINE], Update(OPS[kind], *parts), bool(row[R_GRAPH])
        elif kind in MARKS:
            yield row[R_LINE], MARKS[kind], False
        else:
            assert kind in (OTHER, OTHER_MESSAGE)
            result = ntriples.scan(data[row[R_TEXT] : row[R_TEXT + 1]], "test", row[R_LINE] + 1, syntax)
            assert result.lines <= 1
            for event in result.events:
                if isinstance(event, Malformed):
                    event = Malformed("test", row[R_LINE], *list(_fields(event))[2:])
                assert (kind == OTHER_MESSAGE) == is_message(event)
                yield row[R_LINE], event, result.named_graphs


def _fields(event: Malformed) -> Iterator[object]:
    return (getattr(event, name) for name in ("source", "line", "column", "reason", "text", "is_message"))


def is_message(event: Event) -> bool:
    return isinstance(event, Update) or (isinstance(event, Malformed) and event.is_message)


def check(data: bytes, syntax: Syntax, records: int = 1000) -> None:
    """The same events as `ntriples.scan`, and the exact reader is asked where that asks it, and nowhere else."""
    expected = ntriples.scan(data, "test", 1, syntax)
    cursor = np.zeros(CURSOR, np.int64)
    table = scan_all(data, SYNTAX[syntax], records=records, cursor=cursor)
    found = list(events_of(data, table, syntax))
    assert [event for _, event, _ in found] == expected.events
    assert cursor[S_LINES] == expected.lines
    assert cursor[S_MESSAGES] == sum(map(is_message, expected.events))
    assert any(graph for _, _, graph in found) == expected.named_graphs
    messages = table[np.isin(table[:, R_KIND], (ADD, DELETE, OTHER_MESSAGE)), R_MESSAGE]
    assert messages.tolist() == list(range(1, len(messages) + 1))
    assert bool(cursor[S_GRAPHS]) == bool(table[np.isin(table[:, R_KIND], (ADD, DELETE)), R_GRAPH].any())
    try:
        lines = data.removeprefix(ntriples.BOM).decode()
    except UnicodeDecodeError:
        return
    flat = ntriples._ROWS[syntax].split(lines)
    others = flat[6 : len(flat) - 7 : 7]
    plain = [number for number, other in enumerate(others, 1) if other is None]
    assert table[np.isin(table[:, R_KIND], (ADD, DELETE)), R_LINE].tolist() == plain


NEAR = [space.join(parts) for space in ("", " ", "\t ") for parts in NEAR_ROWS]
PAD = "# " + "x" * 70
"""A line that keeps a row away from the end of the data, where single bytes are looked at."""


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("end", ["\n", f"\r{PAD}\r\n"], ids=["short", "long"])
def test_it_agrees_on_near_rows(end: str, syntax: Syntax) -> None:
    check((end.join(NEAR[:: 5 * SCALE]) + end).encode(), syntax)


@pytest.mark.parametrize("syntax", Syntax)
def test_it_agrees_on_rows_at_the_very_end(syntax: Syntax) -> None:
    rng = random.Random(2)
    for row in rng.sample(NEAR, 1500 // SCALE):
        check(row.encode(), syntax)
        check(row.encode()[: rng.randrange(60)], syntax)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(JUNK, max_size=6), st.sampled_from(["\n", "\r", "\r\n"]), st.sampled_from(Syntax), st.booleans())
def test_it_agrees_on_junk(lines: list[str], end: str, syntax: Syntax, pad: bool) -> None:
    check("".join(line + end for line in [*lines, *[PAD] * pad]).encode(), syntax)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.binary(max_size=12) | JUNK.map(str.encode), max_size=6).map(b"\n".join), st.sampled_from(Syntax))
def test_it_agrees_on_any_bytes(data: bytes, syntax: Syntax) -> None:
    check(data, syntax)


GOOD = [
    'A <http://ex/s> <http://ex/p> <http://ex/o> .',
    'D <https://ex/café/日本> <urn:p:🎉> "naïve \\"日本語\\" 🎉 text"@fr-ca <http://ex/g> . # 🎉',
    'A _:b.1 <http://ex/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "A <http://ex/" + "long/" * 40 + "> <http://ex/p> \"" + "text \\n" * 40 + '" .',
    "A <http://ex/" + "é" * 100 + "> <http://ex/p> \"" + "я слово " * 40 + '"@ru .',
    "TX .",
    "TC .",
    "A <a:s> <a:p> \"x\"^^<http://www.w3.org/2001/XMLSchema#string> .",
]  # fmt: skip


@pytest.mark.parametrize("syntax", Syntax)
def test_a_byte_changed_or_lost_anywhere_is_noticed_alike(syntax: Syntax) -> None:
    rng = random.Random(4)
    strip = 0 if syntax is Syntax.PATCH else 2
    for _ in range(4000 // SCALE):
        data = bytearray("\n".join(row[strip:] for row in rng.sample(GOOD, 3)).encode())
        for _ in range(rng.choice((1, 1, 2))):
            at = rng.randrange(len(data))
            if rng.random() < 0.3:
                del data[at]
            else:
                data[at] = rng.choice((rng.randrange(256), *b'\x80\xbf\xed\xf4\xf0\xe0\xc1\xc2\r\n <>"\\@^.#-_:'))
        check(bytes(data), syntax)


@pytest.mark.parametrize("syntax", Syntax)
def test_characters_beyond_ascii_are_judged_as_python_judges_them(syntax: Syntax) -> None:
    """All pairs of two bytes, and the corners of longer sequences, in an IRI and in a string."""
    firsts = range(0x7F, 256, 1 if IS_COMPILED else 17)
    corners = (0x00, 0x3E, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF)
    tails = [bytes([a]) for a in corners] + [bytes([a, b]) for a in corners for b in (0x7F, 0x80, 0xBF, 0xC0)]
    tails += [bytes([a, b, c]) for a in (0x80, 0x8F, 0x90, 0xBF) for b in (0x80, 0xC0) for c in (0x7F, 0xBF, 0xC0)]
    op = b"A" if syntax is Syntax.PATCH else b""
    rows = [op + b"<a:" + bytes([first]) + tail + b"><a:p><a:o>." for first in firsts for tail in tails]
    rows += [op + b'<a:s><a:p>"' + bytes([first]) + tail + b'".' for first in firsts for tail in tails]
    check(b"\n".join(rows), syntax)


def test_it_stops_when_the_records_are_full_and_goes_on_from_there() -> None:
    data = "\r\n".join(["\ufeff" + GOOD[0], "", "oops", *GOOD, "# c", "Z .", "A"]).encode()
    for records in (1, 2, 3, 100):
        check(data, Syntax.PATCH, records)


def test_chunks_of_whole_lines_give_what_the_whole_gives() -> None:
    rows = [row + "\n" for row in [*GOOD, "", "oops", "# c", "A <a:s>"]]
    whole = scan_all("".join(rows).encode(), PATCH)
    for cut in range(len(rows) + 1):
        cursor = np.zeros(CURSOR, np.int64)
        first = scan_all("".join(rows[:cut]).encode(), PATCH, cursor=cursor)
        cursor[S_AT] = 0
        second = scan_all("".join(rows[cut:]).encode(), PATCH, cursor=cursor)
        both = np.concatenate([first, second])
        assert (both[:, [R_KIND, R_LINE, R_MESSAGE]] == whole[:, [R_KIND, R_LINE, R_MESSAGE]]).all()
        assert cursor[[S_LINES, S_MESSAGES]].tolist() == [len(rows), whole[-1, R_MESSAGE]]


def test_the_data_may_end_before_the_array_does() -> None:
    array = np.frombuffer((GOOD[0] + "\n" + GOOD[0] * 3).encode(), np.uint8)
    cursor, rows = np.zeros(CURSOR, np.int64), np.zeros(10 * ROW, np.int32)
    for end in range(len(GOOD[0]) + 2):
        cursor[:] = 0
        assert kernel.scan_rows(array, end, PATCH, KEY, ANY, cursor, rows) == (end > 0)
        assert (rows[R_KIND] == ADD) == (end >= len(GOOD[0]))
        assert cursor[S_AT] == end


# What is dropped ----------------------------------------------------------------------------------------------------


def stream(predicates: list[bytes], count: int, rng: random.Random) -> bytes:
    rows = []
    for number in range(count):
        rows.append(b'%s <a:s%d> %s "%d" .' % (rng.choice((b"A", b"D")), number, rng.choice(predicates), number))
        if rng.random() < 0.2:
            rows.append(rng.choice((b"", b"# c", b"oops", b"A oops", b"TX .", b"Z .")))
    return b"\n".join(rows)


def test_plain_rows_of_other_predicates_leave_no_record_but_count() -> None:
    rng = random.Random(9)
    names = [b"<http://ex/%s%d>" % (b"p" * (number % 9), number) for number in range(60)]
    data = stream(names, 3000 // SCALE, rng)
    every = scan_all(data, PATCH)
    predicates = make_predicates()
    for number, name in enumerate(names[:20], 1):
        assert register(predicates, name, number) == number
    cursor = np.zeros(CURSOR, np.int64)
    found = scan_all(data, PATCH, predicates, records=7, cursor=cursor)
    text_of_predicate = [data[row[R_PREDICATE] : row[R_PREDICATE + 1]] for row in every.tolist()]
    numbers = [names.index(name) + 1 if name in names[:20] else 0 for name in text_of_predicate]
    is_plain = np.isin(every[:, R_KIND], (ADD, DELETE))
    every[is_plain, R_NUMBER] = np.array(numbers)[is_plain]
    kept = every[~is_plain | (every[:, R_NUMBER] > 0)]
    assert (found[:, : R_SUBJECT + 2] == kept[:, : R_SUBJECT + 2]).all()
    assert (found[:, R_NUMBER] == kept[:, R_NUMBER])[np.isin(found[:, R_KIND], (ADD, DELETE))].all()
    assert cursor[S_MESSAGES] == every[-1, R_MESSAGE]
    predicates.settings[P_ANY] = 1
    assert len(scan_all(data, PATCH, predicates)) == len(every)


def test_predicates_come_and_go() -> None:
    rng = random.Random(1)
    predicates = make_predicates(entries=60, slots=512, size=4000)
    numbers: dict[bytes, int] = {}
    names = [b"<http://ex/%d>" % number for number in range(2000)]
    for step in range(4000 // SCALE):
        if len(numbers) > 25 or (numbers and rng.random() < 0.4):
            gone = rng.choice(sorted(numbers))
            assert register(predicates, gone, 0) == 0
            del numbers[gone]
        else:
            name = rng.choice(names)
            numbers[name] = rng.randrange(1, 1000)
            assert register(predicates, name, numbers[name]) == numbers[name]
        if step % 50 == 0:
            for name in rng.sample(names, 30) + list(numbers):
                data = np.frombuffer(name, np.uint8)
                hash_ = text.hash_bytes(KEY, data, 0, len(data))
                assert kernel.find_predicate(predicates, data, 0, len(data), hash_) == numbers.get(name, 0)


def test_full_predicate_tables_say_so() -> None:
    predicates = make_predicates(entries=2)
    assert [register(predicates, b"<a:%d>" % number, 5) for number in range(4)] == [
        5,
        5,
        PREDICATES_FULL,
        PREDICATES_FULL,
    ]
    assert register(predicates, b"<a:0>", 0) == 0
    assert predicates.settings[P_COUNT] == 2
    assert register(predicates, b"<a:7>", 9) == 9
    assert register(make_predicates(size=8), b"<a:bcdef>", 5) == PREDICATES_FULL
    assert register(make_predicates(slots=4), b"<a:b>", 5) == PREDICATES_FULL


# Published files, and time ------------------------------------------------------------------------------------------


def test_it_agrees_on_the_published_files(data_dir: Path) -> None:
    suffixes = {".nt": Syntax.NTRIPLES, ".nq": Syntax.NQUADS, ".rdfp": Syntax.PATCH}
    count = 0
    for path in sorted(data_dir.rglob("*")):
        name = path.name.removesuffix(".gz")
        if (syntax := suffixes.get(Path(name).suffix)) is not None:
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            data = data[: data.rfind(b"\n", 0, 5_000_000 // SCALE**2) + 1] or data
            check(data, syntax)
            count += 1
    assert count > 100


@pytest.mark.skipif(not IS_COMPILED, reason="takes long without the compiler, and says the same")
@pytest.mark.parametrize("row", SLOW_IF_QUADRATIC, ids=lambda row: row[:20])
def test_no_row_takes_more_than_linear_time(row: str) -> None:
    scan_all(b"x", PATCH)
    started = time.process_time()
    for syntax, data in ((PATCH, row), (NTRIPLES, row[2:])):
        count = 1 if data.strip() else 0
        assert len(scan_all(data.encode(), syntax)) == count
        assert len(scan_all(f"{data}\n".encode() * 3, syntax)) == 3 * count
    assert time.process_time() - started < 1


# The machine code against what it is for ----------------------------------------------------------------------------


@compiled
def every_primitive(data, count, out):
    for at in range(count):
        out[at, 0] = text.iri_run(data, at)
        out[at, 1] = text.string_run(data, at)
        out[at, 2] = text.line_run(data, at)
        out[at, 3] = text.load(data, at)
        out[at, 4] = text.fold(text.load(data, at), text.load(data, at + 8))
        out[at, 5] = text.quoted_run(data, at)
        out[at, 6] = text.cell_run(data, at)


def test_each_primitive_does_what_its_plain_form_does() -> None:
    rng = np.random.default_rng(8)
    ordinary = np.full(text.VECTOR, ord("a"), np.uint8)
    each = [np.append(ordinary, byte).astype(np.uint8) for byte in range(256)]
    random_bytes, ascii_ = rng.integers(0, 256, 500, np.uint8), rng.integers(0x20, 0x7F, 2000, np.uint8)
    data = np.concatenate([random_bytes, ascii_, *each, ordinary])
    count = len(data) - text.VECTOR
    out = np.zeros((count, 7), np.int64)
    every_primitive(data, count, out)
    for at in range(count):
        assert out[at, 0] == text.plain_iri_run(data, at)
        assert out[at, 1] == text.plain_string_run(data, at)
        assert out[at, 2] == text.plain_line_run(data, at)
        assert out[at, 3] == text.plain_load(data, at)
        assert out[at, 4] == text.plain_fold(text.plain_load(data, at), text.plain_load(data, at + 8))
        assert out[at, 5] == text.plain_quoted_run(data, at)
        assert out[at, 6] == text.plain_cell_run(data, at)


def test_hashes_are_the_same_with_and_without_the_compiler() -> None:
    """Else an arena that one process wrote would be lost on another."""
    data = np.arange(100, dtype=np.uint8)
    keys = np.arange(1, KEYS + 1) * 0x0123456789ABCDE
    keys[K_MASK] = 2**31 - 1
    hashes = [int(text.hash_bytes(keys, data, 3, 3 + length)) for length in (0, 1, 7, 8, 9, 15, 16, 17, 32, 33, 80)]
    expected = [171223698, 1725952263, 508359651, 1526018136, 1876636802, 1646451765]
    expected += [2008426266, 1668200027, 1426941823, 343356384, 997342556]
    assert hashes == expected
