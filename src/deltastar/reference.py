"""The slow, obvious evaluator: after every message evaluate from scratch, and subtract. The judge of everything else.

It shares nothing with the engine but terms and the query algebra: no plan, no decomposition, no state but the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from deltastar.delta import ADDED, REMOVED, Delta
from deltastar.query.algebra import Query, Semantics, TriplePattern, Variable
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update

Row = tuple[Term | None, ...]
"""The values of the projected variables, None where unbound."""


class Graph:
    """A set of triples, with the triples of each term at each position."""

    def __init__(self, triples: Iterable[Triple] = ()) -> None:
        self.triples: set[Triple] = set()
        self._having: dict[tuple[int, Term], set[Triple]] = {}
        for triple in triples:
            self.add(triple)

    def add(self, triple: Triple) -> None:
        self.triples.add(triple)
        for position, term in enumerate(triple):
            self._having.setdefault((position, term), set()).add(triple)

    def remove(self, triple: Triple) -> None:
        self.triples.discard(triple)
        for position, term in enumerate(triple):
            self._having.get((position, term), set()).discard(triple)

    def candidates(self, nodes: Iterable[Variable | Term]) -> Collection[Triple]:
        """Triples that include all those that have these terms; variables may be anything."""
        having = [
            self._having.get((position, node), ())
            for position, node in enumerate(nodes)
            if not isinstance(node, Variable)
        ]
        return min(having, key=len) if having else self.triples


def embeddings(patterns: Collection[TriplePattern], graph: Graph) -> Iterator[dict[Variable, Term]]:
    """All mappings of the variables that put every pattern into the graph (Definition 2)."""
    yield from _extend({}, list(patterns), graph)


def answers(query: Query, graph: Graph) -> Counter[Row]:
    """The answers with their multiplicities, evaluated from scratch."""
    rows: Counter[Row] = Counter()
    for embedding in embeddings(query.pattern.patterns, graph):
        rows[tuple(embedding.get(variable) for variable in query.projection)] += 1
    if query.semantics in (Semantics.DISTINCT, Semantics.ASK):
        return Counter(dict.fromkeys(rows, 1))
    return rows


class ReferenceEngine:
    """The engine's semantics, message by message, by re-evaluation.

    >>> from deltastar.query.parse import parse_query
    >>> engine = ReferenceEngine({"q": parse_query("SELECT * { ?x <p:knows> ?y . ?y <p:knows> ?x }")})
    >>> engine.step(Update.insert("<p:ann>", "<p:knows>", "<p:ann>"))
    [Delta(q #1 + ?x=<p:ann> ?y=<p:ann>)]
    """

    def __init__(self, queries: dict[str, Query], granularity: str = "message") -> None:
        self.queries = queries
        self.graph = Graph()
        self.seq = 0
        self._by_transaction = granularity == "transaction"
        self._answers: dict[str, Counter[Row]] = {name: answers(query, self.graph) for name, query in queries.items()}
        self._saved: set[Triple] | None = None
        self._rows_in_transaction = 0

    def load(self, triples: Iterable[Triple]) -> list[Delta]:
        """The initial graph, reported at seq 0."""
        for triple in triples:
            self.graph.add(triple)
        return self._report()

    def step(self, event: Event) -> list[Delta]:
        """What one event of the stream changes in the answers."""
        if isinstance(event, Mark):
            return self._mark(event)
        if isinstance(event, Malformed) and not event.is_message:
            return []
        self.seq += 1
        self._rows_in_transaction += 1
        if isinstance(event, Update):
            (self.graph.add if event.op == INSERT else self.graph.remove)(event.triple)
        if self._by_transaction and self._saved is not None:
            return []
        return self._report(event.time if isinstance(event, Update) else "")

    def _mark(self, mark: Mark) -> list[Delta]:
        if mark is Mark.BEGIN:
            if self._saved is None:
                self._saved, self._rows_in_transaction = set(self.graph.triples), 0
            return []
        if self._saved is None:
            return []
        before, self._saved = self._saved, None
        if mark is Mark.ABORT:
            self.graph = Graph(before)
        return self._report()

    def finish(self) -> list[Delta]:
        """The stream ends: by transaction, one still open is discarded."""
        if self._by_transaction and self._saved is not None:
            self.graph, self._saved = Graph(self._saved), None
        return self._report()

    def _report(self, time: str = "") -> list[Delta]:
        deltas: list[Delta] = []
        for name, query in self.queries.items():
            before, after = self._answers[name], answers(query, self.graph)
            for op, difference in ((ADDED, after - before), (REMOVED, before - after)):
                for row in difference.elements():
                    binding = {
                        variable.name: term
                        for variable, term in zip(query.projection, row, strict=True)
                        if term is not None
                    }
                    deltas.append(Delta(name, self.seq, op, binding, time))
            self._answers[name] = after
        return deltas


def _extend(
    embedding: dict[Variable, Term], patterns: list[TriplePattern], graph: Graph
) -> Iterator[dict[Variable, Term]]:
    if not patterns:
        yield embedding
        return
    pattern, *rest = patterns
    nodes = [embedding.get(node, node) if isinstance(node, Variable) else node for node in pattern.nodes]
    bound = TriplePattern(*nodes)
    for triple in graph.candidates(nodes):
        if (binding := bound.unify(triple)) is not None:
            yield from _extend(embedding | binding, rest, graph)
