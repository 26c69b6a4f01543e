"""The term dictionary: texts to dense ids and back; exact, counted, recycling.

A bucket's terms form a chain; there is at most one term a bucket on average, and growth splits one bucket at a time
(linear hashing, Litwin 1980), so that no call waits for a rebuild. A text lies in a block of one of four size classes a
power of two, behind its length. Invariant between calls: a term is found exactly while it has uses or is pending. Ids
whose last use goes stay readable until `collect`, so that deltas which name them can be decoded.
"""

from __future__ import annotations

import hashlib

import numpy as np

from deltastar.kernel.jit import inlined, kernel
from deltastar.kernel.text import copy, equal, hash_bytes, prefetch
from deltastar.layout import M_O, M_OP, M_S, MESSAGE
from deltastar.scan_layout import (
    ADD,
    DELETE,
    FIRST_BUCKETS,
    GRANULE,
    GRANULE_WORDS,
    GROUP,
    HASH_BITS,
    HASH_STEP,
    ID_STEP,
    IS_PENDING,
    K_MASK,
    LENGTH_BYTES,
    LINE_WORDS,
    LONGEST_TERM,
    N_HASH,
    N_NEXT,
    N_PLACE,
    N_USES,
    ONE_USE,
    PARTS,
    R_KIND,
    R_PREDICATE,
    R_PREDICATE_ID,
    R_SUBJECT,
    R_SUBJECT_HASH,
    R_SUBJECT_ID,
    ROW,
    SPLITS_AHEAD,
    T_BUCKET_MASK,
    T_BUCKETS,
    T_COUNT,
    T_FREE,
    T_PENDING,
    T_TEXT_TOP,
    T_TEXT_USED,
    T_TOP,
    TERM,
    TERM_TOO_LONG,
    TERMS_FULL,
    TEXT_FULL,
    TEXT_STEP,
    USES_MAX,
)

PATCH_BYTES = 7
"""Of a row of RDF Patch, beside its terms: the letter, four spaces, the dot and the line end."""
LETTER_A, LETTER_D, SPACE, DOT, LINE_END = 0x41, 0x44, 0x20, 0x2E, 0x0A


def prepare(t, seed, hash_bits=HASH_BITS):
    """Makes empty arrays ready. Fewer hash bits force collisions, for tests."""
    digest = hashlib.blake2b(int(seed).to_bytes(8, "little"), digest_size=8 * K_MASK).digest()
    t.keys[:K_MASK] = np.frombuffer(digest, np.int64)
    t.keys[K_MASK] = (1 << hash_bits) - 1
    buckets = min(FIRST_BUCKETS, len(t.head))
    t.counters[T_BUCKETS] = buckets
    t.counters[T_BUCKET_MASK] = (1 << (buckets - 1).bit_length()) - 1
    t.counters[T_TEXT_TOP] = 1


# Lookup -------------------------------------------------------------------------------------------------------------


@inlined
def bucket_of(t, hash_):
    """By the power of two above the number of buckets; by the one below for buckets that are not there yet."""
    mask = t.counters[T_BUCKET_MASK]
    bucket = hash_ & mask
    return bucket if bucket < t.counters[T_BUCKETS] else bucket & (mask >> 1)


@inlined
def _has_text(t, id_, data, start, end):
    place = np.int64(t.term[id_ * TERM + N_PLACE])
    if t.words[place * GRANULE_WORDS] != end - start:
        return False
    return equal(data, start, t.text, place * GRANULE + LENGTH_BYTES, end - start)


@kernel
def find(t, data, start, end, hash_):
    """The term's id, or 0."""
    id_ = np.int64(t.head[bucket_of(t, hash_)])
    while id_ != 0:
        if t.term[id_ * TERM + N_HASH] == hash_ and _has_text(t, id_, data, start, end):
            return id_
        id_ = np.int64(t.term[id_ * TERM + N_NEXT])
    return id_


@inlined
def text_of(t, id_):
    """Where in `text` the term begins, and its length."""
    place = np.int64(t.term[id_ * TERM + N_PLACE])
    return place * GRANULE + LENGTH_BYTES, np.int64(t.words[place * GRANULE_WORDS])


