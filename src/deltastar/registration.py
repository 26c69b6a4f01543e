"""A registered query: its evaluator, and the way from embeddings (ids) to answers (terms)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Protocol

from deltastar.delta import ADDED, REMOVED, Binding, Delta
from deltastar.plan.decompose import Plan
from deltastar.query.algebra import Query, Semantics
from deltastar.rdf.terms import Term
from deltastar.rdf.update import INSERT
from deltastar.retained import IdTriple

Values = tuple[int, ...]


class Evaluator(Protocol):
    """What evaluates one query: effective updates in, embeddings out, as ids in the order of the query's variables."""

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        """The embeddings gained (by an insertion) or lost, each once; to be read to the end before the next step."""

    def answers(self) -> Iterator[Values]:
        """All embeddings now."""


class Registration:
    """A query that an engine keeps up to date.

    `complete_since` is 0 when the answer takes the whole stream into account; a later number says that triples which
    came up to that seq, and which no query registered then could match, are missing from it.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        evaluator: Evaluator,
        since: Mapping[int, int],
        term: Callable[[int], Term],
        unregister: Callable[[str], None],
    ) -> None:
        self.name = name
        self.plan = plan
        self.since_of_pattern = dict(since)
        self._evaluator = evaluator
        self._term = term
        self._unregister = unregister
        variables = plan.query.pattern.variables
        bound = [variable for variable in plan.query.projection if variable in variables]
        self._positions = {variable.name: position for position, variable in enumerate(bound)}
        self._project = _tuple_getter([variables.index(variable) for variable in bound])
        self._multiplicity: Counter[Values] | None = (
            Counter() if plan.query.semantics in (Semantics.DISTINCT, Semantics.ASK) else None
        )
        self._embeddings = 0

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
        if self._multiplicity is not None:
            return [self.decode(row) for row in self._multiplicity]
        return [self.decode(self._project(values)) for values in self._evaluator.answers()]

    def count(self) -> int:
        """How many answers there are now, without enumerating them."""
        return len(self._multiplicity) if self._multiplicity is not None else self._embeddings

    def unregister(self) -> None:
        """Stops keeping this query up to date, and drops what is retained for it alone."""
        self._unregister(self.name)

    def change(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[tuple[str, Values]]:
        """The rows that an effective update adds to the answer or removes from it, by the query's semantics."""
        embeddings = self._evaluator.step(op, triple, patterns)
        sign, direction = (ADDED, 1) if op == INSERT else (REMOVED, -1)
        for values in embeddings:
            self._embeddings += direction
            row = self._project(values)
            if self._multiplicity is None or self._is_turning_point(row, direction):
                yield sign, row

    def _is_turning_point(self, row: Values, direction: int) -> bool:
        """Counts an embedding of the row; whether it is the first one, or was the last."""
        assert self._multiplicity is not None
        count = self._multiplicity[row] + direction
        if count:
            self._multiplicity[row] = count
        else:
            del self._multiplicity[row]
        return count == (1 if direction == 1 else 0)

    def decode(self, row: Values) -> Binding:
        """A row of ids as a binding of terms."""
        return Binding(self._positions, tuple(map(self._term, row)))

    def deltas(self, rows: Iterable[tuple[str, Values]], seq: int, time: str) -> Iterator[Delta]:
        """Rows as deltas."""
        return (Delta(self.name, seq, op, self.decode(row), time) for op, row in rows)

    def __repr__(self) -> str:
        since = f", complete since {self.complete_since}" if self.complete_since else ""
        return f"Registration({self.name}: {self.query}, {self.count()} answers{since})"


def _tuple_getter(positions: Sequence[int]) -> Callable[[Values], Values]:
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    if not positions:
        return lambda values: ()
    return itemgetter(*positions)
