"""A run on Spark with a checkpoint, killed with -9 at random moments: in the end the deltas are the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import QUERIES, inline, lines_by_seq

PATIENCE_S = 300


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each kill: the moments differ, and whose process it is."""
    if "kill" in metafunc.fixturenames:
        metafunc.parametrize("kill", range(metafunc.config.getoption("--kills")))


@pytest.mark.slow
def test_a_killed_run_goes_on(kill: int, tmp_path: Path, transfers: Path) -> None:
    chance = random.Random(kill)
    victim = ("driver", "worker")[kill % 2]
    deltas = tmp_path / "d.jsonl"
    command = [
        sys.executable, "-m", "deltastar", "run", *QUERIES, "--updates", str(transfers), "--deltas", str(deltas),
        "--checkpoint", str(tmp_path / "c"), "--shards", "2", "--master", "local[2]", "--engine", "spark",
        "--conf", "spark.deltastar.maxBytesPerTrigger=4k",
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        until(lambda: deltas.exists(), process)
        time.sleep(chance.uniform(0, 8))
        if victim == "driver":
            process.kill()
        else:
            workers = list(workers_of(process.pid))
            for worker in workers[: chance.randint(1, 2)]:
                os.kill(worker, signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
    finally:
        if process.poll() is None:
            process.kill()
    if victim == "worker":
        assert process.returncode == 0  # Spark tried again
    assert subprocess.run(command, timeout=PATIENCE_S, capture_output=True).returncode == 0
    assert inline(*QUERIES, "--updates", transfers, "--deltas", tmp_path / "whole.jsonl") == 0
    assert lines_by_seq(deltas) == lines_by_seq(tmp_path / "whole.jsonl")


def until(is_so, process: subprocess.Popen[str]) -> None:  # type: ignore[no-untyped-def]
    """Waits for something that a running process does."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)


def workers_of(driver: int) -> Iterator[int]:
    """The Python workers under a driver: its JVM's daemon has forked them."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                is_worker = b"pyspark.daemon" in (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), is_worker)
    for process, (parent, is_worker) in parents.items():
        above = parents.get(parent, (0, False))
        if is_worker and above[1] and driver in ancestors(process, parents):
            yield process


def ancestors(process: int, parents: dict[int, tuple[int, bool]]) -> set[int]:
    found = set()
    while process in parents:
        process = parents[process][0]
        found.add(process)
    return found
