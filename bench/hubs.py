"""Paths and trees through hubs, nearly all of whose neighbours are dead ends two steps away: what a message costs.

    python bench/hubs.py [--neighbours 2000,20000,200000,1000000] [--messages 2000] [--repeat 3] [--shapes …]

A hub's neighbours all lead on, but only a few of them lead on twice, so that a search that looks one step ahead
visits them all. The shapes:

    middle   a path of five edges, whose middle variable binds the hub; edges into the hub come and go
    tree     the same with two branches behind the hub, of which one is always dead
    leaving  edges from the hub to its neighbours come and go: insertion into, and deletion from, the hub's own list
    toggling the last edge of a neighbour comes and goes, so that it comes alive and dies, and with it an answer

CPU microseconds per message of the kernel's step, without the deltas' text. The bar is a ratio between the largest
and the smallest hub of at most 2.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from subject import Subject

LIVE = 4
FEEDERS = 64
PATH = "?b <http://h/p1> ?h . ?h <http://h/p2> ?n . ?n <http://h/p3> ?m . ?m <http://h/p4> ?z"
QUERIES = {
    "path": f"SELECT * {{ ?a <http://h/p0> ?b . {PATH} }}",
    "tree": f"SELECT * {{ {PATH} . ?n <http://h/p5> ?k . ?k <http://h/p6> ?y }}",
}
SHAPES = {"middle": "path", "tree": "tree", "leaving": "path", "toggling": "path"}
Edge = tuple[str, int, str]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    results = []
    print(f"{'microseconds a message':24}" + "".join(f"{n:>12,}" for n in options.neighbours) + "   largest/smallest")
    for shape in options.shapes:
        taken = [best(shape, neighbours, options) for neighbours in options.neighbours]
        results.append({"shape": shape, "us": dict(zip(options.neighbours, taken, strict=True))})
        print(f"{shape:24}" + "".join(f"{us:12.2f}" for us in taken) + f"   {taken[-1] / taken[0]:.2f}", flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [2_000, 20_000, 200_000, 1_000_000]
    parser.add_argument("--neighbours", type=lambda text: [int(word) for word in text.split(",")], default=sizes)
    parser.add_argument("--messages", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a run is cut short")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def best(shape: str, neighbours: int, options: argparse.Namespace) -> float:
    """Of several passes over the same engine: each ends with the graph it began with."""
    gc.collect()
    subject = Subject({shape: QUERIES[SHAPES[shape]]})
    subject.load_rows("".join(map(row, graph(neighbours))).encode())
    seconds = subject.watch(time.process_time)
    stream = list(messages(shape, neighbours, options))
    least, started = float("inf"), time.process_time()
    for _ in range(options.repeat):
        count, before = 0, seconds["evaluate"]
        for start in range(0, len(stream), 100):
            subject.run_rows("".join(stream[start : start + 100]).encode())
            count = min(start + 100, len(stream))
            if time.process_time() - started > options.limit:
                break
        least = min(least, (seconds["evaluate"] - before) / count * 1e6)
        if count < len(stream):
            break
    return least


def row(edge: Edge) -> str:
    s, p, o = edge
    return f"<http://h/{s}> <http://h/p{p}> <http://h/{o}> .\n"


def graph(neighbours: int) -> Iterator[Edge]:
    """One hub; live paths lead to it from all feeders, and on from a few of its neighbours."""
    for feeder in range(FEEDERS):
        yield f"s{feeder}", 0, f"f{feeder}"
        yield f"f{feeder}", 1, "hub"
    for number in range(neighbours):
        yield "hub", 2, f"n{number}"
        yield f"n{number}", 3, f"m{number}"
        yield f"n{number}", 5, f"k{number}"
        if number < LIVE:
            yield f"m{number}", 4, f"z{number}"
        if number == LIVE:
            yield f"k{number}", 6, f"y{number}"  # the tree's other branch lives elsewhere


def messages(shape: str, neighbours: int, options: argparse.Namespace) -> Iterator[str]:
    """In pairs that leave the graph as it was."""
    rng = random.Random(options.seed)
    for _ in range(options.messages // 2):
        feeder, number = rng.randrange(FEEDERS), rng.randrange(LIVE, neighbours)
        if shape in ("middle", "tree"):
            edge, ops = (f"f{feeder}", 1, "hub"), "DA"
        elif shape == "leaving":
            edge, ops = ("hub", 2, f"n{number}"), "DA"
        else:
            edge, ops = (f"m{number}", 4, f"z{number}"), "AD"
        for op in ops:
            yield f"{op} {row(edge)}"


if __name__ == "__main__":
    sys.exit(main())
