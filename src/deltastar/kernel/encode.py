"""The kernel's output as text: runs of ids to lines of JSON, CSV or TSV, without a Python object in between.

A term's text is canonical, and that is nearly all that JSON and CSV want: an IRI is copied as it is, a literal's
escapes are those of JSON but for `\\u`, and CSV doubles quotes. Pieces are copied by whole vectors, past their end:
what comes next writes over that. Invariant between calls: the buffer holds whole lines, and the place says which row
is next.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.state import attach, terms_of
from deltastar.kernel.terms import text_of
from deltastar.kernel.text import VECTOR, cell_run, copy, move, prefetch, quoted_run
from deltastar.layout import (
    AT_DATATYPE,
    AT_LANGUAGE,
    CELL,
    CELL_BLANK,
    CELL_COLUMN,
    CELL_IRI,
    CELL_LITERAL,
    CSV_FORMAT,
    DATATYPE,
    DONE,
    G_COUNT,
    G_FIRST,
    G_WIDTH,
    H_COUNT,
    H_ROW,
    H_RUN,
    H_STATUS,
    H_SUBSCRIBER,
    JSON_FORMAT,
    LANGUAGE,
    NUMBER_BYTES,
    O_HEADER,
    O_MESSAGE,
    O_ROWS,
    O_SIGN,
    O_TARGET,
    OUT_FULL,
    Q_FIRST,
    Q_FORMAT,
    Q_TARGETS,
    S_ADDED,
    S_CELLS,
    S_FIXED,
    S_REMOVED,
    S_START,
    S_TAIL,
    SPARE,
    SUBSCRIBER,
    UNKNOWN_TARGET,
)
from deltastar.scan_layout import GRANULE_WORDS, N_PLACE, T_TOP, TERM

QUOTE, BACKSLASH, LESS, UNDERSCORE, LETTER_U, SEVEN, AT_SIGN, COMMA = b'"\\<_u7@,'
UPPER_A, UPPER_F, TO_LOWER, DIGIT_0, DELETE = ord("A"), ord("F"), 0x20, ord("0"), 0x7F
ESCAPE_BYTES = 6
AHEAD = 32
"""Ints of the output for which memory is asked for together."""
HALF_LINE = 8
"""Words: most texts end within a cache line and a half."""


@kernel
def encode(address, plan, literals, out, end, base, numbers, here, buffer):
    """Writes the rows of `out[:end]` from `here` on, as lines, while they surely fit. Returns how many bytes."""
    t = terms_of(attach(address))
    here[H_COUNT] = 0
    run, asked, at = here[H_RUN], here[H_RUN], np.int64(0)
    while run < end:
        target = target_of(plan, out, run)
        if target == 0:
            here[H_STATUS] = UNKNOWN_TARGET
            return at
        width, rows = plan[target + G_WIDTH], np.int64(out[run + O_ROWS])
        digits = _write_number(literals, base + numbers[np.int64(out[run + O_MESSAGE])])
        middle = S_ADDED if out[run + O_SIGN] > 0 else S_REMOVED
        while here[H_SUBSCRIBER] < plan[target + G_COUNT]:
            subscriber = plan[target + G_FIRST + here[H_SUBSCRIBER]]
            row = here[H_ROW]
            while row < rows:
                first = run + O_HEADER + row * width
                while asked < first + width:
                    asked = _ask(t, out, asked, end)
                after = _put_row(t, plan, subscriber, literals, digits, middle, out, first, buffer, at)
                if after < 0:
                    here[H_RUN], here[H_ROW], here[H_STATUS] = run, row, OUT_FULL
                    return at
                at = after
                row += 1
                here[H_COUNT] += 1
            here[H_ROW] = 0
            here[H_SUBSCRIBER] += 1
        here[H_SUBSCRIBER] = 0
        run += O_HEADER + rows * width
    here[H_RUN], here[H_STATUS] = run, DONE
    return at


@inlined
def target_of(plan, out, run):
    """The record of a run's target, or 0."""
    target = np.int64(out[run + O_TARGET])
    return plan[Q_FIRST + target] if target < plan[Q_TARGETS] else np.int64(0)


@inlined
def _ask(t, out, first, end):
    """Asks for the memory that the rows after the next ones will read. What is no id in between does no harm."""
    top = t.counters[T_TOP]
    for index in range(first + AHEAD, min(first + 2 * AHEAD, end)):
        id_ = np.int64(out[index])
        id_ = id_ if 0 < id_ <= top else np.int64(0)  # a choice, not a branch: signs are hard to foretell
        word = np.int64(t.term[id_ * TERM + N_PLACE]) * GRANULE_WORDS
        prefetch(t.words, word)
        prefetch(t.words, word + HALF_LINE)
    for index in range(first + 2 * AHEAD, min(first + 3 * AHEAD, end)):
        prefetch(t.term, np.int64(out[index]) * TERM)
    return first + AHEAD


@inlined
def _write_number(literals, number):
    """A seq in decimal, in front of the literals. Returns where it begins."""
    at = np.int64(NUMBER_BYTES)
    while True:
        rest = number // 10
        at -= 1
        literals[at] = DIGIT_0 + number - 10 * rest
        number = rest
        if number == 0:
            return at


