"""Relations: which ones a triple is in, and taking it in or out.

Invariant: each triple that the engine keeps is in all relations that it unifies with, and its ids are counted once for
each variable of each of them.
"""

from __future__ import annotations

from deltastar.kernel.edges import add_edge, find_edge, remove_edge
from deltastar.kernel.graph import (
    add_neighbour,
    add_to,
    find_entry,
    has_neighbour,
    holds,
    remove_neighbour,
    size_of,
)
from deltastar.kernel.jit import inlined, kernel
from deltastar.layout import (
    C_TRIPLES,
    D_CONSTANTS,
    D_FIRST,
    D_KEY,
    D_MASKS,
    D_RELATION,
    D_SIZE,
    D_SUBMASKS,
    DISPATCH,
    IN_O,
    IN_P,
    IN_S,
    KEEP_BACK,
    KEEP_FORWARD,
    P_IS_O,
    PRESENT,
    R_ARITY,
    R_BIT,
    R_EQUAL,
    R_KEEP,
    R_NEXT,
    R_NUMBER,
    R_POSITIONS,
    R_SLOT,
    S_IS_O,
    S_IS_P,
)
from deltastar.scan_layout import IS_PENDING, N_USES, ONE_USE, T_PENDING, TERM, USES_MAX


@kernel
def dispatch_row(dispatch, mask, s, p, o):
    """The table's row for these constants, or 0. The same hash as in `plan/program.py`."""
    x = mask * 0x9E37 + s * 0x85EBCA6B + p * 0xC2B2AE35 + o * 0x27D4EB2F
    slot = (x ^ (x >> 15) ^ (x >> 31)) & 0x7FFFFFFF
    last = dispatch[D_SIZE] - 1
    while True:
        row = D_FIRST + (slot & last) * DISPATCH
        if dispatch[row + D_KEY] == 0:
            return 0
        if (
            dispatch[row + D_KEY] == mask + 1
            and dispatch[row + D_CONSTANTS] == s
            and dispatch[row + D_CONSTANTS + 1] == p
            and dispatch[row + D_CONSTANTS + 2] == o
        ):
            return row
        slot += 1


@kernel
def _collect(program, hits, relation, count, equal):
    while relation != 0:
        if program[relation + R_EQUAL] & ~equal == 0:
            hits[count] = relation
            count += 1
        relation = program[relation + R_NEXT]
    return count


@kernel
def match(program, dispatch, hits, s, p, o):
    """The relations that a triple unifies with, into `hits`; how many there are."""
    equal = (s == p) * S_IS_P + (s == o) * S_IS_O + (p == o) * P_IS_O
    masks = dispatch[D_MASKS]
    count = 0
    row = dispatch_row(dispatch, IN_P, 0, p, 0)
    if row != 0:
        masks |= dispatch[row + D_SUBMASKS]
        count = _collect(program, hits, dispatch[row + D_RELATION], count, equal)
    mask = 0
    while masks != 0:
        if masks & 1:
            row = dispatch_row(
                dispatch, mask, s if mask & IN_S else 0, p if mask & IN_P else 0, o if mask & IN_O else 0
            )
            if row != 0:
                count = _collect(program, hits, dispatch[row + D_RELATION], count, equal)
        masks >>= 1
        mask += 1
    return count


@inlined
def value_at(program, relation, variable, s, p, o):
    """The value of one of the relation's variables."""
    position = program[relation + R_POSITIONS + variable]
    return s if position == 0 else p if position == 1 else o


@kernel
def is_in(st, relation, s, p, o):
    """Whether the triple is in a relation that it unifies with."""
    program = st.program
    arity = program[relation + R_ARITY]
    if arity == 2:
        slot = program[relation + R_SLOT]
        first, second = value_at(program, relation, 0, s, p, o), value_at(program, relation, 1, s, p, o)
        keep = program[relation + R_KEEP]
        if keep == KEEP_FORWARD:
            return has_neighbour(st.counters, st.nodes, st.heap, st.hubs, first, slot, second)
        entry = find_entry(st.nodes, st.heap, second, slot + 1)
        if keep == KEEP_BACK or entry == 0:
            return entry != 0 and holds(st.counters, st.heap, st.hubs, entry, first)
        forward = find_entry(st.nodes, st.heap, first, slot)
        if forward == 0:
            return False
        if size_of(st.heap, forward) < size_of(st.heap, entry):
            return holds(st.counters, st.heap, st.hubs, forward, second)
        return holds(st.counters, st.heap, st.hubs, entry, first)
    if arity == 1:
        value = value_at(program, relation, 0, s, p, o)
        if program[relation + R_BIT] != 0:
            return st.flags[value] & program[relation + R_BIT] != 0
        return find_entry(st.nodes, st.heap, value, program[relation + R_SLOT]) != 0
    if arity == 0:
        return st.relation_size[program[relation + R_NUMBER]] != 0
    return find_edge(st.counters, st.edges, st.edge_heads, s, p, o) != 0


@inlined
def is_pair(program, relation):
    """Whether a relation has two variables, and both directions are indexed."""
    return program[relation + R_ARITY] == 2 and program[relation + R_KEEP] == KEEP_FORWARD | KEEP_BACK


