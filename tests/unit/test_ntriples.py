"""Chunks of rows: every kind of row, each fault with its place, and the bulk reader held against the exact one."""

from __future__ import annotations

import time
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltastar.errors import RowError
from deltastar.rdf import ntriples
from deltastar.rdf.ntriples import KEPT_TEXT_BYTES, Syntax, scan
from deltastar.rdf.rows import Row, is_message
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark, Update

PATCH, NTRIPLES, NQUADS = Syntax.PATCH, Syntax.NTRIPLES, Syntax.NQUADS
S, P, T, G = "<http://ex/s>", "<http://ex/p>", "<http://ex/o>", "<http://ex/g>"
XSD = "http://www.w3.org/2001/XMLSchema#"


def events_of(text: str | bytes, syntax: Syntax = PATCH) -> list[Event]:
    data = text if isinstance(text, bytes) else text.encode()
    return scan(data, "test", 1, syntax).events


GOOD_PATCH = [
    (f"A {S} {P} {T} .", Update(INSERT, S, P, T), False),
    (f"D {S} {P} {T} .", Update(DELETE, S, P, T), False),
    (f"A {S} {P} {T} {G} .", Update(INSERT, S, P, T), True),
    (f"D {S} {P} {T} _:g .", Update(DELETE, S, P, T), True),
    (f"A {S} {P} {T}.", Update(INSERT, S, P, T), False),
    (f"A{S}{P}{T}{G}.", Update(INSERT, S, P, T), True),
    (f"\t A\t{S} \t {P}\t{T}\t.\t ", Update(INSERT, S, P, T), False),
    (f"A {S} {P} {T} .# comment <", Update(INSERT, S, P, T), False),
    (f"A {S} {P} {T} . # comment \u2028 more", Update(INSERT, S, P, T), False),
    (f"A_:s{P}_:o.", Update(INSERT, "_:s", P, "_:o"), False),
    (f"A <_:s> {P} <_:o> <_:g> .", Update(INSERT, "_:s", P, "_:o"), True),
    (f"A _:a.b-c {P} _:1.2.", Update(INSERT, "_:a.b-c", P, "_:1.2"), False),
    (f"A _:\u00e9 {P} _:b\u00b7.", Update(INSERT, "_:\u00e9", P, "_:b\u00b7"), False),
    (f'A {S} {P} "a" .', Update(INSERT, S, P, '"a"'), False),
    (f'A {S} {P} "a"@en-gb .', Update(INSERT, S, P, '"a"@en-gb'), False),
    (f'A {S} {P} "a"@EN-GB .', Update(INSERT, S, P, '"a"@en-gb'), False),
    (f'A {S} {P} "a"^^<{XSD}int> .', Update(INSERT, S, P, f'"a"^^<{XSD}int>'), False),
    (f'A {S} {P} "a"^^<{XSD}string> .', Update(INSERT, S, P, '"a"'), False),
    (f'A {S} {P} "a"^^<{XSD}string2> .', Update(INSERT, S, P, f'"a"^^<{XSD}string2>'), False),
    (f'A {S} {P} "a"@en{G}.', Update(INSERT, S, P, '"a"@en'), True),
    (f'A {S} {P} "a"{G}.', Update(INSERT, S, P, '"a"'), True),
    (rf'A {S} {P} "a\n\"b\\" .', Update(INSERT, S, P, r'"a\n\"b\\"'), False),
    (rf'A {S} {P} "\u0061\U00000062\'" .', Update(INSERT, S, P, '"ab\'"'), False),
    (f'A {S} {P} "a\tb\x00\x7f" .', Update(INSERT, S, P, r'"a\tb\u0000\u007F"'), False),
    (r"A <http://ex/\u0073> " + f"{P} {T} .", Update(INSERT, S, P, T), False),
    (f'A <http://ex/\x85\u2028\xa0> {P} "\x85\u2029\x0b\x0c" .',
     Update(INSERT, "<http://ex/\x85\u2028\xa0>", P, '"\x85\u2029\\u000B\\f"'), False),
    ("TX .", Mark.BEGIN, False),
    ("TX.", Mark.BEGIN, False),
    ("TB .", Mark.BEGIN, False),
    (" TC . # done", Mark.COMMIT, False),
    ("TA .", Mark.ABORT, False),
    ("", None, False),
    ("  \t", None, False),
    ("# comment", None, False),
    (" # comment", None, False),
    ("H id <uuid:1> .", None, False),
    ("H PREV <uuid:1>.", None, False),
    ('H "name" "value" .', None, False),
    ("H x-y _:b .", None, False),
    ("Z .", None, False),
    ('PA "ex" <http://ex/> .', None, False),
    ('PA "" <relative> .', None, False),
    ("PA ex: <http://ex/> .", None, False),
    ("PA ex <http://ex/> .", None, False),
    ("PA e.x <http://ex/>.", None, False),
    ('PA "ex" "http://ex/" .', None, False),
    ("PD ex.", None, False),
    ("PA : <http://ex/>.", None, False),
    ('PA "ex" <http://ex/> <http://ex/g> .', None, False),
    ('PD "ex" .', None, False),
    ("PD ex: .", None, False),
    ("PD ex:.", None, False),
]  # fmt: skip


