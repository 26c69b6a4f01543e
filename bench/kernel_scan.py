"""How fast the compiled scanner and term dictionary are, beside pyoxigraph's parser on the same rows.

    python bench/kernel_scan.py [--rows 500000] [--repeat 5]

The rows are those of `scan.py`, as RDF Patch for the scanner and as N-Triples for pyoxigraph. CPU time, after warm-up;
the contenders take turns, so that a busy moment of the machine hits all of them; the best and the median are shown.
Compile time is that of a process of its own with an empty cache.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyoxigraph
from numpy.typing import NDArray
from scan import make_triples

from deltastar.kernel import scan, terms
from deltastar.kernel.text import hash_bytes
from deltastar.scan_layout import (
    CURSOR,
    ENTRY,
    KEYS,
    P_SETTINGS,
    PATCH,
    ROW,
    S_AT,
    T_COUNT,
    T_COUNTERS,
    TERM,
    TEXT_CLASSES,
    PredicateArrays,
    TermArrays,
)

CHUNK_BYTES = 1 << 20
RECORDS = 1 << 14
PREDICATES = 20


def main() -> None:
    """Prints a line for each contender."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--compile-only", action="store_true", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.compile_only:
        started = time.process_time()
        warm()
        print(f"{time.process_time() - started:.1f}")
        return
    triples = make_triples(arguments.rows, random.Random(1))
    ops = random.Random(2).choices("AAD", k=len(triples))
    patch = "".join(f"{op} {triple}\n" for op, triple in zip(ops, triples, strict=True)).encode()
    plain = "".join(f"{triple}\n" for triple in triples).encode()
    warm()
    measure(arguments, patch, plain)
    print(f"compiling all of it: {compile_seconds()} s of CPU time")


def measure(arguments: argparse.Namespace, patch: bytes, plain: bytes) -> None:
    """Takes the times, in turns."""
    known = make_terms(arguments.rows)
    few, one, every = with_predicates(0), with_predicates(1), with_predicates(PREDICATES)
    contenders: dict[str, Callable[[], int]] = {
        "scan, all dropped": lambda: run(patch, few),
        "scan, 1 in 20 relevant": lambda: run(patch, one),
        "scan, all relevant": lambda: run(patch, every),
        "scan and number, 1 in 20": lambda: run(patch, one, make_terms(arguments.rows)),
        "scan and number, all new": lambda: run(patch, every, make_terms(arguments.rows)),
        "scan and number, all known": lambda: run(patch, every, known),
        "pyoxigraph.parse": lambda: sum(1 for _ in pyoxigraph.parse(plain, pyoxigraph.RdfFormat.N_TRIPLES)),
    }
    run(patch, every, known)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments.repeat):
        for name, contender in contenders.items():
            started = time.process_time()
            contender()
            seconds[name].append(time.process_time() - started)
    slowest = min(seconds["pyoxigraph.parse"])
    print(f"{arguments.rows:,} rows of {len(patch) / arguments.rows:.0f} bytes, {arguments.repeat} runs, CPU time")
    print(f"{'':28} {'million rows/s':>15} {'MB/s':>8} {'ratio':>7}")
    for name in contenders:
        best, median = min(seconds[name]), statistics.median(seconds[name])
        rates = " … ".join(f"{arguments.rows / s / 1e6:5.2f}" for s in (median, best))
        print(f"{name:28} {rates:>15} {len(patch) / best / 1e6:8.0f} {slowest / best:7.1f}")


def run(data: bytes, predicates: PredicateArrays, dictionary: TermArrays | None = None) -> int:
    """Scans chunk by chunk, as a source gives them; numbers the terms of the records."""
    rows, cursor = np.zeros(RECORDS * ROW, np.int32), np.zeros(CURSOR, np.int64)
    count, start = 0, 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + CHUNK_BYTES) + 1 or len(data)
        chunk: NDArray[np.uint8] = np.frombuffer(data, np.uint8, end - start, start)
        start = end
        cursor[S_AT] = 0
        while cursor[S_AT] < len(chunk):
            found = scan.scan_rows(chunk, len(chunk), PATCH, KEY, predicates, cursor, rows)
            if dictionary is not None:
                terms.find_rows(dictionary, chunk, rows, found)
                assert terms.intern_rows(dictionary, chunk, rows, 0, found) == found
            count += found
    return count


def make_terms(rows: int) -> TermArrays:
    """An empty dictionary, on memory that is touched as it is needed."""
    texts = np.zeros(256 * rows, np.uint8)
    dictionary = TermArrays(
        counters=np.zeros(T_COUNTERS, np.int64),
        keys=np.zeros(KEYS, np.int64),
        head=np.zeros(2 * rows, np.int32),
        term=np.zeros((2 * rows + 1) * TERM, np.int32),
        pending=np.zeros(2 * rows + 1, np.int32),
        free_text=np.zeros(TEXT_CLASSES, np.int32),
        text=texts,
        words=texts.view(np.int32),
    )
    terms.prepare(dictionary, 1)
    return dictionary


KEY = make_terms(1).keys


def with_predicates(count: int) -> PredicateArrays:
    """The first few predicates of the stream, and as many that are not in it."""
    predicates = PredicateArrays(
        settings=np.zeros(P_SETTINGS, np.int64),
        slots=np.zeros(1 << 12, np.int32),
        entries=np.zeros(ENTRY << 10, np.int32),
        text=np.zeros(1 << 16, np.uint8),
    )
    for number in range(count):
        register(predicates, f"<http://example.org/vocabulary#p{number}>", number + 1)
    for number in range(PREDICATES):
        register(predicates, f"<http://example.org/elsewhere#p{number}>", number + 1)
    return predicates


def register(predicates: PredicateArrays, predicate: str, number: int) -> None:
    """Enters a predicate."""
    data: NDArray[np.uint8] = np.frombuffer(predicate.encode(), np.uint8)
    scan.set_predicate(predicates, data, 0, len(data), hash_bytes(KEY, data, 0, len(data)), number)


def warm() -> None:
    """Compiles everything that the runs call, and the upkeep of uses."""
    dictionary = make_terms(100)
    rows = "A <http://example.org/s> <http://example.org/vocabulary#p0> <http://example.org/o> .\n" * 3
    run(rows.encode(), with_predicates(1), dictionary)
    assert terms.collect(dictionary) == 2
    assert dictionary.counters[T_COUNT] == 0


def compile_seconds() -> str:
    """What a first run spends on compiling."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "DELTASTAR_CACHE": cache, "NUMBA_CACHE_DIR": str(Path(cache) / "numba")}
        command = [sys.executable, __file__, "--compile-only"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
