"""Grow a partial embedding, variable by variable, until all are bound: the search behind one trigger.

In: a trigger, whose variables are bound to the message's triple. Out: runs of rows. The search keeps its place in
arrays, so that it can stop when the output is full and go on later, whatever the number of embeddings.

Each bound variable *offers* its neighbours to those that are not bound; one that has none to offer is given up at once
(the star at it is incomplete). The next variable is the one with the shortest list of candidates: its value has to be
in all other lists that it was offered. Where the patterns form a cycle this is a generic join, worst-case optimal up to
the choice of the order; where they do not, it is the paper's order of stars with one star of look-ahead. Variables of
a single pattern come last: their lists are multiplied out. Where most candidates are dead ends, the lists that are
offered are those of live neighbours only (`live.py`).
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.graph import find_entry, holds, run_from, size_of
from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.live import is_kept, spare, use, waste
from deltastar.kernel.text import copy_row, prefetch
from deltastar.layout import (
    BOUND,
    CHECK,
    DONE,
    EXTRA,
    F_AT,
    F_ENTRY,
    F_EXCLUDED,
    F_INDEX,
    F_LIVE,
    F_RUN_END,
    F_SIZE,
    F_VARIABLE,
    FRAME,
    G_ENTRY,
    G_EXCLUDED,
    G_LIVE,
    G_SIZE,
    G_SPARED,
    GIVEN,
    IN_SLOT,
    N_BLOCK,
    N_COUNT,
    NODE,
    O_ROWS,
    OUT_FULL,
    STEP,
    T_BOUND,
    T_BOUNDS,
    T_CHECK,
    T_CHECKS,
    T_GROUND,
    T_GROUNDS,
    T_INNER,
    T_INNERS,
    T_LEAF,
    T_LEAVES,
    T_VARIABLE,
    T_WIDTH,
    TAG_SHIFT,
    U_DEPTH,
    U_S,
    U_SERIAL,
    UNIT,
    V_CANDIDATE,
    V_EXTRA,
    V_EXTRAS,
    V_MASK,
    V_STEP,
    V_STEPS,
    VARIABLE,
    Y_LIVE_SLOT,
    Z_FLAGS,
)

AHEAD = 8
"""Candidates."""


@kernel
def begin(st, trigger):
    """Binds the trigger's variables. False when there can be no embedding."""
    program, cursor, values, bound = st.program, st.cursor, st.values, st.bound
    table = program[trigger + T_INNER]
    for place in range(table, table + program[trigger + T_INNERS]):
        bound[program[place]] = 0
        st.offered[program[place]] = 0
    table = program[trigger + T_LEAF]
    for place in range(table, table + program[trigger + T_LEAVES]):
        bound[program[place]] = 0
        st.offered[program[place]] = 0
    table = program[trigger + T_BOUND]
    for place in range(table, table + program[trigger + T_BOUNDS] * BOUND, BOUND):
        values[program[place]] = cursor[U_S + program[place + 1]]
        bound[program[place]] = 1
    table = program[trigger + T_GROUND]
    for place in range(table, table + program[trigger + T_GROUNDS]):
        if st.relation_size[program[place]] == 0:
            return False
    variables = program[trigger + T_VARIABLE]
    table = program[trigger + T_BOUND]
    for place in range(table, table + program[trigger + T_BOUNDS] * BOUND, BOUND):
        variable = program[place]
        record = variables + variable * VARIABLE
        if not (_fits(st, record, values[variable]) and _offer(st, variables, record, values[variable])):
            return False
    table = program[trigger + T_CHECK]
    for place in range(table, table + program[trigger + T_CHECKS] * CHECK, CHECK):
        if not _is_joined(st, place):
            return False
    cursor[U_DEPTH] = -1
    return True


@kernel
def _is_joined(st, check):
    """Whether a pattern between two bound variables has its triple."""
    program, cursor = st.program, st.cursor
    first, second = st.values[program[check + 1]], st.values[program[check + 2]]
    excluded = program[check + 3]
    if (
        excluded != 0
        and st.stamps[excluded - 1] == cursor[U_SERIAL]
        and first == cursor[U_S + program[check + 4]]
        and second == cursor[U_S + program[check + 5]]
    ):
        return False
    entry = find_entry(st.nodes, st.heap, first, program[check])
    return entry != 0 and holds(st.counters, st.heap, st.hubs, entry, second)


@kernel
def _fits(st, record, value):
    """Whether the patterns of this variable alone allow the value."""
    program = st.program
    mask = program[record + V_MASK]
    if mask != 0 and st.flags[value] & mask != mask:
        return False
    extra = program[record + V_EXTRA]
    for place in range(extra, extra + program[record + V_EXTRAS] * EXTRA, EXTRA):
        if not _fits_extra(st, program[place], program[place + 1], program[place + 2], value):
            return False
    return True


@inlined
def _is_foreign(st, record, value):
    """Whether the value is in a class that another engine looks at. No live lists could spare that."""
    own = st.program[record + V_MASK] & st.classes[Z_FLAGS]
    return own != 0 and st.flags[value] & own != own


