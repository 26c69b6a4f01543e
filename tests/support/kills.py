"""Shards whose processes are killed: `python -m tests.support.kills CASES [FIRST_SEED]`.

One process has everything imported and forks; its children apply batches and are killed, at random moments, or by
themselves at a chosen place in the code. Sometimes two do the same at the same time. In the end the output of every
batch must be there once, and be right.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from pickle import dumps, loads
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from deltastar.errors import CheckpointError, SourceError
from deltastar.machine import Machine
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding import shard as shard_module
from deltastar.sharding.journal import FileJournal, Splits
from deltastar.sharding.residue import Residues
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Compaction, Piece, Shard, ShardSettings
from tests.support.generate import Case, random_case
from tests.support.judge import Difference
from tests.support.sharded import Line, batches_of, expected_of, lines_of, rejected_of

PLACES: dict[str, tuple[Any, str]] = {
    "begin": (Machine, "begin_batch"),
    "step": (Machine, "step"),
    "hold": (Residues, "_hold"),
    "residue": (Residues, "commit"),
    "commit": (Machine, "commit_batch"),
    "undo": (Machine, "undo_batch"),
    "undone": (Residues, "undo"),
    "log": (FileJournal, "log"),
    "write": (FileJournal, "_write"),
    "forget": (FileJournal, "_forget_before"),
    "snapshot": (FileJournal, "snapshot"),
    "restore": (shard_module, "read_snapshot"),
    "open": (Path, "replace"),
}
"""Where a child kills itself: before or behind a call of these."""


def die_at(place: str, is_before: bool, call: int) -> None:
    """From here on, the call with this number of the function is the end."""
    owner, name = PLACES[place]
    original: Callable[..., Any] = getattr(owner, name)
    calls = iter(range(1, 1 << 30))

    @wraps(original)
    def deadly(*arguments: Any, **named: Any) -> Any:
        is_last = next(calls) == call
        if is_last and is_before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **named)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, deadly)


class Hurt:
    """One case, whose batches are applied by processes that die."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.random, self.directory = Random(seed), directory
        self.case = random_case(seed)
        self.shards = self.random.choice((1, 2))
        self.batches = batches_of(self.case, self.random)
        router = Router(self.case.queries, self.shards, self.case.granularity)
        routed = [
            [(source, router.route(data, Syntax.PATCH, source)) for source, data in batch] for batch in self.batches
        ]
        self.splits: list[list[Splits]] = [
            [[(source, blobs[shard]) for source, blobs in batch] for batch in routed] for shard in range(self.shards)
        ]
        self.compaction = Compaction(self.random.choice((0, 400)), 0.0, 7)

    def work(self, host: str) -> None:
        """Applies what was not applied yet, as Spark would: batch by batch, and a batch on all shards."""
        shards = [self.shard(number, host) for number in range(self.shards)]
        for batch in range(len(self.batches)):
            for number, shard in enumerate(shards):
                if not self.output(batch, number).exists():
                    try:
                        pieces = [tuple(piece) for piece in shard.apply(batch, self.splits[number][batch])]
                    except (CheckpointError, SourceError):
                        if self.output(batch, number).exists():  # somebody else was faster
                            continue
                        raise
                    temporary = self.output(batch, number).with_suffix(f".{os.getpid()}.tmp")
                    temporary.write_bytes(dumps(pieces))
                    os.rename(temporary, self.output(batch, number))

    def shard(self, number: int, host: str) -> Shard:
        settings = ShardSettings(self.case.queries, number, self.shards, self.case.granularity)
        journal = FileJournal(self.directory / f"journal-{number}")
        return Shard(settings, journal, str(self.directory / host), self.compaction)

    def output(self, batch: int, shard: int) -> Path:
        return self.directory / f"out-{batch}-{shard}.done"

    def attempt(self, is_last: bool) -> int:
        """A child that may be killed. Gives its pid."""
        place, is_before, call = self.random.choice(list(PLACES)), self.random.random() < 0.5, self.random.randint(1, 4)
        host = f"host-{self.random.randrange(2)}"
        is_deadly = not is_last and self.random.random() < 0.7
        pid = os.fork()
        if pid == 0:
            try:
                if is_deadly:
                    die_at(place, is_before, call)
                self.work(host)
            except BaseException:
                logging.exception("a child failed")
                os._exit(1)
            os._exit(0)
        if not is_last and not is_deadly:
            time.sleep(self.random.random() * 0.05)
            os.kill(pid, signal.SIGKILL)
        return pid

    def run(self) -> int:
        """All of it. Gives how many children were killed."""
        killed = 0
        for attempt in range(12):
            pids = [self.attempt(attempt == 11) for _ in range(self.random.choice((1, 1, 1, 2)))]
            codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
            if any(code not in (0, -signal.SIGKILL) for code in codes):
                raise Difference(f"exit codes {codes}")
            killed += codes.count(-signal.SIGKILL)
        self.judge()
        return killed

    def judge(self) -> None:
        """What came out, against the reference."""
        actual: Counter[Line] = Counter()
        letters = 0
        for batch in range(len(self.batches)):
            for shard in range(self.shards):
                pieces = [Piece(*parts) for parts in loads(self.output(batch, shard).read_bytes())]
                actual += lines_of(pieces)
                letters += len(rejected_of(pieces))
        expected, _ = expected_of(self.case)
        if actual != expected:
            raise Difference(f"missing {list(expected - actual)}, surplus {list(actual - expected)}: {self.case}")
        if letters != rejected_in(self.case):
            raise Difference(f"{letters} dead letters instead of {rejected_in(self.case)}: {self.case}")


def rejected_in(case: Case) -> int:
    """How many rows are malformed or out of place."""
    from deltastar.engine import Engine
    from deltastar.rdf.update import Malformed

    engine, letters = Engine(granularity=case.granularity), list[Malformed]()
    for event in case.events:
        engine.process(event, letters.append)
    return len(letters)


def main() -> int:
    cases = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    killed, failed = 0, []
    for seed in range(first, first + cases):
        with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
            try:
                killed += Hurt(seed, Path(directory)).run()
            except (Difference, AssertionError) as difference:
                print(f"seed {seed}: {difference}", file=sys.stderr)
                failed.append(seed)
    print(f"{cases} cases, {killed} processes killed, {len(failed)} differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
