"""Triples that match a pattern of three variables: nodes of their own, found by their three ids.

Linear hashing over chains, as in `terms.py`. Invariant: an edge is in its bucket's chain exactly while it is in use.
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.layout import (
    C_EDGE_BUCKETS,
    C_EDGE_COUNT,
    C_EDGE_FREE,
    C_EDGE_MASK,
    C_EDGE_TOP,
    EDGE,
    EDGE_NEXT,
    EDGE_O,
    EDGE_P,
    EDGE_S,
    FIRST_EDGE,
)


@kernel
def _bucket_of(counters, s, p, o):
    x = (s * 0x85EBCA6B ^ p * 0xC2B2AE35 ^ o * 0x27D4EB2F) & 0x7FFFFFFFFFFF
    x ^= x >> 17
    bucket = x & counters[C_EDGE_MASK]
    return bucket if bucket < counters[C_EDGE_BUCKETS] else bucket & (counters[C_EDGE_MASK] >> 1)


@kernel
def find_edge(counters, edges, edge_heads, s, p, o):
    """The triple's node, or 0."""
    edge = edge_heads[_bucket_of(counters, s, p, o)]
    while edge != 0:
        at = edge * EDGE
        if edges[at + EDGE_S] == s and edges[at + EDGE_P] == p and edges[at + EDGE_O] == o:
            return edge + FIRST_EDGE
        edge = edges[at + EDGE_NEXT]
    return 0


@kernel
def add_edge(counters, edges, edge_heads, s, p, o):
    """A node for a triple that has none."""
    if counters[C_EDGE_COUNT] >= counters[C_EDGE_BUCKETS]:
        _grow(counters, edges, edge_heads)
    counters[C_EDGE_COUNT] += 1
    edge = counters[C_EDGE_FREE]
    if edge != 0:
        counters[C_EDGE_FREE] = edges[edge * EDGE + EDGE_NEXT]
    else:
        counters[C_EDGE_TOP] += 1
        edge = counters[C_EDGE_TOP]
    at = edge * EDGE
    bucket = _bucket_of(counters, s, p, o)
    edges[at + EDGE_S] = s
    edges[at + EDGE_P] = p
    edges[at + EDGE_O] = o
    edges[at + EDGE_NEXT] = edge_heads[bucket]
    edge_heads[bucket] = edge
    return edge + FIRST_EDGE


@kernel
def remove_edge(counters, edges, edge_heads, node):
    """Lets go of a triple's node."""
    edge = node - FIRST_EDGE
    at = edge * EDGE
    bucket = _bucket_of(counters, int(edges[at + EDGE_S]), int(edges[at + EDGE_P]), int(edges[at + EDGE_O]))
    other = edge_heads[bucket]
    if other == edge:
        edge_heads[bucket] = edges[at + EDGE_NEXT]
    else:
        while edges[other * EDGE + EDGE_NEXT] != edge:
            other = edges[other * EDGE + EDGE_NEXT]
        edges[other * EDGE + EDGE_NEXT] = edges[at + EDGE_NEXT]
    edges[at + EDGE_S] = 0
    edges[at + EDGE_NEXT] = counters[C_EDGE_FREE]
    counters[C_EDGE_FREE] = edge
    counters[C_EDGE_COUNT] -= 1
    if counters[C_EDGE_COUNT] * 2 < counters[C_EDGE_BUCKETS]:
        _shrink(counters, edges, edge_heads)


@kernel
def _grow(counters, edges, edge_heads):
    """One more bucket: it takes its share of the bucket that stood for it so far."""
    buckets = counters[C_EDGE_BUCKETS]
    counters[C_EDGE_BUCKETS] = buckets + 1
    if buckets > counters[C_EDGE_MASK]:
        counters[C_EDGE_MASK] = (counters[C_EDGE_MASK] << 1) | 1
    if buckets > 0:
        _deal_out(counters, edges, edge_heads, buckets & (counters[C_EDGE_MASK] >> 1))


@kernel
def _shrink(counters, edges, edge_heads):
    """One bucket less: its edges go back to the bucket that stood for it before."""
    last = counters[C_EDGE_BUCKETS] - 1
    if last == 0:
        return
    counters[C_EDGE_BUCKETS] = last
    if last <= counters[C_EDGE_MASK] >> 1:
        counters[C_EDGE_MASK] >>= 1
    _deal_out(counters, edges, edge_heads, last)


@kernel
def _deal_out(counters, edges, edge_heads, bucket):
    edge = edge_heads[bucket]
    edge_heads[bucket] = 0
    while edge != 0:
        at = edge * EDGE
        after = edges[at + EDGE_NEXT]
        fresh = _bucket_of(counters, int(edges[at + EDGE_S]), int(edges[at + EDGE_P]), int(edges[at + EDGE_O]))
        edges[at + EDGE_NEXT] = edge_heads[fresh]
        edge_heads[fresh] = edge
        edge = after
