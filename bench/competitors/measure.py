"""Runs one system on one workload in this process, and prints what it took as one JSON object.

    python bench/competitors/measure.py SYSTEM WORKLOAD_DIRECTORY

`compare.py` starts this, so that systems share neither memory nor a warm cache.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import tempfile
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

from competitors import make, oracle, workload  # noqa: E402


def cpu_seconds() -> float:
    """Of this process, all its threads, and the processes it has waited for."""
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    work = workload.read(directory)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            system = make(name, work.query, Path(scratch))
        except ImportError as error:
            print(json.dumps({"skipped": str(error)}))
            return
        started = cpu_seconds()
        system.load(work.initial)
        loaded = cpu_seconds()
        system.run(work.warm)
        gc.collect()
        gc.freeze()  # garbage collection then looks at what the timed part makes only
        warmed = cpu_seconds()
        system.run(work.timed)
        finished = cpu_seconds()
        report = {"load_s": loaded - started}
        if getattr(system, "IS_PROCESS", False):  # the warm-up run did all but the timed messages; see `combined`
            report |= {"base_s": warmed - loaded, "whole_s": finished - warmed}
        else:
            report["run_s"] = finished - warmed
        report["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        deltas = system.deltas()
        if deltas is not None:
            report.update(oracle.sum_deltas(deltas)._asdict())
            report["answers"] = system.answer_count()
            report["is_per_message"] = system.IS_PER_MESSAGE
        system.close()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