@kernel
def _fits_extra(st, what, argument, position, value):
    if what == IN_SLOT:
        return find_entry(st.nodes, st.heap, value, argument) != 0
    if st.stamps[argument] != st.cursor[U_SERIAL]:
        return True
    return value != st.cursor[U_S + position]


@kernel
def _offer(st, variables, record, value):
    """Gives candidates to the unbound neighbours of a variable. False when there are none for one of them."""
    program, heap, bound, offered, cursor = st.program, st.heap, st.bound, st.offered, st.cursor
    steps = program[record + V_STEPS]
    if steps == 0:
        return True
    first = program[record + V_STEP]
    next_entry = st.nodes[value * NODE + N_BLOCK] * UNIT
    end = next_entry + st.nodes[value * NODE + N_COUNT] * UNIT
    for step in range(first, first + steps * STEP, STEP):
        other = program[step]
        if bound[other] != 0:
            continue
        slot = program[step + 1]
        while next_entry < end and heap[next_entry] >> TAG_SHIFT < slot:
            next_entry += UNIT
        entry = next_entry
        size, excluded, spared = 0, 0, 0
        live = program[step + 5]
        if entry < end and heap[entry] >> TAG_SHIFT == slot:
            size = size_of(heap, entry)
            exclusion = program[step + 2]
            if (
                exclusion != 0
                and st.stamps[exclusion - 1] == cursor[U_SERIAL]
                and value == cursor[U_S + program[step + 3]]
            ):
                excluded = cursor[U_S + program[step + 4]]
                size -= 1
            if live != 0 and is_kept(st, live):
                spared = size
                entry = find_entry(st.nodes, heap, value, program[live + Y_LIVE_SLOT])
                size = 0
                if entry != 0:
                    size = size_of(heap, entry)
                    if excluded != 0 and holds(st.counters, heap, st.hubs, entry, excluded):
                        size -= 1
                spared -= size
        if size == 0:
            if spared > 0:
                spare(st, live, spared)
            _withdraw(st, first, step)
            return False
        given = program[variables + other * VARIABLE + V_CANDIDATE] + offered[other] * GIVEN
        st.candidates[given + G_ENTRY] = entry
        st.candidates[given + G_SIZE] = size
        st.candidates[given + G_EXCLUDED] = excluded
        st.candidates[given + G_LIVE] = live
        st.candidates[given + G_SPARED] = spared
        offered[other] += 1
    return True


@kernel
def _withdraw(st, first, behind):
    """Takes back what the steps have offered."""
    for step in range(first, behind, STEP):
        if st.bound[st.program[step]] == 0:
            st.offered[st.program[step]] -= 1


@kernel
def _push(st, trigger, variables, depth):
    """The frame of the next variable to bind."""
    program, candidates = st.program, st.candidates
    inners = program[trigger + T_INNERS]
    if depth < inners:
        table = program[trigger + T_INNER]
        chosen = -1
        fewest = 1 << 40
        variable = 0
        for place in range(table, table + inners):
            node = program[place]
            if st.bound[node] == 0:
                given = program[variables + node * VARIABLE + V_CANDIDATE]
                for offer in range(given, given + st.offered[node] * GIVEN, GIVEN):
                    if candidates[offer + G_SIZE] < fewest:
                        fewest = candidates[offer + G_SIZE]
                        variable = node
                        chosen = offer
    else:
        variable = program[program[trigger + T_LEAF] + depth - inners]
        chosen = program[variables + variable * VARIABLE + V_CANDIDATE]
    frame = depth * FRAME
    entry = candidates[chosen + G_ENTRY]
    st.frames[frame + F_VARIABLE] = variable
    st.frames[frame + F_ENTRY] = entry
    st.frames[frame + F_SIZE] = size_of(st.heap, entry)
    st.frames[frame + F_EXCLUDED] = candidates[chosen + G_EXCLUDED]
    live = candidates[chosen + G_LIVE]
    if live != 0 and is_kept(st, live):
        spare(st, live, candidates[chosen + G_SPARED])
        live = 0
    st.frames[frame + F_LIVE] = live
    if depth < inners:
        _look_ahead(st, entry)
    st.frames[frame + F_INDEX] = 0
    st.frames[frame + F_AT] = 0
    st.frames[frame + F_RUN_END] = 0


@inlined
def _look_ahead(st, entry):
    """Has the blocks of the first candidates brought near, all at the same time."""
    at, length = run_from(st.heap, entry, 0)
    for place in range(at, at + min(length, AHEAD)):
        prefetch(st.heap, np.int64(st.nodes[st.heap[place] * NODE + N_BLOCK]) * UNIT)


@kernel
def _is_in_others(st, variables, variable, value, chosen):
    """Whether the value is in all lists that the variable was offered. `chosen` is the entry of the one it is from."""
    candidates = st.candidates
    given = st.program[variables + variable * VARIABLE + V_CANDIDATE]
    for offer in range(given, given + st.offered[variable] * GIVEN, GIVEN):
        entry = candidates[offer + G_ENTRY]
        if entry != chosen and (
            value == candidates[offer + G_EXCLUDED] or not holds(st.counters, st.heap, st.hubs, entry, value)
        ):
            return False
        if entry == chosen and value == candidates[offer + G_EXCLUDED]:
            return False
    return True


