"""Blocks of a shard's deltas to pieces of output: of bounded size, in the order of `seq`, cut where a seq ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from deltastar.delivery import Block
from deltastar.errors import UsageError
from deltastar.layout import Longs
from deltastar.rdf.update import Malformed
from deltastar.sharding.engine import ShardEngine
from deltastar.sink.encode import Variables, json_text, utf8

DELTAS, REJECTS, ERROR = "deltas", "rejects", "error"
FORMATS = ("jsonl", "csv", "tsv", "columns", "rows")
PIECE_BYTES = 1 << 20
_NO_CUTS: Longs = np.zeros(0, np.int64)


class Piece(NamedTuple):
    """A part of the output. Its kind is "deltas", "rejects", or "error": what stops a strict run, as text."""

    first_seq: int
    last_seq: int
    kind: str
    data: Any
    """Encoded lines; or, by the format, an Arrow record batch."""
    cuts: Longs = _NO_CUTS
    """Of lines: each seq, and where its lines end, one pair after the other."""


class Pieces:
    """Makes pieces of blocks, in one format."""

    def __init__(self, engine: ShardEngine, format: str, variables: Variables) -> None:
        if format not in FORMATS:
            raise UsageError(f"{format!r} is not a format of shards; use one of {', '.join(FORMATS)}")
        self.engine = engine
        self.start()
        self._add: Callable[[Block], Iterator[Piece]]
        if format in ("columns", "rows"):
            self._columns = engine.delivery.columns(variables)
            self._arrow = self._columns.arrow if format == "columns" else self._columns.maps
            self._add = self._add_columns
        else:
            self._lines = engine.delivery.lines(format, variables)
            self._add = self._add_lines

    def start(self) -> None:
        """A batch begins; what an attempt that was given up has left is gone."""
        self._data: list[bytes] = []
        self._cuts: list[Longs] = []
        self._size = 0

    def add(self, block: Block) -> Iterator[Piece]:
        """The pieces that are full with this block."""
        return self._add(block)

    def finish(self) -> Iterator[Piece]:
        """What is left."""
        if self._size:
            cuts = np.concatenate(self._cuts)
            yield Piece(int(cuts[0]), int(cuts[-2]), DELTAS, b"".join(self._data), cuts)
            self.start()

    def _add_lines(self, block: Block) -> Iterator[Piece]:
        table = self.engine.machine.table
        for data, cuts in self._lines.encode_cut(table, block.out, block.end, block.numbers):
            if self._size + len(data) > PIECE_BYTES:
                yield from self.finish()
            cuts[1::2] += self._size
            self._data.append(bytes(data))
            self._cuts.append(cuts)
            self._size += len(data)

    def _add_columns(self, block: Block) -> Iterator[Piece]:
        flat = self._columns.flatten(block.out, block.end, block.numbers)
        for batch in self._arrow(self.engine.machine.table, flat):
            seqs = batch.column("seq")
            yield Piece(seqs[0].as_py(), seqs[-1].as_py(), DELTAS, batch)


def rejects(rows: Iterable[Malformed], seq: int) -> Piece:
    """Dead letters, as their output holds them."""
    texts = [
        json_text(
            {"source": row.source, "line": row.line, "column": row.column, "reason": row.reason, "text": row.text}
        )
        for row in rows
    ]
    return Piece(seq, seq, REJECTS, utf8("".join(text + "\n" for text in texts)))


def merge(pieces: Sequence[Piece]) -> Iterator[bytes]:
    """The lines of several shards' deltas for one batch, in the order of `seq`, in parts of bounded size.

    >>> one = Piece(1, 3, "deltas", b"a\\nc\\n", np.array([1, 2, 3, 4]))
    >>> two = Piece(2, 2, "deltas", b"b\\n", np.array([2, 2]))
    >>> b"".join(merge([one, two]))
    b'a\\nb\\nc\\n'
    """
    held = [piece for piece in pieces if piece.kind == DELTAS]
    if not held:
        return
    seqs = np.concatenate([piece.cuts[0::2] for piece in held])
    ends = [piece.cuts[1::2] for piece in held]
    starts = np.concatenate([np.concatenate([[0], end[:-1]]) for end in ends])
    owners = np.repeat(np.arange(len(held)), [len(end) for end in ends])
    stops = np.concatenate(ends)
    order = np.argsort(seqs, kind="stable")
    part: list[memoryview] = []
    size = 0
    views = [memoryview(piece.data) for piece in held]
    for owner, start, stop in zip(owners[order].tolist(), starts[order].tolist(), stops[order].tolist(), strict=True):
        part.append(views[owner][start:stop])
        size += stop - start
        if size >= PIECE_BYTES:
            yield b"".join(part)
            part, size = [], 0
    if part:
        yield b"".join(part)
