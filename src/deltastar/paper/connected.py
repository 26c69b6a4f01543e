"""Algorithms 5 and 7: var-connected queries. An extended list a star, joined in the order from the triggering pattern.

Invariant between messages: every list is as Algorithm 6 says for the graph now. Within a message the lists are brought
up to date pattern by pattern, so that pattern i's deltas are found with the patterns before i after the message, and
those behind i before it: each delta is found once, at one of the patterns that it maps to the triple. The paper runs
once per pattern over lists that are already fully updated, which reports self-joins several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from deltastar.paper.extended import UNKNOWN, ExtendedList, Summary, extended_list, join
from deltastar.plan.decompose import Component
from deltastar.query.algebra import TriplePattern

Values = tuple[int, ...]


class VarConnected:
    """One var-connected component with its star decomposition D_s and the extended list of each star."""

    def __init__(self, component: Component, patterns: tuple[TriplePattern, ...]) -> None:
        self.component = component
        self.lists: dict[str, ExtendedList] = {
            star.centre: extended_list(star, patterns, component.variables) for star in component.stars
        }
        self._unknown: Summary = (UNKNOWN,) * len(component.variables)
        self._steps = {pattern: _steps([self.lists[centre] for centre in order]) for pattern, order in component.orders}
        self._position_of = {variable: position for position, variable in enumerate(component.variables)}
        self._centres_of = {pattern: patterns[pattern].variables for pattern in component.patterns}

    def eval_vars_connected_query(self, op: str, j: int, values: Values) -> Iterator[Values]:
        """Algorithm 5 for an effective update that matches pattern j with these values of its variables.

        Yields the component's embeddings that the update adds or removes through pattern j. All lists are up to date
        before the first is yielded.
        """
        V_j = list(self._unknown)
        for variable, value in zip(self._centres_of[j], values, strict=True):
            V_j[self._position_of[variable]] = value
        R = [self.lists[centre].process_update_message_on_star_ext(op, j, tuple(V_j)) for centre in self._centres_of[j]]
        if not all(R):
            return iter(())
        search = _Search(self._steps[j], R)
        return search.find_delta_var_summaries(self._unknown, 0)

    def answers(self) -> Iterator[Values]:
        """All embeddings now, found from the stars of the first pattern."""
        order = self.component.orders[0][1]
        steps = _steps([self.lists[centre] for centre in order])
        first = self.lists[order[0]]
        ground = [V for M, V in first.records() if M == first.full]
        return _Search(steps, [ground]).find_delta_var_summaries(self._unknown, 0)


class _Step:
    """One star in the order, and the values of its variables that earlier stars bind."""

    __slots__ = ("key", "list")

    def __init__(self, list: ExtendedList, bound: frozenset[int]) -> None:
        self.list = list
        shared = sorted(list.positions & bound)
        self.key: Callable[[Summary], Any] = itemgetter(*shared) if shared else lambda V: None


class _Search:
    """Algorithm 7 for one message and pattern.

    Changed records are grouped by the values that earlier stars bind; the paper looks through all of them each time.
    Its version also returns at the last star with the first compatible record; all of them are answers.
    """

    def __init__(self, steps: list[_Step], R: list[list[Summary]]) -> None:
        self._steps = steps
        self._changed = [_grouped(step, records) for step, records in zip(steps, R, strict=False)]

    def find_delta_var_summaries(self, V_i: Summary, k: int) -> Iterator[Values]:
        if k == len(self._steps):
            yield V_i  # type: ignore[misc]  # every variable is some star's centre, so none is unknown
            return
        for V_j in self._compatible(V_i, k):
            yield from self.find_delta_var_summaries(join(V_i, V_j), k + 1)

    def _compatible(self, V_i: Summary, k: int) -> list[Summary]:
        step = self._steps[k]
        if k < len(self._changed):
            return self._changed[k].get(step.key(V_i), [])
        return step.list.get_ground_items(V_i)


def _steps(lists: list[ExtendedList]) -> list[_Step]:
    bound: frozenset[int] = frozenset()
    steps = []
    for list_ in lists:
        steps.append(_Step(list_, bound))
        bound |= list_.positions
    return steps


def _grouped(step: _Step, records: list[Summary]) -> dict[Any, list[Summary]]:
    groups: dict[Any, list[Summary]] = {}
    for V in records:
        groups.setdefault(step.key(V), []).append(V)
    return groups