@pytest.mark.parametrize(("row", "event", "names_graph"), GOOD_PATCH)
def test_rows_of_a_patch(row: str, event: Event | None, names_graph: bool) -> None:
    result = scan(row.encode(), "test", 1, PATCH)
    assert result.events == ([] if event is None else [event])
    assert result.named_graphs is names_graph


GOOD_TRIPLES = [
    (f"{S} {P} {T} .", (S, P, T)),
    (f"{S}{P}{T}.", (S, P, T)),
    (f" {S}\t{P} _:o .", (S, P, "_:o")),
    (f'_:s{P}"o"@en.', ("_:s", P, '"o"@en')),
    (f"<http://ex/caf\\u00e9> {P} {T} . # comment", ("<http://ex/caf\u00e9>", P, T)),
]


@pytest.mark.parametrize("syntax", [NTRIPLES, NQUADS])
@pytest.mark.parametrize(("row", "triple"), GOOD_TRIPLES)
def test_rows_of_a_graph(row: str, triple: tuple[str, str, str], syntax: Syntax) -> None:
    assert events_of(row, syntax) == [Update(INSERT, *triple)]


def test_a_fourth_term_is_a_graph_in_n_quads_only() -> None:
    result = scan(f"{S} {P} {T} {G} .\n{S} {P} {T} _:g .\n".encode(), "test", 1, NQUADS)
    assert result.events == [Update(INSERT, S, P, T)] * 2
    assert result.named_graphs
    (event,) = events_of(f"{S} {P} {T} {G} .", NTRIPLES)
    assert isinstance(event, Malformed)
    assert (event.column, event.is_message) == (43, True)
    assert "N-Quads may have a graph too: use .nq" in event.reason
    assert not scan(f"{S} {P} {T} {G} .".encode(), "test", 1, NTRIPLES).named_graphs


