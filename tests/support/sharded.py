"""A case through a router and several shards: cut into splits and batches anywhere, applied twice, or made anew."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from deltastar.rdf.terms import IRI, BlankNode, Literal
from deltastar.reference import ReferenceEngine
from deltastar.sharding.shard import Piece
from tests.support.generate import Case

Line = tuple[str, int, str, tuple[tuple[str, str], ...]]


def term_of(value: dict[str, str]) -> str:
    """A term of the SPARQL JSON results format, as text."""
    if value["type"] == "uri":
        return IRI(value["value"])
    if value["type"] == "bnode":
        return BlankNode(value["value"])
    return Literal(value["value"], language=value.get("xml:lang", ""), datatype=value.get("datatype", ""))


def lines_of(pieces: Sequence[Piece]) -> Counter[Line]:
    """The deltas of some pieces; each piece must hold what it says that it holds."""
    found: Counter[Line] = Counter()
    last = 0
    for piece in pieces:
        if piece.kind != "deltas":
            continue
        assert last <= piece.first_seq <= piece.last_seq
        seqs = []
        for text in piece.data.splitlines():
            delta = json.loads(text)
            seqs.append(delta["seq"])
            binding = tuple(sorted((name, str(term_of(value))) for name, value in delta["binding"].items()))
            found[delta["query"], delta["seq"], delta["op"], binding] += 1
        assert seqs == sorted(seqs)
        assert piece.first_seq <= seqs[0]
        assert seqs[-1] <= piece.last_seq
        last = piece.first_seq
    return found


def expected_of(case: Case) -> tuple[Counter[Line], ReferenceEngine]:
    """What the reference says."""
    reference = ReferenceEngine(case.queries, case.granularity)
    found: Counter[Line] = Counter()
    for event in case.events:
        for delta in reference.step(event):
            binding = tuple(sorted((name, str(term)) for name, term in delta.binding.items()))
            found[delta.query, delta.seq, delta.op, binding] += 1
    return found, reference
