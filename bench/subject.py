"""What the benchmarks look into: an engine on the kernel, with its machine, its clocks and its output in reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from deltastar import layout as at
from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.evaluation import Rules
from deltastar.layout import Ints
from deltastar.machine import Machine
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.source import CHUNK_BYTES, open_stream, read_graph
from deltastar.rdf.update import Malformed
from deltastar.statistics import Statistics
from deltastar.warm import warm

STAGES = ("parse", "encode", "evaluate")


class Subject:
    """An engine with these queries, everything compiled."""

    def __init__(self, queries: Mapping[str, str], **options: Any) -> None:
        for _ in warm():
            pass
        self.machine = Machine()
        self.engine = Engine(evaluation=self._evaluation, **options)
        for name, text in queries.items():
            self.engine.register(text, name)

    def _evaluation(self, rules: Rules, statistics: Statistics) -> CompiledEvaluation:
        self.evaluation = CompiledEvaluation(rules, statistics, self.machine)
        return self.evaluation

    @property
    def statistics(self) -> Statistics:
        return self.engine.statistics

    def load(self, path: str) -> None:
        """The initial graph."""
        for batch in read_graph(path):
            self._use_up(self.engine.load_blocks(batch, refuse))

    def load_rows(self, rows: bytes) -> None:
        """The same, of N-Triples in memory."""
        for piece in pieces(rows):
            batch = Batch(Position("rows", 0, 1), "rows", piece, Syntax.NTRIPLES)
            self._use_up(self.engine.load_blocks(batch, refuse))

    def run_rows(self, rows: bytes) -> None:
        """Messages in memory, as RDF Patch, in pieces as a source cuts them; nobody looks at their deltas."""
        for piece in pieces(rows):
            self._use_up(self.engine.blocks(Batch(Position("rows", 0, 1), "rows", piece, Syntax.PATCH), refuse))

    def outputs(self, path: str | Path) -> Iterator[tuple[Ints, int]]:
        """A stream, block by block: the kernel's output as it is."""
        for batch in open_stream(str(path)):
            for block in self.engine.blocks(batch, refuse):
                yield block.out, block.end  # type: ignore[attr-defined]

    def watch(self, clock: Callable[[], float]) -> dict[str, float]:
        """From now on, the seconds of each stage add up in what is returned."""
        seconds = dict.fromkeys(STAGES, 0.0)

        def timed(stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                started = clock()
                result = function(*arguments)
                seconds[stage] += clock() - started
                return result

            return run

        self.evaluation.watch(timed)
        return seconds

    def count(self, out: Ints, end: int) -> tuple[int, int]:
        """Rows that a block adds, and that it removes."""
        widths, place = self.machine.program.widths, 0
        found = {1: 0, -1: 0}
        while place < end:
            target, _, sign, rows = out[place : place + at.O_HEADER].tolist()
            found[sign] += rows
            place += at.O_HEADER + rows * widths[target]
        return found[1], found[-1]

    @staticmethod
    def _use_up(blocks: Iterator[Any]) -> None:
        for _ in blocks:
            pass


def pieces(data: bytes) -> Iterator[bytes]:
    """Whole lines, about as many bytes at a time as a source gives."""
    start = 0
    while start < len(data):
        end = data.rfind(b"\n", start, start + CHUNK_BYTES) + 1 or len(data)
        yield data[start:end]
        start = end


def refuse(malformed: Malformed) -> None:
    """Benchmarks make no malformed rows."""
    raise AssertionError(str(malformed))
