"""From chunks of bytes, or single rows, to messages of ids; and the messages applied, block by block.

In: batches of a source, in order. Out: blocks of deltas, each to be used up before the next is asked for. Rows that the
scanner does not read go to the exact reader. By message, a transaction is noted in the log, for an abort; by
transaction, its messages are a group, and wait for its end. Invariant between calls: every message is applied that is
not in the group of an open transaction; those are at the front of the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar import scan_layout as scanned
from deltastar.delivery import Block, Delivery
from deltastar.delta import Delta
from deltastar.evaluation import Rules, misplaced, no_effect
from deltastar.kernel import admit, journal, scan
from deltastar.layout import Ints
from deltastar.machine import Machine, full
from deltastar.rdf.batch import Batch
from deltastar.rdf.ntriples import Syntax, read_line
from deltastar.rdf.update import DELETE, INSERT, Malformed, Mark, Update
from deltastar.statistics import Statistics
from deltastar.transaction import Row

Reject = Callable[[Malformed], None]
_Stage = Callable[..., Any]
_SYNTAXES = {Syntax.PATCH: scanned.PATCH, Syntax.NTRIPLES: scanned.NTRIPLES, Syntax.NQUADS: scanned.NQUADS}
_KINDS = {Mark.BEGIN: scanned.BEGIN, Mark.COMMIT: scanned.COMMIT}
OPS = {INSERT: at.OP_INSERT, DELETE: at.OP_DELETE}
NAMES = {number: name for name, number in OPS.items()}
_ROWS = 1 << 12
COLLECT_AT = 256
_PLAIN = at.READY | at.RELEVANT
_FEW = 64
"""Numbers of output that are made to deltas one by one; arrays pay for themselves where there are more."""


class Intake:
    """Messages on their way into a machine."""

    def __init__(self, machine: Machine, delivery: Delivery, rules: Rules, statistics: Statistics) -> None:
        self.has_dropped = False
        self._machine, self._delivery, self._rules, self._statistics = machine, delivery, rules, statistics
        self._written = 0
        self._numbers: NDArray[np.int64] = np.zeros(len(machine.messages) // at.MESSAGE, np.int64)
        self._rows: Ints = np.zeros(_ROWS * scanned.ROW, np.int32)
        self._scan: NDArray[np.int64] = np.zeros(scanned.CURSOR, np.int64)
        self._data: NDArray[np.uint8] = np.zeros(1 << 18, np.uint8)
        self._cursor = machine.cursor
        self._scan_rows: _Stage = scan.scan_rows
        self._admit_rows: _Stage = admit.admit_rows
        self._step: _Stage = machine.step
        self._cursor[at.U_BY_TRANSACTION], self._cursor[at.U_IS_STRICT] = rules.by_transaction, rules.is_strict

    def watch(self, timed: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        """Has the stages timed by whoever asks: `timed(stage, function)` gives the function with a clock around it."""
        self._scan_rows = timed("parse", self._scan_rows)
        self._admit_rows = timed("encode", self._admit_rows)
        self._step = timed("evaluate", self._step)

    # Single rows and marks -------------------------------------------------------------------------------------------

    def one(self, op: str, row: Row, seq: int, time: str) -> list[Delta]:
        """Applies one message: the lean path. By transaction, one of an open transaction only waits."""
        if self._written:
            self._put(op, row, seq)
            return []
        machine = self._machine
        status, step, end, pending = machine.apply_one(OPS[op], row)
        if status == _PLAIN:
            self._statistics.relevant += 1
        else:
            self._note(status, op, row, seq)
        if step == at.DONE and end <= _FEW:
            found = self._delivery.few(end, seq, time) if end else []
            self._statistics.deltas += len(found)
        else:
            self._numbers[0] = seq
            found = [delta for block in self._steps(time, step) for delta in block]
        if pending > COLLECT_AT:
            machine.collect()
        return found

    def mark(self, mark: Mark, seq: int, time: str = "") -> Iterator[Block]:
        """Takes a transaction's mark, which is in its place."""
        if mark is Mark.ABORT:
            yield from self._abort(seq, time)
            return
        if self._written == len(self._numbers):
            yield from self.flush()
            self._make_room()
        self._written = int(admit.put_mark(self._machine.table, _KINDS[mark], self._written, seq, self._numbers))

    @property
    def opened_at(self) -> int | None:
        """While a transaction is open: the seq before it (by transaction), or 0."""
        if not self._cursor[at.U_IS_OPEN]:
            return None
        return int(self._numbers[self._cursor[at.U_GROUP]]) if self._rules.by_transaction else 0

    @property
    def waiting(self) -> Ints:
        """By transaction: the messages of the open transaction."""
        if not (self._rules.by_transaction and self._cursor[at.U_IS_OPEN]):
            return np.zeros((0, at.MESSAGE), np.int32)
        messages = self._machine.messages.reshape(-1, at.MESSAGE)
        return messages[self._cursor[at.U_GROUP] + 1 : self._written]

    def discard(self) -> None:
        """The open transaction is over. By transaction, its messages go; by message, they stand."""
        self._cursor[at.U_IS_OPEN] = 0
        if self._rules.by_transaction:
            self._written = int(self._cursor[at.U_GROUP])
            return
        machine = self._machine
        machine.arena.arrays["counters"][at.C_IN_TRANSACTION] = 0
        if not self._cursor[at.U_IS_LOGGED]:
            journal.clear_log(machine.table)

    def flush(self, time: str = "") -> Iterator[Block]:
        """Applies the messages that are there, up to the group of an open transaction."""
        machine, cursor = self._machine, self._cursor
        is_waiting = self._rules.by_transaction and cursor[at.U_IS_OPEN]
        count = int(cursor[at.U_GROUP]) if is_waiting else self._written
        if count == 0:
            return
        machine.start(count)
        yield from self._steps(time)
        left = self._written - count
        messages = machine.messages
        messages[: left * at.MESSAGE] = messages[count * at.MESSAGE : self._written * at.MESSAGE].copy()
        self._numbers[:left] = self._numbers[count : self._written].copy()
        machine.muted[:left] = machine.muted[count : self._written].copy()
        self._written = left
        cursor[at.U_GROUP] -= count

    def collect(self, at_least: int = 0) -> None:
        """Lets go of ids that nobody uses; those of waiting messages have no use yet."""
        if self._written == 0:
            self._machine.collect(at_least)

    def count(self) -> None:
        """Adds what the kernel has counted to the statistics."""
        cursor, statistics = self._cursor, self._statistics
        statistics.relevant += int(cursor[at.U_RELEVANT])
        statistics.repeated_inserts += int(cursor[at.U_REPEATED])
        statistics.absent_deletes += int(cursor[at.U_ABSENT])
        statistics.committed += int(cursor[at.U_COMMITTED])
        self.has_dropped |= bool(cursor[at.U_DROPPED])
        self._forget_counts()

    def _forget_counts(self) -> None:
        for counted in (at.U_RELEVANT, at.U_REPEATED, at.U_ABSENT, at.U_COMMITTED, at.U_DROPPED, at.U_EFFECTIVE):
            self._cursor[counted] = 0

    def _put(self, op: str, row: Row, seq: int) -> None:
        """Puts a message behind those that are there."""
        self._make_room()
        status = self._machine.admit(OPS[op], row, self._written)
        self._note(status, op, row, seq)
        if status & at.READY:
            self._numbers[self._written] = seq
            self._written += 1

    def _note(self, status: int, op: str, row: Row, seq: int) -> None:
        """Counts what became of a row on its way to a message."""
        if status & at.RELEVANT:
            self._statistics.relevant += 1
        elif status == at.DROPPED:
            self.has_dropped = True
        if status & at.ABSENT:
            if self._rules.is_strict:
                raise no_effect(op, row, seq)
            is_waiting = self._rules.by_transaction and self._cursor[at.U_IS_OPEN]
            self._cursor[at.U_WAITING_ABSENT if is_waiting else at.U_ABSENT] += 1

    def _make_room(self) -> None:
        if self._written == len(self._numbers):
            self._lengthen(self._written + 1)

    def _lengthen(self, messages: int) -> None:
        """Room for so many messages."""
        have = len(self._numbers)
        if messages > have:
            self._machine.set_messages_room(messages)
            more = len(self._machine.messages) // at.MESSAGE - have
            self._numbers = np.concatenate([self._numbers, np.zeros(more, np.int64)])

    def _steps(self, time: str = "", status: int | None = None) -> Iterator[Block]:
        """The blocks that come of the messages begun with; `status` is that of a step already made."""
        cursor = self._cursor
        while True:
            if status is None:
                cursor[at.U_OUT] = 0
                status = self._step()
            if cursor[at.U_OUT]:
                block = self._delivery.block(self._numbers, time)
                self._statistics.deltas += block.count
                yield block
            if status == at.NO_EFFECT:
                self._refuse()
            if status == at.DONE:
                cursor[at.U_MIXED] = cursor[at.U_GROUP_END] = 0
                return
            status = None

    def _refuse(self) -> None:
        message = int(self._cursor[at.U_FAULT])
        op, *ids = self._machine.messages[message * at.MESSAGE : (message + 1) * at.MESSAGE].tolist()
        s, p, o = (self._machine.term(id_) for id_ in ids)
        self._written = self._cursor[at.U_MIXED] = self._cursor[at.U_GROUP_END] = 0
        raise no_effect(NAMES[op], (s, p, o), int(self._numbers[message]))

    def _abort(self, seq: int, time: str) -> Iterator[Block]:
        """Takes the open transaction back."""
        self._statistics.aborted += 1
        if self._rules.by_transaction:
            self.discard()
            return
        yield from self.flush()
        machine = self._machine
        counters = machine.arena.arrays["counters"]
        first = int(counters[at.C_TRANSACTION_LOG])
        self._lengthen(int(counters[at.C_LOG_COUNT]) - first + 1)
        count = int(journal.write_undo(machine.table, first))
        self._numbers[:count] = seq
        machine.start(count)
        yield from self._steps(time)
        journal.close_undo(machine.table, first)
        self.discard()

    # Batches ---------------------------------------------------------------------------------------------------------

    def batch(self, batch: Batch, reject: Reject) -> Iterator[Block]:
        """Reads and applies a batch of rows of the stream."""
        yield from self._read(batch, reject, 1)
        self.count()

    def load(self, batch: Batch, reject: Reject) -> Iterator[Block]:
        """Reads and applies a batch of rows of the initial graph: at seq 0, and nothing is counted."""
        self._cursor[at.U_IS_STRICT] = 0
        relevant = self._statistics.relevant, self._statistics.absent_deletes
        yield from self._read(batch, reject, 0)
        self._statistics.relevant, self._statistics.absent_deletes = relevant
        self.has_dropped |= bool(self._cursor[at.U_DROPPED])
        self._forget_counts()
        self._cursor[at.U_IS_STRICT] = self._rules.is_strict

    def _read(self, batch: Batch, reject: Reject, stride: int) -> Iterator[Block]:
        assert batch.syntax is not None
        machine, cursor, rows = self._machine, self._scan, self._rows
        data, length = self._bring(batch)
        cursor[scanned.S_LINES] = batch.line - 1
        while cursor[scanned.S_AT] < length:
            base, line = self._statistics.messages, int(cursor[scanned.S_LINES])
            cursor[scanned.S_MESSAGES] = 0
            syntax = _SYNTAXES[batch.syntax]
            count = self._scan_rows(data, length, syntax, machine.terms.keys, machine.predicates, cursor, rows)
            yield from self._admit(batch, data, count, base, line, reject, stride)
            messages = int(cursor[scanned.S_MESSAGES])
            self.has_dropped |= count < messages
            self._statistics.messages = base + stride * messages
        batch.read_to(int(cursor[scanned.S_LINES]) + 1, bool(cursor[scanned.S_GRAPHS]))
        yield from self.flush()
        self.collect()

    def _bring(self, batch: Batch) -> tuple[NDArray[np.uint8], int]:
        """The batch's bytes where the scanner takes them from, their number, and its cursor at their beginning."""
        length = len(batch.data)
        if length > len(self._data):
            self._data = np.zeros(2 * length, np.uint8)
        self._data[:length] = np.frombuffer(batch.data, np.uint8)
        self._scan[:] = 0
        return self._data, length

    def _admit(
        self,
        batch: Batch,
        data: NDArray[np.uint8],
        count: int,
        base: int,
        line: int,
        reject: Reject,
        stride: int,
        first: int = 0,
    ) -> Iterator[Block]:
        """Makes messages of the scanner's rows, and applies them when there is no more room."""
        rows = self._rows
        while True:
            written, first, why = self._admit_rows(
                self._machine.table, data, rows, first, count, self._written, base, stride, self._numbers
            )
            self._written = written
            if why == at.ALL_ADMITTED:
                return
            if why == at.MESSAGES_FULL:
                yield from self.flush()
                self._make_room()
            elif why == at.SPECIAL:
                row = rows[first * scanned.ROW : (first + 1) * scanned.ROW].tolist()
                seq = self._statistics.messages = base + stride * row[scanned.R_MESSAGE]
                yield from self._special(batch, row, seq, line + row[scanned.R_LINE], reject)
                first += 1
            else:
                raise full(why)

    def _special(self, batch: Batch, row: list[int], seq: int, line: int, reject: Reject) -> Iterator[Block]:
        """A row that is no plain message, is out of place, or has no effect where that is an error."""
        kind = row[scanned.R_KIND]
        if kind in (scanned.ADD, scanned.DELETE):
            places = (scanned.R_SUBJECT, scanned.R_PREDICATE, scanned.R_OBJECT)
            s, p, o = (bytes(batch.data[row[place] : row[place + 1]]).decode() for place in places)
            yield from self.flush()
            raise no_effect(INSERT if kind == scanned.ADD else DELETE, (s, p, o), seq)
        assert batch.syntax is not None
        text = bytes(batch.data[row[scanned.R_TEXT] : row[scanned.R_TEXT + 1]])
        event, has_graph = read_line(text, batch.source, line, batch.syntax)
        batch.named_graphs |= has_graph
        if isinstance(event, Update):
            yield from self._put_row(event, seq)
        elif isinstance(event, Mark):
            is_open = bool(self._cursor[at.U_IS_OPEN])
            if is_open == (event is Mark.BEGIN):
                row_text = text.decode().rstrip("\r\n")
                yield from self._reject(misplaced(event, is_open, seq, batch.source, line, row_text), reject)
            else:
                yield from self.mark(event, seq)
        elif event is not None:
            yield from self._reject(event, reject)

    def _put_row(self, update: Update, seq: int) -> Iterator[Block]:
        if self._written == len(self._numbers) or self._rules.is_strict:
            yield from self.flush()
        self._put(update[0], update[1:4], seq)

    def _reject(self, malformed: Malformed, reject: Reject) -> Iterator[Block]:
        """Passes a row over. Strict, that is an error, behind everything that came before it."""
        if self._rules.is_strict:
            yield from self.flush()
        reject(malformed)
