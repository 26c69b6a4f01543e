"""Random cases on several shards: `python -m tests.differential.shards 10000 [FIRST_SEED]`, on all cores."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.support.generate import random_case
from tests.support.judge import Difference, quiet
from tests.support.sharded import judge_shards

BLOCK = 200
SHARDS = (1, 2, 3, 8)


def run_block(first: int) -> tuple[int, list[int]]:
    """Messages compared, and the seeds that failed."""
    messages, failed = 0, []
    with quiet():
        for seed in range(first, first + BLOCK):
            try:
                messages += judge_shards(random_case(seed), seed, SHARDS[seed % len(SHARDS)])
            except (Difference, AssertionError) as difference:
                print(f"seed {seed}: {difference}", file=sys.stderr)
                failed.append(seed)
    return messages, failed


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    started, messages, failed = time.monotonic(), 0, []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for count, seeds in pool.map(run_block, range(first, first + cases, BLOCK)):
            messages += count
            failed += seeds
    elapsed_s = time.monotonic() - started
    print(f"{cases:,} cases, {messages:,} messages, {len(failed)} differences, {elapsed_s:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
