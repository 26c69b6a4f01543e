"""How fast the compiled encoder turns the kernel's output into lines, beside the encoder of `Delta` objects.

    python bench/encode.py [--rows 500000] [--repeat 5]

Two variables a row, seeded; one or two rows a message, as a stream brings them. *objects* is `sink/encode.py` on deltas
that are there already, so the time to make them (*deltas*) is not in it. *file* and *parquet* are whole sinks; a file's
time is mostly the kernel's, for copying its bytes. CPU time after a first round, best of the others; the contenders
take turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from deltastar.delta import Delta
from deltastar.machine import OUT_INTS, Machine
from deltastar.rdf.terms import IRI, Literal, Term
from deltastar.sink import open_sink
from deltastar.sink.base import BATCH
from deltastar.sink.columns import ColumnEncoder, deltas
from deltastar.sink.compiled import CompiledEncoder
from deltastar.sink.encode import Encoder, encoder, utf8
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


Output = tuple[np.ndarray, int, np.ndarray]


def make_output(ids: list[int], rows: int) -> Output:
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


def measure(kind: str, terms: int, rows: int, repeat: int, directory: str) -> None:
    """One line a contender."""
    machine = Machine()
    make = KINDS[kind]
    ids = [machine.acquire(make(number)) for number in range(terms)]
    output = make_output(ids, rows)
    columns = ColumnEncoder(VARIABLES, WIDTHS)
    columns.add(QUERY)
    flat = columns.flatten(*output)
    made = list(deltas(flat, machine.term))
    contenders: dict[str, Callable[[], int]] = {}
    for format in FORMATS:
        compiled = CompiledEncoder(format, VARIABLES, WIDTHS)
        compiled.add(QUERY)
        contenders[format] = partial(encode_compiled, compiled, machine, output)
        contenders[f"{format}, objects"] = partial(encode_objects, encoder(format, VARIABLES, False), made)
    path = os.path.join(directory, "d.")
    contenders["file"] = lambda: write_lines(path + FORMATS[-1], compiled, machine, output)
    contenders["parquet"] = lambda: write_parquet(path + "parquet", columns, machine, output)
    contenders["parquet, objects"] = lambda: write_objects(path + "parquet", made)
    contenders["columns"] = lambda: 0 * len(columns.flatten(*output))
    contenders["arrow"] = lambda: 0 * len(list(columns.arrow(machine.table, flat)))
    contenders["deltas"] = lambda: 0 * len(list(deltas(flat, machine.term)))
    for name, (seconds, size) in best(repeat, contenders).items():
        rate = f"{size / seconds / 1e9:6.2f} GB/s" if size else " " * 11
        print(f"{kind:15} {terms:9,} terms  {name:16} {rate} {seconds / rows * 1e9:8.0f} ns a row", flush=True)


def encode_compiled(compiled: CompiledEncoder, machine: Machine, output: Output) -> int:
    return sum(len(data) for data, _ in compiled.encode(machine.table, *output))


def encode_objects(plain: Encoder, made: list[Delta]) -> int:
    return sum(len(utf8(plain.encode(made[start : start + BATCH]))) for start in range(0, len(made), BATCH))


def write_lines(path: str, compiled: CompiledEncoder, machine: Machine, output: Output) -> int:
    with open_sink(path, None, VARIABLES) as sink:
        for data, count in compiled.encode(machine.table, *output):
            sink.write_encoded(data, count)
    return os.path.getsize(path)


def write_parquet(path: str, columns: ColumnEncoder, machine: Machine, output: Output) -> int:
    with open_sink(path, None, VARIABLES) as sink:
        for batch in columns.arrow(machine.table, columns.flatten(*output)):
            sink.write_columns(batch)
    return 0


def write_objects(path: str, made: list[Delta]) -> int:
    with open_sink(path, None, VARIABLES) as sink:
        sink.write(made)
    return 0


def main() -> None:
    """Prints a line for each contender."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=500_000)
    options.add_argument("--repeat", type=int, default=5)
    arguments = options.parse_args()
    print(
        f"{arguments.rows:,} rows, Python {platform.python_version()}, {os.cpu_count()} cores, output {OUT_INTS} ints"
    )
    sizes = [("IRIs", 2_000), ("IRIs", 1_000_000), *((kind, 20_000) for kind in KINDS)]
    with tempfile.TemporaryDirectory() as directory:
        for kind, terms in sizes:
            measure(kind, terms, arguments.rows, arguments.repeat, directory)


if __name__ == "__main__":
    main()
