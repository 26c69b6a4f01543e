"""Classes of terms: by a hash that is the same in all processes, for engines that have a share of the answers each.

A variable with a share of n takes its values from n classes, and an engine looks only at answers whose variables are in
its own classes. A term's classes are flags of its id, set when the id is given out, so that the search checks them
together with the unary patterns of a variable.
"""

from __future__ import annotations

from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.text import hash_bytes
from deltastar.layout import CLASS, Z_COUNT, Z_FIRST, Z_FLAG, Z_FLAGS, Z_PLACE, Z_SALT, Z_SHARE


@inlined
def place_of(hash_, salt, share):
    """Which of `share` classes a term with this hash is in; other salts give independent classes."""
    mixed = ((hash_ ^ ((salt * 0x5BD1E995) & 0x7FFFFFFF)) * 0x2545F491) & 0x3FFFFFFFFFFFFFFF
    return ((mixed >> 17) ^ (mixed >> 38)) % share


@kernel
def classify(st, data, id_, start, end):
    """Sets the flags of a new id's classes. A negative id is a status, and has none."""
    count = st.classes[Z_COUNT]
    if count == 0 or id_ < 0:
        return
    hash_ = hash_bytes(st.classes, data, start, end)
    flags = st.flags[id_] & ~st.classes[Z_FLAGS]
    for place in range(Z_FIRST, Z_FIRST + count * CLASS, CLASS):
        if place_of(hash_, st.classes[place + Z_SALT], st.classes[place + Z_SHARE]) == st.classes[place + Z_PLACE]:
            flags |= st.classes[place + Z_FLAG]
    st.flags[id_] = flags
