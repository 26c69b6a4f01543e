"""The kernel's search beside the native yardstick: CPU time of a step per relevant message.

    python bench/kernel.py [--triples 200000,2000000] [--updates 200000] [--queries star,path3,…] [--repeat 5]

The yardstick (`native/yardstick.cpp`) and the kernel take turns, each from a fresh graph, and the best of `--repeat`
counts. Both decide which messages match a pattern before the clock of a message's search stops, keep the graph as a
set, and write the ids of every delta to a buffer; a run in which they do not find equally many deltas is an error.
The kernel's figure is what `deltastar bench` calls `evaluate_s`, in CPU time.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import generate
from subject import Subject

ROOT = Path(__file__).parents[1]
YARDSTICK = ROOT / "out/bench/yardstick"


class Figure(NamedTuple):
    """One run."""

    seconds: float
    relevant: int
    added: int
    removed: int

    @property
    def ns(self) -> float:
        return self.seconds / max(self.relevant, 1) * 1e9


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where the two do not find the same."""
    options = parse(arguments)
    subprocess.run(["make", "--quiet", "-C", str(ROOT / "bench/native")], check=True)
    results: list[dict[str, Any]] = []
    print(f"{'triples':>9}  {'query':10}  {'deltas a message':>16}  {'kernel ns':>9}  {'native ns':>9}  ratio")
    for triples in options.triples:
        directory = graph(triples, options)
        for name in options.queries:
            result = {"triples": triples, "query": name, **compare(directory, name, options.repeat)}
            results.append(result)
            print(
                f"{triples:>9,}  {name:10}  {result['deltas_per_relevant']:16.2f}  {result['kernel_ns']:9.0f}  "
                f"{result['native_ns']:9.0f}  {result['ratio']:5.2f}{'' if result['agree'] else '  DIFFERENT DELTAS'}",
                flush=True,
            )
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")
    return 0 if all(result["agree"] for result in results) else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--triples", type=numbers, default=[200_000, 2_000_000])
    parser.add_argument("--updates", type=int, default=200_000)
    parser.add_argument("--queries", type=lambda text: text.split(","), default=list(generate.QUERIES))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def graph(triples: int, options: argparse.Namespace) -> Path:
    """The directory of a graph, made unless it is there."""
    out = ROOT / f"out/bench/graph-{triples}-{options.updates}-{options.seed}"
    if not (out / "about.json").exists():
        given = ["graph", "--triples", str(triples), "--updates", str(options.updates), "--seed", str(options.seed)]
        generate.main([*given, "--out", str(out)])
    return out


def compare(directory: Path, name: str, repeat: int) -> dict[str, Any]:
    """Both, in turns."""
    runs: dict[str, list[Figure]] = {"kernel": [], "native": []}
    ways: dict[str, Callable[[Path, str], Figure]] = {"kernel": kernel, "native": native}
    for _ in range(repeat):
        for which, run in ways.items():
            runs[which].append(run(directory, name))
    best = {which: min(figures) for which, figures in runs.items()}
    counts = {figure[1:] for figures in runs.values() for figure in figures}
    ours = best["kernel"]
    return {
        "relevant": ours.relevant,
        "deltas_per_relevant": (ours.added + ours.removed) / max(ours.relevant, 1),
        "kernel_ns": ours.ns,
        "native_ns": best["native"].ns,
        "ratio": ours.ns / best["native"].ns,
        "all_ns": {which: [figure.ns for figure in figures] for which, figures in runs.items()},
        "agree": len(counts) == 1,
    }


def kernel(directory: Path, name: str) -> Figure:
    """The step of the kernel, on the text of the same messages."""
    gc.collect()
    subject = Subject({name: (directory / f"queries/{name}.rq").read_text(encoding="ascii")})
    subject.load(str(directory / "initial.nt"))
    seconds = subject.watch(time.process_time)
    added = removed = 0
    for out, end in subject.outputs(str(directory / "updates.rdfp")):
        plus, minus = subject.count(out, end)
        added, removed = added + plus, removed + minus
    return Figure(seconds["evaluate"], subject.statistics.relevant, added, removed)


def native(directory: Path, name: str) -> Figure:
    """The yardstick."""
    command = [YARDSTICK, directory / f"queries/{name}.txt", directory / "initial.bin", directory / "updates.bin"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return Figure(found["evaluate_s"], found["relevant"], found["deltas_plus"], found["deltas_minus"])


if __name__ == "__main__":
    sys.exit(main())
