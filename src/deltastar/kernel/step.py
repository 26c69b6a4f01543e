"""The entry points: messages in, rows of deltas out.

The delta rule. Let a message's triple t unify with the patterns e_1 … e_r of a component, in its order. The
embeddings reported for the trigger e_i are those that map e_i to t, where

    a pattern before e_i reads the graph with t,    a pattern behind e_i reads the graph without t.

So every embedding that uses t is reported by exactly one trigger, the last pattern that it maps to t, and no set of
embeddings seen is needed. On insertion t is put into the graph first, on deletion it is taken out last: the graph has t
during the search, and patterns behind the trigger pass it over (`exclusion`).
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.deliver import deliver, new_run
from deltastar.kernel.edges import find_edge
from deltastar.kernel.extend import begin, search
from deltastar.kernel.graph import add_neighbour, find_entry, neighbour_at, size_of
from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.journal import note, take_mark
from deltastar.kernel.live import take_in_lives, take_out_lives
from deltastar.kernel.relations import (
    is_in,
    is_pair,
    match,
    open_pair,
    take_in,
    take_in_all,
    take_out,
    take_out_all,
)
from deltastar.kernel.state import attach
from deltastar.kernel.text import prefetch
from deltastar.kernel.views import clear_view
from deltastar.kernel.views import count as count_row
from deltastar.layout import (
    C_EDGE_TOP,
    C_TRIPLES,
    DELIVERING,
    DONE,
    EDGE,
    EDGE_O,
    EDGE_P,
    EDGE_S,
    FIRST_EDGE,
    IDLE,
    K_TARGET,
    K_VIEW,
    KEEP_FORWARD,
    M_O,
    M_OP,
    M_P,
    M_S,
    MATCHED,
    MESSAGE,
    N_BLOCK,
    NO_EFFECT,
    NODE,
    O_HEADER,
    O_ROWS,
    O_TARGET,
    OP_DELETE,
    OP_INSERT,
    OUT_FULL,
    OUT_GROW,
    P_IS_O,
    R_ARITY,
    R_BIT,
    R_CONSTANTS,
    R_EQUAL,
    R_KEEP,
    R_NUMBER,
    R_POSITIONS,
    R_SLOT,
    R_TRIGGER,
    ROW_AFTER,
    ROW_VALUES,
    S_IS_O,
    S_IS_P,
    SEARCHING,
    SWITCH,
    T_COMPONENT,
    T_NEXT,
    T_WIDTH,
    U_ABSENT,
    U_EDGE,
    U_EFFECTIVE,
    U_FAULT,
    U_GROUP_END,
    U_HIT,
    U_HITS,
    U_INDEX,
    U_IS_STRICT,
    U_MESSAGE,
    U_MESSAGES,
    U_NODE,
    U_O,
    U_OP,
    U_OUT,
    U_OUT_ROOM,
    U_P,
    U_PHASE,
    U_REPEATED,
    U_S,
    U_SERIAL,
    U_STAGE_ROOM,
    U_STAGED,
    U_SWITCH,
    U_TRIGGER,
    UNIT,
    VIEW_FIRST,
    VIEW_STATE,
    W_COLUMNS,
    W_NUMBER,
    W_WIDTH,
)
from deltastar.scan_layout import T_TOP, TERM

AHEAD = 4
"""Messages: as long as it takes to bring memory near."""


@kernel
def step(table):
    """Applies messages from where the cursor stands. OUT_FULL when the output has to be emptied before it goes on."""
    st = attach(table)
    cursor = st.cursor
    while True:
        if cursor[U_PHASE] == IDLE:
            message = cursor[U_MESSAGE]
            if cursor[U_SWITCH] != 0:
                return SWITCH
            if message == cursor[U_MESSAGES]:
                return DONE
            if not _is_change(st, message):
                if not take_mark(st):
                    return NO_EFFECT
                cursor[U_MESSAGE] += 1
                continue
            if message >= cursor[U_GROUP_END]:
                st.groups[message] = 0
            _look_ahead(st, message)
            if not _open_message(st):
                if cursor[U_IS_STRICT] != 0 and message >= cursor[U_GROUP_END]:
                    cursor[U_FAULT] = message
                    return NO_EFFECT
                cursor[U_MESSAGE] += 1
                continue
        if cursor[U_PHASE] == MATCHED and not _next_trigger(st):
            _close_message(st)
            cursor[U_MESSAGE] += 1
            continue
        if cursor[U_PHASE] >= SEARCHING and _find(st) == OUT_FULL:
            return OUT_GROW if st.groups[cursor[U_MESSAGE]] != 0 else OUT_FULL


@inlined
def _look_ahead(st, message):
    """Has what the next messages will need brought near: first their nodes, then the blocks that these name."""
    messages, nodes = st.messages, st.nodes
    far = message + 2 * AHEAD
    if far < st.cursor[U_MESSAGES]:
        at = far * MESSAGE
        prefetch(nodes, np.int64(messages[at + M_S]) * NODE)
        prefetch(nodes, np.int64(messages[at + M_O]) * NODE)
        prefetch(st.term, np.int64(messages[at + M_S]) * TERM)
        prefetch(st.term, np.int64(messages[at + M_O]) * TERM)
        at -= AHEAD * MESSAGE
        if messages[at + M_OP] == OP_INSERT or messages[at + M_OP] == OP_DELETE:
            prefetch(st.heap, np.int64(nodes[messages[at + M_S] * NODE + N_BLOCK]) * UNIT)
            prefetch(st.heap, np.int64(nodes[messages[at + M_O] * NODE + N_BLOCK]) * UNIT)


@inlined
def _is_change(st, message):
    op = st.messages[message * MESSAGE + M_OP]
    return op * op == 1  # an insertion or a deletion, without a branch that nobody can predict


@kernel
def _open_message(st):
    """Finds what the message's triple unifies with, and on insertion takes it in. False when it changes nothing."""
    cursor = st.cursor
    at = cursor[U_MESSAGE] * MESSAGE
    s, p, o = int(st.messages[at + M_S]), int(st.messages[at + M_P]), int(st.messages[at + M_O])
    op = int(st.messages[at + M_OP])
    hits = match(st.program, st.dispatch, st.hits, s, p, o)
    if hits == 0:
        return False
    is_fast = hits == 1 and is_pair(st.program, st.hits[0])
    if is_fast:
        is_there = open_pair(st, st.hits[0], s, p, o, op == OP_INSERT)
    else:
        is_there = is_in(st, st.hits[0], s, p, o)
    if is_there == (op == OP_INSERT):
        cursor[U_REPEATED if is_there else U_ABSENT] += 1 - st.muted[cursor[U_MESSAGE]]
        return False
    cursor[U_EFFECTIVE] += 1
    cursor[U_SERIAL] += 1
    note(st, op, s, p, o)
    cursor[U_OP] = op
    cursor[U_S], cursor[U_P], cursor[U_O] = s, p, o
    cursor[U_HITS], cursor[U_HIT] = hits, 0
    if op == OP_DELETE:
        cursor[U_EDGE] = _edge_of(st, hits, s, p, o)
    else:
        cursor[U_EDGE] = 0 if is_fast else take_in_all(st, st.hits, hits, s, p, o)
        take_in_lives(st, hits)
    for hit in range(hits):
        st.stamps[st.program[st.hits[hit] + R_NUMBER]] = cursor[U_SERIAL]
    cursor[U_TRIGGER] = st.program[st.hits[0] + R_TRIGGER]
    cursor[U_PHASE] = MATCHED
    return True


