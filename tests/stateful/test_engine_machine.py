"""A hypothesis machine: insert, delete, repeat, open and close transactions, register and drop queries, in any order.

The model is the whole graph and the reference. A query that comes late answers from what is retained: with
`retain="all"` as if it had been there from the start; with `retain="relevant"` it is compared only when it says that it
is complete.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from deltastar.delta import ADDED, Delta
from deltastar.engine import Engine
from deltastar.query.algebra import Query
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import DELETE, INSERT, Mark, Update
from deltastar.reference import Graph, answers
from tests.support.generate import IRIS, OBJECTS_ONLY, PREDICATES, _Terms, random_query

TRIPLES = st.builds(Triple, st.sampled_from(IRIS), st.sampled_from(PREDICATES), st.sampled_from(IRIS + OBJECTS_ONLY))


def random_query_of(seed: int) -> Query:
    random = Random(seed)
    return random_query(random, _Terms(random))


class EngineMachine(RuleBasedStateMachine):
    names: Bundle[str] = Bundle("names")

    @initialize(retain=st.sampled_from(("all", "relevant")))
    def start(self, retain: str) -> None:
        self.retain = retain
        self.engine = Engine(retain=retain)
        self.graph: set[Triple] = set()
        self.saved: set[Triple] | None = None
        self.sums: dict[str, Counter[object]] = {}
        self.queries: dict[str, Query] = {}
        self.number = 0

    @rule(target=names, seed=st.integers(0, 10_000))
    def register(self, seed: int) -> str:
        name = f"q{self.number}"
        self.number += 1
        query = random_query_of(seed)
        registration = self.engine.register(query, name)
        self.queries[name] = query
        self.sums[name] = Counter(map(dict_key, registration.answers()))
        return name

    @rule(name=consumes(names))
    def unregister(self, name: str) -> None:
        self.engine.query(name).unregister()
        del self.queries[name], self.sums[name]

    @rule(triple=TRIPLES)
    def insert(self, triple: Triple) -> None:
        self.take(self.engine.process(Update(INSERT, *triple)))
        self.graph.add(triple)

    @rule(triple=TRIPLES)
    def delete(self, triple: Triple) -> None:
        self.take(self.engine.process(Update(DELETE, *triple)))
        self.graph.discard(triple)

    @rule()
    def begin(self) -> None:
        if self.saved is None:
            self.take(self.engine.process(Mark.BEGIN))
            self.saved = set(self.graph)

    @rule(commit=st.booleans())
    def end(self, commit: bool) -> None:
        if self.saved is not None:
            self.take(self.engine.process(Mark.COMMIT if commit else Mark.ABORT))
            if not commit:
                self.graph = self.saved
            self.saved = None

    def take(self, deltas: list[Delta]) -> None:
        assert all(delta.seq == self.engine.seq for delta in deltas)
        for delta in deltas:
            self.sums[delta.query][dict_key(delta.binding)] += 1 if delta.op == ADDED else -1

    @invariant()
    def sum_of_deltas_is_the_answer(self) -> None:
        for name in getattr(self, "queries", {}):
            registration = self.engine.query(name)
            now = Counter(map(dict_key, registration.answers()))
            assert +self.sums[name] == now
            assert min(self.sums[name].values(), default=0) >= 0
            assert registration.count() == now.total()

    @invariant()
    def answers_are_those_of_the_reference(self) -> None:
        for name, query in getattr(self, "queries", {}).items():
            registration = self.engine.query(name)
            if self.retain == "all":
                assert registration.complete_since == 0
            if registration.complete_since:
                continue
            expected: Counter[object] = Counter()
            for row, count in answers(query, Graph(self.graph)).items():
                bound = zip(query.names, row, strict=True)
                expected[dict_key({n: term for n, term in bound if term is not None})] += count
            assert Counter(map(dict_key, registration.answers())) == expected

    @invariant()
    def nothing_is_retained_that_no_query_can_match(self) -> None:
        if not hasattr(self, "engine"):
            return
        retained = set(self.engine.retained())
        assert retained <= self.graph
        patterns = [pattern for query in self.queries.values() for pattern in query.pattern.patterns]
        if self.retain == "all":
            assert retained == self.graph
        else:
            assert all(any(pattern.unify(triple) is not None for pattern in patterns) for triple in retained)
        terms = {term for triple in retained for term in triple}
        constants = {node for pattern in patterns for node in pattern.nodes if isinstance(node, Term)}
        if self.saved is None:  # what may have to be undone is remembered
            assert len(terms) <= self.engine.terms_in_use <= len(terms | constants)


def dict_key(binding: object) -> object:
    return tuple(sorted(dict(binding).items()))  # type: ignore[call-overload]


TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
