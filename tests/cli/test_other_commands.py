"""`explain`, `answers`, `verify`, `--help`."""

from __future__ import annotations

import json
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


def test_verify_agrees(deltastar: Run, ring: Path) -> None:
    result = deltastar("verify", "ring.rq", "--updates", "up.rdfp")
    assert result.returncode == 0
    assert "4 messages, 1 queries: engine and reference agree on every one" in result.stderr