@inlined
def open_pair(st, relation, s, p, o, is_insertion):
    """Whether the triple is in the only relation, a pair, that it unifies with; on insertion it is put in, if not."""
    program = st.program
    slot = program[relation + R_SLOT]
    first, second = value_at(program, relation, 0, s, p, o), value_at(program, relation, 1, s, p, o)
    forward = find_entry(st.nodes, st.heap, first, slot)
    back = find_entry(st.nodes, st.heap, second, slot + 1)
    if forward != 0 and back != 0:
        if size_of(st.heap, forward) < size_of(st.heap, back):
            is_there = holds(st.counters, st.heap, st.hubs, forward, second)
        else:
            is_there = holds(st.counters, st.heap, st.hubs, back, first)
        if is_there:
            return True
    if is_insertion:
        st.relation_size[program[relation + R_NUMBER]] += 1
        st.counters[C_TRIPLES] += 1
        retain(st, first)
        retain(st, second)
        add_to(st.counters, st.nodes, st.heap, st.hubs, first, slot, forward, second)
        if first == second:  # its entries have moved
            back = find_entry(st.nodes, st.heap, second, slot + 1)
        add_to(st.counters, st.nodes, st.heap, st.hubs, second, slot + 1, back, first)
    return False


@kernel
def take_in(st, relation, s, p, o):
    """Puts a triple into a relation that it is not in. Gives its edge, if it has one."""
    program = st.program
    st.relation_size[program[relation + R_NUMBER]] += 1
    arity = program[relation + R_ARITY]
    slot = program[relation + R_SLOT]
    if arity == 0:
        return 0
    if arity == 1:
        value = value_at(program, relation, 0, s, p, o)
        retain(st, value)
        if program[relation + R_BIT] != 0:
            st.flags[value] |= program[relation + R_BIT]
        else:
            add_neighbour(st.counters, st.nodes, st.heap, st.hubs, value, slot, PRESENT)
        return 0
    if arity == 2:
        first, second = value_at(program, relation, 0, s, p, o), value_at(program, relation, 1, s, p, o)
        retain(st, first)
        retain(st, second)
        if program[relation + R_KEEP] & KEEP_FORWARD:
            add_neighbour(st.counters, st.nodes, st.heap, st.hubs, first, slot, second)
        if program[relation + R_KEEP] & KEEP_BACK:
            add_neighbour(st.counters, st.nodes, st.heap, st.hubs, second, slot + 1, first)
        return 0
    edge = add_edge(st.counters, st.edges, st.edge_heads, s, p, o)
    for place in range(3):
        value = s if place == 0 else p if place == 1 else o
        retain(st, value)
        add_neighbour(st.counters, st.nodes, st.heap, st.hubs, edge, slot + 2 * place, value)
        add_neighbour(st.counters, st.nodes, st.heap, st.hubs, value, slot + 2 * place + 1, edge)
    return edge


@kernel
def take_out(st, relation, s, p, o):
    """Takes a triple out of a relation that it is in."""
    program = st.program
    st.relation_size[program[relation + R_NUMBER]] -= 1
    arity = program[relation + R_ARITY]
    slot = program[relation + R_SLOT]
    if arity == 1:
        value = value_at(program, relation, 0, s, p, o)
        release(st, value)
        if program[relation + R_BIT] != 0:
            st.flags[value] &= ~program[relation + R_BIT]
        else:
            remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, value, slot, PRESENT)
    elif arity == 2:
        first, second = value_at(program, relation, 0, s, p, o), value_at(program, relation, 1, s, p, o)
        release(st, first)
        release(st, second)
        if program[relation + R_KEEP] & KEEP_FORWARD:
            remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, first, slot, second)
        if program[relation + R_KEEP] & KEEP_BACK:
            remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, second, slot + 1, first)
    elif arity == 3:
        edge = find_edge(st.counters, st.edges, st.edge_heads, s, p, o)
        for place in range(3):
            value = s if place == 0 else p if place == 1 else o
            release(st, value)
            remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, edge, slot + 2 * place, value)
            remove_neighbour(st.counters, st.nodes, st.heap, st.hubs, value, slot + 2 * place + 1, edge)
        remove_edge(st.counters, st.edges, st.edge_heads, edge)


@kernel
def retain(st, value):
    """One more use of a term: `terms.retain`."""
    at = value * TERM + N_USES
    if st.term[at] < USES_MAX:
        st.term[at] += ONE_USE


@kernel
def release(st, value):
    """One use less: `terms.release`."""
    at = value * TERM + N_USES
    uses = st.term[at]
    if uses < USES_MAX:
        uses -= ONE_USE
        if uses == 0:
            uses = IS_PENDING
            pending = st.term_counters[T_PENDING]
            st.term_pending[pending] = value
            st.term_counters[T_PENDING] = pending + 1
        st.term[at] = uses


@kernel
def take_in_all(st, hits, count, s, p, o):
    """Puts a triple into all relations that it is in."""
    edge = 0
    for hit in range(count):
        edge = max(edge, take_in(st, hits[hit], s, p, o))
    st.counters[C_TRIPLES] += 1
    return edge


@kernel
def take_out_all(st, hits, count, s, p, o):
    """Takes a triple out of all relations that it is in."""
    for hit in range(count):
        take_out(st, hits[hit], s, p, o)
    st.counters[C_TRIPLES] -= 1
