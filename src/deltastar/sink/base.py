"""What every sink does, and the state that a commit hands out.

Between calls: everything written is in the sink or beyond it, in the order it came. `flush` makes it visible to a
reader; `commit` makes it durable and says how far the output reaches, so that a run that continues from there can cut
off whatever came after.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Any, TypeVar

from deltastar.delta import Delta
from deltastar.errors import CheckpointError, InvariantError, SourceError, UsageError

SinkState = dict[str, Any]
"""How far a committed output reaches: a small dictionary that JSON can hold."""

BATCH = 8192
"""Deltas that a sink gathers before it encodes them together."""

_S = TypeVar("_S", bound="DeltaSink")


class DeltaSink(ABC):
    """Where deltas go. A context manager: leaving it closes, and so flushes.

    Deltas gather here first, so that many small writes cost little more than one large one. When an iterable fails
    half-way, what it gave before is kept.
    """

    def __init__(self) -> None:
        self._gathered: list[Delta] = []

    def write(self, deltas: Iterable[Delta]) -> int:
        """Takes deltas in `seq` order; returns how many there were."""
        gathered, count = self._gathered, 0
        deltas = iter(deltas)
        while True:
            before = len(gathered)
            gathered.extend(islice(deltas, BATCH - before))
            count += len(gathered) - before
            if len(gathered) < BATCH:
                return count
            self._drain()

    def write_encoded(self, data: bytes | memoryview, count: int) -> int:
        """Takes whole lines, in the format of this sink and in `seq` order; returns how many, as it was told.

        What was written before comes before them. The data may change after the call.
        """
        self._drain()
        self._put_encoded(data)
        return count

    def write_columns(self, batch: Any) -> int:
        """Takes an Arrow record batch with the columns of this sink, in `seq` order; returns how many rows it has."""
        self._drain()
        self._put_columns(batch)
        return int(batch.num_rows)

    def flush(self) -> None:
        """Makes everything written so far visible to a reader."""
        self._drain()
        self._push()

    def _drain(self) -> None:
        """Encodes what has gathered."""
        if self._gathered:
            batch = self._gathered.copy()
            self._gathered.clear()
            self._put(batch)

    @abstractmethod
    def _put(self, batch: list[Delta]) -> None:
        """Encodes a batch towards the output."""

    def _put_encoded(self, data: bytes | memoryview) -> None:
        """Puts lines towards the output."""
        raise InvariantError(f"{type(self).__name__} takes no lines")

    def _put_columns(self, batch: Any) -> None:
        """Puts a record batch towards the output."""
        raise InvariantError(f"{type(self).__name__} takes no columns")

    @abstractmethod
    def _push(self) -> None:
        """Makes everything that was put visible to a reader."""

    @abstractmethod
    def commit(self) -> SinkState:
        """Makes everything written so far durable; returns the state to continue from."""

    @abstractmethod
    def close(self) -> None:
        """Flushes and lets go of the output. A second call does nothing."""

    def __enter__(self: _S) -> _S:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Turns an operating system's refusal into a `SourceError` that says what was tried; a broken pipe passes."""
    try:
        yield
    except (BrokenPipeError, SourceError):
        raise
    except OSError as error:
        raise SourceError(f"cannot {what}: {error.strerror or error}") from error


def check_parent(path: str) -> None:
    """Raises `UsageError` when the directory that would hold the path is not there."""
    parent = os.path.dirname(path) or "."
    if not os.path.isdir(parent):
        raise UsageError(f"cannot write {path}: the directory {parent} does not exist; create it first")


def check_state(state: SinkState | None, kind: SinkState, path: str) -> None:
    """Raises `CheckpointError` unless the state to resume from, if any, was committed by a sink of the same kind."""
    for key, value in kind.items():
        if state is not None and state.get(key) != value:
            raise CheckpointError(
                f"cannot continue {path}: the checkpoint was made with {key} {state.get(key)!r}, "
                f"and this run has {value!r}"
            )


def sync_directory(path: str) -> None:
    """Makes the names in a directory durable."""
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
