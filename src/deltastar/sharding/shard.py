"""A shard: an engine for its share of the answers, which applies micro-batches exactly once, however often it is asked.

In: the packed splits of a batch, in the order of the stream. Out: pieces of encoded deltas and dead letters, in the
order of `seq`, of bounded size. The state is in an arena that any process of the machine can map. Before a batch is
applied, the arena is held against the journal: it is at the batch before; or one further, by an attempt that came to
nothing, which is taken back; or it is behind, and catches up from the journal; or it is of no use (another run's,
damaged, gone), and is made anew from the journal. Invariant after each call that was taken to its end: the arena is at
that batch, and so is the journal.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from deltastar.arena import H_DIRTY, H_OWNER, H_WRITER, read_header
from deltastar.errors import CheckpointError, NoEffectError, RowError, SourceError
from deltastar.plan.shares import Shares
from deltastar.rdf.terms import Term
from deltastar.rdf.update import Malformed
from deltastar.sharding.engine import ShardEngine, ShardSettings, digest_of, make_shares_of, owner_of
from deltastar.sharding.journal import Entry, Journal, MemoryJournal, Splits, chain_of
from deltastar.sharding.order import in_order
from deltastar.sharding.pieces import DELTAS, ERROR, REJECTS, Piece, Pieces, merge, rejects
from deltastar.sharding.snapshot import read_snapshot, write_snapshot
from deltastar.sink.base import doing
from deltastar.sink.encode import Variables
from deltastar.statistics import Statistics

__all__ = ["DELTAS", "ERROR", "REJECTS", "Piece", "Shard", "ShardSettings", "merge"]

_SPARE_BYTES = 64 << 20
_SPARE_TIMES = 8
"""Room that must be left where the arena is: when there is none, the system kills whoever writes to it."""


class Compaction(NamedTuple):
    """When a snapshot is due: when more was logged since the last one than these bytes, and than this share of it; or
    after so many batches."""

    log_bytes: int = 8 << 20
    share: float = 0.5
    batches: int = 4096


class Shard:
    """One shard of a run. Without a directory its arena is private memory, and goes with the process."""

    def __init__(
        self,
        settings: ShardSettings,
        journal: Journal | None = None,
        arena_directory: str | None = None,
        compaction: Compaction | None = None,
    ) -> None:
        self._settings, self._compaction = settings, compaction or Compaction()
        self._journal: Journal = MemoryJournal() if journal is None else journal
        self._shares: Shares = make_shares_of(settings)
        self._owner = owner_of(settings) ^ digest_of(_boot())
        self._token = secrets.randbits(62) | 1
        self._path: Path | None = None
        if arena_directory is not None:
            with doing(f"make the directory {arena_directory}"):
                Path(arena_directory).mkdir(parents=True, exist_ok=True)
            self._path = Path(arena_directory) / f"shard-{settings.shard}-of-{settings.shards}.arena"
        self._engine: ShardEngine | None = None
        self._encoder: Pieces | None = None
        self._inode = 0

    # Batches ---------------------------------------------------------------------------------------------------------

    def apply(self, batch: int, splits: Splits) -> Iterator[Piece]:
        """Applies a batch and gives what comes of it. Once all is taken, the journal has the batch.

        The same batch may be applied again, as long as no later one was: then the same pieces come. Batches are
        numbered upwards from 0. After a piece of the kind "error" the run is over.
        """
        with self._alone():
            before = self._before(batch)
            engine = self._go_to(before)
            self._check_room(splits)
            engine.begin()
            is_whole = False
            try:
                for piece in self._pieces(engine, splits):
                    yield piece
                    if piece.kind == ERROR:
                        return
                chain = chain_of(before.chain if before else 0, batch, splits)
                engine.residue.logged += 1
                engine.residue.logged_bytes += sum(len(blob) for _, blob in splits)
                engine.commit(batch + 1, chain)
                self._journal.log(batch, chain, splits)
                self._snapshot_if_due(engine, batch, chain)
                is_whole = True
            finally:
                if not is_whole and self._path is None:
                    self._engine = None

    def answers(self, name: str) -> Iterator[tuple[Term, ...]]:
        """This shard's part of a query's answer, each row as often as it is one, in the order of `variables`."""
        with self._alone():
            answer = self._current().answers.get(name)
            yield from answer.rows() if answer is not None else ()

    def statistics(self) -> Statistics:
        """What this shard adds to the statistics of the run: the sum over all shards is that of one engine."""
        with self._alone():
            own = replace(self._current().statistics)
        if self._settings.shard:
            for field in ("messages", "relevant", "malformed", "committed", "aborted", "discarded"):
                setattr(own, field, 0)
        return own

    def waiting_messages(self) -> int | None:
        """By transaction, while one is open: how many messages ago it was opened. What a finite stream discards."""
        with self._alone():
            engine = self._current()
            if not (engine.residue.is_open and engine.rules.by_transaction):
                return None
            return engine.statistics.messages - engine.residue.opened_at

    @property
    def triples(self) -> int:
        """How many triples are retained."""
        with self._alone():
            return self._current().machine.triples

    @property
    def variables(self) -> Variables:
        """For each query of the run, the names of the variables that it reports."""
        return {query.name: query.plan.query.names for query in self._shares.queries}

    def _pieces(self, engine: ShardEngine, splits: Splits) -> Iterator[Piece]:
        pieces = self._pieces_of(engine)
        letters: list[Malformed] = []
        try:
            for source, packed in in_order(splits):
                for block in engine.feed(source, packed, self._taker(engine, letters)):
                    yield from pieces.add(block)
                    yield from self._letters(engine, letters)
                yield from self._letters(engine, letters)
        except (NoEffectError, RowError) as error:
            yield from pieces.finish()
            seq = error.seq if isinstance(error, NoEffectError) else engine.statistics.messages
            yield Piece(seq, seq, ERROR, str(error))
            return
        yield from pieces.finish()

    def _before(self, batch: int) -> Entry | None:
        """The journal's entry before a batch. An attempt that comes when others are far ahead would find a hole."""
        before = self._journal.entry(batch - 1)
        if (before is None or before.batch < batch - 1) and (latest := self._journal.latest()) > batch:
            raise CheckpointError(
                f"batch {batch} of shard {self._settings.shard} comes too late: its journal is at batch {latest}, and "
                "there is no way back"
            )
        return before

    def _pieces_of(self, engine: ShardEngine) -> Pieces:
        """What encodes for this engine; it is made once, for the engine remembers its encoders."""
        if self._encoder is None or self._encoder.engine is not engine:
            self._encoder = Pieces(engine, self._settings.format, self.variables)
        self._encoder.start()
        return self._encoder

    def _taker(self, engine: ShardEngine, letters: list[Malformed]) -> Callable[[Malformed], None]:
        """Takes dead letters: those that every shard sees are shard 0's."""

        def take(row: Malformed) -> None:
            if self._settings.shard == 0:
                engine.statistics.malformed += 1
                if self._settings.strict:
                    raise RowError(row.reason, row.column, row.line, row.source)
                letters.append(row)

        return take

    def _letters(self, engine: ShardEngine, letters: list[Malformed]) -> Iterator[Piece]:
        if letters:
            yield rejects(letters, engine.statistics.messages)
            letters.clear()

    def _snapshot_if_due(self, engine: ShardEngine, batch: int, chain: int) -> None:
        residue, compaction = engine.residue, self._compaction
        room = max(compaction.log_bytes, compaction.share * residue.snapshot_bytes)
        if residue.logged_bytes > room or residue.logged >= compaction.batches:
            residue.snapshot_bytes = self._journal.snapshot(batch, chain, write_snapshot(engine))
            residue.logged = residue.logged_bytes = 0
            engine.residues.amend(residue)

    # The arena -------------------------------------------------------------------------------------------------------

    def _go_to(self, entry: Entry | None) -> ShardEngine:
        """The engine in the state after that entry of the journal."""
        engine = self._attached()
        version, chain = (entry.batch + 1, entry.chain) if entry else (0, 0)
        if engine is not None and engine.is_at(version, chain):
            return engine
        if engine is not None and engine.was_at(version, chain):
            engine.undo()
            return engine
        if engine is not None and entry is not None and self._catch_up(engine, entry):
            return engine
        return self._make_anew(entry)

    def _current(self) -> ShardEngine:
        """The engine as the arena has it; made from the journal if there is none."""
        engine = self._attached()
        if engine is None or not engine.is_whole:
            engine = self._make_anew(self._journal.entry(_LAST))
        return engine

    def _attached(self) -> ShardEngine | None:
        """The engine on the arena that is there, if it is ours."""
        engine = self._engine
        if self._path is None:
            return engine
        header = read_header(self._path)
        if header[H_OWNER] != self._owner or header[H_DIRTY]:
            self._engine = None  # of another run, of another version of deltastar, or damaged
            return None
        inode = self._path.stat().st_ino
        if engine is None or inode != self._inode or not engine.machine.is_current:
            engine = ShardEngine(self._settings, self._shares, str(self._path))
            self._engine, self._inode = engine, inode
        if header[H_WRITER] != self._token:
            engine.resume()
            engine.machine.arena.header[H_WRITER] = self._token
        return engine

    def _make_anew(self, entry: Entry | None) -> ShardEngine:
        """An engine of its own, from the journal; then it takes the place of what was there."""
        self._engine = None
        temporary = self._path.with_name(self._path.name + ".new") if self._path else None
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        engine = ShardEngine(self._settings, self._shares, str(temporary) if temporary else None)
        engine.machine.arena.header[H_OWNER] = self._owner
        engine.machine.arena.header[H_WRITER] = self._token
        version, chain = 0, 0
        if entry is not None:
            recovery = self._journal.read(entry.batch)
            if recovery.snapshot is not None:
                read_snapshot(engine, recovery.chunks)
                version, chain = recovery.snapshot.batch + 1, recovery.snapshot.chain
                engine.residue.snapshot_bytes = recovery.snapshot.size
            version, chain = self._replay(engine, version, chain, recovery.batches)
            if (version, chain) != (entry.batch + 1, entry.chain):
                raise CheckpointError(
                    f"the journal of shard {self._settings.shard} leads to batch {version - 1} and not to "
                    f"{entry.batch}; remove the checkpoint to start anew"
                )
        engine.commit(version, chain)
        if temporary is not None and self._path is not None:
            temporary.replace(self._path)
            self._inode = self._path.stat().st_ino
        self._engine = engine
        return engine

    def _catch_up(self, engine: ShardEngine, entry: Entry) -> bool:
        """Applies what was logged since the arena's state, if that state is one of this journal's."""
        version, chain = engine.state
        if not engine.is_whole or version > entry.batch:
            return False
        if version:
            known = self._journal.entry(version - 1)
            if known is None or (known.batch + 1, known.chain) != (version, chain):
                return False
        recovery = self._journal.read(entry.batch, version - 1)
        if recovery.snapshot is not None:
            return False
        engine.begin()
        version, chain = self._replay(engine, version, chain, recovery.batches)
        if (version, chain) != (entry.batch + 1, entry.chain):
            return False
        engine.commit(version, chain)
        return True

    def _replay(
        self, engine: ShardEngine, version: int, chain: int, batches: Iterator[tuple[Entry, Splits]]
    ) -> tuple[int, int]:
        """Applies logged batches without telling anybody; how far that led."""
        for logged, splits in batches:
            if chain_of(chain, logged.batch, splits) != logged.chain:
                break
            for source, packed in in_order(splits):
                for _ in engine.feed(source, packed, self._taker(engine, [])):
                    pass
            version, chain = logged.batch + 1, logged.chain
            engine.residue.logged += 1
            engine.residue.logged_bytes += logged.size
        return version, chain

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else works on the arena meanwhile."""
        if self._path is None:
            yield
            return
        descriptor = os.open(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _check_room(self, splits: Splits) -> None:
        if self._path is None:
            return
        status = os.statvfs(self._path.parent)
        needed = _SPARE_BYTES + _SPARE_TIMES * sum(len(blob) for _, blob in splits)
        if status.f_bavail * status.f_frsize < needed:
            raise SourceError(
                f"there is no room left in {self._path.parent} for the state of shard {self._settings.shard}; "
                "use more machines, or keep the state elsewhere"
            )


_LAST = (1 << 62) - 1


def _boot() -> str:
    """What is different after the machine was started anew: memory that was mapped then may not all be on the disk."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text()
    return ""
