"""What a shard has applied, remembered so that it can be made anew.

In: for each micro-batch the packed splits that the shard got, and now and then a snapshot of its state. Out: the latest
snapshot up to a point, and the batches behind it. Every entry carries the *chain* of the state after it: a digest of
all batches so far, by which an arena is known to belong to this history and not to another one.

A batch may be logged again (a task that is tried again, or runs twice at once): its contents are the same. Therefore an
entry is written under a name of its own and then renamed, whoever comes last. What a snapshot supersedes is removed
only when a later batch is logged, for until then the batch of the snapshot itself may have to be applied again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from deltastar.errors import CheckpointError
from deltastar.sink.base import doing, sync_directory

Splits = Sequence[tuple[str, bytes]]
"""The splits of a batch in order: the source that a split is from, and its blob."""
NOTHING = -1
"""The batch before the first one."""


class Entry(NamedTuple):
    """A batch in the journal."""

    batch: int
    chain: int
    size: int
    """Bytes."""


class Recovery(NamedTuple):
    """How to come to the state after a batch."""

    snapshot: Entry | None
    chunks: Iterator[bytes]
    """What the snapshot was written of."""
    batches: Iterator[tuple[Entry, Splits]]
    """The batches behind the snapshot, in order."""


class Journal(Protocol):
    """Durable memory of one shard."""

    def entry(self, batch: int) -> Entry | None:
        """The last batch up to this one that the journal has, as a log or as a snapshot."""

    def latest(self) -> int:
        """The last batch that the journal has at all, or `NOTHING`."""

    def log(self, batch: int, chain: int, splits: Splits) -> int:
        """Remembers a batch. It is durable when this returns. Gives its size in bytes."""

    def snapshot(self, batch: int, chain: int, chunks: Iterable[bytes]) -> int:
        """Remembers the state after a batch that is logged. Gives its size in bytes."""

    def read(self, batch: int, behind: int | None = None) -> Recovery:
        """How to come to the state after the last batch up to this one.

        From the state after the batch `behind`, if that is given and what came then is logged: then without a snapshot.
        """


def chain_of(before: int, batch: int, splits: Splits) -> int:
    """The chain after a batch, from the one before it: never 0, which is that of the empty state.

    >>> chain_of(0, 0, [("a", b"x")]) == chain_of(0, 0, [("a", b"x")]) != chain_of(0, 0, [("a", b"y")])
    True
    """
    digest = hashlib.blake2b(struct.pack("<qq", before, batch), digest_size=8)
    for source, blob in splits:
        name = source.encode("utf-8", "surrogatepass")
        digest.update(struct.pack("<qqI", len(name), len(blob), zlib.crc32(blob)) + name)
    return int.from_bytes(digest.digest(), "little") >> 1 | 1


class MemoryJournal:
    """A journal that lasts as long as the process: for tests, and for streams that end."""

    def __init__(self) -> None:
        self._logs: dict[int, tuple[Entry, list[tuple[str, bytes]]]] = {}
        self._snapshots: dict[int, tuple[Entry, list[bytes]]] = {}

    def entry(self, batch: int) -> Entry | None:
        """See `Journal`."""
        known = [key for key in (*self._logs, *self._snapshots) if key <= batch]
        if not known:
            return None
        last = max(known)
        return self._logs[last][0] if last in self._logs else self._snapshots[last][0]

    def latest(self) -> int:
        """See `Journal`."""
        return max((*self._logs, *self._snapshots), default=NOTHING)

    def log(self, batch: int, chain: int, splits: Splits) -> int:
        """See `Journal`."""
        size = sum(len(blob) for _, blob in splits)
        self._logs[batch] = Entry(batch, chain, size), [(source, bytes(blob)) for source, blob in splits]
        keep = max((key for key in self._snapshots if key < batch), default=NOTHING)
        for old in [key for key in self._logs if key <= keep]:
            del self._logs[old]
        for old in [key for key in self._snapshots if key < keep]:
            del self._snapshots[old]
        return size

    def snapshot(self, batch: int, chain: int, chunks: Iterable[bytes]) -> int:
        """See `Journal`."""
        kept = [bytes(chunk) for chunk in chunks]
        size = sum(map(len, kept))
        self._snapshots[batch] = Entry(batch, chain, size), kept
        return size

    def read(self, batch: int, behind: int | None = None) -> Recovery:
        """See `Journal`."""
        first = max((key for key in self._snapshots if key <= batch), default=None)
        snapshot, chunks = self._snapshots[first] if first is not None else (None, [])
        if behind is not None and (first is None or first <= behind):
            first, snapshot, chunks = behind, None, []
        later = sorted(key for key in self._logs if (first is None or key > first) and key <= batch)
        return Recovery(snapshot, iter(chunks), (self._logs[key] for key in later))


# Files ---------------------------------------------------------------------------------------------------------------

_MAGIC = b"DSJOURN1"
_FRAME = struct.Struct("<qII")
_START = struct.Struct("<8sqqq")
_END = -1
_LOOK_EVERY = 64
"""Batches, until a journal looks for what others have left."""
_UNFINISHED_S = 3600.0
_IDENTITY = "journal.json"
_FORMAT = 1


class FileJournal:
    """A journal in a directory of its own.

    A file starts with what it is, then come frames (length, checksum of the length, checksum, bytes), then a frame that
    says that it is whole. One that is not, or whose bytes have changed, is never taken for the truth.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = Path(directory)
        self._is_snapshot_new = True
        with doing(f"make the journal {directory}"):
            self._directory.mkdir(parents=True, exist_ok=True)

    def entry(self, batch: int) -> Entry | None:
        """See `Journal`."""
        for kind in ("log", "snapshot"):  # nearly always it is the batch that was logged last
            path = self._path(kind, batch)
            if path.exists():
                return _entry_of(path)
        known = max(((key, kind) for kind in ("log", "snapshot") for key in self._batches(kind) if key <= batch),
                    default=None)  # fmt: skip
        return _entry_of(self._path(known[1], known[0])) if known else None

    def latest(self) -> int:
        """See `Journal`."""
        return max((*self._batches("log"), *self._batches("snapshot")), default=NOTHING)

    def log(self, batch: int, chain: int, splits: Splits) -> int:
        """See `Journal`."""
        frames = [part for source, blob in splits for part in (source.encode("utf-8", "surrogatepass"), blob)]
        with doing(f"write the journal {self._directory}"):
            size = self._write(self._path("log", batch), batch, chain, frames)
            if self._is_snapshot_new or batch % _LOOK_EVERY == 0:
                self._forget_before(batch)
        return size

    def snapshot(self, batch: int, chain: int, chunks: Iterable[bytes]) -> int:
        """See `Journal`."""
        with doing(f"write the journal {self._directory}"):
            self._is_snapshot_new = True
            return self._write(self._path("snapshot", batch), batch, chain, chunks)

    def read(self, batch: int, behind: int | None = None) -> Recovery:
        """See `Journal`."""
        first = max((key for key in self._batches("snapshot") if key <= batch), default=None)
        is_behind = behind is not None and (first is None or first <= behind)
        if is_behind:
            first = behind
        later = sorted(key for key in self._batches("log") if (first is None or key > first) and key <= batch)
        logs = (_log(self._path("log", key)) for key in later)
        if first is None or is_behind:
            return Recovery(None, iter(()), logs)
        path = self._path("snapshot", first)
        return Recovery(_entry_of(path), _frames(path), logs)

    def _path(self, kind: str, batch: int) -> Path:
        return self._directory / f"{kind}-{batch:012}"

    def _batches(self, kind: str) -> list[int]:
        names = (name.removeprefix(kind + "-") for name in os.listdir(self._directory) if name.startswith(kind + "-"))
        return [int(name) for name in names if name.isdigit()]

    def _write(self, path: Path, batch: int, chain: int, frames: Iterable[bytes]) -> int:
        temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(_START.pack(_MAGIC, batch, chain, 0))
                for frame in frames:
                    file.write(_frame_head(len(frame), zlib.crc32(frame)))
                    file.write(frame)
                file.write(_frame_head(_END, 0))
                size = file.tell()
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_directory(str(self._directory))
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        return size

    def _forget_before(self, batch: int) -> None:
        """Removes what the last snapshot before this batch has made needless, and what was never finished."""
        self._is_snapshot_new = False
        for unfinished in self._directory.glob("*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - unfinished.stat().st_mtime > _UNFINISHED_S:
                    unfinished.unlink()
        snapshots = [key for key in self._batches("snapshot") if key < batch]
        if not snapshots:
            return
        keep = max(snapshots)
        for kind, last in (("log", keep), ("snapshot", keep - 1)):
            for key in self._batches(kind):
                if key <= last:
                    self._path(kind, key).unlink(missing_ok=True)


def claim(directory: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
    """Says whose journals a directory holds, if nobody has said so; otherwise they must be of the same settings.

    Call it once before a run writes anything: the run of other queries, or with another number of shards, is refused.
    """
    path = Path(directory) / _IDENTITY
    mine = {"format": _FORMAT, **settings}
    with doing(f"make the journal {directory}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(mine, file, ensure_ascii=False, indent=1)
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, path)
            temporary.unlink()
            sync_directory(str(path.parent))
    try:
        there = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged ({error}); remove {directory} to start anew") from error
    for key in dict.fromkeys((*there, *mine)):
        if there.get(key) != (now := json.loads(json.dumps(mine.get(key)))):
            raise CheckpointError(
                f"{directory} belongs to a run with other {key}: {_brief(there.get(key))}, now {_brief(now)}; "
                "repeat that command, or name a new directory"
            )


def _frame_head(length: int, checksum: int) -> bytes:
    return _FRAME.pack(length, zlib.crc32(length.to_bytes(8, "little", signed=True)), checksum)


def _entry_of(path: Path) -> Entry:
    with doing(f"read the journal {path}"), path.open("rb") as file:
        start = file.read(_START.size)
        size = os.fstat(file.fileno()).st_size
    if len(start) < _START.size or not start.startswith(_MAGIC):
        raise CheckpointError(f"{path} is damaged: it is no file of a journal")
    _, batch, chain, _ = _START.unpack(start)
    return Entry(batch, chain, size)


def _frames(path: Path) -> Iterator[bytes]:
    with doing(f"read the journal {path}"), path.open("rb") as file:
        file.seek(_START.size)
        while True:
            head = file.read(_FRAME.size)
            if len(head) == _FRAME.size:
                length, of_length, checksum = _FRAME.unpack(head)
                if of_length == zlib.crc32(length.to_bytes(8, "little", signed=True)):
                    if length == _END:
                        return
                    frame = file.read(length)
                    if len(frame) == length and zlib.crc32(frame) == checksum:
                        yield frame
                        continue
            raise CheckpointError(f"{path} is damaged at byte {file.tell()}; remove the checkpoint to start anew")


def _log(path: Path) -> tuple[Entry, Splits]:
    parts = list(_frames(path))
    return _entry_of(path), [
        (source.decode("utf-8", "surrogatepass"), blob) for source, blob in zip(parts[::2], parts[1::2], strict=True)
    ]


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