@kernel
def _edge_of(st, hits, s, p, o):
    for hit in range(hits):
        if st.program[st.hits[hit] + R_ARITY] == 3:
            return find_edge(st.counters, st.edges, st.edge_heads, s, p, o)
    return 0


@kernel
def _next_trigger(st):
    """Begins the search of the next trigger whose variables allow one. False when there is none."""
    cursor, program = st.cursor, st.program
    while True:
        trigger = cursor[U_TRIGGER]
        while trigger == 0:
            cursor[U_HIT] += 1
            if cursor[U_HIT] == cursor[U_HITS]:
                return False
            trigger = program[st.hits[cursor[U_HIT]] + R_TRIGGER]
        if begin(st, trigger):
            cursor[U_TRIGGER] = trigger
            cursor[U_PHASE] = SEARCHING
            return True
        cursor[U_TRIGGER] = program[trigger + T_NEXT]


@kernel
def _find(st):
    """Goes on with the search, into the output or, where views count the rows, into the stage and from there."""
    cursor, program = st.cursor, st.program
    trigger = cursor[U_TRIGGER]
    component = program[trigger + T_COMPONENT]
    target = program[component + K_TARGET]
    is_counted = program[component + K_VIEW] != 0
    if is_counted:
        if deliver(st) == OUT_FULL:
            return OUT_FULL
        if cursor[U_PHASE] == DELIVERING:
            _leave_trigger(st, trigger)
            return DONE
        sink, room, run, end = st.stage, cursor[U_STAGE_ROOM], 0, O_HEADER
        sink[O_TARGET] = component
        sink[O_ROWS] = 0
    else:
        if cursor[U_OUT] + O_HEADER + program[trigger + T_WIDTH] > cursor[U_OUT_ROOM]:
            return OUT_FULL
        sink, room, run = st.out, cursor[U_OUT_ROOM], new_run(st, target)
        end = cursor[U_OUT]
    before = sink[run + O_ROWS]
    status, end = search(st, trigger, sink, room, run, end)
    st.target_size[target] += (sink[run + O_ROWS] - before) * cursor[U_OP]
    if is_counted:
        cursor[U_STAGED] = end
        if status == DONE:
            cursor[U_PHASE] = DELIVERING
        return DONE
    cursor[U_OUT] = end
    if status == DONE:
        _leave_trigger(st, trigger)
    return status


