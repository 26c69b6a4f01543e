"""What one split has for one shard, as one run of bytes: rows of canonical RDF Patch, and their places beside them.

In: what a router found in a split of the stream. Out: bytes that cost a shard little to read: a header of fixed size,
a number for each row, and the rows' text, which goes through the scanner like any other. Every shard gets a blob of
every split, be it without rows, because only so it knows how many messages there were.

A row's *place* is the number of messages in the split up to and with it; when the rows came with numbers of their own
(`IS_NUMBERED`), it is that number. Its lowest bit, `MUTED`, says that another shard counts the row when it has no
effect. A line that begins with `LETTER` is a dead letter, as JSON; only shard 0 has such lines, and only there marks
say where they stand, for it reports those that are out of place.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deltastar.errors import InvariantError
from deltastar.rdf.update import Malformed, Mark

MAGIC = 0x31505344  # "DSP1"
_HEADER = struct.Struct("<IIqqqqq")
HEADER_BYTES = _HEADER.size
IS_NUMBERED, IS_INITIAL, HAS_GRAPHS, HAS_DROPPED = 1, 2, 4, 8
"""Flags of a blob: places are numbers of the stream; these are rows of the initial graph, at seq 0 and not counted;
a row named a graph; a row was dropped because no query could match it."""
MUTED = 1
LETTER = b"!"


@dataclass(frozen=True, slots=True)
class Packed:
    """A blob, read."""

    flags: int
    messages: int
    """Messages in the split, malformed ones included."""
    lines: int
    relevant: int
    """Messages in the split that unify with a pattern of any query."""
    places: NDArray[np.int64]
    text: memoryview

    @property
    def is_numbered(self) -> bool:
        return bool(self.flags & IS_NUMBERED)

    @property
    def is_initial(self) -> bool:
        return bool(self.flags & IS_INITIAL)


def header(flags: int, messages: int, lines: int, relevant: int, rows: int, text_bytes: int) -> bytes:
    """What a blob begins with; the places of its rows follow, and then the text."""
    return _HEADER.pack(MAGIC, flags, messages, lines, relevant, rows, text_bytes)


def pack(flags: int, messages: int, lines: int, relevant: int, places: NDArray[np.int64], text: bytes) -> bytes:
    """A blob.

    >>> blob = pack(0, 3, 4, 1, np.array([2 * 2]), b"A <p:a> <p:b> <p:c> .\\n")
    >>> read = unpack(blob)
    >>> read.messages, read.lines, read.relevant, (read.places >> 1).tolist(), bytes(read.text)
    (3, 4, 1, [2], b'A <p:a> <p:b> <p:c> .\\n')
    """
    start = header(flags, messages, lines, relevant, len(places), len(text))
    return start + places.astype(np.int64).tobytes() + text


def unpack(blob: bytes | memoryview) -> Packed:
    """Reads a blob. What is returned are views of it."""
    if len(blob) < HEADER_BYTES:
        raise InvariantError(f"a packed split has {len(blob)} bytes; its header alone has {HEADER_BYTES}")
    magic, flags, messages, lines, relevant, rows, text_bytes = _HEADER.unpack_from(blob)
    end = HEADER_BYTES + 8 * rows + text_bytes
    if magic != MAGIC or end != len(blob):
        raise InvariantError(f"these {len(blob)} bytes are no packed split of this version of deltastar")
    places: NDArray[np.int64] = np.frombuffer(blob, np.int64, rows, HEADER_BYTES)
    return Packed(flags, messages, lines, relevant, places, memoryview(blob)[HEADER_BYTES + 8 * rows :])


def mark_line(mark: Mark, line: int, text: str) -> bytes:
    """A mark for shard 0: behind it, as a comment, where in the split it stands and how, should it be out of place."""
    return f"{mark.value} . #{line}#{text}\n".encode()


def read_mark(line: bytes, lines_before: int) -> tuple[int, str]:
    """The line and the text of a mark from such a line."""
    _, number, text = line.decode().split("#", 2)
    return int(number) + lines_before if int(number) else 0, text


def letter_line(letter: Malformed) -> bytes:
    """A dead letter as a line of a blob's text. Its line counts from the beginning of the split."""
    fields = [letter.line, letter.column, letter.reason, letter.text, letter.is_message]
    return LETTER + json.dumps(fields).encode() + b"\n"


def read_letter(line: bytes, source: str, lines_before: int) -> Malformed:
    """The dead letter of such a line. One without a line, line 0, has its place nowhere."""
    number, column, reason, text, is_message = json.loads(line[len(LETTER) :])
    return Malformed(source, number + lines_before if number else 0, column, reason, text, is_message)
