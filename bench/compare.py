"""Compares deltastar with other systems on the same streams: updates per second, and deltastar's rate as a multiple.

    python bench/compare.py [--systems deltastar,sqlite,…] [--queries star,path3,…] [--updates 20000] [--json FILE] …

Each measurement is a process of its own (`competitors/measure.py`), one after the other; the systems take turns, so
that a busy moment of the machine hits all of them, and the best of `--repeat` counts. CPU time of all threads, from the
text of the messages to deltas as Python values or as text, after `--warm` messages that are not timed. All systems must
come to the same deltas, and from the first answers to the last, which are joined naively from the whole graph. What
cannot be installed is left out, with its reason. See README.md here.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from competitors import SYSTEMS, oracle, workload
from competitors.workload import QUERIES

OURS = ("deltastar", "deltastar-lines", "deltastar-table")
RESERVING = "deltastar"
"""These reserve address space for what they may ever need; a limit on it would say nothing about memory."""
PACKAGES = ("deltastar", "numba", "numpy", "clipspy", "pathway", "pyoxigraph")
MEASURE = Path(__file__).parent / "competitors" / "measure.py"
MEASURABLE = 0.5
"""Of the time of starting and loading: what the messages must take at least, where the two are measured together."""
Report = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where systems disagree."""
    options = parse(arguments)
    results: dict[str, dict[str, Report]] = {}
    for name in options.queries:
        results[name] = compare(name, options)
    print(
        f"\n{options.triples:,} triples; {options.updates:,} messages, {options.deletions:.0%} of them deletions, ",
        end="",
    )
    print("as they come" if options.relevant is None else f"{options.relevant:.0%} of them match a pattern")
    print(table("updates/s", results, options, rate))
    for ours in OURS:
        if ours in options.systems:
            print(table(f"{ours} is so many times as fast", results, options, partial(ratio, ours=ours)))
    for query, row in results.items():
        for system, report in row.items():
            if "skipped" in report:
                print(f"{query}, {system}: {report['skipped']}")
    wrong = [f"{query}, {s}: {r['wrong']}" for query, row in results.items() for s, r in row.items() if r.get("wrong")]
    print(
        "\n".join(wrong) if wrong else "all that were measured agree, and with naive joins of the first and last graph"
    )
    if options.json:
        asked = {key: value for key, value in vars(options).items() if key not in ("json", "out")}
        about = {"options": asked, "machine": machine(), "time": datetime.now(UTC).isoformat(timespec="seconds")}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({**about, "results": results}, indent=1) + "\n", encoding="ascii")
    return 1 if wrong else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [*QUERIES, "selfcycle4"]
    parser.add_argument("--systems", type=names(SYSTEMS), default=list(SYSTEMS), help=f"default: {','.join(SYSTEMS)}")
    parser.add_argument("--queries", type=names(known), default=list(QUERIES), help=f"default: {','.join(QUERIES)}")
    parser.add_argument("--triples", type=int, default=200_000, help="of the first graph")
    parser.add_argument("--updates", type=int, default=20_000, help="timed messages")
    parser.add_argument(
        "--updates-of", action="append", default=[], metavar="SYSTEM=N", type=updates_of,
        help="another number of messages for a system that is too slow, or too fast, for --updates",
    )  # fmt: skip
    parser.add_argument("--warm", type=int, default=1_000, help="messages before the timed ones")
    parser.add_argument("--deletions", type=float, default=0.3, help="their share of the updates")
    parser.add_argument(
        "--relevant",
        type=share,
        default=1.0,
        help="share of the messages that match a pattern, or `mixed`: as they come",
    )
    parser.add_argument("--repeat", type=int, default=3, help="the best counts")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one measurement")
    parser.add_argument("--memory", type=int, default=12, help="GiB of data for one measurement")
    parser.add_argument("--out", type=Path, default=Path("out/bench/compare"), help="where the streams are written")
    parser.add_argument("--json", type=Path, help="write all results there")
    options = parser.parse_args(arguments)
    options.updates_of = dict(options.updates_of)
    return options


def names(known: Sequence[str] | dict[str, Any]):  # type: ignore[no-untyped-def]
    def split(text: str) -> list[str]:
        chosen = text.split(",")
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return chosen

    return split


def updates_of(text: str) -> tuple[str, int]:
    system, _, number = text.partition("=")
    return names(SYSTEMS)(system)[0], int(number)


def share(text: str) -> float | None:
    return None if text == "mixed" else float(text)


