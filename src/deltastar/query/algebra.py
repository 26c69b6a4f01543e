"""The algebra: variables, triple patterns, graph patterns, and the query around them. Frozen values, no SPARQL text.

A blank node or the middle of a path in a query becomes a *hidden* variable: it is bound like any other, and never
projected. What the projection does to multiplicities is decided here once, as the query's `Semantics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from deltastar.rdf.terms import Term


class Variable(str):
    """A query variable. Its text is `?x`, or `_:b` for a hidden one.

    >>> Variable("x"), Variable("x").name
    (?x, 'x')
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Variable:
        return str.__new__(cls, "?" + name)

    @classmethod
    def hidden(cls, label: str) -> Variable:
        """A variable that stands for a blank node of the query."""
        return str.__new__(cls, "_:" + label)

    @property
    def name(self) -> str:
        """The name without `?`."""
        return self[1:]

    @property
    def is_hidden(self) -> bool:
        return self[0] == "_"

    def __repr__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (_revive_variable, (str.__str__(self),))


Node = Variable | Term


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple with variables in any of its positions."""

    subject: Node
    predicate: Node
    object: Node

    @property
    def nodes(self) -> tuple[Node, Node, Node]:
        return self.subject, self.predicate, self.object

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables, each once, in the order subject, object, predicate."""
        nodes = (self.subject, self.object, self.predicate)
        return tuple(dict.fromkeys(node for node in nodes if isinstance(node, Variable)))

    @property
    def is_ground(self) -> bool:
        return not self.variables

    def unify(self, triple: tuple[Term, Term, Term]) -> dict[Variable, Term] | None:
        """What the variables must be for this pattern to become the triple; None when it cannot.

        A variable that stands twice (`?x <p> ?x`) must get the same term twice.
        """
        binding: dict[Variable, Term] = {}
        for node, value in zip(self.nodes, triple, strict=True):
            if isinstance(node, Variable):
                if binding.setdefault(node, value) != value:
                    return None
            elif node != value:
                return None
        return binding

    def subsumes(self, other: TriplePattern) -> bool:
        """Whether every triple that unifies with `other` unifies with this pattern too."""
        seen: dict[Variable, Node] = {}
        for node, value in zip(self.nodes, other.nodes, strict=True):
            if isinstance(node, Variable):
                if seen.setdefault(node, value) != value:
                    return False
            elif node != value:
                return False
        return True

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A basic graph pattern: a non-empty set of triple patterns, kept in the order of their first occurrence."""

    patterns: tuple[TriplePattern, ...]
    variables: tuple[Variable, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        distinct = tuple(dict.fromkeys(self.patterns))
        object.__setattr__(self, "patterns", distinct)
        variables = dict.fromkeys(
            node
            for pattern in distinct
            for node in (pattern.subject, pattern.predicate, pattern.object)
            if isinstance(node, Variable)
        )
        object.__setattr__(self, "variables", tuple(variables))

    @property
    def is_ground(self) -> bool:
        return not self.variables

    def __str__(self) -> str:
        return " . ".join(map(str, self.patterns))


class Semantics(Enum):
    """How embeddings become answers."""

    SET = "set"
    """Every variable is projected: an answer is an embedding, and appears once."""
    BAG = "bag"
    """Some variable is dropped: one answer an embedding, so the same row may be there several times."""
    DISTINCT = "distinct"
    """A row is there while it has at least one embedding."""
    ASK = "ask"
    """The empty row is there while there is an embedding."""


@dataclass(frozen=True, slots=True)
class Query:
    """A registered query: a graph pattern, and what is shown of its embeddings."""

    pattern: GraphPattern
    projection: tuple[Variable, ...]
    semantics: Semantics
    prefixes: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """The prefixes that its text declares, for showing it as briefly as it was written."""

    @classmethod
    def select(
        cls,
        pattern: GraphPattern,
        projection: tuple[Variable, ...] | None = None,
        distinct: bool = False,
        prefixes: tuple[tuple[str, str], ...] = (),
    ) -> Query:
        """`SELECT`; a projection of None is `*`. A DISTINCT that drops no variable needs no counting, and is a set."""
        if projection is None:
            projection = tuple(variable for variable in pattern.variables if not variable.is_hidden)
        if set(pattern.variables) <= set(projection):
            return cls(pattern, projection, Semantics.SET, prefixes)
        return cls(pattern, projection, Semantics.DISTINCT if distinct else Semantics.BAG, prefixes)

    @classmethod
    def ask(cls, pattern: GraphPattern, prefixes: tuple[tuple[str, str], ...] = ()) -> Query:
        """`ASK`."""
        return cls(pattern, (), Semantics.ASK, prefixes)

    @property
    def names(self) -> tuple[str, ...]:
        """The projected variables' names, in order."""
        return tuple(variable.name for variable in self.projection)

    def __str__(self) -> str:
        if self.semantics is Semantics.ASK:
            return f"ASK {{ {self.pattern} }}"
        distinct = "DISTINCT " if self.semantics is Semantics.DISTINCT else ""
        return f"SELECT {distinct}{' '.join(self.projection) or '*'} WHERE {{ {self.pattern} }}"


Binding = Mapping[str, Term]


def _revive_variable(text: str) -> Variable:
    return str.__new__(Variable, text)
