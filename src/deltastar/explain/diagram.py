"""A plan as what is drawn of it: for each component a panel of nodes and the arcs between them.

Constants are merged within a component and never across components, since a constant connects nothing. A pattern
with a variable predicate passes through a node of its own; all nodes of one variable are tied by dotted arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deltastar.explain.abbreviate import Names
from deltastar.explain.wording import count
from deltastar.plan.decompose import Component, ComponentClass, Plan
from deltastar.query.algebra import Node as PatternNode
from deltastar.query.algebra import TriplePattern, Variable


class Shape(Enum):
    """What a node stands for."""

    VARIABLE = "variable"
    CONSTANT = "constant"
    PREDICATE = "predicate variable"


class Stroke(Enum):
    """What an arc stands for."""

    ARROW = "a pattern, or its half that ends in the object"
    LINE = "the half of a pattern that begins at the subject"
    TIE = "the same variable at both ends"


@dataclass(frozen=True, slots=True)
class Node:
    """A variable, a constant or a predicate variable in one pattern. `star` is its star's number in the query."""

    shape: Shape
    term: PatternNode
    label: str
    star: int | None


@dataclass(frozen=True, slots=True)
class Arc:
    """A line between two nodes of a panel, by their position. `pattern` is its index in the query, or None."""

    stroke: Stroke
    source: int
    target: int
    label: str
    pattern: int | None


@dataclass(frozen=True, slots=True)
class Panel:
    """What is drawn of one component."""

    component: Component
    title: str
    nodes: tuple[Node, ...]
    arcs: tuple[Arc, ...]


def draw_panels(plan: Plan) -> tuple[Panel, ...]:
    """One panel a component, in the order of the plan."""
    names = Names(plan.query.prefixes)
    stars = {variable: number for number, variable in enumerate(centres(plan))}
    panels = []
    for position, component in enumerate(plan.components):
        sketch = _Sketch(names, stars)
        for index in component.patterns:
            sketch.add(index, plan.patterns[index])
        panels.append(Panel(component, _title(plan, position), tuple(sketch.nodes), tuple(sketch.arcs)))
    return tuple(panels)


def centres(plan: Plan) -> tuple[Variable, ...]:
    """The centres of all stars, in the order of the components."""
    return tuple(star.centre for component in plan.components for star in component.stars)


def caption(plan: Plan) -> str:
    """What there is in the query, in a line."""
    parts = [
        count(len(plan.query.pattern.variables), "variable"),
        count(len(plan.patterns), "pattern"),
        f"{plan.query.semantics.value} semantics",
    ]
    return " · ".join(parts)


def _title(plan: Plan, position: int) -> str:
    component = plan.components[position]
    if component.kind is ComponentClass.GROUND:
        return "ground part"
    number = f" {position + 1}" if len(plan.components) > 1 else ""
    return f"component{number} · {component.kind.value}"


class _Sketch:
    """A panel while it is drawn."""

    def __init__(self, names: Names, stars: dict[Variable, int]) -> None:
        self.nodes: list[Node] = []
        self.arcs: list[Arc] = []
        self._names = names
        self._stars = stars
        self._position: dict[PatternNode, int] = {}
        self._predicates: dict[PatternNode, int] = {}

    def add(self, index: int, pattern: TriplePattern) -> None:
        subject, target = self._end(pattern.subject), self._end(pattern.object)
        if not isinstance(pattern.predicate, Variable):
            label = self._names.of(pattern.predicate, is_predicate=True)
            self.arcs.append(Arc(Stroke.ARROW, subject, target, label, index))
            return
        middle = self._predicate(pattern.predicate)
        self.arcs.append(Arc(Stroke.LINE, subject, middle, "", index))
        self.arcs.append(Arc(Stroke.ARROW, middle, target, "", index))

    def _end(self, term: PatternNode) -> int:
        """The node of a subject or object; a variable that was met as a predicate is tied to it."""
        if term not in self._position:
            shape = Shape.VARIABLE if isinstance(term, Variable) else Shape.CONSTANT
            self._position[term] = self._node(shape, term)
            if term in self._predicates:
                self._tie(self._predicates[term], self._position[term])
        return self._position[term]

    def _predicate(self, term: Variable) -> int:
        node = self._node(Shape.PREDICATE, term)
        known = self._position.get(term, self._predicates.get(term))
        if known is not None:
            self._tie(node, known)
        self._predicates[term] = node
        return node

    def _node(self, shape: Shape, term: PatternNode) -> int:
        star = self._stars.get(term) if isinstance(term, Variable) else None
        self.nodes.append(Node(shape, term, self._names.of(term), star))
        return len(self.nodes) - 1

    def _tie(self, source: int, target: int) -> None:
        self.arcs.append(Arc(Stroke.TIE, source, target, "", None))
