"""Stores of views: for each view the rows that it has, each with its multiplicity.

A row is a block of the heap, in a chain of one hash table for all views (linear hashing), and in the list of its view.
Invariant: a row is there exactly while its multiplicity is not zero.
"""

from __future__ import annotations

from deltastar.kernel.heap import allocate, class_of, release
from deltastar.kernel.jit import kernel
from deltastar.layout import (
    C_ROW_BUCKETS,
    C_ROW_COUNT,
    C_ROW_MASK,
    ROW_AFTER,
    ROW_BEFORE,
    ROW_COUNT,
    ROW_NEXT,
    ROW_VALUES,
    ROW_VIEW,
    UNIT,
    VIEW_FIRST,
    VIEW_SIZE,
    VIEW_STATE,
    VIEW_WIDTH,
)


@kernel
def count(counters, heap, row_heads, view_state, view, width, key, change):
    """Changes a row's multiplicity by 1 or -1. Gives the row's unit when it is the first one or was the last, else 0.

    A row whose last one is gone stays until `drop`, so that products can still be made with it.
    """
    hashed = _hash(view, width, key, 0)
    row = row_heads[_bucket_of(counters, hashed)]
    while row != 0 and not _is(heap, row * UNIT, view, width, key):
        row = heap[row * UNIT + ROW_NEXT]
    if row == 0:
        return _add(counters, heap, row_heads, view_state, view, width, key, hashed)
    heap[row * UNIT + ROW_COUNT] += change
    return row if heap[row * UNIT + ROW_COUNT] == 0 else 0


@kernel
def drop(counters, heap, row_heads, view_state, view, width, row):
    """Lets go of a row."""
    _remove(counters, heap, row_heads, view_state, view, width, _hash(view, width, heap, row * UNIT + ROW_VALUES), row)


@kernel
def _hash(view, width, key, at):
    x = view * 0x9E3779B1
    for column in range(width):
        x = ((x ^ key[at + column]) * 0x85EBCA6B) & 0x7FFFFFFFFFFF
        x ^= x >> 21
    return x


@kernel
def _bucket_of(counters, hashed):
    bucket = hashed & counters[C_ROW_MASK]
    return bucket if bucket < counters[C_ROW_BUCKETS] else bucket & (counters[C_ROW_MASK] >> 1)


@kernel
def _is(heap, at, view, width, key):
    if heap[at + ROW_VIEW] != view:
        return False
    for column in range(width):
        if heap[at + ROW_VALUES + column] != key[column]:
            return False
    return True


@kernel
def _class(width):
    return class_of((ROW_VALUES + width + UNIT - 1) // UNIT)


@kernel
def _add(counters, heap, row_heads, view_state, view, width, key, hashed):
    if counters[C_ROW_COUNT] >= counters[C_ROW_BUCKETS]:
        _grow(counters, heap, row_heads, view_state)
    counters[C_ROW_COUNT] += 1
    row = allocate(counters, heap, _class(width))
    at = row * UNIT
    bucket = _bucket_of(counters, hashed)
    first = view_state[view * VIEW_STATE + VIEW_FIRST]
    heap[at + ROW_NEXT] = row_heads[bucket]
    heap[at + ROW_COUNT] = 1
    heap[at + ROW_BEFORE] = 0
    heap[at + ROW_AFTER] = first
    heap[at + ROW_VIEW] = view
    for column in range(width):
        heap[at + ROW_VALUES + column] = key[column]
    row_heads[bucket] = row
    if first != 0:
        heap[first * UNIT + ROW_BEFORE] = row
    view_state[view * VIEW_STATE + VIEW_FIRST] = row
    view_state[view * VIEW_STATE + VIEW_SIZE] += 1
    return row


@kernel
def _remove(counters, heap, row_heads, view_state, view, width, hashed, row):
    at = row * UNIT
    bucket = _bucket_of(counters, hashed)
    other = row_heads[bucket]
    if other == row:
        row_heads[bucket] = heap[at + ROW_NEXT]
    else:
        while heap[other * UNIT + ROW_NEXT] != row:
            other = heap[other * UNIT + ROW_NEXT]
        heap[other * UNIT + ROW_NEXT] = heap[at + ROW_NEXT]
    before, after = heap[at + ROW_BEFORE], heap[at + ROW_AFTER]
    if before != 0:
        heap[before * UNIT + ROW_AFTER] = after
    else:
        view_state[view * VIEW_STATE + VIEW_FIRST] = after
    if after != 0:
        heap[after * UNIT + ROW_BEFORE] = before
    view_state[view * VIEW_STATE + VIEW_SIZE] -= 1
    release(counters, heap, row, _class(width))
    counters[C_ROW_COUNT] -= 1
    if counters[C_ROW_COUNT] * 2 < counters[C_ROW_BUCKETS]:
        _shrink(counters, heap, row_heads, view_state)


@kernel
def clear_view(counters, heap, row_heads, view_state, view, width):
    """Lets go of all rows of a view."""
    row = view_state[view * VIEW_STATE + VIEW_FIRST]
    while row != 0:
        drop(counters, heap, row_heads, view_state, view, width, row)
        row = view_state[view * VIEW_STATE + VIEW_FIRST]


@kernel
def _grow(counters, heap, row_heads, view_state):
    """One more bucket: it takes its share of the bucket that stood for it so far."""
    buckets = counters[C_ROW_BUCKETS]
    counters[C_ROW_BUCKETS] = buckets + 1
    if buckets > counters[C_ROW_MASK]:
        counters[C_ROW_MASK] = (counters[C_ROW_MASK] << 1) | 1
    if buckets > 0:
        _deal_out(counters, heap, row_heads, view_state, buckets & (counters[C_ROW_MASK] >> 1))


@kernel
def _shrink(counters, heap, row_heads, view_state):
    """One bucket less: its rows go back to the bucket that stood for it before."""
    last = counters[C_ROW_BUCKETS] - 1
    if last == 0:
        return
    counters[C_ROW_BUCKETS] = last
    if last <= counters[C_ROW_MASK] >> 1:
        counters[C_ROW_MASK] >>= 1
    _deal_out(counters, heap, row_heads, view_state, last)


@kernel
def _deal_out(counters, heap, row_heads, view_state, bucket):
    row = row_heads[bucket]
    row_heads[bucket] = 0
    while row != 0:
        at = row * UNIT
        after = heap[at + ROW_NEXT]
        view = heap[at + ROW_VIEW]
        width = view_state[view * VIEW_STATE + VIEW_WIDTH]
        fresh = _bucket_of(counters, _hash(view, width, heap, at + ROW_VALUES))
        heap[at + ROW_NEXT] = row_heads[fresh]
        row_heads[fresh] = row
        row = after
