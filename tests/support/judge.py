"""The differential judge: an engine beside the reference, compared after every event."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.evaluation import Rules
from deltastar.machine import Machine
from deltastar.query.algebra import Query
from deltastar.rdf.terms import Term
from deltastar.rdf.update import Event
from deltastar.reference import Graph, ReferenceEngine, answers
from deltastar.statistics import Statistics
from deltastar.verify import as_bag
from tests.support.generate import Case


@contextmanager
def quiet() -> Iterator[None]:
    """Random streams deserve many warnings, which nobody wants to read."""
    log = logging.getLogger("deltastar")
    before = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


class Difference(AssertionError):
    """Engine and reference disagree."""


def sound(granularity: str) -> Engine:
    """The engine as it is shipped."""
    return Engine(granularity=granularity)


def switching(granularity: str) -> Engine:
    """The engine, with live lists that come and go all the time."""

    def evaluation(rules: Rules, statistics: Statistics) -> CompiledEvaluation:
        return CompiledEvaluation(rules, statistics, Machine(live_room=-12))

    return Engine(granularity=granularity, evaluation=evaluation)


def paper(granularity: str) -> Engine:
    """The engine with the paper's algorithms."""
    return Engine(granularity=granularity, evaluation="paper")


def judge(case: Case, make_engine: Callable[[str], Engine] = sound) -> int:
    """Runs a case on both and raises `Difference` at the first one. Returns the number of comparisons."""
    engine, reference = make_engine(case.granularity), ReferenceEngine(case.queries, case.granularity)
    for name, query in case.queries.items():
        engine.register(query, name)
    for position, event in enumerate(case.events):
        compare(engine, reference, event, f"event {position + 1}\n{case}")
    if as_bag(engine.finish()) != as_bag(reference.finish()):
        raise Difference(f"at the end\n{case}")
    compare_answers(engine, case.queries, reference.graph, str(case))
    return len(case.events)


def compare(engine: Engine, reference: ReferenceEngine, event: Event, place: str) -> None:
    """One event on both."""
    actual, expected = as_bag(engine.process(event, lambda malformed: None)), as_bag(reference.step(event))
    if actual != expected:
        raise Difference(f"missing {list(expected - actual)}, surplus {list(actual - expected)} at {place}")


def compare_answers(engine: Engine, queries: Mapping[str, Query], graph: Graph, place: str) -> None:
    """The answers and counts now."""
    for name, query in queries.items():
        registration = engine.query(name)
        actual = Counter(tuple(sorted(binding.items())) for binding in registration.answers())
        expected: Counter[tuple[tuple[str, Term], ...]] = Counter()
        for row, count in answers(query, graph).items():
            names = (variable.name for variable in query.projection)
            expected[tuple(sorted((n, t) for n, t in zip(names, row, strict=True) if t is not None))] += count
        if actual != expected or registration.count() != expected.total():
            raise Difference(f"answers of {name}: {actual} instead of {expected} after\n{place}")
