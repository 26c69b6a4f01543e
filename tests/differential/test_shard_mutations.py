"""The judge of shards can see: each rule, broken on purpose, makes it find a difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deltastar.errors import DeltastarError
from deltastar.plan import shares
from deltastar.plan.shares import QueryShares
from deltastar.query.algebra import Query
from deltastar.sharding import feed, residue, snapshot
from deltastar.sharding import shard as shard_module
from deltastar.sharding.engine import ShardEngine
from tests.support.generate import random_case
from tests.support.judge import Difference
from tests.support.sharded import judge_arenas, judge_shards
from tests.unit.test_shard import through

CASES = 240


def differs(judge: Callable[..., int] = judge_shards, cases: int = CASES) -> bool:
    for seed in range(cases):
        try:
            judge(random_case(seed), seed, (2, 3, 8)[seed % 3])
        except (Difference, AssertionError, DeltastarError):
            return True
    return False


def test_a_shard_that_looks_for_all_answers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = QueryShares.places_on

    def unrestricted(self: QueryShares, shard: int) -> object:
        return None if original(self, shard) is None else {}

    monkeypatch.setattr(QueryShares, "places_on", unrestricted)
    assert differs()


def test_shares_of_variables_that_are_not_projected_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_variables(query: Query) -> object:
        return query.pattern.variables

    monkeypatch.setattr(shares, "shareable", all_variables)
    assert differs()


def test_counting_a_row_in_every_shard_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MUTED", 0)
    assert differs()


def test_a_residue_that_is_not_read_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ShardEngine.resume

    def resume(self: ShardEngine) -> None:
        if not hasattr(self, "was_resumed"):
            original(self)
        self.was_resumed = True  # type: ignore[attr-defined]

    monkeypatch.setattr(ShardEngine, "resume", resume)
    assert differs(judge_arenas)


def test_forgetting_which_messages_wait_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(residue, "_continues", lambda before, after: True)
    assert through("transaction", tmp_path, True) != through("transaction", None, False)


@pytest.mark.parametrize(
    ("kind", "granularity"), [("_CHANGES", "message"), ("_WAITING", "transaction"), ("_TRIPLES", "message")]
)
def test_a_snapshot_without_a_part_is_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, granularity: str
) -> None:
    original = snapshot.write_snapshot
    left_out = getattr(snapshot, kind)

    def write(engine: ShardEngine) -> object:
        return (chunk for chunk in original(engine) if not chunk.startswith(left_out))

    monkeypatch.setattr(shard_module, "write_snapshot", write)
    assert through(granularity, tmp_path, False) != through(granularity, None, False)


def test_nothing_broken_is_not_noticed() -> None:
    assert not differs(cases=60)
    assert not differs(judge_arenas, cases=30)
