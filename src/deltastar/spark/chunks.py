"""The source of `deltastar run`: a stream's bytes in, packed rows for every shard out.

Reading, parsing, filtering and routing happen in one place, the task that reads a split: no row of the stream crosses
the JVM on its own. A row of this source is what one chunk has for one shard, with its place in the micro-batch. The
offset says which splits lead to it, so that a micro-batch that is run again is the same one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass, field

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from deltastar.rdf.formats import Format
from deltastar.sharding.router import Router
from deltastar.spark.reading import Events, Fault, graph_format, read_split, update_format
from deltastar.spark.splits import Place, Split, UpdateFiles, grouped, splits_of

NAME = "deltastar-chunks"
OPTION = "plan"
SCHEMA = "shard int, split int, chunk int, source string, fault string, blob binary"
_ARROW = pyarrow.schema(
    [
        ("shard", pyarrow.int32()),
        ("split", pyarrow.int32()),
        ("chunk", pyarrow.int32()),
        ("source", pyarrow.string()),
        ("fault", pyarrow.string()),
        ("blob", pyarrow.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """What to read, and for whom. Travels to the tasks as JSON."""

    updates: str
    queries: Mapping[str, str]
    shards: int
    granularity: str = "message"
    strict: bool = False
    input_format: str | None = None
    initial: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    follow: bool = False
    batch_bytes: int = 1 << 27
    cores: int = 1

    def to_json(self) -> str:
        """For the option of the source."""
        return json.dumps(asdict(self), ensure_ascii=True)


class ChunkSource(DataSource):
    """`spark.readStream.format("deltastar-chunks")`; registered by the run that needs it."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> str:
        """A row for each chunk and shard."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of a stream."""
        return ChunkReader(self.options)


class ChunkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The initial graph first, then the updates."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._text = options[OPTION]
        plan = self._plan = ChunkPlan(**json.loads(self._text))
        self._initial = None if plan.initial is None else UpdateFiles(plan.initial, graph_format, follow=False)
        self._updates = UpdateFiles(plan.updates, update_format(plan.input_format), plan.follow)

    def initialOffset(self) -> Place:
        """In front of everything."""
        return {"is_initial": self._initial is not None, **self._updates.start()}

    def getDefaultReadLimit(self) -> ReadLimit:
        """What a micro-batch may hold."""
        return ReadMaxBytes(self._plan.batch_bytes)

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:
        """What comes next. The initial graph and the updates never share a micro-batch."""
        most = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_bytes", self._plan.batch_bytes)
        if start["is_initial"]:
            assert self._initial is not None
            after = self._initial.next(start, most, self._plan.cores)
            if after is not start:
                return {"is_initial": True, **after}
            start = {"is_initial": False, **self._updates.start()}
            after = self._updates.next(start, most, self._plan.cores)
            return {"is_initial": False, **after}
        after = self._updates.next(start, most, self._plan.cores)
        return start if after is start else {"is_initial": False, **after}

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all there is."""
        self._updates.freeze()

    def partitions(self, start: Place, end: Place) -> list[InputPartition]:
        """A task for each group of splits. The offset itself says which they are."""
        if start == end:
            return []
        number = 0
        tasks: list[InputPartition] = []
        for group in grouped(splits_of(end), self._plan.cores):
            tasks.append(_Task(end["is_initial"], number, group))
            number += len(group)
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Reads and routes."""
        assert isinstance(partition, _Task)
        return read_task(self._text, partition)


class _Task(InputPartition):
    """Neighbouring splits, and the number of the first one."""

    def __init__(self, is_initial: bool, first: int, splits: list[Split]) -> None:
        super().__init__(first)
        self.is_initial, self.first, self.splits = is_initial, first, splits


_router: tuple[str, ChunkPlan, Router] | None = None
"""What this worker made for the last task: nearly always the same run goes on."""


def read_task(text: str, task: _Task) -> Iterator[pyarrow.RecordBatch]:
    """The packed rows of a task, chunk by chunk."""
    global _router
    if _router is None or _router[0] != text:
        plan = ChunkPlan(**json.loads(text))
        _router = text, plan, Router(plan.queries, plan.shards, plan.granularity, plan.strict)
    _, plan, router = _router
    format_of = graph_format if task.is_initial else update_format(plan.input_format)
    for position, split in enumerate(task.splits):
        source = _label(plan, split.path)
        yield from _route(plan, router, split, format_of(split.path), source, task.first + position, task.is_initial)


def _label(plan: ChunkPlan, path: str) -> str:
    """What a message calls a file: as the user named it, or the directory that it is in."""
    directory, name = os.path.split(path)
    if path in plan.labels:
        return plan.labels[path]
    return os.path.join(plan.labels[directory], name) if directory in plan.labels else path


def _route(
    plan: ChunkPlan, router: Router, split: Split, format_: Format, source: str, number: int, is_initial: bool
) -> Iterator[pyarrow.RecordBatch]:
    for chunk, read in enumerate(read_split(split, format_, source)):
        if isinstance(read, Fault):
            yield _batch([0], number, chunk, source, read.message, [b""])
            return
        if isinstance(read, Events):
            blobs = router.route_events(read.events, source, is_initial, read.named_graphs)
        else:
            blobs = router.route(read.data, read.syntax, source, is_initial, is_start=False)
        yield _batch(list(range(plan.shards)), number, chunk, source, None, blobs)


def _batch(
    shards: list[int], split: int, chunk: int, source: str, fault: str | None, blobs: list[bytes]
) -> pyarrow.RecordBatch:
    rows = len(shards)
    columns = [shards, [split] * rows, [chunk] * rows, [source] * rows, [fault] * rows, blobs]
    return pyarrow.record_batch(columns, schema=_ARROW)
