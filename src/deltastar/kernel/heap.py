"""Blocks of the heap, in size classes of a power of two of units, with a free list a class.

Invariant: a unit belongs to one block at a time; a free block's first number is the next free block of its class.
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.layout import C_FREE, C_HEAP_TOP, CLASSES, NONE, UNIT


@kernel
def allocate(g, size_class):
    """A block of 2**size_class units: the unit where it begins."""
    free = g.counters[C_FREE + size_class]
    if free != NONE:
        g.counters[C_FREE + size_class] = g.heap[free * UNIT]
        return free
    larger = size_class + 1
    while larger < CLASSES and larger <= size_class + 4 and g.counters[C_FREE + larger] == NONE:
        larger += 1
    if larger <= size_class + 4 and larger < CLASSES:
        return _split(g, larger, size_class)
    top = g.counters[C_HEAP_TOP]
    g.counters[C_HEAP_TOP] = top + (1 << size_class)
    return top


@kernel
def _split(g, larger, size_class):
    """Halves a free block until it fits; the upper halves are free."""
    block = g.counters[C_FREE + larger]
    g.counters[C_FREE + larger] = g.heap[block * UNIT]
    while larger > size_class:
        larger -= 1
        upper = block + (1 << larger)
        g.heap[upper * UNIT] = g.counters[C_FREE + larger]
        g.counters[C_FREE + larger] = upper
    return block


@kernel
def release(g, block, size_class):
    """Gives a block back."""
    g.heap[block * UNIT] = g.counters[C_FREE + size_class]
    g.counters[C_FREE + size_class] = block


@kernel
def copy_units(g, source, target, units):
    """Copies units from block to block."""
    start, end, shift = source * UNIT, (source + units) * UNIT, (target - source) * UNIT
    for index in range(start, end):
        g.heap[index + shift] = g.heap[index]
