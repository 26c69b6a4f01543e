"""The current triples, indexed both ways: for each node, a block of list records, one for each slot that it has.

A *slot* is a predicate and a direction: slot 2k leads from subjects to objects, slot 2k+1 back. A record holds up to
five neighbours itself; more are in a slab; a list of more than `HUB_AT` has its positions in the hub table. Invariant:
a node's records are sorted by slot and none is empty; a node without records has no block.

All lists of a node lie together, so looking ahead at several patterns of a star touches one or two cache lines.
"""

from __future__ import annotations

from deltastar.kernel import hub
from deltastar.kernel.heap import allocate, copy_units, release
from deltastar.kernel.jit import kernel
from deltastar.layout import (
    C_HUB_NUMBER_FREE,
    C_HUB_NUMBERS,
    EXTENT_CLASS_SHIFT,
    EXTENT_COUNT_MASK,
    HUB_AT,
    INLINE,
    NONE,
    R_CLASS,
    R_COUNT,
    R_HUB,
    R_INLINE,
    R_SLAB,
    R_SLOT,
    UNIT,
)


@kernel
def find_record(g, node, slot):
    """Where in the heap the record of a node's slot begins, or NONE."""
    block = g.block[node]
    if block == NONE:
        return NONE
    records = g.extent[node] & EXTENT_COUNT_MASK
    start = block * UNIT
    if records > 8:
        low, high = 0, records
        while low < high:
            middle = (low + high) >> 1
            if g.heap[start + middle * UNIT + R_SLOT] < slot:
                low = middle + 1
            else:
                high = middle
        at = start + low * UNIT
        return at if low < records and g.heap[at + R_SLOT] == slot else NONE
    for index in range(records):
        at = start + index * UNIT
        if g.heap[at + R_SLOT] == slot:
            return at
    return NONE


@kernel
def neighbours_at(g, record):
    """Where in the heap a record's neighbours begin."""
    slab = g.heap[record + R_SLAB]
    return record + R_INLINE if slab == NONE else slab * UNIT


@kernel
def place_of(g, record, neighbour):
    """The neighbour's position in the list, or NONE."""
    count = g.heap[record + R_COUNT]
    slab = g.heap[record + R_SLAB]
    if slab != NONE and g.heap[record + R_HUB] != NONE:
        return hub.position(g, g.heap[record + R_HUB], neighbour)
    start = record + R_INLINE if slab == NONE else slab * UNIT
    for index in range(count):
        if g.heap[start + index] == neighbour:
            return index
    return NONE


@kernel
def has_edge(g, subject, slot, object):
    """Whether the triple is there: by the shorter of its two lists."""
    out = find_record(g, subject, slot)
    if out == NONE:
        return False
    if g.heap[out + R_COUNT] <= UNIT:
        return place_of(g, out, object) != NONE
    back = find_record(g, object, slot ^ 1)
    if back == NONE:
        return False
    if g.heap[out + R_COUNT] <= g.heap[back + R_COUNT]:
        return place_of(g, out, object) != NONE
    return place_of(g, back, subject) != NONE


@kernel
def add_edge(g, subject, slot, object):
    """Adds a triple that is not there."""
    _add_neighbour(g, subject, slot, object)
    _add_neighbour(g, object, slot ^ 1, subject)


@kernel
def remove_edge(g, subject, slot, object):
    """Removes a triple that is there."""
    _remove_neighbour(g, subject, slot, object)
    _remove_neighbour(g, object, slot ^ 1, subject)


@kernel
def _add_neighbour(g, node, slot, neighbour):
    record = find_record(g, node, slot)
    if record == NONE:
        record = _add_record(g, node, slot)
    count = g.heap[record + R_COUNT]
    slab = g.heap[record + R_SLAB]
    if slab == NONE:
        if count < INLINE:
            g.heap[record + R_INLINE + count] = neighbour
            g.heap[record + R_COUNT] = count + 1
            return
        slab = _to_slab(g, record, count)
    elif count == UNIT << g.heap[record + R_CLASS]:
        slab = _resize_slab(g, record, count, g.heap[record + R_CLASS] + 1)
    g.heap[slab * UNIT + count] = neighbour
    g.heap[record + R_COUNT] = count + 1
    if g.heap[record + R_HUB] != NONE:
        hub.add(g, g.heap[record + R_HUB], neighbour, count)
    elif count + 1 > HUB_AT:
        _to_hub(g, record)


@kernel
def _remove_neighbour(g, node, slot, neighbour):
    """The last neighbour takes the place of the one that goes."""
    record = find_record(g, node, slot)
    count = g.heap[record + R_COUNT]
    place = place_of(g, record, neighbour)
    start = neighbours_at(g, record)
    last = g.heap[start + count - 1]
    g.heap[start + place] = last
    g.heap[record + R_COUNT] = count - 1
    if count == 1:
        _remove_record(g, node, record)
        return
    if g.heap[record + R_SLAB] == NONE:
        return
    number = g.heap[record + R_HUB]
    if number != NONE:
        hub.remove(g, number, neighbour)
        if last != neighbour:
            hub.move(g, number, last, place)
        if count - 1 <= HUB_AT >> 1:
            _from_hub(g, record, count - 1)
    size_class = g.heap[record + R_CLASS]
    if count - 1 <= INLINE - 1:
        _to_inline(g, record, count - 1)
    elif size_class > 0 and count - 1 <= (UNIT << size_class) >> 2:
        _resize_slab(g, record, count - 1, size_class - 1)