@kernel
def _leave_trigger(st, trigger):
    st.cursor[U_TRIGGER] = st.program[trigger + T_NEXT]
    st.cursor[U_PHASE] = MATCHED


@kernel
def _close_message(st):
    """All triggers are through: on deletion the triple goes."""
    cursor = st.cursor
    if cursor[U_OP] == OP_DELETE:
        take_out_all(st, st.hits, cursor[U_HITS], cursor[U_S], cursor[U_P], cursor[U_O])
        take_out_lives(st, cursor[U_HITS])
    cursor[U_PHASE] = IDLE


# Scans: what the graph holds -----------------------------------------------------------------------------------------


@kernel
def list_triples(table, relation, first_only):
    """Writes a relation's triples to the output, as (s, p, o), from where the cursor stands. OUT_FULL or DONE.

    With `first_only`, just those of which this is the first relation, so that going through all relations gives each
    triple once.
    """
    st = attach(table)
    cursor = st.cursor
    while cursor[U_OUT] + 3 <= cursor[U_OUT_ROOM]:
        if not _next_triple(st, relation):
            return DONE
        s, p, o = cursor[U_S], cursor[U_P], cursor[U_O]
        if first_only:
            match(st.program, st.dispatch, st.hits, s, p, o)
            if st.hits[0] != relation:
                continue
        end = cursor[U_OUT]
        st.out[end], st.out[end + 1], st.out[end + 2] = s, p, o
        cursor[U_OUT] = end + 3
    return OUT_FULL


@kernel
def list_embeddings(table, trigger, relation):
    """Writes a component's embeddings to the output, from where the cursor stands. OUT_FULL or DONE.

    Each has one image of the trigger's pattern, so a search from each triple of that relation finds each once.
    """
    st = attach(table)
    cursor = st.cursor
    while True:
        if cursor[U_PHASE] == IDLE:
            if not _next_triple(st, relation):
                return DONE
            cursor[U_SERIAL] += 1  # no relation has this message: nothing is excluded
            if not begin(st, trigger):
                continue
            cursor[U_PHASE] = SEARCHING
        if cursor[U_OUT] + O_HEADER + st.program[trigger + T_WIDTH] > cursor[U_OUT_ROOM]:
            return OUT_FULL
        run = new_run(st, 0)
        status, cursor[U_OUT] = search(st, trigger, st.out, cursor[U_OUT_ROOM], run, cursor[U_OUT])
        if status == OUT_FULL:
            return OUT_FULL
        cursor[U_PHASE] = IDLE


@kernel
def _next_triple(st, relation):
    """The relation's next triple, into the cursor. Scans nodes, or edges; `U_NODE` and `U_INDEX` say how far it is."""
    program, cursor = st.program, st.cursor
    arity = program[relation + R_ARITY]
    slot = program[relation + R_SLOT]
    bit = program[relation + R_BIT]
    is_back = arity == 2 and program[relation + R_KEEP] & KEEP_FORWARD == 0
    last = st.counters[C_EDGE_TOP] if arity == 3 else st.term_counters[T_TOP] if arity > 0 else 0
    while cursor[U_NODE] <= last:
        node = cursor[U_NODE]
        first, second, third = node, 0, 0
        is_found = False
        if arity == 0:
            is_found = st.relation_size[program[relation + R_NUMBER]] != 0
        elif node == 0:
            pass
        elif arity == 3:
            at = node * EDGE
            first, second, third = st.edges[at + EDGE_S], st.edges[at + EDGE_P], st.edges[at + EDGE_O]
            is_found = first != 0
        elif arity == 1 and bit != 0:
            is_found = st.flags[node] & bit != 0
        else:
            entry = find_entry(st.nodes, st.heap, node, slot + (1 if is_back else 0))
            if entry != 0 and cursor[U_INDEX] < size_of(st.heap, entry):
                second = neighbour_at(st.heap, entry, cursor[U_INDEX])
                cursor[U_INDEX] += 1
                if is_back:
                    first, second = second, first
                _place(st, relation, first, second, 0)
                if arity == 1:
                    cursor[U_NODE], cursor[U_INDEX] = node + 1, 0
                return True
            cursor[U_INDEX] = 0
        cursor[U_NODE] += 1
        if is_found:
            _place(st, relation, first, second, third)
            return True
    return False


