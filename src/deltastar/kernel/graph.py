"""The current triples as neighbour lists: for each node a block of entries, one for each slot that it has.

A *slot* is a relation and a direction (`plan/program.py`): slot 2r leads from the first variable's value to the second
one's, slot 2r+1 back. An entry holds a single neighbour itself; up to `SMALL` are in a slab of the smallest size that
holds them; longer lists have a header, and their neighbours' positions are in the hub table. Invariant: a node's
entries are sorted by slot and none is empty.

All lists of a node lie together, so looking ahead at several patterns of a star touches one or two cache lines.
"""

from __future__ import annotations

from deltastar.kernel import hub
from deltastar.kernel.heap import allocate, class_of, release
from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.text import LANES, lane_of
from deltastar.layout import (
    E_PAYLOAD,
    L_CLASS,
    L_COUNT,
    L_HUB,
    L_PLACE,
    LONG,
    N_BLOCK,
    N_COUNT,
    NODE,
    SEGMENT,
    SEGMENT_INTS,
    SEGMENT_SHIFT,
    SEGMENTED,
    SIZE_MASK,
    SMALL,
    TAG_SHIFT,
    UNIT,
)


@kernel
def find_entry(nodes, heap, node, slot):
    """Where in the heap the entry of a node's slot is, or 0."""
    at = nodes[node * NODE + N_BLOCK] * UNIT
    low, high = 0, nodes[node * NODE + N_COUNT]
    while high - low > 8:
        middle = (low + high) >> 1
        if heap[at + middle * UNIT] >> TAG_SHIFT <= slot:
            low = middle
        else:
            high = middle
    for entry in range(at + low * UNIT, at + high * UNIT, UNIT):
        if heap[entry] >> TAG_SHIFT == slot:
            return entry
    return 0


@kernel
def size_of(heap, entry):
    """How many neighbours an entry has."""
    size = heap[entry] & SIZE_MASK
    return size if size != LONG else heap[heap[entry + E_PAYLOAD] * UNIT + L_COUNT]


@kernel
def neighbour_at(heap, entry, index):
    """A neighbour by its position."""
    size = heap[entry] & SIZE_MASK
    payload = heap[entry + E_PAYLOAD]
    if size == 1:
        return payload
    if size != LONG:
        return heap[payload * UNIT + index]
    return heap[_place(heap, payload * UNIT, index)]


@kernel
def run_from(heap, entry, index):
    """Where the neighbours from a position on lie, and how many lie there in one run."""
    size = heap[entry] & SIZE_MASK
    if size == 1:
        return entry + E_PAYLOAD, 1
    payload = heap[entry + E_PAYLOAD]
    if size != LONG:
        return payload * UNIT + index, size - index
    header = payload * UNIT
    count = heap[header + L_COUNT]
    if heap[header + L_CLASS] < SEGMENTED:
        return heap[header + L_PLACE] * UNIT + index, count - index
    behind = min(count, ((index >> SEGMENT_SHIFT) + 1) << SEGMENT_SHIFT)
    return _place(heap, header, index), behind - index


@kernel
def holds(counters, heap, hubs, entry, neighbour):
    """Whether an entry has this neighbour."""
    size = heap[entry] & SIZE_MASK
    payload = heap[entry + E_PAYLOAD]
    if size == 1:
        return payload == neighbour
    if size != LONG:
        return _place_of(heap, payload * UNIT, size, neighbour) >= 0
    return hub.position(counters, hubs, heap, heap[payload * UNIT + L_HUB], neighbour) >= 0


@inlined
def _place_of(heap, start, size, neighbour):
    """Where in a slab a neighbour is, or -1. What lies behind the slab is looked at, too, but not found."""
    index = 0
    while index < size:
        lane = lane_of(heap, start + index, neighbour)
        if lane < LANES:
            return start + index + lane if index + lane < size else -1
        index += LANES
    return -1


@kernel
def has_neighbour(counters, nodes, heap, hubs, node, slot, neighbour):
    """Whether a node has this neighbour."""
    entry = find_entry(nodes, heap, node, slot)
    return entry != 0 and holds(counters, heap, hubs, entry, neighbour)


@kernel
def add_neighbour(counters, nodes, heap, hubs, node, slot, neighbour):
    """Adds a neighbour that is not there."""
    add_to(counters, nodes, heap, hubs, node, slot, find_entry(nodes, heap, node, slot), neighbour)


