"""Positions of neighbours in long lists: a hash table that grows by a bucket at a time (linear hashing, Litwin 1980).

Invariant: for each list with a hub number, each neighbour's entry holds its position in the list. A bucket is a cache
line, with a chain of further lines in the heap behind it; growing or shrinking by some entries splits or merges one
bucket, so no call takes longer than another.
"""

from __future__ import annotations

from deltastar.kernel.heap import allocate, release
from deltastar.kernel.jit import kernel
from deltastar.layout import (
    B_COUNT,
    B_FIRST,
    B_NEXT,
    BUCKET,
    BUCKET_CLASS,
    BUCKET_ENTRIES,
    C_HUB_BUCKETS,
    C_HUB_COUNT,
    C_HUB_FREE,
    C_HUB_MASK,
    C_HUBS,
    ENTRY_INTS,
    HUB_LOAD,
    UNIT,
)


@kernel
def bucket_of(counters, hub, neighbour):
    """The entry's bucket. Ids are dense and dealt out by us, so a cheap mix is good enough."""
    x = ((hub << 17) ^ neighbour) * 0x9E3779B1 & 0xFFFFFFFFFFFF
    x ^= x >> 19
    mask = counters[C_HUB_MASK]
    bucket = x & mask
    if bucket >= counters[C_HUB_BUCKETS]:
        bucket &= mask >> 1
    return bucket


@kernel
def position(counters, hubs, heap, hub, neighbour):
    """Where the neighbour stands in its list, or -1."""
    at = bucket_of(counters, hub, neighbour) * BUCKET
    for entry in range(at + B_FIRST, at + B_FIRST + hubs[at + B_COUNT] * ENTRY_INTS, ENTRY_INTS):
        if hubs[entry + 1] == neighbour and hubs[entry] == hub:
            return hubs[entry + 2]
    more = hubs[at + B_NEXT]
    while more != 0:
        at = more * UNIT
        for entry in range(at + B_FIRST, at + B_FIRST + heap[at + B_COUNT] * ENTRY_INTS, ENTRY_INTS):
            if heap[entry + 1] == neighbour and heap[entry] == hub:
                return heap[entry + 2]
        more = heap[at + B_NEXT]
    return -1


@kernel
def move(counters, hubs, heap, hub, neighbour, place):
    """Notes that a neighbour stands elsewhere now."""
    at = bucket_of(counters, hub, neighbour) * BUCKET
    for entry in range(at + B_FIRST, at + B_FIRST + hubs[at + B_COUNT] * ENTRY_INTS, ENTRY_INTS):
        if hubs[entry + 1] == neighbour and hubs[entry] == hub:
            hubs[entry + 2] = place
            return
    more = hubs[at + B_NEXT]
    while more != 0:
        at = more * UNIT
        for entry in range(at + B_FIRST, at + B_FIRST + heap[at + B_COUNT] * ENTRY_INTS, ENTRY_INTS):
            if heap[entry + 1] == neighbour and heap[entry] == hub:
                heap[entry + 2] = place
                return
        more = heap[at + B_NEXT]


@kernel
def add(counters, hubs, heap, hub, neighbour, place):
    """Adds an entry, and splits a bucket where there are too many."""
    if counters[C_HUB_COUNT] >= counters[C_HUB_BUCKETS] * HUB_LOAD:
        _grow(counters, hubs, heap)
    counters[C_HUB_COUNT] += 1
    _put(counters, hubs, heap, bucket_of(counters, hub, neighbour), hub, neighbour, place)


@kernel
def remove(counters, hubs, heap, hub, neighbour):
    """Takes an entry out: the chain's last one takes its place. Merges a bucket where there are too few."""
    line = bucket_of(counters, hub, neighbour) * BUCKET
    counters[C_HUB_COUNT] -= 1
    more = hubs[line + B_NEXT]
    if more == 0:
        last = line + B_FIRST + (hubs[line + B_COUNT] - 1) * ENTRY_INTS
        entry = line + B_FIRST
        while not (hubs[entry + 1] == neighbour and hubs[entry] == hub):
            entry += ENTRY_INTS
        for field in range(ENTRY_INTS):
            hubs[entry + field] = hubs[last + field]
        hubs[line + B_COUNT] -= 1
    else:  # the first line of the chain behind it gives one up
        chained = more * UNIT
        last = chained + B_FIRST + (heap[chained + B_COUNT] - 1) * ENTRY_INTS
        entry = _entry_in_line(hubs, line, hub, neighbour)
        if entry >= 0:
            for field in range(ENTRY_INTS):
                hubs[entry + field] = heap[last + field]
        else:
            at = chained
            entry = _entry_in_line(heap, at, hub, neighbour)
            while entry < 0:
                at = heap[at + B_NEXT] * UNIT
                entry = _entry_in_line(heap, at, hub, neighbour)
            for field in range(ENTRY_INTS):
                heap[entry + field] = heap[last + field]
        heap[chained + B_COUNT] -= 1
        if heap[chained + B_COUNT] == 0:
            hubs[line + B_NEXT] = heap[chained + B_NEXT]
            release(counters, heap, more, BUCKET_CLASS)
    if counters[C_HUB_COUNT] * 2 < counters[C_HUB_BUCKETS] * HUB_LOAD:
        _shrink(counters, hubs, heap)


