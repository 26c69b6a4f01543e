"""Live lists: of a node's neighbours in one slot, those that can bind the variable that the slot leads to.

A node is *live* for a variable, seen from a pattern, if all other patterns of the variable have a match at it: its star
is complete. Where the pattern is the only way to what lies behind, each of those matches leads to a live node in turn.
A search that is offered live lists meets no dead ends; keeping them costs work whenever a node comes alive or dies. So
a kind of them is kept only once the searches have met so many dead ends, most of what they met, that making the lists
pays; and is dropped again when keeping it up costs more than it spares. Both are counted as they happen.

Invariant, for each kind that is kept: between messages and during a search, a node's live list holds exactly those of
its neighbours in the slot that are live. During a search the graph has the message's triple, so no embedding is lost.
"""

from __future__ import annotations

from deltastar.kernel.graph import (
    add_neighbour,
    drop_entry,
    find_entry,
    has_neighbour,
    neighbour_at,
    remove_neighbour,
    size_of,
)
from deltastar.kernel.jit import kernel
from deltastar.kernel.relations import value_at
from deltastar.kernel.state import attach
from deltastar.layout import (
    C_EDGE_TOP,
    FIRST_EDGE,
    LIVE_BALANCE,
    LIVE_CREDIT,
    LIVE_IS_KEPT,
    LIVE_STATE,
    N_BELOW,
    N_NEXT,
    N_OWNER,
    N_SLOT,
    NEED,
    R_ARITY,
    R_LIVES,
    R_NEEDS,
    R_SLOT,
    U_EDGE,
    U_LIVE_ROOM,
    U_O,
    U_P,
    U_S,
    U_SWITCH,
    WAKE,
    Y_ABOVE,
    Y_LIVE_SLOT,
    Y_MASK,
    Y_NEED,
    Y_NEEDS,
    Y_NEXT,
    Y_NUMBER,
    Y_RELATION,
    Y_SLOT,
)
from deltastar.scan_layout import T_TOP


@kernel
def is_kept(st, live):
    """Whether lists of this kind are kept."""
    return st.lives[st.program[live + Y_NUMBER] * LIVE_STATE + LIVE_IS_KEPT] != 0


@kernel
def is_live(st, live, node):
    """Whether a node can bind the variable that lists of this kind lead to, as far as its own lists tell."""
    program = st.program
    mask = program[live + Y_MASK]
    if mask != 0 and st.flags[node] & mask != mask:
        return False
    table = program[live + Y_NEED]
    for need in range(table, table + program[live + Y_NEEDS] * NEED, NEED):
        slot = program[need + N_SLOT]
        below = program[need + N_BELOW]
        if below != 0 and is_kept(st, below):
            slot = program[below + Y_LIVE_SLOT]
        if find_entry(st.nodes, st.heap, node, slot) == 0:
            return False
    return True


# What keeping them spares, or would spare ----------------------------------------------------------------------------


@kernel
def waste(st, live):
    """A candidate was of no use; one of a live list would not have been."""
    if live != 0:
        _pay(st, live, 1)


@kernel
def use(st, live):
    """A candidate was of use."""
    if live != 0:
        at = st.program[live + Y_NUMBER] * LIVE_STATE + LIVE_BALANCE
        st.lives[at] = max(st.lives[at] - LIVE_CREDIT, 0)


@kernel
def spare(st, live, candidates):
    """A live list stood for one that has so many candidates more."""
    at = st.program[live + Y_NUMBER] * LIVE_STATE + LIVE_BALANCE
    st.lives[at] = max(st.lives[at] - candidates, 0)


@kernel
def _pay(st, live, amount):
    """Work was done for want of live lists, or in order to keep them. When it is too much, that has to change."""
    at = st.program[live + Y_NUMBER] * LIVE_STATE + LIVE_BALANCE
    st.lives[at] += amount
    if st.lives[at] > st.relation_size[st.program[live + Y_RELATION]] + st.cursor[U_LIVE_ROOM]:
        st.cursor[U_SWITCH] = live


# Upkeep --------------------------------------------------------------------------------------------------------------


@kernel
def take_in_lives(st, hits):
    """The message's triple is in all its relations now: nodes may have come alive."""
    program = st.program
    for hit in range(hits):
        relation = st.hits[hit]
        need = program[relation + R_NEEDS]
        while need != 0:
            node = _from(st, relation, program[need + N_SLOT])
            if program[relation + R_ARITY] == 1 or _has_one(st, node, program[need + N_SLOT]):
                _wake(st, program[need + N_OWNER], node)
            need = program[need + N_NEXT]
        live = program[relation + R_LIVES]
        while live != 0:
            first = _from(st, relation, program[live + Y_SLOT])
            second = _from(st, relation, program[live + Y_SLOT] ^ 1)
            if is_live(st, live, second):
                _finish(st, _tell(st, live, first, second, True, 0), True)
            live = program[live + Y_NEXT]


