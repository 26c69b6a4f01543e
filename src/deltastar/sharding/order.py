"""Splits in the order in which they are applied: as they stand; but rows with numbers of their own by these numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deltastar.kernel.route import gather_lines
from deltastar.sharding.journal import Splits
from deltastar.sharding.packed import Packed, unpack


def in_order(splits: Splits) -> Iterator[tuple[str, Packed]]:
    """The splits, read. All that are numbered become one."""
    numbered: list[Packed] = []
    source_of_numbered = ""
    for source, blob in splits:
        packed = unpack(blob)
        if packed.is_numbered:
            numbered.append(packed)
            source_of_numbered = source_of_numbered or source
        else:
            yield source, packed
    if numbered:
        yield source_of_numbered, _merged(numbered)


def _merged(parts: list[Packed]) -> Packed:
    """Rows of several splits in the order of their numbers; equal ones stay in the order in which they stand."""
    places = np.concatenate([part.places for part in parts])
    text = b"".join(bytes(part.text) for part in parts)
    numbers = places >> 1
    if np.any(numbers[1:] < numbers[:-1]):
        data = np.frombuffer(bytearray(text), np.uint8)
        order = np.argsort(numbers, kind="stable")
        out = np.empty(len(data), np.uint8)
        gather_lines(data, np.flatnonzero(data == ord("\n")) + 1, order, out)
        places, text = places[order], out.tobytes()
    flags = 0
    for part in parts:
        flags |= part.flags
    messages, relevant = (sum(getattr(part, name) for part in parts) for name in ("messages", "relevant"))
    return Packed(flags, messages, 0, relevant, places, memoryview(text))
