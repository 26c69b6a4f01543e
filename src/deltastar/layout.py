"""Array names, dtypes, sentinels and status codes of the kernel. The one place where they are decided.

All state is integers in flat arrays, which live in one arena (`arena.py`): each has a name, a dtype, and a place that
it may grow into without ever moving. A *unit* is eight `id_t`, half a cache line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

id_t = np.int32
flags_t = np.uint64

NONE = -1
UNIT = 8
"""`id_t` in a unit of the heap."""

# A list record: one unit.
R_SLOT = 0
R_COUNT = 1
R_SLAB = 2
"""Unit of the slab that holds the neighbours, or NONE: they are in the record itself."""
R_INLINE = 3
"""The first inline neighbour."""
R_CLASS = 3
"""The slab's size class."""
R_HUB = 4
"""The hub's number, or NONE."""
INLINE = UNIT - R_INLINE

HUB_AT = 64
"""A longer list has its neighbours' positions in the hub table."""

CLASSES = 32
"""Size classes of the heap: class k is 2**k units."""

# Counters: one int64 each.
C_HEAP_TOP = 0
C_HUB_COUNT = 1
C_HUB_TOP = 2
C_HUB_FREE = 3
C_HUB_BUCKETS = 4
C_HUB_NUMBERS = 5
C_HUB_NUMBER_FREE = 6
C_EDGES = 7
C_NODES = 8
C_FREE = 16
"""The first of the heap's free lists, one a class."""
COUNTERS = C_FREE + CLASSES


class GraphArrays(NamedTuple):
    """The current triples, indexed both ways."""

    counters: NDArray[np.int64]
    block: NDArray[np.int32]
    """For each node: the heap unit of its list records, or NONE."""
    extent: NDArray[np.int32]
    """For each node: how many records, and the block's size class in the upper byte."""
    flags: NDArray[np.uint64]
    """For each node: which unary patterns it matches."""
    heap: NDArray[np.int32]
    hub_head: NDArray[np.int32]
    """Linear hashing: the first entry of each bucket."""
    hub_entry: NDArray[np.int32]
    """Four `id_t` an entry: hub, neighbour, position, next."""
    hub_number_next: NDArray[np.int32]
    """For each free hub number: the next free one."""


EXTENT_CLASS_SHIFT = 24
EXTENT_COUNT_MASK = (1 << EXTENT_CLASS_SHIFT) - 1
