"""Lines of JSON, CSV and TSV straight from the kernel's output: what `encode.py` writes, byte for byte.

The queries' subscriptions, the buffer and the place in the output are kept here; the work is in `kernel/encode.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.errors import InvariantError
from deltastar.kernel.cuts import cut_lines
from deltastar.kernel.encode import encode
from deltastar.layout import Ints, Longs
from deltastar.sink.encode import Variables
from deltastar.sink.subscribers import Subscribers, Subscription

BUFFER_BYTES = 1 << 18
"""It stays in the second level cache."""


class CompiledEncoder:
    """Encodes runs of rows for all queries that have subscribed.

    `format` and `variables` are what the sink was opened with, `widths` the program's (looked at after each change of
    the queries). With `with_time`, tables have the column `time`, which stays blank: a delta with a time goes the other
    way.
    """

    def __init__(
        self,
        format: str,
        variables: Variables,
        widths: Mapping[int, int],
        with_time: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        self._subscribers = Subscribers(format, variables, widths, with_time)
        self._buffer: NDArray[np.uint8] = np.empty(buffer_bytes + at.SPARE, np.uint8)
        self._here: Longs = np.zeros(at.HERE, np.int64)

    def add(self, subscription: Subscription) -> None:
        """A query that is told of its rows from now on; the kernel knows it already."""
        self._subscribers.add(subscription)

    def remove(self, name: str) -> None:
        """A query that is told no more."""
        self._subscribers.remove(name)

    def replace(self, subscriptions: Iterable[Subscription]) -> None:
        """From now on these are told, and no others."""
        self._subscribers.replace(subscriptions)

    def encode(
        self, table: int, out: Ints, end: int, numbers: Longs, base: int = 0
    ) -> Iterator[tuple[memoryview, int]]:
        """The lines of the runs in `out[:end]`, in pieces: their bytes, valid until the next piece, and their number.

        `table` is the address of the kernel's arrays. A run's seq is `base + numbers[message]`.
        """
        plan, here = self._subscribers.plan, self._here
        here[:] = 0
        while True:
            written = encode(table, plan.records, plan.literals, out, end, base, numbers, here, self._buffer)
            if here[at.H_STATUS] == at.UNKNOWN_TARGET:
                raise unknown_target(out, int(here[at.H_RUN]))
            if written:
                yield self._buffer.data[:written], int(here[at.H_COUNT])
            if here[at.H_STATUS] == at.DONE:
                return
            if not written:
                self._buffer = np.empty(2 * len(self._buffer), np.uint8)

    def encode_cut(self, table: int, out: Ints, end: int, numbers: Longs) -> Iterator[tuple[memoryview, Longs]]:
        """The same pieces; with each, for each seq in it, the seq and where its lines end, one pair after the other."""
        here, records = self._here, self._subscribers.plan.records
        before = np.zeros(at.HERE, np.int64)
        for data, lines in self.encode(table, out, end, numbers):
            cuts = np.empty(2 * lines, np.int64)
            yield data, cuts[: cut_lines(records, out, numbers, before, lines, self._buffer, len(data), cuts)]
            before[:] = here


def unknown_target(out: Ints, run: int) -> InvariantError:
    """Rows came for a target of which no width is known: where the run ends cannot be told."""
    return InvariantError(f"rows came for target {out[run + at.O_TARGET]}, which the encoder was not told of")
