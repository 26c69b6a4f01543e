"""Algorithm 3: products of components, gated by the ground part.

The paper treats loosely-connected queries here; the same product serves general queries, whose components may be
var-connected. `T` holds the answers of each component now (the paper's T_S); the ground part has the empty answer
while it is true (T_G). A message may change several components: they are brought up to date one after the other, so
that the deltas are ΔA × B_old, then A_new × ΔB, and none is reported twice or missed. The paper passes the set of
answers where Algorithm 2 expects the list of instances, and does not treat one message that changes several of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from deltastar.rdf.update import INSERT

Values = tuple[int, ...]


class Product:
    """The answers of every component, and what a change of one of them means for the query."""

    __slots__ = ("T",)

    def __init__(self, components: int) -> None:
        self.T: list[set[Values]] = [set() for _ in range(components)]

    def eval_loosely_connected_query(self, op: str, i: int, delta: Iterable[Values]) -> Iterator[tuple[Values, ...]]:
        """Brings component i up to date with its delta. The query's delta, as one tuple of values a component.

        Complete before the first is yielded: the caller must read on to the end before the next change.
        """
        delta = list(delta)
        if op == INSERT:
            self.T[i].update(delta)
        else:
            self.T[i].difference_update(delta)
        if not delta or not all(T for k, T in enumerate(self.T) if k != i):
            return iter(())
        return product(*(delta if k == i else T for k, T in enumerate(self.T)))

    def answers(self) -> Iterator[tuple[Values, ...]]:
        """All answers now."""
        return product(*self.T)