@kernel
def add_to(counters, nodes, heap, hubs, node, slot, entry, neighbour):
    """The same for whoever has looked for the slot's entry."""
    if entry == 0:
        entry = _add_entry(counters, nodes, heap, node, slot)
        heap[entry] = slot << TAG_SHIFT | 1
        heap[entry + E_PAYLOAD] = neighbour
        return
    size = heap[entry] & SIZE_MASK
    payload = heap[entry + E_PAYLOAD]
    if size == LONG:
        _add_long(counters, heap, hubs, payload * UNIT, neighbour)
        return
    if size == 1:
        slab = allocate(counters, heap, 0)
        heap[slab * UNIT] = payload
        heap[entry + E_PAYLOAD] = slab
        payload = slab
    elif size & (size - 1) == 0:  # the slab is full
        slab = _copied(counters, heap, payload, class_of(size >> 1), class_of(size >> 1) + 1, size)
        heap[entry + E_PAYLOAD] = slab
        payload = slab
    heap[payload * UNIT + size] = neighbour
    if size < SMALL:
        heap[entry] += 1
    else:
        _to_long(counters, heap, hubs, entry, payload, size + 1)


@kernel
def remove_neighbour(counters, nodes, heap, hubs, node, slot, neighbour):
    """Removes a neighbour that is there: the last one takes its place."""
    entry = find_entry(nodes, heap, node, slot)
    size = heap[entry] & SIZE_MASK
    payload = heap[entry + E_PAYLOAD]
    if size == LONG:
        _remove_long(counters, heap, hubs, entry, payload * UNIT, neighbour)
        return
    if size == 1:
        _remove_entry(counters, nodes, heap, node, entry)
        return
    start = payload * UNIT
    last = start + size - 1
    place = _place_of(heap, start, size, neighbour)
    heap[place] = heap[last]
    heap[entry] -= 1
    if size == 2:
        heap[entry + E_PAYLOAD] = heap[start]
        release(counters, heap, payload, 0)
    elif (size - 1) & (size - 2) == 0:  # half of the slab is enough
        size_class = class_of(size >> 1)
        heap[entry + E_PAYLOAD] = _copied(counters, heap, payload, size_class + 1, size_class, size - 1)


@kernel
def drop_entry(counters, nodes, heap, hubs, node, slot):
    """Removes a node's list whole, if there is one."""
    entry = find_entry(nodes, heap, node, slot)
    while entry != 0:
        remove_neighbour(counters, nodes, heap, hubs, node, slot, neighbour_at(heap, entry, size_of(heap, entry) - 1))
        entry = find_entry(nodes, heap, node, slot)


# Entries of a node ---------------------------------------------------------------------------------------------------


@kernel
def _add_entry(counters, nodes, heap, node, slot):
    """A place for a new entry, in the order of slots. The block is the smallest that holds them."""
    count = nodes[node * NODE + N_COUNT]
    block = nodes[node * NODE + N_BLOCK]
    if count == 0:
        block = allocate(counters, heap, 0)
        nodes[node * NODE + N_BLOCK] = block
    elif count & (count - 1) == 0:
        size_class = class_of(count)
        block = _copied(counters, heap, block, size_class, size_class + 1, count * UNIT)
        nodes[node * NODE + N_BLOCK] = block
    start = block * UNIT
    entry = start + count * UNIT
    while entry > start and heap[entry - UNIT] >> TAG_SHIFT > slot:
        heap[entry] = heap[entry - UNIT]
        heap[entry + 1] = heap[entry - UNIT + 1]
        entry -= UNIT
    nodes[node * NODE + N_COUNT] = count + 1
    return entry


@kernel
def _remove_entry(counters, nodes, heap, node, entry):
    count = nodes[node * NODE + N_COUNT] - 1
    block = nodes[node * NODE + N_BLOCK]
    for at in range(entry, (block + count) * UNIT):
        heap[at] = heap[at + UNIT]
    nodes[node * NODE + N_COUNT] = count
    if count == 0:
        release(counters, heap, block, 0)
        nodes[node * NODE + N_BLOCK] = 0
    elif count & (count - 1) == 0:
        size_class = class_of(count)
        nodes[node * NODE + N_BLOCK] = _copied(counters, heap, block, size_class + 1, size_class, count * UNIT)


@kernel
def _copied(counters, heap, block, old_class, new_class, ints):
    """Moves the first numbers of a block to one of another size."""
    fresh = allocate(counters, heap, new_class)
    shift = (fresh - block) * UNIT
    for at in range(block * UNIT, block * UNIT + ints):
        heap[at + shift] = heap[at]
    release(counters, heap, block, old_class)
    return fresh


# Long lists ----------------------------------------------------------------------------------------------------------


@kernel
def _place(heap, header, index):
    """Where in the heap a long list's neighbour is."""
    place = heap[header + L_PLACE] * UNIT
    if heap[header + L_CLASS] < SEGMENTED:
        return place + index
    return heap[place + (index >> SEGMENT_SHIFT)] * UNIT + (index & (SEGMENT_INTS - 1))


