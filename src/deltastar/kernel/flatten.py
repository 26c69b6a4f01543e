"""The kernel's output as columns: runs of ids to one entry for each row and subscriber; and texts, many at a time.

The order is that of `encode.py`: by run, subscriber and row. Callers make the arrays, of the sizes that are counted.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.encode import target_of
from deltastar.kernel.jit import kernel
from deltastar.kernel.state import attach, terms_of
from deltastar.kernel.terms import text_of
from deltastar.kernel.text import copy, prefetch
from deltastar.layout import (
    COLUMN,
    COLUMN_PLACE,
    COLUMN_VARIABLE,
    DONE,
    G_COUNT,
    G_FIRST,
    G_WIDTH,
    O_HEADER,
    O_MESSAGE,
    O_ROWS,
    O_SIGN,
    S_COLUMN,
    S_COLUMNS,
    S_NUMBER,
    UNKNOWN_TARGET,
)
from deltastar.scan_layout import GRANULE_WORDS, N_PLACE, TERM

AHEAD = 16


@kernel
def count(plan, out, end, sizes):
    """How many rows the subscribers have in `out[:end]`, and how many ids are in them; or the run that is unknown."""
    run, rows_in_all, ids = np.int64(0), np.int64(0), np.int64(0)
    while run < end:
        target = target_of(plan, out, run)
        if target == 0:
            sizes[0] = run
            return UNKNOWN_TARGET
        rows = np.int64(out[run + O_ROWS])
        for index in range(plan[target + G_COUNT]):
            rows_in_all += rows
            ids += rows * plan[plan[target + G_FIRST + index] + S_COLUMNS]
        run += O_HEADER + rows * plan[target + G_WIDTH]
    sizes[0], sizes[1] = rows_in_all, ids
    return DONE


@kernel
def flatten(plan, out, end, base, numbers, subscribers, seqs, signs, ids, ends):
    """For each row: its subscriber, seq and sign, and where its ids end; the ids one row behind the other."""
    run, at, place = np.int64(0), np.int64(0), np.int64(0)
    while run < end:
        target = target_of(plan, out, run)
        width, rows = plan[target + G_WIDTH], np.int64(out[run + O_ROWS])
        seq = base + numbers[np.int64(out[run + O_MESSAGE])]
        for index in range(plan[target + G_COUNT]):
            subscriber = plan[target + G_FIRST + index]
            for row in range(rows):
                subscribers[at], seqs[at], signs[at] = plan[subscriber + S_NUMBER], seq, out[run + O_SIGN]
                place = _project(plan, subscriber, out, run + O_HEADER + row * width, ids, place)
                at += 1
                ends[at] = place
        run += O_HEADER + rows * width


@kernel
def _project(plan, subscriber, out, first, ids, place):
    column = subscriber + plan[subscriber + S_COLUMN]
    for _ in range(plan[subscriber + S_COLUMNS]):
        ids[place] = out[first + plan[column + COLUMN_PLACE]]
        place += 1
        column += COLUMN
    return place


@kernel
def tabulate(plan, places, subscribers, ends, ids, count_, table):
    """The ids as a table, a column of `count_` rows behind the other for each variable; 0 where it is not bound.

    `places` holds the place of each subscriber's record. The table comes empty.
    """
    for row in range(count_):
        subscriber = places[subscribers[row]]
        column = subscriber + plan[subscriber + S_COLUMN]
        for place in range(ends[row], ends[row + 1]):
            table[plan[column + COLUMN_VARIABLE] * count_ + row] = ids[place]
            column += COLUMN


@kernel
def measure(address, ids, count_):
    """How many bytes the texts of these ids have. Id 0 has none."""
    t = terms_of(attach(address))
    total = np.int64(0)
    for index in range(count_):
        _ask(t, ids, index, count_)
        total += text_of(t, np.int64(ids[index]))[1]
    return total


@kernel
def copy_texts(address, ids, count_, data, ends):
    """Copies the texts of these ids one behind the other to `data`, and where each ends to `ends`, behind a 0."""
    t = terms_of(attach(address))
    at = np.int64(0)
    ends[0] = 0
    for index in range(count_):
        _ask(t, ids, index, count_)
        start, length = text_of(t, np.int64(ids[index]))
        copy(data, at, t.text, start, length)
        at += length
        ends[index + 1] = at


@kernel
def _ask(t, ids, index, count_):
    if index + 2 * AHEAD < count_:
        prefetch(t.term, np.int64(ids[index + 2 * AHEAD]) * TERM)
        place = np.int64(t.term[np.int64(ids[index + AHEAD]) * TERM + N_PLACE])
        prefetch(t.words, place * GRANULE_WORDS)
