"""`continuous`: the deltas of any DataFrame of updates are those of an engine in this process."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import deltastar
from deltastar.errors import QueryError, UsageError
from deltastar.spark import continuous
from deltastar.spark.listener import BatchProgress, ProgressListener
from tests.spark.conftest import EXAMPLE

UPDATES = str(EXAMPLE / "transfers.rdfp")
TEXTS = {name: (EXAMPLE / f"{name}.rq").read_text() for name in ("ring", "mule", "alarm")}


def expected(granularity: str = "message") -> list[Any]:
    engine = deltastar.Engine(granularity=granularity)
    for name, text in TEXTS.items():
        engine.register(text, name)
    return sorted(
        (delta.query, delta.seq, delta.op, sorted((name, str(term)) for name, term in delta.binding.items()))
        for delta in engine.apply(UPDATES)
    )


def found(rows: list[Any]) -> list[Any]:
    return sorted((row.query, row.seq, row.op, sorted(row.binding.items())) for row in rows)


@pytest.mark.parametrize("granularity", ["message", "transaction"])
def test_static_rows_in_any_order(spark: Any, granularity: str) -> None:
    updates = spark.read.format("rdfpatch").load(UPDATES)
    marks, messages = updates.filter("p is null"), updates.filter("p is not null")
    if granularity == "message":
        updates = messages.repartition(5).unionByName(marks.limit(0))
    deltas = continuous(updates, TEXTS, shards=3, granularity=granularity)
    assert deltas.dtypes == [
        ("query", "string"), ("seq", "bigint"), ("op", "string"), ("binding", "map<string,string>")
    ]  # fmt: skip
    assert found(deltas.collect()) == expected(granularity)


def test_a_stream_keeps_its_state_over_micro_batches_and_restarts(spark: Any, tmp_path: Path) -> None:
    lines = Path(UPDATES).read_text().splitlines(keepends=True)
    source = tmp_path / "in"
    source.mkdir()
    for number, start in enumerate(range(0, len(lines), 800)):
        (source / f"{number}.rdfp").write_text("".join(lines[start : start + 800]))
        updates = spark.readStream.format("rdfpatch").option("maxBytesPerTrigger", "40k").load(str(source))
        deltas = updates.transform(continuous, TEXTS, 2)
        writer = deltas.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        query = writer.option("path", str(tmp_path / "out")).trigger(availableNow=True).start()
        query.awaitTermination()
    assert found(spark.read.parquet(str(tmp_path / "out")).collect()) == expected()
    (source / "9.rdfp").write_text("".join(lines[:10]))
    again = continuous(updates, TEXTS, 3).writeStream.option("checkpointLocation", str(tmp_path / "c"))
    query = again.format("noop").trigger(availableNow=True).start()
    with pytest.raises(Exception, match="another number of shards"):
        query.awaitTermination()


def test_what_cannot_work_is_refused_at_once(spark: Any) -> None:
    updates = spark.read.format("rdfpatch").load(UPDATES)
    with pytest.raises(QueryError, match="OPTIONAL"):
        continuous(updates, {"q": "SELECT * { ?a ?b ?c OPTIONAL { ?a ?d ?e } }"})
    with pytest.raises(UsageError, match="no column p"):
        continuous(updates.drop("p"), TEXTS)
    with pytest.raises(UsageError, match="seq is string"):
        continuous(updates.selectExpr("cast(seq as string) as seq", "op", "s", "p", "o"), TEXTS)


def test_a_listener_is_told_of_each_micro_batch(spark: Any, tmp_path: Path) -> None:
    told: list[BatchProgress] = []
    listener = ProgressListener(told.append)
    spark.streams.addListener(listener)
    try:
        updates = spark.readStream.format("rdfpatch").load(UPDATES)
        writer = continuous(updates, TEXTS, 2).writeStream.format("noop").queryName("three")
        writer.trigger(availableNow=True).start().awaitTermination()
        end = time.monotonic() + 60
        while not told and time.monotonic() < end:  # events come behind
            time.sleep(0.1)
    finally:
        spark.streams.removeListener(listener)
    assert [(batch.query, batch.messages, batch.deltas, batch.last_seq) for batch in told] == [("three", 893, 47, 893)]
    assert told[0].seconds > 0
    assert str(told[0]).startswith("three: micro-batch 0 in ")
