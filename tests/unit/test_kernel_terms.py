"""The term dictionary against a Python dict: random uses, forced collisions, growth, recycling, long texts."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from deltastar.kernel import terms as kernel
from deltastar.kernel import text
from deltastar.kernel.jit import IS_COMPILED
from deltastar.scan_layout import (
    ADD,
    DELETE,
    GRANULE,
    HASH_BITS,
    KEYS,
    N_USES,
    PATCH,
    R_KIND,
    R_OBJECT_ID,
    R_PREDICATE_ID,
    R_SUBJECT_ID,
    ROW,
    T_BUCKETS,
    T_COUNT,
    T_COUNTERS,
    T_PENDING,
    T_TEXT_TOP,
    T_TEXT_USED,
    T_TOP,
    TERM,
    TERMS_FULL,
    TEXT_CLASSES,
    TEXT_FULL,
    USES_MAX,
    TermArrays,
)
from tests.unit.test_kernel_scan import scan_all

SCALE = 1 if IS_COMPILED else 20
"""Without the compiler everything takes a hundred times as long: fewer steps then."""


def make(terms: int = 1000, text_bytes: int = 1 << 20, buckets: int = 0, seed: int = 7, bits: int = HASH_BITS):
    texts = np.zeros(text_bytes, np.uint8)
    arrays = TermArrays(
        counters=np.zeros(T_COUNTERS, np.int64),
        keys=np.zeros(KEYS, np.int64),
        head=np.zeros(buckets or terms, np.int32),
        term=np.zeros((terms + 1) * TERM, np.int32),
        pending=np.zeros(terms + 1, np.int32),
        free_text=np.zeros(TEXT_CLASSES, np.int32),
        text=texts,
        words=texts.view(np.int32),
    )
    kernel.prepare(arrays, seed, bits)
    return arrays


def as_array(term: bytes):
    """With its neighbours, as in a chunk: a term must be read within its bounds only."""
    return np.frombuffer(b"\xff" + term + b"\xee", np.uint8)


def call(function, arrays, term: bytes) -> int:
    data = as_array(term)
    return int(function(arrays, data, 1, 1 + len(term), hash_of(arrays, term)))


def hash_of(arrays, term: bytes) -> int:
    return int(text.hash_bytes(arrays.keys, as_array(term), 1, 1 + len(term)))


def text_of(arrays, id_: int) -> bytes:
    start, length = kernel.text_of(arrays, id_)
    return arrays.text[start : start + length].tobytes()


class Model:
    """What the dictionary should do, with Python's own."""

    def __init__(self, arrays) -> None:
        self.arrays = arrays
        self.id_of: dict[bytes, int] = {}
        self.uses: dict[bytes, int] = {}

    def acquire(self, term: bytes) -> None:
        id_ = call(kernel.acquire, self.arrays, term)
        assert id_ > 0
        assert self.id_of.setdefault(term, id_) == id_
        self.uses[term] = self.uses.get(term, 0) + 1

    def intern(self, term: bytes) -> None:
        id_ = call(kernel.intern, self.arrays, term)
        assert self.id_of.setdefault(term, id_) == id_
        self.uses.setdefault(term, 0)

    def release(self, term: bytes) -> None:
        if self.uses.get(term):
            kernel.release(self.arrays, self.id_of[term])
            self.uses[term] -= 1

    def find(self, term: bytes) -> None:
        assert call(kernel.find, self.arrays, term) == self.id_of.get(term, 0)

    def collect(self) -> None:
        unused = [term for term, uses in self.uses.items() if uses == 0]
        assert kernel.collect(self.arrays) == len(unused)
        for term in unused:
            del self.uses[term], self.id_of[term]

    def check(self) -> None:
        assert len(set(self.id_of.values())) == len(self.id_of) == self.arrays.counters[T_COUNT]
        for term, id_ in self.id_of.items():
            assert text_of(self.arrays, id_) == term
            assert call(kernel.find, self.arrays, term) == id_
            assert kernel.uses_of(self.arrays, id_) == self.uses[term]


