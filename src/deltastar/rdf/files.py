"""Files, pipes and directories: bytes of text as they come, and faults told apart.

An `Input` gives the text of one file, decompressed, in pieces. `read` returns `b""` when there is no more for now;
`finish` says that there should be no more at all. What goes wrong is a `ReadFault`, raised behind the last good byte.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol, cast

from deltastar.errors import UsageError
from deltastar.rdf.compression import Damage, decoder_of
from deltastar.rdf.formats import Compression, compression

STANDARD_INPUT = "-"

_WHOLE_COPY = "get a whole copy of it and run again"
_UNFINISHED = (".tmp", ".part", "~")


class ReadFault(Exception):
    """Why a file cannot be read, or not to its end, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason, self.remedy = reason, remedy
        super().__init__(reason)


class Raw(Protocol):
    """Bytes as they are stored."""

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; none when there are no more for now."""

    def seek(self, offset: int) -> bool:
        """Goes to an offset, where that can be done."""

    def finish(self) -> None:
        """Raises `ReadFault` if bytes are missing that were there."""

    def check_followed(self) -> None:
        """Raises `ReadFault` when what is followed is something else by now."""

    def close(self) -> None:
        """Lets go of it."""


class Input:
    """The text of one file, from an offset on."""

    def __init__(self, path: str, chunk_bytes: int, offset: int = 0) -> None:
        self._chunk_bytes = chunk_bytes
        self._raw: Raw = StandardInput() if path == STANDARD_INPUT else File(path)
        kind = compression(path)
        self._decoder = decoder_of(kind, chunk_bytes)
        self._pieces: Iterator[bytes] = iter(())
        self._stored_bytes = 0
        self._to_skip = offset
        if offset and kind is Compression.NONE and self._raw.seek(offset):
            self._stored_bytes, self._to_skip = offset, 0

    def __enter__(self) -> Input:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()

    def read(self) -> bytes:
        """The next piece; empty when there is no more for now."""
        while True:
            try:
                piece = next(self._pieces, None)
            except Damage as damage:
                raise ReadFault(str(damage), _WHOLE_COPY) from None
            if piece is None:
                data = self._raw.read(self._chunk_bytes)
                if not data:
                    return b""
                self._stored_bytes += len(data)
                self._pieces = self._decoder.feed(data)
            elif self._to_skip < len(piece):
                piece, self._to_skip = piece[self._to_skip :], 0
                return piece
            else:
                self._to_skip -= len(piece)

    def finish(self) -> None:
        """Says that this should be all. Raises `ReadFault` when it is not."""
        self._raw.finish()
        try:
            self._decoder.close()
        except Damage as damage:
            raise ReadFault(str(damage), _WHOLE_COPY) from None
        if self._to_skip:
            raise ReadFault("it is shorter than it was when it was read before", _WHOLE_COPY)

    def check_followed(self) -> None:
        """Raises `ReadFault` when the file that is followed is another one by now."""
        self._raw.check_followed()

    @property
    def stored_bytes(self) -> int:
        """How many bytes have been read as they are stored."""
        return self._stored_bytes

    @property
    def is_whole(self) -> bool:
        """Whether the file may end here, for all that its compression tells."""
        try:
            self._decoder.close()
        except Damage:
            return False
        return True


class File:
    """A file in a file system; it may grow while it is read."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            self._status = os.fstat(self._descriptor)
        except OSError as error:
            raise _fault(error) from None
        self._at = 0

    def read(self, size: int) -> bytes:
        """At most `size` bytes."""
        try:
            data = os.read(self._descriptor, size)
        except OSError as error:
            raise _fault(error) from None
        self._at += len(data)
        return data

    def seek(self, offset: int) -> bool:
        """Goes to an offset; a pipe cannot."""
        if not stat.S_ISREG(self._status.st_mode) or offset > self._status.st_size:
            return False
        self._at = os.lseek(self._descriptor, offset, os.SEEK_SET)
        return True

    def finish(self) -> None:
        """Raises `ReadFault` if the file has shrunk."""
        if stat.S_ISREG(self._status.st_mode) and self._at < self._status.st_size:
            raise ReadFault("it became shorter while it was read", _WHOLE_COPY)

    def check_followed(self) -> None:
        """Raises `ReadFault` if what is followed is not the file at this path any more."""
        try:
            now = os.stat(self._path)
        except OSError as error:
            raise _fault(error) from None
        if (now.st_ino, now.st_dev) != (self._status.st_ino, self._status.st_dev):
            raise ReadFault("another file took its place while it was followed", "follow a directory instead")
        if stat.S_ISREG(now.st_mode) and now.st_size < self._at:
            raise ReadFault("it was cut back while it was followed", "follow a directory instead")

    def close(self) -> None:
        """Lets go of the file."""
        os.close(self._descriptor)


class StandardInput:
    """Rows as they arrive: `read1` does not wait for a whole chunk."""

    def __init__(self) -> None:
        if sys.stdin is None or sys.stdin.closed:
            raise ReadFault("there is no standard input", "name a file")
        self._file = cast(io.BufferedReader, sys.stdin.buffer)

    def read(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any."""
        try:
            return self._file.read1(size)
        except OSError as error:
            raise _fault(error) from None

    def seek(self, offset: int) -> bool:
        """It cannot."""
        return False

    def finish(self) -> None:
        """What arrived is all there is."""

    def check_followed(self) -> None:
        """It stays what it is."""

    def close(self) -> None:
        """Standard input is not ours to close."""


class WholeLines:
    """Pieces of text in, whole lines out; what is left waits for its line end. Linear, however long the line is."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def push(self, piece: bytes) -> bytes:
        """The whole lines that there are now. A CR at the end waits: an LF may follow."""
        if self._waiting and self._waiting[-1][-1:] == b"\r":
            self._waiting[-1] = self._waiting[-1][:-1]
            piece = b"\r" + piece
        end = piece.rfind(b"\n") + 1
        end = max(end, piece.rfind(b"\r", end, len(piece) - 1) + 1)
        if not end:
            self._waiting.append(piece)
            return b""
        whole = b"".join((*self._waiting, piece[:end])) if self._waiting else piece[:end]
        self._waiting = [piece[end:]] if end < len(piece) else []
        return whole

    def flush(self) -> bytes:
        """What is left: a last line without its end."""
        rest = b"".join(self._waiting)
        self._waiting = []
        return rest

    def __bool__(self) -> bool:
        return bool(self._waiting)


def names_in(directory: str) -> list[str]:
    """The files in a directory, in the order of their names. Hidden and unfinished files do not count."""
    try:
        with os.scandir(directory) as entries:
            return sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and not entry.name.endswith(_UNFINISHED) and not entry.is_dir()
            )
    except OSError as error:
        raise _fault(error) from None


def check_is_there(spec: str) -> None:
    """Raises `UsageError` when there is no such file or directory."""
    if spec != STANDARD_INPUT and not os.path.exists(spec):
        raise UsageError(f"{spec} is not there")


def _fault(error: OSError) -> ReadFault:
    if isinstance(error, FileNotFoundError):
        return ReadFault("it is not there any more", "put it back and run again")
    reason = error.strerror or str(error)
    return ReadFault(f"{reason[:1].lower()}{reason[1:]}", "make it readable and run again")
