"""The paper's algorithms as an evaluation: one evaluator a query, over one set of retained triples.

In: messages, as texts. Out: deltas of terms. Everything is done message by message, pattern by pattern.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Protocol

from deltastar.delta import ADDED, REMOVED, Binding, Delta
from deltastar.evaluation import Rules, no_effect, refuse_row
from deltastar.paper.evaluator import PaperEvaluator
from deltastar.paper.retained import IdTriple, RetainedGraph
from deltastar.plan.decompose import Plan
from deltastar.plan.dispatch import Dispatch
from deltastar.query.algebra import Semantics
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import INSERT, Update
from deltastar.registration import Registration
from deltastar.statistics import Statistics
from deltastar.transaction import Change, Row, Transaction

Values = tuple[int, ...]


class Evaluator(Protocol):
    """What evaluates one query: effective updates in, embeddings out, as ids in the order of the query's variables."""

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        """The embeddings gained (by an insertion) or lost, each once; to be read to the end before the next step."""

    def answers(self) -> Iterator[Values]:
        """All embeddings now."""


class PaperAnswer:
    """One query: its evaluator, and the way from embeddings to the rows of its answer."""

    def __init__(self, registration: Registration, evaluator: Evaluator, term: Callable[[int], Term]) -> None:
        self.registration = registration
        self._evaluator = evaluator
        self._term = term
        query = registration.query
        self._project = _tuple_getter([query.pattern.variables.index(variable) for variable in registration.bound])
        self._multiplicity: Counter[Values] | None = (
            Counter() if query.semantics in (Semantics.DISTINCT, Semantics.ASK) else None
        )
        self._embeddings = 0

    def rows(self) -> Iterator[tuple[Term, ...]]:
        if self._multiplicity is not None:
            return map(self.decode, self._multiplicity)
        return (self.decode(self._project(values)) for values in self._evaluator.answers())

    def count(self) -> int:
        return len(self._multiplicity) if self._multiplicity is not None else self._embeddings

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

    def decode(self, row: Values) -> tuple[Term, ...]:
        """A row of ids as terms."""
        return tuple(map(self._term, row))

    def deltas(self, rows: Iterable[tuple[str, Values]], seq: int, time: str) -> Iterator[Delta]:
        """Rows as deltas."""
        name, positions = self.registration.name, self.registration.positions
        return (Delta(name, seq, op, Binding(positions, self.decode(row)), time) for op, row in rows)


Targets = list[tuple[PaperAnswer, int]]
"""The patterns that a triple unifies with, each with its query."""


