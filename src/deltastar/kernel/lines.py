"""Rows counted, without reading them: how a source numbers the messages of its splits."""

from __future__ import annotations

import numpy as np

from deltastar.kernel.jit import kernel

LF, CR, TAB, SPACE, HASH, LETTER_A, LETTER_D = b"\n\r\t #AD"


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
