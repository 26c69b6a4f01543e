"""Whole lines of RDF Patch, N-Triples or N-Quads to row records; messages that no pattern can match leave none.

In: bytes, the registered predicates, and a cursor. Out: a record for each row that matters, and the cursor moved on.
A plain row is what the expressions of `rdf/ntriples.py` accept: its terms are canonical as they stand, its bytes UTF-8.
Any other row is recorded as OTHER with its byte range, for the exact reader. Invariant: the cursor stands at the
beginning of a line. No byte is looked at more than a fixed number of times, whatever the line.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.text import (
    CLASS,
    IN_IRI,
    IN_LABEL,
    IN_LINE,
    IN_SCHEME,
    IN_STRING,
    IN_TAG,
    VECTOR,
    ZERO,
    copy,
    equal,
    hash_bytes,
    iri_run,
    line_run,
    load,
    string_run,
)
from deltastar.scan_layout import (
    ABORT,
    ADD,
    BEGIN,
    COMMIT,
    DELETE,
    E_HASH,
    E_LENGTH,
    E_NUMBER,
    E_START,
    ENTRY,
    FIRST_SLOTS,
    NTRIPLES,
    OTHER,
    OTHER_MESSAGE,
    P_ANY,
    P_COUNT,
    P_MASK,
    P_TEXT_TOP,
    PATCH,
    PREDICATES_FULL,
    R_GRAPH,
    R_KIND,
    R_LINE,
    R_MESSAGE,
    R_NUMBER,
    R_OBJECT,
    R_PREDICATE,
    R_SUBJECT,
    R_TEXT,
    ROW,
    S_AT,
    S_GRAPHS,
    S_LINES,
    S_MESSAGES,
    SLOTS_PER_ENTRY,
)

NOT_PLAIN = -1
BLANK_LINE = 0
"""A line without an event: nothing, or a comment."""

_TAB, _LF, _CR, _SPACE, _QUOTE, _COMMENT, _DASH, _DOT = 0x09, 0x0A, 0x0D, 0x20, 0x22, 0x23, 0x2D, 0x2E
_COLON, _LESS, _GREATER, _AT, _BACKSLASH, _CARET, _UNDERSCORE = 0x3A, 0x3C, 0x3E, 0x40, 0x5C, 0x5E, 0x5F
_A, _B, _C, _D, _T, _X, _LAST_UPPER = 0x41, 0x42, 0x43, 0x44, 0x54, 0x58, 0x5A
_LOWER_B, _LOWER_F, _LOWER_N, _LOWER_R, _LOWER_T = 0x62, 0x66, 0x6E, 0x72, 0x74
_ASCII = 0x80
_HTTP = int.from_bytes(b"<http://", "little")
_HTTPS = int.from_bytes(b"<https:/", "little")
_XSD_STRING = np.frombuffer(b"<http://www.w3.org/2001/XMLSchema#string>", np.uint8)


@kernel
def scan_rows(data, end, syntax, keys, predicates, cursor, rows):
    """Scans lines from the cursor on until the data end or the records are full: how many records it wrote.

    The data are whole lines, of which the last may lack its line end, in less than 2**31 bytes. Call again while
    `cursor[S_AT] < end`.
    """
    at, line, message = cursor[S_AT], ZERO, ZERO
    graphs, keeps_all = cursor[S_GRAPHS], predicates.settings[P_ANY] != 0
    base, full = ZERO, len(rows)
    if at == 0 and cursor[S_LINES] == 0 and end >= 3 and data[0] == 0xEF and data[1] == 0xBB and data[2] == 0xBF:
        at = 3
    while at < end and base < full:
        line += 1
        after = _plain_row(data, at, end, syntax, rows, base)
        if after != NOT_PLAIN:
            message += 1
            graphs |= rows[base + R_GRAPH]
            start, stop = np.int64(rows[base + R_PREDICATE]), np.int64(rows[base + R_PREDICATE + 1])
            number = find_predicate(predicates, data, start, stop, hash_bytes(keys, data, start, stop))
            keep = keeps_all or number != 0
            rows[base + R_NUMBER] = number
        else:
            kind = _other_row(data, at, end, syntax, rows, base)
            message += kind == OTHER_MESSAGE
            keep = kind != BLANK_LINE
            after = rows[base + R_TEXT + 1]
        rows[base + R_LINE] = line
        rows[base + R_MESSAGE] = message
        base += ROW if keep else 0
        at = _past_line_end(data, after, end)
    cursor[S_AT], cursor[S_GRAPHS] = at, graphs
    cursor[S_LINES] += line
    cursor[S_MESSAGES] += message
    return base // ROW


# Rows ---------------------------------------------------------------------------------------------------------------


@inlined
def _plain_row(data, at, end, syntax, rows, base):
    """Where the plain message that begins at `at` ends, its parts noted; or NOT_PLAIN."""
    rows[base + R_KIND] = ADD
    if syntax == PATCH:
        op = data[at]
        if op != _A and op != _D:
            return NOT_PLAIN
        rows[base + R_KIND] = ADD + (op == _D) * (DELETE - ADD)  # a branch here would be guessed wrong
        at += 1
    start = _past_space(data, at, end)
    at = _resource(data, start, end)
    if at == NOT_PLAIN:
        return NOT_PLAIN
    rows[base + R_SUBJECT] = start
    rows[base + R_SUBJECT + 1] = at
    start = _past_space(data, at, end)
    at = _iri(data, start, end)
    if at == NOT_PLAIN:
        return NOT_PLAIN
    rows[base + R_PREDICATE] = start
    rows[base + R_PREDICATE + 1] = at
    start = _past_space(data, at, end)
    if start < end and data[start] == _QUOTE:
        at = _literal(data, start, end)
    else:
        at = _resource(data, start, end)
    if at == NOT_PLAIN:
        return NOT_PLAIN
    rows[base + R_OBJECT] = start
    rows[base + R_OBJECT + 1] = at
    start = _past_space(data, at, end)
    rows[base + R_GRAPH] = 0
    if syntax != NTRIPLES and start < end and data[start] != _DOT:
        start = _resource(data, start, end)
        if start == NOT_PLAIN:
            return NOT_PLAIN
        start = _past_space(data, start, end)
        rows[base + R_GRAPH] = 1
    return _past_dot(data, start, end)


@kernel
def _other_row(data, at, end, syntax, rows, base):
    """The kind of a row that is no plain message; notes its byte range."""
    stop = _past_line(data, at, end)
    rows[base + R_TEXT] = at
    rows[base + R_TEXT + 1] = stop
    start = _past_space(data, at, stop)
    kind = OTHER_MESSAGE
    if start == stop or (data[start] == _COMMENT and _past_comment(data, start, stop) == stop):
        kind = BLANK_LINE
    elif syntax == PATCH:
        kind = _other_kind(data, at, start, stop)
    elif data[start] == _COMMENT:
        kind = OTHER
    rows[base + R_KIND] = kind
    return kind


@kernel
def _other_kind(data, at, start, stop):
    """Whether a row of a patch is a plain mark, or a message: its keyword is A or D and nothing more."""
    first = data[start]
    if (
        first == _T
        and start == at
        and stop - at >= 3
        and _past_dot(data, _past_space(data, at + 2, stop), stop) == stop
    ):
        second = data[at + 1]
        if second == _X or second == _B:
            return BEGIN
        if second == _C:
            return COMMIT
        if second == _A:
            return ABORT
    if first != _A and first != _D:
        return OTHER
    if start + 1 < stop and CLASS[data[start + 1]] & IN_SCHEME and (data[start + 1] >= _A):
        return OTHER
    return OTHER_MESSAGE


@inlined
def _past_space(data, at, end):
    while at < end and (data[at] == _SPACE or data[at] == _TAB):
        at += 1
    return at


@inlined
def _past_dot(data, at, end):
    """Where the row that ends with the dot at `at` ends, its comment included; or NOT_PLAIN."""
    if at == end or data[at] != _DOT:
        return NOT_PLAIN
    at += 1
    if at == end or data[at] == _LF:
        return at
    at = _past_space(data, at, end)
    if at < end and data[at] == _COMMENT:
        at = _past_comment(data, at, end)
    return at if at == end or data[at] == _LF or data[at] == _CR else NOT_PLAIN


@kernel
def _past_comment(data, at, end):
    """Where the comment ends; before that, where it is not UTF-8."""
    while at < end and data[at] != _LF and data[at] != _CR:
        if data[at] < _ASCII:
            at += 1
        else:
            after = _past_wide(data, at, end)
            if after == NOT_PLAIN:
                return at
            at = after
    return at


@inlined
def _past_line(data, at, end):
    """Where the line ends, without its line end."""
    while at + VECTOR <= end:
        run = line_run(data, at)
        at += run
        if run < VECTOR:
            return at
    return _past_class(data, at, end, IN_LINE)


@inlined
def _past_line_end(data, at, end):
    if at < end and data[at] == _CR:
        at += 1
        return at + 1 if at < end and data[at] == _LF else at
    return at + 1 if at < end else at


# Terms: each returns where the term ends, or NOT_PLAIN --------------------------------------------------------------


@inlined
def _resource(data, at, end):
    """An IRI or a blank node."""
    if at < end and data[at] == _UNDERSCORE:
        return _blank(data, at, end)
    return _iri(data, at, end)


@kernel
def _iri(data, at, end):
    if at + VECTOR < end and (load(data, at) == _HTTP or load(data, at) == _HTTPS):
        at += 7
    else:
        at = _past_scheme(data, at, end)
        if at == NOT_PLAIN:
            return NOT_PLAIN
    while True:
        run = VECTOR
        while run == VECTOR and at + VECTOR <= end:
            run = iri_run(data, at)
            at += run
        if run == VECTOR:
            at = _past_class(data, at, end, IN_IRI)
        if at == end:
            return NOT_PLAIN
        if data[at] == _GREATER:
            return at + 1
        at = _past_wide(data, at, end)
        if at == NOT_PLAIN:
            return NOT_PLAIN


@kernel
def _past_scheme(data, at, end):
    """Past '<' and the colon of an absolute IRI."""
    if at + 1 >= end or data[at] != _LESS or not CLASS[data[at + 1]] & IN_SCHEME or data[at + 1] < _A:
        return NOT_PLAIN
    at = _past_class(data, at + 1, end, IN_SCHEME)
    return at + 1 if at < end and data[at] == _COLON else NOT_PLAIN


@kernel
def _blank(data, at, end):
    if at + 2 >= end or data[at + 1] != _COLON or not CLASS[data[at + 2]] & IN_LABEL or data[at + 2] == _DASH:
        return NOT_PLAIN
    at = _past_class(data, at + 2, end, IN_LABEL)
    while at < end and data[at] == _DOT:
        next_part = at
        while next_part < end and data[next_part] == _DOT:
            next_part += 1
        if next_part == end or not CLASS[data[next_part]] & IN_LABEL:
            return at
        at = _past_class(data, next_part, end, IN_LABEL)
    return at


@kernel
def _literal(data, at, end):
    at = _string(data, at + 1, end)
    if at == NOT_PLAIN or at == end:
        return at
    if data[at] == _AT:
        return _language(data, at + 1, end)
    if data[at] == _CARET:
        return _datatype(data, at, end)
    return at


@inlined
def _string(data, at, end):
    """Past the closing quote."""
    while True:
        run = VECTOR
        while run == VECTOR and at + VECTOR <= end:
            run = string_run(data, at)
            at += run
        if run == VECTOR:
            at = _past_class(data, at, end, IN_STRING)
        if at == end:
            return NOT_PLAIN
        if data[at] == _QUOTE:
            return at + 1
        at = _past_escape(data, at, end) if data[at] == _BACKSLASH else _past_wide(data, at, end)
        if at == NOT_PLAIN:
            return NOT_PLAIN


@kernel
def _past_escape(data, at, end):
    """An escape that the canonical form has too."""
    if at + 1 == end:
        return NOT_PLAIN
    c = data[at + 1]
    if c == _QUOTE or c == _BACKSLASH or c == _LOWER_N or c == _LOWER_T or c == _LOWER_R:
        return at + 2
    return at + 2 if c == _LOWER_B or c == _LOWER_F else NOT_PLAIN


@kernel
def _language(data, at, end):
    """A language tag in lower case, behind the '@'; the first part holds no digits."""
    start = at
    while at < end and CLASS[data[at]] & IN_TAG and data[at] > _LAST_UPPER:
        at += 1
    while at > start and at + 1 < end and data[at] == _DASH and CLASS[data[at + 1]] & IN_TAG:
        at = _past_class(data, at + 1, end, IN_TAG)
    return at if at > start else NOT_PLAIN


@kernel
def _datatype(data, at, end):
    """A datatype other than xsd:string, which the canonical form leaves out."""
    if at + 1 >= end or data[at + 1] != _CARET:
        return NOT_PLAIN
    start = at + 2
    at = _iri(data, start, end)
    if at - start == len(_XSD_STRING) and equal(data, start, _XSD_STRING, ZERO, len(_XSD_STRING)):
        return NOT_PLAIN
    return at


@kernel
def _past_class(data, at, end, bits):
    while at < end and CLASS[data[at]] & bits:
        at += 1
    return at


@kernel
def _past_wide(data, at, end):
    """Past characters beyond ASCII, at least one, in UTF-8: shortest form, no surrogates (Unicode, Table 3-7)."""
    if data[at] < _ASCII:
        return NOT_PLAIN
    while at < end and data[at] >= _ASCII:
        first = data[at]
        if 0xC2 <= first < 0xE0 and at + 1 < end and data[at + 1] & 0xC0 == 0x80:  # most alphabets
            at += 2
            continue
        length = 2 + (first >= 0xE0) + (first >= 0xF0)
        if first < 0xC2 or first > 0xF4 or at + length > end:
            return NOT_PLAIN
        low = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        high = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        if data[at + 1] < low or data[at + 1] > high:
            return NOT_PLAIN
        for index in range(at + 2, at + length):
            if data[index] < 0x80 or data[index] > 0xBF:
                return NOT_PLAIN
        at += length
    return at


# Registered predicates ----------------------------------------------------------------------------------------------


@inlined
def find_predicate(predicates, data, start, end, hash_):
    """The number that a predicate is registered under, or 0."""
    entry = _entry_of(predicates, data, start, end, hash_)
    return predicates.entries[entry * ENTRY + E_NUMBER] if entry != 0 else 0


@kernel
def set_predicate(predicates, data, start, end, hash_, number):
    """Registers a predicate under a number; 0 takes it out. Returns the number, or PREDICATES_FULL."""
    entry = _entry_of(predicates, data, start, end, hash_)
    if entry == 0:
        if not _has_room(predicates, end - start):
            _rebuild(predicates)
            if not _has_room(predicates, end - start):
                return np.int64(PREDICATES_FULL)
        entry, top = predicates.settings[P_COUNT] + 1, predicates.settings[P_TEXT_TOP]
        copy(predicates.text, top, data, start, end - start)
        predicates.settings[P_COUNT] = entry
        predicates.settings[P_TEXT_TOP] = top + end - start
        base = entry * ENTRY
        predicates.entries[base + E_HASH] = hash_
        predicates.entries[base + E_START] = top
        predicates.entries[base + E_LENGTH] = end - start
        _take_slot(predicates, entry)
    predicates.entries[entry * ENTRY + E_NUMBER] = number
    return number


@inlined
def _entry_of(predicates, data, start, end, hash_):
    mask = predicates.settings[P_MASK]
    slot = hash_ & mask
    while predicates.slots[slot] != 0:
        entry = predicates.slots[slot]
        base = entry * ENTRY
        if predicates.entries[base + E_HASH] == hash_ and predicates.entries[base + E_LENGTH] == end - start:
            if equal(data, start, predicates.text, np.int64(predicates.entries[base + E_START]), end - start):
                return entry
        slot = (slot + 1) & mask
    return 0


@inlined
def _has_room(predicates, length):
    entry = predicates.settings[P_COUNT] + 1
    if entry * SLOTS_PER_ENTRY > predicates.settings[P_MASK] or (entry + 1) * ENTRY > len(predicates.entries):
        return False
    return predicates.settings[P_TEXT_TOP] + length <= len(predicates.text)


@kernel
def _take_slot(predicates, entry):
    mask = predicates.settings[P_MASK]
    slot = predicates.entries[entry * ENTRY + E_HASH] & mask
    while predicates.slots[slot] != 0:
        slot = (slot + 1) & mask
    predicates.slots[slot] = entry


@kernel
def _rebuild(predicates):
    """Drops the entries that were taken out, and makes room for twice those that remain, as far as there is any."""
    count, top = 0, 0
    for entry in range(1, predicates.settings[P_COUNT] + 1):
        old, new = entry * ENTRY, (count + 1) * ENTRY
        if predicates.entries[old + E_NUMBER] != 0:
            start, length = predicates.entries[old + E_START], predicates.entries[old + E_LENGTH]
            for index in range(length):  # down, and possibly onto itself
                predicates.text[top + index] = predicates.text[start + index]
            for field in range(ENTRY):
                predicates.entries[new + field] = predicates.entries[old + field]
            predicates.entries[new + E_START] = top
            count += 1
            top += length
    slots = min(FIRST_SLOTS, len(predicates.slots))
    while slots < 2 * (count + 1) * SLOTS_PER_ENTRY and slots * 2 <= len(predicates.slots):
        slots *= 2
    for slot in range(max(slots, predicates.settings[P_MASK] + 1)):
        predicates.slots[slot] = 0
    predicates.settings[P_COUNT], predicates.settings[P_TEXT_TOP], predicates.settings[P_MASK] = count, top, slots - 1
    for entry in range(1, count + 1):
        _take_slot(predicates, entry)