@kernel
def _place(st, relation, first, second, third):
    """The triple that has these values of the relation's variables."""
    program, cursor = st.program, st.cursor
    for position in range(3):
        cursor[U_S + position] = program[relation + R_CONSTANTS + position]
    for place in range(program[relation + R_ARITY]):
        value = first if place == 0 else second if place == 1 else third
        cursor[U_S + program[relation + R_POSITIONS + place]] = value
    equal = program[relation + R_EQUAL]
    if equal & S_IS_P:
        cursor[U_P] = cursor[U_S]
    if equal & S_IS_O:
        cursor[U_O] = cursor[U_S]
    if equal & P_IS_O:
        cursor[U_O] = cursor[U_P]
    if program[relation + R_ARITY] == 3:
        cursor[U_EDGE] = cursor[U_NODE] - 1 + FIRST_EDGE


@kernel
def index_slot(table, relation, is_back):
    """Indexes the other direction of a relation that has triples already."""
    st = attach(table)
    slot = st.program[relation + R_SLOT]
    have = slot if is_back else slot + 1
    for node in range(1, st.term_counters[T_TOP] + 1):
        entry = find_entry(st.nodes, st.heap, node, have)
        if entry != 0:
            for index in range(size_of(st.heap, entry)):
                entry = find_entry(st.nodes, st.heap, node, have)  # it moves when its own block grows
                neighbour = neighbour_at(st.heap, entry, index)
                add_neighbour(st.counters, st.nodes, st.heap, st.hubs, neighbour, slot + 1 if is_back else slot, node)


@kernel
def fill_relation(table, relation, triples, count):
    """Puts those triples into a new relation that unify with it."""
    st = attach(table)
    for index in range(count):
        s, p, o = int(triples[3 * index]), int(triples[3 * index + 1]), int(triples[3 * index + 2])
        hits = match(st.program, st.dispatch, st.hits, s, p, o)
        for hit in range(hits):
            if st.hits[hit] == relation and not is_in(st, relation, s, p, o):
                take_in(st, relation, s, p, o)


@kernel
def empty_relation(table, relation, triples, count):
    """Takes these triples, all that it has, out of a relation. Those that are in no other one are kept no more."""
    st = attach(table)
    for index in range(count):
        s, p, o = int(triples[3 * index]), int(triples[3 * index + 1]), int(triples[3 * index + 2])
        take_out(st, relation, s, p, o)
        st.counters[C_TRIPLES] -= 1
        for hit in range(match(st.program, st.dispatch, st.hits, s, p, o)):
            if st.hits[hit] != relation and is_in(st, st.hits[hit], s, p, o):
                st.counters[C_TRIPLES] += 1
                break


@kernel
def fill_view(table, view, rows, count):
    """Counts these rows of a component in a new view."""
    st = attach(table)
    width = st.program[view + W_WIDTH]
    number = st.program[view + W_NUMBER]
    stride = len(rows) // count
    for row in range(count):
        for column in range(width):
            st.key[column] = rows[row * stride + st.program[view + W_COLUMNS + column]]
        count_row(st.counters, st.heap, st.row_heads, st.view_state, number, width, st.key, 1)


@kernel
def list_rows(table, view, width, rows):
    """Writes the rows of a view, one after the other."""
    st = attach(table)
    row = st.view_state[view * VIEW_STATE + VIEW_FIRST]
    end = 0
    while row != 0:
        for column in range(width):
            rows[end + column] = st.heap[row * UNIT + ROW_VALUES + column]
        end += width
        row = st.heap[row * UNIT + ROW_AFTER]


@kernel
def clear(table, view, width):
    """Lets go of all rows of a view."""
    st = attach(table)
    clear_view(st.counters, st.heap, st.row_heads, st.view_state, view, width)
