"""The log of changes, and groups of messages that are one change: a transaction, or the way back from one.

Invariant: the log holds the effective changes since it was cleared last, in order, and keeps their terms in use, so
that their ids mean the same when they are taken back. It is written while a transaction is open, which may be aborted,
or while a batch has to be revocable as a whole.

A group's messages are resolved before the first of them is applied: of those about one triple only the last can have an
effect, and only if it is not as the graph is already. So the rest of the kernel sees single, effective changes. What
one of them adds to an answer another may take away: a group with both insertions and deletions is *mixed*, and its rows
are netted once they are all there (`netting.py`).
"""

from __future__ import annotations

from deltastar.kernel.jit import kernel
from deltastar.kernel.relations import is_in, match, release, retain
from deltastar.kernel.state import attach
from deltastar.layout import (
    C_BATCH_IN_TRANSACTION,
    C_BATCH_LOG,
    C_BATCH_TRANSACTION_LOG,
    C_IN_TRANSACTION,
    C_LOG_COUNT,
    C_TRANSACTION_LOG,
    M_O,
    M_OP,
    M_P,
    M_S,
    MESSAGE,
    OP_BEGIN,
    OP_COMMIT,
    OP_DELETE,
    OP_INSERT,
    OP_NONE,
    OP_UNDO,
    U_ABSENT,
    U_COMMITTED,
    U_FAULT,
    U_GROUP_END,
    U_IS_LOGGED,
    U_IS_STRICT,
    U_MESSAGE,
    U_MIXED,
    U_REPEATED,
)


@kernel
def take_mark(st):
    """A message that is no change. False when a group's message has no effect and that is an error."""
    cursor, counters = st.cursor, st.counters
    at = cursor[U_MESSAGE]
    op = int(st.messages[at * MESSAGE + M_OP])
    if op == OP_BEGIN:
        counters[C_IN_TRANSACTION] = 1
        counters[C_TRANSACTION_LOG] = counters[C_LOG_COUNT]
    elif op == OP_COMMIT:
        counters[C_IN_TRANSACTION] = 0
        cursor[U_COMMITTED] += 1
        if cursor[U_IS_LOGGED] == 0:
            forget(st, 0)
    elif op != OP_NONE:
        cursor[U_GROUP_END] = 0
        return _resolve(st, at + 1, int(st.messages[at * MESSAGE + M_S]), op == OP_UNDO)
    return True


@kernel
def note(st, op, s, p, o):
    """Notes an effective change, if somebody may want it taken back."""
    counters = st.counters
    if counters[C_IN_TRANSACTION] == 0 and st.cursor[U_IS_LOGGED] == 0:
        return
    at = counters[C_LOG_COUNT] * MESSAGE
    st.log[at + M_OP], st.log[at + M_S], st.log[at + M_P], st.log[at + M_O] = op, s, p, o
    for place in range(M_S, M_O + 1):
        retain(st, int(st.log[at + place]))
    counters[C_LOG_COUNT] += 1


@kernel
def forget(st, first):
    """Lets go of the log's changes from one on."""
    for entry in range(first, st.counters[C_LOG_COUNT]):
        for place in range(M_S, M_O + 1):
            release(st, int(st.log[entry * MESSAGE + place]))
    st.counters[C_LOG_COUNT] = first


@kernel
def hold_messages(address, messages, stride, first, count, is_held):
    """Keeps the terms of some messages in use, or does so no longer."""
    st = attach(address)
    for message in range(first, first + count):
        for place in range(M_S, M_O + 1):
            if is_held:
                retain(st, int(messages[message * stride + place]))
            else:
                release(st, int(messages[message * stride + place]))


@kernel
def clear_log(address):
    """What was changed stands."""
    forget(attach(address), 0)


@kernel
def open_batch(address):
    """From here on changes can be taken back as a whole; of those before only an open transaction's are remembered."""
    st = attach(address)
    counters = st.counters
    first = counters[C_TRANSACTION_LOG] if counters[C_IN_TRANSACTION] != 0 else counters[C_LOG_COUNT]
    for entry in range(first):
        for place in range(M_S, M_O + 1):
            release(st, int(st.log[entry * MESSAGE + place]))
    kept = (counters[C_LOG_COUNT] - first) * MESSAGE
    for index in range(kept):
        st.log[index] = st.log[first * MESSAGE + index]
    counters[C_LOG_COUNT] -= first
    counters[C_TRANSACTION_LOG] = 0
    counters[C_BATCH_LOG] = counters[C_LOG_COUNT]
    counters[C_BATCH_IN_TRANSACTION] = counters[C_IN_TRANSACTION]
    counters[C_BATCH_TRANSACTION_LOG] = counters[C_TRANSACTION_LOG]


