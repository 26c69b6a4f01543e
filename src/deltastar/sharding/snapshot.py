"""A shard's state as bytes that do not depend on where things are in an arena, and back.

Out come chunks of bounded size: the residue as JSON, and rows of RDF Patch: the retained triples, the changes of an
open transaction, the messages that wait for its end. So a snapshot is as large as what is alive, not as what an arena
has ever held, and any version of the kernel can read it. Back in, the triples go through the same door as any rows;
but searches that would only find what is known already, the number of answers, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np

from deltastar import layout as at
from deltastar.errors import CheckpointError
from deltastar.layout import Ints, Longs
from deltastar.sharding.engine import ShardEngine
from deltastar.sharding.packed import IS_INITIAL, Packed
from deltastar.sharding.residue import Residue
from deltastar.statistics import Statistics

_RESIDUE, _TRIPLES, _CHANGES, _WAITING = b"R", b"T", b"C", b"W"
_COUNTS = ("version", "chain", "has_dropped", "is_open", "opened_at", "waiting_absent", "source", "lines")


def write_snapshot(engine: ShardEngine) -> Iterator[bytes]:
    """The state between two batches."""
    machine, residue = engine.machine, engine.residues.now
    sizes = {
        str(component.target): int(machine.arena.arrays["target_size"][component.target])
        for component in machine.program.components
    }
    numbers = {name: getattr(residue, name) for name in _COUNTS}
    known = {"residue": numbers, "statistics": asdict(residue.statistics), "sizes": sizes}
    yield _RESIDUE + json.dumps(known).encode()
    for messages in machine.insertions():
        yield from _rows(engine, _TRIPLES, messages)
    if engine.rules.by_transaction:
        waiting = engine.residues.waiting_of(residue)
        yield from _rows(engine, _WAITING, waiting[:, : at.MESSAGE], waiting[:, at.MESSAGE])
    elif residue.is_open:
        counters, log = machine.arena.arrays["counters"], machine.arena.arrays["log"].reshape(-1, at.MESSAGE)
        yield from _rows(engine, _CHANGES, log[counters[at.C_TRANSACTION_LOG] : counters[at.C_LOG_COUNT]])


def _rows(engine: ShardEngine, kind: bytes, rows: Ints, muted: Ints | None = None) -> Iterator[bytes]:
    """Chunks of rows: how many, a byte for each that says whether it is muted, and the text."""
    for first, stop, text in engine.machine.rows_of(rows):
        marks = np.zeros(stop - first, np.uint8) if muted is None else muted[first:stop].astype(np.uint8)
        yield kind + (stop - first).to_bytes(8, "little") + marks.tobytes() + text


def read_snapshot(engine: ShardEngine, chunks: Iterable[bytes]) -> None:
    """Brings an empty engine into the state that was written."""
    chunks = iter(chunks)
    first = next(chunks, b"")
    if not first.startswith(_RESIDUE):
        raise CheckpointError("the snapshot does not begin with its counts; remove the checkpoint to start anew")
    known = json.loads(first[1:])
    behind: list[bytes] = []
    with _sizes_known(engine):
        for chunk in chunks:
            if chunk.startswith(_TRIPLES):
                _feed(engine, chunk)
            else:
                behind.append(chunk)
    for target, size in known["sizes"].items():
        engine.machine.arena.arrays["target_size"][int(target)] = size
    residue = Residue(**known["residue"], statistics=Statistics(**known["statistics"]))
    _open(engine, residue, behind)
    engine.set_counts(residue.statistics)
    engine.residue = residue


def _open(engine: ShardEngine, residue: Residue, chunks: list[bytes]) -> None:
    """The open transaction: by message its changes, which are in the graph already, are taken out and made again."""
    changes = [chunk for chunk in chunks if chunk.startswith(_CHANGES)]
    if changes:
        rows = [line for chunk in changes for line in _text(chunk)[1].splitlines(keepends=True)]
        back = b"".join((b"A" if row.startswith(b"D") else b"D") + row[1:] for row in reversed(rows))
        _feed_text(engine, back, np.zeros(len(rows), np.int64))
    if residue.is_open:
        _feed_text(engine, b"TX .\n", np.array([2 * residue.opened_at]))
    for chunk in chunks:
        _feed(engine, chunk)
    engine.intake.open_as(residue)


def _feed(engine: ShardEngine, chunk: bytes) -> None:
    muted, text = _text(chunk)
    _feed_text(engine, text, muted)


def _feed_text(engine: ShardEngine, text: bytes, places: Longs) -> None:
    packed = Packed(IS_INITIAL, 0, 0, 0, places.astype(np.int64), memoryview(text))
    for _ in engine.intake.feed(packed, "", 0, 0, _no_letters):
        pass


def _text(chunk: bytes) -> tuple[Longs, bytes]:
    rows = int.from_bytes(chunk[1:9], "little")
    return np.frombuffer(chunk, np.uint8, rows, 9).astype(np.int64), chunk[9 + rows :]


def _no_letters(row: object) -> None:
    raise CheckpointError(f"the snapshot has a row that cannot be read: {row}")


@contextmanager
def _sizes_known(engine: ShardEngine) -> Iterator[None]:
    """While triples come in whose embeddings have been counted: looks only for those that views count."""
    program = engine.machine.program
    undo = program.suspend_plain()
    try:
        yield
    finally:
        undo()
