"""Random cases by the hundred thousand: `python -m tests.differential 100000 [FIRST_SEED]`, on all cores.

Four ways lead into the engine, and each is held against the reference: `kernel`, event by event; `switching`, the same
with live lists that come and go all the time; `bytes`, rows of RDF Patch cut anywhere, through buffers without room to
spare; `paper`, event by event with the paper's algorithms.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.support.batches import judge_batches
from tests.support.generate import random_case
from tests.support.judge import judge, paper, quiet, switching

BLOCK = 500
WAYS: dict[str, Callable[[int], int]] = {
    "kernel": lambda seed: judge(random_case(seed)),
    "switching": lambda seed: judge(random_case(seed), switching),
    "bytes": lambda seed: judge_batches(random_case(seed), seed),
    "paper": lambda seed: judge(random_case(seed), paper),
}
"""For each way: judges the case of a seed, and gives the number of its messages."""


def run_block(way: str, seeds: range) -> tuple[int, list[int]]:
    """The messages compared, and the seeds that failed, by a difference or by an error of any kind."""
    compared, failed = 0, []
    with quiet():
        for seed in seeds:
            try:
                compared += WAYS[way](seed)
            except Exception as fault:
                print(f"{way}, seed {seed}: {type(fault).__name__}: {fault}", file=sys.stderr)
                failed.append(seed)
    return compared, failed


def run_way(pool: ProcessPoolExecutor, way: str, seeds: range) -> list[int]:
    """Runs one way, says how it went, and gives the seeds that failed."""
    started, cases, compared, failed = time.monotonic(), 0, 0, list[int]()
    blocks = list(_blocks(seeds))
    for block, (count, faults) in zip(blocks, pool.map(run_block, [way] * len(blocks), blocks), strict=True):
        cases += len(block)
        compared += count
        failed += faults
        if cases % 20_000 == 0 and cases < len(seeds):
            print(f"  {way}: {cases:,} cases so far, {len(failed)} differences", flush=True)
    elapsed_s = time.monotonic() - started
    print(
        f"{way}: {cases:,} cases, {compared:,} messages compared, {len(failed)} differences, {elapsed_s:.0f} s",
        flush=True,
    )
    return failed


def _blocks(seeds: range) -> Iterator[range]:
    for start in range(0, len(seeds), BLOCK):
        yield seeds[start : start + BLOCK]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("cases", nargs="?", type=int, default=100_000, help="of each engine (default: 100000)")
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--engine", choices=(*WAYS, "all"), default="all", help="which way (default: all)")
    options = parser.parse_args(arguments)
    ways = list(WAYS) if options.engine == "all" else [options.engine]
    seeds = range(options.first, options.first + options.cases)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        failed = {way: run_way(pool, way, seeds) for way in ways}
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
