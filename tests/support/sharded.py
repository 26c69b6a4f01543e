"""A case through a router and several shards: cut into splits and batches anywhere, applied twice, or made anew."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from deltastar.engine import Engine
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term
from deltastar.rdf.update import Malformed
from deltastar.reference import ReferenceEngine
from deltastar.sharding.journal import FileJournal, Journal, MemoryJournal, Splits
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Compaction, Piece, Shard, ShardSettings
from tests.support.batches import text_of
from tests.support.generate import Case
from tests.support.judge import Difference

Line = tuple[str, int, str, tuple[tuple[str, str], ...]]
Batches = list[list[tuple[str, bytes]]]
"""For each batch its splits: whole lines, and the file that they are from."""


def term_of(value: dict[str, str]) -> Term:
    """A term of the SPARQL JSON results format."""
    if value["type"] == "uri":
        return IRI(value["value"])
    if value["type"] == "bnode":
        return BlankNode(value["value"])
    return Literal(value["value"], language=value.get("xml:lang", ""), datatype=value.get("datatype", ""))


def lines_of(pieces: Iterable[Piece]) -> Counter[Line]:
    """The deltas of some pieces; each piece must hold what it says that it holds."""
    found: Counter[Line] = Counter()
    last = 0
    for piece in pieces:
        if piece.kind == "deltas":
            assert last <= piece.first_seq <= piece.last_seq
            seqs = []
            for text in piece.data.splitlines():
                delta = json.loads(text)
                seqs.append(delta["seq"])
                binding = tuple(sorted((name, str(term_of(value))) for name, value in delta["binding"].items()))
                found[delta["query"], delta["seq"], delta["op"], binding] += 1
            assert seqs == sorted(seqs)
            assert (piece.first_seq, piece.last_seq) == (seqs[0], seqs[-1])
            last = piece.last_seq
    return found


def rejected_of(pieces: Iterable[Piece]) -> list[dict[str, object]]:
    """The dead letters of some pieces."""
    return [
        json.loads(text) for piece in pieces if piece.kind == "rejects" for text in piece.data.decode().splitlines()
    ]


def expected_of(case: Case) -> tuple[Counter[Line], ReferenceEngine]:
    """What the reference says."""
    reference = ReferenceEngine(case.queries, case.granularity)
    found: Counter[Line] = Counter()
    for event in case.events:
        for delta in reference.step(event):
            binding = tuple(sorted((name, str(term)) for name, term in delta.binding.items()))
            found[delta.query, delta.seq, delta.op, binding] += 1
    return found, reference


def batches_of(case: Case, random: Random) -> Batches:
    """The case as text, cut into batches of splits, over one file or several."""
    end = random.choice(("\n", "\n", "\r\n"))
    lines = [(text_of(event, random) + end).encode() for event in case.events]
    lines = [note for line in lines for note in ((line, b"# note\n") if random.random() < 0.1 else (line,))]
    batches: Batches = [[]]
    file = 0
    while lines:
        size = random.choice((0, 1, 2, 3, 7, 1000))
        batches[-1].append((f"file{file}", b"".join(lines[:size])))
        lines = lines[size:]
        if random.random() < 0.4:
            batches.append([])
        file += random.random() < 0.1
    return batches


def inline(case: Case, batches: Batches) -> tuple[Engine, list[Malformed]]:
    """The same bytes through one engine, as `--engine inline` does it."""
    engine = Engine(granularity=case.granularity)
    for name, query in case.queries.items():
        engine.register(query, name)
    rejected: list[Malformed] = []
    last, line = "", 1
    for source, data in (split for batch in batches for split in batch):
        if source != last:
            last, line = source, 1
        batch = Batch(Position(source, 0, line), source, data, Syntax.PATCH)
        for _ in engine.process_batch(batch, rejected.append):
            pass
        line = batch.position.line
    return engine, rejected


class Run:
    """Shards beside each other, each with its journal."""

    def __init__(self, case: Case, shards: int, random: Random) -> None:
        self.case, self.random = case, random
        self.routers = [Router(case.queries, shards, case.granularity) for _ in range(2)]
        self.settings = [ShardSettings(case.queries, shard, shards, case.granularity) for shard in range(shards)]
        self.journals: list[Journal] = [self.journal(shard) for shard in range(shards)]
        self.shards = [self.make(shard) for shard in range(shards)]

    def journal(self, shard: int) -> Journal:
        return MemoryJournal()

    def make(self, shard: int) -> Shard:
        return Shard(self.settings[shard], self.journals[shard])

    def splits(self, batch: list[tuple[str, bytes]]) -> list[Splits]:
        """What each shard gets of a batch; any router will do."""
        routed = [
            (source, self.random.choice(self.routers).route(data, Syntax.PATCH, source)) for source, data in batch
        ]
        return [[(source, blobs[shard]) for source, blobs in routed] for shard in range(len(self.shards))]

    def apply(self, number: int, batch: list[tuple[str, bytes]]) -> Iterator[Piece]:
        """One batch on all shards: sometimes it is taken back and done again, elsewhere or in the same place."""
        for shard, splits in enumerate(self.splits(batch)):
            attempts = []
            while True:
                happens = self.random.random()
                pieces = self.shards[shard].apply(number, splits)
                if happens < 0.1:  # the task dies on its way
                    for _ in range(self.random.choice((0, 1, 3))):
                        next(pieces, None)
                    pieces.close()  # type: ignore[attr-defined]
                    if self.random.random() < 0.5:
                        self.shards[shard] = self.make(shard)
                    continue
                attempts.append([piece._replace(data=bytes(piece.data)) for piece in pieces])
                if happens > 0.3:
                    break
                if happens < 0.2:  # the worker dies after it
                    self.shards[shard] = self.make(shard)
            canonical = [(lines_of(pieces), rejected_of(pieces)) for pieces in attempts]
            assert all(other == canonical[0] for other in canonical)
            yield from attempts[-1]


class ArenaRun(Run):
    """The same with arenas and journals in files: on two hosts, each of which may lose what it has, and snapshots."""

    def __init__(self, case: Case, shards: int, random: Random, directory: Path) -> None:
        self.directory = directory
        super().__init__(case, shards, random)

    def journal(self, shard: int) -> Journal:
        return FileJournal(self.directory / f"journal-{shard}")

    def make(self, shard: int) -> Shard:
        host = self.directory / f"host-{self.random.randrange(2)}"
        host.mkdir(exist_ok=True)
        if self.random.random() < 0.1:
            for arena in host.glob("*.arena"):
                arena.unlink()
        compaction = Compaction(self.random.choice((0, 300, 1 << 20)), self.random.choice((0.0, 1.0)), 5)
        return Shard(self.settings[shard], self.journal(shard), str(host), compaction)

    def apply(self, number: int, batch: list[tuple[str, bytes]]) -> Iterator[Piece]:
        for shard in range(len(self.shards)):
            if self.random.random() < 0.3:
                self.shards[shard] = self.make(shard)
        return super().apply(number, batch)


def judge_arenas(case: Case, seed: int, shards: int) -> int:
    """The same with everything in files."""
    with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        return judge_shards(case, seed, shards, lambda *arguments: ArenaRun(*arguments, Path(directory)))


def judge_shards(case: Case, seed: int, shards: int, make_run: Callable[[Case, int, Random], Run] = Run) -> int:
    """The shards together must say what the reference says. Returns the number of messages."""
    random = Random(seed)
    batches = batches_of(case, random)
    run = make_run(case, shards, random)
    actual: Counter[Line] = Counter()
    rejected: list[dict[str, object]] = []
    for number, batch in enumerate(batches):
        pieces = list(run.apply(number, batch))
        by_shard: list[Piece] = pieces
        for piece in by_shard:
            actual += lines_of([piece])
        rejected += rejected_of(pieces)
    expected, reference = expected_of(case)
    place = f"seed {seed}, {shards} shards, {batches}\n{case}"
    if actual != expected:
        raise Difference(f"missing {list(expected - actual)}, surplus {list(actual - expected)}: {place}")
    engine, letters = inline(case, batches)
    shown = [(row.line, row.column, row.reason, row.text) for row in letters]
    if [(row["line"], row["column"], row["reason"], row["text"]) for row in rejected] != shown:
        raise Difference(f"rejected {rejected} instead of {shown}: {place}")
    if any(row["source"] != letter.source for row, letter in zip(rejected, letters, strict=True) if letter.source):
        raise Difference(f"rejected {rejected} instead of {letters}: {place}")
    totals = [astuple(shard.statistics()) for shard in run.shards]
    if tuple(map(sum, zip(*totals, strict=True))) != astuple(engine.statistics):
        raise Difference(f"statistics {totals} instead of {engine.statistics}: {place}")
    compare_all_answers(run, engine, place)
    return reference.seq


def compare_all_answers(run: Run, engine: Engine, place: str) -> None:
    """The answers of all shards together."""
    for query in engine.queries:
        actual = Counter(row for shard in run.shards for row in shard.answers(query.name))
        expected = Counter(tuple(binding.values()) for binding in query.answers())
        if actual != expected:
            raise Difference(f"answers of {query.name}: {actual} instead of {expected}: {place}")