@kernel
def _add_record(g, node, slot):
    """A new record in the node's block, at its place in the order of slots."""
    block, extent = g.block[node], g.extent[node]
    records, size_class = extent & EXTENT_COUNT_MASK, extent >> EXTENT_CLASS_SHIFT
    if block == NONE:
        size_class = 0
        block = allocate(g, 0)
        g.block[node] = block
    elif records == 1 << size_class:
        larger = allocate(g, size_class + 1)
        copy_units(g, block, larger, records)
        release(g, block, size_class)
        block, size_class = larger, size_class + 1
        g.block[node] = block
    place = records
    start = block * UNIT
    while place > 0 and g.heap[start + (place - 1) * UNIT + R_SLOT] > slot:
        place -= 1
    for index in range(records * UNIT - 1, place * UNIT - 1, -1):
        g.heap[start + index + UNIT] = g.heap[start + index]
    record = start + place * UNIT
    g.heap[record + R_SLOT] = slot
    g.heap[record + R_COUNT] = 0
    g.heap[record + R_SLAB] = NONE
    g.extent[node] = (size_class << EXTENT_CLASS_SHIFT) | (records + 1)
    return record


@kernel
def _remove_record(g, node, record):
    """Takes out an empty record; the block goes, or halves, when it has become too large."""
    if g.heap[record + R_SLAB] != NONE:
        release(g, g.heap[record + R_SLAB], g.heap[record + R_CLASS])
    block, extent = g.block[node], g.extent[node]
    records, size_class = (extent & EXTENT_COUNT_MASK) - 1, extent >> EXTENT_CLASS_SHIFT
    start = block * UNIT
    for index in range(record, start + records * UNIT):
        g.heap[index] = g.heap[index + UNIT]
    if records == 0:
        release(g, block, size_class)
        g.block[node] = NONE
        g.extent[node] = 0
        return
    if size_class > 0 and records <= (1 << size_class) >> 2:
        smaller = allocate(g, size_class - 1)
        copy_units(g, block, smaller, records)
        release(g, block, size_class)
        g.block[node] = smaller
        size_class -= 1
    g.extent[node] = (size_class << EXTENT_CLASS_SHIFT) | records


@kernel
def _to_slab(g, record, count):
    """From the record to a slab."""
    slab = allocate(g, 0)
    for index in range(count):
        g.heap[slab * UNIT + index] = g.heap[record + R_INLINE + index]
    g.heap[record + R_SLAB] = slab
    g.heap[record + R_CLASS] = 0
    g.heap[record + R_HUB] = NONE
    return slab


@kernel
def _to_inline(g, record, count):
    """From a slab back to the record."""
    slab, size_class = g.heap[record + R_SLAB], g.heap[record + R_CLASS]
    for index in range(count):
        g.heap[record + R_INLINE + index] = g.heap[slab * UNIT + index]
    g.heap[record + R_SLAB] = NONE
    release(g, slab, size_class)


@kernel
def _resize_slab(g, record, count, size_class):
    """Moves the neighbours to a slab of another size."""
    old = g.heap[record + R_SLAB]
    slab = allocate(g, size_class)
    for index in range(count):
        g.heap[slab * UNIT + index] = g.heap[old * UNIT + index]
    release(g, old, g.heap[record + R_CLASS])
    g.heap[record + R_SLAB] = slab
    g.heap[record + R_CLASS] = size_class
    return slab


@kernel
def _to_hub(g, record):
    """Gives a list a hub number, and its neighbours entries."""
    number = g.counters[C_HUB_NUMBER_FREE]
    if number != NONE:
        g.counters[C_HUB_NUMBER_FREE] = g.hub_number_next[number]
    else:
        number = g.counters[C_HUB_NUMBERS]
        g.counters[C_HUB_NUMBERS] = number + 1
    g.heap[record + R_HUB] = number
    start = g.heap[record + R_SLAB] * UNIT
    for index in range(g.heap[record + R_COUNT]):
        hub.add(g, number, g.heap[start + index], index)


@kernel
def _from_hub(g, record, count):
    """Takes a list's entries and its hub number back."""
    number = g.heap[record + R_HUB]
    start = g.heap[record + R_SLAB] * UNIT
    for index in range(count):
        hub.remove(g, number, g.heap[start + index])
    g.hub_number_next[number] = g.counters[C_HUB_NUMBER_FREE]
    g.counters[C_HUB_NUMBER_FREE] = number
    g.heap[record + R_HUB] = NONE
