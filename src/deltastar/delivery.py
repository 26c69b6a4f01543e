"""From the kernel's runs of rows to the deltas of queries.

In: what a step has put out. Out: deltas of terms. Several queries may read one target, each with its own columns of its
rows. A *block* is valid until the next one is asked for: it is a view of the output, and of ids that may be free later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.delta import ADDED, REMOVED, Binding, Delta
from deltastar.kernel import netting
from deltastar.layout import Ints
from deltastar.machine import Machine
from deltastar.plan.program import Compiled
from deltastar.rdf.terms import Term
from deltastar.registration import Registration

_SIGNS = {1: ADDED, -1: REMOVED}


class Reader(NamedTuple):
    """A query that reads a target, and the places of its variables in the target's rows."""

    registration: Registration
    columns: tuple[int, ...]


class Delivery:
    """Who reads what. Invariant: `readers` holds the registered queries."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._readers: dict[int, list[tuple[Reader, Compiled]]] = {}
        self._is_stale = True
        self._by_target: dict[int, list[Reader]] = {}
        self._table: Ints = np.zeros(0, np.int32)
        self._widths: Ints = np.zeros(0, np.int32)

    def add(self, registration: Registration, compiled: Compiled) -> None:
        """From now on a query reads its target."""
        entry = (Reader(registration, compiled.columns), compiled)
        self._readers.setdefault(compiled.target, []).append(entry)
        self._is_stale = True

    def remove(self, registration: Registration, compiled: Compiled) -> None:
        """The query reads no more."""
        kept = [entry for entry in self._readers[compiled.target] if entry[0].registration is not registration]
        self._readers[compiled.target] = kept
        if not kept:
            del self._readers[compiled.target]
        self._is_stale = True

    def block(self, numbers: NDArray[np.int64], time: str = "") -> Block:
        """What the last step has put out; `numbers` holds each message's seq."""
        machine = self._machine
        if self._is_stale:
            self._renew()
        out, end = machine.out, int(machine.cursor[at.U_OUT])
        if machine.cursor[at.U_MIXED] and end:
            out, end = self._netted(out, end)
        return Block(self, out, end, numbers, time)

    def readers_of(self, target: int) -> list[Reader]:
        """The queries that read a target."""
        return self._by_target.get(target, [])

    def width_of(self, target: int) -> int:
        """How wide a target's rows are."""
        return int(self._widths[target])

    def term(self, id_: int) -> Term:
        """The term with this id."""
        return self._machine.term(id_)

    def _netted(self, out: Ints, end: int) -> tuple[Ints, int]:
        groups = self._machine.groups
        rows, length = netting.sizes(out, end, groups, self._table, self._widths)
        slots: Ints = np.zeros(1 << (2 * int(rows)).bit_length(), np.int32)
        entries: Ints = np.zeros(max(int(rows), 1) * at.NET, np.int32)
        result: Ints = np.zeros(max(int(length), 1), np.int32)
        return result, int(netting.net(out, end, groups, self._table, self._widths, slots, entries, result))

    def _renew(self) -> None:
        """Makes the tables anew: a target of its own for each reader, behind those of the program."""
        program = self._machine.program
        own = program.targets
        self._by_target = {}
        widths = dict(program.widths)
        nobody = program.targets
        table: list[int] = [nobody] * program.targets + [0]
        for target, entries in self._readers.items():
            table[target] = len(table)
            table.append(len(entries))
            self._by_target[target] = [reader for reader, _ in entries]
            for reader, _ in entries:
                table += [own, len(reader.columns), *reader.columns]
                widths[own] = len(reader.columns)
                self._by_target[own] = [Reader(reader.registration, tuple(range(len(reader.columns))))]
                own += 1
        self._table = np.array(table, np.int32)
        self._widths = np.zeros(max(own, 1), np.int32)
        for target, width in widths.items():
            self._widths[target] = width
        self._is_stale = False


class Block:
    """Rows that messages bring, in the order of the messages."""

    def __init__(self, delivery: Delivery, out: Ints, end: int, numbers: NDArray[np.int64], time: str) -> None:
        self._delivery, self._numbers, self._time = delivery, numbers, time
        self.out, self.end = out, end

    @property
    def count(self) -> int:
        """How many deltas there are."""
        delivery, position, count = self._delivery, 0, 0
        while position < self.end:
            target, rows = int(self.out[position]), int(self.out[position + at.O_ROWS])
            count += rows * len(delivery.readers_of(target))
            position += at.O_HEADER + rows * delivery.width_of(target)
        return count

    def __iter__(self) -> Iterator[Delta]:
        """The deltas."""
        delivery, out, position = self._delivery, self.out, 0
        time = self._time
        while position < self.end:
            target, message, sign, count = out[position : position + at.O_HEADER].tolist()
            position += at.O_HEADER
            width = delivery.width_of(target)
            rows = out[position : position + count * width].reshape(count, width)
            position += count * width
            seq, op = int(self._numbers[message]), _SIGNS[sign]
            for registration, columns in delivery.readers_of(target):
                name, positions = registration.name, registration.positions
                for row in rows[:, columns].tolist():
                    yield Delta(name, seq, op, Binding(positions, tuple(map(delivery.term, row))), time)
