"""What a task does with a shard's part of a micro-batch: packed rows in, pieces of output out.

Spark runs it inside `mapInArrow`, in whichever Python worker is free. The shard's state is in its arena and its
journal; what this module remembers is a cache. A task that runs again, at the same time or later, gives the same rows.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow

from deltastar.sharding.journal import FileJournal
from deltastar.sharding.packed import HAS_GRAPHS, unpack
from deltastar.sharding.shard import DELTAS, Piece, Shard, ShardSettings
from deltastar.sink.base import doing, sync_directory
from deltastar.sink.files import part_name

PIECES = "shard int, kind string, first long, data binary, cuts binary, path string"
FAULT, STATISTICS, ANSWER = "fault", "statistics", "answer"
"""Kinds of rows besides those of `Piece`."""

SPOOL_FROM_BYTES = 4 << 20
"""What a shard puts out beyond this goes through a file, where driver and executors share a directory."""

_ARROW = pyarrow.schema(
    [
        ("shard", pyarrow.int32()),
        ("kind", pyarrow.string()),
        ("first", pyarrow.int64()),
        ("data", pyarrow.binary()),
        ("cuts", pyarrow.binary()),
        ("path", pyarrow.string()),
    ]
)
Rows = Iterator[pyarrow.RecordBatch]


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What the tasks of a run have to know, of any shard."""

    queries: Mapping[str, str]
    shards: int
    granularity: str
    strict: bool
    format: str
    journals: str
    """The directory of the shards' journals."""
    arenas: str
    """The directory of the shards' arenas, on each machine."""
    spool: str | None = None
    """A directory that the driver can read."""
    parts: str | None = None
    """The directory that the shards write, if they do."""
    header: bytes = b""
    """What a part file starts with."""

    def settings(self, shard: int) -> ShardSettings:
        """Those of one shard."""
        format = "columns" if self.format == "parquet" else self.format
        return ShardSettings(self.queries, shard, self.shards, self.granularity, self.strict, format)


def evaluation(plan: ShardPlan, batch: int) -> Callable[[Iterable[pyarrow.RecordBatch]], Rows]:
    """The function for `mapInArrow` that applies a micro-batch."""

    def evaluate(batches: Iterable[pyarrow.RecordBatch]) -> Rows:
        return _apply(plan, batch, batches)

    return evaluate


def description(plan: ShardPlan, names: list[str]) -> Callable[[Iterable[pyarrow.RecordBatch]], Rows]:
    """The function for `mapInArrow` that tells the answers of queries after the last micro-batch."""

    def describe(batches: Iterable[pyarrow.RecordBatch]) -> Rows:
        for shard in [number for rows in batches for number in rows.column(0).to_pylist()]:
            yield from _describe(_shard_of(plan, shard), shard, names)

    return describe


_shards: dict[tuple[ShardPlan, int], Shard] = {}


def _shard_of(plan: ShardPlan, number: int) -> Shard:
    key = _key(plan, number)
    if key not in _shards:
        if any(other[0] != key[0] for other in _shards):
            _shards.clear()  # another run began; this worker is done with the one before
        os.makedirs(plan.arenas, exist_ok=True)
        journal = FileJournal(os.path.join(plan.journals, f"shard-{number:04}"))
        _shards[key] = Shard(plan.settings(number), journal, plan.arenas)
    return _shards[key]


def _key(plan: ShardPlan, number: int) -> Any:
    return json.dumps({**asdict(plan), "header": plan.header.hex()}, sort_keys=True), number


