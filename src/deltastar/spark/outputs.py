"""Where the pieces of a micro-batch go: one file in the order of seq, or parts that the shards have written.

In: the rows that the shards gave for one micro-batch. Out: what a user asked for. No more than one micro-batch is in
memory, and what a shard put into a spool file is mapped, not read.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow

from deltastar.errors import DeltastarError
from deltastar.rdf.update import Malformed
from deltastar.sink import DeltaSink, RejectSink, SinkState, open_sink
from deltastar.sink.encode import Variables, delta_columns
from deltastar.sink.files import prepare_directory
from deltastar.sink.merge import Lines, merged
from deltastar.spark.evaluate import ANSWER, FAULT, STATISTICS
from deltastar.statistics import Statistics

DELTAS, REJECTS, ERROR = "deltas", "rejects", "error"


@dataclass
class BatchOutput:
    """What the shards gave for a micro-batch, by kind."""

    deltas: dict[int, list[bytes]] = field(default_factory=dict)
    cuts: dict[int, list[bytes]] = field(default_factory=dict)
    spooled: dict[int, str] = field(default_factory=dict)
    rejects: list[bytes] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)
    """The seq at which a shard stopped, and why."""
    faults: list[str] = field(default_factory=list)
    statistics: dict[int, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[list[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: pyarrow.Table) -> BatchOutput:
        """From the rows of the tasks."""
        output = cls()
        for row in table.to_batches():
            for shard, kind, first, data, cuts, path in zip(
                *(column.to_pylist() for column in row.columns), strict=True
            ):
                output._add(shard, kind, first, data, cuts, path)
        return output

    def _add(self, shard: int, kind: str, first: int, data: bytes, cuts: bytes, path: str) -> None:
        if kind == DELTAS:
            self.deltas.setdefault(shard, []).append(data)
            self.cuts.setdefault(shard, []).append(cuts)
            if path:
                self.spooled[shard] = path
        elif kind == REJECTS:
            self.rejects.append(data)
        elif kind == ERROR:
            self.errors.append((first, data.decode()))
        elif kind == FAULT:
            self.faults.append(data.decode())
        elif kind == STATISTICS:
            self.statistics[shard] = json.loads(data)
        elif kind == ANSWER:
            name, rows = json.loads(data)
            self.answers.setdefault(name, []).extend([line.split("\t") for line in rows])

    def total(self) -> Statistics:
        """The statistics of all shards together."""
        names = [field.name for field in fields(Statistics)]
        return Statistics(**{name: sum(s[name] for s in self.statistics.values()) for name in names})

    @property
    def waiting(self) -> int | None:
        """By transaction, while one is open: how many messages wait for its end."""
        waiting: int | None = self.statistics[0]["waiting"]
        return waiting

    @property
    def is_graph_named(self) -> bool:
        """Whether a row named a graph."""
        return any(numbers["named_graphs"] for numbers in self.statistics.values())

    def error(self) -> tuple[int, str] | None:
        """The first thing that stops a strict run."""
        return min(self.errors, default=None)


class OneFile:
    """A file, or standard output, in the order of seq."""

    def __init__(self, dest: str, format: str, variables: Variables, resume: SinkState | None) -> None:
        self._sink: DeltaSink = open_sink(dest, format, variables, resume)

    def write(self, batch: int, output: BatchOutput) -> None:
        """Writes a micro-batch, in front of the error that stops the run, if there is one."""
        stop = output.error()
        shards = [_lines(output, shard) for shard in sorted(output.deltas)]
        if stop is not None:
            shards = [lines.before(stop[0]) for lines in shards]
        for data in merged(shards):
            self._sink.write_encoded(data, 0)
        self._sink.flush()
        for path in output.spooled.values():
            os.unlink(path)

    def commit(self, batch: int) -> SinkState:
        """Makes everything written durable."""
        return self._sink.commit()

    def close(self) -> None:
        """Lets go of it."""
        self._sink.close()


class Parts:
    """A directory that the shards write. What is told apart by number belongs to later micro-batches."""

    def __init__(self, dest: str, format: str, variables: Variables, shards: int, resume: SinkState | None) -> None:
        self._dest, self._format, self._variables, self._shards = dest, format, variables, shards
        self._next = 0 if resume is None else int(resume["part"])
        prepare_directory(dest, first_dropped_part=self._next)

    def write(self, batch: int, output: BatchOutput) -> None:
        """The shards have written."""
        self._next = (batch + 1) * self._shards

    def commit(self, batch: int) -> SinkState:
        """The parts are durable."""
        columns = delta_columns(self._variables, False) if self._format != "jsonl" else []
        return {"output": "parts of shards", "format": self._format, "columns": columns, "part": self._next}

    def close(self) -> None:
        """Without any delta, one part without rows is left, so that the directory has a header or a schema."""
        if not any(name.startswith("part-") for name in os.listdir(self._dest)):
            open_sink(self._dest.rstrip("/") + "/", self._format, self._variables).close()


Output = OneFile | Parts


def write_rejects(rejects: RejectSink, output: BatchOutput) -> int:
    """Hands the dead letters of a micro-batch on; gives how many there were."""
    count = 0
    for data in output.rejects:
        for line in data.splitlines():
            row = json.loads(line)
            rejects.write(Malformed(row["source"], row["line"], row["column"], row["reason"], row["text"]))
            count += 1
    rejects.flush()
    return count


def check(output: BatchOutput) -> None:
    """Raises what stops the run."""
    if (stop := output.error()) is not None:
        raise DeltastarError(stop[1])
    if output.faults:
        from deltastar.errors import SourceError

        raise SourceError(output.faults[0])


def answers_of(outputs: Iterable[BatchOutput]) -> Mapping[str, list[list[str]]]:
    """All rows of each query's answer."""
    found: dict[str, list[list[str]]] = {}
    for output in outputs:
        for name, rows in output.answers.items():
            found.setdefault(name, []).extend(rows)
    return found


def _lines(output: BatchOutput, shard: int) -> Lines:
    """A shard's lines. The cuts of each piece count from its own beginning, those of a file from the file's."""
    cuts, base = [], 0
    for packed in output.cuts[shard]:
        own = np.frombuffer(packed, np.int64).copy()
        own[1::2] += base
        cuts.append(own)
        base = int(own[-1])
    text: bytes | memoryview = b"".join(output.deltas[shard])
    if (path := output.spooled.get(shard)) is not None:
        with open(path, "rb") as file:
            rest = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        text = b"".join((text, rest)) if text else rest
    return Lines(text, np.concatenate(cuts))
