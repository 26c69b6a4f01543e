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
from deltastar.intake import Intake, Reject
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.packed import LETTER, MUTED, Packed, read_letter

_SPAN = 1 << 30
"""Places that are further apart than this are admitted apart: a row's record counts messages in 31 bits."""
_COLLECT_AT = 256


class PackedIntake(Intake):
    """Messages on their way from a router into a shard's machine."""

    _lines_before = 0

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
        self.collect(_COLLECT_AT)
        cursor[at.U_RELEVANT] = 0  # the router has counted
        self.count()
        if packed.is_initial:
            statistics.repeated_inserts, statistics.absent_deletes = before
            cursor[at.U_IS_STRICT] = self._rules.is_strict

    def _rows_of(self, batch: Batch, packed: Packed, base: int, reject: Reject) -> Iterator[Block]:
        machine, cursor, rows = self._machine, self._scan, self._rows
        length = len(batch.data)
        if length > len(self._data):
            self._data = np.zeros(2 * length, np.uint8)
        data = self._data
        data[:length] = np.frombuffer(batch.data, np.uint8)
        cursor[:] = 0
        while cursor[scanned.S_AT] < length:
            line = int(cursor[scanned.S_LINES])
            count = self._scan_rows(data, length, scanned.PATCH, machine.terms.keys, machine.predicates, cursor, rows)
            self._find_rows(machine.terms, data, rows, count)
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
        if row[scanned.R_KIND] == scanned.OTHER:
            text = bytes(batch.data[row[scanned.R_TEXT] : row[scanned.R_TEXT + 1]])
            if text.startswith(LETTER):
                yield from self._reject(read_letter(text, batch.source, self._lines_before), reject)
                return
        yield from super()._special(batch, row, seq, line, reject)
