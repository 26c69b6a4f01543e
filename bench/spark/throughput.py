"""The steady rate of a run on Spark, from text to a file of deltas, beside a scan of the same file by Spark alone.

    python bench/spark/throughput.py [--messages 5000000] [--every 100] [--shards 2] [--repeat 3]

The scan is `spark.readStream.text(file)` into the sink `noop`. Both run in the same session, one after the other, and
the best of `--repeat` counts. Steady means: without the first micro-batch, in which workers start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.spark.data import QUERY, write_stream

from deltastar.pipeline import RunOptions
from deltastar.progress import Progress
from deltastar.query.parse import parse_query
from deltastar.spark import pipeline
from deltastar.spark.session import Session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=5_000_000)
    parser.add_argument("--every", type=int, default=100, help="one message in so many matches")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batch", default="256m")
    options = parser.parse_args()
    path = Path("out/bench/spark") / f"{options.messages}-{options.every}.rdfp"
    write_stream(path, options.messages, options.every)
    session = Session(f"local[{os.cpu_count()}]", [], False, print)
    pipeline.Session = lambda *_: Kept(session)  # type: ignore[assignment, misc]
    scans, runs = [], []
    for _ in range(options.repeat):
        scans.append(scan(session.spark, path, options.messages))
        runs.append(run(path, options))
        print(f"scan {scans[-1]:,.0f}/s   run {runs[-1]:,.0f}/s   ratio {runs[-1] / scans[-1]:.2f}", flush=True)
    print(f"best: scan {max(scans):,.0f}/s, run {max(runs):,.0f}/s, ratio {max(runs) / max(scans):.2f}")
    session.stop()


class Kept:
    """A session that goes on when a run ends."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def scan(spark: Any, path: Path, messages: int) -> float:
    """Spark alone."""
    directory = tempfile.mkdtemp()
    source = Path(directory) / "in"
    source.mkdir()
    (source / "stream").symlink_to(path.absolute())
    started = time.monotonic()
    writer = spark.readStream.text(str(source)).writeStream.format("noop")
    query = writer.option("checkpointLocation", f"{directory}/c").trigger(availableNow=True).start()
    query.awaitTermination()
    elapsed = time.monotonic() - started
    shutil.rmtree(directory)
    return messages / elapsed


def run(path: Path, options: argparse.Namespace) -> float:
    """The whole pipeline: messages a second behind the first micro-batch."""
    ends: list[tuple[float, int]] = []
    apply_batch = pipeline.SparkRun._apply_batch

    def timed(self: pipeline.SparkRun, frame: Any, batch: int) -> None:
        started = time.monotonic()
        apply_batch(self, frame, batch)
        ends.append((time.monotonic(), self._statistics.messages))
        if os.environ.get("BENCH_VERBOSE"):
            print(f"  micro-batch {batch}: {ends[-1][0] - started:.2f} s, {ends[-1][1]:,} messages")

    pipeline.SparkRun._apply_batch = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as directory:
        what = RunOptions(
            queries={"star": parse_query(QUERY)}, updates=str(path), deltas=f"{directory}/d.jsonl", engine="spark",
            shards=options.shards, quiet=True, settings=(f"spark.deltastar.maxBytesPerTrigger={options.batch}",),
        )  # fmt: skip
        assert pipeline.SparkRun(what, Progress(quiet=True)).execute() == 0
    pipeline.SparkRun._apply_batch = apply_batch  # type: ignore[method-assign]
    (first, before), (last, after) = ends[0], ends[-1]
    return (after - before) / (last - first)


if __name__ == "__main__":
    main()
