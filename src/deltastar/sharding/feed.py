"""Packed splits into a machine: the intake of a shard.

In: blobs of a batch, in the order of the stream. Out: blocks of deltas, like those of any intake. What the router has
counted is not counted again; what it has found wrong is handed on in its place among the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deltastar import layout as at
from deltastar import scan_layout as scanned
from deltastar.delivery import Block
from deltastar.evaluation import misplaced
from deltastar.intake import COLLECT_AT, Intake, Reject
from deltastar.layout import Ints
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.update import Mark
from deltastar.sharding.packed import HAS_DROPPED, LETTER, MUTED, Packed, read_letter, read_mark
from deltastar.sharding.residue import Residue

_MARKS = {scanned.BEGIN: Mark.BEGIN, scanned.COMMIT: Mark.COMMIT, scanned.ABORT: Mark.ABORT}
_SPAN = 1 << 30
"""Places that are further apart than this are admitted apart: a row's record counts messages in 31 bits."""


class PackedIntake(Intake):
    """Messages on their way from a router into a shard's machine."""

    _lines_before = 0
    transaction = 0
    """Numbers the transactions, in transaction granularity."""

    def feed(self, packed: Packed, source: str, lines_before: int, base: int, reject: Reject) -> Iterator[Block]:
        """Applies a split's rows. The seq of a row is its place behind `base`."""
        self._lines_before = lines_before
        statistics, cursor = self._statistics, self._cursor
        before = statistics.repeated_inserts, statistics.absent_deletes
        if packed.is_initial:
            cursor[at.U_IS_STRICT] = 0
        batch = Batch(Position("", 0, 1), source, bytes(packed.text), Syntax.PATCH)
        yield from self._rows_of(batch, packed, base, reject)
        yield from self.flush()
        self.collect(COLLECT_AT)
        cursor[at.U_RELEVANT] = 0  # the router has counted
        self.count()
        self.has_dropped |= bool(packed.flags & HAS_DROPPED)
        if packed.is_initial:
            statistics.repeated_inserts, statistics.absent_deletes = before
            cursor[at.U_IS_STRICT] = self._rules.is_strict

    def _rows_of(self, batch: Batch, packed: Packed, base: int, reject: Reject) -> Iterator[Block]:
        machine, cursor, rows = self._machine, self._scan, self._rows
        data, length = self._bring(batch)
        while cursor[scanned.S_AT] < length:
            line = int(cursor[scanned.S_LINES])
            count = self._scan_rows(data, length, scanned.PATCH, machine.terms.keys, machine.predicates, cursor, rows)
            records = rows[: count * scanned.ROW].reshape(count, scanned.ROW)
            places = packed.places[line + records[:, scanned.R_LINE] - 1]
            records[:, scanned.R_MUTED] = places & MUTED
            numbers = np.zeros_like(places) if packed.is_initial else places >> 1
            first = 0
            while first < count:
                start = int(numbers[first])
                last = first + int(np.searchsorted(numbers[first:], start + _SPAN))
                records[first:last, scanned.R_MESSAGE] = numbers[first:last] - start
                yield from self._admit(batch, data, last, base + start, 0, reject, 1, first)
                first = last

    def _special(self, batch: Batch, row: list[int], seq: int, line: int, reject: Reject) -> Iterator[Block]:
        kind = row[scanned.R_KIND]
        text = bytes(batch.data[row[scanned.R_TEXT] : row[scanned.R_TEXT + 1]])
        if kind == scanned.OTHER and text.startswith(LETTER):
            yield from self._reject(read_letter(text, batch.source, self._lines_before), reject)
        elif kind in _MARKS:
            yield from self._special_mark(_MARKS[kind], batch.source, text, seq, reject)
        else:
            yield from super()._special(batch, row, seq, line, reject)

    def _special_mark(self, mark: Mark, source: str, text: bytes, seq: int, reject: Reject) -> Iterator[Block]:
        is_open = bool(self._cursor[at.U_IS_OPEN])
        if is_open != (mark is Mark.BEGIN):
            yield from self.mark(mark, seq)
        elif b"#" in text:  # of shard 0, which reports it
            place = read_mark(text, self._lines_before)
            yield from self._reject(misplaced(mark, is_open, seq, source, *place), reject)

    # Between batches -------------------------------------------------------------------------------------------------

    def note(self, residue: Residue) -> Ints:
        """Says where admission stands, and gives the messages that wait."""
        cursor = self._cursor
        self.transaction += int(cursor[at.U_BEGUN])
        cursor[at.U_BEGUN] = 0
        residue.has_dropped, residue.is_open = int(self.has_dropped), int(cursor[at.U_IS_OPEN])
        residue.opened_at, residue.waiting_absent = self.opened_at or 0, int(cursor[at.U_WAITING_ABSENT])
        residue.transaction = self.transaction
        messages = self.waiting
        if len(messages) == 0:
            return np.zeros((0, at.WAITING), np.int32)
        muted = self._machine.muted[self._written - len(messages) : self._written]
        return np.column_stack([messages, muted])

    def open_as(self, residue: Residue) -> None:
        """After the rows of an open transaction: what else is known of it. The counts are those of the run."""
        self._forget_counts()
        self.has_dropped = bool(residue.has_dropped)
        self._cursor[at.U_WAITING_ABSENT] = residue.waiting_absent
        if residue.is_open:
            self._numbers[0] = residue.opened_at

    def resume(self, residue: Residue, waiting: Ints) -> None:
        """Goes on from there."""
        cursor, machine = self._cursor, self._machine
        self._forget_counts()
        self.has_dropped, self.transaction = bool(residue.has_dropped), residue.transaction
        cursor[at.U_IS_OPEN], cursor[at.U_WAITING_ABSENT] = residue.is_open, residue.waiting_absent
        cursor[at.U_BEGUN] = cursor[at.U_GROUP] = cursor[at.U_MIXED] = cursor[at.U_GROUP_END] = 0
        self._written = 0
        if residue.is_open and self._rules.by_transaction:
            count = len(waiting) + 1
            self._lengthen(count)
            assert machine.table  # the private arrays are as long as the messages from here on
            messages = machine.messages.reshape(-1, at.MESSAGE)
            messages[0] = at.OP_NONE
            messages[1:count] = waiting[:, : at.MESSAGE]
            machine.muted[0], machine.muted[1:count] = 0, waiting[:, at.MESSAGE]
            self._numbers[0] = residue.opened_at
            self._written = count
