"""How many deltas per second the sinks write, and `deltastar answers` adds up.

    python bench/sink.py [DELTAS]

Two variables a binding, terms that repeat (20,000 distinct), seeded; best of three, one process. The last column is
`accumulate` on what was written.
"""

from __future__ import annotations

import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable

from deltastar.answers import accumulate
from deltastar.delta import Delta
from deltastar.rdf.terms import IRI
from deltastar.sink import open_sink

VARIABLES = {"triangle": ("a", "b")}


def make_deltas(count: int) -> list[Delta]:
    """Additions, each half the time followed by the removal of an earlier row."""
    rng = random.Random(20260131)
    people = [IRI(f"http://example.org/person/{number}") for number in range(20_000)]
    there: list[dict[str, IRI]] = []
    deltas = []
    for seq in range(1, count + 1):
        if there and rng.random() < 0.4:
            place = rng.randrange(len(there))
            there[place], there[-1] = there[-1], there[place]
            deltas.append(Delta("triangle", seq, "-", there.pop()))
        else:
            there.append({"a": rng.choice(people), "b": rng.choice(people)})
            deltas.append(Delta("triangle", seq, "+", there[-1]))
    return deltas


def best_seconds(action: Callable[[], object]) -> float:
    """The shortest of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    deltas = make_deltas(count)
    print(f"{count:,} deltas, Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as directory:
        for name in ("deltas.jsonl", "deltas.csv", "deltas.tsv", "deltas.parquet"):
            path = os.path.join(directory, name)

            def write(path: str = path) -> None:
                with open_sink(path, None, VARIABLES) as sink:
                    sink.write(deltas)

            written = count / best_seconds(write)
            read = count / best_seconds(lambda path=path: accumulate(path))
            print(f"{name:15} write {written / 1e3:7,.0f} k/s   add up {read / 1e3:7,.0f} k/s")


if __name__ == "__main__":
    main()
