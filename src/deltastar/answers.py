"""From deltas back to answers: `deltastar answers`.

The answers of a query at some moment are the sum of its deltas up to it: a row is there as often as it was added, less
as often as it was removed. The order in which deltas are added up does not matter, so the parts that shards wrote need
no merging. A count below zero at the end means that deltas are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime

from deltastar.delta import ADDED
from deltastar.errors import DeltastarError, RowError, UnknownQueryError, UsageError
from deltastar.sink.decode import delta_files, read_deltas
from deltastar.sink.memo import Memo
from deltastar.sink.rows import Record, binding_of
from deltastar.sink.tables import TABLE_WIDTH, AnswerTable, printable, render

__all__ = ["AnswerTable", "accumulate", "render", "render_all"]


def accumulate(path: str, query: str | None = None, at: str | None = None) -> dict[str, AnswerTable]:
    """The answers that written deltas add up to, by query; of one query when it is named.

    `path` is a file of any delta format, a directory of such files, or `-`. `at` ends the sum after a `seq`, or after
    an ISO 8601 time (UTC unless it says otherwise). The file does not say whether a query is an ASK: one whose
    bindings are all empty counts as one.
    """
    cut = _cut(at)
    tallies: dict[str, _Tally] = {}
    for file in delta_files(path):
        with closing(read_deltas(file)) as records:
            _add_up(records, file, query, cut, tallies)
    cut.check(path)
    if query is None:
        return {name: tally.table(name) for name, tally in tallies.items()}
    if query not in tallies:
        there = f"they hold {_names(tallies)}" if tallies else "they hold no query at all"
        raise UnknownQueryError(f"{path}: there are no deltas of a query {query!r}; {there}")
    return {query: tallies[query].table(query)}


def render_all(tables: Mapping[str, AnswerTable], format: str, width: int = TABLE_WIDTH) -> str:
    """The answers of the queries in one text. Only `table` can hold several."""
    if len(tables) == 1:
        return render(next(iter(tables.values())), format, width)
    if not tables:
        return "(no deltas)\n" if format == "table" else render(AnswerTable((), ()), format)
    if format != "table":
        raise UsageError(f"{format} holds the answers of one query; choose with --query from {_names(tables)}")
    return "\n".join(f"{printable(name)}\n{render(table, format, width)}" for name, table in tables.items())


class _Tally:
    """One query's rows, with how often each is there. Rows at zero are dropped, so memory follows the answers."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.below_zero: dict[str, tuple[str, int]] = {}
        self.variables: dict[str, None] = {}

    def add(self, record: Record, file: str) -> None:
        row = record.row.text
        count = self.counts.get(row, 0) + (1 if record.op == ADDED else -1)
        if count:
            self.counts[row] = count
            if count == -1:
                self.below_zero[row] = (file, record.line)
        else:
            del self.counts[row]
            self.below_zero.pop(row, None)

    def table(self, query: str) -> AnswerTable:
        for row, (file, line) in self.below_zero.items():
            if self.counts[row] < 0:
                raise DeltastarError(
                    f"{file}: line {line}: query {printable(query)!r} loses {_shown(row)} more often than it gains it; "
                    "the deltas are incomplete or damaged"
                )
        rows = []
        for row, count in self.counts.items():
            rows += [binding_of(row)] * count
        return AnswerTable(tuple(self.variables), rows, not self.variables, bool(rows and not self.variables))


def _add_up(records: Iterable[Record], file: str, query: str | None, cut: _Cut, tallies: dict[str, _Tally]) -> None:
    everything = type(cut) is _Cut
    for record in records:
        name = record.query
        if (tally := tallies.get(name)) is None:
            tally = tallies[name] = _Tally()
        if record.row.names:
            tally.variables.update(dict.fromkeys(record.row.names))
        if (everything or cut.includes(record, file)) and (query is None or query == name):
            tally.add(record, file)


class _Cut:
    """Where the sum ends. This one ends nowhere."""

    def includes(self, record: Record, file: str) -> bool:
        return True

    def check(self, path: str) -> None:
        """Raises when the deltas turned out not to allow such a cut."""


class _SeqCut(_Cut):
    def __init__(self, seq: int) -> None:
        self._seq = seq

    def includes(self, record: Record, file: str) -> bool:
        return record.seq <= self._seq


class _TimeCut(_Cut):
    """Ends after an instant. That is a moment of the stream only if no later message carries an earlier time."""

    def __init__(self, at: str, instant: datetime) -> None:
        self._at, self._instant = at, instant
        self._instants: Memo[str, datetime] = Memo(_instant)
        self._last_in, self._first_out = 0, 0

    def includes(self, record: Record, file: str) -> bool:
        if record.seq == 0:
            return True  # the initial graph's
        if not record.time:
            raise UsageError(f"{file}: line {record.line} has no time, so --at needs a seq instead of {self._at}")
        try:
            is_in = self._instants[record.time] <= self._instant
        except ValueError:
            reason = f"the line is not a delta: {record.time!r} is not an ISO 8601 time"
            raise RowError(reason, 1, record.line, file) from None
        if is_in:
            self._last_in = max(self._last_in, record.seq)
        elif not self._first_out or record.seq < self._first_out:
            self._first_out = record.seq
        return is_in

    def check(self, path: str) -> None:
        if 0 < self._first_out < self._last_in:
            raise UsageError(
                f"{path}: the times do not follow the order of the messages: seq {self._first_out} is after "
                f"{self._at}, and seq {self._last_in} is not; end at a seq instead, such as --at {self._first_out - 1}"
            )


def _cut(at: str | None) -> _Cut:
    if at is None:
        return _Cut()
    if re.fullmatch("[0-9]{1,18}", at):
        return _SeqCut(int(at))
    try:
        return _TimeCut(at, _instant(at))
    except ValueError:
        raise UsageError(
            f"--at {at}: neither a seq nor an ISO 8601 time; give a number, or a time like 2026-01-31T12:00:00Z"
        ) from None


def _instant(text: str) -> datetime:
    """The instant of an ISO 8601 time; one without a zone is in UTC."""
    value = datetime.fromisoformat(text)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _names(queries: Iterable[str]) -> str:
    return printable(", ".join(queries))


def _shown(row: str) -> str:
    """A row for a message."""
    text = " ".join("?" + pair.replace(" ", "=", 1) for pair in row.split("\t")) if row else "the empty row"
    return printable(text if len(text) <= 300 else text[:299] + "…")
