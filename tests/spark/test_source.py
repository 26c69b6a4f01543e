"""The source `rdfpatch`, as users of `spark.read` and `spark.readStream` have it."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from deltastar.rdf.source import open_stream
from deltastar.rdf.update import INSERT, Mark, Update
from tests.spark.conftest import EXAMPLE

UPDATES = EXAMPLE / "transfers.rdfp"
Row = tuple[Any, ...]


def rows_of(path: Path) -> list[Row]:
    """What the source should give, in the order of the stream."""
    rows: list[Row] = []
    seq = 0
    for batch in open_stream(str(path)):
        for event in batch.events:
            if isinstance(event, Update):
                seq += 1
                rows.append((seq, "A" if event[0] == INSERT else "D", *map(str, event[1:4])))
            elif isinstance(event, Mark):
                rows.append((seq, event.value, None, None, None))
            else:
                seq += event.is_message
                rows.append((seq, None, None, None, None))
    return rows


def by_number(rows: Sequence[Any]) -> list[Row]:
    return sorted((tuple(row) for row in rows), key=lambda row: tuple(map(str, row)))


def read_stream(spark: Any, path: Path, **options: str) -> tuple[list[Any], int]:
    """All rows of a stream up to now, and in how many micro-batches they came."""
    stream = spark.readStream.format("rdfpatch").options(**options).load(str(path))
    query = stream.writeStream.format("memory").queryName("rows").trigger(availableNow=True).start()
    query.awaitTermination()
    return spark.table("rows").collect(), len([p for p in query.recentProgress if p.numInputRows])


def test_it_is_found_without_registration_and_reads_every_row_in_place(spark: Any) -> None:
    frame = spark.read.format("rdfpatch").load(str(UPDATES))
    assert frame.dtypes == [("seq", "bigint"), *((name, "string") for name in ("op", "s", "p", "o"))]
    assert [tuple(row) for row in frame.collect()] == rows_of(UPDATES)
    assert frame.filter("op = 'A'").count() == frame.where("op = 'A'").count() == 510  # it can be read again


def test_a_stream_is_cut_by_bytes_and_numbers_go_on(spark: Any, tmp_path: Path) -> None:
    lines = UPDATES.read_text().splitlines(keepends=True)
    (tmp_path / "a.rdfp").write_text("".join(lines[:700]))
    (tmp_path / "b.rdfp.gz").write_bytes(gzip.compress("".join(lines[700:1000]).encode()))
    (tmp_path / "c.rdfp").write_text("".join(lines[1000:]))
    rows, batches = read_stream(spark, tmp_path, maxBytesPerTrigger="10k")
    assert by_number(rows) == by_number(rows_of(UPDATES))
    assert batches > 5


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
def test_malformed_rows_are_kept_or_dropped(spark: Any, tmp_path: Path, mode: str) -> None:
    path = tmp_path / "u.rdfp"
    path.write_text("A <p:1> <p:p> <p:1> .\nA <p:2> <p:p>\nD <p:1> <p:p> <p:1> .\n")
    frame = spark.read.format("rdfpatch").option("mode", mode).load(str(path))
    kept = [row for row in rows_of(path) if mode == "PERMISSIVE" or row[1] is not None]
    assert [tuple(row) for row in frame.collect()] == kept
    assert kept[-1][0] == 3


def test_a_malformed_row_can_be_seen_or_fail_the_query(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "u.rdfp"
    path.write_text("\nA <p:2> <p:p>\n")
    reader = spark.read.format("rdfpatch").schema("seq long, _corrupt_record string")
    [(seq, corrupt)] = reader.load(str(path)).collect()
    assert seq == 1
    assert "u.rdfp: line 2, column 14: the row ends where a term should be: A <p:2> <p:p>" in corrupt
    with pytest.raises(Exception, match="line 2, column 14"):
        spark.read.format("rdfpatch").option("mode", "failfast").load(str(path)).collect()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "LAX"}, "give PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ({"inputFormat": "ttl"}, "can only be an initial graph"),
        ({"maxBytesPerTrigger": "much"}, "give a number of bytes"),
    ],
)
def test_a_wrong_option_is_refused_by_name(spark: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        spark.read.format("rdfpatch").options(**options).load(str(UPDATES)).collect()


def test_a_stream_follows_files_and_goes_on_behind_its_checkpoint(spark: Any, tmp_path: Path) -> None:
    source, checkpoint, target = tmp_path / "in", str(tmp_path / "c"), str(tmp_path / "out")
    source.mkdir()
    lines = UPDATES.read_text().splitlines(keepends=True)
    growing = source / "a.rdfp"
    for start in range(0, 600, 200):
        with growing.open("a") as file:
            file.write("".join(lines[start : start + 200]))
        stream = spark.readStream.format("rdfpatch").load(str(source)).writeStream.format("parquet")
        query = (
            stream.option("checkpointLocation", checkpoint).option("path", target).trigger(availableNow=True).start()
        )
        query.awaitTermination()
    assert by_number(spark.read.parquet(target).collect()) == by_number(rows_of(growing))
