"""What many registered queries cost a message that few of them, or none, can match; and what registering them costs.

    python bench/queries.py [--queries 10000] [--sharing 1000] [--messages 300000] [--repeat 5] [--json FILE]

*idle*: messages that match one query, beside `--queries` others that they do not match: other predicates, or the same
predicate with another constant. *none*: messages that match no query at all. *sharing*: `--sharing` queries over
fifty distinct stars, with other names for their variables, beside those fifty alone; the search is shared, the
answers are not, so the deltas are counted but not written. CPU time from the bytes to the kernel's output; the two
take turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from subject import Subject

STARS = 50
NODES = 20_000
FIRST = b"".join(
    [b"A <http://q/first> <http://q/p%d> <http://q/first> .\n" % number for number in range(10)]
    + [b"A <http://q/first> <http://q/label> <http://q/c0> .\n"]
)
Queries = dict[str, str]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    rng = random.Random(options.seed)
    one = {"one": "SELECT * { ?x <http://q/p0> ?y . ?x <http://q/p1> ?z . ?x <http://q/label> <http://q/c0> }"}
    many = one | dict(others(options.queries))
    stars = {f"star{number}": star(number, "") for number in range(STARS)}
    shared = {f"share{number}": star(number % STARS, str(number)) for number in range(options.sharing)}
    results = {
        "idle": compare(one, many, matching(options.messages, rng), options),
        "none": compare(one, many, unmatched(options.messages, rng), options),
        "sharing": compare(stars, shared, starry(options.messages, rng), options),
    }
    for name, result in results.items():
        print(
            f"{name:8} {result['few']:6,} queries {result['few_ns']:7.0f} ns a message   {result['many']:6,} queries "
            f"{result['many_ns']:7.0f} ns   ratio {result['ratio']:.2f}   registered in {result['registered_s']:.1f} s"
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--sharing", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def others(count: int) -> list[tuple[str, str]]:
    """Queries that no message matches: half by their predicates, half by a constant."""
    made = []
    for number in range(count):
        if number % 2:
            text = f"?x <http://q/other{number}> ?y . ?y <http://q/other{number + 1}> ?z"
        else:
            text = f"?x <http://q/label> <http://q/never{number}> . ?x <http://q/other{number}> ?z"
        made.append((f"other{number}", f"SELECT * {{ {text} }}"))
    return made


def star(number: int, suffix: str) -> str:
    """Three predicates of ten, by number; `suffix` names the variables."""
    first, second, third = number % 10, (number + 1 + number // 10) % 10, (number + 3 + number // 10) % 10
    lines = (f"?x{suffix} <http://q/p{p}> ?{v}{suffix} ." for p, v in ((first, "a"), (second, "b"), (third, "c")))
    return f"SELECT * {{ {' '.join(lines)} }}"


def matching(count: int, rng: random.Random) -> bytes:
    """About the one query, and about its labels."""
    rows = []
    for _ in range(count):
        kind, node = rng.randrange(3), rng.randrange(NODES)
        end = f"c{rng.randrange(4)}" if kind == 2 else f"n{rng.randrange(NODES)}"
        rows.append(
            f"{rng.choice('AAD')} <http://q/n{node}> <http://q/{('p0', 'p1', 'label')[kind]}> <http://q/{end}> .\n"
        )
    return "".join(rows).encode()


def unmatched(count: int, rng: random.Random) -> bytes:
    """About nothing that is asked for."""
    rows = (
        f"{rng.choice('AAD')} <http://q/n{rng.randrange(NODES)}> <http://q/noise{rng.randrange(20)}> "
        f"<http://q/n{rng.randrange(NODES)}> .\n"
        for _ in range(count)
    )
    return "".join(rows).encode()


def starry(count: int, rng: random.Random) -> bytes:
    """About the ten predicates of the stars."""
    rows = (
        f"{rng.choice('AAD')} <http://q/n{rng.randrange(NODES)}> <http://q/p{rng.randrange(10)}> "
        f"<http://q/n{rng.randrange(NODES)}> .\n"
        for _ in range(count)
    )
    return "".join(rows).encode()


def compare(few: Queries, many: Queries, rows: bytes, options: argparse.Namespace) -> dict[str, Any]:
    """Both in turns, each from nothing; the best of each."""
    best: dict[str, float] = {}
    registered = float("inf")
    for _ in range(options.repeat):
        for name, queries in (("few", few), ("many", many)):
            gc.collect()
            started = time.process_time()
            subject = Subject(queries)
            if name == "many":
                registered = min(registered, time.process_time() - started)
            subject.run_rows(FIRST)  # these bring answers: whoever reads the output learns of the queries
            started = time.process_time()
            subject.run_rows(rows)
            best[name] = min(best.get(name, float("inf")), time.process_time() - started)
    messages = rows.count(b"\n")
    few_ns, many_ns = (best[name] / messages * 1e9 for name in ("few", "many"))
    counts = {"few": len(few), "many": len(many)}
    return {**counts, "few_ns": few_ns, "many_ns": many_ns, "ratio": many_ns / few_ns, "registered_s": registered}


if __name__ == "__main__":
    sys.exit(main())
