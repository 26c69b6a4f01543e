"""Router and shards together == reference: a seeded sample of what `python -m tests.differential.shards` runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.generate import random_case
from tests.support.sharded import judge_arenas, judge_shards

SAMPLE = int(os.environ.get("DELTASTAR_SHARD_CASES", "800"))
SHARDS = (1, 2, 3, 8)


@pytest.mark.parametrize("shards", SHARDS)
def test_shards_equal_reference(shards: int) -> None:
    seeds = range(SHARDS.index(shards), SAMPLE, len(SHARDS))
    assert sum(judge_shards(random_case(seed), seed, shards) for seed in seeds) > len(seeds)


@pytest.mark.parametrize("shards", SHARDS)
def test_shards_go_on_from_files(shards: int) -> None:
    """Other processes, other hosts, arenas that vanish, snapshots at any time."""
    seeds = range(SHARDS.index(shards), SAMPLE // 8, len(SHARDS))
    assert sum(judge_arenas(random_case(seed), seed, shards) for seed in seeds) > len(seeds)


def test_killed_processes_change_nothing() -> None:
    """SIGKILL at chosen places and random moments: in a process of its own, for it forks."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.kills", "12"], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split(" cases, ")[1].split(" ")[0]) > 12  # processes were killed
