"""Which lines of an encoded piece belong to which message: for whoever puts pieces of several engines in order."""

from __future__ import annotations

import numpy as np

from deltastar.kernel.encode import target_of
from deltastar.kernel.jit import kernel
from deltastar.kernel.text import VECTOR, ZERO, line_run
from deltastar.layout import G_COUNT, G_WIDTH, H_ROW, H_RUN, H_SUBSCRIBER, O_HEADER, O_MESSAGE, O_ROWS

LINE_END = 0x0A


@kernel
def cut_lines(plan, out, numbers, before, lines, buffer, size, cuts):
    """For each seq among the lines: the seq, and where its lines end. Gives how many numbers that are.

    `before` says where in the output the encoder stood when it began with these lines.
    """
    run, count, at = before[H_RUN], ZERO, ZERO
    done = ZERO
    while lines > 0:
        target = target_of(plan, out, run)
        rows = np.int64(out[run + O_ROWS])
        if run == before[H_RUN]:
            done = before[H_SUBSCRIBER] * rows + before[H_ROW]
        here = min(lines, plan[target + G_COUNT] * rows - done)
        if here > 0:
            for _ in range(here):
                at = _past_line(buffer, at, size)
            seq = numbers[np.int64(out[run + O_MESSAGE])]
            if count > 0 and cuts[count - 2] == seq:
                cuts[count - 1] = at
            else:
                cuts[count], cuts[count + 1] = seq, at
                count += 2
            lines -= here
        run += O_HEADER + rows * plan[target + G_WIDTH]
        done = ZERO
    return count


@kernel
def _past_line(buffer, at, size):
    """Behind the next line end. A carriage return is part of a line."""
    while at < size:
        if at + VECTOR <= size:
            run = line_run(buffer, at)
            at += run
            if run == VECTOR:
                continue
        if buffer[at] == LINE_END:
            return at + 1
        at += 1
    return at