@inlined
def _put_row(t, plan, subscriber, literals, digits, middle, out, first, buffer, at):
    """One row as one line. Returns where it ends, or -1 when it may not fit."""
    room = len(buffer) - SPARE - plan[subscriber + S_FIXED]
    if at > room:
        return np.int64(-1)
    format_ = plan[Q_FORMAT]
    at = _put_literal(plan, subscriber + S_START, literals, buffer, at)
    move(buffer, at, literals, digits)
    at += NUMBER_BYTES - digits
    at = _put_literal(plan, subscriber + middle, literals, buffer, at)
    cell = subscriber + SUBSCRIBER
    for _ in range(plan[subscriber + S_CELLS]):
        start, length = text_of(t, np.int64(out[first + plan[cell + CELL_COLUMN]]))
        room -= 2 * length if format_ == CSV_FORMAT else length
        if at > room:
            return np.int64(-1)
        kind = t.text[start]
        if kind == LESS:
            at = _put_literal(plan, cell + CELL_IRI, literals, buffer, at)
        elif kind == UNDERSCORE:
            at = _put_literal(plan, cell + CELL_BLANK, literals, buffer, at)
        else:
            at = _put_literal(plan, cell + CELL_LITERAL, literals, buffer, at)
        if format_ == JSON_FORMAT:
            at = _put_json(t.text, literals, kind, start, length, buffer, at)
        elif format_ == CSV_FORMAT and kind != UNDERSCORE:
            at = _put_csv(t.text, kind, start, length, buffer, at)
        else:
            at = _put(t.text, start, length, buffer, at)
        cell += CELL
    return _put_literal(plan, subscriber + S_TAIL, literals, buffer, at)


# Terms --------------------------------------------------------------------------------------------------------------


@inlined
def _put_json(text, literals, kind, start, length, buffer, at):
    """What stands in JSON behind `"value":"`, up to the last quote, which belongs to the next literal."""
    if kind == LESS:
        return _put(text, start + 1, length - 2, buffer, at)
    if kind == UNDERSCORE:
        return _put(text, start + 2, length - 2, buffer, at)
    return _put_json_literal(text, literals, start, start + length, buffer, at)


@kernel
def _put_json_literal(text, literals, start, end, buffer, at):
    start += 1
    while True:
        start, at = _put_quoted(text, start, end, buffer, at)
        if text[start] == QUOTE:
            break
        if text[start + 1] != LETTER_U:
            buffer[at], buffer[at + 1] = BACKSLASH, text[start + 1]
            start += 2
            at += 2
        else:
            at = _put_control(text, start, buffer, at)
            start += ESCAPE_BYTES
    start += 1
    if start == end:
        return at
    if text[start] == AT_SIGN:
        at = _put(literals, np.int64(AT_LANGUAGE), np.int64(len(LANGUAGE)), buffer, at)
        return _put(text, start + 1, end - start - 1, buffer, at)
    at = _put(literals, np.int64(AT_DATATYPE), np.int64(len(DATATYPE)), buffer, at)
    return _put(text, start + 3, end - start - 4, buffer, at)  # between ^^< and >


@inlined
def _put_control(text, start, buffer, at):
    """A control character, of which N-Triples escapes U+007F too, and in upper case."""
    if text[start + 4] == SEVEN:
        buffer[at] = DELETE
        return at + 1
    for index in range(ESCAPE_BYTES):
        byte = text[start + index]
        buffer[at + index] = byte + TO_LOWER if UPPER_A <= byte <= UPPER_F else byte
    return at + ESCAPE_BYTES


@kernel
def _put_csv(text, kind, start, length, buffer, at):
    """A cell: in quotes if there is a quote or a comma in it, the quotes doubled."""
    end = start + length
    if kind == LESS and not _has_comma(text, start, end):
        return _put(text, start, length, buffer, at)
    buffer[at] = QUOTE
    at += 1
    while True:
        start, at = _put_quoted(text, start, end, buffer, at)
        if start == end:
            break
        if text[start] == QUOTE:
            buffer[at] = QUOTE
            at += 1
        buffer[at] = text[start]
        start += 1
        at += 1
    buffer[at] = QUOTE
    return at + 1


@inlined
def _has_comma(text, start, end):
    while start < end:
        if start + VECTOR <= len(text):
            run = cell_run(text, start)
            if run < VECTOR:
                return start + run < end
            start += run
        elif text[start] == COMMA:
            return True
        else:
            start += 1
    return False


# Pieces -------------------------------------------------------------------------------------------------------------


@inlined
def _put_quoted(text, start, end, buffer, at):
    """Copies up to the first quote or backslash. Returns where that is, and where the copy ends."""
    while start < end:
        if start + VECTOR <= len(text):
            run = min(quoted_run(text, start), end - start)
            move(buffer, at, text, start)
            start += run
            at += run
            if run < VECTOR:
                break
        elif text[start] == QUOTE or text[start] == BACKSLASH:
            break
        else:  # the very last texts that a dictionary can hold
            buffer[at] = text[start]
            start += 1
            at += 1
    return start, at


@inlined
def _put_literal(plan, where, literals, buffer, at):
    return _put(literals, plan[where], plan[where + 1], buffer, at)


@inlined
def _put(source, start, length, buffer, at):
    """Copies bytes, and whatever follows them up to whole vectors. Returns where they end."""
    if start + length + VECTOR > len(source):
        copy(buffer, at, source, start, length)
        return at + length
    done = np.int64(0)
    while done < length:
        move(buffer, at + done, source, start + done)
        done += VECTOR
    return at + length
