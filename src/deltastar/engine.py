"""The engine: owns the retained graph and the registered queries, applies events, reports deltas.

In: events (updates, transaction marks, malformed rows) in the order of the stream. Out: deltas of terms, in the order
of `seq`. Invariant between calls: the retained triples are those of the graph that unify with a pattern of a registered
query (all of them with `retain="all"`), and every evaluator is up to date with them.
"""

from __future__ import annotations

import copy
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from deltastar.delta import ADDED, REMOVED, Delta
from deltastar.errors import NoEffectError, RowError, UnknownQueryError, UsageError
from deltastar.paper.evaluator import PaperEvaluator
from deltastar.plan.decompose import Plan, make_plan
from deltastar.plan.dispatch import Dispatch
from deltastar.query.algebra import Query, TriplePattern
from deltastar.query.parse import parse_query
from deltastar.rdf.terms import Triple, of_canonical
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.registration import Evaluator, Registration, Values
from deltastar.retained import IdTriple, RetainedGraph, Row
from deltastar.transaction import Change, Transaction

_log = logging.getLogger("deltastar")

OnMalformed = Callable[[Malformed], None]
Targets = list[tuple[Registration, int]]
"""The patterns that a triple unifies with, each with its query."""


@dataclass(slots=True)
class Statistics:
    """What an engine has seen. Repetitions are counted among relevant messages (all of them with `retain="all"`)."""

    messages: int = 0
    relevant: int = 0
    deltas: int = 0
    malformed: int = 0
    repeated_inserts: int = 0
    absent_deletes: int = 0
    committed: int = 0
    aborted: int = 0
    discarded: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine's state between two events: with the same queries, another engine continues from it."""

    seq: int
    statistics: Statistics
    transaction: Transaction | None
    triples: Iterable[Triple]


