"""`continuous`: deltas of queries over any DataFrame of updates, streaming or static.

In: rows seq, op, s, p, o, from whatever source. Out: a DataFrame of deltas. Rows are filtered, routed and packed where
they are; a shard's packed rows come together in one task; its deltas leave it packed and become rows behind it. On a
stream the shards' journals are in Spark's state store, so that whatever sink and checkpoint the user chooses, state and
offsets are committed together. On a static DataFrame there is one batch, and nothing to remember.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltastar.errors import UsageError
from deltastar.query.parse import parse_query

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = {"seq": "bigint", "op": "string", "s": "string", "p": "string", "o": "string"}
DELTAS = "query string, seq long, op string, binding map<string,string>"

_ROUTED = "shard int, blob binary"
_PACKED = "data binary"
_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PARTITIONS = "spark.sql.shuffle.partitions"
_UNUSED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Continuous:
    """What the tasks have to know."""

    queries: Mapping[str, str]
    shards: int
    granularity: str
    strict: bool

    def identity(self) -> dict[str, Any]:
        """What a checkpoint is for."""
        return {"queries": dict(self.queries), "shards": self.shards, "granularity": self.granularity,
                "strict": self.strict}  # fmt: skip


def continuous(
    updates: DataFrame,
    queries: str | Mapping[str, str],
    shards: int | None = None,
    granularity: str = "message",
    strict: bool = False,
) -> DataFrame:
    """The deltas of queries: query string, seq long, op string, binding map<string,string>.

    `updates` has the columns seq, op (A or D; TX, TC and TA with null terms), s, p, o (N-Triples), as the source
    `rdfpatch` gives them. `queries` maps names to SPARQL texts; a single text is named `q1`. `shards` is how many parts
    evaluate side by side (default: the cores that Spark has). A stream keeps its number of shards and its queries for
    as long as its checkpoint is used; name them anew only with a new checkpoint. Micro-batches have to come in the
    order of `seq`; within one, rows may come in any order.

    On a stream, the session's state store has to be RocksDB, as `transformWithState` demands, and there should be one
    shuffle partition for each shard; both are set here unless you have set them.
    """
    texts = {"q1": queries} if isinstance(queries, str) else dict(queries)
    if not texts:
        raise UsageError("continuous needs a query")
    for text in texts.values():
        parse_query(text)  # refused here, and not in a task
    if granularity not in ("message", "transaction"):
        raise UsageError(f"granularity={granularity!r}: give 'message' or 'transaction'")
    rows = _checked(updates)
    session = updates.sparkSession
    plan = Continuous(texts, shards or _default_shards(session), granularity, strict)
    if updates.isStreaming:
        return _streaming(rows, plan)
    routed = rows.mapInArrow(_routing(plan), _ROUTED)
    return routed.repartitionById(plan.shards, "shard").mapInArrow(_evaluation(plan), DELTAS)


def _streaming(rows: DataFrame, plan: Continuous) -> DataFrame:
    from deltastar.spark.listener import observed_deltas, observed_updates
    from deltastar.spark.processor import packed_deltas

    _prefer(rows.sparkSession, _STATE_STORE, _ROCKSDB)
    _prefer(rows.sparkSession, _PARTITIONS, str(plan.shards))
    number = uuid.uuid4().hex[:8]  # a query may hold several of these
    routed = observed_updates(rows, number).mapInArrow(_routing(plan), _ROUTED)
    return observed_deltas(packed_deltas(routed, plan).mapInArrow(_unpacked, DELTAS), number)


def _checked(updates: DataFrame) -> DataFrame:
    types = {field.name: field.dataType.simpleString() for field in updates.schema.fields}
    for name, type_ in COLUMNS.items():
        if name not in types:
            raise UsageError(f"the updates have no column {name}; they need {', '.join(COLUMNS)}")
        integral = ("bigint", "int", "smallint", "tinyint")
        if types[name] not in (integral if type_ == "bigint" else ("string",)):
            raise UsageError(f"the column {name} is {types[name]}, and should be {type_}; cast it")
    return updates.selectExpr("cast(seq as bigint) as seq", "op", "s", "p", "o")


def _default_shards(session: SparkSession) -> int:
    try:
        return max(int(session.sparkContext.defaultParallelism), 1)
    except Exception:  # Spark Connect has no context to ask
        raise UsageError("over Spark Connect the number of cores cannot be asked for; give shards=") from None


def _prefer(session: SparkSession, key: str, value: str) -> None:
    """Sets what the user has not."""
    if not session.conf.get(key, None) or _is_default(session, key):
        session.conf.set(key, value)


def _is_default(session: SparkSession, key: str) -> bool:
    row = session.sql(f"SET {key}").collect()
    defaults = {_PARTITIONS: "200", _STATE_STORE: "HDFSBackedStateStoreProvider"}
    return bool(row) and str(row[0]["value"]).endswith(defaults[key])


def _routing(plan: Continuous) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def route(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        from deltastar.sharding.router import Router

        router = Router(plan.queries, plan.shards, plan.granularity, plan.strict)
        for batch in batches:
            if batch.num_rows:
                blobs = router.route_rows(*batch.columns)
                numbers = pyarrow.array(range(plan.shards), pyarrow.int32())
                yield pyarrow.record_batch([numbers, pyarrow.array(blobs, pyarrow.binary())], ["shard", "blob"])

    return route


def _evaluation(plan: Continuous) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def evaluate(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from deltastar.sharding.journal import MemoryJournal
        from deltastar.sharding.shard import Shard

        blobs: list[bytes] = []
        number = -1
        for batch in batches:
            if batch.num_rows:
                number = batch.column(0)[0].as_py()
                blobs += batch.column(1).to_pylist()
        if number >= 0:
            shard = Shard(settings_of(plan, number), MemoryJournal(), None)
            yield from deltas_of(shard.apply(0, splits_of(blobs)))

    return evaluate


def settings_of(plan: Continuous, shard: int) -> Any:
    """The settings of one shard."""
    from deltastar.sharding.shard import ShardSettings

    return ShardSettings(plan.queries, shard, plan.shards, plan.granularity, plan.strict, "rows")


def splits_of(blobs: Sequence[bytes]) -> list[tuple[str, bytes]]:
    """What came through Spark, in the order of its numbers: tasks finish in any order.

    A mark has the number of the message in front of it. So of two splits that meet in that number, the one that ends
    with the message comes first.
    """
    from deltastar.sharding.packed import unpack

    def place(blob: bytes) -> tuple[int, int]:
        places = unpack(blob).places
        return (int(places[0] >> 1), int(places[-1] >> 1)) if len(places) else (-1, -1)

    return [("", blob) for blob in sorted(blobs, key=place)]


def deltas_of(pieces: Iterable[Any]) -> Iterator[pyarrow.RecordBatch]:
    """The deltas of a shard's pieces. Malformed rows are the source's business; what stops a strict run stops here."""
    from deltastar.errors import DeltastarError

    for piece in pieces:
        if piece.kind == "error":
            raise DeltastarError(piece.data)
        if piece.kind == "deltas":
            yield piece.data


def arena_directory(stream: str) -> str:
    """Where a stream keeps its arenas on an executor: in memory where that is possible.

    Nobody tells an executor that a stream has ended. So whoever uses a directory says so by its time, and clears away
    those that were not used for long; an arena that is missing is made anew from the journal.
    """
    root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
    base = Path(root) / f"deltastar-streams-{os.getuid()}"
    own = base / stream
    own.mkdir(parents=True, exist_ok=True)
    os.utime(own)
    for other in base.iterdir():
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > _UNUSED_S:
                shutil.rmtree(other)
    return str(own)


def _unpacked(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    for batch in batches:
        for data in batch.column(0).to_pylist():
            with pyarrow.ipc.open_stream(data) as reader:
                yield from reader


def partition_keys(shards: int) -> Sequence[int]:
    """For each shard a key that Spark's hash partitioning sends to a partition of its own.

    >>> list(partition_keys(2))
    [2, 0]
    """
    keys: dict[int, int] = {}
    candidate = 0
    while len(keys) < shards:
        keys.setdefault(_hash(candidate) % shards, candidate)
        candidate += 1
    return [keys[shard] for shard in range(shards)]


def _hash(value: int, seed: int = 42) -> int:
    """Spark's hash of an int: Murmur3, as signed 32 bits."""
    mask = 0xFFFFFFFF
    k = value * 0xCC9E2D51 & mask
    k = (k << 15 | k >> 17) & mask
    k = k * 0x1B873593 & mask
    h = seed ^ k
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = h * 0x85EBCA6B & mask
    h ^= h >> 13
    h = h * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
