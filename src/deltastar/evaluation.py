"""What an engine asks of whoever evaluates: the kernel (`compiled.py`), or the paper's algorithms (`paper/`).

An evaluation owns the retained triples, the state of all registered queries, and the open transaction. The engine
numbers the messages, knows the queries by name, and deals with rows that are no updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

from deltastar.delta import Delta
from deltastar.errors import CheckpointError, NoEffectError
from deltastar.rdf.batch import Batch
from deltastar.rdf.terms import Triple, of_canonical
from deltastar.rdf.update import INSERT, Malformed, Mark
from deltastar.registration import Registration
from deltastar.sink.base import DeltaSink
from deltastar.sink.encode import Variables
from deltastar.transaction import Row, Transaction


@dataclass(frozen=True, slots=True)
class Rules:
    """How an engine was asked to work."""

    retains_all: bool = False
    by_transaction: bool = False
    is_strict: bool = False


class Evaluation(Protocol):
    """Updates in, deltas out. Invariant between calls: every query is up to date with the retained triples."""

    @property
    def has_dropped(self) -> bool:
        """Whether a triple was ever dropped because no query could match it."""

    @property
    def opened_at(self) -> int | None:
        """While a transaction is open: the seq before its first message."""

    def add(self, registration: Registration) -> None:
        """Takes a query in: its answer starts with what is retained."""

    def remove(self, registration: Registration) -> None:
        """Takes a query out, with the triples that no other one can match."""

    def load(self, row: Row) -> list[Delta]:
        """Adds a triple of the initial graph."""

    def update(self, op: str, row: Row, seq: int, time: str) -> list[Delta]:
        """Applies a message."""

    def begin(self, seq: int) -> None:
        """A transaction begins behind this message."""

    def end(self, is_committed: bool, seq: int, time: str) -> list[Delta]:
        """The open transaction is committed, or taken back."""

    def discard(self) -> None:
        """By transaction: the rows of the open transaction will not be applied."""

    def count(self) -> None:
        """Brings the statistics up to date."""

    def retained(self) -> Iterator[Triple]:
        """The triples that are kept."""

    @property
    def terms_in_use(self) -> int:
        """How many terms have an id: those of the retained triples, and perhaps those of the queries."""

    def transaction(self) -> Transaction | None:
        """The open transaction, in terms."""

    def rows(self) -> Iterator[bytes]:
        """The same, as rows of RDF Patch, many at a time."""

    def restore(self, rows: Iterable[bytes], transaction: Transaction | None) -> None:
        """Takes over what another evaluation had, for the same queries."""


def refuse_row(row: object) -> NoReturn:
    """A checkpoint holds rows that can be read, and no others."""
    raise CheckpointError(f"the checkpoint has a row that cannot be read: {row}; remove it to start anew")


class WritesBlocks(Protocol):
    """Brings blocks of deltas to a sink."""

    def write(self, block: Iterable[Delta], sink: DeltaSink) -> None:
        """Writes one."""


@runtime_checkable
class ReadsRows(Protocol):
    """An evaluation that reads rows itself, many at a time. It gives blocks of deltas, each valid until the next."""

    def writer(self, format: str, variables: Variables, with_time: bool = False) -> WritesBlocks:
        """Writes blocks to a sink that was opened with these."""

    def batch(self, batch: Batch, reject: Callable[[Malformed], None]) -> Iterator[Iterable[Delta]]:
        """Reads and applies a batch of rows."""

    def load_batch(self, batch: Batch, reject: Callable[[Malformed], None]) -> Iterator[Iterable[Delta]]:
        """Reads and adds a batch of rows of the initial graph."""


def no_effect(op: str, row: Row, seq: int) -> NoEffectError:
    """Strict: what is wrong with a message that changes nothing."""
    what = "inserts a triple that is there already" if op == INSERT else "deletes a triple that is not there"
    error = NoEffectError(f"message {seq} {what}: {Triple(*map(of_canonical, row))}")
    error.seq = seq
    return error


def misplaced(mark: Mark, is_open: bool, seq: int, source: str = "", line: int = 0, text: str = "") -> Malformed:
    """A mark where no such mark can be."""
    why = "a transaction is open already" if is_open else "no transaction is open"
    reason = f"{mark.value} after message {seq}, but {why}; the row is passed over"
    return Malformed(source, line, 1, reason, text or f"{mark.value} .", is_message=False)
