"""Where the time goes: one stream through the kernel in this process, stage by stage; and message by message.

Stages: *parse* takes rows out of bytes, *encode* makes terms to ids, *evaluate* is the kernel's step, *decode* makes
lines of JSON of the rows of ids. Everything is compiled before the clock starts, and the initial graph is loaded.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deltastar.compiled import CompiledEvaluation
from deltastar.delivery import Writer
from deltastar.engine import Engine
from deltastar.evaluation import Rules
from deltastar.machine import Machine
from deltastar.query.algebra import Query
from deltastar.rdf.source import open_stream, read_graph
from deltastar.rdf.update import Malformed, Update
from deltastar.statistics import Statistics
from deltastar.warm import warm

STAGES = ("parse", "encode", "evaluate", "decode")
MOST_LATENCIES = 200_000
"""Messages that are timed one by one: more would say no more."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Of messages applied one at a time, in microseconds."""

    p50: float
    p99: float
    p99_9: float
    max: float


@dataclass(frozen=True, slots=True)
class Report:
    """What `deltastar bench` prints. Seconds are wall time, but for `cpu_s`."""

    messages: int
    relevant: int
    deltas: int
    parse_s: float
    encode_s: float
    evaluate_s: float
    decode_s: float
    total_s: float
    cpu_s: float
    latency_us: Latency
    retained_triples: int
    arena_bytes: int
    peak_rss_bytes: int

    def to_text(self) -> str:
        """For people."""
        lines = [
            f"{self.messages:,} messages, {self.relevant:,} relevant, {self.deltas:,} deltas",
            *(self._line(stage, getattr(self, f"{stage}_s")) for stage in STAGES),
            self._line("total", self.total_s) + f", {self.messages / max(self.total_s, 1e-9):,.0f} messages/s",
            f"CPU       {self.cpu_s:9.3f} s",
            "one at a time: "
            + ", ".join(
                f"{name.replace('p99_9', 'p99.9')} {value:.1f} µs" for name, value in asdict(self.latency_us).items()
            ),
            f"{self.retained_triples:,} triples retained in {self.arena_bytes:,} bytes and the terms' texts; "
            f"{self.peak_rss_bytes / 2**20:,.0f} MiB of memory at most",
        ]
        return "\n".join(lines) + "\n"

    def _line(self, name: str, seconds: float) -> str:
        per_message_ns = seconds / max(self.messages, 1) * 1e9
        return f"{name:9} {seconds:9.3f} s {per_message_ns:9.0f} ns a message"

    def to_json(self) -> dict[str, Any]:
        """As the contract has it."""
        return asdict(self)


def bench(
    queries: Mapping[str, Query],
    updates: str,
    initial: str | None = None,
    input_format: str | None = None,
    granularity: str = "message",
    repeat: int = 3,
    on_malformed: Callable[[Malformed], None] = lambda malformed: None,
) -> Report:
    """Measures a stream: the best of several runs."""
    for _ in warm():
        pass
    best: dict[str, Any] = {}
    for _ in range(repeat):
        run = _Run(queries, initial, granularity, on_malformed)
        found = run.measure(updates, input_format)
        if not best or found["total_s"] < best["total_s"]:
            best = found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    latencies = _Run(queries, initial, granularity, on_malformed).latencies(updates, input_format)
    return Report(**best, latency_us=latencies, peak_rss_bytes=peak)


class _Run:
    """One engine, with the initial graph in it, and a stop watch."""

    def __init__(
        self,
        queries: Mapping[str, Query],
        initial: str | None,
        granularity: str,
        on_malformed: Callable[[Malformed], None],
    ) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._machine = Machine()
        self._reject = on_malformed
        self.engine = Engine(granularity=granularity, evaluation=self._evaluation)
        for name, query in queries.items():
            self.engine.register(query, name)
        self._writer: Writer = self._kernel.writer("jsonl", {name: query.names for name, query in queries.items()})
        if initial is not None:
            for batch in read_graph(initial):
                for _ in self.engine.load_blocks(batch, on_malformed):
                    pass

    def _evaluation(self, rules: Rules, statistics: Statistics) -> CompiledEvaluation:
        self._kernel = CompiledEvaluation(rules, statistics, self._machine)
        return self._kernel

    def measure(self, updates: str, input_format: str | None) -> dict[str, Any]:
        """The whole stream, stage by stage."""
        self._kernel.watch(self._timed)
        sink = _Nowhere()
        write = self._timed("decode", self._writer.write)
        cpu, started = time.process_time(), time.perf_counter()
        for batch in open_stream(updates, input_format):
            for block in self.engine.blocks(batch, self._reject):
                write(block, sink)
        total, cpu = time.perf_counter() - started, time.process_time() - cpu
        self.engine.finish()
        statistics = self.engine.statistics
        return {
            "messages": statistics.messages,
            "relevant": statistics.relevant,
            "deltas": statistics.deltas,
            **{f"{stage}_s": seconds for stage, seconds in self.seconds.items()},
            "total_s": total,
            "cpu_s": cpu,
            "retained_triples": self._machine.triples,
            "arena_bytes": self._machine.arena_bytes,
        }

    def latencies(self, updates: str, input_format: str | None) -> Latency:
        """Messages one at a time, through `Engine.process`, their deltas taken as objects."""
        process, clock = self.engine.process, time.perf_counter_ns
        taken = []
        for event in self._events(updates, input_format):
            started = clock()
            process(event, self._reject)
            if not isinstance(event, Update):
                continue
            taken.append(clock() - started)
            if len(taken) == MOST_LATENCIES:
                break
        taken.sort()
        return Latency(*(_quantile(taken, share) / 1000 for share in (0.5, 0.99, 0.999, 1.0)))

    def _events(self, updates: str, input_format: str | None) -> Iterator[Any]:
        for batch in open_stream(updates, input_format):
            yield from batch.events

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        seconds, clock = self.seconds, time.perf_counter

        def run(*arguments: Any) -> Any:
            started = clock()
            try:
                return function(*arguments)
            finally:
                seconds[stage] += clock() - started

        return run


def _quantile(taken: list[int], share: float) -> float:
    return float(taken[min(int(share * len(taken)), len(taken) - 1)]) if taken else 0.0


class _Nowhere:
    """A sink that takes everything."""

    def write(self, block: object) -> None:
        """Deltas."""

    def write_encoded(self, data: object, count: int) -> None:
        """Lines."""
