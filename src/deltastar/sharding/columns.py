"""Columns of a table as lines of RDF Patch: how rows of a DataFrame come to the scanner.

In: numbers, operations and terms, as lists or Arrow arrays. Out: text with a line a row. A row that cannot be such a
line becomes one that the scanner does not read, and `Table.event` says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deltastar.errors import DeltastarError
from deltastar.layout import Longs
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark, Update

_LETTERS = {
    **dict.fromkeys(("ins", "insert", "add", "A", "+"), "A"),
    **dict.fromkeys(("del", "delete", "D", "-"), "D"),
}
_OPS = {"A": INSERT, "D": DELETE}
_MARKS = {"TX": Mark.BEGIN, "TB": Mark.BEGIN, "TC": Mark.COMMIT, "TA": Mark.ABORT}
_UNREADABLE = "A"
_LINE_ENDS = ("\n", "\r")


class Table:
    """Rows of a table. `text` has a line for each."""

    def __init__(
        self, seqs: Longs, ops: Sequence[Any], columns: Sequence[Sequence[Any]], text: bytes, sizes: Longs
    ) -> None:
        self.seqs, self.text = seqs, text
        self.sizes = sizes
        """For each row the bytes of its terms: a row in which the scanner finds others is none that it can read."""
        self._ops, self._columns = ops, columns
        self.messages = sum(op not in _MARKS for op in ops)

    def event(self, row: int) -> Event:
        """What a row is."""
        op = self._ops[row]
        if op in _MARKS:
            return _MARKS[op]
        terms = [column[row] for column in self._columns]
        shown = " ".join(str(part) for part in (op, *terms) if part is not None)
        if op not in _LETTERS:
            return Malformed("", 0, 1, f"{op!r} is not an operation; it is A, D, TX, TC or TA", shown)
        if None in terms:
            return Malformed("", 0, 1, "a term is missing; a row has a subject, a predicate and an object", shown)
        try:
            return Update.of(_OPS[_LETTERS[op]], *terms)
        except DeltastarError as error:
            return Malformed("", 0, getattr(error, "column", 1), str(error), shown)


class EventTable(Table):
    """Events that were read in another way, as rows of a table. A row's number is that of its message in the table."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        lines, sizes, numbers = [], [], []
        self.messages = 0
        for event in events:
            self.messages += event.is_message if isinstance(event, Malformed) else isinstance(event, Update)
            numbers.append(self.messages)
            terms = event[1:4] if isinstance(event, Update) else ()
            letter = "A" if isinstance(event, Update) and event[0] == INSERT else "D"
            lines.append(f"{letter} {' '.join(terms)} .\n" if terms else _UNREADABLE + "\n")
            sizes.append([len(term.encode()) for term in terms] or [0, 0, 0])
        self.seqs = np.array(numbers, np.int64)
        self.text = "".join(lines).encode()
        self.sizes = np.array(sizes, np.int64).reshape(-1, 3).T

    def event(self, row: int) -> Event:
        """What a row is."""
        return self._events[row]


def text_of_rows(
    seqs: Sequence[int], ops: Sequence[Any], ss: Sequence[Any], ps: Sequence[Any], os: Sequence[Any]
) -> Table:
    """The rows of a table."""
    numbers: Longs = np.ascontiguousarray(np.asarray(seqs), np.int64)
    names, *columns = (_listed(column) for column in (ops, ss, ps, os))
    rows = zip(map(_LETTERS.get, names), *columns, strict=True)
    lines = [
        f"{letter} {s} {p} {o} .\n" if letter and s and p and o else _UNREADABLE + "\n" for letter, s, p, o in rows
    ]
    text = "".join(lines)
    if text.count("\n") > len(lines) or "\r" in text:
        lines = [line if _is_one(line) else _UNREADABLE + "\n" for line in lines]
        text = "".join(lines)
    sizes = np.array([[len(term.encode()) if term else 0 for term in column] for column in columns], np.int64)
    return Table(numbers, names, columns, text.encode(), sizes)


def _listed(column: Any) -> list[Any]:
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


def _is_one(line: str) -> bool:
    return "\r" not in line and line.count("\n") == 1
