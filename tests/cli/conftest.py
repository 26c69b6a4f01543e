"""Running the command as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def deltastar(tmp_path: Path) -> Run:
    """`deltastar(*arguments, stdin=None)` in an empty directory; the result has returncode, stdout and stderr."""

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "deltastar", *arguments],
            cwd=tmp_path,
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONWARNINGS": "error"},
        )

    return run


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    """A directory with a query and a stream."""
    (tmp_path / "ring.rq").write_text("PREFIX : <http://ex/>\nSELECT * { ?a :to ?b . ?b :to ?c . ?c :to ?a }\n")
    (tmp_path / "up.rdfp").write_text(
        "TX .\n"
        "A <http://ex/1> <http://ex/to> <http://ex/2> .\n"
        "A <http://ex/2> <http://ex/to> <http://ex/3> .\n"
        "TC .\n"
        "A <http://ex/3> <http://ex/to> <http://ex/1> .\n"
        "D <http://ex/1> <http://ex/to> <http://ex/2> .\n"
    )
    return tmp_path