@kernel
def number(counters, heap):
    """A number for a list that becomes long: none that is in use."""
    free = counters[C_HUB_FREE]
    if free != 0:
        hub = heap[free * UNIT]
        counters[C_HUB_FREE] = heap[free * UNIT + 1]
        release(counters, heap, free, 0)
        return hub
    counters[C_HUBS] += 1
    return counters[C_HUBS]


@kernel
def give_back(counters, heap, hub):
    """The list is long no more: its number is free."""
    unit = allocate(counters, heap, 0)
    heap[unit * UNIT] = hub
    heap[unit * UNIT + 1] = counters[C_HUB_FREE]
    counters[C_HUB_FREE] = unit


@kernel
def _entry_in_line(lines, at, hub, neighbour):
    for entry in range(at + B_FIRST, at + B_FIRST + lines[at + B_COUNT] * ENTRY_INTS, ENTRY_INTS):
        if lines[entry + 1] == neighbour and lines[entry] == hub:
            return entry
    return -1


@kernel
def _put(counters, hubs, heap, bucket, hub, neighbour, place):
    """Into the bucket's line, or the first line of the chain behind it, before which a new one goes when it is full."""
    at = bucket * BUCKET
    count = hubs[at + B_COUNT]
    if count < BUCKET_ENTRIES:
        entry = at + B_FIRST + count * ENTRY_INTS
        hubs[entry], hubs[entry + 1], hubs[entry + 2] = hub, neighbour, place
        hubs[at + B_COUNT] = count + 1
        return
    more = hubs[at + B_NEXT]
    if more == 0 or heap[more * UNIT + B_COUNT] == BUCKET_ENTRIES:
        fresh = allocate(counters, heap, BUCKET_CLASS)
        heap[fresh * UNIT + B_COUNT] = 0
        heap[fresh * UNIT + B_NEXT] = more
        hubs[at + B_NEXT] = fresh
        more = fresh
    line = more * UNIT
    entry = line + B_FIRST + heap[line + B_COUNT] * ENTRY_INTS
    heap[entry], heap[entry + 1], heap[entry + 2] = hub, neighbour, place
    heap[line + B_COUNT] += 1


@kernel
def _grow(counters, hubs, heap):
    """One more bucket: it takes its share of the bucket that stood for it so far."""
    buckets = counters[C_HUB_BUCKETS]
    counters[C_HUB_BUCKETS] = buckets + 1
    if buckets == 0:
        return
    if buckets > counters[C_HUB_MASK]:
        counters[C_HUB_MASK] = (counters[C_HUB_MASK] << 1) | 1
    _deal_out(counters, hubs, heap, buckets & (counters[C_HUB_MASK] >> 1))


@kernel
def _shrink(counters, hubs, heap):
    """One bucket less: its entries go back to the bucket that stood for it before."""
    last = counters[C_HUB_BUCKETS] - 1
    if last == 0:
        return
    counters[C_HUB_BUCKETS] = last
    if last <= counters[C_HUB_MASK] >> 1:
        counters[C_HUB_MASK] >>= 1
    _deal_out(counters, hubs, heap, last)


@kernel
def _deal_out(counters, hubs, heap, bucket):
    """Puts each entry of a bucket where it belongs now."""
    at = bucket * BUCKET
    entries, more = hubs[at + B_COUNT], hubs[at + B_NEXT]
    hubs[at + B_COUNT] = 0
    hubs[at + B_NEXT] = 0
    for index in range(entries):  # none goes behind the place it is read from
        entry = at + B_FIRST + index * ENTRY_INTS
        hub, neighbour, place = hubs[entry], hubs[entry + 1], hubs[entry + 2]
        _put(counters, hubs, heap, bucket_of(counters, hub, neighbour), hub, neighbour, place)
    while more != 0:
        line = more * UNIT
        for index in range(heap[line + B_COUNT]):
            entry = line + B_FIRST + index * ENTRY_INTS
            hub, neighbour, place = heap[entry], heap[entry + 1], heap[entry + 2]
            _put(counters, hubs, heap, bucket_of(counters, hub, neighbour), hub, neighbour, place)
        after = heap[line + B_NEXT]
        release(counters, heap, more, BUCKET_CLASS)
        more = after
