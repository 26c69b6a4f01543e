"""Text outputs: a file, a directory of part files, standard output.

Bytes are gathered in memory and leave in large writes, or at a flush. A file's committed length is all it takes to
continue it: whatever lies beyond is cut off. A part file keeps growing over commits and is left for the next one when
it is large enough, so that frequent commits do not make small files.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from contextlib import suppress
from typing import IO

from deltastar.delta import Delta
from deltastar.errors import CheckpointError, UsageError
from deltastar.sink.base import DeltaSink, SinkState, check_parent, doing, sync_directory
from deltastar.sink.encode import Encoder, utf8

BUFFER_BYTES = 1 << 20
PART_BYTES = 256 << 20

_PART = re.compile(r"\.?part-(\d{5,})\.(?:jsonl|csv|tsv|parquet)(?:\.tmp)?")


class AppendFile:
    """A file that only grows, in bytes, and that can be cut back to an earlier length when it is opened.

    Unbuffered underneath: after a failed write nothing is left to be tried again when the interpreter ends.
    """

    def __init__(self, path: str, resume_length: int | None = None) -> None:
        self.path = path
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._is_new = resume_length is None or not os.path.exists(path)
        with doing(f"open {path}"):
            self._file = self._open(resume_length)
            self.is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
        self.length = resume_length or 0

    def _open(self, resume_length: int | None) -> IO[bytes]:
        if resume_length is None:
            return open(self.path, "wb", buffering=0)
        check_length(self.path, resume_length)
        file = open(self.path, "wb" if self._is_new else "r+b", buffering=0)  # noqa: SIM115
        file.truncate(resume_length)
        file.seek(resume_length)
        return file

    def append(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)
        self.length += len(data)
        if self._pending_bytes >= BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is pending. After a failure the rest is still pending: a second try loses and doubles nothing."""
        data = b"".join(self._pending)
        view, written = memoryview(data), 0
        try:
            with doing(f"write {self.path}"):
                while written < len(data):
                    written += self._file.write(view[written:])
        finally:
            self._pending = [data[written:]] if written < len(data) else []
            self._pending_bytes = len(data) - written

    def sync(self) -> None:
        """Flushes, and waits until the file is on disk under its name."""
        if not self.is_regular:
            raise UsageError(f"{self.path} is not a regular file; output to it cannot be resumed")
        self.flush()
        with doing(f"write {self.path}"):
            os.fsync(self._file.fileno())
            if self._is_new:
                sync_directory(os.path.dirname(self.path))
                self._is_new = False

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            self.flush()
        finally:
            self._file.close()


def check_length(path: str, length: int) -> None:
    """Raises `CheckpointError` unless the file still holds the lines that were committed."""
    if length == 0:
        return
    if not os.path.exists(path):
        raise CheckpointError(
            f"cannot continue {path}: the file is gone; restore it, or start anew without its checkpoint"
        )
    with open(path, "rb") as file:
        file.seek(length - 1)
        last = file.read(1)
    if last != b"\n":
        raise CheckpointError(
            f"cannot continue {path}: it is not the file that the checkpoint describes "
            f"(no line ends at byte {length}); restore it, or start anew without its checkpoint"
        )


class FileSink(DeltaSink):
    """One file in `seq` order."""

    def __init__(self, path: str, encoder: Encoder, resume: SinkState | None = None) -> None:
        super().__init__()
        check_parent(path)
        self._encoder = encoder
        self._file = AppendFile(path, None if resume is None else resume["length"])
        if self._file.length == 0:
            self._file.append(utf8(encoder.header))
            self._file.flush()

    @staticmethod
    def kind(encoder: Encoder) -> SinkState:
        """What a state to resume from must agree with."""
        return {"output": "file", "format": encoder.format, "columns": encoder.columns}

    @property
    def length(self) -> int:
        """Bytes encoded so far, buffered ones included."""
        return self._file.length

    def _put(self, batch: list[Delta]) -> None:
        self._file.append(utf8(self._encoder.encode(batch)))

    def _put_encoded(self, data: bytes | memoryview) -> None:
        self._file.append(bytes(data))

    def _push(self) -> None:
        self._file.flush()

    def commit(self) -> SinkState:
        self._drain()
        self._file.sync()
        return {**self.kind(self._encoder), "length": self.length}

    def close(self) -> None:
        try:
            self._drain()
        finally:
            self._file.close()


