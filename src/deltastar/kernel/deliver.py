"""From a component's rows to the rows of its views, and of the products of views.

A view counts its rows: one goes out when its multiplicity becomes one, or zero. A product's rows are those of one of
its views that changed, combined with all rows of the others as they are then; so when one message changes several
views, each combination is reported once. All multiplicities change in one direction with one message.

Delivery keeps its place, like the search, so that a product of any size goes out through a bounded buffer.
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.kernel.views import count, drop
from deltastar.layout import (
    AT_END,
    DONE,
    K_IS_PLAIN,
    K_TARGET,
    K_VIEW,
    K_WIDTH,
    O_HEADER,
    O_MESSAGE,
    O_ROWS,
    O_SIGN,
    O_TARGET,
    OP_DELETE,
    OUT_FULL,
    ROW_AFTER,
    ROW_VALUES,
    U_MESSAGE,
    U_OP,
    U_OUT,
    U_OUT_ROOM,
    U_PRODUCT,
    U_ROW,
    U_RUN,
    U_STAGE_AT,
    U_STAGED,
    U_TURN,
    U_VIEW,
    UNIT,
    VIEW_FIRST,
    VIEW_STATE,
    W_COLUMNS,
    W_IS_SHOWN,
    W_NEXT_VIEW,
    W_NUMBER,
    W_PRODUCT,
    W_TARGET,
    W_WIDTH,
    X_FIRST,
    X_NEXT,
    X_OWN,
    X_TARGET,
    X_VIEW,
    X_VIEWS,
    X_WIDTH,
)


@kernel
def new_run(st, target):
    """Begins a run of rows in the output, or goes on with the last one. There must be room for the header."""
    out, cursor = st.out, st.cursor
    run, end = cursor[U_RUN], cursor[U_OUT]
    if end > 0:
        if out[run + O_TARGET] == target and out[run + O_MESSAGE] == cursor[U_MESSAGE]:
            return run  # one message has one sign
        if out[run + O_ROWS] == 0:
            end = run
    out[end + O_TARGET] = target
    out[end + O_MESSAGE] = cursor[U_MESSAGE]
    out[end + O_SIGN] = cursor[U_OP]
    out[end + O_ROWS] = 0
    cursor[U_RUN] = end
    cursor[U_OUT] = end + O_HEADER
    return end


@kernel
def _has_room(st, width):
    return st.cursor[U_OUT] + O_HEADER + width <= st.cursor[U_OUT_ROOM]


@kernel
def _put(st, target, source, start, width):
    """One row into the output, where there is room."""
    run = new_run(st, target)
    end = st.cursor[U_OUT]
    for column in range(width):
        st.out[end + column] = source[start + column]
    st.cursor[U_OUT] = end + width
    st.out[run + O_ROWS] += 1


@kernel
def deliver(st):
    """Delivers the rows of the stage. OUT_FULL when it has to go on later."""
    program, cursor, stage = st.program, st.cursor, st.stage
    while cursor[U_STAGE_AT] < cursor[U_STAGED]:
        run = cursor[U_STAGE_AT]
        component = stage[run + O_TARGET]
        width = program[component + K_WIDTH]
        if cursor[U_ROW] == stage[run + O_ROWS]:
            cursor[U_STAGE_AT] = run + O_HEADER + cursor[U_ROW] * width
            cursor[U_ROW] = 0
            continue
        row = run + O_HEADER + cursor[U_ROW] * width
        view = cursor[U_VIEW]
        if view == 0:
            if program[component + K_IS_PLAIN] != 0:
                if not _has_room(st, width):
                    return OUT_FULL
                _put(st, program[component + K_TARGET], stage, row, width)
            view = program[component + K_VIEW]
            cursor[U_VIEW] = view if view != 0 else AT_END
        while cursor[U_VIEW] != AT_END:
            if _deliver_to_view(st, cursor[U_VIEW], row) == OUT_FULL:
                return OUT_FULL
            view = program[cursor[U_VIEW] + W_NEXT_VIEW]
            cursor[U_VIEW] = view if view != 0 else AT_END
        cursor[U_VIEW] = 0
        cursor[U_ROW] += 1
    cursor[U_STAGE_AT] = 0
    cursor[U_STAGED] = 0
    return DONE


@kernel
def _deliver_to_view(st, view, row):
    program, cursor, key = st.program, st.cursor, st.key
    width = program[view + W_WIDTH]
    number = program[view + W_NUMBER]
    if cursor[U_TURN] == 0:
        if not _has_room(st, width):
            return OUT_FULL
        for column in range(width):
            key[column] = st.stage[row + program[view + W_COLUMNS + column]]
        turn = count(st.counters, st.heap, st.row_heads, st.view_state, number, width, key, cursor[U_OP])
        if turn == 0:
            return DONE
        if program[view + W_IS_SHOWN] != 0:
            _put(st, program[view + W_TARGET], key, 0, width)
        cursor[U_TURN] = turn
        _start_product(st, program[view + W_PRODUCT])
    while cursor[U_PRODUCT] != 0:
        if st.odometer[0] != 0 and _multiply(st, cursor[U_PRODUCT]) == OUT_FULL:
            return OUT_FULL
        _start_product(st, program[cursor[U_PRODUCT] + X_NEXT])
    if cursor[U_OP] == OP_DELETE:
        drop(st.counters, st.heap, st.row_heads, st.view_state, number, width, cursor[U_TURN])
    cursor[U_TURN] = 0
    return DONE


@kernel
def _start_product(st, product):
    """Goes to a product, and there to the first row of each other view; `odometer[0]` says whether all have one."""
    st.cursor[U_PRODUCT] = product
    st.odometer[0] = 0
    if product == 0:
        return
    for place in range(st.program[product + X_VIEWS]):
        if place != st.program[product + X_OWN]:
            first = _first_row(st, product, place)
            if first == 0:
                return
            st.odometer[1 + place] = first
    st.odometer[0] = 1


@kernel
def _first_row(st, product, place):
    number = st.program[product + X_FIRST + place * X_VIEW]
    return _not_passed_over(st, product, place, st.view_state[number * VIEW_STATE + VIEW_FIRST])


@kernel
def _not_passed_over(st, product, place, row):
    """A view may stand in a product twice: the changed row is combined with itself once, at its first place."""
    if place < st.program[product + X_OWN] and row == st.cursor[U_TURN]:
        return st.heap[row * UNIT + ROW_AFTER]
    return row


@kernel
def _multiply(st, product):
    """The changed row with all combinations of rows of the other views."""
    program, cursor, out, heap, odometer = st.program, st.cursor, st.out, st.heap, st.odometer
    width = program[product + X_WIDTH]
    views = program[product + X_VIEWS]
    own = program[product + X_OWN]
    odometer[1 + own] = cursor[U_TURN]
    while True:
        if not _has_room(st, width):
            return OUT_FULL
        run = new_run(st, program[product + X_TARGET])
        end = cursor[U_OUT]
        for place in range(views):
            entry = product + X_FIRST + place * X_VIEW
            at = end + program[entry + 2]
            values = odometer[1 + place] * UNIT + ROW_VALUES
            for column in range(program[entry + 1]):
                out[at + column] = heap[values + column]
        cursor[U_OUT] = end + width
        out[run + O_ROWS] += 1
        place = 0
        while place < views:
            if place != own:
                after = _not_passed_over(st, product, place, heap[odometer[1 + place] * UNIT + ROW_AFTER])
                if after != 0:
                    odometer[1 + place] = after
                    break
                odometer[1 + place] = _first_row(st, product, place)
            place += 1
        if place == views:
            return DONE
