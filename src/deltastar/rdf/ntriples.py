"""Bytes of RDF Patch, N-Triples or N-Quads to events, in bulk.

In: whole lines. Out: their events, in order; a row gives at most one. One regular expression runs over the whole chunk.
Its first alternative takes the terms out of a plain row: one whose terms are canonical as they stand. Its second takes
any other line as it is, for the exact reader of `rows.py`. `split` is used because its flat list comes apart into
columns without a tuple a row, and `Update` keeps the texts as they are: a row costs half of what it does with terms.

Lines end at LF, CR or CR LF and nowhere else: U+0085, U+2028 and their like may stand inside an IRI or a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

from deltastar.errors import RowError
from deltastar.rdf.grammar import PLAIN_BLANK, PLAIN_IRI, PLAIN_LITERAL
from deltastar.rdf.rows import Row, Syntax, is_message
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark, Update

__all__ = ["Scan", "Syntax", "decode_row", "keep", "malformed", "read_line", "scan"]

BOM = b"\xef\xbb\xbf"
KEPT_TEXT_BYTES = 1 << 20

_S = r"[ \t]*+"
_TRIPLE = rf"{_S}({PLAIN_IRI}|{PLAIN_BLANK}){_S}({PLAIN_IRI}){_S}({PLAIN_IRI}|{PLAIN_LITERAL}|{PLAIN_BLANK})"
_GRAPH = rf"(?:{_S}({PLAIN_IRI}|{PLAIN_BLANK}))?"
_DOT = rf"{_S}\.{_S}(?:#[^\r\n]*+)?"
_LINE_END = r"(?:\n|\r\n?+|\Z)"


def _rows(plain: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{plain}{_DOT}{_LINE_END}|([^\r\n]*+){_LINE_END})")


# Groups: operation, subject, predicate, object, graph, any other line.
_ROWS = {
    Syntax.PATCH: _rows(rf"([AD]){_TRIPLE}{_GRAPH}"),
    Syntax.NTRIPLES: _rows(rf"{_S}((?=[<_])){_TRIPLE}()"),
    Syntax.NQUADS: _rows(rf"{_S}((?=[<_])){_TRIPLE}{_GRAPH}"),
}
_STRIDE = 7  # what `split` gives a row: nothing, and the six groups
_OP = {"A": INSERT, "D": DELETE, "": INSERT, None: INSERT}
_FREQUENT: dict[Syntax, dict[str, Mark | None]] = {
    Syntax.PATCH: {"": None, "TX .": Mark.BEGIN, "TC .": Mark.COMMIT, "TA .": Mark.ABORT},
    Syntax.NTRIPLES: {"": None},
    Syntax.NQUADS: {"": None},
}
_LINES = re.compile(rb"([^\r\n]*+)(?:\n|\r\n?+|\Z)")


@dataclass(frozen=True, slots=True)
class Scan:
    """What a chunk held: its events, how many lines it was, and whether a row named a graph."""

    events: list[Event]
    lines: int
    named_graphs: bool


def scan(data: bytes, source: str, line: int, syntax: Syntax) -> Scan:
    """Reads whole lines, of which the first is number `line`; the last may lack its line end.

    A byte order mark is passed over at the beginning of line 1.

    >>> chunk = b'A <http://ex/ann> <http://ex/knows> <http://ex/bob> .\\nA <http://ex/ann>\\n'
    >>> for event in scan(chunk, "example.rdfp", 1, Syntax.PATCH).events:
    ...     print(event)
    Update(ins, <http://ex/ann> <http://ex/knows> <http://ex/bob> .)
    example.rdfp: line 2, column 18: the row ends where a term should be
    """
    if line == 1 and data.startswith(BOM):
        data = data[len(BOM) :]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _scan_around_faults(data, source, line, syntax)
    return _scan_text(text, source, line, syntax)


def _scan_text(text: str, source: str, line: int, syntax: Syntax) -> Scan:
    flat = _ROWS[syntax].split(text)
    lines = len(flat) // _STRIDE - 1  # the expression matches once more, with nothing, at the very end
    end = lines * _STRIDE
    operations, subjects, predicates = flat[1:end:_STRIDE], flat[2:end:_STRIDE], flat[3:end:_STRIDE]
    rows = zip(map(_OP.__getitem__, operations), subjects, predicates, flat[4:end:_STRIDE], repeat(""))
    events: list[Event | None] = list(map(tuple.__new__, repeat(Update), rows))
    named_graphs = any(flat[5:end:_STRIDE])
    others = flat[6:end:_STRIDE]
    if others.count(None) == lines:
        return Scan(events, lines, named_graphs)  # type: ignore[arg-type]
    frequent = _FREQUENT[syntax]
    for index, other in enumerate(others):
        if other is not None:
            if other in frequent:
                events[index] = frequent[other]
            else:
                events[index], has_graph = _exact(other, source, line + index, syntax)
                named_graphs |= has_graph
    return Scan([event for event in events if event is not None], lines, named_graphs)


def _exact(text: str, source: str, line: int, syntax: Syntax) -> tuple[Event | None, bool]:
    row = Row(text, syntax)
    try:
        return row.read(), row.has_graph
    except RowError as fault:
        return malformed(text, source, line, syntax, fault.column, fault.reason), False


def read_line(data: bytes, source: str, line: int, syntax: Syntax) -> tuple[Event | None, bool]:
    """One row without its line end: its event, if it has one, and whether it names a graph."""
    text, fault = decode_row(data)
    if fault is not None:
        return malformed(text, source, line, syntax, *fault), False
    return _exact(text, source, line, syntax)


def _scan_around_faults(data: bytes, source: str, line: int, syntax: Syntax) -> Scan:
    """For a chunk with bytes that are not UTF-8: only the rows that hold them are lost."""
    events: list[Event] = []
    named_graphs, lines = False, 0
    for good, bad in _runs(data):
        part = _scan_text(good.decode(), source, line + lines, syntax)
        events += part.events
        named_graphs |= part.named_graphs
        lines += part.lines
        if bad is not None:
            text, fault = decode_row(bad)
            assert fault is not None
            events.append(malformed(text, source, line + lines, syntax, *fault))
            lines += 1
    return Scan(events, lines, named_graphs)


def _runs(data: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """The chunk as runs of good lines, each with the bad line behind it, if there is one."""
    start = 0
    for match in _LINES.finditer(data):
        row = match.group(1)
        if decode_row(row)[1] is not None:
            yield data[start : match.start()], row
            start = match.end()
    yield data[start:], None


def decode_row(row: bytes) -> tuple[str, tuple[int, str] | None]:
    """The text, and the column and reason of its first byte that is not UTF-8; such bytes are shown as \\xNN."""
    try:
        return row.decode(), None
    except UnicodeDecodeError as error:
        column = len(row[: error.start].decode()) + 1
        reason = f"byte 0x{row[error.start]:02x} is not UTF-8; the text must be UTF-8"
        return row.decode(errors="backslashreplace"), (column, reason)


def malformed(text: str, source: str, line: int, syntax: Syntax, column: int, reason: str) -> Malformed:
    """The dead letter of a row."""
    kept, reason = keep(text, reason)
    return Malformed(source, line, column, reason, kept, is_message(text, syntax))


def keep(text: str, reason: str) -> tuple[str, str]:
    """What a dead letter keeps of a text, the first MiB, and a reason that says so."""
    kept = text[:KEPT_TEXT_BYTES].encode()[:KEPT_TEXT_BYTES].decode(errors="ignore")
    if len(kept) < len(text):
        reason += f" (the text is {len(text.encode()):,} bytes long; its first MiB is kept here)"
    return kept, reason
