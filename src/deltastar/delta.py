"""A delta: one answer gained or lost by one message, and the binding that the answer is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from deltastar.rdf.terms import Term

ADDED = "+"
REMOVED = "-"


class Binding(Mapping[str, Term]):
    """An answer: variable names (without `?`) to terms. Immutable and hashable; equal to any mapping of the same items.

    The names are shared by all answers of a query, so a binding costs little more than its tuple of terms.
    """

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: Mapping[str, int], values: tuple[Term, ...]) -> None:
        self._positions = positions
        self._values = values

    @classmethod
    def of(cls, items: Mapping[str, Term]) -> Binding:
        """A binding with names of its own."""
        return cls({name: position for position, name in enumerate(items)}, tuple(items.values()))

    def __getitem__(self, name: str) -> Term:
        return self._values[self._positions[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Binding) and other._positions is self._positions:
            return self._values == other._values
        return Mapping.__eq__(self, other)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name}: {value}" for name, value in self.items()) + "}"


class Delta(NamedTuple):
    """One answer that the message at `seq` added to a query (`+`) or removed from it (`-`).

    `time` is that of the message, where the source has one.
    """

    query: str
    seq: int
    op: str
    binding: Mapping[str, Term]
    time: str = ""

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={value}" for name, value in self.binding.items())
        return f"Delta({self.query} #{self.seq} {self.op} {row or '()'})"
