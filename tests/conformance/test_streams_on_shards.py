"""Published streams on several shards: line for line what one engine writes, in the order of seq."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from deltastar.engine import Engine
from deltastar.query.algebra import Query
from deltastar.query.parse import read_query
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Shard, ShardSettings, merge
from tests.conformance.test_streams import STREAMS, queries_of

SHARDS = (1, 2, 3, 8)


class _Lines:
    def __init__(self) -> None:
        self.out = io.BytesIO()

    def write_encoded(self, data: memoryview, count: int) -> None:
        self.out.write(data)


def read(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def inline(queries: dict[str, Query], granularity: str, initial: bytes, updates: bytes) -> list[bytes]:
    """The lines that one engine writes."""
    engine, sink = Engine(granularity=granularity), _Lines()
    for name, query in queries.items():
        engine.register(query, name)
    write = engine.writer("jsonl", {query.name: query.variables for query in engine.queries})
    for block in engine.load_blocks(Batch(Position("initial", 0, 1), "initial", initial, Syntax.NTRIPLES)):
        write(block, sink)  # type: ignore[arg-type]
    for block in engine.blocks(Batch(Position("updates", 0, 1), "updates", updates, Syntax.PATCH)):
        write(block, sink)  # type: ignore[arg-type]
    return sink.out.getvalue().splitlines()


def cut(data: bytes, parts: int) -> Iterator[bytes]:
    """Whole lines, in about so many parts."""
    size = len(data) // parts + 1
    while data:
        end = data.find(b"\n", size) + 1 or len(data)
        yield data[:end]
        data = data[end:]


@pytest.mark.parametrize("granularity", ["message", "transaction"])
@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("stream", STREAMS)
def test_shards_write_what_one_engine_writes(data_dir: Path, stream: str, shards: int, granularity: str) -> None:
    files, _ = queries_of(data_dir / stream)
    queries = dict(read_query(str(file)) for file in files)
    initial, updates = read(data_dir / stream / "initial.nt.gz"), read(data_dir / stream / "updates.rdfp.gz")
    router, random = Router(queries, shards, granularity), Random(shards)
    made = [Shard(ShardSettings(queries, number, shards, granularity)) for number in range(shards)]
    splits = [router.route(part, Syntax.NTRIPLES, "initial", initial=True) for part in cut(initial, 3)]
    splits += [router.route(part, Syntax.PATCH, "updates") for part in cut(updates, random.choice((1, 7, 40)))]
    lines: list[bytes] = []
    batch = 0
    while splits:
        taken, splits = splits[: (size := random.choice((1, 2, 9)))], splits[size:]
        pieces = [
            piece
            for number, shard in enumerate(made)
            for piece in shard.apply(batch, [("file", blobs[number]) for blobs in taken])
        ]
        assert {piece.kind for piece in pieces} <= {"deltas"}
        lines += b"".join(merge(pieces)).splitlines()
        batch += 1
    seqs = [json.loads(line)["seq"] for line in lines]
    assert seqs == sorted(seqs)
    assert sorted(lines) == sorted(inline(queries, granularity, initial, updates))
