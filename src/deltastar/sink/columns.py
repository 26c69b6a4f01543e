"""Columns straight from the kernel's output: for deltas made in bulk, and for Arrow and Parquet.

A batch of runs becomes one entry for each row and query that is told of it: which query, seq, sign, ids. From that come
`Delta` objects, or Arrow batches whose texts never were Python strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.delta import ADDED, REMOVED, Binding, Delta
from deltastar.errors import InvariantError
from deltastar.kernel import flatten as kernel
from deltastar.layout import Ints, Longs
from deltastar.rdf.terms import Term
from deltastar.sink.compiled import unknown_target
from deltastar.sink.encode import Variables, delta_columns
from deltastar.sink.parquet import arrow_schema, pyarrow
from deltastar.sink.subscribers import COLUMNS_ONLY, Plan, Subscribers, Subscription

MOST_BYTES = (1 << 31) - 1
"""Bytes of text in one Arrow column."""

OPS = {1: ADDED, -1: REMOVED}


class Columns(NamedTuple):
    """Rows by column. The ids of row k are `ids[ends[k]:ends[k + 1]]`, in the order of the query's variables."""

    plan: Plan
    subscribers: Ints
    """Numbers in `plan.names`."""
    seqs: Longs
    signs: NDArray[np.int8]
    ids: Ints
    ends: Longs

    def __len__(self) -> int:
        return len(self.subscribers)


