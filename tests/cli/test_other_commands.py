"""`explain`, `answers`, `verify`, `--help`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize("command", ["run", "explain", "answers", "verify"])
def test_help_has_an_example(deltastar: Run, command: str) -> None:
    result = deltastar(command, "--help")
    assert result.returncode == 0
    assert f"example:\n  deltastar {command} " in result.stdout


def test_version_and_overview(deltastar: Run) -> None:
    assert deltastar("--version").stdout.startswith("deltastar ")
    assert "130  interrupted" in deltastar("--help").stdout


def test_explain(deltastar: Run, ring: Path) -> None:
    plan = json.loads(deltastar("explain", "ring.rq", "--format", "json").stdout)
    assert plan["class"] == "var-connected"
    assert plan["components"][0]["class"] == "cyclic"
    assert "var-connected" in deltastar("explain", "ring.rq").stdout
    assert deltastar("explain", "ring.rq", "--format", "svg").stdout.startswith("<svg")
    assert deltastar("explain", "ring.rq", "--format", "mermaid").stdout.startswith("flowchart")


def test_answers_at_any_moment(deltastar: Run, ring: Path) -> None:
    deltastar("run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl")
    at_3 = json.loads(deltastar("answers", "d.jsonl", "--at", "3", "--format", "srj").stdout)
    assert len(at_3["results"]["bindings"]) == 3
    assert "0 rows" in deltastar("answers", "d.jsonl").stdout
    unknown = deltastar("answers", "d.jsonl", "--query", "nope")
    assert unknown.returncode == 2
    assert "ring" in unknown.stderr


def test_verify_reports_the_first_difference_with_a_shrunk_stream(ring: Path) -> None:
    """The whole command, over an engine that misses the second pattern of a self-join."""
    (ring / "path.rq").write_text("SELECT * { ?x <http://ex/to> ?y . ?y <http://ex/to> ?z }")
    driver = (
        "import sys\n"
        "from deltastar.paper.evaluator import PaperEvaluator\n"
        "step = PaperEvaluator.step\n"
        "PaperEvaluator.step = lambda self, op, triple, patterns: step(self, op, triple, patterns[:1])\n"
        "import functools, deltastar.verify as v\n"
        "v.Engine = functools.partial(v.Engine, evaluation='paper')\n"
        "from deltastar.cli import main\n"
        "sys.exit(main())\n"
    )
    command = [sys.executable, "-c", driver, "verify", "path.rq", "--updates", "up.rdfp"]
    result = subprocess.run(command, cwd=ring, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "the engine differs from the reference at message 2:" in result.stderr
    assert "a stream of 2 rows that shows it is in deltastar-verify.rdfp" in result.stderr
    rows = (ring / "deltastar-verify.rdfp").read_text().splitlines()
    assert sum(not row.startswith("#") for row in rows) == 2


def test_verify_shows_its_progress_and_can_be_interrupted(ring: Path) -> None:
    with (ring / "big.rdfp").open("w") as file:
        for n in range(100_000):
            file.write(f"A <http://ex/{n}> <http://ex/to> <http://ex/{n + 1}> .\n")
    command = [sys.executable, "-m", "deltastar", "verify", "ring.rq", "--updates", "big.rdfp", "--progress"]
    process = subprocess.Popen(command, cwd=ring, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "messages" in process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said.endswith("deltastar: interrupted\n")


def test_verify_agrees(deltastar: Run, ring: Path) -> None:
    result = deltastar("verify", "ring.rq", "--updates", "up.rdfp")
    assert result.returncode == 0
    assert "4 messages, 1 queries: engine and reference agree on every one" in result.stderr
