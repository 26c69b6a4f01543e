"""Progress of streaming queries in numbers: those of `--progress`, for users of the API.

    listener = ProgressListener(print)
    spark.streams.addListener(listener)

`continuous` observes what goes in and what comes out, so that Spark's own progress events carry the numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import StreamingQueryListener

UPDATES, DELTAS = "deltastar updates", "deltastar deltas"


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """One micro-batch of a query with deltas of ours."""

    query: str
    batch: int
    messages: int
    deltas: int
    seconds: float
    """How long it took, from the question for new data to the commit."""
    last_seq: int
    state_bytes: int
    """What Spark's state store has in memory; the shards' arenas are beside it."""

    @property
    def messages_per_s(self) -> float:
        """The rate of this micro-batch."""
        return self.messages / self.seconds if self.seconds else 0.0

    @property
    def deltas_per_s(self) -> float:
        """The rate of this micro-batch."""
        return self.deltas / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        return (
            f"{self.query or 'query'}: micro-batch {self.batch} in {1000 * self.seconds:,.0f} ms: "
            f"{self.messages:,} messages ({self.messages_per_s:,.0f}/s) up to {self.last_seq:,}, "
            f"{self.deltas:,} deltas ({self.deltas_per_s:,.0f}/s), state {self.state_bytes:,} bytes"
        )


class ProgressListener(StreamingQueryListener):
    """Tells of each micro-batch of a query with deltas of ours."""

    def __init__(self, tell: Callable[[BatchProgress], Any]) -> None:
        self._tell = tell

    def onQueryStarted(self, event: Any) -> None:
        """Nothing to tell yet."""

    def onQueryProgress(self, event: Any) -> None:
        """Tells, if the query is one of ours."""
        progress = event.progress
        observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
        updates = next((row for name, row in observed.items() if name.startswith(UPDATES)), None)
        deltas = next((row for name, row in observed.items() if name.startswith(DELTAS)), None)
        if updates is None or deltas is None:
            return
        self._tell(
            BatchProgress(
                query=progress.name or "",
                batch=progress.batchId,
                messages=updates["messages"] or 0,
                deltas=deltas["deltas"] or 0,
                seconds=progress.durationMs.get("triggerExecution", 0) / 1000,
                last_seq=updates["last_seq"] or 0,
                state_bytes=sum(operator.memoryUsedBytes for operator in progress.stateOperators),
            )
        )

    def onQueryIdle(self, event: Any) -> None:
        """Nothing came."""

    def onQueryTerminated(self, event: Any) -> None:
        """The last micro-batch was told."""


def observed_updates(updates: DataFrame, number: str) -> DataFrame:
    """Counts what goes in."""
    is_mark = F.col("op").isin("TX", "TB", "TC", "TA")
    messages = F.count(F.when(is_mark, None).otherwise(F.lit(1)))
    return updates.observe(f"{UPDATES} {number}", messages.alias("messages"), F.max("seq").alias("last_seq"))


def observed_deltas(deltas: DataFrame, number: str) -> DataFrame:
    """Counts what comes out."""
    return deltas.observe(f"{DELTAS} {number}", F.count(F.lit(1)).alias("deltas"))
