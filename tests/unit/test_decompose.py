"""Classes and decompositions, by tables and by the definitions they have to satisfy."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltastar.plan.decompose import (
    Component,
    ComponentClass,
    Plan,
    bounds_of,
    connected_variable_decomposition,
    is_acyclic,
    make_plan,
    star_decomposition,
)
from deltastar.query.algebra import GraphPattern, Node, Query, TriplePattern, Variable
from deltastar.rdf.terms import IRI
from tests.golden.explain.notation import graph_pattern, query
from tests.golden.explain.queries import PAPER

CLASSES = [
    (":a :p :b", "ground", ["ground"]),
    (":a :p :b . :c :q :a", "ground", ["ground"]),
    ("?x :p :a", "simple-var-centric-star", ["simple-star"]),
    (":a :p ?x . ?x :q :b . ?x :r :a", "simple-var-centric-star", ["simple-star"]),
    ("?x :p ?x", "simple-var-centric-star", ["simple-star"]),
    (":a ?p :b", "simple-var-centric-star", ["simple-star"]),
    ("?x ?x ?x", "simple-var-centric-star", ["simple-star"]),
    ("_:b :p :a", "simple-var-centric-star", ["simple-star"]),
    # a ground pattern does not hold the centre, so this is no star query any more (Definition 6)
    ("?x :p :a . :a :q :b", "loosely-connected", ["simple-star", "ground"]),
    ("?x :p :a . ?y :p :a", "loosely-connected", ["simple-star", "simple-star"]),
    ("?X :p :a . :a :q ?Y . :a :r :b", "loosely-connected", ["simple-star", "simple-star", "ground"]),
    (":a ?p :b . :b ?q :a", "loosely-connected", ["simple-star", "simple-star"]),
    ("?x :p ?y", "var-connected", ["star"]),
    ("?x ?p :a", "var-connected", ["star"]),
    ("?x ?p ?y", "var-connected", ["star"]),
    ("?x :p ?y . ?y :q ?x", "var-connected", ["star"]),
    ("?x :p ?y . ?x :q ?z . ?x :r :a", "var-connected", ["star"]),
    ("?x ?p :a . ?y ?p :b", "var-connected", ["star"]),
    ("?x :p ?y . ?y :q :a", "var-connected", ["star"]),
    ("?x :p ?y . ?y :q :a . ?x :q :a", "var-connected", ["acyclic"]),
    ("?x :p ?y . ?y :q ?z . ?z :r ?w", "var-connected", ["acyclic"]),
    (PAPER, "var-connected", ["acyclic"]),
    ("?x ?p ?y . ?y :q ?z . ?p :r ?w", "var-connected", ["acyclic"]),
    # a pattern that holds all three variables covers the triangle that the others make
    ("?x ?p ?y . ?p :q ?x . ?y :r ?p . ?x :s ?y", "var-connected", ["acyclic"]),
    ("?x :p ?y . ?y :p ?z . ?z :p ?x", "var-connected", ["cyclic"]),
    ("?x :p ?y . ?y :q ?z . ?z :r ?w . ?w :s ?x", "var-connected", ["cyclic"]),
    ("?x ?p ?y . ?y ?q ?z . ?z :r ?x", "var-connected", ["cyclic"]),
    # the ground part has no variables, and the variables are still connected (Definitions 8 and 12)
    ("?x :p ?y . :a :q :b", "general", ["star", "ground"]),
    ("?x :p ?y . ?z :p ?w", "general", ["star", "star"]),
    ("?x :p ?y . ?z :p :a", "general", ["star", "simple-star"]),
    ("?x :p ?y . ?z :p :a . :a :p :b", "general", ["star", "simple-star", "ground"]),
    ("?x :p :a . ?y :p :a . ?z :p ?w . ?w :p ?z", "general", ["simple-star", "simple-star", "star"]),
]


@pytest.mark.parametrize(("text", "kind", "components"), CLASSES, ids=[text for text, _, _ in CLASSES])
def test_classes(text: str, kind: str, components: list[str]) -> None:
    plan = make_plan(query(text))
    assert plan.kind.value == kind
    assert [component.kind.value for component in plan.components] == components


def test_the_papers_example() -> None:
    (component,) = make_plan(query(PAPER)).components
    stars = {str(star.centre): star.patterns for star in component.stars}
    assert stars == {"?X": (0, 1, 2), "?Y": (2, 3, 4), "?Z": (0, 5)}  # its table of triple match states
    assert component.overlaps == (("?X", "?Z"), ("?X", "?Y"))
    assert component.order_from(2) == ("?Y", "?X", "?Z")
    assert component.order_from(5) == ("?Z", "?X", "?Y")
    assert component.star_of(Variable("Y")).patterns == (2, 3, 4)


def test_a_shared_constant_joins_nothing() -> None:
    first, second = make_plan(query("?x :p :a . :a :q ?y")).components
    assert (first.variables, second.variables) == (("?x",), ("?y",))
    assert len(make_plan(query("?x :p :a . :a :q ?y . ?y :r ?x")).components) == 1


def test_the_ground_part_comes_last_and_has_no_stars() -> None:
    first, ground = make_plan(query(":a :p :b . ?x :p :b . :b :p :c")).components
    assert first.patterns == (1,)
    assert ground == Component(ComponentClass.GROUND, (0, 2), (), (), (), ())


BOUNDS = [
    (":a :p :b", "O(1)", "O(|Q|) = 1 bit"),
    (":a :p :b . :b :p :a", "O(1)", "O(|Q|) = 2 bits"),
    ("?x :p :a", "O(|Q|)", "O(n): one match state a candidate centre"),
    ("?x :p :a . :b :p :a", "O(|Q|)", "O(n): one match state a candidate centre, and the answers it gates"),
    ("?x :p :a . ?y :p :a", "O(|Q| + |delta|)", "O(2n): the match states of 2 stars, and their answers"),
    ("?x :p ?y . ?x :q ?z", "O(|Q| + |delta|)", "O(m): linear in the relevant triples"),
    # these two have to intersect lists, which costs more than the answers that come of it
    (
        "?x :p ?y . ?x :q ?y . ?x :q ?z",
        "polynomial in m, exponent fixed by the query",
        "O(m): linear in the relevant triples",
    ),
    (
        "?x :p ?y . ?y :q ?z . ?z :p ?w",
        "polynomial in m, exponent fixed by the query",
        "O(m): linear in the relevant triples",
    ),
    (
        "?x :p ?y . ?z :q ?w",
        "polynomial in m, exponent fixed by the query",
        "O(m), and the answers of each component of the product",
    ),
]


@pytest.mark.parametrize(("text", "update", "space"), BOUNDS, ids=[text for text, _, _ in BOUNDS])
def test_bounds(text: str, update: str, space: str) -> None:
    plan = make_plan(query(text))
    assert bounds_of(plan.kind, plan.components, plan.query.pattern) == plan.bounds
    assert (plan.bounds.update, plan.bounds.space) == (update, space)


def test_a_pattern_written_twice_is_one() -> None:
    assert make_plan(query("?x :p ?y . ?x :p ?y")).components[0].patterns == (0,)


def test_a_thousand_patterns_take_no_time_to_speak_of() -> None:
    chain = graph_pattern(" . ".join(f"?v{n} :next ?v{n + 1}" for n in range(1000)))
    (component,) = connected_variable_decomposition(chain)
    assert len(component.stars) == 1001
    assert component.order_from(999)[0] == "?v999"


# --- properties ---

VARIABLES = tuple(Variable(name) for name in "uvwxyz")
NODES: tuple[Node, ...] = (*VARIABLES, IRI("http://ex/a"), IRI("http://ex/b"))
PREDICATES: tuple[Node, ...] = (IRI("http://ex/p"), IRI("http://ex/q"), IRI("http://ex/a"), *VARIABLES[:2])
PATTERNS = st.builds(TriplePattern, st.sampled_from(NODES), st.sampled_from(PREDICATES), st.sampled_from(NODES))
GRAPH_PATTERNS = st.lists(PATTERNS, min_size=1, max_size=8).map(lambda patterns: GraphPattern(tuple(patterns)))


@given(GRAPH_PATTERNS)
def test_components_partition_the_patterns_and_share_no_variable(pattern: GraphPattern) -> None:
    components = connected_variable_decomposition(pattern)
    assert sorted(index for component in components for index in component.patterns) == list(
        range(len(pattern.patterns))
    )
    for component in components:
        held = {variable for index in component.patterns for variable in pattern.patterns[index].variables}
        assert held == set(component.variables)
        assert (component.kind is ComponentClass.GROUND) == (not held)
    for left, right in combinations(components, 2):
        assert not set(left.variables) & set(right.variables)


@given(GRAPH_PATTERNS)
def test_components_are_connected_through_variables(pattern: GraphPattern) -> None:
    """Definition 9, by what it says: between any two variables of a component there is a path of variables."""
    for component in connected_variable_decomposition(pattern):
        reached = set(component.variables[:1])
        for _ in component.variables:
            for index in component.patterns:
                if reached & set(pattern.patterns[index].variables):
                    reached |= set(pattern.patterns[index].variables)
        assert reached == set(component.variables)


@given(GRAPH_PATTERNS)
def test_stars_cover_their_component(pattern: GraphPattern) -> None:
    """Definition 13, and Proposition 4: a star of several shares a pattern with two variables with another one."""
    for component in connected_variable_decomposition(pattern):
        if component.kind is ComponentClass.GROUND:
            continue
        assert {index for star in component.stars for index in star.patterns} == set(component.patterns)
        assert component.stars == star_decomposition(pattern.patterns, component.patterns)
        for star in component.stars:
            held = [index for index in component.patterns if star.centre in pattern.patterns[index].variables]
            assert list(star.patterns) == held
        overlapping = {frozenset(pair) for pair in component.overlaps}
        assert len(overlapping) == len(component.overlaps)
        for left, right in combinations(component.stars, 2):
            shares = bool(set(left.patterns) & set(right.patterns))
            assert (frozenset((left.centre, right.centre)) in overlapping) == shares
        if len(component.stars) > 1:
            assert {variable for pair in overlapping for variable in pair} == set(component.variables)


def summary(plan: Plan) -> object:
    """What of a plan does not depend on the order of its patterns."""
    components = [
        (
            component.kind,
            frozenset(plan.patterns[index] for index in component.patterns),
            frozenset((star.centre, frozenset(plan.patterns[n] for n in star.patterns)) for star in component.stars),
            frozenset(map(frozenset, component.overlaps)),
        )
        for component in plan.components
    ]
    return plan.kind, plan.bounds, frozenset(components)


@given(GRAPH_PATTERNS.flatmap(lambda p: st.tuples(st.just(p), st.permutations(p.patterns))))
def test_the_order_of_patterns_changes_nothing(case: tuple[GraphPattern, list[TriplePattern]]) -> None:
    pattern, shuffled = case
    plans = [make_plan(Query.select(each)) for each in (pattern, GraphPattern(tuple(shuffled)))]
    assert summary(plans[0]) == summary(plans[1])


@given(GRAPH_PATTERNS, st.permutations(VARIABLES))
def test_the_names_of_variables_change_nothing(pattern: GraphPattern, names: list[Variable]) -> None:
    renaming: dict[Node, Node] = dict(zip(VARIABLES, names, strict=True))
    renamed = GraphPattern(
        tuple(TriplePattern(*[renaming.get(node, node) for node in each.nodes]) for each in pattern.patterns)
    )
    before, after = (make_plan(Query.select(each)) for each in (pattern, renamed))
    assert (before.kind, before.bounds) == (after.kind, after.bounds)
    for left, right in zip(before.components, after.components, strict=True):
        assert (left.kind, left.patterns) == (right.kind, right.patterns)
        assert [renaming[variable] for variable in left.variables] == list(right.variables)
        assert [(n, tuple(renaming[v] for v in order)) for n, order in left.orders] == list(right.orders)


def has_join_tree(edges: list[frozenset[Variable]]) -> bool:
    """Whether some tree over the edges keeps, for each variable, those that hold it together: by trying all trees."""
    count = len(edges)
    if count < 3:
        return True
    return any(is_join_tree(edges, tree_of(code, count)) for code in product(range(count), repeat=count - 2))


def tree_of(code: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """The tree with this Prüfer code."""
    degree = [1 + code.count(node) for node in range(count)]
    tree = []
    for node in code:
        leaf = degree.index(1)
        tree.append((leaf, node))
        degree[leaf] -= 1
        degree[node] -= 1
    left, right = (node for node in range(count) if degree[node] == 1)
    return [*tree, (left, right)]


def is_join_tree(edges: list[frozenset[Variable]], tree: list[tuple[int, int]]) -> bool:
    for variable in frozenset().union(*edges):
        holding = sum(variable in edge for edge in edges)
        linked = sum(variable in edges[left] & edges[right] for left, right in tree)
        if linked != holding - 1:
            return False
    return True


@given(st.lists(st.frozensets(st.sampled_from(VARIABLES[:5]), min_size=1, max_size=3), min_size=1, max_size=5))
def test_acyclic_means_that_there_is_a_join_tree(edges: list[frozenset[Variable]]) -> None:
    assert is_acyclic(edges) == has_join_tree(edges)


@pytest.mark.parametrize("edges", [["x"], ["xy", "xy"], ["xy", "yz"], ["xyz", "xy", "yz", "xz"], ["xy", "zw"], []])
def test_acyclic_hypergraphs(edges: list[str]) -> None:
    assert is_acyclic(frozenset(map(Variable, edge)) for edge in edges)


@pytest.mark.parametrize("edges", [["xy", "yz", "xz"], ["xy", "yz", "zw", "wx"], ["xya", "yzb", "xzc"]])
def test_cyclic_hypergraphs(edges: list[str]) -> None:
    assert not is_acyclic(frozenset(map(Variable, edge)) for edge in edges)
