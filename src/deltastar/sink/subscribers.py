"""Who is told of a target's rows, as arrays for the compiled encoder: see "The encoder's plan" in `layout.py`.

A registered query subscribes to the target that its rows come from, with the columns and names that are its own;
several queries may share a target. Everything that a line holds beside its seq and its terms is made here, once a
query, by the functions that write whole lines elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.errors import InvariantError
from deltastar.layout import Longs
from deltastar.sink.encode import TSV_ESCAPES, Variables, all_variables, csv_text, json_text, utf8

_FORMATS = {"jsonl": at.JSON_FORMAT, "tsv": at.TSV_FORMAT, "csv": at.CSV_FORMAT}
_JSON_TYPES = ("uri", "literal", "bnode")
COLUMNS_ONLY = "columns"
"""In place of a format: for whoever wants columns and no text."""


class Subscription(NamedTuple):
    """A query: its name, the variables that it reports, the target of its rows, and each variable's column there."""

    name: str
    variables: tuple[str, ...]
    target: int
    columns: tuple[int, ...]


class _Cell(NamedTuple):
    """A column of the target's row, and what stands before its term: an IRI, a literal, a blank node."""

    column: int
    labels: tuple[str, str, str]


class _Line(NamedTuple):
    """What a query's lines hold beside seq and terms."""

    start: str
    added: str
    removed: str
    cells: list[_Cell]
    tail: str


class Plan(NamedTuple):
    """The arrays; and for each subscription, by its number: its name, its record's place, its variables' positions."""

    records: Longs
    literals: NDArray[np.uint8]
    names: tuple[str, ...]
    places: Longs
    positions: tuple[Mapping[str, int], ...]


