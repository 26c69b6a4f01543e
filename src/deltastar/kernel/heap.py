"""Blocks of the heap, in size classes of a power of two of units, with a free list a class.

Invariant: a unit belongs to one block at a time; a free block's first number is the next free block of its class. Unit
0 belongs to nobody, so that 0 means *none*.
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.layout import C_FREE, C_HEAP_IN_USE, C_HEAP_TOP, CLASSES, UNIT

_LOOK_UP = 6  # how many classes above are split for a block, before the heap grows


@kernel
def class_of(units):
    """The smallest class that holds so many units."""
    size_class = 0
    while 1 << size_class < units:
        size_class += 1
    return size_class


@kernel
def allocate(counters, heap, size_class):
    """A block of 2**size_class units: the unit where it begins."""
    counters[C_HEAP_IN_USE] += 1 << size_class
    free = counters[C_FREE + size_class]
    if free != 0:
        counters[C_FREE + size_class] = heap[free * UNIT]
        return free
    larger = size_class + 1
    most = min(size_class + _LOOK_UP, CLASSES - 1)
    while larger <= most and counters[C_FREE + larger] == 0:
        larger += 1
    if larger > most:
        top = max(counters[C_HEAP_TOP], 1)
        counters[C_HEAP_TOP] = top + (1 << size_class)
        return top
    block = counters[C_FREE + larger]
    counters[C_FREE + larger] = heap[block * UNIT]
    while larger > size_class:  # halved until it fits; the upper halves are free
        larger -= 1
        upper = block + (1 << larger)
        heap[upper * UNIT] = counters[C_FREE + larger]
        counters[C_FREE + larger] = upper
    return block


@kernel
def release(counters, heap, block, size_class):
    """Gives a block back."""
    counters[C_HEAP_IN_USE] -= 1 << size_class
    heap[block * UNIT] = counters[C_FREE + size_class]
    counters[C_FREE + size_class] = block