# Uses ---------------------------------------------------------------------------------------------------------------


@kernel
def intern(t, data, start, end, hash_):
    """The term's id, a new one if need be, without a use: pending if it has none. Or a negative status."""
    id_ = find(t, data, start, end, hash_)
    return id_ if id_ != 0 else add(t, data, start, end, hash_)


@kernel
def acquire(t, data, start, end, hash_):
    """The term's id, a new one if need be, with one more use. Or a negative status."""
    id_ = intern(t, data, start, end, hash_)
    if id_ > 0:
        retain(t, id_)
    return id_


@inlined
def retain(t, id_):
    """One more use."""
    at = id_ * TERM + N_USES
    if t.term[at] < USES_MAX:
        t.term[at] += ONE_USE


@inlined
def release(t, id_):
    """One use less; after the last one the id is pending."""
    at = id_ * TERM + N_USES
    uses = t.term[at]
    if uses < USES_MAX:
        uses -= ONE_USE
        if uses == 0:
            uses = IS_PENDING
            _note_pending(t, id_)
        t.term[at] = uses


@inlined
def uses_of(t, id_):
    """How many uses the id has."""
    return t.term[id_ * TERM + N_USES] >> 1


@kernel
def collect(t):
    """Frees the pending ids that still have no use: how many."""
    freed = 0
    count = t.counters[T_PENDING]
    for index in range(count):
        if index + 2 * GROUP < count:
            prefetch(t.term, np.int64(t.pending[index + 2 * GROUP]) * TERM)
            prefetch(t.head, bucket_of(t, np.int64(t.term[np.int64(t.pending[index + GROUP]) * TERM + N_HASH])))
        id_ = np.int64(t.pending[index])
        uses = t.term[id_ * TERM + N_USES]
        t.term[id_ * TERM + N_USES] = uses & ~IS_PENDING
        if uses == IS_PENDING:
            _drop(t, id_)
            freed += 1
    t.counters[T_PENDING] = 0
    return freed


@inlined
def _note_pending(t, id_):
    pending = t.counters[T_PENDING]
    t.pending[pending] = id_
    t.counters[T_PENDING] = pending + 1


@kernel
def add(t, data, start, end, hash_):
    """A new id, pending, for a term that has none. Or a negative status."""
    id_ = t.counters[T_FREE]
    if id_ == 0:
        id_ = t.counters[T_TOP] + 1
        if id_ >= len(t.pending):
            return np.int64(TERMS_FULL)
    length = end - start
    if length > LONGEST_TERM:
        return np.int64(TERM_TOO_LONG)
    place = _allocate(t, length)
    if place == 0:
        return np.int64(TEXT_FULL)
    if id_ > t.counters[T_TOP]:
        t.counters[T_TOP] = id_
    else:
        t.counters[T_FREE] = t.term[id_ * TERM + N_NEXT]
    t.words[place * GRANULE_WORDS] = length
    copy(t.text, place * GRANULE + LENGTH_BYTES, data, start, length)
    t.counters[T_COUNT] += 1
    if t.counters[T_COUNT] > t.counters[T_BUCKETS] and t.counters[T_BUCKETS] < len(t.head):
        _split(t)
    base, bucket = id_ * TERM, bucket_of(t, hash_)
    t.term[base + N_NEXT] = t.head[bucket]
    t.term[base + N_HASH] = hash_
    t.term[base + N_PLACE] = place
    t.term[base + N_USES] = IS_PENDING
    t.head[bucket] = id_
    _note_pending(t, id_)
    return id_


@kernel
def _split(t):
    """One more bucket, which takes its share of the bucket that stood for it so far."""
    new, mask = t.counters[T_BUCKETS], t.counters[T_BUCKET_MASK]
    if new > mask:
        mask = 2 * mask + 1
        t.counters[T_BUCKET_MASK] = mask
    t.counters[T_BUCKETS] = new + 1
    old = new & (mask >> 1)
    prefetch(t.term, np.int64(t.head[(old + SPLITS_AHEAD) & (mask >> 1)]) * TERM)
    id_ = np.int64(t.head[old])
    stays, goes = np.int64(0), np.int64(0)
    while id_ != 0:
        base = id_ * TERM
        after = np.int64(t.term[base + N_NEXT])
        if t.term[base + N_HASH] & mask == new:
            t.term[base + N_NEXT] = goes
            goes = id_
        else:
            t.term[base + N_NEXT] = stays
            stays = id_
        id_ = after
    t.head[old], t.head[new] = stays, goes


