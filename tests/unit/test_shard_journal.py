"""Journals: what is read is what was written, or an error; and what is not needed goes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from deltastar.errors import CheckpointError
from deltastar.sharding.engine import ShardSettings
from deltastar.sharding.journal import FileJournal, Journal, MemoryJournal, Splits, chain_of, claim

SPLITS: Splits = [("häuser.rdfp", b"first"), ("häuser.rdfp", b""), ("other", bytes(range(256)) * 100)]


def splits_of(batch: int) -> Splits:
    return [("file", f"batch {batch}".encode())]


def filled(journal: Journal, last: int) -> list[int]:
    chains, chain = [], 0
    for batch in range(last + 1):
        chain = chain_of(chain, batch, splits_of(batch))
        journal.log(batch, chain, splits_of(batch))
        chains.append(chain)
    return chains


@pytest.fixture(params=["memory", "files"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    return MemoryJournal() if request.param == "memory" else FileJournal(tmp_path / "journal")


def test_what_is_logged_is_read(journal: Journal) -> None:
    chain = chain_of(0, 0, SPLITS)
    assert journal.entry(5) is None
    journal.log(0, chain, SPLITS)
    entry = journal.entry(5)
    assert entry is not None
    assert (entry.batch, entry.chain) == (0, chain)
    recovery = journal.read(0)
    assert recovery.snapshot is None
    assert [(logged.batch, list(splits)) for logged, splits in recovery.batches] == [(0, list(SPLITS))]


def test_a_snapshot_stands_for_what_came_before(journal: Journal) -> None:
    chains = filled(journal, 4)
    journal.snapshot(2, chains[2], iter([b"state", b"", b"more"]))
    recovery = journal.read(4)
    assert recovery.snapshot is not None
    assert (recovery.snapshot.batch, list(recovery.chunks)) == (2, [b"state", b"", b"more"])
    assert [entry.batch for entry, _ in recovery.batches] == [3, 4]
    assert [entry.batch for entry, _ in journal.read(1).batches] == [0, 1]  # batch 2 may have to be applied again
    assert [entry.batch for entry, _ in journal.read(4, 3).batches] == [4]  # from a state behind the snapshot
    assert journal.read(4, 1).snapshot is not None


def test_what_a_snapshot_stands_for_goes_with_the_next_batch(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    chains = filled(journal, 4)
    journal.snapshot(4, chains[4], [b"state"])
    assert len(list(tmp_path.iterdir())) == 6
    abandoned = tmp_path / "log-000000000004.abc.tmp"
    abandoned.write_bytes(b"half")
    os.utime(abandoned, (time.time() - 7200,) * 2)
    journal.log(5, 1, SPLITS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log-000000000005", "snapshot-000000000004"]
    assert [entry.batch for entry, _ in journal.read(5).batches] == [5]


def test_another_process_takes_the_old_entries_away(tmp_path: Path) -> None:
    first = FileJournal(tmp_path)
    filled(first, 130)
    FileJournal(tmp_path).snapshot(120, 1, [b"state"])
    for batch in range(131, 200):
        first.log(batch, 1, SPLITS)
    assert not (tmp_path / "log-000000000100").exists()
    assert (tmp_path / "log-000000000121").exists()


def test_a_batch_that_is_logged_twice_is_there_once(journal: Journal) -> None:
    journal.log(0, 1, SPLITS)
    journal.log(0, 1, SPLITS)
    assert len(list(journal.read(9).batches)) == 1


@pytest.mark.parametrize("damage", ["cut", "cut in the first frame", "flip", "head", "more"])
def test_damaged_files_are_noticed(tmp_path: Path, damage: str) -> None:
    journal = FileJournal(tmp_path)
    journal.log(0, 1, SPLITS)
    path = tmp_path / "log-000000000000"
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
    elif damage == "head":
        data[0] ^= 1
    elif damage == "more":
        data[33] ^= 0x40  # a length
    else:
        del data[len(data) - 10 if damage == "cut" else 45 :]
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="is damaged"):
        list(journal.read(0).batches)


def test_a_torn_batch_that_comes_again_does_no_harm(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    chains = filled(journal, 2)
    (tmp_path / "log-000000000002").write_bytes(b"DSJO")
    entry = journal.entry(1)
    assert entry is not None
    assert entry.chain == chains[1]
    assert [entry.batch for entry, _ in journal.read(1).batches] == [0, 1]
    journal.log(2, chains[2], splits_of(2))
    assert [entry.batch for entry, _ in journal.read(2).batches] == [0, 1, 2]


QUERIES = {"q": "SELECT * { ?x <p:p> ?y }"}
OTHER = [
    ("shards", ShardSettings(QUERIES, shards=3)),
    ("queries", ShardSettings({"q": "SELECT * { ?x <p:q> ?y }"}, shards=2)),
    ("queries", ShardSettings({**QUERIES, "r": "ASK { ?x <p:q> ?y }"}, shards=2)),
    ("granularity", ShardSettings(QUERIES, shards=2, granularity="transaction")),
    ("strict", ShardSettings(QUERIES, shards=2, strict=True)),
]


@pytest.mark.parametrize(("what", "settings"), OTHER)
def test_a_run_with_other_settings_is_refused(tmp_path: Path, what: str, settings: ShardSettings) -> None:
    directory = tmp_path / "checkpoint"
    claim(directory, ShardSettings(QUERIES, shards=2).identity())
    before = {path: path.read_bytes() for path in directory.iterdir()}
    claim(directory, ShardSettings({"q": "SELECT  * {\n?x <p:p> ?y}"}, shard=1, shards=2, format="csv").identity())
    with pytest.raises(CheckpointError, match=f"belongs to a run with other {what}: .*, now .*; repeat that command"):
        claim(directory, settings.identity())
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


def test_damaged_settings_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "journal.json").write_text("{")
    with pytest.raises(CheckpointError, match="is damaged"):
        claim(tmp_path, {})
