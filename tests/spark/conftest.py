"""One Spark for all tests of a process, and a run of the command line on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deltastar.cli import main
from deltastar.spark import pipeline
from deltastar.spark.session import Session, find_java

EXAMPLE = Path(__file__).parents[2] / "examples" / "transfers"
QUERIES = [str(EXAMPLE / f"{name}.rq") for name in ("ring", "mule", "alarm")]

Run = Callable[..., int]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One process of pytest-xdist has them all: a second Spark would take its memory and its cores."""
    for item in items:
        if "tests/spark" in str(item.path).replace("\\", "/"):
            item.add_marker(pytest.mark.xdist_group("spark"))


class SharedSession(Session):
    """It goes on when a run ends."""

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def session() -> Iterator[SharedSession]:
    """Two cores: fewer would run nothing side by side, and CI has no more."""
    if find_java() is None:
        pytest.skip("there is no Java, which Spark needs")
    shared = SharedSession("local[2]", [], False, lambda text: None)
    yield shared
    shared.stop()


@pytest.fixture
def spark(session: SharedSession) -> Any:
    """The session as users have it."""
    return session.spark


@pytest.fixture
def on_spark(session: SharedSession, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`on_spark("ring.rq", "--updates", …)` is `deltastar run --engine spark` in this process: its exit code."""
    monkeypatch.setattr(pipeline, "Session", lambda *_: session)

    def run(*arguments: str) -> int:
        return main(["run", *map(str, arguments), "--engine", "spark"])

    return run


@pytest.fixture
def transfers(tmp_path: Path) -> Path:
    """A directory with the example's stream."""
    return Path(shutil.copy(EXAMPLE / "transfers.rdfp", tmp_path))


def inline(*arguments: object) -> int:
    """The same run in this process."""
    return main(["run", *map(str, arguments), "--engine", "inline"])


def lines_by_seq(path: Path) -> list[tuple[int, str]]:
    """The lines, sorted within a seq. They must come in the order of seq."""
    import json

    lines = [(json.loads(line)["seq"], line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [seq for seq, _ in lines] == sorted(seq for seq, _ in lines)
    return sorted(lines)
