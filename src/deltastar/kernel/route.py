"""From the scanner's rows to what each shard gets: which rows go where, and their text, packed.

In: row records, and for each relation the routes of the patterns that have it. Out: first a record for each row and
shard that it goes to, then, when a whole split has been read, the blobs of all shards in one array. A row that unifies
with no pattern leaves nothing but a count. Invariant between calls: `sizes` says what the records so far add up to.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel import terms
from deltastar.kernel.classes import place_of
from deltastar.kernel.jit import kernel
from deltastar.kernel.relations import match
from deltastar.kernel.state import attach, terms_of
from deltastar.kernel.text import VECTOR, ZERO, copy, equal, hash_bytes, move
from deltastar.layout import (
    ALL_ADMITTED,
    J_BASE,
    J_COORDINATE,
    J_COORDINATES,
    J_FIRST,
    J_OFFSETS,
    J_POSITION,
    J_SALT,
    J_SHARE,
    J_STRIDE,
    MARK_BYTES,
    MESSAGES_FULL,
    N_DROPPED,
    N_END,
    N_NEEDS_TERMS,
    N_RELEVANT,
    N_ROWS,
    N_SERIAL,
    N_SHARDS,
    N_STRICT,
    R_NUMBER,
    SENT,
    SENT_END,
    SENT_PLACE,
    SENT_SHARD,
    SENT_START,
    SPECIAL,
    Y_ROWS,
    Y_TEXT,
    YIELD,
)
from deltastar.scan_layout import (
    ABORT,
    ADD,
    BEGIN,
    COMMIT,
    DELETE,
    R_KIND,
    R_LINE,
    R_MESSAGE,
    R_OBJECT,
    R_PREDICATE,
    R_SUBJECT,
    ROW,
)
from deltastar.scan_layout import DROPPED as DROPPED_ROW
from deltastar.scan_layout import R_NUMBER as R_PREDICATE_NUMBER

ROW_BYTES = 5
"""What a packed row has beside its terms: the operation and a space, then a space, a dot and the line end."""
LETTER_A, LETTER_C, LETTER_D, LETTER_T, LETTER_X, SPACE, DOT, HASH, LINE_END = b"ACDTX .#\n"
DIGIT_0 = 0x30
PLAIN_MARK, DIGITS = 5, 24
"""Bytes of a mark that stands alone on its line; and more than a number has, with what stands around it."""
UNKNOWN = -1


@kernel
def route_rows(address, data, rows, first, count, routes, state, stamps, base, numbers, line, sent, sizes):
    """Where the scanner's rows go, from `first` on; gives the row it stopped at, and why.

    A row's place is the base and its place in the scan, or, if there are numbers, the one of its line behind `line`.
    """
    st = attach(address)
    t = terms_of(st)
    shards, room = state[N_SHARDS], len(sent) // SENT
    needs_terms, is_strict, is_numbered = state[N_NEEDS_TERMS] != 0, state[N_STRICT] != 0, len(numbers) > 0
    hashes = st.values
    for row in range(first, count):
        at = row * ROW
        kind = rows[at + R_KIND]
        if kind == DROPPED_ROW:
            continue
        if state[N_ROWS] + shards > room:
            return row, MESSAGES_FULL
        if kind != ADD and kind != DELETE:
            if is_numbered or not _send_mark(state, data, rows, at, line, base, sent, sizes):
                return row, SPECIAL
            continue
        s0, s1 = np.int64(rows[at + R_SUBJECT]), np.int64(rows[at + R_SUBJECT + 1])
        p0, p1 = np.int64(rows[at + R_PREDICATE]), np.int64(rows[at + R_PREDICATE + 1])
        o0, o1 = np.int64(rows[at + R_OBJECT]), np.int64(rows[at + R_OBJECT + 1])
        hashes[0], hashes[1], hashes[2] = UNKNOWN, UNKNOWN, UNKNOWN
        s, p, o = np.int64(-1), np.int64(rows[at + R_PREDICATE_NUMBER]), np.int64(-3)
        if needs_terms:
            s, p, o = _terms_of(t, data, hashes, p, s0, s1, p0, p1, o0, o1)
        place = numbers[line + rows[at + R_LINE] - 1] if is_numbered else base + rows[at + R_MESSAGE]
        hits = match(st.program, st.dispatch, st.hits, s, p, o)
        state[N_SERIAL] += 1
        before = state[N_ROWS]
        size = o1 - s0 + ROW_BYTES
        is_relevant = False
        for hit in range(hits):
            route = routes[st.program[st.hits[hit] + R_NUMBER]]
            while route != 0:
                is_relevant = True
                cell = routes[route + J_BASE]
                coordinate = route + J_FIRST
                for _ in range(routes[route + J_COORDINATES]):
                    position = routes[coordinate + J_POSITION]
                    if hashes[position] == UNKNOWN:
                        start = s0 if position == 0 else p0 if position == 1 else o0
                        end = s1 if position == 0 else p1 if position == 1 else o1
                        hashes[position] = hash_bytes(t.keys, data, start, end)
                    share = routes[coordinate + J_SHARE]
                    place_on_axis = place_of(hashes[position], routes[coordinate + J_SALT], share)
                    cell += place_on_axis * routes[coordinate + J_STRIDE]
                    coordinate += J_COORDINATE
                for offset in range(coordinate, coordinate + routes[route + J_OFFSETS]):
                    shard = (cell + routes[offset]) % shards
                    if stamps[shard] != state[N_SERIAL]:
                        stamps[shard] = state[N_SERIAL]
                        _send(state, sent, sizes, shard, kind == DELETE, s0, o1, place, state[N_ROWS] > before, size)
                route = routes[route]
        if is_relevant:
            state[N_RELEVANT] += 1
        elif is_strict:
            hashed = hash_bytes(t.keys, data, s0, s1) ^ hash_bytes(t.keys, data, p0, p1)
            hashed ^= hash_bytes(t.keys, data, o0, o1) >> 1
            shard = place_of(hashed, ZERO, shards)
            _send(state, sent, sizes, shard, kind == DELETE, s0, o1, place, False, size)
        else:
            state[N_DROPPED] += 1
    return count, ALL_ADMITTED


@kernel
def _send(state, sent, sizes, shard, is_delete, start, end, place, is_muted, size):
    at = state[N_ROWS] * SENT
    sent[at + SENT_SHARD] = 2 * shard + is_delete
    sent[at + SENT_START], sent[at + SENT_END] = start, end
    sent[at + SENT_PLACE] = 2 * place + is_muted
    state[N_ROWS] += 1
    sizes[shard * YIELD + Y_ROWS] += 1
    sizes[shard * YIELD + Y_TEXT] += size


@kernel
def _send_mark(state, data, rows, at, line, base, sent, sizes):
    """Sends a plain mark to all shards; to shard 0 with its line and text. False when it is none, or long."""
    kind = rows[at + R_KIND]
    start, stop = np.int64(rows[at + R_SUBJECT]), np.int64(rows[at + R_SUBJECT + 1])
    letter = LETTER_X if kind == BEGIN else LETTER_C if kind == COMMIT else LETTER_A
    if (kind != BEGIN and kind != COMMIT and kind != ABORT) or stop - start > MARK_BYTES - 2 * PLAIN_MARK - DIGITS:
        return False
    if state[N_END] + MARK_BYTES > len(data):
        return False
    first = state[N_END]
    end = _put_mark(data, first, letter)
    place = 2 * (base + rows[at + R_MESSAGE])
    for shard in range(1, state[N_SHARDS]):
        _send_line(state, sent, sizes, shard, first, end, place)
    first = end
    end = _put_mark(data, end, letter) - 1
    data[end], data[end + 1] = SPACE, HASH
    end = _put_number(data, end + 2, line + rows[at + R_LINE])
    data[end] = HASH
    copy(data, end + 1, data, start, stop - start)
    end += 1 + stop - start
    data[end] = LINE_END
    _send_line(state, sent, sizes, 0, first, end + 1, place)
    state[N_END] = end + 1
    return True


@kernel
def _put_mark(data, at, letter):
    data[at], data[at + 1], data[at + 2], data[at + 3], data[at + 4] = LETTER_T, letter, SPACE, DOT, LINE_END
    return at + PLAIN_MARK


@kernel
def _put_number(data, at, number):
    digits = 1
    rest = number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for place in range(at + digits - 1, at - 1, -1):
        data[place] = DIGIT_0 + number % 10
        number //= 10
    return at + digits


@kernel
def _send_line(state, sent, sizes, shard, start, end, place):
    at = state[N_ROWS] * SENT
    sent[at + SENT_SHARD], sent[at + SENT_PLACE] = 2 * shard, place
    sent[at + SENT_START], sent[at + SENT_END] = -1 - start, end
    state[N_ROWS] += 1
    sizes[shard * YIELD + Y_ROWS] += 1
    sizes[shard * YIELD + Y_TEXT] += end - start


@kernel
def _terms_of(t, data, hashes, p, s0, s1, p0, p1, o0, o1):
    """The ids of a row's terms. Those that no query has are negative, and equal where the terms are."""
    hashes[0] = hash_bytes(t.keys, data, s0, s1)
    hashes[2] = hash_bytes(t.keys, data, o0, o1)
    s = terms.find(t, data, s0, s1, hashes[0])
    o = terms.find(t, data, o0, o1, hashes[2])
    if p == 0:
        hashes[1] = hash_bytes(t.keys, data, p0, p1)
        p = terms.find(t, data, p0, p1, hashes[1])
    if s == 0:
        s = np.int64(-1)
    if p == 0:
        p = s if s < 0 and _is_same(data, s0, s1, p0, p1) else np.int64(-2)
    if o == 0:
        o = np.int64(-3)
        if s < 0 and _is_same(data, s0, s1, o0, o1):
            o = s
        elif p < 0 and _is_same(data, p0, p1, o0, o1):
            o = p
    return s, p, o


