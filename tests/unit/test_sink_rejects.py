"""The dead-letter output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deltastar.errors import CheckpointError, UsageError
from deltastar.rdf.update import Malformed
from deltastar.sink import default_rejects_path, open_rejects

ROW = Malformed("updates.rdfp", 12, 7, "'x' is not a term", 'A x <p> "é" .')
LINE = (
    '{"source":"updates.rdfp","line":12,"column":7,"reason":"\'x\' is not a term","text":"A x <p> \\"é\\" ."}\n'
).encode()


def test_bytes_and_count(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with open_rejects(str(path)) as rejects:
        assert not path.exists()
        rejects.write(ROW)
        rejects.write(ROW)
        assert rejects.count == 2
        rejects.flush()
        assert path.read_bytes() == 2 * LINE
        assert rejects.path == str(path)


@pytest.mark.parametrize("text", ["\udc80", "a\udcffb\ud800", "nul\0\x1b\x7f", "🎉\u2028", "long" * 50_000])
def test_any_text_becomes_valid_utf_8(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.jsonl"
    with open_rejects(str(path)) as rejects:
        rejects.write(Malformed("\udc80", 1, 1, text, text))
    line = path.read_bytes().decode("utf-8")
    assert line.count("\n") == 1
    assert json.loads(line)["text"] == text


def test_a_file_of_an_earlier_run_is_emptied_at_once(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(LINE)
    open_rejects(str(path)).close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize("before", [0, 1, 3])
def test_resume_cuts_off_what_came_after_the_commit(tmp_path: Path, before: int) -> None:
    path = tmp_path / "r.jsonl"
    with open_rejects(str(path)) as rejects:
        for _ in range(before):
            rejects.write(ROW)
        state = json.loads(json.dumps(rejects.commit()))
        rejects.write(ROW)
    with path.open("ab") as file:
        file.write(b"torn")
    with open_rejects(str(path), resume=state) as rejects:
        assert rejects.count == before
        assert path.read_bytes() == before * LINE
        assert rejects.commit() == state
        rejects.write(ROW)
        assert rejects.count == before + 1
    assert path.read_bytes() == (before + 1) * LINE


def test_resume_without_rejects_needs_no_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with open_rejects(str(path)) as rejects:
        state = rejects.commit()
    open_rejects(str(path), resume=state).close()
    assert not path.exists()


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the directory .*/no does not exist; create it first"):
        open_rejects(f"{tmp_path}/no/r.jsonl")
    with pytest.raises(UsageError, match="is a directory; give a file for the rejected rows"):
        open_rejects(str(tmp_path))
    with open_rejects(f"{tmp_path}/r.jsonl") as rejects:
        rejects.write(ROW)
        state = rejects.commit()
    (tmp_path / "r.jsonl").unlink()
    with pytest.raises(CheckpointError, match="the file is gone"):
        open_rejects(f"{tmp_path}/r.jsonl", resume=state)
    with pytest.raises(CheckpointError, match="the checkpoint was made with output 'file'"):
        open_rejects(f"{tmp_path}/r.jsonl", resume={"output": "file"})


@pytest.mark.parametrize(
    ("dest", "path"),
    [
        ("-", "deltastar.rejects.jsonl"),
        ("kafka://h:1/t", "deltastar.rejects.jsonl"),
        ("/dev/null", "deltastar.rejects.jsonl"),
        ("deltas.jsonl", "deltas.jsonl.rejects.jsonl"),
        ("a/b", "a/b.rejects.jsonl"),
        ("a/b/", "a/b.rejects.jsonl"),
    ],
)
def test_default_path(dest: str, path: str) -> None:
    assert default_rejects_path(dest) == path


def test_default_path_of_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_rejects_path("./") == f"{tmp_path}.rejects.jsonl"
