"""What a mixed group brings: rows that are added by one of its messages and removed by another cancel out.

In: the output of whole groups. Out: the same runs, but those of mixed groups as what is left of them. What cancels out
are rows as the queries report them, so such a run has the target that stands for one query alone (`READER`).
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.layout import (
    NET,
    NET_AT,
    NET_READER,
    NET_SLOT,
    NET_SUM,
    O_HEADER,
    O_MESSAGE,
    O_ROWS,
    O_SIGN,
    O_TARGET,
    READER,
)


@kernel
def sizes(out, end, groups, readers, widths):
    """How many rows the mixed groups have for all readers together, and how long the result can become."""
    position, rows, length = 0, 0, 0
    while position < end:
        count, width = out[position + O_ROWS], widths[out[position + O_TARGET]]
        size = O_HEADER + count * width
        if groups[out[position + O_MESSAGE]] == 0:
            length += size
        else:
            table = readers[out[position + O_TARGET]]
            reader = table + 1
            for _ in range(readers[table]):
                rows += count
                length += count * (O_HEADER + readers[reader + 1])
                reader += READER + readers[reader + 1]
        position += size
    return rows, length


@kernel
def net(out, end, groups, readers, widths, slots, entries, result):
    """Writes the result, and gives its end. `slots` is zero, a power of two long, and twice as long as rows come."""
    position, written = 0, 0
    while position < end:
        group = groups[out[position + O_MESSAGE]]
        if group == 0:
            size = O_HEADER + out[position + O_ROWS] * widths[out[position + O_TARGET]]
            for index in range(size):
                result[written + index] = out[position + index]
            position += size
            written += size
            continue
        message = out[position + O_MESSAGE]
        found = 0
        while position < end and groups[out[position + O_MESSAGE]] == group:
            found = _add_up(out, position, readers, widths, slots, entries, found)
            position += O_HEADER + out[position + O_ROWS] * widths[out[position + O_TARGET]]
        written = _write(out, message, readers, slots, entries, found, result, written)
    return written


@kernel
def _add_up(out, run, readers, widths, slots, entries, found):
    """Adds a run's rows to the sums, for each reader."""
    width = widths[out[run + O_TARGET]]
    table = readers[out[run + O_TARGET]]
    for row in range(out[run + O_ROWS]):
        at = run + O_HEADER + row * width
        reader = table + 1
        for _ in range(readers[table]):
            slot = _slot_of(out, at, readers, reader, slots, entries)
            entry = slots[slot] - 1
            if entry < 0:
                entry = found
                found += 1
                slots[slot] = found
                entries[entry * NET + NET_AT] = at
                entries[entry * NET + NET_READER] = reader
                entries[entry * NET + NET_SUM] = 0
                entries[entry * NET + NET_SLOT] = slot
            entries[entry * NET + NET_SUM] += out[run + O_SIGN]
            reader += READER + readers[reader + 1]
    return found


@kernel
def _slot_of(out, at, readers, reader, slots, entries):
    """The slot of an equal row, or a free one."""
    columns = reader + READER
    width = readers[reader + 1]
    x = int(reader) * 0x9E3779B1
    for column in range(columns, columns + width):
        x = ((x ^ int(out[at + readers[column]])) * 0x85EBCA6B) & 0x7FFFFFFFFFFF
        x ^= x >> 21
    mask = len(slots) - 1
    slot = x & mask
    while slots[slot] != 0:
        entry = (slots[slot] - 1) * NET
        if entries[entry + NET_READER] == reader:
            other = entries[entry + NET_AT]
            column = columns
            while column < columns + width and out[at + readers[column]] == out[other + readers[column]]:
                column += 1
            if column == columns + width:
                return slot
        slot = (slot + 1) & mask
    return slot


@kernel
def _write(out, message, readers, slots, entries, found, result, written):
    """What is left of a group, a run for each row; clears the slots."""
    for place in range(found):
        entry = place * NET
        slots[entries[entry + NET_SLOT]] = 0
        total = entries[entry + NET_SUM]
        if total == 0:
            continue
        reader, at = entries[entry + NET_READER], entries[entry + NET_AT]
        result[written + O_TARGET] = readers[reader]
        result[written + O_MESSAGE] = message
        result[written + O_SIGN] = 1 if total > 0 else -1
        result[written + O_ROWS] = abs(total)
        written += O_HEADER
        for _ in range(abs(total)):
            for column in range(reader + READER, reader + READER + readers[reader + 1]):
                result[written] = out[at + readers[column]]
                written += 1
    return written