@kernel
def _is_same(data, a0, a1, b0, b1):
    return a1 - a0 == b1 - b0 and equal(data, a0, data, b0, a1 - a0)


@kernel
def pack_rows(data, sent, count, cursors, places, out):
    """Puts the places and the text of all rows where each shard's cursor says; `places` is `out` in words.

    A row that begins with no operation (`SENT_PLACE` tells nothing of it: its start is negative) goes as it is.
    Copies go by whole vectors: there must be as much room behind each shard's text, and behind the data.
    """
    for index in range(count):
        at = index * SENT
        shard = sent[at + SENT_SHARD] >> 1
        start, end = sent[at + SENT_START], sent[at + SENT_END]
        word, to = cursors[shard * YIELD + Y_ROWS], cursors[shard * YIELD + Y_TEXT]
        places[word] = sent[at + SENT_PLACE]
        cursors[shard * YIELD + Y_ROWS] = word + 1
        if start < 0:  # a whole line
            start = -1 - start
            copy(out, to, data, start, end - start)
            cursors[shard * YIELD + Y_TEXT] = to + end - start
            continue
        out[to] = LETTER_D if sent[at + SENT_SHARD] & 1 else LETTER_A
        out[to + 1] = SPACE
        to += 2
        done = ZERO
        while done < end - start:
            move(out, to + done, data, start + done)
            done += VECTOR
        to += end - start
        out[to], out[to + 1], out[to + 2] = SPACE, DOT, LINE_END
        cursors[shard * YIELD + Y_TEXT] = to + 3


@kernel
def gather_lines(text, ends, order, out):
    """Writes lines in another order; `ends` says where each ends."""
    to = ZERO
    for index in range(len(order)):
        line = order[index]
        start = ends[line - 1] if line > 0 else ZERO
        copy(out, to, text, start, ends[line] - start)
        to += ends[line] - start