@kernel
def take_out_lives(st, hits):
    """The message's triple is in none of its relations any more: nodes may have died."""
    program = st.program
    for hit in range(hits):
        relation = st.hits[hit]
        need = program[relation + R_NEEDS]
        while need != 0:
            node = _from(st, relation, program[need + N_SLOT])
            if program[relation + R_ARITY] == 1 or find_entry(st.nodes, st.heap, node, program[need + N_SLOT]) == 0:
                _finish(st, _push(st, program[need + N_OWNER], node, 0), False)
            need = program[need + N_NEXT]
        live = program[relation + R_LIVES]
        while live != 0:
            first = _from(st, relation, program[live + Y_SLOT])
            second = _from(st, relation, program[live + Y_SLOT] ^ 1)
            _finish(st, _tell(st, live, first, second, False, 0), False)
            live = program[live + Y_NEXT]


@kernel
def _from(st, relation, slot):
    """The node that a slot of the relation leads from, by the message's triple."""
    s, p, o = st.cursor[U_S], st.cursor[U_P], st.cursor[U_O]
    arity = st.program[relation + R_ARITY]
    if arity == 1:
        return value_at(st.program, relation, 0, s, p, o)
    if arity == 2:
        return value_at(st.program, relation, slot & 1, s, p, o)
    if slot & 1 == 0:
        return st.cursor[U_EDGE]
    place = (slot - st.program[relation + R_SLOT]) >> 1
    return s if place == 0 else p if place == 1 else o


@kernel
def _has_one(st, node, slot):
    entry = find_entry(st.nodes, st.heap, node, slot)
    return entry != 0 and size_of(st.heap, entry) == 1


@kernel
def _wake(st, live, node):
    if is_live(st, live, node):
        _finish(st, _push(st, live, node, 0), True)


@kernel
def _push(st, live, node, top):
    st.wakes[top], st.wakes[top + 1], st.wakes[top + 2] = live, node, 0
    return top + WAKE


@kernel
def _finish(st, top, is_alive):
    """Tells all that lead to the nodes on the stack, and those that lead to them where a list begins or ends.

    Kinds depend on each other without a circle, so the stack is no deeper than the needs are many. A node that dies was
    in the lists of all that lead to it, or of none: so the first one tells.
    """
    program, wakes = st.program, st.wakes
    while top > 0:
        live, node, index = wakes[top - 3], wakes[top - 2], wakes[top - 1]
        entry = find_entry(st.nodes, st.heap, node, program[live + Y_SLOT] ^ 1)
        if entry == 0 or index == size_of(st.heap, entry):
            top -= WAKE
            continue
        owner = neighbour_at(st.heap, entry, index)
        slot = program[live + Y_LIVE_SLOT]
        if (
            not is_alive
            and index == 0
            and not has_neighbour(st.counters, st.nodes, st.heap, st.hubs, owner, slot, node)
        ):
            top -= WAKE
            continue
        wakes[top - 1] = index + 1
        top = _tell(st, live, owner, node, is_alive, top)


@kernel
def _tell(st, live, owner, node, is_alive, top):
    """Puts a node into a live list, or takes it out, if it is not yet as it should be. Gives the top of the stack."""
    program = st.program
    slot = program[live + Y_LIVE_SLOT]
    if has_neighbour(st.counters, st.nodes, st.heap, st.hubs, owner, slot, node) == is_alive:
        return top
    _pay(st, live, 1)
    if is_alive:
        add_neighbour(st.counters, st.nodes, st.heap, st.hubs, owner, slot, node)
        is_turn = _has_one(st, owner, slot)
    else:
        remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, owner, slot, node)
        is_turn = find_entry(st.nodes, st.heap, owner, slot) == 0
    if is_turn:
        need = program[live + Y_ABOVE]
        while need != 0:
            above = program[need + N_OWNER]
            if not is_alive or is_live(st, above, owner):
                top = _push(st, above, owner, top)
            need = program[need + N_NEXT]
    return top


# Beginning and ending ------------------------------------------------------------------------------------------------


@kernel
def fill_live(table, live):
    """Makes the lists of a kind that is kept from now on. Those below it are there."""
    st = attach(table)
    for node in range(1, st.term_counters[T_TOP] + 1):
        _fill_from(st, live, node)
    for node in range(FIRST_EDGE + 1, FIRST_EDGE + st.counters[C_EDGE_TOP] + 1):
        _fill_from(st, live, node)


@kernel
def _fill_from(st, live, node):
    back = st.program[live + Y_SLOT] ^ 1
    entry = find_entry(st.nodes, st.heap, node, back)
    if entry == 0 or not is_live(st, live, node):
        return
    slot = st.program[live + Y_LIVE_SLOT]
    for index in range(size_of(st.heap, entry)):
        entry = find_entry(st.nodes, st.heap, node, back)  # it moves when its own block grows
        owner = neighbour_at(st.heap, entry, index)
        add_neighbour(st.counters, st.nodes, st.heap, st.hubs, owner, slot, node)


@kernel
def clear_live(table, slot):
    """Drops all lists of a kind."""
    st = attach(table)
    for node in range(1, st.term_counters[T_TOP] + 1):
        drop_entry(st.counters, st.nodes, st.heap, st.hubs, node, slot)
    for node in range(FIRST_EDGE + 1, FIRST_EDGE + st.counters[C_EDGE_TOP] + 1):
        drop_entry(st.counters, st.nodes, st.heap, st.hubs, node, slot)