class ColumnEncoder:
    """Makes columns of runs of rows, for all queries that have subscribed: see `CompiledEncoder`.

    Without `variables` any query may subscribe, and there are deltas, but no table.
    """

    def __init__(
        self,
        variables: Variables | None,
        widths: Mapping[int, int],
        with_time: bool = False,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._subscribers = Subscribers(COLUMNS_ONLY, variables, widths)
        self._headings = None if variables is None else delta_columns(variables, with_time)
        self._with_time, self._most_bytes = with_time, most_bytes
        self._sizes: Longs = np.zeros(2, np.int64)

    def add(self, subscription: Subscription) -> None:
        """A query that is told of its rows from now on; the kernel knows it already."""
        self._subscribers.add(subscription)

    def remove(self, name: str) -> None:
        """A query that is told no more."""
        self._subscribers.remove(name)

    def replace(self, subscriptions: Iterable[Subscription]) -> None:
        """From now on these are told, and no others."""
        self._subscribers.replace(subscriptions)

    def count(self, out: Ints, end: int) -> int:
        """How many rows the runs in `out[:end]` have, for all who are told of them."""
        if kernel.count(self._subscribers.plan.records, out, end, self._sizes) != at.DONE:
            raise unknown_target(out, int(self._sizes[0]))
        return int(self._sizes[0])

    def flatten(self, out: Ints, end: int, numbers: Longs, base: int = 0) -> Columns:
        """The rows of the runs in `out[:end]`. A run's seq is `base + numbers[message]`."""
        plan = self._subscribers.plan
        rows, ids = self.count(out, end), int(self._sizes[1])
        columns = Columns(
            plan,
            np.empty(rows, np.int32),
            np.empty(rows, np.int64),
            np.empty(rows, np.int8),
            np.empty(ids, np.int32),
            np.zeros(rows + 1, np.int64),
        )
        kernel.flatten(plan.records, out, end, base, numbers, *columns[1:])
        return columns

    def arrow(self, table: int, columns: Columns) -> Iterator[Any]:
        """Arrow record batches with the columns of a Parquet output: usually one."""
        if self._headings is None:
            raise InvariantError("without the variables of all queries there is no table")
        if len(columns):
            rows = len(columns)
            ids: Ints = np.zeros(rows * len(self._subscribers.names), np.int32)
            plan = columns.plan
            kernel.tabulate(plan.records, plan.places, columns.subscribers, columns.ends, columns.ids, rows, ids)
            yield from self._batches(table, columns, ids.reshape(-1, rows), 0, rows)

    def maps(self, table: int, columns: Columns) -> Iterator[Any]:
        """Arrow record batches of query, seq, op, and a binding as a map from variable to term."""
        arrow, plan, rows = pyarrow(), columns.plan, len(columns)
        if rows == 0:
            return
        sizes = np.diff(columns.ends)
        names = [name for positions in plan.positions for name in positions]
        starts = np.cumsum([0, *map(len, plan.positions)])[columns.subscribers]
        keys = np.repeat(starts - columns.ends[:-1], sizes) + np.arange(len(columns.ids))
        limits = [0, *_halved(table, columns, self._most_bytes), rows]
        for first, last in pairwise(limits):
            low, high = int(columns.ends[first]), int(columns.ends[last])
            ids = columns.ids[low:high]
            binding = arrow.MapArray.from_arrays(
                arrow.array((columns.ends[first : last + 1] - low).astype(np.int32)),
                arrow.array(names, arrow.string()).take(arrow.array(keys[low:high])),
                _strings(table, ids, int(kernel.measure(table, ids, len(ids)))),
            )
            fixed = self._fixed_arrays(columns, first, last)[:3]
            yield arrow.RecordBatch.from_arrays([*fixed, binding], names=["query", "seq", "op", "binding"])

    def _batches(self, table: int, columns: Columns, ids: Ints, first: int, last: int) -> Iterator[Any]:
        """The rows from `first` to `last`, in two halves when a column has more text than Arrow can hold."""
        parts = [np.ascontiguousarray(column[first:last]) for column in ids]
        sizes = [int(kernel.measure(table, part, len(part))) for part in parts]
        if max(sizes, default=0) > self._most_bytes:
            middle = (first + last) // 2
            yield from self._batches(table, columns, ids, first, middle)
            yield from self._batches(table, columns, ids, middle, last)
            return
        arrays = self._fixed_arrays(columns, first, last)
        arrays += [_strings(table, part, size) for part, size in zip(parts, sizes, strict=True)]
        yield pyarrow().RecordBatch.from_arrays(arrays, schema=arrow_schema(self._headings or []))

    def _fixed_arrays(self, columns: Columns, first: int, last: int) -> list[Any]:
        """Query, seq, op, and the time if there is that column."""
        arrow = pyarrow()
        queries = arrow.array(columns.plan.names, arrow.string())
        is_added = (columns.signs[first:last] > 0).astype(np.int8)
        arrays = [
            queries.take(arrow.array(columns.subscribers[first:last])),
            arrow.array(columns.seqs[first:last]),
            arrow.array([REMOVED, ADDED]).take(arrow.array(is_added)),
        ]
        return [*arrays, arrow.nulls(last - first, arrow.string())] if self._with_time else arrays


def _halved(table: int, columns: Columns, most_bytes: int) -> list[int]:
    """Rows in front of which to cut, so that no part has more text than Arrow can hold in one column."""
    cuts = [0, len(columns)]
    while True:
        for place, (first, last) in enumerate(pairwise(cuts)):
            ids = columns.ids[columns.ends[first] : columns.ends[last]]
            if last - first > 1 and int(kernel.measure(table, ids, len(ids))) > most_bytes:
                cuts.insert(place + 1, (first + last) // 2)
                break
        else:
            return cuts[1:-1]


def deltas(columns: Columns, term: Callable[[int], Term], time: str = "") -> Iterator[Delta]:
    """The rows as deltas. `term` gives the term of an id; all are asked for at once.

    A chain of iterators without a line of Python a row: a loop takes a third more time.
    """
    plan = columns.plan
    numbers, ends = columns.subscribers.tolist(), columns.ends.tolist()
    terms = tuple(map(term, columns.ids.tolist()))
    rows = map(terms.__getitem__, map(slice, ends, ends[1:]))
    bindings = map(Binding, map(plan.positions.__getitem__, numbers), rows)
    names = map(plan.names.__getitem__, numbers)
    ops = map(OPS.__getitem__, columns.signs.tolist())
    return map(
        partial(tuple.__new__, Delta), zip(names, columns.seqs.tolist(), ops, bindings, repeat(time), strict=False)
    )


def texts(table: int, ids: Ints) -> tuple[Ints, NDArray[np.uint8]]:
    """The canonical texts of ids, for Arrow: where each ends, behind a 0, and all of them one behind the other."""
    return _texts(table, ids, int(kernel.measure(table, ids, len(ids))))


def _texts(table: int, ids: Ints, size: int) -> tuple[Ints, NDArray[np.uint8]]:
    ends: Ints = np.empty(len(ids) + 1, np.int32)
    data: NDArray[np.uint8] = np.empty(size, np.uint8)
    kernel.copy_texts(table, ids, len(ids), data, ends)
    return ends, data


def _strings(table: int, ids: Ints, size: int) -> Any:
    """An Arrow array of texts, null where the id is 0."""
    arrow = pyarrow()
    ends, data = _texts(table, ids, size)
    unbound = int(len(ids) - np.count_nonzero(ids))
    valid = arrow.py_buffer(np.packbits(ids != 0, bitorder="little")) if unbound else None
    return arrow.StringArray.from_buffers(len(ids), arrow.py_buffer(ends), arrow.py_buffer(data), valid, unbound)