@inlined
def _put_leaf(st, sink, end, width, leaf, offer):
    """A row for each value that a leaf was offered."""
    heap, values = st.heap, st.values
    entry, excluded = st.candidates[offer + G_ENTRY], st.candidates[offer + G_EXCLUDED]
    size = size_of(heap, entry)
    index = 0
    while index < size:
        at, length = run_from(heap, entry, index)
        for place in range(at, at + length):
            value = heap[place]
            if value != excluded:
                copy_row(sink, end, values, width)
                sink[end + leaf] = value
                end += width
        index += length


@kernel
def search(st, trigger, sink, room, run, end):
    """Goes on with the search until it is through, or the sink is full. Gives the status and the sink's new end.

    `room` is the sink's length, `run` where the header of the run of rows is that it ends with.
    """
    program, heap, values, bound, frames = st.program, st.heap, st.values, st.bound, st.frames
    variables = program[trigger + T_VARIABLE]
    inners = program[trigger + T_INNERS]
    levels = inners + program[trigger + T_LEAVES]
    width = program[trigger + T_WIDTH]
    room -= width
    rows = sink[run + O_ROWS]
    depth = st.cursor[U_DEPTH]
    status = DONE
    if depth == -1:
        depth = 0
        if levels == 0:
            if end > room:
                return OUT_FULL, end
            copy_row(sink, end, values, width)
            sink[run + O_ROWS] = rows + 1
            return DONE, end + width
        if levels == 1 and inners == 0:
            leaf = program[program[trigger + T_LEAF]]
            offer = program[variables + leaf * VARIABLE + V_CANDIDATE]
            size = st.candidates[offer + G_SIZE]
            if end + (size - 1) * width <= room:
                _put_leaf(st, sink, end, width, leaf, offer)
                sink[run + O_ROWS] = rows + size
                return DONE, end + size * width
        _push(st, trigger, variables, 0)
    while depth >= 0:
        frame = depth * FRAME
        variable = frames[frame + F_VARIABLE]
        excluded = frames[frame + F_EXCLUDED]
        record = variables + variable * VARIABLE
        at, run_end = frames[frame + F_AT], frames[frame + F_RUN_END]
        if bound[variable] != 0:  # back from the variables behind it
            bound[variable] = 0
            if depth < inners:
                first = program[record + V_STEP]
                _withdraw(st, first, first + program[record + V_STEPS] * STEP)
        if at == run_end:
            index = frames[frame + F_INDEX]
            if index == frames[frame + F_SIZE]:
                depth -= 1
                continue
            at, length = run_from(heap, frames[frame + F_ENTRY], index)
            run_end = at + length
            frames[frame + F_INDEX] = index + length
            frames[frame + F_RUN_END] = run_end
        if depth == levels - 1:  # the last one: each value that fits is a row
            if depth >= inners:
                while at < run_end:
                    if heap[at] != excluded:
                        if end > room:
                            status = OUT_FULL
                            break
                        copy_row(sink, end, values, width)
                        sink[end + variable] = heap[at]
                        end += width
                        rows += 1
                    at += 1
            else:
                while at < run_end:
                    value = heap[at]
                    if (
                        value != excluded
                        and not _is_foreign(st, record, value)
                        and _is_in_others(st, variables, variable, value, frames[frame + F_ENTRY])
                    ):
                        if not _fits(st, record, value):
                            waste(st, frames[frame + F_LIVE])
                            at += 1
                            continue
                        if end > room:
                            status = OUT_FULL
                            break
                        use(st, frames[frame + F_LIVE])
                        values[variable] = value
                        copy_row(sink, end, values, width)
                        end += width
                        rows += 1
                    at += 1
            frames[frame + F_AT] = at
            if status == OUT_FULL:
                break
            continue
        value = heap[at]
        frames[frame + F_AT] = at + 1
        if value == excluded:
            continue
        if depth < inners:
            if _is_foreign(st, record, value):
                continue
            if not _is_in_others(st, variables, variable, value, frames[frame + F_ENTRY]):
                continue
            values[variable] = value
            bound[variable] = 1
            if not (_fits(st, record, value) and _offer(st, variables, record, value)):
                bound[variable] = 0
                waste(st, frames[frame + F_LIVE])
                continue
            use(st, frames[frame + F_LIVE])
        else:
            values[variable] = value
            bound[variable] = 1
        depth += 1
        if depth == levels - 1 and depth >= inners:
            leaf = program[program[trigger + T_LEAF] + depth - inners]
            offer = program[variables + leaf * VARIABLE + V_CANDIDATE]
            size = st.candidates[offer + G_SIZE]
            if end + (size - 1) * width <= room:  # all its rows at once, without a frame
                _put_leaf(st, sink, end, width, leaf, offer)
                end += size * width
                rows += size
                depth -= 1
                continue
        _push(st, trigger, variables, depth)
    sink[run + O_ROWS] = rows
    st.cursor[U_DEPTH] = depth
    return status, end