def _apply(plan: ShardPlan, batch: int, batches: Iterable[pyarrow.RecordBatch]) -> Rows:
    rows: list[tuple[int, int, str, str | None, bytes]] = []
    number = -1
    for received in batches:
        numbers, splits, chunks, sources, faults, blobs = (column.to_pylist() for column in received.columns)
        rows += zip(splits, chunks, sources, faults, blobs, strict=True)
        number = numbers[0] if numbers else number
    if number < 0:
        return
    rows.sort(key=lambda row: row[:2])
    shard = _shard_of(plan, number)
    output = _Output(plan, number, batch)
    try:
        for piece in shard.apply(batch, [(source, blob) for _, _, source, fault, blob in rows if fault is None]):
            if piece.kind == DELTAS:
                yield from output.take(piece)
            else:
                yield _row(number, piece.kind, _bytes(piece.data), piece.first_seq)
        output.finish()
    except BaseException:
        output.discard()
        raise
    for _, _, _, fault, _ in rows:
        if fault is not None:
            yield _row(number, FAULT, fault.encode())
    named_graphs = any(unpack(blob).flags & HAS_GRAPHS for _, _, _, fault, blob in rows if fault is None)
    yield _row(number, STATISTICS, json.dumps(_statistics(shard) | {"named_graphs": named_graphs}).encode())


def _statistics(shard: Shard) -> dict[str, Any]:
    """The shard's part of the run's numbers, and how many messages of an open transaction wait."""
    return asdict(shard.statistics()) | {"waiting": shard.waiting_messages()}


def _describe(shard: Shard, number: int, names: list[str]) -> Rows:
    for name in names:
        lines: list[str] = []
        for row in shard.answers(name):
            lines.append("\t".join(row))
            if len(lines) >= 10_000:
                yield _row(number, ANSWER, _answer(name, lines))
                lines.clear()
        if lines:
            yield _row(number, ANSWER, _answer(name, lines))


def _answer(name: str, lines: list[str]) -> bytes:
    return json.dumps([name, lines]).encode()


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


def _row(shard: int, kind: str, data: bytes, first: int = 0, cuts: bytes = b"", path: str = "") -> pyarrow.RecordBatch:
    return pyarrow.record_batch([[shard], [kind], [first], [data], [cuts], [path]], schema=_ARROW)


class _Output:
    """A shard's deltas of one micro-batch: through Spark while they are few, else through a file; or to a part."""

    def __init__(self, plan: ShardPlan, shard: int, batch: int) -> None:
        self._plan, self._shard = plan, shard
        self._number = batch * plan.shards + shard
        self._size = 0
        self._path: str | None = None
        self._file: Any = None

    def take(self, piece: Piece) -> Rows:
        """Takes a piece; gives what goes through Spark."""
        if self._plan.parts is not None:
            self._write(self._plan.parts, f".{part_name(self._number, self._plan.format)}", piece.data)
            return
        self._size += len(piece.data)
        if self._plan.spool is not None and self._size > SPOOL_FROM_BYTES:
            self._write(self._plan.spool, f"{self._number}", piece.data)
            yield _row(self._shard, DELTAS, b"", piece.first_seq, piece.cuts.tobytes(), str(self._path))
            return
        yield _row(self._shard, DELTAS, piece.data, piece.first_seq, piece.cuts.tobytes())

    def finish(self) -> None:
        """Everything has been taken."""
        if self._path is None:
            return
        with doing(f"write {self._path}"):
            if self._plan.parts is None:
                self._file.close()
                return
            self._close_part()
            name = part_name(self._number, self._plan.format)
            os.replace(self._path, os.path.join(self._plan.parts, name))
            sync_directory(self._plan.parts)

    def discard(self) -> None:
        """The task has failed."""
        if self._path is not None:
            self._file.close()
            os.unlink(self._path)

    def _write(self, directory: str, name: str, data: Any) -> None:
        if self._path is None:
            self._path = os.path.join(directory, f"{name}.{uuid.uuid4().hex}.tmp")
            with doing(f"write {self._path}"):
                self._open(data)
        with doing(f"write {self._path}"):
            if self._plan.format == "parquet":
                self._file.write_table(pyarrow.Table.from_batches([data]))
            else:
                self._file.write(data)

    def _open(self, data: Any) -> None:
        assert self._path is not None
        if self._plan.format == "parquet":
            import pyarrow.parquet

            self._file = pyarrow.parquet.ParquetWriter(self._path, data.schema)
            return
        self._file = open(self._path, "wb")  # noqa: SIM115  (closed by finish or discard)
        if self._plan.parts is not None:
            self._file.write(self._plan.header)

    def _close_part(self) -> None:
        assert self._path is not None
        self._file.close()
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
