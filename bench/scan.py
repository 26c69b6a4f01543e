"""How fast rows are read: `scan` on RDF Patch and N-Triples, beside pyoxigraph's parser on the same N-Triples.

    python bench/scan.py [--rows 300000] [--repeat 5]

The rows are made here from a fixed seed: a third of the objects are literals, terms repeat as in a social network. The
parsers take turns, so that a busy moment of the machine hits all of them; the figures are the best and the median.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import pyoxigraph

from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.source import CHUNK_BYTES


def main() -> None:
    """Prints a line for each parser."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=300_000)
    options.add_argument("--repeat", type=int, default=5)
    arguments = options.parse_args()
    triples = make_triples(arguments.rows, random.Random(1))
    ops = random.Random(2).choices("AAD", k=len(triples))
    patch = "".join(f"{op} {triple}\n" for op, triple in zip(ops, triples, strict=True)).encode()
    plain = "".join(f"{triple}\n" for triple in triples).encode()
    contenders: dict[str, tuple[bytes, Callable[[bytes], int]]] = {
        "scan, RDF Patch": (patch, lambda data: count_events(data, Syntax.PATCH)),
        "scan, N-Triples": (plain, lambda data: count_events(data, Syntax.NTRIPLES)),
        "scan and make terms": (plain, count_terms),
        "pyoxigraph.parse": (plain, count_parsed),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(arguments.repeat):
        for name, (data, count) in contenders.items():
            started = time.process_time()
            counted = count(data)
            seconds[name].append(time.process_time() - started)
            assert counted == arguments.rows, f"{name}: {counted} rows"
    print(f"{arguments.rows:,} rows of {len(plain) / arguments.rows:.0f} bytes, {arguments.repeat} runs, CPU time")
    for name, (data, _) in contenders.items():
        best, median = min(seconds[name]), statistics.median(seconds[name])
        rates = " … ".join(f"{arguments.rows / s / 1e6:5.2f}" for s in (median, best))
        print(f"{name:22} {rates} million rows/s {len(data) / best / 1e6:7.0f} MB/s")


def make_triples(count: int, rng: random.Random) -> list[str]:
    """N-Triples rows of about 100 bytes."""
    people = [f"<http://example.org/person/{rng.randrange(10**9)}>" for _ in range(max(count // 6, 1))]
    predicates = [f"<http://example.org/vocabulary#p{number}>" for number in range(20)]
    rows = []
    for _ in range(count):
        target = rng.choice(people) if rng.random() < 0.67 else f'"some label {rng.randrange(10**6)}"@en'
        rows.append(f"{rng.choice(people)} {rng.choice(predicates)} {target} .")
    return rows


def chunks(data: bytes) -> list[bytes]:
    """The data cut after whole lines, as a source gives it."""
    parts, start = [], 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + CHUNK_BYTES) + 1 or len(data)
        parts.append(data[start:end])
        start = end
    return parts


def count_events(data: bytes, syntax: Syntax) -> int:
    """Rows that `scan` reads."""
    return sum(len(scan(part, "bench", 1, syntax).events) for part in chunks(data))


def count_terms(data: bytes) -> int:
    """Rows that `scan` reads, with their terms as objects."""
    count = 0
    for part in chunks(data):
        for event in scan(part, "bench", 1, Syntax.NTRIPLES).events:
            count += len(event.triple) // 3  # type: ignore[union-attr]
    return count


def count_parsed(data: bytes) -> int:
    """Rows that pyoxigraph reads, with its terms as objects."""
    return sum(1 for _ in pyoxigraph.parse(data, pyoxigraph.RdfFormat.N_TRIPLES))


if __name__ == "__main__":
    main()
