"""Query to plan: classes, connected-variable decomposition, star decomposition, orders (Definitions 6 to 13).

Pure functions from a `GraphPattern` to frozen values. Patterns are named by their index in the graph pattern.
A predicate variable is a node of the variable graph like any other, so a pattern joins up to three variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import combinations

from deltastar.plan.order import find_ordered_array
from deltastar.query.algebra import GraphPattern, Query, TriplePattern, Variable


class QueryClass(Enum):
    """The classes of the paper; a cheaper class gets a cheaper algorithm."""

    GROUND = "ground"
    SIMPLE_STAR = "simple-var-centric-star"
    LOOSELY_CONNECTED = "loosely-connected"
    VAR_CONNECTED = "var-connected"
    GENERAL = "general"


class ComponentClass(Enum):
    """What a component of the connected-variable decomposition looks like."""

    GROUND = "ground"
    SIMPLE_STAR = "simple-star"
    STAR = "star"
    ACYCLIC = "acyclic"
    CYCLIC = "cyclic"


@dataclass(frozen=True, slots=True)
class Star:
    """The patterns that hold a variable, its centre."""

    centre: Variable
    patterns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the query that shares no variable with the rest.

    `overlaps` are the edges of the overlapping-subqueries graph, by centre. `orders` gives, for each pattern,
    the centres in the order of Proposition 5: first those in the pattern, then each after one that it overlaps
    with. The ground part has neither stars nor orders.
    """

    kind: ComponentClass
    patterns: tuple[int, ...]
    variables: tuple[Variable, ...]
    stars: tuple[Star, ...]
    overlaps: tuple[tuple[Variable, Variable], ...]
    orders: tuple[tuple[int, tuple[Variable, ...]], ...]

    def order_from(self, pattern: int) -> tuple[Variable, ...]:
        """The order of the stars when this pattern is the one that an update matches."""
        return dict(self.orders)[pattern]

    def star_of(self, centre: Variable) -> Star:
        return next(star for star in self.stars if star.centre == centre)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time for one update, and space, in the paper's terms, before output."""

    update: str
    space: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A query taken apart: what the evaluators execute and what `explain` prints."""

    query: Query
    kind: QueryClass
    components: tuple[Component, ...]
    bounds: Bounds

    @property
    def patterns(self) -> tuple[TriplePattern, ...]:
        return self.query.pattern.patterns


def make_plan(query: Query) -> Plan:
    """The plan of a query.

    >>> from deltastar.query.parse import parse_query
    >>> plan = make_plan(parse_query("SELECT * { ?x <p:a> ?y . ?y <p:b> ?z . ?z <p:c> ?x }"))
    >>> plan.kind.value, plan.components[0].kind.value
    ('var-connected', 'cyclic')
    """
    components = connected_variable_decomposition(query.pattern)
    kind = classify_query(components)
    return Plan(query, kind, components, bounds_of(kind, components, query.pattern))


def connected_variable_decomposition(pattern: GraphPattern) -> tuple[Component, ...]:
    """The components with variables, in the order of their first pattern, then the ground part, if any.

    Definitions 9 and 10. Only variables connect: a constant that stands in two components joins nothing.
    """
    patterns = pattern.patterns
    parent = {variable: variable for variable in pattern.variables}  # a union-find forest

    def find(variable: Variable) -> Variable:
        while parent[variable] != variable:
            parent[variable] = variable = parent[parent[variable]]
        return variable

    for triple_pattern in patterns:
        for other in triple_pattern.variables[1:]:
            parent[find(other)] = find(triple_pattern.variables[0])

    groups: dict[Variable, list[int]] = {}
    ground: list[int] = []
    for index, triple_pattern in enumerate(patterns):
        members = ground if triple_pattern.is_ground else groups.setdefault(find(triple_pattern.variables[0]), [])
        members.append(index)
    components = [_component(patterns, members) for members in groups.values()]
    if ground:
        components.append(Component(ComponentClass.GROUND, tuple(ground), (), (), (), ()))
    return tuple(components)


def star_decomposition(patterns: Sequence[TriplePattern], members: Iterable[int]) -> tuple[Star, ...]:
    """One star a variable; a pattern stands in the star of each of its variables (Definition 13)."""
    stars: dict[Variable, list[int]] = {}
    for index in members:
        for variable in patterns[index].variables:
            stars.setdefault(variable, []).append(index)
    return tuple(Star(centre, tuple(indexes)) for centre, indexes in stars.items())


def overlapping_subqueries(stars: Sequence[Star]) -> tuple[tuple[Variable, Variable], ...]:
    """The pairs of centres whose stars share a pattern, each once, in the order of the stars."""
    holders: dict[int, list[int]] = {}
    for position, star in enumerate(stars):
        for index in star.patterns:
            holders.setdefault(index, []).append(position)
    pairs = {pair for positions in holders.values() for pair in combinations(positions, 2)}
    return tuple((stars[left].centre, stars[right].centre) for left, right in sorted(pairs))


def classify_component(patterns: Sequence[TriplePattern], members: Sequence[int]) -> ComponentClass:
    """The class of a component, by the hypergraph of its patterns' variables."""
    edges = [frozenset(patterns[index].variables) for index in members]
    variables = frozenset().union(*edges)
    if not variables:
        return ComponentClass.GROUND
    if len(variables) == 1:
        return ComponentClass.SIMPLE_STAR
    if not is_acyclic(edges):
        return ComponentClass.CYCLIC
    return ComponentClass.STAR if frozenset.intersection(*edges) else ComponentClass.ACYCLIC


