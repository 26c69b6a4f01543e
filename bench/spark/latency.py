"""How long a small micro-batch takes with a large state, beside the emptiest pipeline with the same source and sink.

    python bench/spark/latency.py [--state 2000000] [--batches 100] [--shards 2]

Both follow a directory into which a file of a few rows is moved, again and again, and are timed from then until their
deltas can be read. The empty pipeline has the same source and the same kind of sink (`foreachBatch`), one Python map
stage, and no shuffle, no state and no commit of its own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.spark.data import QUERY, write_stream
from bench.spark.throughput import Kept

from deltastar.pipeline import RunOptions
from deltastar.progress import Progress
from deltastar.query.parse import parse_query
from deltastar.spark import pipeline
from deltastar.spark.chunks import NAME, OPTION, ChunkPlan, ChunkSource
from deltastar.spark.session import Session

SKIPPED = 10
"""The first micro-batches, in which workers start."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=int, default=2_000_000, help="triples")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--shards", type=int, default=2)
    options = parser.parse_args()
    path = Path("out/bench/spark") / f"{options.state}-1.rdfp"
    write_stream(path, options.state, 1)
    session = Session(f"local[{os.cpu_count()}]", [], False, print)
    pipeline.Session = lambda *_: Kept(session)  # type: ignore[assignment, misc]
    empty = measured(lambda directory, stop: run_empty(session, directory, stop), None, options.batches)
    full = measured(lambda directory, stop: run(directory, stop, options.shards), path, options.batches)
    for name, times in (("empty", empty), ("run", full)):
        p99 = sorted(times)[-1 - len(times) // 100]
        print(f"{name:6} p50 {1000 * statistics.median(times):6.0f} ms   p99 {1000 * p99:6.0f} ms")
    print(f"ratio of p50: {statistics.median(full) / statistics.median(empty):.2f}")
    session.stop()


Start = Callable[[Path, threading.Event], Callable[[], int]]


def measured(start: Start, state: Path | None, batches: int) -> list[float]:
    """Seconds from a file's appearance to the end of its micro-batch."""
    times = []
    with tempfile.TemporaryDirectory() as name:
        directory, stop = Path(name), threading.Event()
        (directory / "in").mkdir()
        (directory / "in" / "000000.rdfp").write_text("")
        if state is not None:
            (directory / "in" / "000001.rdfp").symlink_to(state.absolute())
        count = start(directory, stop)
        while count() == 0 and state is not None:
            time.sleep(0.1)
        settle(count)
        for number in range(2, batches + SKIPPED + 2):
            before = count()
            temporary = directory / "next.tmp"
            rows = "".join(
                f"A <http://bench/person/{number:08}> <http://bench/{kind}> <http://bench/new/{number}> .\n"
                for kind in ("knows", "likes")
            )
            temporary.write_text(rows)
            temporary.rename(directory / "in" / f"{number:06}.rdfp")
            started = time.monotonic()
            while count() == before:
                time.sleep(0.001)
            times.append(time.monotonic() - started)
            time.sleep(0.05)
        stop.set()
        time.sleep(1)
    return times[SKIPPED:]


def settle(count: Callable[[], int]) -> None:
    """Waits until nothing has come for a while."""
    last, since = count(), time.monotonic()
    while time.monotonic() - since < 5:
        time.sleep(0.1)
        if count() != last:
            last, since = count(), time.monotonic()


def run(directory: Path, stop: threading.Event, shards: int) -> Callable[[], int]:
    """The whole pipeline, without a checkpoint like the other; counts micro-batches that can be read."""
    done: list[int] = []
    apply_batch = pipeline.SparkRun._apply_batch

    def counted(self: pipeline.SparkRun, frame: Any, batch: int) -> None:
        apply_batch(self, frame, batch)
        done.append(batch)
        self._stop.is_asked = self._stop.is_asked or stop.is_set()

    pipeline.SparkRun._apply_batch = counted  # type: ignore[method-assign]
    what = RunOptions(
        queries={"star": parse_query(QUERY)}, updates=str(directory / "in"), deltas=f"{directory}/d.jsonl",
        engine="spark", shards=shards, quiet=True, follow=True,
    )  # fmt: skip
    running = pipeline.SparkRun(what, Progress(quiet=True))
    thread = threading.Thread(target=running.execute, daemon=True)
    thread.start()

    def end() -> None:
        stop.wait()
        running._stop.is_asked = True

    threading.Thread(target=end, daemon=True).start()
    return lambda: len(done)


def run_empty(session: Session, directory: Path, stop: threading.Event) -> Callable[[], int]:
    """Source, one Python map stage, sink."""
    done: list[int] = []
    plan = ChunkPlan(
        updates=str(directory / "in"), queries={"star": QUERY}, shards=1, follow=True, cores=session.cores,
        batch_bytes=pipeline.FOLLOWED_BATCH_BYTES,
    )  # fmt: skip

    def identity(batches: Any) -> Any:
        yield from batches

    def write(frame: Any, batch: int) -> None:
        table = frame.mapInArrow(identity, frame.schema).toArrow()
        with (directory / "d.jsonl").open("ab") as file:
            file.write(str(table.num_rows).encode())
        done.append(batch)

    session.spark.dataSource.register(ChunkSource)
    frame = session.spark.readStream.format(NAME).option(OPTION, plan.to_json()).load()
    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(directory / "c"))
    query = writer.trigger(processingTime="0 seconds").start()

    def end() -> None:
        stop.wait()
        query.stop()

    threading.Thread(target=end, daemon=True).start()
    return lambda: len(done)


if __name__ == "__main__":
    main()
