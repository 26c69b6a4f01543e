"""From texts to messages of ids: what matches no registered pattern ends here, before it costs an id.

A term without an id matches no constant, so a row is dispatched with what the dictionary knows already; only the terms
of an insertion that is relevant are given ids, and a deletion with a term that has none deletes nothing.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel import terms
from deltastar.kernel.classes import classify
from deltastar.kernel.jit import kernel
from deltastar.kernel.relations import match
from deltastar.kernel.state import attach, incoming_of, terms_of
from deltastar.kernel.text import equal, hash_bytes
from deltastar.layout import (
    ABSENT,
    ALL_ADMITTED,
    DROPPED,
    M_O,
    M_OP,
    M_P,
    M_S,
    MESSAGE,
    MESSAGES_FULL,
    OP_BEGIN,
    OP_COMMIT,
    OP_DELETE,
    OP_GROUP,
    OP_INSERT,
    OP_NONE,
    R_TRIGGER,
    READY,
    RELEVANT,
    SPECIAL,
    U_ABSENT,
    U_BEGUN,
    U_BY_TRANSACTION,
    U_COMMITTED,
    U_DROPPED,
    U_GROUP,
    U_IS_OPEN,
    U_IS_STRICT,
    U_O,
    U_OP,
    U_P,
    U_RELEVANT,
    U_S,
    U_WAITING_ABSENT,
)
from deltastar.scan_layout import (
    ADD,
    BEGIN,
    COMMIT,
    DELETE,
    GROUP,
    R_KIND,
    R_MESSAGE,
    R_MUTED,
    R_NUMBER,
    R_OBJECT,
    R_OBJECT_HASH,
    R_PREDICATE,
    R_SUBJECT,
    R_SUBJECT_HASH,
    ROW,
)
from deltastar.scan_layout import DROPPED as DROPPED_ROW

_NEW_S, _NEW_P, _NEW_O = np.int64(-1), np.int64(-2), np.int64(-3)
"""Terms without an id; equal ones are the same."""


@kernel
def admit(address, op, s_end, p_end, o_end, written):
    """One message, whose terms stand in `incoming`: behind those written, if it may change anything. The status."""
    st = attach(address)
    t = terms_of(st)
    data = incoming_of(st)
    zero = np.int64(0)
    s_hash = hash_bytes(t.keys, data, zero, s_end)
    p_hash = hash_bytes(t.keys, data, s_end, p_end)
    o_hash = hash_bytes(t.keys, data, p_end, o_end)
    s = terms.find(t, data, zero, s_end, s_hash)
    p = terms.find(t, data, s_end, p_end, p_hash)
    o = terms.find(t, data, p_end, o_end, o_hash)
    status = _admit(st, t, data, op, s, p, o, zero, s_end, s_end, p_end, p_end, o_end, s_hash, p_hash, o_hash)
    if status & READY:
        _put(st.cursor, st.messages, written * MESSAGE)
    return status


@kernel
def _put(cursor, messages, at):
    """The message that `_admit` has left in the cursor."""
    messages[at + M_OP] = cursor[U_OP]
    messages[at + M_S] = cursor[U_S]
    messages[at + M_P] = cursor[U_P]
    messages[at + M_O] = cursor[U_O]


@kernel
def admit_rows(address, data, rows, first, count, written, base, stride, numbers):
    """The messages among the scanner's rows, from `first` on, behind those written; gives how many, the row, and why.

    A message's number, its `seq`, is the base and `stride` times its place in the scan. It stops at a row that is for
    the caller, where there is no room, or where a capacity is exhausted: then the last value is a negative status.
    """
    st = attach(address)
    t = terms_of(st)
    cursor = st.cursor
    room = len(numbers)
    for row in range(first, count):
        if (row - first) % GROUP == 0:
            terms.ask_rows(t, data, rows, row, min(row + GROUP, count))
        at = row * ROW
        kind = rows[at + R_KIND]
        if kind == DROPPED_ROW:
            continue
        if written == room:
            return written, row, np.int64(MESSAGES_FULL)
        number = base + stride * rows[at + R_MESSAGE]
        if kind != ADD and kind != DELETE:
            placed = admit_mark(st, kind, written, number, numbers)
            if placed < 0:
                return written, row, np.int64(SPECIAL)
            written = placed
            continue
        status = _admit_row(st, t, data, rows, at)
        if status < 0:
            return written, row, status
        if status & ABSENT != 0 and cursor[U_IS_STRICT] != 0:
            return written, row, np.int64(SPECIAL)
        if status & RELEVANT:
            cursor[U_RELEVANT] += 1
        if status == DROPPED:
            cursor[U_DROPPED] += 1
        elif status & ABSENT:
            waits = cursor[U_BY_TRANSACTION] != 0 and cursor[U_IS_OPEN] != 0
            cursor[U_WAITING_ABSENT if waits else U_ABSENT] += 1 - rows[at + R_MUTED]
        elif status & READY:
            _put(cursor, st.messages, written * MESSAGE)
            st.muted[written] = rows[at + R_MUTED]
            numbers[written] = number
            written += 1
    return written, count, np.int64(ALL_ADMITTED)


@kernel
def admit_mark(st, kind, written, number, numbers):
    """A transaction's begin or end, where it is one, behind the messages written: how many there are then, or -1."""
    cursor, messages = st.cursor, st.messages
    is_begin = kind == BEGIN
    if (kind != BEGIN and kind != COMMIT) or (cursor[U_IS_OPEN] != 0) == is_begin:
        return -1
    cursor[U_IS_OPEN] = 1 if is_begin else 0
    if cursor[U_BY_TRANSACTION] == 0:
        messages[written * MESSAGE + M_OP] = OP_BEGIN if is_begin else OP_COMMIT
        numbers[written] = number
        return written + 1
    if is_begin:
        cursor[U_GROUP], cursor[U_WAITING_ABSENT] = written, 0
        cursor[U_BEGUN] += 1
        messages[written * MESSAGE + M_OP] = OP_NONE
        numbers[written] = number
        return written + 1
    cursor[U_COMMITTED] += 1
    cursor[U_ABSENT] += cursor[U_WAITING_ABSENT]
    cursor[U_WAITING_ABSENT] = 0
    header = cursor[U_GROUP]
    messages[header * MESSAGE + M_OP] = OP_GROUP
    messages[header * MESSAGE + M_S] = written - header - 1
    for message in range(header, written):
        numbers[message] = number
    return written if written > header + 1 else header


