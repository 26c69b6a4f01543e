"""Text by its lines: where the runs of one seq end, several outputs put together by seq, messages counted.

A line ends at LF, in every format: canonical terms hold no line breaks. The seq is the number behind `,"seq":` in a
line of JSON, and the second field of a row of CSV or TSV, whose first may be quoted.
"""

from __future__ import annotations

import numpy as np

from deltastar.kernel.jit import kernel

LF, QUOTE, COMMA, TAB, ZERO, NINE, COLON, SMALL_S, SMALL_E, SMALL_Q = b'\n",\t09:seq'
CR, SPACE, HASH, LETTER_A, LETTER_D = b"\r #AD"


@kernel
def find_runs(data, length, is_json, separator, seqs, ends):
    """Fills in the seq of each run of lines, and the byte behind it; gives how many runs there are."""
    at, runs, last = np.int64(0), np.int64(0), np.int64(-1)
    while at < length:
        if is_json:
            while not (
                data[at] == COMMA
                and data[at + 1] == QUOTE
                and data[at + 2] == SMALL_S
                and data[at + 3] == SMALL_E
                and data[at + 4] == SMALL_Q
                and data[at + 5] == QUOTE
                and data[at + 6] == COLON
            ):
                at += 1
            at += 7
        else:
            if data[at] == QUOTE and separator == COMMA:
                at += 1
                while data[at] != QUOTE or data[at + 1] == QUOTE:
                    at += 1 if data[at] != QUOTE else 2
            while data[at] != separator:
                at += 1
            at += 1
        seq = np.int64(0)
        while ZERO <= data[at] <= NINE:
            seq = 10 * seq + (np.int64(data[at]) - ZERO)
            at += 1
        while data[at] != LF:
            at += 1
        at += 1
        if seq != last:
            seqs[runs] = seq
            runs += 1
            last = seq
        ends[runs - 1] = at
    return runs


@kernel
def gather(data, starts, ends, order, first, last, out):
    """Copies the runs `order[first:last]` one behind the other; gives how many bytes that are."""
    to = np.int64(0)
    for place in range(first, last):
        run = order[place]
        for at in range(starts[run], ends[run]):
            out[to] = data[at]
            to += 1
    return to


@kernel
def count_messages(data, length, is_patch, counts):
    """Adds to `counts` the messages and the lines of whole rows, malformed ones included."""
    at, messages, lines = np.int64(0), np.int64(0), np.int64(0)
    while at < length:
        while at < length and (data[at] == SPACE or data[at] == TAB):
            at += 1
        if at < length and data[at] != LF and data[at] != CR:
            if is_patch:
                first = data[at]
                at += 1
                is_word = at < length and 65 <= (data[at] & 0xDF) <= 90
                messages += (first == LETTER_A or first == LETTER_D) and not is_word
            else:
                messages += data[at] != HASH
            while at < length and data[at] != LF and data[at] != CR:
                at += 1
        if at < length and data[at] == CR:
            at += 1
            if at < length and data[at] == LF:
                at += 1
        elif at < length:
            at += 1
        lines += 1
    counts[0] += messages
    counts[1] += lines
