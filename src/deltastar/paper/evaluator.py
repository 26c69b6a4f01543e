"""The paper's evaluator of one query: the cheapest algorithm for each component, and the product over them.

In: effective updates (the triple was absent before its insertion, present before its deletion) as ids, with the
patterns that the triple unifies with. Out: the query's embeddings gained or lost, as ids in the order of
`query.pattern.variables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from deltastar.paper.connected import VarConnected
from deltastar.paper.ground import GroundInstance
from deltastar.paper.product import Product
from deltastar.paper.star import SimpleStar
from deltastar.plan.decompose import Component, ComponentClass, Plan
from deltastar.query.algebra import TriplePattern, Variable

Values = tuple[int, ...]
IdTriple = tuple[int, int, int]


class PaperEvaluator:
    """One registered query under the paper's algorithms."""

    def __init__(self, plan: Plan) -> None:
        self._components = [_evaluator_of(component, plan.patterns) for component in plan.components]
        self._component_of = {
            pattern: index for index, component in enumerate(plan.components) for pattern in component.patterns
        }
        self._values_of = [_values_of(pattern) for pattern in plan.patterns]
        self._product = Product(len(self._components)) if len(self._components) > 1 else None
        self._arrange = _arrangement(plan)

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        """The embeddings that an effective update adds (an insertion) or removes (a deletion), each once.

        `patterns` are those that the triple unifies with, ascending. The iterator must be read to its end before
        the next step.
        """
        for j in patterns:
            i = self._component_of[j]
            delta = self._components[i].step(op, j, self._values_of[j](triple))
            if self._product is None:
                yield from map(self._arrange, delta)
            else:
                for parts in self._product.eval_loosely_connected_query(op, i, delta):
                    yield self._arrange(sum(parts, ()))

    def answers(self) -> Iterator[Values]:
        """All embeddings now."""
        if self._product is not None:
            return (self._arrange(sum(parts, ())) for parts in self._product.answers())
        return map(self._arrange, self._components[0].answers())


class _Ground:
    """Adapts Algorithm 1: the ground part's answer is the empty embedding."""

    def __init__(self, component: Component) -> None:
        self._instance = GroundInstance(component.patterns)

    def step(self, op: str, j: int, values: Values) -> list[Values]:
        return [()] if self._instance.process_update_message_on_ground_BGP(op, j) else []

    def answers(self) -> list[Values]:
        return [()] if self._instance.is_complete else []


class _SimpleStar:
    """Adapts Algorithm 2: a centre's value is an embedding."""

    def __init__(self, component: Component) -> None:
        self._star = SimpleStar(component.patterns)

    def step(self, op: str, j: int, values: Values) -> list[Values]:
        return [values] if self._star.process_update_message_on_star(op, j, values[0]) else []

    def answers(self) -> Iterator[Values]:
        return self._star.answers()


class _VarConnected:
    """Adapts Algorithm 5."""

    def __init__(self, component: Component, patterns: tuple[TriplePattern, ...]) -> None:
        self._component = VarConnected(component, patterns)

    def step(self, op: str, j: int, values: Values) -> Iterator[Values]:
        return self._component.eval_vars_connected_query(op, j, values)

    def answers(self) -> Iterator[Values]:
        return self._component.answers()


def _evaluator_of(component: Component, patterns: tuple[TriplePattern, ...]) -> _Ground | _SimpleStar | _VarConnected:
    if component.kind is ComponentClass.GROUND:
        return _Ground(component)
    if component.kind is ComponentClass.SIMPLE_STAR:
        return _SimpleStar(component)
    return _VarConnected(component, patterns)


def _values_of(pattern: TriplePattern) -> Callable[[IdTriple], Values]:
    """From a triple to the values of the pattern's variables, in the order of `pattern.variables`."""
    nodes = pattern.nodes
    return _tuple_getter([nodes.index(variable) for variable in pattern.variables])


def _arrangement(plan: Plan) -> Callable[[Values], Values]:
    """From the components' values, one after the other, to the query's order of variables."""
    given: list[Variable] = [variable for component in plan.components for variable in component.variables]
    return _tuple_getter([given.index(variable) for variable in plan.query.pattern.variables])


def _tuple_getter(positions: Sequence[int]) -> Callable[[tuple[int, ...]], Values]:
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    if not positions:
        return lambda values: ()
    return itemgetter(*positions)
