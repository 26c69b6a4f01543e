"""From a split of the stream to what each shard gets of it.

In: whole lines, or columns of a table. Out: one blob for every shard. A row that unifies with no pattern of any query
ends here. All routers of a run agree on where a triple goes, for that depends on the queries and the triple alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar import scan_layout as scanned
from deltastar.errors import UsageError
from deltastar.kernel import route as kernel
from deltastar.kernel import scan
from deltastar.layout import Ints, Longs
from deltastar.machine import Machine, fixed_keys
from deltastar.plan.decompose import Plan, make_plan
from deltastar.plan.frequencies import Frequencies
from deltastar.plan.shares import Shares, make_shares
from deltastar.query.algebra import Query, Variable
from deltastar.query.parse import parse_query
from deltastar.rdf.ntriples import Syntax, read_line
from deltastar.rdf.update import INSERT, Event, Mark, Update
from deltastar.sharding.columns import EventTable, Table, text_of_rows
from deltastar.sharding.packed import (
    HAS_DROPPED,
    HAS_GRAPHS,
    HEADER_BYTES,
    IS_INITIAL,
    IS_NUMBERED,
    header,
    letter_line,
    mark_line,
)

_ROWS = 1 << 12
_MARKS = 1 << 12
"""Marks for which there is room behind the data, at least, whenever rows are read."""
_SLACK = 128
"""Copies go by whole vectors of 64 bytes."""
_SYNTAXES = {Syntax.PATCH: scanned.PATCH, Syntax.NTRIPLES: scanned.NTRIPLES, Syntax.NQUADS: scanned.NQUADS}
_NO_NUMBERS: Longs = np.zeros(0, np.int64)


def plans_of(queries: Mapping[str, str | Query]) -> dict[str, Plan]:
    """The plans of queries, by name."""
    return {name: _plan_of(query) for name, query in queries.items()}


@lru_cache(maxsize=4096)
def _plan_of(query: str | Query) -> Plan:
    """Remembered, for a process has routers and shards of the same queries, and parsing takes 10 ms."""
    return make_plan(parse_query(query) if isinstance(query, str) else query)


class Router:
    """Knows the queries, and the shards that each needs.

    >>> router = Router({"likes": "SELECT * { ?x <p:likes> ?y }"}, shards=2)
    >>> blobs = router.route(b"A <p:ann> <p:likes> <p:bob> .\\nA <p:ann> <p:age> '3' .\\n", Syntax.PATCH, "example")
    >>> len(blobs)
    2
    """

    def __init__(
        self,
        queries: Mapping[str, str | Query],
        shards: int,
        granularity: str = "message",
        strict: bool = False,
        frequencies: Frequencies | None = None,
    ) -> None:
        if shards < 1:
            raise UsageError(f"shards={shards}: give 1 or more")
        self.shares = make_shares(plans_of(queries), shards, frequencies)
        self._shards = shards
        self._machine = Machine(keys=fixed_keys())
        self._routes = _routes(self.shares, self._machine)
        if strict:
            self._machine.predicates.settings[scanned.P_ANY] = 1
        self._state: Longs = np.zeros(at.ROUTING, np.int64)
        self._state[at.N_SHARDS], self._state[at.N_STRICT] = shards, strict
        self._state[at.N_NEEDS_TERMS] = strict or _needs_terms(self.shares)
        self._stamps: Longs = np.zeros(shards, np.int64)
        self._scan: Longs = np.zeros(scanned.CURSOR, np.int64)
        self._rows: Ints = np.zeros(_ROWS * scanned.ROW, np.int32)
        self._row: Ints = np.zeros(scanned.ROW, np.int32)
        self._data: NDArray[np.uint8] = np.zeros(1 << 16, np.uint8)
        self._sent: Longs = np.zeros(at.SENT * max(_ROWS, 4 * shards), np.int64)
        self._sizes: Longs = np.zeros(at.YIELD * shards, np.int64)

    def route(
        self, data: bytes, syntax: Syntax, source: str, initial: bool = False, is_start: bool = True
    ) -> list[bytes]:
        """One blob a shard, of whole lines.

        With `initial` they are rows of the graph that the stream starts from. A byte order mark is passed over where
        the lines are the start of a file.
        """
        split = _Split(source, syntax, IS_INITIAL if initial else 0)
        self._read(np.frombuffer(data, np.uint8), split, 0 if is_start else 1)
        return self._pack(split)

    def route_rows(
        self, seqs: Sequence[int], ops: Sequence[str], ss: Sequence[Any], ps: Sequence[Any], os: Sequence[Any]
    ) -> list[bytes]:
        """The same of columns, lists or Arrow arrays. Each row has its number; its operation is that of an `Update`,
        or a transaction's mark, whose row has no terms."""
        table = text_of_rows(seqs, ops, ss, ps, os)
        split = _Split("", Syntax.PATCH, IS_NUMBERED, table)
        self._read(np.frombuffer(table.text, np.uint8), split, 1)
        split.lines, split.has_graphs = 0, False
        return self._pack(split)

    def route_events(
        self, events: Sequence[Event], source: str, initial: bool = False, named_graphs: bool = False
    ) -> list[bytes]:
        """The same of events: what is not read by rows. A malformed one keeps its line, which counts from the file's
        beginning."""
        table = EventTable(events)
        split = _Split(source, Syntax.PATCH, IS_INITIAL if initial else 0, table)
        split.has_graphs = named_graphs
        self._read(np.frombuffer(table.text, np.uint8), split, 1)
        split.lines = 0
        return self._pack(split)

    # Reading ---------------------------------------------------------------------------------------------------------

    def _read(self, given: NDArray[np.uint8], split: _Split, first_line: int) -> None:
        length = len(given)
        self._make_room(length + _MARKS * at.MARK_BYTES)
        self._data[:length] = given
        state, cursor, machine = self._state, self._scan, self._machine
        state[at.N_ROWS] = state[at.N_RELEVANT] = state[at.N_DROPPED] = 0
        state[at.N_END] = length
        self._sizes[:] = 0
        cursor[:] = 0
        cursor[scanned.S_LINES] = first_line
        syntax, numbers = _SYNTAXES[split.syntax], split.table.seqs if split.table else _NO_NUMBERS
        while cursor[scanned.S_AT] < length:
            line = int(cursor[scanned.S_LINES]) - first_line
            messages = split.messages = int(cursor[scanned.S_MESSAGES])
            cursor[scanned.S_MESSAGES] = 0
            self._make_room(int(state[at.N_END]) + _MARKS * at.MARK_BYTES)
            count = scan.scan_rows(
                self._data, length, syntax, machine.terms.keys, machine.predicates, cursor, self._rows
            )
            found = int(cursor[scanned.S_MESSAGES])
            if split.table is not None:
                _check(self._rows[: count * scanned.ROW].reshape(count, scanned.ROW), line, split.table)
            self._route(self._rows, count, messages, numbers, line, split)
            cursor[scanned.S_MESSAGES] = split.messages = messages + found
        split.lines = int(cursor[scanned.S_LINES]) - first_line
        split.has_graphs |= bool(cursor[scanned.S_GRAPHS])

    def _route(self, rows: Ints, count: int, base: int, numbers: Longs, line: int, split: _Split) -> None:
        first = 0
        while True:
            first, why = kernel.route_rows(
                self._machine.table, self._data, rows, first, count, self._routes, self._state, self._stamps,
                base, numbers, line, self._sent, self._sizes,
            )  # fmt: skip
            if why == at.ALL_ADMITTED:
                return
            if why == at.MESSAGES_FULL:
                self._sent = np.concatenate([self._sent, np.zeros_like(self._sent)])
            else:
                row = rows[first * scanned.ROW : (first + 1) * scanned.ROW].tolist()
                number = line + row[scanned.R_LINE]
                place = int(numbers[number - 1]) if len(numbers) else base + row[scanned.R_MESSAGE]
                self._special(row, number, place, split)
                first += 1

    def _special(self, row: list[int], line: int, place: int, split: _Split) -> None:
        """A mark, or a row that the scanner does not read."""
        event: Event | None
        text = self._data[row[scanned.R_TEXT] : row[scanned.R_TEXT + 1]].tobytes()
        if split.table is not None:
            event, line, text = split.table.event(line - 1), 0, b""
        else:
            event, has_graph = read_line(text, split.source, line, split.syntax)
            split.has_graphs |= has_graph
        if isinstance(event, Update):
            self._route_update(event, place, split)
        elif isinstance(event, Mark):
            self._send((0,), mark_line(event, line, text.decode() or f"{event.value} ."), place, split)
            self._send(range(1, self._shards), f"{event.value} .\n".encode(), place, split)
        elif event is not None:
            split.malformed += event.is_message
            self._send((0,), letter_line(event), place, split)

    def _route_update(self, update: Update, place: int, split: _Split) -> None:
        """Routes a row by its canonical text, which goes behind the data."""
        text = f"{'A' if update[0] == INSERT else 'D'} {update[1]} {update[2]} {update[3]} .\n".encode()
        start = self._append(text)
        cursor, machine = np.array([start, 1, 0, 0], np.int64), self._machine
        count = scan.scan_rows(
            self._data, start + len(text), scanned.PATCH, machine.terms.keys, machine.predicates, cursor, self._row
        )
        if count == 0:
            self._state[at.N_DROPPED] += 1
            return
        self._row[scanned.R_MESSAGE] = 0
        numbers = np.array([place], np.int64)
        self._route(self._row, 1, 0, numbers, 0, split)

    def _send(self, shards: Iterable[int], text: bytes, place: int, split: _Split) -> None:
        """A line that goes to some shards as it is."""
        start = self._append(text)
        for shard in shards:
            row = int(self._state[at.N_ROWS])
            if (row + 1) * at.SENT > len(self._sent):
                self._sent = np.concatenate([self._sent, np.zeros_like(self._sent)])
            self._sent[row * at.SENT : (row + 1) * at.SENT] = 2 * shard, -1 - start, start + len(text), 2 * place
            self._state[at.N_ROWS] += 1
            self._sizes[shard * at.YIELD + at.Y_ROWS] += 1
            self._sizes[shard * at.YIELD + at.Y_TEXT] += len(text)

    def _append(self, text: bytes) -> int:
        """Puts text behind the data; where it begins."""
        start = int(self._state[at.N_END])
        end = start + len(text)
        self._make_room(end)
        self._data[start:end] = np.frombuffer(text, np.uint8)
        self._state[at.N_END] = end
        return start

    def _make_room(self, length: int) -> None:
        if length + _SLACK > len(self._data):
            longer: NDArray[np.uint8] = np.zeros(2 * length + _SLACK, np.uint8)
            longer[: len(self._data)] = self._data
            self._data = longer

    # Packing ---------------------------------------------------------------------------------------------------------

    def _pack(self, split: _Split) -> list[bytes]:
        state, sizes = self._state, self._sizes.reshape(-1, at.YIELD)
        flags = split.flags | (HAS_GRAPHS if split.has_graphs else 0)
        messages = split.messages if split.table is None else split.table.messages
        relevant = int(state[at.N_RELEVANT])
        if messages - split.malformed > relevant:
            flags |= HAS_DROPPED
        starts, blobs, size = [], [], 0
        cursors: Longs = np.zeros((self._shards, at.YIELD), np.int64)
        for shard, (rows, text) in enumerate(sizes.tolist()):
            starts.append(size)
            cursors[shard] = (size + HEADER_BYTES) // 8, size + HEADER_BYTES + 8 * rows
            size += HEADER_BYTES + 8 * rows + text + _SLACK
            size += -size % 8
        words: Longs = np.empty(size // 8, np.int64)
        out = words.view(np.uint8)
        kernel.pack_rows(self._data, self._sent, int(state[at.N_ROWS]), cursors.ravel(), words, out)
        for start, (rows, text) in zip(starts, sizes.tolist(), strict=True):
            end = start + HEADER_BYTES + 8 * rows + text
            first = header(flags, messages, split.lines, relevant, rows, text)
            out[start : start + HEADER_BYTES] = np.frombuffer(first, np.uint8)
            blobs.append(out[start:end].tobytes())
        return blobs


class _Split:
    """A split while it is read."""

    def __init__(self, source: str, syntax: Syntax, flags: int, table: Table | None = None) -> None:
        self.source, self.syntax, self.flags, self.table = source, syntax, flags, table
        self.messages = self.lines = self.malformed = 0
        self.has_graphs = False


def _check(records: Ints, line: int, table: Table) -> None:
    """Leaves rows to the exact reader whose columns hold anything but one term each."""
    rows = line + records[:, scanned.R_LINE] - 1
    is_wrong = np.zeros(len(records), np.bool_)
    for column, place in enumerate((scanned.R_SUBJECT, scanned.R_PREDICATE, scanned.R_OBJECT)):
        is_wrong |= records[:, place + 1] - records[:, place] != table.sizes[column, rows]
    is_plain = (records[:, scanned.R_KIND] == scanned.ADD) | (records[:, scanned.R_KIND] == scanned.DELETE)
    records[is_wrong & is_plain, scanned.R_KIND] = scanned.OTHER_MESSAGE


def _routes(shares: Shares, machine: Machine) -> Longs:
    """The routes of all relations; what several patterns have in common is there once."""
    by_relation: dict[int, dict[tuple[int, ...], None]] = {}
    for query in shares.queries:
        for pattern in query.plan.patterns:
            route = query.route(pattern)
            record: tuple[int, ...] = (query.first, len(route.coordinates), len(route.offsets))
            record += tuple(number for coordinate in route.coordinates for number in coordinate) + route.offsets
            by_relation.setdefault(machine.relate(pattern).number, {})[record] = None
    routes = [0] * max(machine.program.relation_numbers, 1)
    for number, records in by_relation.items():
        for record in records:
            routes += [routes[number], *record]
            routes[number] = len(routes) - len(record) - 1
    return np.array(routes, np.int64)


def _needs_terms(shares: Shares) -> bool:
    """Whether a predicate alone does not tell which patterns a row unifies with."""
    for query in shares.queries:
        for s, p, o in (pattern.nodes for pattern in query.plan.patterns):
            if not (isinstance(s, Variable) and isinstance(o, Variable)) or isinstance(p, Variable) or s == o:
                return True
    return False