def compare(name: str, options: argparse.Namespace) -> dict[str, Report]:
    """All systems on one query."""
    updates = {system: options.updates_of.get(system, options.updates) for system in options.systems}
    work = {system: workload.prepare(name, options.out, options, updates[system]) for system in options.systems}
    truth = {directory: oracle.answers_before_and_after(workload.read(directory)) for directory in set(work.values())}
    runs: dict[str, list[Report]] = {system: [] for system in options.systems}
    for turn in range(options.repeat):
        for system in options.systems:
            if any("skipped" in report for report in runs[system]):
                continue
            print(f"{name}, {system}, {turn + 1} of {options.repeat}", file=sys.stderr)
            report = measure(system, work[system], options)
            report["wrong"] = mistakes(report, truth[work[system]])
            runs[system].append(report)
    for directory in truth:
        compare_deltas({system: runs[system] for system in runs if work[system] == directory})
    return {system: combined(runs[system], updates[system]) for system in options.systems}


def combined(runs: list[Report], updates: int) -> Report:
    """The best of several runs.

    Where starting and loading is in the time, the least of these sums is subtracted from the least of the whole: the
    least of the differences would be the one that noise helped most. A difference that is small beside what was
    subtracted is noise, whatever it says, and no rate is made from it.
    """
    for report in runs:
        if "skipped" in report:
            return report
    result = {**runs[0], "updates": updates, "wrong": next((r["wrong"] for r in runs if r["wrong"]), "")}
    if "base_s" in result:
        base, whole = (min(report[key] for report in runs) for key in ("base_s", "whole_s"))
        result |= {"bases_s": [r["base_s"] for r in runs], "wholes_s": [r["whole_s"] for r in runs]}
        if whole - base < MEASURABLE * base:
            why = f"{whole - base:.2f} s of messages cannot be told from {base:.2f} s of start and load"
            return {**result, "skipped": f"{why}: more messages with --updates-of"}
        result["run_s"] = whole - base
    else:
        result |= {"run_s": min(r["run_s"] for r in runs), "runs_s": [r["run_s"] for r in runs]}
    result["updates_per_s"] = updates / result["run_s"]
    return result


def measure(system: str, directory: Path, options: argparse.Namespace) -> Report:
    """One process."""

    def limit() -> None:
        if not system.startswith(RESERVING):
            resource.setrlimit(resource.RLIMIT_DATA, (options.memory << 30, options.memory << 30))

    command = [sys.executable, str(MEASURE), system, str(directory)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=options.timeout, preexec_fn=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"skipped": f"not finished after {options.timeout} s"}
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return {"skipped": f"failed: {reason}", "stderr": done.stderr[-2000:]}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def mistakes(report: Report, truth: tuple[oracle.Answers, oracle.Answers]) -> str:
    """What is wrong about the deltas of one system, going by the answers before and after."""
    if "net_digest" not in report:
        return ""
    before, after = truth
    if report["answers"] not in (None, after.count):
        return f"{report['answers']} answers at the end instead of {after.count}"
    if before.count + report["added"] - report["removed"] != after.count:
        change = f"{report['added']} additions and {report['removed']} removals"
        return f"{change}, from {before.count} answers to {after.count}"
    if (before.digest + report["net_digest"]) % oracle.MODULUS != after.digest:
        return "its deltas do not lead to the answers at the end"
    return ""


def compare_deltas(runs: dict[str, list[Report]]) -> None:
    """Those that report after each message must report the same; batches may only leave deltas out, in pairs."""
    reports = [report for several in runs.values() for report in several if "digest" in report and not report["wrong"]]
    exact = [report for report in reports if report["is_per_message"]]
    if len({report["digest"] for report in exact}) > 1:
        for report in exact:
            counts = f"{report['added']} additions, {report['removed']} removals"
            report["wrong"] = f"{counts}; another system or run has others, or other rows"
    elif exact:
        for report in reports:
            if report["added"] > exact[0]["added"]:
                report["wrong"] = f"{report['added']} additions, more than {exact[0]['added']}"


# Tables


def rate(row: dict[str, Report], system: str) -> str:
    report = row[system]
    if "run_s" not in report:
        return "–"
    return f"{report['updates_per_s']:,.0f}{'!' if report.get('wrong') else ''}"


def ratio(row: dict[str, Report], system: str, ours: str) -> str:
    if "run_s" not in row[system] or "run_s" not in row[ours]:
        return "–"
    return f"{row[ours]['updates_per_s'] / row[system]['updates_per_s']:.1f}"


def table(title: str, results: dict[str, dict[str, Report]], options: argparse.Namespace, cell) -> str:  # type: ignore[no-untyped-def]
    """A line for each system, a column for each query."""
    lines = [[title, *results]]
    for system in options.systems:
        lines.append([system, *(cell(row, system) for row in results.values())])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = (
        "  ".join(t.rjust(w) if at else t.ljust(w) for at, (t, w) in enumerate(zip(line, widths, strict=True)))
        for line in lines
    )
    return "\n".join(["", *rows])


def machine() -> dict[str, Any]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    import sqlite3

    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    versions |= {"sqlite": sqlite3.sqlite_version, "python": platform.python_version()}
    return {"processor": model, "system": platform.platform(), "versions": versions}


if __name__ == "__main__":
    sys.exit(main())