def is_acyclic(edges: Iterable[frozenset[Variable]]) -> bool:
    """Whether a hypergraph is alpha-acyclic: ear removal (Graham; Yu and Ozsoyoglu) leaves nothing.

    Two patterns over the same two variables are one edge here, and no cycle: either can be checked at the other.
    """
    remaining = {number: set(edge) for number, edge in enumerate(set(edges))}
    holders: dict[Variable, set[int]] = {}
    for number, edge in remaining.items():
        for variable in edge:
            holders.setdefault(variable, set()).add(number)
    waiting = list(remaining)
    while waiting:
        number = waiting.pop()
        edge = remaining.get(number, set())
        edge -= {variable for variable in edge if len(holders[variable]) == 1}
        if edge:
            rarest = min(edge, key=lambda variable: len(holders[variable]))
            if not any(edge <= remaining[other] for other in holders[rarest] if other != number):
                continue
        for variable in edge:
            holders[variable].discard(number)
            if len(holders[variable]) == 1:  # only now can the edge that still holds it become an ear
                waiting += holders[variable]
        remaining.pop(number, None)
    return not remaining


def classify_query(components: Sequence[Component]) -> QueryClass:
    """The paper's class of a query, from its components, among which the ground part counts.

    A ground part next to one var-connected component makes a product of the two, so that is a general query, although
    Definitions 8 and 12, which speak of the variables alone, would let it be var-connected: section 6.5 relies on
    every pattern of a var-connected query having a variable.
    """
    kinds = [component.kind for component in components]
    if kinds == [ComponentClass.GROUND]:
        return QueryClass.GROUND
    if kinds == [ComponentClass.SIMPLE_STAR]:
        return QueryClass.SIMPLE_STAR
    if all(kind in (ComponentClass.GROUND, ComponentClass.SIMPLE_STAR) for kind in kinds):
        return QueryClass.LOOSELY_CONNECTED
    return QueryClass.VAR_CONNECTED if len(kinds) == 1 else QueryClass.GENERAL


def bounds_of(kind: QueryClass, components: Sequence[Component], pattern: GraphPattern) -> Bounds:
    """Time per update and space (Propositions 1 to 3, 6 and 7; n nodes and m relevant triples of the data)."""
    if kind is QueryClass.GROUND:
        bits = len(pattern.patterns)
        return Bounds("O(1)", f"O(|Q|) = {bits} bit{'s' if bits > 1 else ''}")
    if kind is QueryClass.SIMPLE_STAR:
        return Bounds("O(|Q|)", "O(n): one match state a candidate centre")
    if kind is QueryClass.LOOSELY_CONNECTED:
        stars = sum(component.kind is ComponentClass.SIMPLE_STAR for component in components)
        if stars == 1:
            return Bounds("O(|Q|)", "O(n): one match state a candidate centre, and the answers it gates")
        states = f"the match states of {stars} stars, and their answers"
        return Bounds("O(|Q| + |delta|)", f"O({stars}n): {states}")
    if kind is QueryClass.VAR_CONNECTED:
        if _is_free_star(components[0], pattern.patterns):
            return Bounds("O(|Q| + |delta|)", "O(m): linear in the relevant triples")
        return Bounds("polynomial in m, exponent fixed by the query", "O(m): linear in the relevant triples")
    space = "O(m), and the answers of each component of the product"
    return Bounds("polynomial in m, exponent fixed by the query", space)


def _is_free_star(component: Component, patterns: Sequence[TriplePattern]) -> bool:
    """Whether, once the centre is bound, the patterns can be matched independently of each other.

    Then a delta is the product of what each pattern matches, with no dead end. Two patterns that share more
    than the centre, such as `?x <p> ?y . ?x <q> ?y`, have to be intersected instead.
    """
    if component.kind is not ComponentClass.STAR:
        return False
    edges = [frozenset(patterns[index].variables) for index in component.patterns]
    return len(set(edges)) == 1 or all(len(left & right) == 1 for left, right in combinations(edges, 2))


def _component(patterns: Sequence[TriplePattern], members: Sequence[int]) -> Component:
    stars = star_decomposition(patterns, members)
    overlaps = overlapping_subqueries(stars)
    centres = tuple(star.centre for star in stars)
    orders = tuple((index, find_ordered_array(centres, overlaps, patterns[index].variables)) for index in members)
    return Component(classify_component(patterns, members), tuple(members), centres, stars, overlaps, orders)
