"""What a shard costs: micro-batches of any size, snapshots, and being made anew.

    python bench/shard.py [--triples 5000000] [--batches 200] [--directory DIR] [--format jsonl]

Fills a shard with triples of a star query, `--fill` messages a batch, then applies small batches, takes a batch back,
attaches as another process would, writes a snapshot, and makes the shard anew from snapshot and log. Journal and arena
are files: in the directory, and in /dev/shm. Wall-clock times.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.journal import FileJournal
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Compaction, Shard, ShardSettings

QUERIES = {
    "star": "SELECT * { ?x <http://ex.org/livesIn> ?y ; <http://ex.org/worksAt> ?z }",
    "path": "SELECT * { ?a <http://ex.org/knows> ?b . ?b <http://ex.org/leads> ?c }",
    "people": "SELECT DISTINCT ?c { ?x <http://ex.org/livesIn> ?c ; <http://ex.org/knows> ?y }",
}
PREDICATES = ("livesIn", "worksAt", "knows", "leads")


def rows(first: int, count: int, op: str = "A") -> bytes:
    """Messages: everybody lives, works, knows; a node has two or three neighbours by each predicate."""
    lines = []
    for number in range(first, first + count):
        node, predicate, other = number // 3, PREDICATES[number % 4], number * 7919 % 1_500_007
        lines.append(f"{op} <http://ex.org/node/{node}> <http://ex.org/{predicate}> <http://ex.org/node/{other}> .\n")
    return "".join(lines).encode()


class Bench:
    """A shard and its router."""

    def __init__(self, directory: Path, memory: str, format: str) -> None:
        self.router = Router(QUERIES, 1)
        self.settings = ShardSettings(QUERIES, format=format)
        self.directory, self.memory = directory, memory
        self.batch = 0

    def shard(self, compaction: Compaction | None = None) -> Shard:
        return Shard(self.settings, FileJournal(self.directory / "journal"), self.memory, compaction)

    def apply(self, shard: Shard, data: bytes, batch: int | None = None) -> tuple[float, int]:
        """The time that a batch takes in the shard, and the bytes that came."""
        splits = [("bench", self.router.route(data, Syntax.PATCH, "bench")[0])]
        started = time.perf_counter()
        size = sum(len(piece.data) for piece in shard.apply(self.batch if batch is None else batch, splits))
        elapsed_s = time.perf_counter() - started
        if batch is None:
            self.batch += 1
        return elapsed_s, size


def show(what: str, times_s: list[float], cpu_s: float = 0.0) -> None:
    ordered = sorted(times_s)
    p50, p99 = statistics.median(ordered) * 1000, ordered[int(len(ordered) * 0.99)] * 1000
    cpu = f"   CPU {cpu_s / len(ordered) * 1000:7.2f} ms" if cpu_s else ""
    print(f"{what:46} p50 {p50:8.2f} ms   p99 {p99:8.2f} ms{cpu}", flush=True)


def small_batches(bench: Bench, shard: Shard, count: int, state: str) -> None:
    for size in (0, 10, 1000):
        started = time.process_time()
        times = [bench.apply(shard, rows(30_000_000 + index * size, size))[0] for index in range(count)]
        show(f"batches of {size:,} messages, {state}", times, time.process_time() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--triples", type=int, default=5_000_000)
    parser.add_argument("--fill", type=int, default=250_000)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--directory", default=None)
    parser.add_argument("--format", default="jsonl")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="deltastar-bench-", dir=options.directory))
    memory = tempfile.mkdtemp(prefix="deltastar-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        measure(Bench(base, memory, options.format), options)
    finally:
        shutil.rmtree(base)
        shutil.rmtree(memory)


def measure(bench: Bench, options: argparse.Namespace) -> None:
    shard = bench.shard()
    bench.apply(shard, rows(0, 1000))
    small_batches(bench, shard, options.batches, "next to no state")
    filled, spent_s, size = 0, 0.0, 0
    while shard.triples < options.triples:
        elapsed_s, out = bench.apply(shard, rows(filled, options.fill))
        spent_s, size, filled = spent_s + elapsed_s, size + out, filled + options.fill
    print(
        f"filled with {shard.triples:,} triples: {filled / spent_s / 1e6:.2f} million messages/s, {size / 1e6:,.0f} MB"
    )
    small_batches(bench, shard, options.batches, f"{shard.triples / 1e6:.1f} million triples")
    again = [bench.apply(shard, rows(90, 30, "D"), bench.batch - 1)[0] for _ in range(20)]
    show("the last batch again, taken back first", again)
    times = []
    for _ in range(10):
        started = time.perf_counter()
        other = bench.shard()
        _ = other.triples
        times.append(time.perf_counter() - started)
    show("attached by another process", times)
    started = time.perf_counter()
    bench.apply(bench.shard(Compaction(0, 0.0)), rows(0, 10))
    print(f"a batch with a snapshot: {time.perf_counter() - started:.2f} s")
    names = sorted(path for path in (bench.directory / "journal").iterdir())
    print("journal:", ", ".join(f"{path.name} {path.stat().st_size / 1e6:,.1f} MB" for path in names[-3:]))
    for _ in range(options.batches):
        bench.apply(shard, rows(40_000_000, 100))
    for path in Path(bench.memory).glob("*.arena"):
        print(f"arena: {path.stat().st_blocks * 512 / 1e6:,.0f} MB")
        path.unlink()
    started, cpu_before_s = time.perf_counter(), time.process_time()
    made = bench.shard()
    triples = made.triples
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_before_s
    print(f"made anew: {triples:,} triples in {wall_s:.2f} s, {cpu_s:.2f} s of them on the CPU")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:,.0f} MB")


if __name__ == "__main__":
    main()
