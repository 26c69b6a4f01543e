"""A shard alone, and several with what lies between them: formats, strictness, numbers, processes."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

from deltastar.engine import Engine
from deltastar.errors import CheckpointError, InvariantError, UsageError
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.journal import FileJournal, MemoryJournal, Splits
from deltastar.sharding.pieces import PIECE_BYTES
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Compaction, Piece, Shard, ShardSettings, merge
from tests.support.sharded import lines_of

QUERIES = {
    "path": "SELECT * { ?a <p:p> ?b . ?b <p:p> ?c }",
    "kinds": "SELECT DISTINCT ?k { ?a <p:p> ?b ; <p:q> ?k }",
}
ROWS = b"""A <p:1> <p:p> <p:2> .
A <p:2> <p:p> <p:3> .
A <p:1> <p:q> "x" .
TX .
A <p:3> <p:p> <p:1> .
A <p:1> <p:p> <p:2> .
TC .
D <p:2> <p:p> <p:3> .
D <p:9> <p:p> <p:9> .
"""


def routed(data: bytes, shards: int = 1, **options: bool) -> list[Splits]:
    router = Router(QUERIES, shards, **options)
    return [[("file", blob)] for blob in router.route(data, Syntax.PATCH, "file")]


def pieces_of(shard: Shard, data: bytes, batch: int = 0) -> list[Piece]:
    return list(shard.apply(batch, routed(data)[0]))


def inline(data: bytes, format: str) -> bytes:
    """What one engine writes."""
    engine = Engine()
    for name, text in QUERIES.items():
        engine.register(text, name)
    write = engine.writer(format, {query.name: query.variables for query in engine.queries})
    out = io.BytesIO()

    class Sink:
        def write_encoded(self, data: memoryview, count: int) -> None:
            out.write(data)

    for block in engine.blocks(Batch(Position("file", 0, 1), "file", data, Syntax.PATCH)):
        write(block, Sink())  # type: ignore[arg-type]
    return out.getvalue()


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv"])
@pytest.mark.parametrize("shards", [1, 3])
def test_merged_pieces_are_what_one_engine_writes(format: str, shards: int) -> None:
    data = ROWS + b"".join(f"A <p:{n}> <p:p> <p:{n % 7}> .\n".encode() for n in range(3000))
    settings = [ShardSettings(QUERIES, shard, shards, format=format) for shard in range(shards)]
    pieces = [piece for one, splits in zip(settings, routed(data, shards), strict=True)
              for piece in Shard(one).apply(0, splits)]  # fmt: skip
    merged = b"".join(merge(pieces)).splitlines()
    expected = inline(data, format).splitlines()
    assert sorted(merged) == sorted(expected)
    if format == "jsonl":
        seqs = [json.loads(line)["seq"] for line in merged]
        assert seqs == sorted(seqs)


def test_cuts_are_where_a_seq_ends() -> None:
    data = b"".join(f"A <p:{n}> <p:p> <p:{n % 7}> .\n".encode() for n in range(3000))
    for piece in pieces_of(Shard(ShardSettings(QUERIES)), data):
        start = 0
        for seq, end in piece.cuts.reshape(-1, 2).tolist():
            assert {json.loads(line)["seq"] for line in piece.data[start:end].splitlines()} == {seq}
            start = end
        assert start == len(piece.data)


def test_columns_and_rows() -> None:
    expected = lines_of(pieces_of(Shard(ShardSettings(QUERIES)), ROWS))
    (rows,) = pieces_of(Shard(ShardSettings(QUERIES, format="rows")), ROWS)
    assert rows.data.schema.names == ["query", "seq", "op", "binding"]
    found = {(row["query"], row["seq"], row["op"], tuple(sorted(row["binding"]))) for row in rows.data.to_pylist()}
    assert found == set(expected)
    (columns,) = pieces_of(Shard(ShardSettings(QUERIES, format="columns")), ROWS)
    assert columns.data.schema.names == ["query", "seq", "op", "a", "b", "c", "k"]
    assert (columns.first_seq, columns.last_seq) == (rows.first_seq, rows.last_seq) == (2, 6)
    with pytest.raises(UsageError, match="not a format of shards"):
        list(Shard(ShardSettings(QUERIES, format="xml")).apply(0, []))


def test_a_huge_product_comes_in_bounded_pieces() -> None:
    queries = {"product": "SELECT * { ?a <p:p> ?b . ?c <p:q> ?d . <p:x> <p:y> <p:z> }"}
    data = "".join(f"A <p:{n}> <p:p> <p:o> .\nA <p:{n}> <p:q> <p:o> .\n" for n in range(400))
    (blob,) = Router(queries, 1).route(f"{data}A <p:x> <p:y> <p:z> .\n".encode(), Syntax.PATCH, "file")
    shard = Shard(ShardSettings(queries))
    total = 0
    for piece in shard.apply(0, [("file", blob)]):
        assert len(piece.data) <= PIECE_BYTES
        total += piece.data.count(b"\n")
    assert total == 400 * 400


@pytest.mark.parametrize(
    ("row", "seq", "message"),
    [
        (b"A <p:1> <p:p> <p:2> .\n", 7, "message 7 inserts a triple that is there already"),
        (b"D <p:8> <p:other> <p:2> .\n", 7, "message 7 deletes a triple that is not there"),
        (b"A oops\n", 7, "file: line 10, column 3: 'oops' is not a term"),
        (b"TC .\n", 6, "TC after message 6, but no transaction is open"),
    ],
)
def test_strict_ends_with_an_error(row: bytes, seq: int, message: str) -> None:
    data = ROWS.replace(b"A <p:1> <p:p> <p:2> .\nTC", b"TC").replace(b"D <p:9> <p:p> <p:9> .\n", b"")
    data += b"A <p:1> <p:other> <p:1> .\n" + b"# note\n" + row + b"A <p:3> <p:q> <p:4> .\n"
    router, errors = Router(QUERIES, 3, strict=True), []
    for number, blob in enumerate(router.route(data, Syntax.PATCH, "file")):
        shard = Shard(ShardSettings(QUERIES, number, 3, strict=True))
        errors += [piece for piece in shard.apply(0, [("file", blob)]) if piece.kind == "error"]
    assert errors
    assert {piece.first_seq for piece in errors} == {seq}
    assert all(message in piece.data for piece in errors)


def test_an_initial_graph_is_at_seq_0_and_not_counted() -> None:
    graph = Router(QUERIES, 1).route(b"<p:1> <p:p> <p:2> .\n<p:2> <p:p> <p:3> .\n" * 2, Syntax.NTRIPLES, "g", True)[0]
    shard = Shard(ShardSettings(QUERIES))
    assert {line[1] for line in lines_of(shard.apply(0, [("g", graph)]))} == {0}
    assert (shard.statistics().messages, shard.statistics().relevant, shard.statistics().repeated_inserts) == (0, 0, 0)
    assert [line[1:3] for line in lines_of(pieces_of(shard, b"D <p:1> <p:p> <p:2> .\n", 1))] == [(1, "-")]


def test_rows_with_numbers_are_applied_in_their_order() -> None:
    router = Router(QUERIES, 1)
    late = router.route_rows([40, 7], ["del", "ins"], ["<p:1>", "<p:2>"], ["<p:p>"] * 2, ["<p:2>", "<p:3>"])[0]
    early = router.route_rows([1 << 40, 5], ["ins", "ins"], ["<p:1>"] * 2, ["<p:p>"] * 2, ["<p:2>"] * 2)[0]
    shard = Shard(ShardSettings(QUERIES))
    pieces = list(shard.apply(0, [("", late), ("", early)]))
    assert sorted(line[1:3] for line in lines_of(pieces)) == [(7, "+"), (40, "-"), (1 << 40, "+")]
    assert shard.statistics().messages == 4


# Processes, arenas, journals ------------------------------------------------------------------------------------------


def apply_and_print(directory: str, batch: int, out: str) -> None:
    shard = Shard(ShardSettings(QUERIES), FileJournal(f"{directory}/journal"), f"{directory}/arena")
    Path(out).write_bytes(b"".join(piece.data for piece in shard.apply(batch, routed(ROWS)[0])))


def test_two_processes_at_once_say_the_same(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    outputs = [tmp_path / f"out-{number}" for number in range(2)]
    children = [context.Process(target=apply_and_print, args=(str(tmp_path), 0, str(out))) for out in outputs]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
        assert child.exitcode == 0
    first, second = (sorted(out.read_bytes().splitlines()) for out in outputs)
    assert first == second == sorted(inline(ROWS, "jsonl").splitlines())


def test_an_arena_of_another_history_is_not_taken(tmp_path: Path) -> None:
    """The checkpoint was removed, and the run begins anew; what is left in memory is not its state."""
    settings, arenas = ShardSettings(QUERIES), str(tmp_path / "arenas")
    before = Shard(settings, FileJournal(tmp_path / "first"), arenas)
    for batch in range(2):
        pieces_of(before, ROWS, batch)
    after = Shard(settings, FileJournal(tmp_path / "second"), arenas)
    assert lines_of(pieces_of(after, ROWS)) == lines_of(pieces_of(Shard(settings), ROWS))
    other = Shard(ShardSettings({"other": "SELECT * { ?z <p:p> ?y }"}), FileJournal(tmp_path / "third"), arenas)
    assert [line[0] for line in lines_of(pieces_of(other, ROWS))] == ["other"] * 4


@pytest.mark.parametrize("content", [b"", b"not an arena" * 1000])
def test_what_is_no_arena_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "shard-0-of-1.arena").write_bytes(content)
    shard = Shard(ShardSettings(QUERIES), MemoryJournal(), str(tmp_path))
    assert lines_of(pieces_of(shard, ROWS)) == lines_of(pieces_of(Shard(ShardSettings(QUERIES)), ROWS))


def test_a_lost_journal_is_noticed(tmp_path: Path) -> None:
    shard = Shard(ShardSettings(QUERIES), FileJournal(tmp_path), None, Compaction(1 << 20))
    for batch in range(4):
        pieces_of(shard, ROWS, batch)
    (tmp_path / "log-000000000001").unlink()
    with pytest.raises(CheckpointError, match="leads to batch 0 and not to 3"):
        pieces_of(Shard(ShardSettings(QUERIES), FileJournal(tmp_path)), ROWS, 4)


def test_an_attempt_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    shard = Shard(ShardSettings(QUERIES), FileJournal(tmp_path), None, Compaction(0, 0.0))
    for batch in range(4):
        pieces_of(shard, ROWS, batch)
    with pytest.raises(CheckpointError, match="batch 1 of shard 0 comes too late: its journal is at batch 3"):
        pieces_of(Shard(ShardSettings(QUERIES), FileJournal(tmp_path)), ROWS, 1)


def test_batches_may_leave_numbers_out(tmp_path: Path) -> None:
    journal, arenas = FileJournal(tmp_path / "journal"), str(tmp_path / "arenas")
    found = []
    for batch in (3, 9, 9, 10):
        found.append(lines_of(pieces_of(Shard(ShardSettings(QUERIES), journal, arenas), ROWS, batch)))
    assert found[1] == found[2]
    assert min(line[1] for line in found[3]) > 14


def test_memory_that_is_used_up_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard(ShardSettings(QUERIES), MemoryJournal(), str(tmp_path))
    full = os.statvfs(tmp_path)
    values = list(full)
    values[4] = 1
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(values))
    with pytest.raises(OSError, match="there is no room left in"):
        pieces_of(shard, ROWS)


def test_a_snapshot_is_as_large_as_what_is_alive(tmp_path: Path) -> None:
    shard = Shard(ShardSettings(QUERIES), FileJournal(tmp_path), None, Compaction(0, 0.0))
    many = b"".join(f"A <p:{n}> <p:p> <p:{n + 1}> .\n".encode() for n in range(2000))
    pieces_of(shard, many, 0)
    large = (tmp_path / "snapshot-000000000000").stat().st_size
    pieces_of(shard, many.replace(b"A <", b"D <") + ROWS, 1)
    assert (tmp_path / "snapshot-000000000001").stat().st_size < large / 50


def test_answers_and_sizes_survive_a_snapshot(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path)
    shard = Shard(ShardSettings(QUERIES), journal, None, Compaction(0, 0.0))
    pieces_of(shard, ROWS)
    made = Shard(ShardSettings(QUERIES), journal)
    for name in QUERIES:
        assert sorted(made.answers(name)) == sorted(shard.answers(name))
    assert made.statistics() == shard.statistics()
    assert made.triples == shard.triples == 3
    assert lines_of(pieces_of(made, ROWS, 1)) == lines_of(pieces_of(shard, ROWS, 1))


def test_a_transaction_that_waits_is_reported() -> None:
    queries = {"path": QUERIES["path"]}
    settings = ShardSettings(queries, granularity="transaction")
    (blob,) = Router(queries, 1, "transaction").route(ROWS[: ROWS.index(b"TC")], Syntax.PATCH, "file")
    shard = Shard(settings)
    list(shard.apply(0, [("file", blob)]))
    assert shard.waiting_messages() == 2


def test_blobs_that_are_none_are_refused() -> None:
    with pytest.raises(InvariantError, match="packed split"):
        list(Shard(ShardSettings(QUERIES)).apply(0, [("file", b"nothing")]))


def test_merging_nothing() -> None:
    assert list(merge([])) == []
    assert list(merge([Piece(1, 1, "rejects", b"x", np.zeros(0, np.int64))])) == []


TRANSACTIONS = (
    b"TX .\nA <p:1> <p:p> <p:2> .\nA <p:2> <p:p> <p:3> .\nA <p:2> <p:p> <p:3> .\n",
    b"A <p:3> <p:p> <p:4> .\nD <p:1> <p:p> <p:2> .\n",
    b"TC .\nTX .\nD <p:3> <p:p> <p:4> .\nA <p:5> <p:p> <p:2> .\n",
    b"A <p:5> <p:q> <p:6> .\nD <p:9> <p:p> <p:1> .\n",
    b"A <p:4> <p:p> <p:5> .\nTA .\nTX .\nA <p:4> <p:p> <p:5> .\n",
    b"TC .\nD <p:2> <p:p> <p:3> .\n",
)


def through(granularity: str, directory: Path | None, keeps_arenas: bool) -> list[object]:
    """Transactions over many batches, by one process or by another for each batch, with snapshots all the time."""
    settings = ShardSettings(QUERIES, granularity=granularity)
    router, found, shard = Router(QUERIES, 1, granularity), [], Shard(settings)
    for batch, data in enumerate(TRANSACTIONS):
        if directory is not None:
            arenas = str(directory / ("arenas" if keeps_arenas else f"arenas-{batch}"))
            shard = Shard(settings, FileJournal(directory / "journal"), arenas, Compaction(0, 0.0))
        (blob,) = router.route(data, Syntax.PATCH, "file")
        for _ in range(2 if directory else 1):
            lines = lines_of(shard.apply(batch, [("file", blob)]))
        found.append((lines, shard.statistics()))
    return found


@pytest.mark.parametrize("keeps_arenas", [True, False])
@pytest.mark.parametrize("granularity", ["message", "transaction"])
def test_a_transaction_outlives_processes(tmp_path: Path, granularity: str, keeps_arenas: bool) -> None:
    assert through(granularity, tmp_path, keeps_arenas) == through(granularity, None, False)
