"""Lines of several shards, each in the order of seq, as one sequence in the order of seq."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from deltastar.kernel import lines as kernel

WINDOW_BYTES = 8 << 20

Bytes = NDArray[np.uint8]


def runs_of(data: bytes | memoryview, format: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The seq of each run of lines, and the byte behind it.

    >>> seqs, ends = runs_of(b'{"query":"q","seq":7,"op":"+"}\\n{"query":"q","seq":9,"op":"-"}\\n', "jsonl")
    >>> seqs.tolist(), ends.tolist()
    ([7, 9], [31, 62])
    """
    text: Bytes = np.frombuffer(data, np.uint8)
    lines = int(np.count_nonzero(text == kernel.LF))
    seqs: NDArray[np.int64] = np.empty(lines, np.int64)
    ends: NDArray[np.int64] = np.empty(lines, np.int64)
    separator = kernel.TAB if format == "tsv" else kernel.COMMA
    runs = int(kernel.find_runs(text, len(text), format == "jsonl", separator, seqs, ends))
    return seqs[:runs], ends[:runs]


def merged(shards: Sequence[bytes | memoryview], format: str) -> Iterator[memoryview]:
    """The lines of all shards in the order of seq, in pieces; each is valid until the next one."""
    shards = [data for data in shards if len(data)]
    if len(shards) <= 1:
        yield from (memoryview(data) for data in shards)
        return
    text: Bytes = np.concatenate([np.frombuffer(data, np.uint8) for data in shards])
    seqs_of, starts_of, ends_of, base = [], [], [], 0
    for data in shards:
        seqs, ends = runs_of(data, format)
        seqs_of.append(seqs)
        starts_of.append(np.concatenate([[0], ends[:-1]]) + base)
        ends_of.append(ends + base)
        base += len(data)
    starts, ends = np.concatenate(starts_of), np.concatenate(ends_of)
    order = np.argsort(np.concatenate(seqs_of), kind="stable")
    reach = np.cumsum((ends - starts)[order])
    out: Bytes = np.empty(0, np.uint8)
    first = 0
    while first < len(order):
        before = int(reach[first - 1]) if first else 0
        last = max(int(np.searchsorted(reach, before + WINDOW_BYTES)), first + 1)
        size = int(reach[last - 1]) - before
        if size > len(out):
            out = np.empty(size, np.uint8)
        kernel.gather(text, starts, ends, order, first, last, out)
        yield out.data[:size]
        first = last
