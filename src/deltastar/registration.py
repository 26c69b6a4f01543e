"""A registered query: what its owner asks it for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from deltastar.delta import Binding
from deltastar.plan.decompose import Plan
from deltastar.query.algebra import Query
from deltastar.rdf.terms import Term


class Answer(Protocol):
    """What an evaluation knows of one query's answer."""

    def rows(self) -> Iterator[tuple[Term, ...]]:
        """The rows of the answer now, each as often as it is one, in the order of the registration's variables."""

    def count(self) -> int:
        """How many there are, without enumerating them."""


class Registration:
    """A query that an engine keeps up to date.

    `complete_since` is 0 when the answer takes the whole stream into account; a later number says that triples which
    came up to that seq, and which no query registered then could match, are missing from it.
    """

    def __init__(self, name: str, plan: Plan, since: Mapping[int, int], unregister: Callable[[str], None]) -> None:
        self.name = name
        self.plan = plan
        self.since_of_pattern = dict(since)
        self._unregister = unregister
        self._answer: Answer | None = None
        variables = plan.query.pattern.variables
        self.bound = tuple(variable for variable in plan.query.projection if variable in variables)
        """The variables that an answer binds; those that stand in no pattern never are."""
        self.positions = {variable.name: position for position, variable in enumerate(self.bound)}

    def answered_by(self, answer: Answer) -> None:
        """Says who knows the answer."""
        self._answer = answer

    @property
    def query(self) -> Query:
        return self.plan.query

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the projected variables."""
        return self.query.names

    @property
    def complete_since(self) -> int:
        """The seq from which on nothing is missing."""
        return max(self.since_of_pattern.values())

    def answers(self) -> list[Binding]:
        """The answer now. A bag repeats its rows; an ASK or ground query that is true has one empty binding."""
        assert self._answer is not None
        return [Binding(self.positions, row) for row in self._answer.rows()]

    def count(self) -> int:
        """How many answers there are now, without enumerating them."""
        assert self._answer is not None
        return self._answer.count()

    def unregister(self) -> None:
        """Stops keeping this query up to date, and drops what is retained for it alone."""
        self._unregister(self.name)

    def __repr__(self) -> str:
        since = f", complete since {self.complete_since}" if self.complete_since else ""
        return f"Registration({self.name}: {self.query}, {self.count()} answers{since})"