@pytest.mark.parametrize("bits", [0, 1, 4, HASH_BITS])
@pytest.mark.parametrize("buckets", [1, 3, 64, 0])
def test_it_does_what_a_dict_does(bits: int, buckets: int) -> None:
    rng = random.Random(bits * 100 + buckets)
    model = Model(make(terms=400, buckets=buckets, bits=bits))
    terms = [bytes(rng.choices(b"ab", k=rng.choice((1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 70)))) for _ in range(300)]
    for step in range(4000 // SCALE):
        action = rng.choices((model.acquire, model.release, model.find, model.intern), (4, 5, 1, 1))[0]
        action(rng.choice(terms))
        if step % 97 == 0:
            model.collect()
            model.check()
    model.check()


def test_it_grows_from_nothing_to_many_and_gives_everything_back() -> None:
    count = 100_000 // (SCALE * SCALE)
    arrays = make(terms=count, text_bytes=64 * count)
    model = Model(arrays)
    used = 0
    for round_ in range(3):
        terms = [f"<http://ex/{round_}/{number}>".encode() for number in range(count)]
        for term in terms:
            model.acquire(term)
        model.check()
        used = used or int(arrays.counters[T_TEXT_TOP])
        for term in terms:
            model.release(term)
        model.collect()
        assert arrays.counters[T_COUNT] == arrays.counters[T_TEXT_USED] == arrays.counters[T_PENDING] == 0
    assert arrays.counters[T_TOP] == count
    assert arrays.counters[T_TEXT_TOP] == used
    assert arrays.counters[T_BUCKETS] <= max(count, 1024)


def test_a_sliding_window_of_terms_takes_the_space_of_the_window() -> None:
    arrays = make(terms=300, text_bytes=100_000)
    model = Model(arrays)
    rng = random.Random(5)
    window: list[bytes] = []
    for number in range(5000 // SCALE):
        window.append(b"<http://ex/%d/%s>" % (number, b"x" * rng.randrange(200)))
        model.acquire(window[-1])
        if len(window) > 200:
            model.release(window.pop(0))
        if number % 10 == 0:
            model.collect()
    assert arrays.counters[T_TOP] <= 220
    model.check()


def test_a_pending_id_stays_readable_and_may_come_back() -> None:
    arrays = make()
    first = call(kernel.acquire, arrays, b"<a:a>")
    second = call(kernel.acquire, arrays, b"<a:b>")
    for id_ in (first, second):
        kernel.release(arrays, id_)
    assert (text_of(arrays, first), text_of(arrays, second)) == (b"<a:a>", b"<a:b>")
    assert call(kernel.acquire, arrays, b"<a:b>") == second
    assert kernel.collect(arrays) == 1
    assert call(kernel.find, arrays, b"<a:a>") == 0
    assert call(kernel.find, arrays, b"<a:b>") == second
    kernel.release(arrays, second)
    kernel.retain(arrays, second)
    kernel.release(arrays, second)
    assert arrays.counters[T_PENDING] == 1
    assert kernel.collect(arrays) == 1
    assert call(kernel.acquire, arrays, b"<a:c>") in (first, second)


def test_exhausted_capacities_are_told_and_change_nothing() -> None:
    arrays = make(terms=2)
    ids = [call(kernel.acquire, arrays, b"<a:%d>" % number) for number in range(4)]
    assert ids == [1, 2, TERMS_FULL, TERMS_FULL]
    arrays = make(text_bytes=32)
    assert call(kernel.acquire, arrays, b"a" * 21) == TEXT_FULL
    assert call(kernel.acquire, arrays, b"a" * 20) == 1
    assert call(kernel.acquire, arrays, b"b") == TEXT_FULL
    assert call(kernel.acquire, arrays, b"a" * 20) == 1
    assert arrays.counters[T_COUNT] == arrays.counters[T_TOP] == 1


def test_a_count_that_reached_its_limit_stays() -> None:
    arrays = make()
    id_ = call(kernel.acquire, arrays, b"<a:a>")
    arrays.term[id_ * TERM + N_USES] = USES_MAX
    kernel.retain(arrays, id_)
    for _ in range(3):
        kernel.release(arrays, id_)
    assert arrays.term[id_ * TERM + N_USES] == USES_MAX
    assert kernel.collect(arrays) == 0


@pytest.mark.parametrize("length", [1, 3, 4, 5, 12, 13, 60, 61, 1000, 1 << 16, (1 << 22) + 5])
def test_texts_of_any_length(length: int) -> None:
    arrays = make(text_bytes=4 * length + 4096)
    ids = [call(kernel.acquire, arrays, byte * length + b"!") for byte in (b"a", b"b")]
    assert [text_of(arrays, id_) for id_ in ids] == [b"a" * length + b"!", b"b" * length + b"!"]
    granules = int(arrays.counters[T_TEXT_USED])
    assert 2 * (length + 5) <= granules * GRANULE <= 2 * ((length + 5) * 5 // 4 + 2 * GRANULE)
    kernel.release(arrays, ids[0])
    assert kernel.collect(arrays) == 1
    top = arrays.counters[T_TEXT_TOP]
    assert call(kernel.acquire, arrays, b"c" * length + b"?") == ids[0]
    assert arrays.counters[T_TEXT_TOP] == top


def test_a_hash_hangs_on_every_byte_on_the_length_and_on_the_seed() -> None:
    arrays, other = make(seed=1), make(seed=2)
    seen = set()
    for length in range(70):
        base = bytes(length)
        seen.add(hash_of(arrays, base))
        seen.update(hash_of(arrays, base[:at] + b"\x80" + base[at + 1 :]) for at in range(length))
    assert len(seen) >= 70 + 70 * 69 // 2 - 2  # a collision or two of 31 bits are luck
    assert sum(hash_of(arrays, b"x" * n) == hash_of(other, b"x" * n) for n in range(70)) <= 1


@pytest.mark.skipif(not IS_COMPILED, reason="takes long without the compiler, and says the same")
def test_each_bit_of_a_text_turns_half_of_the_hash() -> None:
    arrays = make()
    rng = random.Random(3)
    for length in (1, 4, 8, 13, 16, 24, 40):
        turned = np.zeros((length * 8, HASH_BITS))
        for _ in range(200):
            term = bytearray(rng.randbytes(length))
            base = hash_of(arrays, bytes(term))
            for bit in range(length * 8):
                term[bit // 8] ^= 1 << bit % 8
                difference = base ^ hash_of(arrays, bytes(term))
                turned[bit] += [difference >> place & 1 for place in range(HASH_BITS)]
                term[bit // 8] ^= 1 << bit % 8
        assert 0.3 < turned.min() / 200 < turned.max() / 200 < 0.7


ROWS = b"""A <a:s> <a:p> <a:o> .
D <a:x> <a:p> <a:s> .
A <a:o> <a:q> "text" .
D <a:s> <a:p> "text" .
D <a:s> <a:p> "none" .
A <a:dropped> <a:p> <a:dropped> .
"""


@pytest.mark.parametrize("bits", [0, HASH_BITS])
def test_rows_get_ids_in_bulk(bits: int) -> None:
    arrays = make(bits=bits)
    known = call(kernel.acquire, arrays, b"<a:s>")
    data = np.frombuffer(ROWS, np.uint8)
    rows = scan_all(ROWS, PATCH).reshape(-1)
    rows[5 * ROW + R_KIND] = 0
    kernel.find_rows(arrays, data, rows, 6)
    table = rows.reshape(-1, ROW)
    assert table[:, R_SUBJECT_ID].tolist() == [known, 0, 0, known, known, 0]
    assert kernel.intern_rows(arrays, data, rows, 0, 6) == 6
    o, literal = call(kernel.find, arrays, b"<a:o>"), call(kernel.find, arrays, b'"text"')
    assert 0 < o != literal > 0
    assert table[:, R_SUBJECT_ID].tolist() == [known, 0, o, known, known, 0]
    assert table[:, R_OBJECT_ID].tolist() == [o, known, literal, literal, 0, 0]
    assert call(kernel.find, arrays, b"<a:dropped>") == 0
    assert kernel.intern_predicates(arrays, data, rows, 0, 6) == 6
    p, q = call(kernel.find, arrays, b"<a:p>"), call(kernel.find, arrays, b"<a:q>")
    assert table[:, R_PREDICATE_ID].tolist() == [p, p, q, p, p, 0]
    assert kernel.collect(arrays) == 4
    assert set(table[:5, R_KIND].tolist()) == {ADD, DELETE}


def test_interning_rows_stops_where_a_capacity_ends() -> None:
    arrays = make(terms=3)
    data = np.frombuffer(ROWS, np.uint8)
    rows = scan_all(ROWS, PATCH).reshape(-1)
    kernel.find_rows(arrays, data, rows, 6)
    assert kernel.intern_rows(arrays, data, rows, 0, 6) == 5
    assert rows[5 * ROW + R_SUBJECT_ID] == TERMS_FULL


def test_texts_are_copied_in_bulk() -> None:
    arrays = make()
    terms = [b"<a:s>", b"_:b", b'"' + b"x" * 100 + b'"']
    ids = np.array([call(kernel.acquire, arrays, term) for term in terms] * 2, np.int32)
    out, ends = np.zeros(130, np.uint8), np.zeros(6, np.int64)
    assert kernel.copy_texts(arrays, ids, 0, 6, out, ends) == 5
    assert ends[:5].tolist() == [5, 8, 110, 115, 118]
    assert out[:118].tobytes() == b"".join([*terms, *terms[:2]])
    assert kernel.copy_texts(arrays, ids, 5, 6, out, ends) == 6
    assert out[: ends[0]].tobytes() == terms[2]


@pytest.mark.slow
@pytest.mark.skipif(not IS_COMPILED, reason="this is such a run")
@pytest.mark.parametrize("switch", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
@pytest.mark.parametrize("module", ["test_kernel_terms.py", "test_kernel_scan.py", "test_kernel_encode.py"])
def test_all_again_without_the_compiler_and_with_bounds_checks(switch: str, module: str, tmp_path) -> None:
    environment = {**os.environ, switch: "1", "DELTASTAR_CACHE": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
    here = os.path.dirname(__file__)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-n", "0"]
    done = subprocess.run([*command, os.path.join(here, module)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
