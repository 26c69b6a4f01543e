"""The judge can see: each rule, broken on purpose, makes it find a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from deltastar.engine import Engine
from deltastar.paper.evaluation import PaperAnswer, PaperEvaluation
from deltastar.paper.evaluator import IdTriple, PaperEvaluator, Values
from deltastar.paper.product import Product
from deltastar.paper.retained import RetainedGraph
from deltastar.plan import dispatch
from deltastar.plan.decompose import Plan
from tests.support.generate import random_case
from tests.support.judge import Difference, judge

CASES = 400


class AllPatternsAtOnce(PaperEvaluator):
    """Breaks the exactly-once rule: every pattern sees the graph with the triple."""

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        searches = []
        for j in patterns:
            i = self._component_of[j]
            searches.append((i, self._components[i].step(op, j, self._values_of[j](triple))))
        for i, delta in searches:
            if self._product is None:
                yield from map(self._arrange, delta)
            else:
                for parts in self._product.eval_loosely_connected_query(op, i, delta):
                    yield self._arrange(sum(parts, ()))


class FirstPatternOnly(PaperEvaluator):
    """Breaks the self-join rule: a triple that unifies with several patterns counts for the first."""

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        yield from super().step(op, triple, patterns[:1])


class OpenGate(PaperEvaluator):
    """Breaks the ground gate: the ground part counts as true."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        if self._product is not None and not plan.components[-1].variables:
            self._product.T[-1] = {()}


def paper(granularity: str, evaluator: type[PaperEvaluator] = PaperEvaluator) -> Engine:
    return Engine(granularity=granularity, evaluation=partial(PaperEvaluation, evaluator=evaluator))


def differs(make_engine: Callable[[str], Engine] = paper) -> bool:
    for seed in range(CASES):
        try:
            judge(random_case(seed), make_engine)
        except (Difference, KeyError, AssertionError):
            return True
    return False


@pytest.mark.parametrize("evaluator", [AllPatternsAtOnce, FirstPatternOnly, OpenGate])
def test_a_broken_evaluator_is_noticed(evaluator: type[PaperEvaluator]) -> None:
    assert differs(partial(paper, evaluator=evaluator))


def test_a_wrong_count_of_a_bag_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = PaperAnswer.change

    def without_repetitions(self: PaperAnswer, *arguments: object) -> Iterator[tuple[str, Values]]:
        yield from dict.fromkeys(original(self, *arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(PaperAnswer, "change", without_repetitions)
    assert differs()


def test_distinct_without_counting_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaperAnswer, "_is_turning_point", lambda self, row, direction: True)
    assert differs()


def test_ignoring_repeated_variables_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_equalities", lambda pattern: ())
    assert differs()


def test_a_graph_that_forgets_what_it_holds_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetainedGraph, "holds", lambda self, row: False)
    assert differs()


def test_a_product_that_forgets_a_component_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Product.eval_loosely_connected_query

    def without_removal(self: Product, op: str, i: int, delta: object) -> Iterator[tuple[Values, ...]]:
        kept = set(self.T[i])
        result = original(self, op, i, delta)  # type: ignore[arg-type]
        self.T[i] |= kept
        return result

    monkeypatch.setattr(Product, "eval_loosely_connected_query", without_removal)
    assert differs()


def test_nothing_broken_is_not_noticed() -> None:
    assert not differs()
