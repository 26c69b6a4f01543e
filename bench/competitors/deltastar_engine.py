"""deltastar, through its public interface and through its command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from competitors import SystemDelta
from competitors.workload import Query


class Deltastar:
    """`Engine.apply` on the file; the deltas are a list of `Delta`."""

    IS_PER_MESSAGE = True

    def __init__(self, query: Query, scratch: Path) -> None:
        import deltastar

        self.query = query
        self.engine = deltastar.Engine()
        self.registration = self.engine.register(query.sparql(), name=query.name)
        self.found: list[deltastar.Delta] = []

    def load(self, path: Path) -> None:
        deque(self.engine.load(path), maxlen=0)

    def run(self, path: Path) -> None:
        self.found += list(self.engine.apply(path))

    def deltas(self) -> Iterator[SystemDelta]:
        for delta in self.found:
            yield (1 if delta.op == "+" else -1), tuple(str(delta.binding[v]) for v in self.query.variables)

    def answer_count(self) -> int:
        return self.registration.count()

    def close(self) -> None:
        self.found.clear()


class DeltastarLines:
    """What `deltastar run --engine inline --deltas FILE` does with its batches, in this process: lines in a file."""

    IS_PER_MESSAGE = True
    FORMAT = "jsonl"

    def __init__(self, query: Query, scratch: Path) -> None:
        import deltastar
        from deltastar.sink import open_sink

        self.query, self.out = query, scratch / f"deltas.{self.FORMAT}"
        self.engine = deltastar.Engine()
        self.registration = self.engine.register(query.sparql(), name=query.name)
        variables = {query.name: tuple(query.variables)}
        self.writer = self.engine.writer(self.FORMAT, variables)
        self.sink = open_sink(str(self.out), self.FORMAT, variables)

    def load(self, path: Path) -> None:
        deque(self.engine.load(path), maxlen=0)

    def run(self, path: Path) -> None:
        from deltastar.rdf.source import open_stream

        for batch in open_stream(str(path)):
            for block in self.engine.blocks(batch):
                self.writer(block, self.sink)
        self.sink.flush()

    def deltas(self) -> Iterator[SystemDelta]:
        with self.out.open(encoding="utf-8") as file:
            yield from self.read(file)

    def read(self, lines: Iterator[str]) -> Iterator[SystemDelta]:
        for line in lines:
            delta = json.loads(line)
            binding = delta["binding"]
            yield (1 if delta["op"] == "+" else -1), tuple(f"<{binding[v]['value']}>" for v in self.query.variables)

    def answer_count(self) -> int:
        return self.registration.count()

    def close(self) -> None:
        self.sink.close()


class DeltastarTable(DeltastarLines):
    """The same with `--format tsv`: query, seq, op and the terms, as CLIPS is made to write them here."""

    FORMAT = "tsv"

    def read(self, lines: Iterator[str]) -> Iterator[SystemDelta]:
        next(lines)
        for line in lines:
            _, _, op, *terms = line.rstrip("\n").split("\t")
            yield (1 if op == "+" else -1), tuple(terms)


class DeltastarText:
    """`python -m deltastar run --engine inline … --deltas FILE`, a process for each run.

    A run starts the program and loads the graph as well; `compare.py` subtracts the time of a run that ends after the
    warm-up.
    """

    IS_PER_MESSAGE = True
    IS_PROCESS = True

    def __init__(self, query: Query, scratch: Path) -> None:
        self.query, self.scratch = query, scratch
        self.file = scratch / f"{query.name}.rq"
        self.file.write_text(query.sparql(), encoding="ascii")
        self.out: list[Path] = []
        self.initial: Path | None = None
        self.before: list[Path] = []

    def load(self, path: Path) -> None:
        self.initial = path

    def run(self, path: Path) -> None:
        """All messages before these belong to the graph that the process starts with: it is given both files."""
        stream = self.scratch / f"stream-{len(self.before)}"
        stream.mkdir(exist_ok=True)
        self.before.append(path)
        for number, part in enumerate(self.before):
            link = stream / f"{number}.rdfp"
            link.unlink(missing_ok=True)
            link.symlink_to(part.resolve())
        out = self.scratch / f"deltas-{len(self.before)}.jsonl"
        out.unlink(missing_ok=True)
        command = [sys.executable, "-m", "deltastar", "run", str(self.file), "--engine", "inline", "--quiet"]
        command += ["--updates", str(stream), "--initial", str(self.initial), "--deltas", str(out)]
        subprocess.run(command, check=True)
        self.out.append(out)

    def deltas(self) -> Iterator[SystemDelta]:
        with self.out[-1].open(encoding="utf-8") as file:
            for line in file:
                delta = json.loads(line)
                if delta["seq"]:
                    binding = delta["binding"]
                    terms = tuple(f"<{binding[v]['value']}>" for v in self.query.variables)
                    yield (1 if delta["op"] == "+" else -1), terms

    def answer_count(self) -> int | None:
        """The additions of the initial graph have `seq` 0."""
        with self.out[-1].open(encoding="utf-8") as file:
            return sum(1 if json.loads(line)["op"] == "+" else -1 for line in file)

    def close(self) -> None:
        for path in self.out:
            path.unlink(missing_ok=True)
