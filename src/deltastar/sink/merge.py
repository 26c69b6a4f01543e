"""Lines of several shards, each in the order of seq, as one sequence in the order of seq."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar.kernel.route import gather_lines

WINDOW_BYTES = 8 << 20

Longs = NDArray[np.int64]


class Lines(NamedTuple):
    """A shard's lines, and for each run of lines of one seq that seq and the byte behind the run, pair by pair."""

    text: bytes | memoryview
    cuts: Longs

    def before(self, seq: int) -> Lines:
        """The lines in front of a message.

        >>> Lines(b"a\\nb\\n", np.array([7, 2, 9, 4])).before(9).text.tobytes()
        b'a\\n'
        """
        runs = int(np.searchsorted(self.cuts[0::2], seq))
        return Lines(memoryview(self.text)[: int(self.cuts[2 * runs - 1]) if runs else 0], self.cuts[: 2 * runs])


def merged(shards: Sequence[Lines]) -> Iterator[bytes | memoryview]:
    """The lines of all shards in the order of seq, in pieces; each is valid until the next one.

    >>> one, two = Lines(b"a\\nc\\n", np.array([7, 2, 9, 4])), Lines(b"b\\n", np.array([8, 2]))
    >>> b"".join(merged([one, two]))
    b'a\\nb\\nc\\n'
    """
    filled = [lines for lines in shards if len(lines.cuts)]
    if len(filled) <= 1:
        yield from (lines.text for lines in filled)
        return
    text: NDArray[np.uint8] = np.frombuffer(b"".join(lines.text for lines in filled), np.uint8)
    bases = np.cumsum([0, *(len(lines.text) for lines in filled)])
    seqs = np.concatenate([lines.cuts[0::2] for lines in filled])
    ends = np.concatenate([lines.cuts[1::2] + base for lines, base in zip(filled, bases[:-1], strict=True)])
    order = np.argsort(seqs, kind="stable")
    reach = np.cumsum(np.diff(ends, prepend=0)[order])
    out: NDArray[np.uint8] = np.empty(0, np.uint8)
    first = 0
    while first < len(order):
        before = int(reach[first - 1]) if first else 0
        last = max(int(np.searchsorted(reach, before + WINDOW_BYTES)), first + 1)
        size = int(reach[last - 1]) - before
        if size + _SPARE > len(out):
            out = np.empty(size + _SPARE, np.uint8)
        gather_lines(text, ends, order[first:last], out)
        yield out.data[:size]
        first = last


_SPARE = 128
"""Copies go by whole vectors."""