class PaperEvaluation:
    """All queries under the paper's algorithms."""

    def __init__(
        self, rules: Rules, statistics: Statistics, evaluator: Callable[[Plan], Evaluator] = PaperEvaluator
    ) -> None:
        self.has_dropped = False
        self.opened_at: int | None = None
        self._rules, self._statistics = rules, statistics
        self._make_evaluator = evaluator
        self._answers: dict[str, PaperAnswer] = {}
        self._dispatch: Dispatch[tuple[PaperAnswer, int]] = Dispatch()
        self._graph = RetainedGraph()
        self._transaction: Transaction | None = None

    # Queries ---------------------------------------------------------------------------------------------------------

    def add(self, registration: Registration) -> None:
        """Takes a query in, and replays what is retained to it."""
        plan = registration.plan
        answer = PaperAnswer(registration, self._make_evaluator(plan), self._graph.term)
        own: Dispatch[int] = Dispatch()
        for index, pattern in enumerate(plan.patterns):
            own.add(pattern, index)
            self._dispatch.add(pattern, (answer, index))
        for triple in self._graph:
            if patterns := sorted(own.matches(self._graph.terms(triple))):
                for _ in answer.change(INSERT, triple, patterns):
                    pass
        self._answers[registration.name] = answer
        registration.answered_by(answer)

    def remove(self, registration: Registration) -> None:
        """Takes a query out, with the triples that no other one can match."""
        answer = self._answers.pop(registration.name)
        for index, pattern in enumerate(registration.plan.patterns):
            self._dispatch.remove(pattern, (answer, index))
        if not self._rules.retains_all:
            graph = self._graph
            for triple in [triple for triple in graph if not self._dispatch.matches(graph.terms(triple))]:
                graph.drop(triple)
                self.has_dropped = True

    # Messages --------------------------------------------------------------------------------------------------------

    def load(self, row: Row) -> list[Delta]:
        """Adds a triple of the initial graph."""
        targets = self._targets(row)
        return [] if targets is None or self._graph.holds(row) else self._change(INSERT, row, targets, 0, "")

    def update(self, op: str, row: Row, seq: int, time: str) -> list[Delta]:
        """Applies a message."""
        targets = self._targets(row)
        if targets is None:
            return []
        self._statistics.relevant += bool(targets)
        transaction = self._transaction
        if transaction is None or not self._rules.by_transaction:
            if not self._is_effective(op, row, self._graph.holds(row), seq):
                return []
            if transaction is not None:
                transaction.changes.append((op, row))
            return self._change(op, row, targets, seq, time)
        present = transaction.presence.get(row)
        if self._is_effective(op, row, self._graph.holds(row) if present is None else present, seq):
            transaction.presence[row] = op == INSERT
        return []

    def begin(self, seq: int) -> None:
        """A transaction begins."""
        self._transaction, self.opened_at = Transaction(), seq

    def end(self, is_committed: bool, seq: int, time: str) -> list[Delta]:
        """The open transaction is committed, or taken back."""
        transaction = self._transaction
        assert transaction is not None
        self.discard()
        self._statistics.committed += is_committed
        self._statistics.aborted += not is_committed
        if self._rules.by_transaction:
            changes = transaction.net(self._graph.holds) if is_committed else []
        else:
            changes = [] if is_committed else transaction.undo(self._graph.holds)
        return self._change_as_one(changes, seq, time)

    def discard(self) -> None:
        """The open transaction is over."""
        self._transaction = self.opened_at = None

    def count(self) -> None:
        """The statistics are always up to date."""

    def retained(self) -> Iterator[Triple]:
        """The triples that are kept."""
        return (Triple(*self._graph.terms(triple)) for triple in self._graph)

    @property
    def terms_in_use(self) -> int:
        """How many terms the retained triples have."""
        return self._graph.terms_in_use

    def transaction(self) -> Transaction | None:
        """The open transaction."""
        return self._transaction

    def rows(self) -> Iterator[bytes]:
        """The same, as rows of RDF Patch."""
        return (f"A {triple}\n".encode() for triple in self.retained())

    def restore(self, rows: Iterable[bytes], transaction: Transaction | None) -> None:
        """Takes over what another evaluation had."""
        for block in rows:
            for event in scan(block, "the checkpoint", 1, Syntax.PATCH).events:
                if not isinstance(event, Update):
                    refuse_row(event)
                targets = self._targets(event.triple)
                if targets is not None:
                    self._change(INSERT, event.triple, targets, 0, "")
        self._transaction = transaction

    # One message -----------------------------------------------------------------------------------------------------

    def _targets(self, row: Row) -> Targets | None:
        """The patterns that a triple unifies with; None when it is dropped at the door."""
        targets = self._dispatch.matches(row)
        if targets or self._rules.retains_all:
            return targets
        self.has_dropped = True
        return None

    def _is_effective(self, op: str, row: Row, is_present: bool, seq: int) -> bool:
        """Whether the operation changes the graph, which is a set; counts it, or with strict refuses it, if not."""
        if is_present != (op == INSERT):
            return True
        if self._rules.is_strict:
            raise no_effect(op, row, seq)
        if op == INSERT:
            self._statistics.repeated_inserts += 1
        else:
            self._statistics.absent_deletes += 1
        return False

    def _change(self, op: str, row: Row, targets: Targets, seq: int, time: str) -> list[Delta]:
        """Applies one effective change that stands alone."""
        triple = self._graph.add(row) if op == INSERT else self._graph.take_out(row)
        deltas: list[Delta] = []
        for answer, patterns in _by_answer(targets):
            deltas.extend(answer.deltas(answer.change(op, triple, patterns), seq, time))
        if op != INSERT:
            self._graph.release(triple)
        self._statistics.deltas += len(deltas)
        return deltas

    def _change_as_one(self, changes: Iterable[Change], seq: int, time: str) -> list[Delta]:
        """Applies effective changes as one: what one adds to an answer and another takes away is not reported."""
        net: dict[PaperAnswer, Counter[Values]] = {}
        taken_out: list[IdTriple] = []
        for op, row in changes:
            targets = self._targets(row)
            if targets is None:
                continue
            triple = self._graph.add(row) if op == INSERT else self._graph.take_out(row)
            if op != INSERT:
                taken_out.append(triple)  # its ids stay in use until the deltas are terms
            for answer, patterns in _by_answer(targets):
                counts = net.setdefault(answer, Counter())
                for sign, values in answer.change(op, triple, patterns):
                    counts[values] += 1 if sign == ADDED else -1
        deltas = [delta for answer, counts in net.items() for delta in answer.deltas(_signed(counts), seq, time)]
        for triple in taken_out:
            self._graph.release(triple)
        self._statistics.deltas += len(deltas)
        return deltas


def _by_answer(targets: Targets) -> Iterator[tuple[PaperAnswer, list[int]]]:
    """The patterns of each query that a triple unifies with, in the order of the query."""
    grouped: dict[PaperAnswer, list[int]] = {}
    for answer, pattern in targets:
        grouped.setdefault(answer, []).append(pattern)
    for answer, patterns in grouped.items():
        yield answer, sorted(patterns)


def _signed(counts: Counter[Values]) -> Iterator[tuple[str, Values]]:
    for row, count in counts.items():
        for _ in range(abs(count)):
            yield (ADDED if count > 0 else REMOVED), row


def _tuple_getter(positions: Sequence[int]) -> Callable[[Values], Values]:
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    if not positions:
        return lambda values: ()
    return itemgetter(*positions)
