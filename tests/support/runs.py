"""Runs of rows as the kernel writes them, from plain Python values; and the deltas that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from deltastar.delta import Binding, Delta
from deltastar.machine import Machine
from deltastar.rdf.terms import Term
from deltastar.sink.subscribers import Subscription

Row = tuple[Term, ...]
Run = tuple[int, int, int, Sequence[Row]]
"""Target, message, sign, and rows of terms."""


def output_of(machine: Machine, runs: Sequence[Run]) -> tuple[np.ndarray, int]:
    """The runs as the kernel's output, with a remainder behind it that is no output; and where it ends."""
    out: list[int] = []
    for target, message, sign, rows in runs:
        out += [target, message, sign, len(rows), *(machine.acquire(term) for row in rows for term in row)]
    return np.array([*out, 7, 7, 7], np.int32), len(out)


def deltas_of(
    subscriptions: Sequence[Subscription], runs: Sequence[Run], numbers: Sequence[int], base: int
) -> Iterator[Delta]:
    """The deltas that the subscribers are told of, by run, subscriber and row."""
    for target, message, sign, rows in runs:
        for query in subscriptions:
            if query.target == target:
                columns: Mapping[str, int] = dict(zip(query.variables, query.columns, strict=True))
                for row in rows:
                    binding = Binding.of({name: row[column] for name, column in columns.items()})
                    yield Delta(query.name, base + numbers[message], "+" if sign > 0 else "-", binding)
