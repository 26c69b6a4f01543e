"""Random cases by the hundred thousand: `python -m tests.differential 100000 [FIRST_SEED]`, on all cores."""

from __future__ import annotations

import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.support.generate import random_case
from tests.support.judge import Difference, judge

BLOCK = 500


def run_block(first: int) -> tuple[int, list[int]]:
    """Comparisons made, and the seeds that failed."""
    logging.getLogger("deltastar").setLevel(logging.CRITICAL)
    comparisons, failed = 0, []
    for seed in range(first, first + BLOCK):
        try:
            comparisons += judge(random_case(seed))
        except Difference as difference:
            print(f"seed {seed}: {difference}", file=sys.stderr)
            failed.append(seed)
    return comparisons, failed


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started, comparisons, failed = time.monotonic(), 0, []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, (count, seeds) in enumerate(pool.map(run_block, range(first, first + cases, BLOCK)), 1):
            comparisons += count
            failed += seeds
            if done % 20 == 0:
                print(f"{done * BLOCK:,} cases, {comparisons:,} comparisons, {len(failed)} differences", flush=True)
    elapsed_s = time.monotonic() - started
    print(f"{cases:,} cases, {comparisons:,} messages compared, {len(failed)} differences, {elapsed_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
