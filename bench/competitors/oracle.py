"""What the deltas must come to: the answers before and after a stream, joined naively from whole graphs.

They are kept as counts and digests. A digest is the sum of hashes of rows, modulo 2^64: it does not depend on their
order, and the deltas of a stream, added with their signs to the digest of the first answers, must give that of the
last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from competitors.workload import Pattern, Query, Workload, connected_first, is_variable, messages, triples

MODULUS = 1 << 64
Triple = tuple[str, str, str]


class Answers(NamedTuple):
    count: int
    digest: int


class Deltas(NamedTuple):
    """`digest` tells signs apart; `net_digest` adds additions and subtracts removals."""

    added: int
    removed: int
    digest: int
    net_digest: int


def row_hash(terms: Iterable[str], sign: str = "") -> int:
    return int.from_bytes(blake2b((sign + "\t".join(terms)).encode(), digest_size=8).digest(), "little")


def sum_deltas(deltas: Iterable[tuple[int, tuple[str, ...]]]) -> Deltas:
    """Of everything a system gave out."""
    added = removed = digest = net = 0
    for op, terms in deltas:
        plain = row_hash(terms)
        if op > 0:
            added, net = added + 1, net + plain
        else:
            removed, net = removed + 1, net - plain
        digest += row_hash(terms, "+" if op > 0 else "-")
    return Deltas(added, removed, digest % MODULUS, net % MODULUS)


def answers_before_and_after(workload: Workload) -> tuple[Answers, Answers]:
    """Of the initial graph, and after all messages."""
    query = workload.query
    graph = set(triples(workload.initial, query))
    before = sum_answers(query, graph)
    for path in (workload.warm, workload.timed):
        for op, *triple in messages(path):
            if query.unifies(*triple):
                (graph.add if op == "A" else graph.discard)(tuple(triple))  # type: ignore[arg-type]
    return before, sum_answers(query, graph)


def sum_answers(query: Query, graph: set[Triple]) -> Answers:
    count = digest = 0
    for row in answers(query, graph):
        count += 1
        digest += row_hash(row)
    return Answers(count, digest % MODULUS)


def answers(query: Query, graph: set[Triple]) -> Iterator[tuple[str, ...]]:
    """One pattern after the other, a dictionary each."""
    first = query.patterns[0]
    order: list[Pattern] = [
        first,
        *(other for other, _ in connected_first(first, [(p, False) for p in query.patterns[1:]])),
    ]
    rows: list[dict[str, str]] = [{}]
    bound: set[str] = set()
    for pattern in order:
        shared = tuple(sorted({t for t in (pattern.s, pattern.o) if is_variable(t)} & bound))
        index: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for s, p, o in graph:
            if pattern.matches(s, p, o):
                binding = {t: value for t, value in ((pattern.s, s), (pattern.o, o)) if is_variable(t)}
                index.setdefault(tuple(binding[v] for v in shared), []).append(binding)
        rows = [{**row, **more} for row in rows for more in index.get(tuple(row[v] for v in shared), ())]
        bound |= {t for t in (pattern.s, pattern.o) if is_variable(t)}
    for row in rows:
        yield tuple(row[v] for v in query.variables)
