"""From a triple to the patterns that it unifies with, over all registered queries.

One table for each combination of constant positions that some pattern uses, keyed by those constants: a look-up a
table, whatever the number of queries. What no pattern matches ends here.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Generic, TypeVar

from deltastar.query.algebra import TriplePattern, Variable

Target = TypeVar("Target")
_Row = tuple[str, str, str]  # terms, or plain strings of canonical text: they are equal


class Dispatch(Generic[Target]):
    """Patterns by their constants. A target is whatever the caller wants back; patterns may repeat.

    >>> from deltastar.query.parse import parse_query
    >>> dispatch = Dispatch()
    >>> dispatch.add(parse_query("SELECT * { ?x <p:likes> ?x }").pattern.patterns[0], "narcissus")
    >>> from deltastar.rdf.terms import IRI
    >>> likes, ann, bob = IRI("p:likes"), IRI("p:ann"), IRI("p:bob")
    >>> dispatch.matches((ann, likes, ann)), dispatch.matches((ann, likes, bob))
    (['narcissus'], [])
    """

    def __init__(self) -> None:
        self._tables: dict[tuple[int, ...], dict[Any, list[tuple[Equalities, Target]]]] = {}

    def add(self, pattern: TriplePattern, target: Target) -> None:
        """From now on a triple that unifies with the pattern leads to the target."""
        positions, key = _shape_of(pattern)
        entry = (_equalities(pattern), target)
        self._tables.setdefault(positions, {}).setdefault(key, []).append(entry)

    def remove(self, pattern: TriplePattern, target: Target) -> None:
        """Takes back one `add` of the same pattern and target."""
        positions, key = _shape_of(pattern)
        table = self._tables[positions]
        table[key].remove((_equalities(pattern), target))
        if not table[key]:
            del table[key]
            if not table:
                del self._tables[positions]

    def matches(self, row: _Row) -> list[Target]:
        """The targets of all patterns that the triple unifies with."""
        found: list[Target] = []
        for positions, table in self._tables.items():
            for equalities, target in table.get(_KEY_OF[positions](row), ()):
                if all(row[left] == row[right] for left, right in equalities):
                    found.append(target)
        return found

    def is_relevant(self, row: _Row) -> bool:
        """Whether any pattern unifies with the triple."""
        return bool(self.matches(row))


Equalities = tuple[tuple[int, int], ...]
"""Pairs of positions that hold the same variable, and so must hold the same term."""

_KEY_OF: dict[tuple[int, ...], Callable[[_Row], Any]] = {
    positions: itemgetter(*positions) if positions else lambda row: None
    for positions in [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
}


def _shape_of(pattern: TriplePattern) -> tuple[tuple[int, ...], Any]:
    positions = tuple(index for index, node in enumerate(pattern.nodes) if not isinstance(node, Variable))
    return positions, _KEY_OF[positions](pattern.nodes)


def _equalities(pattern: TriplePattern) -> Equalities:
    nodes = pattern.nodes
    return tuple(
        (left, right)
        for left, right in ((0, 1), (0, 2), (1, 2))
        if isinstance(nodes[left], Variable) and nodes[left] == nodes[right]
    )
