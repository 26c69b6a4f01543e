"""Commit and resume: cut anywhere after a commit, an output ends up as if nothing had happened."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deltastar.delta import Delta
from deltastar.errors import CheckpointError
from deltastar.rdf.terms import IRI, Literal
from deltastar.sink import DeltaSink, SinkState, open_sink
from deltastar.sink.base import BATCH
from deltastar.sink.encode import JsonLines
from deltastar.sink.files import PartsSink
from deltastar.sink.parquet import ParquetSink

VARIABLES = {"q": ("a", "b")}
DELTAS = [
    Delta("q", seq, "+-"[seq % 2], {"a": IRI(f"http://ex/{seq % 7}"), "b": Literal(f'"\n{seq}')}) for seq in range(300)
]
DESTINATIONS = {"d.jsonl": None, "d.csv": None, "d.tsv": None, "d/": None, "d.csv/": None, "d.parquet": None}


def content(directory: Path) -> dict[str, bytes]:
    """The visible files and their bytes."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def damage(directory: Path) -> None:
    """What a killed run leaves after its last commit: more lines, a torn one, later parts, unfinished ones."""
    for path in list(directory.rglob("*")):
        if path.is_file() and path.suffix != ".parquet":
            path.write_bytes(path.read_bytes() + b'{"query":"q","seq":9}\ntorn')
    for parts in filter(Path.is_dir, directory.iterdir()):
        extension = next(parts.iterdir()).suffix if any(parts.iterdir()) else ".parquet"
        (parts / f"part-00007{extension}").write_bytes(b"later")
        (parts / ".part-00001.parquet.tmp").write_bytes(b"unfinished")


def through_json(state: SinkState) -> SinkState:
    return json.loads(json.dumps(state))


def run_with_commits(dest: str, interrupted: bool, cuts: tuple[int, ...]) -> None:
    """Writes all deltas with a commit at each cut; when interrupted, everything is dropped and damaged after each."""
    state: SinkState | None = None
    sink = open_sink(dest, None, VARIABLES)
    for start, end in zip((0, *cuts), (*cuts, len(DELTAS)), strict=True):
        sink.write(DELTAS[start:end])
        state = through_json(sink.commit())
        if interrupted:
            sink.write(DELTAS[end : end + 20])
            sink.close()
            damage(Path(dest).parent)
            sink = open_sink(dest, None, VARIABLES, resume=state)
    sink.close()


@pytest.mark.parametrize("dest", DESTINATIONS)
@pytest.mark.parametrize("cuts", [(0,), (1,), (100, 100, 299), (150, 300)])
def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path: Path, dest: str, cuts: tuple[int, ...]) -> None:
    for name, interrupted in (("plain", False), ("cut", True)):
        (tmp_path / name).mkdir()
        run_with_commits(f"{tmp_path}/{name}/{dest}", interrupted, cuts)
    assert content(tmp_path / "cut") == content(tmp_path / "plain")


@pytest.mark.parametrize("dest", DESTINATIONS)
def test_resuming_from_a_commit_of_nothing(tmp_path: Path, dest: str) -> None:
    path = f"{tmp_path}/{dest}"
    with open_sink(path, None, VARIABLES) as sink:
        state = sink.commit()
        sink.write(DELTAS)
    with open_sink(path, None, VARIABLES, resume=state) as sink:
        sink.write(DELTAS[:5])
    first = content(tmp_path)
    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    with open_sink(path, None, VARIABLES) as sink:
        sink.write(DELTAS[:5])
    assert content(tmp_path) == first


def jsonl_parts(path: str, state: SinkState | None) -> DeltaSink:
    return PartsSink(path, JsonLines(), state, part_bytes=2_000_000)


def parquet_parts(path: str, state: SinkState | None) -> DeltaSink:
    return ParquetSink(path, {"q": ()}, resume=state, part_rows=BATCH)


@pytest.mark.parametrize("opened", [jsonl_parts, parquet_parts])
def test_parts_roll_over_and_resume_in_the_middle(
    tmp_path: Path, opened: Callable[[str, SinkState | None], DeltaSink], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deltastar.sink.parquet.ROW_GROUP", BATCH)
    many = [Delta("q", seq, "+", {}) for seq in range(20 * BATCH)]
    for name, resumes in (("plain", False), ("cut", True)):
        path = f"{tmp_path}/{name}"
        sink = opened(path, None)
        sink.write(many[: 10 * BATCH])
        state = sink.commit()
        if resumes:
            sink.write(many[: 10 * BATCH])
            sink.close()
            sink = opened(path, through_json(state))
        sink.write(many[10 * BATCH :])
        sink.close()
    assert content(tmp_path / "cut") == content(tmp_path / "plain")
    assert len(content(tmp_path / "cut")) > 3


@pytest.mark.parametrize(
    ("dest", "spoil", "message"),
    [
        ("d.jsonl", lambda path: path.unlink(), "the file is gone; restore it, or start anew without its checkpoint"),
        ("d.jsonl", lambda path: path.write_bytes(b"x" * 10), "it is not the file that the checkpoint describes"),
        ("d.jsonl", lambda path: path.write_bytes(b"x" * 10**6), "it is not the file that the checkpoint describes"),
        ("d/", lambda path: (path / "part-00000.jsonl").unlink(), "part-00000.jsonl: the file is gone"),
        ("d.parquet", lambda path: (path / "part-00000.parquet").unlink(), "part-00000.parquet is gone"),
    ],
)
def test_an_output_that_is_not_the_committed_one_is_refused(
    tmp_path: Path, dest: str, spoil: Callable[[Path], object], message: str
) -> None:
    path = f"{tmp_path}/{dest}"
    with open_sink(path, None, VARIABLES) as sink:
        sink.write(DELTAS)
        state = sink.commit()
    spoil(Path(path))
    before = content(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        open_sink(path, None, VARIABLES, resume=state)
    assert message in str(caught.value)
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("dest", "format", "variables", "message"),
    [
        ("d/", None, VARIABLES, "the checkpoint was made with output 'file', and this run has 'parts'"),
        ("d.csv", "tsv", VARIABLES, "the checkpoint was made with format 'csv', and this run has 'tsv'"),
        ("d.csv", None, {"q": ("a",)}, "with columns ['query', 'seq', 'op', 'a', 'b'], and this run has"),
    ],
)
def test_a_state_of_another_sink_is_refused(
    tmp_path: Path, dest: str, format: str | None, variables: dict[str, tuple[str, ...]], message: str
) -> None:
    with open_sink(f"{tmp_path}/d.csv", None, VARIABLES) as sink:
        state = sink.commit()
    before = content(tmp_path)
    with pytest.raises(CheckpointError) as caught:
        open_sink(f"{tmp_path}/{dest}", format, variables, resume=state)
    assert message in str(caught.value)
    assert content(tmp_path) == before