class Engine:
    """Keeps the answers of registered queries up to date.

    >>> engine = Engine()
    >>> people = engine.register("SELECT * WHERE { ?x a <http://ex/Person> ; <http://ex/livesIn> ?c }", name="people")
    >>> engine.insert("<http://ex/ann>", "<http://ex/livesIn>", "<http://ex/oslo>")
    []
    >>> a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    >>> engine.insert("<http://ex/ann>", a, "<http://ex/Person>")
    [Delta(people #2 + ?x=<http://ex/ann> ?c=<http://ex/oslo>)]
    >>> people.count()
    1
    """

    def __init__(
        self,
        retain: str = "relevant",
        granularity: str = "message",
        strict: bool = False,
        evaluator: Callable[[Plan], Evaluator] = PaperEvaluator,
    ) -> None:
        if retain not in ("relevant", "all"):
            raise UsageError(f"retain={retain!r}: give 'relevant' or 'all'")
        if granularity not in ("message", "transaction"):
            raise UsageError(f"granularity={granularity!r}: give 'message' or 'transaction'")
        self.seq = 0
        self.statistics = Statistics()
        self._strict = strict
        self._retains_all = retain == "all" or strict  # strict has to know of every triple whether it is there
        self._by_transaction = granularity == "transaction"
        self._make_evaluator = evaluator
        self._registrations: dict[str, Registration] = {}
        self._dispatch: Dispatch[tuple[Registration, int]] = Dispatch()
        self._graph = RetainedGraph()
        self._has_dropped = False
        self._transaction: Transaction | None = None

    # Queries ---------------------------------------------------------------------------------------------------------

    def register(self, query: str | Query, name: str | None = None) -> Registration:
        """Keeps a query up to date from now on. SPARQL text, or a parsed query; without a name it is `q1`, `q2`, …

        The answer starts with what the engine retains: see `Registration.answers` and `complete_since`.
        """
        if name is None:
            name = next(f"q{n}" for n in range(1, len(self._registrations) + 2) if f"q{n}" not in self._registrations)
        if name in self._registrations:
            raise UsageError(f"a query named {name!r} is registered already; unregister it, or choose another name")
        plan = make_plan(parse_query(query) if isinstance(query, str) else query)
        since = {index: self._covered_since(pattern) for index, pattern in enumerate(plan.patterns)}
        evaluator = self._make_evaluator(plan)
        registration = Registration(name, plan, evaluator, since, self._graph.term, self.unregister)
        self._replay(registration)
        for index, pattern in enumerate(plan.patterns):
            self._dispatch.add(pattern, (registration, index))
        self._registrations[name] = registration
        return registration

    def unregister(self, name: str) -> None:
        """Stops keeping a query up to date, and drops the triples that no other one can match."""
        registration = self.query(name)
        for index, pattern in enumerate(registration.plan.patterns):
            self._dispatch.remove(pattern, (registration, index))
        del self._registrations[name]
        if not self._retains_all:
            graph = self._graph
            for triple in [triple for triple in graph if not self._dispatch.matches(graph.terms(triple))]:
                graph.drop(triple)
                self._has_dropped = True

    def query(self, name: str) -> Registration:
        """The registration of that name."""
        if name not in self._registrations:
            known = ", ".join(self._registrations) or "none"
            raise UnknownQueryError(f"no query is named {name!r}; registered: {known}")
        return self._registrations[name]

    @property
    def queries(self) -> tuple[Registration, ...]:
        """All registrations, in the order in which they came."""
        return tuple(self._registrations.values())

    # Updates ---------------------------------------------------------------------------------------------------------

    def insert(self, subject: object, predicate: object, object: object) -> list[Delta]:
        """Inserts a triple, of N-Triples strings or rdflib terms, as the next message."""
        return self.process(Update.insert(subject, predicate, object))

    def delete(self, subject: object, predicate: object, object: object) -> list[Delta]:
        """Deletes a triple, of N-Triples strings or rdflib terms, as the next message."""
        return self.process(Update.delete(subject, predicate, object))

    def apply(
        self, updates: str | os.PathLike[str] | Iterable[Event], on_malformed: OnMalformed | None = None
    ) -> Iterator[Delta]:
        """Applies a stream (a path, or any iterable of `Update`) and yields its deltas in the order of `seq`.

        Nothing is applied before the deltas are asked for. A malformed row goes to `on_malformed`, by default to the
        log; a strict engine raises `RowError` for it.
        """
        for event in _events(updates):
            yield from self.process(event, on_malformed)
        yield from self.finish()

    def load(
        self, graph: str | os.PathLike[str] | Iterable[Triple], on_malformed: OnMalformed | None = None
    ) -> Iterator[Delta]:
        """Adds an initial graph (a path, or triples) and yields the answers that it brings, at seq 0."""
        for event in _graph_events(graph):
            yield from self.load_event(event, on_malformed)

    def load_event(self, event: Event, on_malformed: OnMalformed | None = None) -> list[Delta]:
        """Adds one triple of the initial graph."""
        if self.seq:
            raise UsageError("the initial graph comes before the first message; this engine has had some")
        if isinstance(event, Malformed):
            self._reject(event, on_malformed)
        if not isinstance(event, Update):
            return []
        row = event[1:4]
        targets = self._targets(row)
        return [] if targets is None or self._graph.holds(row) else self._change(INSERT, row, targets, "")

    def process(self, event: Event, on_malformed: OnMalformed | None = None) -> list[Delta]:
        """Applies one event of the stream: the deltas that it brings."""
        if isinstance(event, Update):
            return self._update(event)
        if isinstance(event, Mark):
            return self._mark(event, on_malformed)
        if event.is_message:
            self._count_message()
        self._reject(event, on_malformed)
        return []

    def finish(self) -> list[Delta]:
        """The stream has ended: by transaction, one that is still open is discarded."""
        open_transaction, self._transaction = self._transaction, None
        if open_transaction is not None and self._by_transaction:
            self.statistics.discarded += 1
            rows = open_transaction.messages
            _log.warning("the stream ends inside a transaction (no TC): its %d rows are discarded", rows)
        return []

    def retained(self) -> Iterator[Triple]:
        """The triples that the engine keeps."""
        return (Triple(*self._graph.terms(triple)) for triple in self._graph)

    @property
    def terms_in_use(self) -> int:
        """How many terms the retained triples have."""
        return self._graph.terms_in_use

    def snapshot(self) -> Snapshot:
        """All that the engine knows besides its queries; read its triples before the next message."""
        return Snapshot(self.seq, replace(self.statistics), copy.deepcopy(self._transaction), self.retained())

    def restore(self, snapshot: Snapshot) -> None:
        """Continues from a snapshot, on a new engine with the same queries registered."""
        for triple in snapshot.triples:
            targets = self._targets(triple)
            if targets is not None:
                self._change(INSERT, triple, targets, "")
        self.seq, self.statistics, self._transaction = snapshot.seq, snapshot.statistics, snapshot.transaction

    # One message -----------------------------------------------------------------------------------------------------

    def _update(self, update: Update) -> list[Delta]:
        self._count_message()
        row = update[1:4]
        targets = self._targets(row)
        if targets is None:
            return []
        self.statistics.relevant += bool(targets)
        transaction = self._transaction
        if transaction is None or not self._by_transaction:
            if not self._is_effective(update[0], row, self._graph.holds(row)):
                return []
            if transaction is not None:
                transaction.changes.append((update[0], row))
                transaction.time = update[4]
            return self._change(update[0], row, targets, update[4])
        present = transaction.presence.get(row)
        if self._is_effective(update[0], row, self._graph.holds(row) if present is None else present):
            transaction.presence[row], transaction.time = update[0] == INSERT, update[4]
        return []

    def _targets(self, row: Row) -> Targets | None:
        """The patterns that a triple unifies with; None when it is dropped at the door."""
        targets = self._dispatch.matches(row)
        if targets or self._retains_all:
            return targets
        self._has_dropped = True
        return None

    def _count_message(self) -> None:
        self.seq += 1
        self.statistics.messages += 1
        if self._transaction is not None:
            self._transaction.messages += 1

    def _is_effective(self, op: str, row: Row, is_present: bool) -> bool:
        """Whether the operation changes the graph, which is a set; counts it, or with strict refuses it, if not."""
        if is_present != (op == INSERT):
            return True
        if self._strict:
            what = "inserts a triple that is there already" if op == INSERT else "deletes a triple that is not there"
            raise NoEffectError(f"message {self.seq} {what}: {Triple(*map(of_canonical, row))}")
        if op == INSERT:
            self.statistics.repeated_inserts += 1
        else:
            self.statistics.absent_deletes += 1
        return False

    def _change(self, op: str, row: Row, targets: Targets, time: str) -> list[Delta]:
        """Applies one effective change that stands alone."""
        triple = self._graph.add(row) if op == INSERT else self._graph.take_out(row)
        deltas: list[Delta] = []
        for registration, patterns in _by_registration(targets):
            deltas.extend(registration.deltas(registration.change(op, triple, patterns), self.seq, time))
        if op != INSERT:
            self._graph.release(triple)
        self.statistics.deltas += len(deltas)
        return deltas

    def _change_as_one(self, changes: Iterable[Change], time: str) -> list[Delta]:
        """Applies effective changes as one: what one adds to an answer and another takes away is not reported."""
        net: dict[Registration, Counter[Values]] = {}
        taken_out: list[IdTriple] = []
        for op, row in changes:
            targets = self._targets(row)
            if targets is None:
                continue
            triple = self._graph.add(row) if op == INSERT else self._graph.take_out(row)
            if op != INSERT:
                taken_out.append(triple)  # its ids stay in use until the deltas are terms
            for registration, patterns in _by_registration(targets):
                counts = net.setdefault(registration, Counter())
                for sign, values in registration.change(op, triple, patterns):
                    counts[values] += 1 if sign == ADDED else -1
        deltas = [
            delta
            for registration, counts in net.items()
            for delta in registration.deltas(_signed(counts), self.seq, time)
        ]
        for triple in taken_out:
            self._graph.release(triple)
        self.statistics.deltas += len(deltas)
        return deltas

    # Transactions and malformed rows ---------------------------------------------------------------------------------

    def _mark(self, mark: Mark, on_malformed: OnMalformed | None) -> list[Delta]:
        transaction = self._transaction
        if mark is Mark.BEGIN:
            if transaction is None:
                self._transaction = Transaction()
            else:
                self._reject(self._misplaced(mark, "a transaction is open already"), on_malformed)
            return []
        if transaction is None:
            self._reject(self._misplaced(mark, "no transaction is open"), on_malformed)
            return []
        self._transaction = None
        self.statistics.committed += mark is Mark.COMMIT
        self.statistics.aborted += mark is Mark.ABORT
        if self._by_transaction:
            changes = [] if mark is Mark.ABORT else transaction.net(self._graph.holds)
        else:
            changes = [] if mark is Mark.COMMIT else transaction.undo(self._graph.holds)
        return self._change_as_one(changes, transaction.time)

    def _misplaced(self, mark: Mark, why: str) -> Malformed:
        reason = f"{mark.value} after message {self.seq}, but {why}; the row is passed over"
        return Malformed("", 0, 1, reason, f"{mark.value} .", is_message=False)

    def _reject(self, malformed: Malformed, on_malformed: OnMalformed | None) -> None:
        self.statistics.malformed += 1
        if self._strict:
            raise RowError(malformed.reason, malformed.column, malformed.line, malformed.source)
        if on_malformed is not None:
            on_malformed(malformed)
        else:
            _log.warning("malformed row passed over: %s", malformed)

    # Queries that come late ------------------------------------------------------------------------------------------

    def _replay(self, registration: Registration) -> None:
        """Brings a new query up to date with what is retained."""
        own: Dispatch[int] = Dispatch()
        for index, pattern in enumerate(registration.plan.patterns):
            own.add(pattern, index)
        for triple in self._graph:
            if patterns := sorted(own.matches(self._graph.terms(triple))):
                for _ in registration.change(INSERT, triple, patterns):
                    pass

    def _covered_since(self, pattern: TriplePattern) -> int:
        """The seq after which no triple that unifies with the pattern was dropped; 0 if none ever was."""
        if not self._has_dropped:
            return 0
        covering = [
            registration.since_of_pattern[index]
            for registration in self._registrations.values()
            for index, other in enumerate(registration.plan.patterns)
            if other.subsumes(pattern)
        ]
        return min(covering, default=max(self.seq, 1))


def _by_registration(targets: Targets) -> Iterator[tuple[Registration, list[int]]]:
    """The patterns of each query that a triple unifies with, in the order of the query."""
    grouped: dict[Registration, list[int]] = {}
    for registration, pattern in targets:
        grouped.setdefault(registration, []).append(pattern)
    for registration, patterns in grouped.items():
        yield registration, sorted(patterns)


def _signed(counts: Counter[Values]) -> Iterator[tuple[str, Values]]:
    for row, count in counts.items():
        for _ in range(abs(count)):
            yield (ADDED if count > 0 else REMOVED), row


def _events(updates: str | os.PathLike[str] | Iterable[Event]) -> Iterator[Event]:
    if not isinstance(updates, str | os.PathLike):
        yield from updates
        return
    from deltastar.rdf.source import open_stream

    for batch in open_stream(os.fspath(updates)):
        yield from batch.events


def _graph_events(graph: str | os.PathLike[str] | Iterable[Triple]) -> Iterator[Event]:
    if not isinstance(graph, str | os.PathLike):
        yield from (Update.insert(*triple) for triple in graph)
        return
    from deltastar.rdf.source import read_graph

    for batch in read_graph(os.fspath(graph)):
        yield from batch.events
