"""One message for itself, admitted and applied in one call: a second call costs more than most messages do."""

from __future__ import annotations

from deltastar.kernel.admit import admit
from deltastar.kernel.jit import kernel
from deltastar.kernel.state import attach
from deltastar.kernel.step import step
from deltastar.layout import DONE, READY, U_MESSAGE, U_MESSAGES, U_OUT
from deltastar.scan_layout import T_PENDING


@kernel
def apply_one(address, op, s_end, p_end, o_end):
    """The message whose terms stand in `incoming`.

    What became of it, or a negative status; the step's status; where the output ends; and how many ids are pending.
    """
    status = admit(address, op, s_end, p_end, o_end, 0)
    st = attach(address)
    if status < 0 or not status & READY:
        return status, DONE, 0, st.term_counters[T_PENDING]
    cursor = st.cursor
    cursor[U_MESSAGE], cursor[U_MESSAGES], cursor[U_OUT] = 0, 1, 0
    stepped = step(address)
    return status, stepped, cursor[U_OUT], st.term_counters[T_PENDING]