BAD = [
    (PATCH, f"A {S} {P} .", 31, "a term is missing; a row has a subject, a predicate and an object", True),
    (PATCH, f"A {S} {P}", 30, "the row ends where a term should be", True),
    (PATCH, "A", 2, "the row ends where a term should be", True),
    (PATCH, "A<s>", 2, "<s> is a relative IRI", True),
    (PATCH, f"A {S} {P} {T}", 44, "the row does not end with a dot", True),
    (PATCH, f"A {S} {P} {T} # .", 45, "the row does not end with a dot", True),
    (PATCH, f"A {S} {P} {T} . .", 47, "'.' stands behind the dot", True),
    (PATCH, f"A {S} {P} {T} . A {S} {P} {T} .", 47, "a row has a line of its own", True),
    (PATCH, f"A {S} {P} {T} {G} {G} .", 59, "stands where the dot that ends the row should be", True),
    (PATCH, f"A {S} {P} _:b. .", 36, "'.' stands behind the dot", True),
    (PATCH, f"A {S} {P} {T} ; .", 45, "';' stands where the dot", True),
    (PATCH, f'A "s" {P} {T} .', 3, "the subject is a literal; it must be an IRI or a blank node", True),
    (PATCH, f"A {S} _:p {T} .", 17, "the predicate is a blank node; it must be an IRI", True),
    (PATCH, f'D {S} "p" {T} .', 17, "the predicate is a literal; it must be an IRI", True),
    (PATCH, f'D {S} {P} {T} "g" .', 45, "the graph is a literal", True),
    (PATCH, f"A ex:s {P} {T} .", 3, "ex:s is a prefixed name; write the IRI in full, in angle brackets", True),
    (PATCH, f"A {S} a {T} .", 17, "'a' is Turtle; write <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", True),
    (PATCH, f"A {S} {P} 5 .", 31, f'5 is not a term; write "5"^^<{XSD}integer>', True),
    (PATCH, f"A {S} {P} 5.", 31, f'5 is not a term; write "5"^^<{XSD}integer>', True),
    (PATCH, f"A << {S} {P} {T} >> {P} {T} .", 3, "triple terms", True),
    (PATCH, f"A <s> {P} {T} .", 3, "<s> is a relative IRI; write it in full, with its scheme", True),
    (PATCH, f"A <_:a b> {P} {T} .", 3, "'a b' is not a blank node label", True),
    (PATCH, f"A {S} {P} \"a\"@ .", 34, "bad language tag", True),
    (PATCH, f"A {S} {P} <http://ex/a b> .", 43, "' ' is not allowed in an IRI", True),
    (PATCH, f"A\u00a0{S} {P} {T} .", 2, "is not a term", True),
    (PATCH, f"A {S} {P} {T}\u00a0.", 44, "stands where the dot", True),
    (PATCH, f"Add {S} {P} {T} .", 1, "'Add' does not begin a row of RDF Patch", False),
    (PATCH, f"a {S} {P} {T} .", 1, "'a' does not begin a row", False),
    (PATCH, f"{S} {P} {T} .", 1, "does not begin a row", False),
    (PATCH, "TX", 3, "the row does not end with a dot", False),
    (PATCH, "TX x .", 4, "'x' stands where the dot", False),
    (PATCH, "TZ .", 1, "'TZ' does not begin a row of RDF Patch; one of H, TX, TC", False),
    (PATCH, "H .", 3, "a header is written H name value .", False),
    (PATCH, "H id", 5, "the row ends where a term should be", False),
    (PATCH, "H <x> .", 3, "a header is written H name value .", False),
    (PATCH, "PA <http://ex/> .", 4, "a prefix is written", False),
    (PATCH, "PD .", 4, "a prefix is written", False),
    (PATCH, 'PA "ex" "http://ex/ .', 9, "a literal is not closed", False),
    (PATCH, 'PA "ex" <http://ex/ .', 9, "an IRI is not closed", False),
    (PATCH, 'PD "ex"', 8, "the row does not end with a dot", False),
    (NTRIPLES, "@prefix ex: <http://ex/> .", 1, "N-Triples has no @prefix; write IRIs in full", True),
    (NQUADS, "BASE <http://ex/>", 1, "N-Quads has no BASE; write IRIs in full", True),
    (NTRIPLES, f"{S} {P} {T}", 42, "the row does not end with a dot", True),
    (NTRIPLES, f"<_:s> {P} {T} .", 1, "<_:s> is a relative IRI", True),
    (NTRIPLES, f"A {S} {P} {T} .", 1, "'A' is not a term", True),
    (NTRIPLES, f"{S} {P} {T}, {T} .", 42, "',' stands where the dot", True),
]  # fmt: skip


@pytest.mark.parametrize(("syntax", "row", "column", "reason", "message"), BAD)
def test_a_malformed_row_says_where_and_why(syntax: Syntax, row: str, column: int, reason: str, message: bool) -> None:
    good = f"A {S} {P} {T} ." if syntax is PATCH else f"{S} {P} {T} ."
    first, event, last = scan(f"{good}\n{row}\r\n{good}".encode(), "test", 7, syntax).events
    assert first == last == Update(INSERT, S, P, T)
    assert isinstance(event, Malformed)
    assert reason in event.reason
    assert (event.source, event.line, event.column) == ("test", 8, column)
    assert event.text == row
    assert event.is_message is message


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("last", ["", "end"])
def test_lines_end_at_lf_cr_and_cr_lf(end: str, last: str) -> None:
    rows = [f"A {S} {P} {T} .", "", "oops", f"D {S} {P} {T} ."]
    result = scan((end.join(rows) + (end if last else "")).encode(), "test", 1, PATCH)
    assert [type(event) for event in result.events] == [Update, Malformed, Update]
    assert result.events[1].line == 3  # type: ignore[union-attr]
    assert result.lines == 4


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("\n", 1), ("\r\n", 1), ("\n\r", 2), ("\r\r\n\n", 3), ("#", 1)])
def test_lines_are_counted(text: str, lines: int) -> None:
    assert scan(text.encode(), "test", 1, PATCH) == ntriples.Scan([], lines, False)