@kernel
def _drop(t, id_):
    """Takes a term out; its id and its block are free."""
    base = id_ * TERM
    after = t.term[base + N_NEXT]
    bucket = bucket_of(t, np.int64(t.term[base + N_HASH]))
    before = np.int64(t.head[bucket])
    if before == id_:
        t.head[bucket] = after
    else:
        while t.term[before * TERM + N_NEXT] != id_:
            before = np.int64(t.term[before * TERM + N_NEXT])
        t.term[before * TERM + N_NEXT] = after
    _free(t, np.int64(t.term[base + N_PLACE]))
    t.term[base + N_PLACE] = 0
    t.term[base + N_NEXT] = t.counters[T_FREE]
    t.counters[T_FREE] = id_
    t.counters[T_COUNT] -= 1


# Blocks -------------------------------------------------------------------------------------------------------------


@inlined
def _class_of(granules):
    """The size class, and how many granules its blocks have: 1 to 8, then four sizes to a power of two."""
    shift = 0
    while (granules - 1) >> shift >= 8:
        shift += 1
    quarter = (granules - 1) >> shift
    return 4 * shift + quarter, (quarter + 1) << shift


@kernel
def _allocate(t, length):
    """A block for a length and a text: its first granule, or 0 when there is no room."""
    size_class, granules = _class_of((length + LENGTH_BYTES + GRANULE - 1) // GRANULE)
    place = np.int64(t.free_text[size_class])
    if place != 0:
        t.free_text[size_class] = t.words[place * GRANULE_WORDS]
    else:
        place = t.counters[T_TEXT_TOP]
        if (place + granules) * GRANULE > len(t.text):
            return np.int64(0)
        t.counters[T_TEXT_TOP] = place + granules
    t.counters[T_TEXT_USED] += granules
    return place


@kernel
def _free(t, place):
    length = np.int64(t.words[place * GRANULE_WORDS])
    size_class, granules = _class_of((length + LENGTH_BYTES + GRANULE - 1) // GRANULE)
    t.words[place * GRANULE_WORDS] = t.free_text[size_class]
    t.free_text[size_class] = place
    t.counters[T_TEXT_USED] -= granules


# Rows and deltas, in bulk -------------------------------------------------------------------------------------------


@kernel
def ask_rows(t, data, rows, first, last):
    """Notes the hashes of these rows' subjects and objects, and has what looking them up will read brought near."""
    for base in range(first * ROW, last * ROW, ROW):
        if rows[base + R_KIND] == ADD or rows[base + R_KIND] == DELETE:
            for part in range(PARTS):
                start, end = _text_at(rows, base, part)
                rows[base + R_SUBJECT_HASH + part * HASH_STEP] = hash_bytes(t.keys, data, start, end)
    _fetch(t, rows, first, last)


@kernel
def find_rows(t, data, rows, count):
    """Notes the hashes of subjects and objects, and the ids of those that are there; 0 for the others."""
    for first in range(0, count, GROUP):
        last = min(first + GROUP, count)
        ask_rows(t, data, rows, first, last)
        for base in range(first * ROW, last * ROW, ROW):
            if rows[base + R_KIND] == ADD or rows[base + R_KIND] == DELETE:
                for part in range(PARTS):
                    start, end = _text_at(rows, base, part)
                    hash_ = np.int64(rows[base + R_SUBJECT_HASH + part * HASH_STEP])
                    rows[base + R_SUBJECT_ID + part * ID_STEP] = find(t, data, start, end, hash_)


@kernel
def intern_rows(t, data, rows, first, count):
    """Completes the ids after `find_rows`: an added row's terms are interned, a deleted row's may have come meanwhile.

    New ids are pending: what retains them must do so before `collect`. Returns the row reached: less than `count` when
    a capacity is exhausted, the status then being in the row's id.
    """
    for row in range(first, count):
        if (row - first) % GROUP == 0:
            _fetch(t, rows, row, min(row + GROUP, count))
        base = row * ROW
        kind = rows[base + R_KIND]
        if kind == ADD or kind == DELETE:
            for part in range(PARTS):
                id_at = base + R_SUBJECT_ID + part * ID_STEP
                if rows[id_at] <= 0:
                    start, end = _text_at(rows, base, part)
                    hash_ = np.int64(rows[base + R_SUBJECT_HASH + part * HASH_STEP])
                    id_ = find(t, data, start, end, hash_)
                    if id_ == 0 and kind == ADD:
                        id_ = add(t, data, start, end, hash_)
                    rows[id_at] = id_
                    if id_ < 0:
                        return row
    return count


@inlined
def _text_at(rows, base, part):
    at = base + R_SUBJECT + part * TEXT_STEP
    return np.int64(rows[at]), np.int64(rows[at + 1])


@kernel
def _fetch(t, rows, first, last):
    """Asks for the memory that looking these rows' terms up will read, step by step: buckets, their first terms, the
    second ones where the first are others, and texts.
    """
    for step in range(4):
        for base in range(first * ROW, last * ROW, ROW):
            for part in range(PARTS):
                hash_ = np.int64(rows[base + R_SUBJECT_HASH + part * HASH_STEP])
                bucket = bucket_of(t, hash_)
                if step == 0:
                    prefetch(t.head, bucket)
                    continue
                at = np.int64(t.head[bucket]) * TERM
                if step == 1:
                    prefetch(t.term, at)
                    continue
                if t.term[at + N_HASH] != hash_:
                    at = np.int64(t.term[at + N_NEXT]) * TERM
                    if step == 2:
                        prefetch(t.term, at)
                if step == 3:
                    words = np.int64(t.term[at + N_PLACE]) * GRANULE_WORDS
                    prefetch(t.words, words)
                    prefetch(t.words, words + LINE_WORDS)


@kernel
def intern_predicates(t, data, rows, first, count):
    """The same for predicates, for streams in which a predicate variable wants their ids."""
    for row in range(first, count):
        base = row * ROW
        kind = rows[base + R_KIND]
        if kind == ADD or kind == DELETE:
            start, end = np.int64(rows[base + R_PREDICATE]), np.int64(rows[base + R_PREDICATE + 1])
            hash_ = hash_bytes(t.keys, data, start, end)
            id_ = intern(t, data, start, end, hash_) if kind == ADD else find(t, data, start, end, hash_)
            rows[base + R_PREDICATE_ID] = id_
            if id_ < 0:
                return row
    return count


@kernel
def write_rows(t, messages, first, count, out, end):
    """Writes messages as rows of RDF Patch, from one on, while they fit; gives the one it came to."""
    at = np.int64(0)
    for message in range(first, count):
        size = np.int64(PATCH_BYTES)
        for place in range(M_S, M_O + 1):
            size += text_of(t, np.int64(messages[message * MESSAGE + place]))[1]
        if at + size > len(out):
            end[0] = at
            return message
        out[at] = LETTER_A if messages[message * MESSAGE + M_OP] > 0 else LETTER_D
        out[at + 1] = SPACE
        at += 2
        for place in range(M_S, M_O + 1):
            start, length = text_of(t, np.int64(messages[message * MESSAGE + place]))
            copy(out, at, t.text, start, length)
            out[at + length] = SPACE
            at += length + 1
        out[at], out[at + 1] = DOT, LINE_END
        at += 2
    end[0] = at
    return count


@kernel
def copy_texts(t, ids, first, count, out, ends):
    """Copies the texts of `ids[first:count]` one behind the other to `out`, and where each ends to `ends`.

    Returns the index reached: less than `count` when `out` is full.
    """
    at = np.int64(0)
    for index in range(first, count):
        start, length = text_of(t, np.int64(ids[index]))
        if at + length > len(out):
            return index
        copy(out, at, t.text, start, length)
        at += length
        ends[index - first] = at
    return count
