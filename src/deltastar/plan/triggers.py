"""From a component's shape to its triggers: for each pattern that a message may match, what the search does from there.

Pure: shapes and relations in, tables of integers out, which `program.py` puts where the kernel reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deltastar import layout as at
from deltastar.plan.relations import Relation, Shape


@dataclass(frozen=True, slots=True)
class Edge:
    """Two variables that a pattern joins, with the slots that lead from one to the other."""

    pattern: int
    ends: tuple[int, int]
    slots: tuple[int, int]
    positions: tuple[int, int]
    excludes: bool


class LiveKey(NamedTuple):
    """A kind of live lists: of which slot, and what a live node has: flags, by their relations' numbers, and neighbours
    in slots, of which live ones count where they are known."""

    slot: int
    flags: tuple[int, ...]
    needs: tuple[tuple[int, LiveKey | None], ...]

    @property
    def height(self) -> int:
        """How many kinds depend on each other here."""
        return 1 + max((below.height for _, below in self.needs if below is not None), default=0)


@dataclass(slots=True)
class Trigger:
    bounds: list[int]
    checks: list[int]
    inner: list[int]
    leaves: list[int]
    ground: list[int]
    steps: list[list[int]]
    masks: list[int]
    extras: list[list[int]]
    slots: set[int]


class Compiler:
    """One component: from its shape to its triggers. Edges' nodes are variables behind those of the patterns."""

    def __init__(self, shape: Shape, relations: Sequence[Relation]) -> None:
        self.width = shape.width
        self.variables = shape.width
        self._relations = relations
        self._members = [members for _, members in shape.patterns]
        self._edges: list[Edge] = []
        self._edge_node: dict[int, int] = {}
        for pattern, (relation, members) in enumerate(zip(relations, self._members, strict=True)):
            slot = relation.slot
            if relation.arity == 2:
                ends = (members[0], members[1])
                positions = (relation.positions[0], relation.positions[1])
                self._edges.append(Edge(pattern, ends, (slot, slot + 1), positions, True))
            elif relation.arity == 3:
                node = self._edge_node[pattern] = self.variables
                self.variables += 1
                for place, member in enumerate(members):
                    slots = (slot + 2 * place, slot + 2 * place + 1)
                    self._edges.append(Edge(pattern, (node, member), slots, (0, 0), False))
        degree = [0] * self.variables
        for edge in self._edges:
            degree[edge.ends[0]] += 1
            degree[edge.ends[1]] += 1
        self.candidate_at = [sum(degree[:variable]) for variable in range(self.variables)]
        self.candidates = sum(degree)
        self._degree = degree
        self._flags = [*shape.flags, *[0] * (self.variables - shape.width)]
        self._is_bridge = [edge.ends[1] not in self._reached({edge.ends[0]}, edge) for edge in self._edges]
        self._live = {(edge, end): self._live_key(edge, end) for edge in range(len(self._edges)) for end in (0, 1)}

    @property
    def lives(self) -> list[LiveKey]:
        """The kinds of live lists that may be kept for the component, those first that others depend on."""
        return sorted({key for key in self._live.values() if key is not None}, key=lambda key: (key.height, repr(key)))

    def _live_key(self, edge: int, end: int) -> LiveKey | None:
        """Of the neighbours that an edge leads to from one of its ends; None where all are live.

        Behind a bridge there is no way back: what lies there is looked at in turn.
        """
        variable = self._edges[edge].ends[1 - end]
        flags: set[int] = set()
        needs: dict[int, LiveKey | None] = {}
        for relation, members in zip(self._relations, self._members, strict=True):
            if relation.arity == 1 and members == (variable,):
                if relation.bit:
                    flags.add(relation.number)
                else:
                    needs[relation.slot] = None
        found: set[tuple[int, LiveKey | None]] = set(needs.items())
        for other, joined in enumerate(self._edges):
            for leading in (0, 1):
                if other != edge and joined.ends[leading] == variable:
                    below = self._live_key(other, leading) if self._is_bridge[other] else None
                    found.add((joined.slots[leading], below))
        if not flags and not found:
            return None
        return LiveKey(self._edges[edge].slots[end], tuple(sorted(flags)), tuple(sorted(found, key=repr)))

    def _reached(self, start: set[int], without: Edge) -> set[int]:
        """The variables to which edges lead from these, but for one edge."""
        reached = set(start)
        while True:
            further = {end for edge in self._edges if edge != without for end in edge.ends if reached & {*edge.ends}}
            if further <= reached:
                return reached
            reached |= further

    def trigger(self, pattern: int, live_at: Mapping[LiveKey, int]) -> Trigger:
        """The search from one pattern, with the addresses of the kinds of live lists."""
        relation, members = self._relations[pattern], self._members[pattern]
        bounds = [item for pair in zip(members, relation.positions, strict=True) for item in pair]
        bound = set(members)
        if pattern in self._edge_node:
            bound.add(self._edge_node[pattern])
            bounds += [self._edge_node[pattern], at.FROM_EDGE]
        made = Trigger(
            bounds, [], [], [], [], [[] for _ in range(self.variables)], list(self._flags),
            [[] for _ in range(self.variables)], set(),
        )  # fmt: skip
        self._add_unary(made, pattern)
        for variable in range(self.variables):
            if variable not in bound:
                is_leaf = self._degree[variable] == 1 and not made.masks[variable] and not made.extras[variable]
                (made.leaves if is_leaf else made.inner).append(variable)
        steps: list[list[tuple[int, ...]]] = [[] for _ in range(self.variables)]
        for number, edge in enumerate(self._edges):
            if edge.pattern == pattern:
                continue
            excluded = self._relations[edge.pattern].number + 1 if self._excludes(pattern, edge) else 0
            left, right = edge.ends
            if left in bound and right in bound:
                made.checks += [edge.slots[0], left, right, excluded, *edge.positions]
                made.slots.add(edge.slots[0])
                continue
            lives = [live_at[key] if (key := self._live[number, end]) is not None else 0 for end in (0, 1)]
            if self._can_lead(bound, left, right):
                steps[left].append((edge.slots[0], right, excluded, *edge.positions, lives[0]))
            if self._can_lead(bound, right, left):
                steps[right].append((edge.slots[1], left, excluded, *edge.positions[::-1], lives[1]))
        for variable, leading in enumerate(steps):
            for slot, other, *rest in sorted(leading):
                made.steps[variable] += [other, slot, *rest]
                made.slots.add(slot)
        return made

    def _excludes(self, pattern: int, edge: Edge) -> bool:
        """Whether a pattern behind the trigger could map to the message's triple: it reads the graph without it."""
        return edge.excludes and edge.pattern > pattern and self._shares(pattern, edge.pattern)

    def _shares(self, pattern: int, other: int) -> bool:
        return self._relations[pattern].may_share(self._relations[other])

    def _add_unary(self, made: Trigger, pattern: int) -> None:
        """What the graph says of single variables, and the ground patterns."""
        for other, (relation, members) in enumerate(zip(self._relations, self._members, strict=True)):
            if other == pattern:
                continue
            is_behind = other > pattern and self._shares(pattern, other)
            if relation.arity == 0:
                made.ground.append(relation.number)
            elif relation.arity == 1:
                (variable,) = members
                made.masks[variable] |= relation.bit
                if not relation.bit:
                    made.extras[variable] += [at.IN_SLOT, relation.slot, 0]
                if is_behind:
                    made.extras[variable] += [at.NOT_MESSAGE, relation.number, relation.positions[0]]
            elif relation.arity == 3 and is_behind:
                made.extras[self._edge_node[other]] += [at.NOT_MESSAGE, relation.number, at.FROM_EDGE]

    def _can_lead(self, bound: set[int], first: int, second: int) -> bool:
        """Whether some order binds the first variable while the second is unbound."""
        if second in bound:
            return False
        reached, waiting = set(bound), list(bound)
        while waiting:
            variable = waiting.pop()
            for edge in self._edges:
                if variable in edge.ends:
                    for end in edge.ends:
                        if end != second and end not in reached:
                            reached.add(end)
                            waiting.append(end)
        return first in reached
