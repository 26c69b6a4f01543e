"""Text in, deltas out: rows per second from a file of messages to a file of deltas, beside pyoxigraph's parser alone.

    python bench/text.py [--messages 1000000] [--repeat 5] [--format jsonl] [--json FILE]

*rare*: one message in a hundred matches a pattern of the query. *star*: every message matches one of a star's
patterns, and two in three messages bring a delta. Ours is what `deltastar run --engine inline` does between opening
the source and closing the sink, kernel compiled, in this process; pyoxigraph reads the same rows as N-Triples and
gives its quads to nobody. They take turns; CPU time, the system's included; best of `--repeat`.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph
from subject import Subject, refuse

from deltastar.rdf.source import open_stream
from deltastar.sink import open_sink

STAR = "SELECT * { ?x <http://example.org/vocabulary#p0> ?a . ?x <http://example.org/vocabulary#p1> ?b }"
BARS = {"rare": 4.0, "star": 1.5}
PREDICATES = 20


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name in BARS:
        results[name] = measure(name, options)
        found = results[name]
        print(
            f"{name}: {found['rows']:,} rows of {found['bytes']:.0f} bytes, {found['deltas']:,} deltas; "
            f"{found['ours'] / 1e6:.2f} million rows/s, pyoxigraph's parser {found['parser'] / 1e6:.2f}; "
            f"ratio {found['ratio']:.1f}, the bar is {BARS[name]}",
            flush=True,
        )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--people", type=int, default=50_000, help="subjects, and most objects")
    parser.add_argument("--live", type=int, default=50_000, help="triples at which as many go as come")
    parser.add_argument("--format", default="jsonl")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("out/bench/text"))
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Both, in turns."""
    patch, plain = options.out / f"{name}.rdfp", options.out / f"{name}.nt"
    with patch.open("w", encoding="ascii") as first, plain.open("w", encoding="ascii") as second:
        for op, triple in rows(name, options):
            first.write(f"{op} {triple}\n")
            second.write(f"{triple}\n")
    seconds: dict[str, list[float]] = {"ours": [], "parser": []}
    deltas = 0
    for _ in range(options.repeat):
        subject, write = fresh(name, options)
        seconds["ours"].append(timed(lambda: write(str(patch))))  # noqa: B023  (called at once)
        deltas = subject.engine.statistics.deltas
        seconds["parser"].append(timed(lambda: read(plain)))
    rates = {which: options.messages / min(taken) for which, taken in seconds.items()}
    return {
        "rows": options.messages,
        "bytes": patch.stat().st_size / options.messages,
        "deltas": deltas,
        **rates,
        "ratio": rates["ours"] / rates["parser"],
        "all_s": seconds,
    }


def fresh(name: str, options: argparse.Namespace) -> tuple[Subject, Callable[[str], None]]:
    """An engine, and what takes a file through it to the sink."""
    subject = Subject({"star": STAR})
    variables = {"star": ("x", "a", "b")}
    out = str(options.out / f"{name}-deltas.{options.format}")

    def write(path: str) -> None:
        writer = subject.engine.writer(options.format, variables)
        with open_sink(out, options.format, variables) as sink:
            for batch in open_stream(path):
                for block in subject.engine.blocks(batch, refuse):
                    writer(block, sink)
                sink.flush()

    return subject, write


def read(path: Path) -> None:
    """The parser alone."""
    deque(pyoxigraph.parse(path=str(path), format=pyoxigraph.RdfFormat.N_TRIPLES), maxlen=0)


def timed(call: Callable[[], None]) -> float:
    gc.collect()
    started = time.process_time()
    call()
    return time.process_time() - started


def rows(name: str, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Operations and triples: people, of whom most is said several times; a third of the objects are literals."""
    rng = random.Random(options.seed)
    people = [f"<http://example.org/person/{rng.randrange(10**9)}>" for _ in range(options.people)]
    others = [f"<http://example.org/vocabulary#p{number}>" for number in range(2, 2 + PREDICATES)]
    asked = [f"<http://example.org/vocabulary#p{number}>" for number in range(2)]
    there: list[str] = []
    for _ in range(options.messages):
        if rng.random() < (0.5 if len(there) >= options.live else 0.3) and there:
            place = rng.randrange(len(there))
            there[place], there[-1] = there[-1], there[place]
            yield "D", there.pop()
            continue
        predicate = rng.choice(asked if name == "star" or rng.random() < 0.01 else others)
        target = rng.choice(people) if rng.random() < 0.67 else f'"some label {rng.randrange(options.people)}"@en'
        there.append(f"{rng.choice(people)} {predicate} {target} .")
        yield "A", there[-1]


if __name__ == "__main__":
    sys.exit(main())
