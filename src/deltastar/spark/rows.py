"""The source `rdfpatch`: a stream of updates as rows, for `spark.readStream` and `spark.read`.

    seq long      the position of the message among all messages; a mark has that of the message in front of it
    op  string    A, D, TX, TC, TA; null for a malformed row
    s, p, o       the terms, in canonical N-Triples; null for a mark

The driver counts the messages of new bytes when it plans a micro-batch, so that every split knows where its numbers
start; reading and parsing happen in the tasks. Options: `path`, `inputFormat`, `maxBytesPerTrigger`, `mode` as
other sources of Spark have it (PERMISSIVE, DROPMALFORMED, FAILFAST). A column `_corrupt_record`, where the schema has
one, tells what is wrong with a malformed row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from deltastar.errors import RowError, SourceError, UsageError
from deltastar.kernel.lines import count_messages
from deltastar.rdf.files import check_is_there
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.spark.reading import Chunk, Events, Fault, Rows, read_split, update_format
from deltastar.spark.session import parsed_size
from deltastar.spark.splits import Place, Split, UpdateFiles, grouped, splits_of

NAME = "rdfpatch"
SCHEMA = "seq long, op string, s string, p string, o string"
CORRUPT = "_corrupt_record"
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")

_TYPES = {"seq": "bigint", "op": "string", "s": "string", "p": "string", "o": "string", CORRUPT: "string"}
_ROW_CHUNK_BYTES = 1 << 20
_PARALLEL = 8
"""How many tasks a large read is cut into, at least: the source is not told how many cores there are."""


class RdfPatchSource(DataSource):
    """`spark.readStream.format("rdfpatch").load("updates/")`."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return NAME

    def schema(self) -> str:
        """The columns, unless the user names them."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """The reader of what is there now."""
        return _Reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of what is there and what comes."""
        return _StreamReader(self.options, schema)


