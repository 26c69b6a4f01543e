"""The order of the stars, by Proposition 5."""

from __future__ import annotations

import pytest
from hypothesis import given

from deltastar.plan.decompose import ComponentClass, connected_variable_decomposition, make_plan
from deltastar.plan.order import find_ordered_array
from deltastar.query.algebra import GraphPattern, Variable
from tests.golden.explain.notation import query
from tests.unit.test_decompose import GRAPH_PATTERNS

W, X, Y, Z = (Variable(name) for name in "wxyz")
PATH = [(W, X), (X, Y), (Y, Z)]


@pytest.mark.parametrize(
    ("first", "order"),
    [
        ([W], (W, X, Y, Z)),
        ([Z], (Z, Y, X, W)),
        ([X, Y], (X, Y, W, Z)),
        ([Y, X], (Y, X, Z, W)),
        ([Y, Y], (Y, X, Z, W)),
    ],
)
def test_breadth_first_from_the_triggering_pattern(first: list[Variable], order: tuple[Variable, ...]) -> None:
    assert find_ordered_array([W, X, Y, Z], PATH, first) == order


def test_one_star_is_its_own_order() -> None:
    assert find_ordered_array([X], [], [X]) == (X,)


def test_a_predicate_variable_comes_after_subject_and_object() -> None:
    (component,) = make_plan(query("?x ?p ?y . ?p :q ?z")).components
    assert component.order_from(0) == ("?x", "?y", "?p", "?z")
    assert component.order_from(1) == ("?p", "?z", "?x", "?y")


@given(GRAPH_PATTERNS)
def test_orders_satisfy_the_proposition(pattern: GraphPattern) -> None:
    for component in connected_variable_decomposition(pattern):
        if component.kind is ComponentClass.GROUND:
            continue
        assert [index for index, _ in component.orders] == list(component.patterns)
        overlapping = {frozenset(pair) for pair in component.overlaps}
        for index, order in component.orders:
            own = pattern.patterns[index].variables
            assert order[: len(own)] == own
            assert sorted(order) == sorted(component.variables)
            assert len(set(order)) == len(order)
            for position in range(1, len(order)):
                assert any(frozenset((order[position], earlier)) in overlapping for earlier in order[:position])
