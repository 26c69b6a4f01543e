"""Packed rows that came through Spark, in the order of their numbers: tasks finish in any order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from deltastar.kernel.lines import LF, gather
from deltastar.sharding.packed import Packed, pack, unpack


def in_order(blobs: Sequence[bytes]) -> list[bytes]:
    """Blobs of numbered rows in the order of the numbers: as they are if they follow each other, else made into one.

    Rows of one number stay as they came: a mark has the number of the message in front of it, so within a blob it is
    behind that message, and so it is in the blobs that follow each other.
    """
    read = [unpack(blob) for blob in blobs]
    filled = sorted(
        (position for position, packed in enumerate(read) if len(packed.places)),
        key=lambda position: (int(read[position].places[0]), int(read[position].places[-1])),
    )
    empty = [position for position, packed in enumerate(read) if not len(packed.places)]
    places = [read[position].places >> 1 for position in filled]
    follows = all(before[-1] <= after[0] for before, after in pairwise(places))
    if follows and all(bool(np.all(own[:-1] <= own[1:])) for own in places):
        return [blobs[position] for position in (*empty, *filled)]
    return [*(blobs[position] for position in empty), _merged([read[position] for position in filled])]


def _merged(parts: Sequence[Packed]) -> bytes:
    text = np.frombuffer(b"".join(part.text for part in parts), np.uint8)
    places = np.concatenate([part.places for part in parts])
    ends = np.flatnonzero(text == LF) + 1
    starts = np.concatenate([[0], ends[:-1]])
    order = np.argsort(places >> 1, kind="stable")
    out = np.empty(len(text), np.uint8)
    gather(text, starts, ends, order, 0, len(order), out)
    flags = 0
    for part in parts:
        flags |= part.flags
    messages, relevant = sum(part.messages for part in parts), sum(part.relevant for part in parts)
    return pack(flags, messages, 0, relevant, places[order], out.tobytes())