class Subscribers:
    """Subscriptions that come and go, and the plan that they make.

    `widths` holds the width of every target that there is; it is looked at whenever the subscriptions have changed.
    `variables` is what the sink was opened with: its columns.
    """

    def __init__(
        self, format: str, variables: Variables | None, widths: Mapping[int, int], with_time: bool = False
    ) -> None:
        self._format, self._widths, self._with_time = format, widths, with_time
        self._is_table = format != "jsonl" and variables is not None
        self.names = all_variables(variables or {})
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._subscriptions: dict[str, Subscription] = {}
        self._others: list[Subscription] = []
        self._plan: Plan | None = None

    def add(self, subscription: Subscription) -> None:
        """One more query. In a table, its variables must have columns."""
        self._check(subscription)
        self._subscriptions[subscription.name] = subscription
        self._plan = None

    def replace(self, subscriptions: Iterable[Subscription]) -> None:
        """These, and no others; here a query may have several, for targets that never hold the same row."""
        self._subscriptions.clear()
        self._others = list(subscriptions)
        for subscription in self._others:
            self._check(subscription)
        self._plan = None

    def remove(self, name: str) -> None:
        """One query less."""
        del self._subscriptions[name]
        self._plan = None

    def _check(self, subscription: Subscription) -> None:
        if self._is_table and (missing := set(subscription.variables).difference(self.names)):
            raise InvariantError(
                f"the sink was not opened for {subscription.name} with the variables {sorted(missing)}"
            )

    @property
    def plan(self) -> Plan:
        """The arrays, as they are now."""
        if self._plan is None:
            self._plan = self._make()
        return self._plan

    def _make(self) -> Plan:
        subscriptions = [*self._subscriptions.values(), *self._others]
        by_target: dict[int, list[int]] = {target: [] for target in self._widths}
        for number, subscription in enumerate(subscriptions):
            by_target[subscription.target].append(number)
        head = at.Q_FIRST + max(by_target, default=-1) + 1
        top = head + sum(at.G_FIRST + len(numbers) for numbers in by_target.values())
        literals = bytearray(bytes(at.NUMBER_BYTES) + at.LANGUAGE + at.DATATYPE)
        tail: list[int] = []
        places = []
        for number, subscription in enumerate(subscriptions):
            places.append(top + len(tail))
            tail += self._record(number, subscription, literals)
        records = [_FORMATS.get(self._format, at.JSON_FORMAT), head - at.Q_FIRST, *[0] * (head - at.Q_FIRST)]
        for target, numbers in by_target.items():
            records[at.Q_FIRST + target] = len(records)
            records += [self._widths[target], len(numbers), *(places[number] for number in numbers)]
        literals += bytes(at.SPARE)
        return Plan(
            np.array(records + tail, np.int64),
            np.frombuffer(literals, np.uint8),
            tuple(subscription.name for subscription in subscriptions),
            np.array(places, np.int64),
            tuple(map(_positions_of, subscriptions)),
        )

    def _record(self, number: int, subscription: Subscription, literals: bytearray) -> list[int]:
        columns = dict(zip(subscription.variables, subscription.columns, strict=True))
        line = self._line(subscription.name, columns)
        record = [number]
        for text in (line.start, line.added, line.removed, line.tail):
            record += _literal(text, literals)
        cells: list[int] = []
        for cell in line.cells:
            cells.append(cell.column)
            for label in cell.labels:
                cells += _literal(label, literals)
        record += [_bytes_beside_terms(line), len(line.cells), len(columns), at.SUBSCRIBER + len(cells), *cells]
        for name, column in columns.items():
            record += [column, self._numbers.get(name, -1)]
        return record

    def _line(self, name: str, columns: Mapping[str, int]) -> _Line:
        if self._format == "jsonl":
            return _json_line(name, columns)
        if self._format == "csv":
            return self._table_line(csv_text([[name, ""]]).removesuffix("\r\n"), ",", "\r\n", columns)
        if self._format == "tsv":
            return self._table_line(name.translate(TSV_ESCAPES) + "\t", "\t", "\n", columns)
        return _Line("", "", "", [], "")

    def _table_line(self, start: str, separator: str, end: str, columns: Mapping[str, int]) -> _Line:
        """Cells that are always empty become part of what stands before the next one."""
        cells, gap = [], separator
        for name in self.names:
            if name in columns:
                cells.append(_Cell(columns[name], (gap, gap, gap)))
                gap = separator
            else:
                gap += separator
        time = separator if self._with_time else ""
        return _Line(start, f"{separator}+{time}", f"{separator}-{time}", cells, gap.removesuffix(separator) + end)


def _positions_of(subscription: Subscription) -> Mapping[str, int]:
    return {name: position for position, name in enumerate(dict.fromkeys(subscription.variables))}


def _json_line(name: str, columns: Mapping[str, int]) -> _Line:
    """The end of a term's object is part of what follows, so that each term takes one literal."""
    cells, gap = [], ""
    for label, column in columns.items():
        before = f'{gap}{json_text(label)}:{{"type":"'
        iri, literal, blank = (f'{before}{type_}","value":"' for type_ in _JSON_TYPES)
        cells.append(_Cell(column, (iri, literal, blank)))
        gap = '"},'
    added, removed = (f',"op":"{op}","binding":{{' for op in "+-")
    return _Line(f'{{"query":{json_text(name)},"seq":', added, removed, cells, ('"}' if cells else "") + "}}\n")


def _bytes_beside_terms(line: _Line) -> int:
    """No line of the query has more, its terms' texts aside."""
    longest = [line.start, max(line.added, line.removed, key=len), line.tail]
    longest += [max(cell.labels, key=lambda label: len(utf8(label))) for cell in line.cells]
    return at.NUMBER_BYTES + sum(len(utf8(text)) for text in longest) + at.CELL_BYTES * len(line.cells)


def _literal(text: str, literals: bytearray) -> list[int]:
    """Puts a text among the literals, if it is not the one that was put there last: its place and length."""
    data = utf8(text)
    if not literals.endswith(data):
        literals += data
    return [len(literals) - len(data), len(data)]
