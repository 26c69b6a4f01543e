"""How many deltas per second the sinks write, and `deltastar answers` adds up.

    python bench/sink.py [DELTAS]

Two variables a binding, terms that repeat, seeded. Deltas are made just before they are written, as an engine does, and
only the writing counts; best of three, one process, CPU time, because other processes come and go. The last column is
`accumulate` on what was written, where most rows come up twice: added, and later removed.
"""

from __future__ import annotations

import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator

from deltastar.answers import accumulate
from deltastar.delta import Binding, Delta
from deltastar.rdf.terms import IRI
from deltastar.sink import open_sink

VARIABLES = {"triangle": ("a", "b")}
POSITIONS = {"a": 0, "b": 1}
BATCH = 4096
PEOPLE = (2_000, 20_000)


def batches(count: int, people: int) -> Iterator[list[Delta]]:
    """Additions and removals of earlier rows, as many as asked for."""
    rng = random.Random(20260131)
    terms = [IRI(f"http://example.org/person/{number}") for number in range(people)]
    there: list[tuple[IRI, IRI]] = []
    for start in range(1, count + 1, BATCH):
        batch = []
        for seq in range(start, min(start + BATCH, count + 1)):
            if there and rng.random() < 0.4:
                place = rng.randrange(len(there))
                there[place], there[-1] = there[-1], there[place]
                batch.append(Delta("triangle", seq, "-", Binding(POSITIONS, there.pop())))
            else:
                there.append((rng.choice(terms), rng.choice(terms)))
                batch.append(Delta("triangle", seq, "+", Binding(POSITIONS, there[-1])))
        yield batch


def write_seconds(path: str, count: int, people: int) -> float:
    """CPU seconds in the sink, its flush included."""
    seconds = 0.0
    sink = open_sink(path, None, VARIABLES)
    for batch in batches(count, people):
        start = time.process_time()
        sink.write(batch)
        seconds += time.process_time() - start
    start = time.process_time()
    sink.close()
    return seconds + time.process_time() - start


def accumulate_seconds(path: str) -> float:
    """CPU seconds to add the deltas up."""
    start = time.process_time()
    accumulate(path)
    return time.process_time() - start


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    print(f"{count:,} deltas, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as directory:
        for people in PEOPLE:
            for extension in ("jsonl", "csv", "tsv", "parquet"):
                path = os.path.join(directory, f"{people}.{extension}")
                written = count / min(write_seconds(path, count, people) for _ in range(3))
                read = count / min(accumulate_seconds(path) for _ in range(3))
                name = f"{extension}, {people:,} terms"
                print(f"{name:22} write {written / 1e3:6,.0f} k/s   add up {read / 1e3:6,.0f} k/s")


if __name__ == "__main__":
    main()
