"""The stateful step of `continuous` on a stream: one key for each shard, packed rows in, packed deltas out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from deltastar.sharding.shard import Shard
from deltastar.spark.frames import (
    Continuous,
    arena_directory,
    deltas_of,
    partition_keys,
    settings_of,
    splits_of,
)
from deltastar.spark.statejournal import StateJournal

MOST_BYTES = 8 << 20
"""What a row of packed deltas holds, about."""


def packed_deltas(routed: DataFrame, plan: Continuous) -> DataFrame:
    """Applies the routed rows of a stream: rows of Arrow streams with deltas."""
    try:
        import google.protobuf  # noqa: F401  (Spark's Python worker dies without a word where it is missing)
    except ImportError:
        from deltastar.errors import UsageError

        raise UsageError("a stream needs protobuf; install it with: pip install 'deltastar[spark]'") from None
    keys = F.array(*[F.lit(key) for key in partition_keys(plan.shards)])
    keyed = routed.select(F.element_at(keys, F.col("shard") + 1).alias("key"), "shard", "blob")
    return keyed.groupBy("key").transformWithState(ShardProcessor(plan), "data binary", "Append", "None")


class ShardProcessor(StatefulProcessor):
    """Spark makes one for each task, and calls it for each shard of its partition."""

    def __init__(self, plan: Continuous) -> None:
        self._plan = plan

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Remembers the state variables."""
        self._journal = StateJournal(handle, self._plan.identity())

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:
        """Applies a shard's rows of this micro-batch."""
        received = [(row["shard"], bytes(row["blob"])) for row in rows]
        self._journal.open()
        shard = Shard(settings_of(self._plan, received[0][0]), self._journal, arena_directory(self._journal.stream))
        batch = self._journal.last + 1
        splits = splits_of([blob for _, blob in received])
        packer = _Packer()
        for deltas in deltas_of(shard.apply(batch, splits)):
            yield from packer.take(deltas)
        yield from packer.finish()

    def close(self) -> None:
        """There is nothing to let go of."""


class _Packer:
    """Record batches into rows of a bounded size."""

    def __init__(self) -> None:
        self._gathered: list[pyarrow.RecordBatch] = []
        self._size = 0

    def take(self, batch: pyarrow.RecordBatch) -> Iterator[Row]:
        self._gathered.append(batch)
        self._size += batch.nbytes
        if self._size >= MOST_BYTES:
            yield from self.finish()

    def finish(self) -> Iterator[Row]:
        if not self._gathered:
            return
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, self._gathered[0].schema) as writer:
            for batch in self._gathered:
                writer.write_batch(batch)
        self._gathered, self._size = [], 0
        yield Row(data=sink.getvalue().to_pybytes())
