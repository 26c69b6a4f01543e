"""How fast a router turns text into packed splits, beside the scanner alone.

    python bench/route.py [--lines 1000000] [--repeat 5] [--chunk 4194304]

Lines of about 127 bytes, seeded. *few match*: one line in a hundred has a predicate of the query; *star*: every line
matches a pattern of a star, whose centre has all shares; *triangle*: every line goes to several cells of a grid;
*constant*: terms have to be looked up. CPU time after a first round, best of the others; the contenders take turns.
"""

from __future__ import annotations

import argparse
import platform
import random
import time
from collections.abc import Callable

import numpy as np

from deltastar import scan_layout as scanned
from deltastar.kernel import scan
from deltastar.machine import Machine
from deltastar.plan.decompose import make_plan
from deltastar.query.parse import parse_query
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.router import Router

STAR = "SELECT * { ?x <http://example.org/predicate/p> ?y ; <http://example.org/predicate/q> ?z }"
TRIANGLE = """SELECT * { ?a <http://example.org/predicate/p> ?b . ?b <http://example.org/predicate/p> ?c .
              ?c <http://example.org/predicate/q> ?a }"""
CONSTANT = """SELECT * { ?x <http://example.org/predicate/p> <http://example.org/people/somebody/number/7> ;
              <http://example.org/predicate/q> ?y }"""


def lines(count: int, matching: float) -> bytes:
    """A stream."""
    rng = random.Random(20260131)
    names = [f"http://example.org/people/somebody/number/{number}" for number in range(200_000)]
    rows = []
    for _ in range(count):
        predicate = rng.choice("pq") if rng.random() < matching else rng.choice(("other", "more"))
        op = "A" if rng.random() < 0.7 else "D"
        rows.append(f"{op} <{rng.choice(names)}> <http://example.org/predicate/{predicate}> <{rng.choice(names)}> .\n")
    return "".join(rows).encode()


def chunks(data: bytes, size: int) -> list[bytes]:
    """Whole lines."""
    parts = []
    while data:
        end = data.rfind(b"\n", 0, size) + 1 if len(data) > size else len(data)
        parts.append(data[:end])
        data = data[end:]
    return parts


def scanner(query: str) -> Callable[[bytes], object]:
    """The scanner alone, with the predicates of a query registered."""
    machine = Machine()
    machine.add(make_plan(parse_query(query)))
    rows = np.zeros(4096 * scanned.ROW, np.int32)
    cursor = np.zeros(scanned.CURSOR, np.int64)

    def run(part: bytes) -> None:
        data = np.frombuffer(bytearray(part), np.uint8)
        cursor[:] = 0
        while cursor[scanned.S_AT] < len(data):
            scan.scan_rows(data, len(data), scanned.PATCH, machine.terms.keys, machine.predicates, cursor, rows)

    return run


def router(query: str, shards: int) -> Callable[[bytes], object]:
    """A router for a query."""
    made = Router({"query": query}, shards)
    return lambda part: made.route(part, Syntax.PATCH, "bench")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--chunk", type=int, default=4 << 20)
    options = parser.parse_args()
    few, all_ = (chunks(lines(options.lines, share), options.chunk) for share in (0.01, 1.0))
    contenders = {
        "scanner, few match": (scanner(STAR), few),
        "scanner, all match": (scanner(STAR), all_),
        "few match, 2 shards": (router(STAR, 2), few),
        "star, 2 shards": (router(STAR, 2), all_),
        "star, 8 shards": (router(STAR, 8), all_),
        "triangle, 8 shards": (router(TRIANGLE, 8), all_),
        "constant, 2 shards": (router(CONSTANT, 2), all_),
    }
    best = dict.fromkeys(contenders, float("inf"))
    for turn in range(options.repeat + 1):
        for name, (run, parts) in contenders.items():
            started = time.process_time()
            for part in parts:
                run(part)
            if turn:
                best[name] = min(best[name], time.process_time() - started)
    print(f"{platform.machine()}, {options.lines:,} lines of {sum(map(len, all_)) / options.lines:.0f} bytes")
    for name, elapsed_s in best.items():
        print(f"{name:24} {options.lines / elapsed_s / 1e6:6.2f} million lines/s")


if __name__ == "__main__":
    main()
