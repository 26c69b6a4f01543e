"""The engine: owns the retained graph and the registered queries, applies events, reports deltas.

In: events (updates, transaction marks, malformed rows) in the order of the stream. Out: deltas of terms, in the order of
`seq`. Invariant between calls: the retained triples are those of the graph that unify with a pattern of a registered
query (all of them with `retain="all"`), each term of them has an id, and every evaluator is up to date with them.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from deltastar.delta import ADDED, REMOVED, Delta
from deltastar.errors import NoEffectError, RowError, UnknownQueryError, UsageError
from deltastar.paper.evaluator import PaperEvaluator
from deltastar.plan.decompose import Plan, make_plan
from deltastar.plan.dispatch import Dispatch
from deltastar.query.algebra import Query, TriplePattern
from deltastar.query.parse import parse_query
from deltastar.rdf.dictionary import NO_ID, Dictionary
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark, Update
from deltastar.registration import Evaluator, IdTriple, Registration, Values

_log = logging.getLogger("deltastar")

Row = tuple[Term, Term, Term]
OnMalformed = Callable[[Malformed], None]


@dataclass(slots=True)
class Statistics:
    """What an engine has seen. Repetitions are counted among relevant messages (all of them with `retain="all"`)."""

    messages: int = 0
    relevant: int = 0
    deltas: int = 0
    malformed: int = 0
    repeated_inserts: int = 0
    absent_deletes: int = 0
    transactions: int = 0
    aborted: int = 0
    discarded: int = 0


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
        self._dictionary = Dictionary()
        self._retained: set[IdTriple] = set()
        self._is_fresh = True
        self._transaction: _Transaction | None = None

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
        registration = Registration(
            name, plan, self._make_evaluator(plan), since, self._dictionary.term, self.unregister
        )
        own: Dispatch[int] = Dispatch()
        for index, pattern in enumerate(plan.patterns):
            own.add(pattern, index)
        for triple in self._retained:
            if patterns := sorted(own.matches(self._terms(triple))):
                for _ in registration.change(INSERT, triple, patterns):
                    pass
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
            stale = [triple for triple in self._retained if not self._dispatch.is_relevant(self._terms(triple))]
            for triple in stale:
                self._forget(triple)

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
        if self.seq:
            raise UsageError("the initial graph comes before the first message; this engine has had some")
        for event in _graph_events(graph):
            if isinstance(event, Malformed):
                self._reject(event, on_malformed)
            elif isinstance(event, Update):
                self._is_fresh = False
                yield from self._change_one(INSERT, event.triple, "")

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
            _log.warning("the stream ends inside a transaction: its %d rows are discarded", open_transaction.messages)
        return []

    def retained(self) -> Iterator[Triple]:
        """The triples that the engine keeps."""
        return (Triple(*self._terms(triple)) for triple in self._retained)

    # One message -----------------------------------------------------------------------------------------------------

    def _update(self, update: Update) -> list[Delta]:
        self._count_message()
        row = (update.subject, update.predicate, update.object)
        targets = self._dispatch.matches(row)
        if targets:
            self.statistics.relevant += 1
        elif not self._retains_all:
            return []
        if self._transaction is not None and self._by_transaction:
            present = self._transaction.presence.get(row)
            if self._is_effective(update.op, row, self._holds(row) if present is None else present):
                self._transaction.presence[row] = update.op == INSERT
                self._transaction.time = update.time
            return []
        if not self._is_effective(update.op, row, self._holds(row)):
            return []
        if self._transaction is not None:
            self._transaction.changes.append((update.op, row))
        return self._change_one(update.op, row, update.time, targets)

    def _count_message(self) -> None:
        self.seq += 1
        self._is_fresh = False
        self.statistics.messages += 1
        if self._transaction is not None:
            self._transaction.messages += 1

    def _is_effective(self, op: str, row: Row, is_present: bool) -> bool:
        """Whether the operation changes the graph, which is a set; counts it, or with strict refuses it, if not."""
        if is_present != (op == INSERT):
            return True
        if self._strict:
            what = "inserts a triple that is there already" if op == INSERT else "deletes a triple that is not there"
            raise NoEffectError(f"message {self.seq} {what}: {Triple(*row)}")
        if op == INSERT:
            self.statistics.repeated_inserts += 1
        else:
            self.statistics.absent_deletes += 1
        return False

    def _change_one(
        self, op: str, row: Row, time: str, targets: list[tuple[Registration, int]] | None = None
    ) -> list[Delta]:
        """Applies one change that stands alone. On the initial graph, a triple that is there already changes nothing."""
        targets = self._dispatch.matches(row) if targets is None else targets
        if op == INSERT and ((not targets and not self._retains_all) or self._holds(row)):
            return []
        deltas: list[Delta] = []
        triple = self._ids(row) if op == INSERT else self._find(row)
        for registration, patterns in _by_registration(targets):
            rows = registration.change(op, triple, patterns)
            deltas.extend(registration.deltas(rows, self.seq, time))
        self._settle(op, triple)
        self.statistics.deltas += len(deltas)
        return deltas

    def _change_many(self, changes: Iterable[tuple[str, Row]], time: str) -> list[Delta]:
        """Applies changes as one: what one of them adds to an answer and another one takes away is not reported."""
        net: dict[Registration, Counter[Values]] = {}
        released: list[IdTriple] = []
        for op, row in changes:
            targets = self._dispatch.matches(row)
            if not targets and not self._retains_all:
                continue
            triple = self._ids(row) if op == INSERT else self._find(row)
            for registration, patterns in _by_registration(targets):
                counts = net.setdefault(registration, Counter())
                for sign, values in registration.change(op, triple, patterns):
                    counts[values] += 1 if sign == ADDED else -1
            if op == INSERT:
                self._retained.add(triple)
            else:
                self._retained.discard(triple)
                released.append(triple)  # their ids stay in use until the deltas are terms
        deltas = [
            delta
            for registration, counts in net.items()
            for delta in registration.deltas(_signed(counts), self.seq, time)
        ]
        for triple in released:
            self._release(triple)
        self.statistics.deltas += len(deltas)
        return deltas

    # Transactions ----------------------------------------------------------------------------------------------------

    def _mark(self, mark: Mark, on_malformed: OnMalformed | None) -> list[Delta]:
        open_transaction = self._transaction
        if mark is Mark.BEGIN:
            if open_transaction is None:
                self._transaction = _Transaction()
            else:
                self._reject(self._misplaced(mark, "a transaction is open already"), on_malformed)
            return []
        if open_transaction is None:
            self._reject(self._misplaced(mark, "no transaction is open"), on_malformed)
            return []
        self._transaction = None
        self.statistics.transactions += mark is Mark.COMMIT
        self.statistics.aborted += mark is Mark.ABORT
        if self._by_transaction:
            return [] if mark is Mark.ABORT else self._change_many(self._net(open_transaction), open_transaction.time)
        if mark is Mark.COMMIT or not open_transaction.changes:
            return []
        return self._change_many(self._undo(open_transaction), "")

    def _net(self, transaction: _Transaction) -> Iterator[tuple[str, Row]]:
        """What the transaction changes in the end; deletions first, which keeps the intermediate answers small."""
        changed = [(row, present) for row, present in transaction.presence.items() if present != self._holds(row)]
        yield from ((DELETE, row) for row, present in changed if not present)
        yield from ((INSERT, row) for row, present in changed if present)

    def _undo(self, transaction: _Transaction) -> Iterator[tuple[str, Row]]:
        """The way back from its effective changes, where they still stand."""
        before: dict[Row, bool] = {}
        for op, row in transaction.changes:
            before.setdefault(row, op == DELETE)
        now = {row: self._holds(row) for row in before}
        yield from ((DELETE, row) for row, present in before.items() if now[row] and not present)
        yield from ((INSERT, row) for row, present in before.items() if present and not now[row])

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

    # The retained graph ----------------------------------------------------------------------------------------------

    def _terms(self, triple: IdTriple) -> Row:
        subject, predicate, object = triple
        term = self._dictionary.term
        return term(subject), term(predicate), term(object)

    def _find(self, row: Row) -> IdTriple:
        find = self._dictionary.find
        return find(row[0]), find(row[1]), find(row[2])

    def _holds(self, row: Row) -> bool:
        triple = self._find(row)
        return NO_ID not in triple and triple in self._retained

    def _ids(self, row: Row) -> IdTriple:
        acquire = self._dictionary.acquire
        return acquire(row[0]), acquire(row[1]), acquire(row[2])

    def _settle(self, op: str, triple: IdTriple) -> None:
        if op == INSERT:
            self._retained.add(triple)
        else:
            self._forget(triple)

    def _forget(self, triple: IdTriple) -> None:
        self._retained.discard(triple)
        self._release(triple)

    def _release(self, triple: IdTriple) -> None:
        for id_ in triple:
            self._dictionary.release(id_)

    def _covered_since(self, pattern: TriplePattern) -> int:
        """The seq after which no triple that unifies with the pattern was dropped."""
        if self._is_fresh or self._retains_all:
            return 0
        covering = [
            registration.since_of_pattern[index]
            for registration in self._registrations.values()
            for index, other in enumerate(registration.plan.patterns)
            if other.subsumes(pattern)
        ]
        return min(covering, default=max(self.seq, 1))


class _Transaction:
    """An open transaction: by message the changes made, by transaction what each triple's presence is to be."""

    __slots__ = ("changes", "messages", "presence", "time")

    def __init__(self) -> None:
        self.changes: list[tuple[str, Row]] = []
        self.presence: dict[Row, bool] = {}
        self.messages = 0
        self.time = ""


def _by_registration(targets: list[tuple[Registration, int]]) -> Iterator[tuple[Registration, list[int]]]:
    """The patterns of each query that a triple unifies with, in the order of the query."""
    if len(targets) == 1:
        registration, pattern = targets[0]
        yield registration, [pattern]
        return
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
