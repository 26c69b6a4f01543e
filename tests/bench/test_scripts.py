"""The benchmarks run, at small sizes, and say what they are for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy", reason="the generators draw with numpy")

ROOT = Path(__file__).parents[2]


def bench(name: str, tmp_path: Path, *options: str) -> Any:
    """What a benchmark writes as JSON."""
    out = tmp_path / "out.json"
    command = [sys.executable, ROOT / f"bench/{name}.py", *options, "--json", out]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, timeout=600)
    return json.loads(out.read_text())


def test_latency(tmp_path: Path) -> None:
    found = bench("latency", tmp_path, "--triples", "2000", "--updates", "1000", "--messages", "500", "--warm", "100")
    assert found["growth"]["calls"] == 400
    assert 0 < found["mixed"]["p50"] <= found["mixed"]["p99"] <= found["mixed"]["p99.9"] <= found["mixed"]["max"]


def test_queries(tmp_path: Path) -> None:
    found = bench("queries", tmp_path, "--queries", "50", "--sharing", "100", "--messages", "500", "--repeat", "1")
    assert found["idle"]["many"] == 51
    assert found["sharing"]["few"] == 50
    assert found["none"]["ratio"] > 0


def test_memory(tmp_path: Path) -> None:
    found = bench("memory", tmp_path, "--triples", "2000", "--updates", "1000", "--neighbours", "50")
    assert found["edges"]["triples"] == 2000
    assert found["edges"]["arena_bytes a triple"] <= found["edges"]["touched bytes a triple"]
    assert found["star"]["paper's records at 3 x 8"] == 8**3


def test_scaling(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    found = bench("scaling", tmp_path, "--sizes", "300,3000", "--plot", str(plot))
    small, large = found["ground"]
    assert small["arena_bytes"] == large["arena_bytes"]
    assert plot.read_text().startswith("<svg")


def test_hubs(tmp_path: Path) -> None:
    found = bench("hubs", tmp_path, "--neighbours", "20,40", "--messages", "20", "--repeat", "1")
    assert [entry["shape"] for entry in found] == ["middle", "tree", "leaving", "toggling"]
    assert all(us > 0 for entry in found for us in entry["us"].values())


def test_text(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="it is what reading is compared with")
    found = bench("text", tmp_path, "--messages", "2000", "--repeat", "1", "--people", "50")
    assert found["rare"]["deltas"] < found["star"]["deltas"]
    assert len((tmp_path / "out/bench/text/star-deltas.jsonl").read_text().splitlines()) == found["star"]["deltas"]