class Options:
    """What a user asked for."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        if "paths" in options and "path" not in options:
            raise UsageError("rdfpatch reads one file or one directory; put the files into a directory")
        if "path" not in options:
            raise UsageError('rdfpatch needs a path: .load("updates/")')
        self.path = options["path"].removeprefix("file://")
        self.format_of = update_format(options.get("inputFormat"))
        self.mode = options.get("mode", MODES[0]).upper()
        if self.mode not in MODES:
            raise UsageError(f"mode={options['mode']!r}: give {', '.join(MODES)}")
        text = options.get("maxBytesPerTrigger")
        self.batch_bytes = None if text is None else parsed_size("maxBytesPerTrigger", text)
        self.columns = _columns(schema)
        self.schema = to_arrow_schema(schema)
        check_is_there(self.path)


class _Reader(DataSourceReader):
    def __init__(self, options: MutableMapping[str, str], schema: StructType) -> None:
        self._options = Options(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        counted = _Counted(self._options, follow=False)
        return _tasks(counted.next(counted.start(), None))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, _Task)
        return _read(self._options, partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: MutableMapping[str, str], schema: StructType) -> None:
        self._options = Options(options, schema)
        self._counted = _Counted(self._options, follow=True)

    def initialOffset(self) -> Place:
        return self._counted.start()

    def getDefaultReadLimit(self) -> ReadLimit:
        size = self._options.batch_bytes
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:
        return self._counted.next(start, limit.max_bytes if isinstance(limit, ReadMaxBytes) else None)

    def prepareForTriggerAvailableNow(self) -> None:
        self._counted.files.freeze()

    def partitions(self, start: Place, end: Place) -> Sequence[InputPartition]:
        return [] if start == end else _tasks(end)

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        assert isinstance(partition, _Task)
        return _read(self._options, partition)


class _Task(InputPartition):
    """Neighbouring splits; for each, the number of messages and of lines in front of it."""

    def __init__(self, splits: list[Split], counts: list[list[int]]) -> None:
        super().__init__(0)
        self.splits, self.counts = splits, counts


class _Counted:
    """The files of a stream, with the numbers of the messages at each split."""

    def __init__(self, options: Options, follow: bool) -> None:
        self._format_of = options.format_of
        self.files = UpdateFiles(options.path, options.format_of, follow)

    def start(self) -> Place:
        return {**self.files.start(), "messages": 0, "lines": 0, "counts": []}

    def next(self, place: Place, limit: int | None) -> Place:
        after = self.files.next(place, limit, _PARALLEL)
        if after is place:
            return place
        total = np.array([place["messages"], place["lines"]], np.int64)
        counts = []
        for split in splits_of(after):
            if split.start == 0:
                total[1] = 0
            counts.append(total.tolist())
            self._count(split, total)
        return {**after, "messages": int(total[0]), "lines": int(total[1]), "counts": counts}

    def _count(self, split: Split, total: Any) -> None:
        for chunk in read_split(split, self._format_of(split.path), split.path):
            if isinstance(chunk, Rows):
                data = np.frombuffer(chunk.data, np.uint8)
                count_messages(data, len(data), chunk.syntax is Syntax.PATCH, total)
            elif isinstance(chunk, Events):
                total[0] += sum(map(_is_message, chunk.events))


def _tasks(place: Place) -> list[InputPartition]:
    groups = grouped(splits_of(place), _PARALLEL)
    tasks: list[InputPartition] = []
    first = 0
    for group in groups:
        tasks.append(_Task(group, place["counts"][first : first + len(group)]))
        first += len(group)
    return tasks


def _read(options: Options, task: _Task) -> Iterator[pyarrow.RecordBatch]:
    for split, (messages, lines) in zip(task.splits, task.counts, strict=True):
        format_ = options.format_of(split.path)
        for chunk in read_split(split, format_, split.path, _ROW_CHUNK_BYTES):
            events, read = _events(chunk, split.path, lines + 1)
            lines += read
            rows = list(_numbered(options, events, messages))
            messages += sum(map(_is_message, events))
            if rows:
                columns = dict(zip(_TYPES, zip(*rows, strict=True), strict=True))
                arrays = [
                    pyarrow.array(columns[name], field.type)
                    for name, field in zip(options.columns, options.schema, strict=True)
                ]
                yield pyarrow.RecordBatch.from_arrays(arrays, schema=options.schema)


def _events(chunk: Chunk, path: str, line: int) -> tuple[list[Event], int]:
    if isinstance(chunk, Fault):
        raise SourceError(chunk.message)
    if isinstance(chunk, Events):
        return chunk.events, 0
    result = scan(chunk.data, path, line, chunk.syntax)
    return result.events, result.lines


def _numbered(options: Options, events: list[Event], seq: int) -> Iterator[tuple[Any, ...]]:
    """The rows of some events: seq, op, s, p, o, and what is wrong."""
    for event in events:
        if isinstance(event, Update):
            seq += 1
            yield seq, "A" if event[0] == INSERT else "D", event[1], event[2], event[3], None
        elif isinstance(event, Mark):
            yield seq, event.value, None, None, None, None
        else:
            seq += event.is_message
            if options.mode == "FAILFAST":
                raise RowError(event.reason, event.column, event.line, event.source)
            if options.mode == "PERMISSIVE":
                yield seq, None, None, None, None, f"{event}: {event.text}"


def _is_message(event: Event) -> bool:
    return event.is_message if isinstance(event, Malformed) else isinstance(event, Update)


def _columns(schema: StructType) -> list[str]:
    for field in schema.fields:
        if _TYPES.get(field.name) != field.dataType.simpleString():
            known = ", ".join(f"{name} {type}" for name, type in _TYPES.items())
            raise UsageError(
                f"rdfpatch has no column {field.name} {field.dataType.simpleString()}; its columns are {known}"
            )
    return [field.name for field in schema.fields]
