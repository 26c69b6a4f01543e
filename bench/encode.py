"""How fast the compiled encoder turns the kernel's output into lines, beside the encoder of `Delta` objects.

    python bench/encode.py [--rows 500000] [--repeat 5]

Two variables a row, seeded; one or two rows a message, as a stream brings them. *plain* is a copy of as many bytes,
in pieces of a line, which nothing can beat; *objects* is `sink/encode.py` on deltas that are there already, so the time
to make them is not in it. CPU time after warm-up, best of the repetitions, the contenders taking turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections.abc import Callable

import numpy as np

from deltastar.machine import OUT_INTS, Machine
from deltastar.rdf.terms import IRI, Literal, Term
from deltastar.sink.columns import ColumnEncoder, deltas
from deltastar.sink.compiled import CompiledEncoder
from deltastar.sink.encode import encoder, utf8
from deltastar.sink.subscribers import Subscription

QUERY = Subscription("triangle", ("a", "b"), 1, (0, 1))
VARIABLES = {QUERY.name: QUERY.variables}
WIDTHS = {QUERY.target: 2}
FORMATS = ("jsonl", "csv", "tsv")
KINDS: dict[str, Callable[[int], Term]] = {
    "IRIs": lambda number: IRI(f"http://example.org/person/{number}"),
    "literals": lambda number: Literal(f"The name of person number {number}", language="en"),
    "long literals": lambda number: Literal(f"line {number}\n" + 'He said "yes", and that was that. ' * 8),
    "Greek literals": lambda number: Literal(f"Το όνομα του προσώπου {number} είναι γνωστό"),
}


def make_output(ids: list[int], rows: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Runs of one or two rows, their end, and the number of each message."""
    rng = random.Random(20260131)
    out: list[int] = []
    message = 0
    while rows > 0:
        size = min(rng.choice((1, 1, 2)), rows)
        out += [QUERY.target, message, rng.choice((1, -1)), size, *rng.choices(ids, k=2 * size)]
        rows -= size
        message += 1
    return np.array(out, np.int32), len(out), np.arange(1, message + 1) * 3


def best(repeat: int, contenders: dict[str, Callable[[], int]]) -> dict[str, tuple[float, int]]:
    """CPU seconds of each, the best of some rounds, and what it returned."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    results = {}
    for _ in range(repeat + 1):
        for name, run in contenders.items():
            started = time.process_time()
            results[name] = run()
            times[name].append(time.process_time() - started)
    return {name: (min(each[1:]), results[name]) for name, each in times.items()}


def measure(kind: str, terms: int, rows: int, repeat: int) -> None:
    """One line a format."""
    machine = Machine()
    make = KINDS[kind]
    ids = [machine.acquire(make(number)) for number in range(terms)]
    out, end, numbers = make_output(ids, rows)
    column_encoder = ColumnEncoder(VARIABLES, WIDTHS)
    column_encoder.add(QUERY)
    columns = column_encoder.flatten(out, end, numbers)
    made = list(deltas(columns, machine.term)) if rows <= 1_000_000 else []
    contenders: dict[str, Callable[[], int]] = {}
    for format in FORMATS:
        compiled = CompiledEncoder(format, VARIABLES, WIDTHS)
        compiled.add(QUERY)
        plain = encoder(format, VARIABLES, False)
        contenders[format] = lambda compiled=compiled: sum(  # type: ignore[misc]
            len(data) for data, _ in compiled.encode(machine.table, out, end, numbers)
        )
        contenders[f"{format}, objects"] = (
            lambda plain=plain: sum(  # type: ignore[misc]
                len(utf8(plain.encode(made[start : start + 8192]))) for start in range(0, len(made), 8192)
            )
        )
    contenders["columns"] = lambda: len(column_encoder.flatten(out, end, numbers)) and 0
    contenders["arrow"] = lambda: sum(batch.num_rows for batch in column_encoder.arrow(machine.table, columns)) and 0
    contenders["deltas"] = lambda: len(list(deltas(columns, machine.term))) and 0
    for name, (seconds, size) in best(repeat, contenders).items():
        rate = f"{size / seconds / 1e9:6.2f} GB/s" if size else " " * 11
        print(f"{kind:15} {terms:9,} terms  {name:15} {rate} {seconds / rows * 1e9:8.0f} ns a row", flush=True)


def main() -> None:
    """Prints a line for each contender."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--repeat", type=int, default=5)
    arguments = options.parse_args()
    print(
        f"{arguments.rows:,} rows, Python {platform.python_version()}, {os.cpu_count()} cores, output {OUT_INTS} ints"
    )
    for kind, terms in (
        ("IRIs", 2_000),
        ("IRIs", 20_000),
        ("IRIs", 1_000_000),
        *((k, 20_000) for k in KINDS if k != "IRIs"),
    ):
        measure(kind, terms, arguments.rows, arguments.repeat)


if __name__ == "__main__":
    main()
