"""Relations: the triples that unify with a pattern, up to the names of its variables; and components made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Constants = tuple[int, int, int]


class RelationKey(NamedTuple):
    """Which triples a relation holds: the constants' ids by position, 0 for a variable, and equal positions."""

    constants: Constants
    equal: int


class Shape(NamedTuple):
    """A component up to the names of its variables: for each pattern a relation's number and its variables' indexes."""

    patterns: tuple[tuple[int, tuple[int, ...]], ...]
    width: int
    flags: tuple[int, ...] = ()
    """For each variable, flags that its values must have: those of its class, where it is restricted to one."""


@dataclass(eq=False)
class Relation:
    """A relation in use."""

    key: RelationKey
    number: int
    address: int
    positions: tuple[int, ...]
    bit: int
    users: int = 0

    @property
    def arity(self) -> int:
        return len(self.positions)

    @property
    def slot(self) -> int:
        return 2 * self.number

    def may_share(self, other: Relation) -> bool:
        """Whether a triple can be in both."""
        pairs = zip(self.key.constants, other.key.constants, strict=True)
        return all(own == 0 or others == 0 or own == others for own, others in pairs)
