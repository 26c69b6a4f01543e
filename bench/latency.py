"""How long one `Engine.insert` or `delete` takes on a graph of two million triples, and that growth stops nothing.

    python bench/latency.py [--triples 2000000] [--messages 200000] [--queries star,path3] [--json FILE]

All triples of the graph match a pattern of some query, so all are kept. Each call is timed for itself, in CPU time:
what other programs do is not in it, page faults and Python's collection of garbage are (what is there before the
first call is frozen, as in any program that cares; a first run of `--warm` calls is not counted). Calls that bring
more than `--many` deltas are counted apart, for they take as long as their deltas. `growth` inserts triples only, of
terms that are new: every array of the arena grows while it is timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kernel import graph
from subject import Subject

from deltastar.engine import Engine

OPS = {"A": "insert", "D": "delete"}
Message = tuple[str, str, str, str]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    directory = graph(options.triples, options)
    names = options.queries
    queries = {name: (directory / f"queries/{name}.rq").read_text(encoding="ascii") for name in names}
    queries |= {f"all{number}": cover(number) for number in range(20)}
    subject = Subject(queries)
    subject.load(str(directory / "initial.nt"))
    print(f"{subject.machine.triples:,} triples retained; microseconds of a call")
    print(f"{'':8} {'calls':>8}  {'p50':>6}  {'p99':>6}  {'p99.9':>6}  {'max':>8}  {'p99.9/p50':>9}  with many deltas")
    results = {}
    for name, messages in (("mixed", stream(directory)), ("growth", fresh(options.messages))):
        results[name] = measure(subject.engine, messages, options)
        show(name, results[name])
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, default=2_000_000)
    parser.add_argument("--updates", type=int, default=200_000, help="of the stream that is made")
    parser.add_argument("--messages", type=int, default=200_000, help="that are timed, of each kind")
    parser.add_argument("--warm", type=int, default=1_000)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=["star", "path3", "tree6", "cycle4"])
    parser.add_argument("--many", type=int, default=20, help="deltas of a call that is counted apart")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def cover(predicate: int) -> str:
    """A query that every triple with the predicate matches, and that has few answers: the triple and its reverse."""
    return f"SELECT * {{ ?a <http://bench/p{predicate}> ?b . ?b <http://bench/p{predicate}> ?a . }}"


def stream(directory: Path) -> Iterator[Message]:
    """The graph's own updates."""
    with (directory / "updates.rdfp").open(encoding="ascii") as file:
        for line in file:
            op, s, p, o, _ = line.split(" ")
            yield op, s, p, o


def fresh(count: int) -> Iterator[Message]:
    """Insertions of triples whose terms are new."""
    for number in range(count):
        yield "A", f"<http://bench/new{number}>", f"<http://bench/p{number % 20}>", f"<http://bench/new{number + 7}>"


def measure(engine: Engine, messages: Iterator[Message], options: argparse.Namespace) -> dict[str, Any]:
    """Quantiles of the calls."""
    clock, insert, delete = time.thread_time_ns, engine.insert, engine.delete
    taken: list[int] = []
    many: list[int] = []
    gc.collect()
    gc.freeze()
    for number, (op, s, p, o) in enumerate(messages):
        if number == options.messages:
            break
        if number == options.warm:
            taken, many = [], []
        call = insert if op == "A" else delete
        started = clock()
        found = call(s, p, o)
        nanoseconds = clock() - started
        (many if len(found) > options.many else taken).append(nanoseconds)
    taken.sort()
    quantiles = {f"p{share * 100:g}": at(taken, share) for share in (0.5, 0.99, 0.999)}
    return {"calls": len(taken), **quantiles, "max": at(taken, 1.0), "many": len(many)}


def at(taken: list[int], share: float) -> float:
    """In microseconds."""
    return taken[min(int(share * len(taken)), len(taken) - 1)] / 1000


def show(name: str, found: dict[str, Any]) -> None:
    print(
        f"{name:8} {found['calls']:8,}  {found['p50']:6.1f}  {found['p99']:6.1f}  {found['p99.9']:6.1f}  "
        f"{found['max']:8.1f}  {found['p99.9'] / found['p50']:9.1f}  {found['many']:,}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
