"""Columns, kinds, sizes and status codes of the scanner and of the term dictionary.

Zero means "none" in every array, so that untouched memory of the arena is an empty structure; ids begin at 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Syntaxes.
PATCH = 0
NTRIPLES = 1
NQUADS = 2

# A row record: sixteen int32, one cache line. Places are byte offsets into the scanned data.
ROW = 16
"""int32 in a row record."""
R_KIND = 0
R_LINE = 1
"""The row's line, counted from 1 in this call: an endless stream has more lines than an int32 holds."""
R_MESSAGE = 2
"""The row's message, counted from 1 in this call; that of the message before, when it is none."""
R_GRAPH = 3
"""1 when a fourth term was there."""
R_SUBJECT = 4
"""Where the subject begins; it ends at the next column. So for predicate, object, and the line of an OTHER row."""
R_PREDICATE = 6
R_OBJECT = 8
R_TEXT = R_SUBJECT
R_NUMBER = 10
"""The number under which the predicate is registered, or 0."""
R_SUBJECT_HASH = 11
R_OBJECT_HASH = 12
R_SUBJECT_ID = 13
R_OBJECT_ID = 14
R_PREDICATE_ID = 15
R_MUTED = R_PREDICATE_ID
"""In rows that a router has sent: 1 when another shard counts the row if it has no effect. Otherwise 0."""
PARTS = 2
"""Subject and object; the steps lead from the one's columns to the other's."""
TEXT_STEP, HASH_STEP, ID_STEP = R_OBJECT - R_SUBJECT, R_OBJECT_HASH - R_SUBJECT_HASH, R_OBJECT_ID - R_SUBJECT_ID
GROUP = 32
"""Rows whose terms are looked up together, so that their cache misses overlap."""

# Kinds of rows.
DROPPED = 0
"""What a caller writes into a record that it wants passed over."""
ADD = 1
DELETE = 2
BEGIN = 3
COMMIT = 4
ABORT = 5
OTHER = 6
"""A row for the exact reader, which is no message."""
OTHER_MESSAGE = 7
"""A row for the exact reader, which is a message, be it malformed."""

# The cursor: where a scan stands. One int64 each.
CURSOR = 4
S_AT = 0
"""The byte where the next line begins."""
S_LINES = 1
"""Lines passed."""
S_MESSAGES = 2
"""Messages passed."""
S_GRAPHS = 3
"""1 once a plain message with a fourth term was passed."""

# Keys of the hash: one int64 each.
KEYS = 8
K_START = 0
K_BLOCK = 1
K_LAST = 2
K_END = 3
K_MASK = 4
"""Which bits of a hash are kept: fewer in tests, to force collisions."""
HASH_BITS = 31


class PredicateArrays(NamedTuple):
    """The registered predicates: an open-addressing table of their texts."""

    settings: NDArray[np.int64]
    slots: NDArray[np.int32]
    """An entry, or 0. As many as a power of two are in use; the length of the array is one too."""
    entries: NDArray[np.int32]
    """Four int32 an entry; entries begin at 1."""
    text: NDArray[np.uint8]


P_SETTINGS = 4
P_MASK = 0
"""Slots in use, less one."""
P_COUNT = 1
P_TEXT_TOP = 2
P_ANY = 3
"""1 when a row may be relevant whatever its predicate."""
ENTRY = 4
E_HASH, E_START, E_LENGTH, E_NUMBER = 0, 1, 2, 3
FIRST_SLOTS = 64
SLOTS_PER_ENTRY = 4
"""At least; most predicates of a stream are in no query, and should meet an empty slot at once."""


class TermArrays(NamedTuple):
    """The term dictionary. The lengths of the arrays are their capacities."""

    counters: Any
    keys: Any
    head: Any
    """For each bucket: its first term."""
    term: Any
    """For each id, four int32: next in the bucket (or next free id), hash, place of the text, uses."""
    pending: Any
    """Ids whose uses went to nought since the last `collect`."""
    free_text: Any
    """For each size class: the first free block."""
    text: Any
    words: Any
    """`text` seen as int32: a block begins with its length, a free block with the next free one."""


T_COUNTERS = 8
T_COUNT = 0
"""Terms that are there, pending ones included."""
T_TOP = 1
"""The highest id that was ever given out."""
T_FREE = 2
T_BUCKETS = 3
T_BUCKET_MASK = 4
T_PENDING = 5
T_TEXT_TOP = 6
"""The first granule never given out."""
T_TEXT_USED = 7
"""Granules in the blocks of terms that are there."""

TERM = 4
N_NEXT, N_HASH, N_PLACE, N_USES = 0, 1, 2, 3
IS_PENDING = 1
ONE_USE = 2
USES_MAX = (1 << 31) - 2
"""A count that gets here, at a billion uses, stays here, and its term with it."""

FIRST_BUCKETS = 1024
SPLITS_AHEAD = 8
"""A split asks for the chain that is split so many terms later: its cache miss is over by then."""
GRANULE = 8
GRANULE_WORDS = 2
LENGTH_BYTES = 4
LINE_WORDS = 16
"""int32 in a cache line."""
TEXT_CLASSES = 128
"""Four to a power of two of granules: a block is at most a quarter larger than its text, and 8 bytes."""
LONGEST_TERM = 1 << 30

TERM_CAPACITY = 1 << 28
TEXT_CAPACITY = 1 << 34
"""Bytes: what an int32 counts in granules."""

# Statuses, where ids or numbers are returned.
TERMS_FULL = -1
TEXT_FULL = -2
TERM_TOO_LONG = -3
PREDICATES_FULL = -4
