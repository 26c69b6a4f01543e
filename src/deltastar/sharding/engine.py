"""The engine of a shard: a machine with the shard's share of every query, and what leads into it and out of it.

Everything that must outlive a process is in the machine's arena; the rest is made from the settings, or is a cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deltastar.compiled import CompiledAnswer
from deltastar.delivery import Block, Delivery
from deltastar.evaluation import Rules
from deltastar.kernel.jit import CACHE
from deltastar.machine import Machine
from deltastar.plan.frequencies import Frequencies
from deltastar.plan.shares import QueryShares, Shares, make_shares
from deltastar.query.algebra import Query
from deltastar.rdf.update import Malformed
from deltastar.registration import Registration
from deltastar.sharding.feed import PackedIntake
from deltastar.sharding.packed import Packed
from deltastar.sharding.residue import Residue, Residues
from deltastar.sharding.router import plans_of
from deltastar.statistics import Statistics


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """What a shard is for. `queries` are all queries of the run, in order, by name."""

    queries: Mapping[str, str | Query]
    shard: int = 0
    shards: int = 1
    granularity: str = "message"
    strict: bool = False
    format: str = "jsonl"
    """`jsonl`, `csv` or `tsv`; `columns`, Arrow batches as in a Parquet output; `rows`, with bindings as maps."""
    frequencies: Frequencies | None = None

    def identity(self) -> dict[str, Any]:
        """What must be the same for a run to be continued, in a form that JSON can hold. See `journal.claim`."""
        plans = plans_of(self.queries)
        return {
            "queries": {name: str(plan.query) for name, plan in plans.items()},
            "shards": self.shards,
            "granularity": self.granularity,
            "strict": self.strict,
            "frequencies": self.frequencies.to_json() if self.frequencies else None,
        }


class ShardEngine:
    """The machine of a shard and its surroundings. `path` is that of its arena, if it has a file."""

    def __init__(self, settings: ShardSettings, shares: Shares, path: str | None = None) -> None:
        self.rules = Rules(settings.strict, settings.granularity == "transaction", settings.strict)
        self.machine = Machine(path, classes=shares.classes_on(settings.shard))
        if self.rules.retains_all:
            self.machine.retain_all()
        self.statistics = Statistics()
        self.delivery = Delivery(self.machine)
        self.intake = PackedIntake(self.machine, self.delivery, self.rules, self.statistics)
        self.answers: dict[str, CompiledAnswer] = {}
        for query in shares.queries:
            self._register(query, settings.shard)
        if self.machine.arena.is_new:
            self.machine.publish()
        self.machine.end_attach()
        self.residues = Residues(self.machine)
        self.residue = Residue()
        self.resume()

    def _register(self, query: QueryShares, shard: int) -> None:
        places = query.places_on(shard)
        if places is not None:
            compiled = self.machine.add(query.plan, places)
            registration = Registration(query.name, query.plan, {0: 0}, lambda name: None)
            self.delivery.add(registration, compiled)
            self.answers[query.name] = CompiledAnswer(self.machine, compiled)

    # Batches ---------------------------------------------------------------------------------------------------------

    def feed(self, source: str, packed: Packed, reject: Callable[[Malformed], None]) -> Iterator[Block]:
        """Applies a split."""
        residue, statistics = self.residue, self.statistics
        digest = digest_of(source)
        if digest != residue.source:
            residue.source, residue.lines = digest, 0
        messages, relevant = statistics.messages, statistics.relevant
        base = 0 if packed.is_numbered or packed.is_initial else messages

        def place(row: Malformed) -> None:
            reject(row if row.source else replace(row, source=source))

        yield from self.intake.feed(packed, source, residue.lines, base, place)
        residue.lines += packed.lines
        statistics.messages = messages + (0 if packed.is_initial else packed.messages)
        statistics.relevant = relevant + (0 if packed.is_initial else packed.relevant)

    def begin(self) -> None:
        """A batch begins that may be taken back."""
        self.machine.begin_batch()
        self.residues.begin()

    def commit(self, version: int, chain: int) -> None:
        """The batch is applied."""
        residue = self.residue
        residue.is_valid, residue.version, residue.chain = 1, version, chain
        residue.statistics = self.statistics
        self.residues.commit(residue, self.intake.note(residue))
        self.machine.commit_batch(version)

    def undo(self) -> None:
        """Takes the last batch back."""
        before = self.residues.before
        self.machine.undo_batch(before.version)
        self.residues.undo()
        self.resume()

    @property
    def state(self) -> tuple[int, int]:
        """Version and chain."""
        now = self.residues.now
        return now.version, now.chain

    @property
    def is_whole(self) -> bool:
        """Whether nobody died while working on the arena."""
        now = self.residues.now
        return not self.machine.is_dirty and bool(now.is_valid) and now.version == self.machine.version

    def is_at(self, version: int, chain: int) -> bool:
        """Whether this is the state."""
        return self.is_whole and self.state == (version, chain)

    def was_at(self, version: int, chain: int) -> bool:
        """Whether this was the state before the last batch, and can be again."""
        before = self.residues.before
        return self.is_whole and bool(before.is_valid) and (before.version, before.chain) == (version, chain)

    def set_counts(self, counts: Statistics) -> None:
        """The intake holds on to the object, so its fields are set."""
        for name in Statistics.__slots__:
            setattr(self.statistics, name, getattr(counts, name))

    def resume(self) -> None:
        """Goes on from the arena, whoever worked on it last."""
        self.machine.forget_terms()
        residue = self.residue = self.residues.now
        self.set_counts(residue.statistics)
        self.intake.resume(residue, self.residues.waiting_of(residue))


def make_shares_of(settings: ShardSettings) -> Shares:
    """The shares of a run's queries."""
    return make_shares(plans_of(settings.queries), settings.shards, settings.frequencies)


def owner_of(settings: ShardSettings) -> int:
    """A number for what an arena can be used by: this shard of a run, and this version of the kernel."""
    text = json.dumps([settings.identity(), settings.shard, CACHE.name], sort_keys=True)
    return digest_of(text)


def digest_of(text: str) -> int:
    """A number for a text; never 0."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1 | 1
