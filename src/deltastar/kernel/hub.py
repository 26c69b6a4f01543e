"""Positions of neighbours in long lists: a hash table that grows by a bucket at a time (linear hashing, Litwin 1980).

Invariant: for each list with a hub number, each neighbour's entry holds its position in the slab. There is about one
bucket an entry; growing or shrinking by an entry splits or merges one bucket, so no call takes longer than another.
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.layout import C_HUB_BUCKETS, C_HUB_COUNT, C_HUB_FREE, C_HUB_TOP, NONE

_HUB, _NEIGHBOUR, _POSITION, _NEXT = 0, 1, 2, 3


@kernel
def _mix(hub, neighbour):
    x = (hub << 32) ^ neighbour
    x = (x ^ (x >> 31)) * 0x3F58476D1CE4E5B9
    x = (x ^ (x >> 29)) * 0x14D049BB133111EB
    return (x ^ (x >> 32)) & 0x7FFFFFFFFFFFFFFF


@kernel
def _bucket(hash_, buckets):
    """Linear hashing: by the next power of two, or the one below for buckets that are not there yet."""
    mask = 1
    while mask < buckets:
        mask <<= 1
    bucket = hash_ & (mask - 1)
    return bucket if bucket < buckets else bucket & ((mask >> 1) - 1)


@kernel
def find(g, hub, neighbour):
    """The entry's index, or NONE."""
    buckets = g.counters[C_HUB_BUCKETS]
    if buckets == 0:
        return NONE
    entry = g.hub_head[_bucket(_mix(hub, neighbour), buckets)]
    while entry != NONE:
        base = entry * 4
        if g.hub_entry[base + _NEIGHBOUR] == neighbour and g.hub_entry[base + _HUB] == hub:
            return entry
        entry = g.hub_entry[base + _NEXT]
    return NONE


@kernel
def position(g, hub, neighbour):
    """Where the neighbour stands in its list, or NONE."""
    entry = find(g, hub, neighbour)
    return NONE if entry == NONE else g.hub_entry[entry * 4 + _POSITION]


@kernel
def move(g, hub, neighbour, place):
    """Notes that a neighbour stands elsewhere now."""
    g.hub_entry[find(g, hub, neighbour) * 4 + _POSITION] = place


@kernel
def add(g, hub, neighbour, place):
    """Adds an entry, and splits a bucket."""
    entry = g.counters[C_HUB_FREE]
    if entry != NONE:
        g.counters[C_HUB_FREE] = g.hub_entry[entry * 4 + _NEXT]
    else:
        entry = g.counters[C_HUB_TOP]
        g.counters[C_HUB_TOP] = entry + 1
    g.counters[C_HUB_COUNT] += 1
    if g.counters[C_HUB_COUNT] > g.counters[C_HUB_BUCKETS]:
        _grow(g)
    base = entry * 4
    bucket = _bucket(_mix(hub, neighbour), g.counters[C_HUB_BUCKETS])
    g.hub_entry[base + _HUB] = hub
    g.hub_entry[base + _NEIGHBOUR] = neighbour
    g.hub_entry[base + _POSITION] = place
    g.hub_entry[base + _NEXT] = g.hub_head[bucket]
    g.hub_head[bucket] = entry


@kernel
def remove(g, hub, neighbour):
    """Takes an entry out, and merges a bucket."""
    bucket = _bucket(_mix(hub, neighbour), g.counters[C_HUB_BUCKETS])
    entry = g.hub_head[bucket]
    before = NONE
    while not (g.hub_entry[entry * 4 + _NEIGHBOUR] == neighbour and g.hub_entry[entry * 4 + _HUB] == hub):
        before = entry
        entry = g.hub_entry[entry * 4 + _NEXT]
    after = g.hub_entry[entry * 4 + _NEXT]
    if before == NONE:
        g.hub_head[bucket] = after
    else:
        g.hub_entry[before * 4 + _NEXT] = after
    g.hub_entry[entry * 4 + _NEXT] = g.counters[C_HUB_FREE]
    g.counters[C_HUB_FREE] = entry
    g.counters[C_HUB_COUNT] -= 1
    if g.counters[C_HUB_COUNT] * 2 < g.counters[C_HUB_BUCKETS]:
        _shrink(g)


@kernel
def _grow(g):
    """One more bucket: it takes its share of the bucket that stood for it so far."""
    buckets = g.counters[C_HUB_BUCKETS]
    g.counters[C_HUB_BUCKETS] = buckets + 1
    g.hub_head[buckets] = NONE
    if buckets == 0:
        return
    mask = 1
    while mask <= buckets:
        mask <<= 1
    old = buckets & ((mask >> 1) - 1)
    entry = g.hub_head[old]
    g.hub_head[old] = NONE
    while entry != NONE:
        base = entry * 4
        after = g.hub_entry[base + _NEXT]
        bucket = _bucket(_mix(g.hub_entry[base + _HUB], g.hub_entry[base + _NEIGHBOUR]), buckets + 1)
        g.hub_entry[base + _NEXT] = g.hub_head[bucket]
        g.hub_head[bucket] = entry
        entry = after


@kernel
def _shrink(g):
    """One bucket less: its entries go back to the bucket that stood for it before."""
    last = g.counters[C_HUB_BUCKETS] - 1
    g.counters[C_HUB_BUCKETS] = last
    entry = g.hub_head[last]
    while entry != NONE:
        base = entry * 4
        after = g.hub_entry[base + _NEXT]
        bucket = _bucket(_mix(g.hub_entry[base + _HUB], g.hub_entry[base + _NEIGHBOUR]), last)
        g.hub_entry[base + _NEXT] = g.hub_head[bucket]
        g.hub_head[bucket] = entry
        entry = after
