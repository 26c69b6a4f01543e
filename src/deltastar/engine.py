"""The engine: registered queries by name, messages by number, and what is no update.

In: events (updates, transaction marks, malformed rows) in the order of the stream, or batches of rows. Out: deltas of
terms, in the order of `seq`. The triples and the answers belong to an evaluation: the kernel, or the paper's
algorithms. Invariant between calls: the retained triples are those of the graph that unify with a pattern of a
registered query (all of them with `retain="all"`), and every answer is up to date with them.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

from deltastar.delta import Delta
from deltastar.errors import RowError, UnknownQueryError, UsageError
from deltastar.evaluation import Evaluation, ReadsRows, Rules, misplaced
from deltastar.plan.decompose import make_plan
from deltastar.query.algebra import Query, TriplePattern
from deltastar.query.parse import parse_query
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.terms import Triple
from deltastar.rdf.update import Event, Malformed, Mark, Update
from deltastar.registration import Registration
from deltastar.sink.base import DeltaSink
from deltastar.sink.encode import Variables
from deltastar.statistics import Statistics
from deltastar.transaction import Transaction

_log = logging.getLogger("deltastar")

OnMalformed = Callable[[Malformed], None]
MakeEvaluation = Callable[[Rules, Statistics], Evaluation]
EVALUATIONS = ("kernel", "paper")
_NOWHERE = Position("", 0, 0)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An engine's state between two events: with the same queries, another engine continues from it."""

    seq: int
    statistics: Statistics
    transaction: Transaction | None
    rows: Iterable[bytes]
    """The retained triples: rows of RDF Patch, many at a time."""


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
        evaluation: str | MakeEvaluation = "kernel",
    ) -> None:
        if retain not in ("relevant", "all"):
            raise UsageError(f"retain={retain!r}: give 'relevant' or 'all'")
        if granularity not in ("message", "transaction"):
            raise UsageError(f"granularity={granularity!r}: give 'message' or 'transaction'")
        self._statistics = Statistics()
        self._strict = strict
        self._retains_all = retain == "all" or strict  # strict has to know of every triple whether it is there
        rules = Rules(self._retains_all, granularity == "transaction", strict)
        self._by_transaction = rules.by_transaction
        self._evaluation = _evaluation_named(evaluation)(rules, self._statistics)
        self._registrations: dict[str, Registration] = {}
        self._time = ""

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
        registration = Registration(name, plan, since, self.unregister)
        self._evaluation.add(registration)
        self._registrations[name] = registration
        return registration

    def unregister(self, name: str) -> None:
        """Stops keeping a query up to date, and drops the triples that no other one can match."""
        self._evaluation.remove(self.query(name))
        del self._registrations[name]

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
        for batch in _batches(updates):
            yield from self.process_batch(batch, on_malformed)
        yield from self.finish()

    def load(
        self, graph: str | os.PathLike[str] | Iterable[Triple], on_malformed: OnMalformed | None = None
    ) -> Iterator[Delta]:
        """Adds an initial graph (a path, or triples) and yields the answers that it brings, at seq 0."""
        for batch in _graph_batches(graph):
            for block in self.load_blocks(batch, on_malformed):
                yield from block

    def process(self, event: Event, on_malformed: OnMalformed | None = None) -> list[Delta]:
        """Applies one event of the stream: the deltas that it brings."""
        if isinstance(event, Update):
            seq = self._statistics.messages = self._statistics.messages + 1
            self._time = event[4]
            return self._evaluation.update(event[0], event[1:4], seq, event[4])
        if isinstance(event, Mark):
            return self._mark(event, on_malformed, "", lambda: (0, ""))
        if not isinstance(event, Malformed):
            raise UsageError(f"{event!r} is no update; give Update.insert(s, p, o), Update.delete(s, p, o) or a Mark")
        self._statistics.messages += event.is_message
        self._reject(event, on_malformed)
        return []

    def process_batch(self, batch: Batch, on_malformed: OnMalformed | None = None) -> Iterator[Delta]:
        """Applies a batch of the stream, and yields its deltas."""
        for block in self.blocks(batch, on_malformed):
            yield from block

    def blocks(self, batch: Batch, on_malformed: OnMalformed | None = None) -> Iterator[Iterable[Delta]]:
        """The same, by blocks; each is to be used up before the next is asked for."""
        evaluation = self._evaluation
        if isinstance(evaluation, ReadsRows) and not batch.is_read:
            return evaluation.batch(batch, lambda malformed: self._reject(malformed, on_malformed))
        return self._event_by_event(batch, on_malformed)

    def load_blocks(self, batch: Batch, on_malformed: OnMalformed | None = None) -> Iterator[Iterable[Delta]]:
        """Adds a batch of the initial graph: the answers that it brings, by blocks."""
        if self.seq:
            raise UsageError("the initial graph comes before the first message; this engine has had some")
        evaluation = self._evaluation
        if isinstance(evaluation, ReadsRows) and not batch.is_read:
            return evaluation.load_batch(batch, lambda malformed: self._reject(malformed, on_malformed))
        return (deltas for event in batch.events if (deltas := self._load(event, on_malformed)))

    def writer(self, format: str, variables: Variables) -> Callable[[Iterable[Delta], DeltaSink], object]:
        """Writes blocks to a sink that was opened with these."""
        if isinstance(self._evaluation, ReadsRows):
            return self._evaluation.writer(format, variables).write
        return lambda block, sink: sink.write(block)

    def finish(self) -> list[Delta]:
        """The stream has ended: by transaction, one that is still open is discarded."""
        opened_at = self._evaluation.opened_at
        if opened_at is None:
            return []
        self._evaluation.discard()
        if self._by_transaction:
            self._statistics.discarded += 1
            rows = self.seq - opened_at
            _log.warning("the stream ends inside a transaction (no TC): its %d rows are discarded", rows)
        return []

    @property
    def seq(self) -> int:
        """The number of the last message."""
        return self._statistics.messages

    @property
    def statistics(self) -> Statistics:
        """What the engine has seen so far."""
        self._evaluation.count()
        return self._statistics

    def retained(self) -> Iterator[Triple]:
        """The triples that the engine keeps."""
        return self._evaluation.retained()

    @property
    def terms_in_use(self) -> int:
        """How many terms have an id: those of the retained triples, and perhaps those of the queries."""
        return self._evaluation.terms_in_use

    def snapshot(self) -> Snapshot:
        """All that the engine knows besides its queries; read its rows before the next message."""
        transaction = copy.deepcopy(self._evaluation.transaction())
        return Snapshot(self.seq, replace(self.statistics), transaction, self._evaluation.rows())

    def restore(self, snapshot: Snapshot) -> None:
        """Continues from a snapshot, on a new engine with the same queries registered."""
        self._statistics.messages = snapshot.seq
        self._evaluation.restore(snapshot.rows, snapshot.transaction)
        for field in fields(Statistics):
            setattr(self.statistics, field.name, getattr(snapshot.statistics, field.name))

    # Marks and malformed rows ----------------------------------------------------------------------------------------

    def _load(self, event: Event, on_malformed: OnMalformed | None) -> list[Delta]:
        """Adds one triple of the initial graph."""
        if isinstance(event, Malformed):
            self._reject(event, on_malformed)
        return self._evaluation.load(event[1:4]) if isinstance(event, Update) else []

    def _event_by_event(self, batch: Batch, on_malformed: OnMalformed | None) -> Iterator[list[Delta]]:
        for index, event in enumerate(batch.events):
            if isinstance(event, Mark):
                deltas = self._mark(event, on_malformed, batch.source, partial(batch.place_of, index))
            else:
                deltas = self.process(event, on_malformed)
            if deltas:
                yield deltas

    def _mark(
        self, mark: Mark, on_malformed: OnMalformed | None, source: str, place: Callable[[], tuple[int, str]]
    ) -> list[Delta]:
        is_open = self._evaluation.opened_at is not None
        if is_open == (mark is Mark.BEGIN):
            self._reject(misplaced(mark, is_open, self.seq, source, *place()), on_malformed)
            return []
        if mark is Mark.BEGIN:
            self._evaluation.begin(self.seq)
            return []
        return self._evaluation.end(mark is Mark.COMMIT, self.seq, self._time)

    def _reject(self, malformed: Malformed, on_malformed: OnMalformed | None) -> None:
        self._statistics.malformed += 1
        if self._strict:
            raise RowError(malformed.reason, malformed.column, malformed.line, malformed.source)
        if on_malformed is not None:
            on_malformed(malformed)
        else:
            _log.warning("malformed row passed over: %s", malformed)

    # Queries that come late ------------------------------------------------------------------------------------------

    def _covered_since(self, pattern: TriplePattern) -> int:
        """The seq after which no triple that unifies with the pattern was dropped; 0 if none ever was."""
        if not self._evaluation.has_dropped:
            return 0
        covering = [
            registration.since_of_pattern[index]
            for registration in self._registrations.values()
            for index, other in enumerate(registration.plan.patterns)
            if other.subsumes(pattern)
        ]
        return min(covering, default=max(self.seq, 1))


def _evaluation_named(evaluation: str | MakeEvaluation) -> MakeEvaluation:
    if not isinstance(evaluation, str):
        return evaluation
    if evaluation == "kernel":
        from deltastar.compiled import CompiledEvaluation

        return CompiledEvaluation
    if evaluation == "paper":
        from deltastar.paper.evaluation import PaperEvaluation

        return PaperEvaluation
    raise UsageError(f"evaluation={evaluation!r}: give {' or '.join(map(repr, EVALUATIONS))}")


def _batches(updates: str | os.PathLike[str] | Iterable[Event]) -> Iterable[Batch]:
    if isinstance(updates, str | os.PathLike):
        from deltastar.rdf.source import open_stream

        return open_stream(os.fspath(updates))
    return (Batch.of([event], _NOWHERE, "") for event in updates)


def _graph_batches(graph: str | os.PathLike[str] | Iterable[Triple]) -> Iterable[Batch]:
    if isinstance(graph, str | os.PathLike):
        from deltastar.rdf.source import read_graph

        return read_graph(os.fspath(graph))
    return (Batch.of([Update.insert(*triple)], _NOWHERE, "") for triple in graph)