BAD_BYTES = [
    (b'A <a:s> <a:p> "caf\xe9" .', 19, "byte 0xe9 is not UTF-8", 'A <a:s> <a:p> "caf\\xe9" .', True),
    (b"A <http://ex/\xc3\xa9\xff> .", 15, "byte 0xff is not UTF-8", "A <http://ex/é\\xff> .", True),
    (b"D \xed\xa0\x80", 3, "byte 0xed is not UTF-8", "D \\xed\\xa0\\x80", True),
    (b"A \xc0\xaf", 3, "byte 0xc0", "A \\xc0\\xaf", True),
    (b"A \xe2\x82", 3, "byte 0xe2", "A \\xe2\\x82", True),
    (b"\xff\xfeA", 1, "byte 0xff", "\\xff\\xfeA", False),
    (b"# caf\xe9", 6, "byte 0xe9", "# caf\\xe9", False),
]  # fmt: skip


@pytest.mark.parametrize(("row", "column", "reason", "text", "message"), BAD_BYTES)
def test_bytes_that_are_not_utf_8_cost_their_row_only(
    row: bytes, column: int, reason: str, text: str, message: bool
) -> None:
    good = f"A {S} {P} {T} .".encode()
    result = scan(b"\r\n".join((good, row, b"oops", good, row)), "test", 1, PATCH)
    assert result.lines == 5
    first, bad, oops, fourth, again = result.events
    assert first == fourth == Update(INSERT, S, P, T)
    assert isinstance(bad, Malformed)
    assert isinstance(oops, Malformed)
    assert isinstance(again, Malformed)
    assert (bad.line, oops.line, again.line) == (2, 3, 5)
    assert (bad.column, bad.text, bad.is_message) == (column, text, message)
    assert reason in bad.reason


def test_a_byte_order_mark_is_passed_over_at_the_beginning_only() -> None:
    row = f"A {S} {P} {T} ."
    assert events_of("\ufeff" + row) == [Update(INSERT, S, P, T)]
    assert isinstance(events_of(row + "\n\ufeff" + row)[1], Malformed)
    assert isinstance(scan(("\ufeff" + row).encode(), "test", 2, PATCH).events[0], Malformed)


def test_of_a_very_long_malformed_row_the_beginning_is_kept() -> None:
    (event,) = events_of(f'A {S} {P} "{"é" * KEPT_TEXT_BYTES}')
    assert isinstance(event, Malformed)
    assert KEPT_TEXT_BYTES - 2 <= len(event.text.encode()) <= KEPT_TEXT_BYTES
    assert event.text.endswith("éé")
    assert "(the text is 2,097,183 bytes long; its first MiB is kept here)" in event.reason
    (event,) = events_of("oops" + "x" * (KEPT_TEXT_BYTES - 4))
    assert len(event.text) == KEPT_TEXT_BYTES  # type: ignore[union-attr]
    assert "kept here" not in event.reason  # type: ignore[union-attr]


def test_plain_rows_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("the exact reader was asked")

    monkeypatch.setattr(ntriples, "_exact", refuse)
    rows = [
        f"A {S} {P} {T} .",
        f"D\t{S}\t{P}\t_:b\t{G}\t. # comment",
        f'A _:b.1 {P} "caf\u00e9 \\n\\"\\\\" .',
        f'A {S} {P} "a"@pt-br .',
        f'A {S} {P} "1"^^<{XSD}int> .',
        "TX .",
        "TC .",
        "",
    ]
    assert len(events_of("\n".join(rows))) == 7


# The bulk reader against the exact one ------------------------------------------------------------------------------

