"""Router and shards together == reference: a seeded sample of what `python -m tests.differential.shards` runs."""

from __future__ import annotations

import os

import pytest

from tests.support.generate import random_case
from tests.support.sharded import judge_shards

SAMPLE = int(os.environ.get("DELTASTAR_SHARD_CASES", "800"))
SHARDS = (1, 2, 3, 8)


@pytest.mark.parametrize("shards", SHARDS)
def test_shards_equal_reference(shards: int) -> None:
    seeds = range(SHARDS.index(shards), SAMPLE, len(SHARDS))
    assert sum(judge_shards(random_case(seed), seed, shards) for seed in seeds) > len(seeds)