class PartsSink(DeltaSink):
    """A directory of part files, each with its own header."""

    def __init__(
        self, directory: str, encoder: Encoder, resume: SinkState | None = None, part_bytes: int = PART_BYTES
    ) -> None:
        super().__init__()
        self._directory, self._encoder, self._part_bytes = directory, encoder, part_bytes
        self._part = 0
        if resume is not None:
            self._part = resume["part"]
            check_length(self._part_path(), resume["length"])
        prepare_directory(directory, first_dropped_part=0 if resume is None else self._part + 1)
        self._sink = FileSink(self._part_path(), encoder, resume)

    @staticmethod
    def kind(encoder: Encoder) -> SinkState:
        """What a state to resume from must agree with."""
        return {"output": "parts", "format": encoder.format, "columns": encoder.columns}

    def _put(self, batch: list[Delta]) -> None:
        self._make_room()
        self._sink.write(batch)

    def _put_encoded(self, data: bytes | memoryview) -> None:
        self._make_room()
        self._sink.write_encoded(data, 0)

    def _push(self) -> None:
        self._sink.flush()

    def commit(self) -> SinkState:
        self._drain()
        return {**self._sink.commit(), **self.kind(self._encoder), "part": self._part}

    def close(self) -> None:
        try:
            self._drain()
        finally:
            self._sink.close()

    def _make_room(self) -> None:
        """Begins the next part when this one is large enough."""
        if self._sink.length >= self._part_bytes:
            self._sink.commit()
            self._sink.close()
            self._part += 1
            self._sink = FileSink(self._part_path(), self._encoder)

    def _part_path(self) -> str:
        return os.path.join(self._directory, part_name(self._part, self._encoder.format))


class StdoutSink(DeltaSink):
    """Standard output. It cannot be cut back, and so cannot be committed."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self._encoder = encoder
        self._print(utf8(encoder.header))

    def _put(self, batch: list[Delta]) -> None:
        self._print(utf8(self._encoder.encode(batch)))

    def _put_encoded(self, data: bytes | memoryview) -> None:
        self._print(data)

    def _push(self) -> None:
        self._print(b"", flush=True)

    def commit(self) -> SinkState:
        raise UsageError("standard output cannot be resumed; write the deltas to a file or a directory")

    def close(self) -> None:
        self.flush()

    def _print(self, data: bytes | memoryview, flush: bool = False) -> None:
        if sys.stdout is None:
            raise UsageError("standard output is closed; name a file with --deltas")
        output = sys.stdout.buffer
        try:
            with doing("write standard output"):
                output.write(data)
                if flush:
                    output.flush()
        except OSError:
            drop_stdout()
            raise


def drop_stdout() -> None:
    """After a failure: what is still buffered goes nowhere, instead of failing again when the interpreter ends."""
    with suppress(OSError):  # a stdout without a descriptor cannot fail like this
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def part_name(part: int, format: str) -> str:
    return f"part-{part:05d}.{format}"


def prepare_directory(directory: str, first_dropped_part: int) -> None:
    """Makes the directory, and removes the parts from a number on, unfinished ones in any case."""
    directory = directory.rstrip("/") or "/"
    check_parent(directory)
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise UsageError(f"cannot write {directory}/: {directory} is a file, and a directory is needed")
    with doing(f"prepare {directory}"):
        os.makedirs(directory, exist_ok=True)
        for name in os.listdir(directory):
            match = _PART.fullmatch(name)
            if match and (name.startswith(".") or int(match[1]) >= first_dropped_part):
                os.remove(os.path.join(directory, name))
        sync_directory(os.path.dirname(directory))