@kernel
def close_undo_of_batch(address):
    """After the way back to the begin of the batch: all is as it was then."""
    st = attach(address)
    counters = st.counters
    forget(st, counters[C_BATCH_LOG])
    counters[C_IN_TRANSACTION] = counters[C_BATCH_IN_TRANSACTION]
    counters[C_TRANSACTION_LOG] = counters[C_BATCH_TRANSACTION_LOG]


@kernel
def write_undo(address, first):
    """The way back from the log's changes from one on, as a group at the beginning of the messages; its length."""
    st = attach(address)
    count = st.counters[C_LOG_COUNT] - first
    st.messages[M_OP], st.messages[M_S] = OP_UNDO, count
    for index in range(count):
        entry = (st.counters[C_LOG_COUNT] - 1 - index) * MESSAGE
        at = (index + 1) * MESSAGE
        st.messages[at + M_OP] = -st.log[entry + M_OP]
        for place in range(M_S, M_O + 1):
            st.messages[at + place] = st.log[entry + place]
    return count + 1


@kernel
def close_undo(address, first):
    """After the way back: both ways are forgotten, unless the batch may have to be taken back as a whole."""
    st = attach(address)
    if st.cursor[U_IS_LOGGED] == 0:
        forget(st, first)


# Groups --------------------------------------------------------------------------------------------------------------


@kernel
def _resolve(st, first, count, is_undo):
    """Leaves those messages that make a group's net effect. False at one without effect, where that is an error."""
    messages, cursor = st.messages, st.cursor
    mask = 1
    while mask < 2 * count:
        mask = 2 * mask + 1
    for slot in range(mask + 1):
        st.slots[slot] = 0
    for message in range(first, first + count):
        if not _place(st, message, mask) and not is_undo:
            is_insert = messages[message * MESSAGE + M_OP] == OP_INSERT
            cursor[U_REPEATED if is_insert else U_ABSENT] += 1 - st.muted[message]
            if cursor[U_IS_STRICT] != 0:
                cursor[U_FAULT] = message
                return False
    added, removed = 0, 0
    for slot in range(mask + 1):
        message = int(st.slots[slot]) - 1
        if message >= 0:
            at = message * MESSAGE
            is_insertion = messages[at + M_OP] == OP_INSERT
            if _is_there(st, at) == is_insertion:
                messages[at + M_OP] = OP_NONE
            elif is_insertion:
                added += 1
            else:
                removed += 1
    is_mixed = added > 0 and removed > 0
    for message in range(first, first + count):
        st.groups[message] = first if is_mixed else 0
    cursor[U_GROUP_END] = first + count
    cursor[U_MIXED] += is_mixed
    return True


@kernel
def _place(st, message, mask):
    """Makes a message the last one of its triple. Whether it changes what is there after those before it."""
    messages = st.messages
    at = message * MESSAGE
    s, p, o = int(messages[at + M_S]), int(messages[at + M_P]), int(messages[at + M_O])
    mixed = (s * 0x85EBCA6B ^ p * 0xC2B2AE35 ^ o * 0x27D4EB2F) & 0x7FFFFFFFFFFF
    slot = (mixed ^ (mixed >> 17)) & mask
    while st.slots[slot] != 0:
        earlier = (int(st.slots[slot]) - 1) * MESSAGE
        if messages[earlier + M_S] == s and messages[earlier + M_P] == p and messages[earlier + M_O] == o:
            st.slots[slot] = message + 1
            is_effective = messages[earlier + M_OP] != messages[at + M_OP]
            messages[earlier + M_OP] = OP_NONE
            return is_effective
        slot = (slot + 1) & mask
    st.slots[slot] = message + 1
    return _is_there(st, at) == (messages[at + M_OP] == OP_DELETE)


@kernel
def _is_there(st, at):
    """Whether a message's triple is kept. One that no pattern unifies with is not."""
    s, p, o = int(st.messages[at + M_S]), int(st.messages[at + M_P]), int(st.messages[at + M_O])
    return match(st.program, st.dispatch, st.hits, s, p, o) > 0 and is_in(st, st.hits[0], s, p, o)