@kernel
def _to_long(counters, heap, hubs, entry, slab, count):
    header = allocate(counters, heap, 1)
    number = hub.number(counters, heap)
    start = header * UNIT
    heap[start + L_COUNT] = count
    heap[start + L_PLACE] = slab
    heap[start + L_CLASS] = class_of((count + 1) >> 1)
    heap[start + L_HUB] = number
    heap[entry] = heap[entry] | LONG
    heap[entry + E_PAYLOAD] = header
    for index in range(count):
        hub.add(counters, hubs, heap, number, heap[slab * UNIT + index], index)


@kernel
def _to_small(counters, heap, hubs, entry, header, count):
    slab, number = heap[header + L_PLACE], heap[header + L_HUB]
    for index in range(count):
        hub.remove(counters, hubs, heap, number, heap[slab * UNIT + index])
    hub.give_back(counters, heap, number)
    small_class = class_of(count >> 1)
    if small_class < heap[header + L_CLASS]:
        slab = _copied(counters, heap, slab, heap[header + L_CLASS], small_class, count)
    release(counters, heap, header // UNIT, 1)
    heap[entry] = (heap[entry] & ~SIZE_MASK) | count
    heap[entry + E_PAYLOAD] = slab


@kernel
def _add_long(counters, heap, hubs, header, neighbour):
    count = heap[header + L_COUNT]
    size_class = heap[header + L_CLASS]
    if size_class < SEGMENTED:
        if count == UNIT << size_class:
            if size_class < SEGMENT:
                place = _copied(counters, heap, heap[header + L_PLACE], size_class, size_class + 1, count)
                heap[header + L_PLACE] = place
                heap[header + L_CLASS] = size_class + 1
            else:
                directory = allocate(counters, heap, 0)
                heap[directory * UNIT] = heap[header + L_PLACE]
                heap[directory * UNIT + 1] = allocate(counters, heap, SEGMENT)
                heap[header + L_PLACE] = directory
                heap[header + L_CLASS] = SEGMENTED
    elif count & (SEGMENT_INTS - 1) == 0:
        _add_segment(counters, heap, header, count >> SEGMENT_SHIFT)
    heap[_place(heap, header, count)] = neighbour
    heap[header + L_COUNT] = count + 1
    hub.add(counters, hubs, heap, heap[header + L_HUB], neighbour, count)


@kernel
def _add_segment(counters, heap, header, segments):
    """One more segment; the directory is the smallest that holds them, of two at least."""
    directory = heap[header + L_PLACE]
    if segments >= UNIT and segments & (segments - 1) == 0:
        size_class = class_of(segments >> 1)
        directory = _copied(counters, heap, directory, size_class, size_class + 1, segments)
        heap[header + L_PLACE] = directory
    heap[directory * UNIT + segments] = allocate(counters, heap, SEGMENT)


@kernel
def _remove_long(counters, heap, hubs, entry, header, neighbour):
    number = heap[header + L_HUB]
    count = heap[header + L_COUNT] - 1
    place = hub.position(counters, hubs, heap, number, neighbour)
    last_at = _place(heap, header, count)
    last = heap[last_at]
    hub.remove(counters, hubs, heap, number, neighbour)
    if place != count:
        heap[_place(heap, header, place)] = last
        hub.move(counters, hubs, heap, number, last, place)
    heap[header + L_COUNT] = count
    size_class = heap[header + L_CLASS]
    if size_class >= SEGMENTED:
        if count & (SEGMENT_INTS - 1) == 0:
            _remove_segment(counters, heap, header, count >> SEGMENT_SHIFT)
    elif count == SMALL >> 1:
        _to_small(counters, heap, hubs, entry, header, count)
    elif size_class > 3 and count == (UNIT << size_class) >> 2:
        heap[header + L_PLACE] = _copied(counters, heap, heap[header + L_PLACE], size_class, size_class - 1, count)
        heap[header + L_CLASS] = size_class - 1


@kernel
def _remove_segment(counters, heap, header, segments):
    """The last segment is empty: it goes. The directory halves; of one segment there is none."""
    directory = heap[header + L_PLACE]
    release(counters, heap, heap[directory * UNIT + segments], SEGMENT)
    if segments == 1:
        heap[header + L_PLACE] = heap[directory * UNIT]
        heap[header + L_CLASS] = SEGMENT
        release(counters, heap, directory, 0)
    elif segments & (segments - 1) == 0:
        size_class = class_of(segments >> 1)
        heap[header + L_PLACE] = _copied(counters, heap, directory, size_class + 1, size_class, segments)
