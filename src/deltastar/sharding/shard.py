"""A shard: an engine for its share of the answers, which applies micro-batches exactly once, however often it is asked.

In: the packed splits of a batch, in the order of the stream. Out: pieces of encoded deltas and dead letters, in the
order of `seq`, of bounded size. Invariant between calls: the state is that after the last batch that was applied, and
the journal has that batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from deltastar.compiled import CompiledAnswer
from deltastar.delivery import Block, Delivery
from deltastar.errors import InvariantError
from deltastar.evaluation import Rules
from deltastar.machine import Machine
from deltastar.plan.frequencies import Frequencies
from deltastar.plan.shares import QueryShares, make_shares
from deltastar.query.algebra import Query
from deltastar.rdf.terms import Term
from deltastar.rdf.update import Malformed
from deltastar.registration import Registration
from deltastar.sharding.feed import PackedIntake
from deltastar.sharding.journal import NOTHING, Journal, MemoryJournal, Splits, chain_of
from deltastar.sharding.packed import unpack
from deltastar.sharding.router import plans_of
from deltastar.sink.encode import Variables, json_text, utf8
from deltastar.statistics import Statistics

DELTAS, REJECTS, ERROR = "deltas", "rejects", "error"


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """What a shard is for. `queries` are all queries of the run, in order, by name."""

    queries: Mapping[str, str | Query]
    shard: int = 0
    shards: int = 1
    granularity: str = "message"
    strict: bool = False
    format: str = "jsonl"
    frequencies: Frequencies | None = None


class Piece(NamedTuple):
    """A part of the output. Its kind is "deltas", "rejects", or "error": what stops a strict run, as text."""

    first_seq: int
    last_seq: int
    kind: str
    data: Any
    """Encoded lines; or, by the format, an Arrow record batch."""


class Shard:
    """One shard of a run."""

    def __init__(
        self, settings: ShardSettings, journal: Journal | None = None, arena_directory: str | None = None
    ) -> None:
        self._settings = settings
        self._journal: Journal = MemoryJournal() if journal is None else journal
        self._batch, self._chain = NOTHING, 0
        self._is_whole = True
        self._make()

    # Batches ---------------------------------------------------------------------------------------------------------

    def apply(self, batch: int, splits: Splits) -> Iterator[Piece]:
        """Applies a batch and gives what comes of it. Once all is taken, the journal has the batch.

        The same batch may be applied again, as long as no later one was: then the same pieces come.
        """
        splits = [(source, bytes(blob)) for source, blob in splits]
        self._go_to(batch - 1)
        self._is_whole = False
        yield from self._pieces(splits)
        self._batch, self._chain = batch, chain_of(self._chain, batch, splits)
        self._journal.log(batch, self._chain, splits)
        self._is_whole = True

    def answers(self, name: str) -> Iterator[tuple[Term, ...]]:
        """This shard's part of a query's answer, each row as often as it is one, in the order of `variables`."""
        answer = self._answers.get(name)
        return answer.rows() if answer is not None else iter(())

    def statistics(self) -> Statistics:
        """What this shard adds to the statistics of the run: the sum over all shards is that of one engine."""
        own = replace(self._statistics)
        if self._settings.shard:
            for field in ("messages", "relevant", "malformed", "committed", "aborted", "discarded"):
                setattr(own, field, 0)
        return own

    @property
    def variables(self) -> Variables:
        """For each query of the run, the names of the variables that it reports."""
        return self._variables

    def _go_to(self, batch: int) -> None:
        """Brings the state to that after the last batch up to this one."""
        entry = self._journal.entry(batch)
        target = (entry.batch, entry.chain) if entry else (NOTHING, 0)
        if self._is_whole and (self._batch, self._chain) == target:
            return
        self._make()
        for logged, splits in self._journal.read(batch).batches:
            for _ in self._pieces(splits):
                pass
            self._batch, self._chain = logged.batch, logged.chain
        if (self._batch, self._chain) != target:
            raise InvariantError(f"the journal leads to batch {self._batch} and not to {target[0]}")
        self._is_whole = True

    # The engine ------------------------------------------------------------------------------------------------------

    def _make(self) -> None:
        settings = self._settings
        rules = Rules(settings.strict, settings.granularity == "transaction", settings.strict)
        self._shares = make_shares(plans_of(settings.queries), settings.shards, settings.frequencies)
        self._machine = Machine(classes=self._shares.classes_on(settings.shard))
        if rules.retains_all:
            self._machine.retain_all()
        self._statistics = Statistics()
        self._delivery = Delivery(self._machine)
        self._intake = PackedIntake(self._machine, self._delivery, rules, self._statistics)
        self._answers: dict[str, CompiledAnswer] = {}
        self._variables: dict[str, tuple[str, ...]] = {}
        for query in self._shares.queries:
            self._register(query)
        self._encode = self._encoder()
        self._source, self._lines = "", 0
        self._batch, self._chain = NOTHING, 0

    def _register(self, query: QueryShares) -> None:
        name, plan = query.name, query.plan
        self._variables[name] = plan.query.names
        places = query.places_on(self._settings.shard)
        if places is None:
            return
        compiled = self._machine.add(plan, places)
        registration = Registration(name, plan, {0: 0}, lambda name: None)
        self._delivery.add(registration, compiled)
        self._answers[name] = CompiledAnswer(self._machine, compiled)

    def _encoder(self) -> Callable[[Block], Iterator[tuple[int, int, Any]]]:
        settings, machine = self._settings, self._machine
        if settings.format in ("columns", "rows"):
            columns = self._delivery.columns(self._variables)

            def encode_columns(block: Block) -> Iterator[tuple[int, int, Any]]:
                flat = columns.flatten(block.out, block.end, block.numbers)
                make = columns.arrow if settings.format == "columns" else columns.maps
                for batch in make(machine.table, flat):
                    seqs = batch.column("seq")
                    yield seqs[0].as_py(), seqs[-1].as_py(), batch

            return encode_columns
        lines = self._delivery.lines(settings.format, self._variables)

        def encode(block: Block) -> Iterator[tuple[int, int, Any]]:
            flat = self._delivery.objects.flatten(block.out, block.end, block.numbers)
            for data, _ in lines.encode(machine.table, block.out, block.end, block.numbers):
                yield int(flat.seqs[0]), int(flat.seqs[-1]), bytes(data)

        return encode

    def _pieces(self, splits: Splits) -> Iterator[Piece]:
        for source, blob in splits:
            packed = unpack(blob)
            if source != self._source:
                self._source, self._lines = source, 0
            base = 0 if packed.is_numbered or packed.is_initial else self._statistics.messages
            rejected: list[Malformed] = []

            def reject(row: Malformed, source: str = source, rejected: list[Malformed] = rejected) -> None:
                rejected.append(row if row.source else replace(row, source=source))

            messages, relevant = self._statistics.messages, self._statistics.relevant
            for block in self._intake.feed(packed, source, self._lines, base, reject):
                yield from self._rejects(rejected)
                for first, last, data in self._encode(block):
                    yield Piece(first, last, DELTAS, data)
            yield from self._rejects(rejected)
            self._lines += packed.lines
            self._statistics.messages = messages + (0 if packed.is_initial else packed.messages)
            self._statistics.relevant = relevant + (0 if packed.is_initial else packed.relevant)

    def _rejects(self, rejected: list[Malformed]) -> Iterator[Piece]:
        if not rejected:
            return
        if self._settings.shard == 0:
            self._statistics.malformed += len(rejected)
            seq = self._statistics.messages
            yield Piece(seq, seq, REJECTS, b"".join(map(_letter, rejected)))
        rejected.clear()


def _letter(row: Malformed) -> bytes:
    fields_ = {"source": row.source, "line": row.line, "column": row.column, "reason": row.reason, "text": row.text}
    return utf8(json_text(fields_) + "\n")
