"""From the kernel's runs of rows to deltas: as objects, as lines of text, as columns.

In: what a step has put out. Several queries may read one target, each with its own columns of its rows. A *block* is
valid until the next one is asked for: it is a view of the output, and of ids that may be free later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.delta import Binding, Delta
from deltastar.kernel import netting
from deltastar.layout import Ints
from deltastar.machine import Machine
from deltastar.plan.program import Compiled
from deltastar.registration import Registration
from deltastar.sink.base import DeltaSink
from deltastar.sink.columns import OPS, ColumnEncoder, deltas
from deltastar.sink.compiled import CompiledEncoder
from deltastar.sink.encode import Variables
from deltastar.sink.subscribers import Subscription

_Reader = tuple[dict[str, int], tuple[int, ...]]
"""A query's variables, by name: their positions; and their columns."""


class _Told(Protocol):
    """An encoder: it is told who reads what."""

    def replace(self, subscriptions: Iterable[Subscription]) -> None: ...


class Delivery:
    """Who reads what. Invariant: `_readers` holds the registered queries."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._readers: dict[str, Subscription] = {}
        self._is_stale = True
        self._told: dict[int, dict[str, _Reader]] = {}
        self._table: Ints = np.zeros(0, np.int32)
        self._width: Ints = np.zeros(0, np.int32)
        self._widths: dict[int, int] = {}
        self.objects = ColumnEncoder(None, self._widths)
        self._encoders: list[_Told] = [self.objects]

    def add(self, registration: Registration, compiled: Compiled) -> None:
        """From now on a query reads its target."""
        variables = tuple(variable.name for variable in registration.bound)
        self._readers[registration.name] = Subscription(registration.name, variables, compiled.target, compiled.columns)
        positions = {variable: position for position, variable in enumerate(variables)}
        self._told.setdefault(compiled.target, {})[registration.name] = positions, compiled.columns
        self._is_stale = True

    def remove(self, name: str) -> None:
        """A query reads no more."""
        target = self._readers.pop(name).target
        del self._told[target][name]
        if not self._told[target]:
            del self._told[target]
        self._is_stale = True

    def writer(self, format: str, variables: Variables, with_time: bool = False) -> Writer:
        """Writes blocks to a sink that was opened with these."""
        if format == "parquet":
            return Writer(None, self.columns(variables, with_time))
        return Writer(self.lines(format, variables, with_time), None)

    def lines(self, format: str, variables: Variables, with_time: bool = False) -> CompiledEncoder:
        """Makes lines of blocks, for an output with these variables."""
        encoder = CompiledEncoder(format, variables, self._widths, with_time)
        self._encoders.append(encoder)
        self._is_stale = True
        return encoder

    def columns(self, variables: Variables, with_time: bool = False) -> ColumnEncoder:
        """Makes columns of blocks, for an output with these variables."""
        encoder = ColumnEncoder(variables, self._widths, with_time)
        self._encoders.append(encoder)
        self._is_stale = True
        return encoder

    def block(self, numbers: NDArray[np.int64], time: str = "") -> Block:
        """What the last step has put out; `numbers` holds each message's seq."""
        machine = self.machine
        if self._is_stale:
            self._renew()
        out, end = machine.out, int(machine.cursor[at.U_OUT])
        if machine.cursor[at.U_MIXED]:
            out, end = self._netted(out, end)
        return Block(self, out, end, numbers, time)

    def few(self, end: int, seq: int, time: str = "") -> list[Delta]:
        """The same for a single message that brought little, as deltas: without arrays, which cost more than they."""
        machine, widths = self.machine, self.machine.program.widths
        numbers, term = machine.out[:end].tolist(), machine.term
        found, place = [], 0
        while place < end:
            target, _, sign, rows = numbers[place : place + at.O_HEADER]
            width = widths[target]
            place += at.O_HEADER
            stop = place + rows * width
            for name, (positions, columns) in self._told[target].items():
                for row in range(place, stop, width) if width else range(place, place + rows):
                    values = tuple([term(numbers[row + column]) for column in columns])
                    found.append(tuple.__new__(Delta, (name, seq, OPS[sign], Binding(positions, values), time)))
            place = stop
        return found

    def _netted(self, out: Ints, end: int) -> tuple[Ints, int]:
        groups = self.machine.groups
        rows, length = netting.sizes(out, end, groups, self._table, self._width)
        slots: Ints = np.zeros(1 << (2 * int(rows)).bit_length(), np.int32)
        entries: Ints = np.zeros(max(int(rows), 1) * at.NET, np.int32)
        result: Ints = np.zeros(max(int(length), 1), np.int32)
        return result, int(netting.net(out, end, groups, self._table, self._width, slots, entries, result))

    def _renew(self) -> None:
        """Makes the tables anew: a target of its own for each reader, behind those of the program."""
        program = self.machine.program
        own = nobody = program.targets
        table: list[int] = [nobody] * nobody + [0]
        self._widths.clear()
        self._widths.update(program.widths)
        subscriptions: list[Subscription] = []
        by_target: dict[int, list[Subscription]] = {}
        for reader in self._readers.values():
            by_target.setdefault(reader.target, []).append(reader)
        for target, readers in by_target.items():
            table[target] = len(table)
            table.append(len(readers))
            for reader in readers:
                width = len(reader.columns)
                table += [own, width, *reader.columns]
                self._widths[own] = width
                subscriptions += [reader, Subscription(reader.name, reader.variables, own, tuple(range(width)))]
                own += 1
        self._table = np.array(table, np.int32)
        self._width = np.zeros(own + 1, np.int32)
        for target, width in self._widths.items():
            self._width[target] = width
        for encoder in self._encoders:
            encoder.replace(subscriptions)
        self._is_stale = False


class Writer:
    """Writes blocks to a sink, without making objects of their deltas."""

    def __init__(self, lines: CompiledEncoder | None, columns: ColumnEncoder | None) -> None:
        self._lines, self._columns = lines, columns

    def write(self, block: Iterable[Delta], sink: DeltaSink) -> None:
        """Deltas that carry a time, or were made otherwise, go one by one."""
        if not isinstance(block, Block) or block.time:
            sink.write(block)
            return
        table = block.delivery.machine.table
        if self._lines is not None:
            for data, count in self._lines.encode(table, block.out, block.end, block.numbers):
                sink.write_encoded(data, count)
        if self._columns is not None:
            flat = self._columns.flatten(block.out, block.end, block.numbers)
            for batch in self._columns.arrow(table, flat):
                sink.write_columns(batch)


class Block:
    """Rows that messages bring, in the order of the messages."""

    def __init__(self, delivery: Delivery, out: Ints, end: int, numbers: NDArray[np.int64], time: str) -> None:
        self.delivery, self.numbers, self.time = delivery, numbers, time
        self.out, self.end = out, end

    @property
    def count(self) -> int:
        """How many deltas there are."""
        return self.delivery.objects.count(self.out, self.end)

    def __iter__(self) -> Iterator[Delta]:
        """The deltas."""
        delivery = self.delivery
        flat = delivery.objects.flatten(self.out, self.end, self.numbers)
        return deltas(flat, delivery.machine.term, self.time)
