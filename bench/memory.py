"""What the arena takes for a triple, that it is reused, and that a generalised star takes linear space.

    python bench/memory.py [--triples 2000000] [--neighbours 1000] [--json FILE]

*edges*: a typed power-law graph (`generate.py`), all of whose predicates are in queries of two variables. *labels*:
triples of simple stars, with constant objects. Beside `arena_bytes`, which leaves the terms' texts out, stands what
the kernel of the operating system says of the pages that were touched. *reuse*: a graph grows to ten times its
triples and shrinks back, three times. *star*: a centre with so many neighbours in each of three patterns, and how
many records the paper's version keeps for small ones, where it has one for each combination.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel import graph
from latency import cover
from subject import Subject

from deltastar.paper.extended import UNKNOWN, extended_list
from deltastar.plan.decompose import make_plan
from deltastar.query.parse import parse_query
from deltastar.rdf.update import INSERT

LABELS = 8
PATH = "SELECT * { ?a <http://bench/p0> ?b . ?b <http://bench/p1> ?c }"
STAR = (
    "SELECT * { ?x <http://m/p0> ?a . ?x <http://m/p1> ?b . ?x <http://m/p2> ?c . ?x <http://m/gate> <http://m/open> }"
)
SMALL = (4, 8, 16, 32)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    results: dict[str, Any] = {}
    for name, make in (("edges", edges), ("chains", chains), ("labels", labels), ("reuse", reuse), ("star", star)):
        results[name] = make(options)
        print(f"{name}: " + ", ".join(f"{key} {shown(value)}" for key, value in results[name].items()), flush=True)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=int, default=2_000_000)
    parser.add_argument("--updates", type=int, default=200_000, help="of the stream that belongs to the graph")
    parser.add_argument("--neighbours", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def shown(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def edges(options: argparse.Namespace) -> dict[str, Any]:
    """All triples are variable-variable; every node can be reached from both ends of each of its edges."""
    subject = Subject({f"all{number}": both_ways(number) for number in range(20)})
    subject.load(str(graph(options.triples, options) / "initial.nt"))
    return per_triple(subject)


def chains(options: argparse.Namespace) -> dict[str, Any]:
    """The same graph under queries that need both ends only where they say so."""
    subject = Subject({f"all{number}": cover(number) for number in range(20)})
    subject.load(str(graph(options.triples, options) / "initial.nt"))
    return per_triple(subject)


def both_ways(predicate: int) -> str:
    """A path of two: the middle looks ahead in both directions."""
    other = (predicate + 1) % 20
    return f"SELECT * {{ ?a <http://bench/p{predicate}> ?b . ?b <http://bench/p{other}> ?c }}"


def labels(options: argparse.Namespace) -> dict[str, Any]:
    """Three labels of a simple star, on nodes of which most have them all."""
    rng = random.Random(options.seed)
    patterns = " . ".join(f"?x <http://m/p{number}> <http://m/c{number}>" for number in range(LABELS))
    subject = Subject({"labels": f"SELECT * {{ {patterns} }}"})
    nodes = options.triples // LABELS
    rows = [f"<http://m/n{n}> <http://m/p{k}> <http://m/c{k}> .\n" for n in range(nodes) for k in range(LABELS)]
    rng.shuffle(rows)
    subject.load_rows("".join(rows).encode())
    return per_triple(subject)


def per_triple(subject: Subject) -> dict[str, Any]:
    machine = subject.machine
    return {
        "triples": machine.triples,
        "terms": subject.engine.terms_in_use,
        "arena_bytes a triple": machine.arena_bytes / machine.triples,
        "touched bytes a triple": touched(subject) / machine.triples,
    }


def touched(subject: Subject) -> int:
    """Bytes of the arena's pages that are in memory, less those of the texts."""
    arrays = subject.machine.arena.arrays
    total = 0
    for name, array in arrays.items():
        if name != "text":
            total += resident(int(array.ctypes.data), array.nbytes)
    return total


def resident(start: int, length: int) -> int:
    """How much of a range is in memory, by `/proc/self/pagemap`: a bit for each page."""
    page, total, chunk = 4096, 0, 1 << 16
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        first, last = start // page, (start + length) // page
        for begin in range(first, last, chunk):
            file.seek(begin * 8)
            entries = file.read(8 * min(chunk, last - begin))
            if entries.count(0) != len(entries):
                total += sum(byte >> 7 for byte in entries[7::8]) * page
    return total


def reuse(options: argparse.Namespace) -> dict[str, Any]:
    """Grows to ten times its size and shrinks back, several times, with other triples each time."""
    subject = Subject({"path": PATH})
    least, most = options.triples // 20, options.triples // 2
    rng = random.Random(options.seed)
    new = iter(range(1 << 40))
    present: list[str] = []
    arenas = []
    for _ in range(3):
        added = [triple(next(new) % 7, rng, most) for _ in range(most - len(present))]
        present += added
        subject.run_rows("".join(f"A {row}" for row in added).encode())
        rng.shuffle(present)
        subject.run_rows("".join(f"D {row}" for row in present[least:]).encode())
        del present[least:]
        arenas.append(subject.machine.arena_bytes)
    return {"from": least, "to": most, **{f"arena_bytes after {n + 1}": arena for n, arena in enumerate(arenas)}}


def triple(kind: int, rng: random.Random, nodes: int) -> str:
    return (
        f"<http://bench/n{rng.randrange(nodes)}> <http://bench/p{kind % 2}> <http://bench/n{rng.randrange(nodes)}> .\n"
    )


def star(options: argparse.Namespace) -> dict[str, Any]:
    """One centre; its gate is shut, so that there are combinations but no answers, which would be a billion."""
    found: dict[str, Any] = {}
    for neighbours in (options.neighbours, 10 * options.neighbours):
        subject = Subject({"star": STAR})
        subject.load_rows(centre(neighbours).encode())
        found[f"arena_bytes a neighbour at 3 x {neighbours:,}"] = subject.machine.arena_bytes / (3 * neighbours)
    return found | {f"paper's records at 3 x {size}": records(size) for size in SMALL}


def centre(neighbours: int) -> str:
    return "".join(f"<http://m/x> <http://m/p{p}> <http://m/n{n}> .\n" for p in range(3) for n in range(neighbours))


def records(neighbours: int) -> int:
    """One for each combination of matches: the extended list of Algorithm 6."""
    plan = make_plan(parse_query(STAR))
    (component,) = plan.components
    of_x = next(star for star in component.stars if star.centre.name == "x")
    kept = extended_list(of_x, plan.patterns, component.variables)
    x = component.variables.index(of_x.centre)
    for pattern in [pattern for pattern in of_x.patterns if len(plan.patterns[pattern].variables) == 2]:
        (other,) = (component.variables.index(v) for v in plan.patterns[pattern].variables if v != of_x.centre)
        for neighbour in range(neighbours):
            match: list[int | None] = [UNKNOWN] * len(component.variables)
            match[x], match[other] = 0, neighbour
            kept.process_update_message_on_star_ext(INSERT, pattern, tuple(match))
    return sum(1 for _ in kept.records())


if __name__ == "__main__":
    sys.exit(main())
