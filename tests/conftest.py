"""What all tests share: where the published test data is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """What `make test-spark` and `make test-kills` ask for."""
    parser.addoption("--every-stream", action="store_true", help="on Spark: all published streams, not a sample")
    parser.addoption("--kills", type=int, default=2, metavar="N", help="on Spark: runs that are killed")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiles the kernel once, before workers start, so that no test waits for it or sees it mentioned."""
    os.environ.setdefault("DELTASTAR_ENGINE", "inline")  # a test of Spark says so: starting it takes seconds
    if "NUMBA_DISABLE_JIT" in os.environ or "NUMBA_BOUNDSCHECK" in os.environ:
        return  # such a run compiles what it needs, or nothing
    if not hasattr(session.config, "workerinput"):
        subprocess.run([sys.executable, "-m", "deltastar", "warm"], check=True, capture_output=True)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of published test data; the test is skipped when it is not there."""
    default = Path(__file__).parents[2] / "shared" / "data"
    path = Path(os.environ.get("DELTASTAR_DATA", default))
    if not path.is_dir():
        pytest.skip(f"the published test data is not in {path}; set DELTASTAR_DATA to where it is")
    return path