@kernel
def put_mark(address, kind, written, number, numbers):
    """`admit_mark` for a mark that comes alone."""
    return admit_mark(attach(address), kind, written, np.int64(number), numbers)


@kernel
def _admit_row(st, t, data, rows, at):
    """One of the scanner's rows."""
    s0, s1 = np.int64(rows[at + R_SUBJECT]), np.int64(rows[at + R_SUBJECT + 1])
    p0, p1 = np.int64(rows[at + R_PREDICATE]), np.int64(rows[at + R_PREDICATE + 1])
    o0, o1 = np.int64(rows[at + R_OBJECT]), np.int64(rows[at + R_OBJECT + 1])
    s_hash, o_hash = np.int64(rows[at + R_SUBJECT_HASH]), np.int64(rows[at + R_OBJECT_HASH])
    s, o = terms.find(t, data, s0, s1, s_hash), terms.find(t, data, o0, o1, o_hash)
    p, p_hash = np.int64(rows[at + R_NUMBER]), np.int64(0)
    if p == 0:
        p_hash = hash_bytes(t.keys, data, p0, p1)
        p = terms.find(t, data, p0, p1, p_hash)
    op = np.int64(OP_INSERT) if rows[at + R_KIND] == ADD else np.int64(OP_DELETE)
    return _admit(st, t, data, op, s, p, o, s0, s1, p0, p1, o0, o1, s_hash, p_hash, o_hash)


@kernel
def _admit(st, t, data, op, s, p, o, s0, s1, p0, p1, o0, o1, s_hash, p_hash, o_hash):
    """Ids for a row, where it needs any, and its message. The status says what became of it, or what went wrong."""
    if s == 0:
        s = _NEW_S
    if p == 0:
        p = s if s < 0 and _is_same(data, s0, s1, p0, p1) else _NEW_P
    if o == 0:
        o = _NEW_O
        if s < 0 and _is_same(data, s0, s1, o0, o1):
            o = s
        elif p < 0 and _is_same(data, p0, p1, o0, o1):
            o = p
    hits = match(st.program, st.dispatch, st.hits, s, p, o)
    if hits == 0:
        return np.int64(DROPPED)
    status = np.int64(READY)
    for hit in range(hits):
        if st.program[st.hits[hit] + R_TRIGGER] != 0:
            status = np.int64(READY | RELEVANT)
    if op == OP_DELETE:
        if s < 0 or p < 0 or o < 0:
            return status - READY + ABSENT
    else:
        same_p, same_o = p == _NEW_S, o
        if s < 0:
            s = terms.add(t, data, s0, s1, s_hash)
            classify(st, data, s, s0, s1)
        if p < 0:
            p = s if same_p else terms.add(t, data, p0, p1, p_hash)
            classify(st, data, p, p0, p1)
        if o < 0:
            o = s if same_o == _NEW_S else p if same_o == _NEW_P else terms.add(t, data, o0, o1, o_hash)
            classify(st, data, o, o0, o1)
        if s < 0 or p < 0 or o < 0:
            return min(s, p, o)
    st.cursor[U_OP] = op
    st.cursor[U_S], st.cursor[U_P], st.cursor[U_O] = s, p, o
    return status


@kernel
def _is_same(data, a0, a1, b0, b1):
    return a1 - a0 == b1 - b0 and equal(data, a0, data, b0, a1 - a0)


@kernel
def intern(address, end):
    """The id of the term that stands in `incoming`, with one more use. Or a negative status."""
    st = attach(address)
    t = terms_of(st)
    data = incoming_of(st)
    zero = np.int64(0)
    id_ = terms.acquire(t, data, zero, end, hash_bytes(t.keys, data, zero, end))
    classify(st, data, id_, zero, end)
    return id_


@kernel
def look_up(address, end):
    """The id of the term that stands in `incoming`, or 0."""
    st = attach(address)
    t = terms_of(st)
    data = incoming_of(st)
    zero = np.int64(0)
    return terms.find(t, data, zero, end, hash_bytes(t.keys, data, zero, end))


@kernel
def release(address, id_):
    """One use less."""
    terms.release(terms_of(attach(address)), id_)


@kernel
def collect(address):
    """Frees the ids that have no use: `terms.collect`."""
    return terms.collect(terms_of(attach(address)))
