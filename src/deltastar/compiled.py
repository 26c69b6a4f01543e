"""The kernel as an evaluation: a machine, and what leads into it and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from deltastar import layout as at
from deltastar.delivery import Block, Delivery, Writer
from deltastar.delta import Delta
from deltastar.evaluation import Rules, refuse_row
from deltastar.intake import NAMES, Intake, Reject
from deltastar.machine import Machine
from deltastar.plan.program import Compiled
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import DELETE, INSERT, Mark
from deltastar.registration import Registration
from deltastar.sink.encode import Variables
from deltastar.statistics import Statistics
from deltastar.transaction import Row, Transaction

_CHECKPOINT = Position("the checkpoint", 0, 1)


class CompiledAnswer:
    """One query, and where its rows come from."""

    def __init__(self, machine: Machine, compiled: Compiled) -> None:
        self._machine, self.compiled = machine, compiled

    def rows(self) -> Iterator[tuple[Term, ...]]:
        columns, term = self.compiled.columns, self._machine.term
        for block in self._machine.rows(self.compiled):
            for row in block[:, columns].tolist():
                yield tuple(map(term, row))

    def count(self) -> int:
        return self._machine.size(self.compiled)


class CompiledEvaluation:
    """All queries in the kernel."""

    def __init__(self, rules: Rules, statistics: Statistics, machine: Machine | None = None) -> None:
        self.machine = Machine() if machine is None else machine
        if rules.retains_all:
            self.machine.retain_all()
        self._rules, self._statistics = rules, statistics
        self._delivery = Delivery(self.machine)
        self._intake = Intake(self.machine, self._delivery, rules, statistics)
        self._answers: dict[str, CompiledAnswer] = {}

    @property
    def has_dropped(self) -> bool:
        """Whether a triple was ever dropped because no query could match it."""
        self._intake.count()
        return self._intake.has_dropped

    @property
    def opened_at(self) -> int | None:
        """While a transaction is open: the seq before its first message."""
        return self._intake.opened_at

    # Queries ---------------------------------------------------------------------------------------------------------

    def add(self, registration: Registration) -> None:
        """Takes a query in: its answer starts with what is retained."""
        compiled = self.machine.add(registration.plan)
        self._delivery.add(registration, compiled)
        answer = self._answers[registration.name] = CompiledAnswer(self.machine, compiled)
        registration.answered_by(answer)

    def remove(self, registration: Registration) -> None:
        """Takes a query out, with the triples that no other one can match."""
        answer = self._answers.pop(registration.name)
        self._delivery.remove(registration.name)
        before = self.machine.triples
        self.machine.remove(answer.compiled)
        self._intake.has_dropped |= self.machine.triples < before
        self._intake.collect()

    # Messages --------------------------------------------------------------------------------------------------------

    def load(self, row: Row) -> list[Delta]:
        """Adds a triple of the initial graph."""
        statistics, intake = self._statistics, self._intake
        before = statistics.relevant
        deltas = intake.one(INSERT, row, 0, "")
        statistics.relevant = before
        self.machine.cursor[at.U_REPEATED] = 0
        return deltas

    def update(self, op: str, row: Row, seq: int, time: str) -> list[Delta]:
        """Applies a message."""
        return self._intake.one(op, row, seq, time)

    def begin(self, seq: int) -> None:
        """A transaction begins behind this message."""
        for _ in self._intake.mark(Mark.BEGIN, seq):
            pass
        for _ in self._intake.flush():
            pass

    def end(self, is_committed: bool, seq: int, time: str) -> list[Delta]:
        """The open transaction is committed, or taken back."""
        deltas = self._deltas(self._intake.mark(Mark.COMMIT if is_committed else Mark.ABORT, seq, time))
        deltas += self._deltas(self._intake.flush(time))
        self._intake.collect()
        return deltas

    def discard(self) -> None:
        """The open transaction is over: by transaction, its rows will not be applied."""
        self._intake.discard()

    def batch(self, batch: Batch, reject: Reject) -> Iterator[Block]:
        """Reads and applies a batch of rows: blocks of deltas."""
        return self._intake.batch(batch, reject)

    def load_batch(self, batch: Batch, reject: Reject) -> Iterator[Block]:
        """Reads and adds a batch of rows of the initial graph."""
        return self._intake.load(batch, reject)

    def writer(self, format: str, variables: Variables, with_time: bool = False) -> Writer:
        """Writes blocks to a sink that was opened with these."""
        return self._delivery.writer(format, variables, with_time)

    def watch(self, timed: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        """Has the stages of reading and evaluating timed: see `Intake.watch`."""
        self._intake.watch(timed)

    def count(self) -> None:
        """Brings the statistics up to date."""
        self._intake.count()

    def _deltas(self, blocks: Iterator[Block]) -> list[Delta]:
        return [delta for block in blocks for delta in block]

    # State -----------------------------------------------------------------------------------------------------------

    def retained(self) -> Iterator[Triple]:
        """The triples that are kept."""
        term = self.machine.term
        for block in self.machine.list_triples():
            for s, p, o in block.tolist():
                yield Triple(term(s), term(p), term(o))

    @property
    def terms_in_use(self) -> int:
        """How many terms have an id: those of the retained triples, and of the queries."""
        return self.machine.terms_in_use

    def transaction(self) -> Transaction | None:
        """The open transaction, in terms."""
        if self.opened_at is None:
            return None
        if self._rules.by_transaction:
            presence = {row: op == INSERT for op, row in self._texts(self._intake.waiting)}
            return Transaction(presence=presence, messages=self._statistics.messages - self.opened_at)
        counters, log = self.machine.arena.arrays["counters"], self.machine.arena.arrays["log"]
        first, last = int(counters[at.C_TRANSACTION_LOG]), int(counters[at.C_LOG_COUNT])
        changes = self._texts(log[first * at.MESSAGE : last * at.MESSAGE].reshape(-1, at.MESSAGE))
        return Transaction(changes=list(changes))

    def rows(self) -> Iterator[bytes]:
        """The same, as rows of RDF Patch, many at a time."""
        return self.machine.rows_of_triples()

    def restore(self, rows: Iterable[bytes], transaction: Transaction | None) -> None:
        """Takes over what another evaluation had, for the same queries."""
        for block in rows:
            for _ in self._intake.load(Batch(_CHECKPOINT, _CHECKPOINT.file, block, Syntax.PATCH), refuse_row):
                pass
        if transaction is None:
            return
        seq = self._statistics.messages
        self.begin(seq - transaction.messages)
        if self._rules.by_transaction:
            for row, present in transaction.presence.items():
                self.update(INSERT if present else DELETE, row, seq, "")
        else:
            self._restore_log(transaction)

    def _restore_log(self, transaction: Transaction) -> None:
        """By message, the changes are in the graph already: goes back before them, and makes them again."""
        changes = [(op, row) for op, row in transaction.changes]
        self._intake.discard()
        self.machine.arena.arrays["counters"][at.C_IN_TRANSACTION] = 0
        for op, row in reversed(changes):
            self.update(DELETE if op == INSERT else INSERT, row, 0, "")
        self.begin(0)
        for op, row in changes:
            self.update(op, row, 0, "")

    def _texts(self, messages: np.ndarray[tuple[int, int], np.dtype[np.int32]]) -> Iterator[tuple[str, Row]]:
        term = self.machine.term
        for op, s, p, o in messages.tolist():
            yield NAMES[op], (term(s), term(p), term(o))
