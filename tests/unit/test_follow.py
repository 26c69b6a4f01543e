"""Following files and directories as they grow."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deltastar.errors import SourceError, UsageError
from deltastar.rdf import listing, source
from deltastar.rdf.source import Batch, Position, open_stream
from deltastar.rdf.update import Event, Malformed, Mark
from tests.support.rows import NT, row, update, write


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "POLL_S", 0.005)


def until(stream: Iterator[Batch], count: int) -> list[Event]:
    """The next events; fails when they do not come."""
    events: list[Event] = []
    deadline = time.monotonic() + 20
    for batch in stream:
        events += batch.events
        if len(events) >= count:
            return events
        assert time.monotonic() < deadline, f"{len(events)} events of {count}"
    raise AssertionError(f"the stream ended after {events}")


def idle(stream: Iterator[Batch], batches: int = 15) -> list[Batch]:
    """The next batches, which must be empty."""
    some = [next(stream) for _ in range(batches)]
    assert [batch.events for batch in some] == [[]] * batches
    return some


@pytest.mark.usefixtures("_quick")
def test_a_file_is_followed_as_it_grows(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "a.rdfp", row(1) + row(2)[:20]))
    stream = open_stream(str(path), follow=True)
    assert until(stream, 1) == [update(1)]
    assert {batch.position for batch in idle(stream)} == {Position(str(path), len(row(1)), 2)}
    with path.open("a") as file:
        file.write(row(2)[20:] + row(3) + row(4)[:-1])
        file.flush()
        assert until(stream, 2) == [update(2), update(3)]
        position = idle(stream)[-1].position
        file.write("\n")
    assert until(stream, 1) == [update(4)]
    assert until(open_stream(str(path), follow=True, start=position), 1) == [update(4)]


@pytest.mark.usefixtures("_quick")
def test_a_compressed_file_is_followed_member_by_member(tmp_path: Path) -> None:
    path = tmp_path / "a.rdfp.gz"
    member = gzip.compress(row(2).encode())
    path.write_bytes(gzip.compress(row(1).encode()) + member[:12])
    stream = open_stream(str(path), follow=True)
    assert until(stream, 1) == [update(1)]
    idle(stream)
    with path.open("ab") as file:
        file.write(member[12:])
    assert until(stream, 1) == [update(2)]


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("change", ["cut", "replaced", "gone"])
def test_a_followed_file_must_stay_the_same(tmp_path: Path, change: str) -> None:
    path = Path(write(tmp_path / "a.rdfp", row(1) + row(2)))
    stream = open_stream(str(path), follow=True)
    assert until(stream, 2) == [update(1), update(2)]
    if change == "cut":
        os.truncate(path, 3)
    else:
        path.unlink()
    if change == "replaced":
        write(tmp_path / "new", "")
        (tmp_path / "new").rename(path)
    reasons = {"cut": "it was cut back", "replaced": "another file took its place", "gone": "it is not there any more"}
    with pytest.raises(SourceError, match=reasons[change]):
        until(stream, 1)


@pytest.mark.usefixtures("_quick")
def test_a_directory_is_followed_as_files_appear(tmp_path: Path) -> None:
    stream = open_stream(str(tmp_path), follow=True)
    idle(stream)
    write(tmp_path / "1.rdfp", row(1))
    assert until(stream, 1) == [update(1)]
    idle(stream)
    write(tmp_path / "3.nt", NT.replace("/1", "/3"))
    write(tmp_path / "4.ru", "INSERT DATA { <http://ex/4> <http://ex/p> <http://ex/o> }")
    write(tmp_path / "5.rdfp.part", row(99))
    write(tmp_path / ".6.rdfp", row(99))
    assert until(stream, 4) == [update(3), Mark.BEGIN, update(4), Mark.COMMIT]
    idle(stream)
    (tmp_path / "5.rdfp.part").rename(tmp_path / "5.rdfp")
    assert until(stream, 1) == [update(99)]


@pytest.mark.usefixtures("_quick")
def test_the_last_file_of_a_directory_is_read_on_until_a_later_one_appears(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "1.rdfp", row(1)))
    stream = open_stream(str(tmp_path), follow=True)
    assert until(stream, 1) == [update(1)]
    idle(stream)
    with path.open("a") as file:
        file.write(row(2))
    assert until(stream, 1) == [update(2)]
    with path.open("a") as file:
        file.write(row(3)[:-1])
    write(tmp_path / "2.rdfp", row(4))
    assert until(stream, 2) == [update(3), update(4)]


@pytest.mark.usefixtures("_quick")
def test_an_unfinished_last_row_is_whole_once_it_has_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SETTLING_POLLS", 20)
    path = Path(write(tmp_path / "1.rdfp", row(1)[:10]))
    stream = open_stream(str(tmp_path), follow=True)
    idle(stream, 5)
    with path.open("a") as file:
        file.write(row(1)[10:-1])
    assert until(stream, 1) == [update(1)]
    with path.open("a") as file:
        file.write("\n" + row(2))
    (notice,) = until(stream, 1)
    assert isinstance(notice, Malformed)
    assert (notice.source, notice.is_message) == (str(path), False)
    assert "what was added is not read" in notice.reason
    idle(stream)
    write(tmp_path / "2.rdfp", row(3))
    assert until(stream, 1) == [update(3)]


@pytest.mark.usefixtures("_quick")
def test_files_that_come_too_late_or_cannot_be_read_are_reported_once(tmp_path: Path) -> None:
    write(tmp_path / "2.rdfp", row(2))
    stream = open_stream(str(tmp_path), follow=True)
    assert until(stream, 1) == [update(2)]
    late, other = write(tmp_path / "1.rdfp", row(1)), write(tmp_path / "3.txt", row(3))
    first, second = until(stream, 2)
    assert isinstance(first, Malformed)
    assert isinstance(second, Malformed)
    assert (first.source, first.is_message, first.line) == (late, False, 0)
    assert first.reason == "it appeared after 2.rdfp had been begun, and is not read; give it a later name"
    assert second.source == other
    assert "its name does not say what it holds" in second.reason
    idle(stream)
    write(tmp_path / "4.rdfp", row(4))
    assert until(stream, 1) == [update(4)]


@pytest.mark.usefixtures("_quick")
def test_a_file_that_appears_between_two_others_is_read_between_them(tmp_path: Path) -> None:
    write(tmp_path / "1.rdfp", row(1) + row(11))
    write(tmp_path / "3.rdfp", row(3))
    stream = open_stream(str(tmp_path), follow=True, chunk_bytes=len(row(1)))
    assert until(stream, 1) == [update(1)]
    write(tmp_path / "2.rdfp", row(2))
    assert until(stream, 3) == [update(11), update(2), update(3)]


@pytest.mark.usefixtures("_quick")
def test_a_followed_directory_continues_at_a_position(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path / f"{number}.rdfp", row(number) + row(number + 10))
    batches = open_stream(str(tmp_path), follow=True, chunk_bytes=len(row(1)))
    positions = [next(batches).position for _ in range(3)]
    (tmp_path / "1.rdfp").unlink()
    stream = open_stream(str(tmp_path), follow=True, start=positions[2])
    assert until(stream, 3) == [update(12), update(3), update(13)]
    idle(stream)


def test_a_request_cannot_be_followed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one transaction and does not grow; follow its directory"):
        open_stream(write(tmp_path / "a.ru", ""), follow=True)