PIECES = [
    "A", "D", "A ", "D\t", "TX .", "TC.", "H id ", "PA ", " ", "\t", " . ", ".", "#", "# c", "^^", "@", "\\", '"', "<",
    ">", S, P, T, G, "<_:b>", "<s>", "<urn:a:b>", "<http://ex/\u2028>", "<a:\x7f>", "<a:^>", r"<a:\u0041>", "_:b",
    "_:b.c", "_:b.", "_:\u00e9", "_:b\u00e9", "_:-", '"a"',
    '"a b"', '""', r'"\n\t\""', r'"\u0041"', r'"\x"', '"\t"', '"\x7f"', '"\u0085"',
    "@en", "@EN", "@en-gb", "@e1", "@en-", f"^^<{XSD}string>", f"^^<{XSD}int>", f"^^<{XSD}string1>", "^^<x>", "^^_:b",
    "\u00a0", "\u0085", "\ufeff", "ex:a", "5", "é",
]  # fmt: skip
JUNK = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
STRINGS = ['"a"', '"a b"', '""', r'"\n"', r'"\u0041"', '"\t"', '"\x7f"', '"\x01"', '"é\u2028"', r'"\x"', '"a']
SUFFIXES = ["", "@en", "@EN", "@en-gb", "@en-GB", "@en-", "@enA", "@1"]
SUFFIXES += [f"^^<{XSD}string>", f"^^<{XSD}string1>", "^^<x>"]
OPS = ["A", "D", "", "a"]
SUBJECTS = [S, "_:b", "<_:b>", '"a"', "_:b.", r"<a:\u0041>", "<rel>"]
PREDICATES = [P, "_:b", "a ", "<p>"]
OBJECTS = [T, "_:b", "_:b.c", "_:1", "_:\u00e9", "_:b\u00b7", "<_:x>", r"<a:\u0041>", "<rel>", "<a: >", "5"]
OBJECTS += ["".join(pair) for pair in product(STRINGS, SUFFIXES)]
GRAPHS = ["", G, "_:g", '"g"', "<g>"]
ENDS = [".", "", "..", ". #c", ".\u00e9"]
NEAR_ROWS = [
    *product(OPS, SUBJECTS, PREDICATES, OBJECTS[:2], GRAPHS, ENDS),
    *product(["A", ""], [S], [P], OBJECTS, GRAPHS, ENDS),
]


def read_exactly(lines: list[str], syntax: Syntax) -> list[Event]:
    events: list[Event] = []
    for number, text in enumerate(lines, 1):
        try:
            event = Row(text, syntax).read()
        except RowError as fault:
            event = Malformed("test", number, fault.column, fault.reason, text, is_message(text, syntax))  # type: ignore[assignment]
        if event is not None:
            events.append(event)
    return events


@pytest.mark.parametrize("syntax", Syntax)
@pytest.mark.parametrize("space", ["", " ", "\t "])
def test_the_bulk_reader_agrees_with_the_exact_one_on_all_near_rows(space: str, syntax: Syntax) -> None:
    lines = [space.join(parts) for parts in NEAR_ROWS]
    events = scan("\n".join(lines).encode(), "test", 1, syntax).events
    assert events == read_exactly(lines, syntax)
    assert len([event for event in events if isinstance(event, Update)]) > 100


@settings(max_examples=500, deadline=None)
@given(st.lists(JUNK, max_size=6), st.sampled_from(["\n", "\r", "\r\n"]), st.sampled_from(Syntax))
def test_the_bulk_reader_agrees_with_the_exact_one(lines: list[str], end: str, syntax: Syntax) -> None:
    result = scan("".join(line + end for line in lines).encode(), "test", 1, syntax)
    if lines and lines[0].startswith("\ufeff"):
        lines = [lines[0][1:], *lines[1:]]
    assert result.lines == len(lines)
    assert result.events == read_exactly(lines, syntax)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=12) | JUNK.map(str.encode), max_size=6).map(b"\n".join), st.sampled_from(Syntax))
def test_any_bytes_are_read(data: bytes, syntax: Syntax) -> None:
    result = scan(data, "test", 1, syntax)
    assert result.lines >= len(result.events)
    for event in result.events:
        if isinstance(event, Malformed):
            assert 1 <= event.line <= result.lines
            assert 1 <= event.column <= len(event.text) + 1
            assert event.reason


# Every way in which a pattern could go back over what it has read, at a size at which a square would not end.
SLOW_IF_QUADRATIC = [
    'A <a:s> <a:p> "' + "a" * 2_000_000,
    'A <a:s> <a:p> "' + r"\n" * 1_000_000,
    'A <a:s> <a:p> "' + r"\u0041" * 300_000 + "\\",
    "A <a:" + "a" * 2_000_000,
    "A <a:" + r"\u0041" * 300_000,
    "A _:" + "a." * 1_000_000,
    "A _:" + "." * 2_000_000,
    "A <a:s> <a:p> " + "<a:o> " * 300_000,
    "A " + " " * 2_000_000,
    'A <a:s> <a:p> "a"@' + "a-" * 1_000_000,
    "A <a:s> <a:p> " + "9" * 2_000_000,
    "A <a:s> <a:p> " + ":" * 2_000_000,
    "H " + "a" * 2_000_000,
    "PA " + "a" * 2_000_000,
    "x" * 2_000_000,
]


@pytest.mark.parametrize("row", SLOW_IF_QUADRATIC, ids=lambda row: row[:20])
def test_no_row_takes_more_than_linear_time(row: str) -> None:
    started = time.process_time()
    (event,) = events_of(row)
    assert isinstance(event, Malformed)
    assert time.process_time() - started < 3
