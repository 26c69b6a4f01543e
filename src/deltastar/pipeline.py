"""A run in this process: source → engine → sink, with dead letters, checkpoints and a clean end.

In: `RunOptions`. Out: files, and an exit code. Between two batches everything that the source has given is in the
engine, and every delta in the sink; that is where a run commits, and where it stops when it is asked to.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from deltastar.checkpoint import Checkpoint, Resumption
from deltastar.engine import Engine
from deltastar.errors import UsageError
from deltastar.progress import Progress
from deltastar.query.algebra import Query, Semantics
from deltastar.rdf.batch import Position
from deltastar.rdf.source import Stream, open_stream, read_graph
from deltastar.rdf.update import Malformed
from deltastar.registration import Registration
from deltastar.sink import (
    AnswerTable,
    DeltaSink,
    RejectSink,
    default_rejects_path,
    exists,
    format_of,
    open_rejects,
    open_sink,
    write_answers,
)

OK, FAILED, WRONG_COMMAND, REJECTED, INTERRUPTED = 0, 1, 2, 3, 130

_COMMIT_INTERVAL_S = 10.0
_COMMIT_SHARE = 10  # a commit may cost a tenth of the time


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `deltastar run` was asked to do."""

    queries: Mapping[str, Query]
    updates: str
    input_format: str | None = None
    initial: str | None = None
    deltas: str = "-"
    format: str | None = None
    answers: str | None = None
    granularity: str = "message"
    engine: str = "inline"
    follow: bool = False
    checkpoint: str | None = None
    rejects: str | None = None
    strict: bool = False
    quiet: bool = False
    progress: bool | None = None
    shards: int | None = None
    master: str | None = None
    settings: tuple[str, ...] = ()
    debug: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)


class InlineRun:
    """One run, from its options to its exit code."""

    def __init__(self, options: RunOptions, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._stop = Stop()
        evaluation = "paper" if options.engine == "paper" else "kernel"
        if evaluation == "kernel":
            from deltastar.warm import compile_once

            compile_once(progress.note)
        self._engine = Engine(granularity=options.granularity, strict=options.strict, evaluation=evaluation)
        for name, query in options.queries.items():
            self._engine.register(query, name)
        self._write = self._engine.writer(format_of(options.deltas, options.format), self._variables)
        self._committed_at = time.monotonic()
        self._commit_cost_s = 0.0

    def execute(self) -> int:
        """Runs to the end of the stream, or until it is asked to stop."""
        options = self._options
        replaces = options.checkpoint is None and exists(options.deltas)
        checkpoint, resumption = self._open_checkpoint()
        stream = open_stream(
            options.updates, options.input_format, options.follow, resumption.position if resumption else None
        )
        with ExitStack() as stack:
            sink = stack.enter_context(self._open_sink(resumption))
            if replaces:
                self._progress.note(
                    f"{options.deltas} was there already: starting from nothing and replacing it "
                    "(a run with --checkpoint DIR can be continued)"
                )
            rejects = stack.enter_context(self._open_rejects(resumption))
            stack.enter_context(self._stop.on_signals())
            if resumption is not None:
                self._engine.restore(resumption.snapshot)
                self._progress.note(f"continuing after message {self._engine.seq:,}")
            self._progress.start(self._engine.statistics)
            if resumption is None and options.initial is not None:
                self._load_initial(options.initial, sink, rejects)
            code = self._consume(stream, sink, rejects, checkpoint, resumption.position if resumption else None)
        self._progress.summary(self._engine.statistics, options.deltas)
        if self._engine.statistics.malformed:
            self._progress.note(f"{self._engine.statistics.malformed:,} rejected rows are in {rejects.path}")
        return code

    @property
    def _variables(self) -> dict[str, tuple[str, ...]]:
        return {name: query.names for name, query in self._options.queries.items()}

    def _open_checkpoint(self) -> tuple[Checkpoint | None, Resumption | None]:
        options = self._options
        if options.checkpoint is None:
            return None, None
        if options.updates == "-":
            raise UsageError("--checkpoint needs updates that can be read again; standard input cannot")
        if options.deltas == "-":
            raise UsageError("--checkpoint needs deltas that can be cut back; name a file with --deltas")
        checkpoint = Checkpoint(options.checkpoint, options.identity)
        return checkpoint, checkpoint.load()

    def _open_sink(self, resumption: Resumption | None) -> DeltaSink:
        state = resumption.deltas if resumption else None
        return open_sink(self._options.deltas, self._options.format, self._variables, state)

    def _open_rejects(self, resumption: Resumption | None) -> RejectSink:
        path = self._options.rejects or default_rejects_path(self._options.deltas)
        return open_rejects(path, resumption.rejects if resumption else None)

    def _load_initial(self, initial: str, sink: DeltaSink, rejects: RejectSink) -> None:
        for batch in read_graph(initial):
            reject = _rejecter(rejects, batch.source)
            for block in self._engine.load_blocks(batch, reject):
                self._write(block, sink)
                if self._stop.is_asked:
                    return
            self._progress.tick(self._engine.statistics)

    def _consume(
        self,
        stream: Stream,
        sink: DeltaSink,
        rejects: RejectSink,
        checkpoint: Checkpoint | None,
        position: Position | None,
    ) -> int:
        engine = self._engine
        if not self._stop.is_asked:
            for batch in self._stop.interruptible(stream):
                reject = _rejecter(rejects, batch.source)
                for block in engine.blocks(batch, reject):
                    self._write(block, sink)
                    if self._stop.is_asked:
                        break
                if self._stop.is_asked:
                    break
                position = batch.position
                sink.flush()
                rejects.flush()
                self._progress.tick(engine.statistics)
                if checkpoint is not None and self._is_commit_due():
                    self._commit(checkpoint, position, sink, rejects)
        if self._stop.is_asked:
            self._progress.note(self._stop.reason)
            return INTERRUPTED
        if checkpoint is not None:
            self._commit(checkpoint, position, sink, rejects)
        sink.write(engine.finish())
        if stream.named_graphs_seen:
            self._progress.note("graph names were passed over: deltastar answers over the union of all graphs")
        if self._options.answers is not None:
            write_answers(self._options.answers, {query.name: _table(query) for query in engine.queries})
        return REJECTED if engine.statistics.malformed else OK

    def _is_commit_due(self) -> bool:
        return time.monotonic() - self._committed_at > max(_COMMIT_INTERVAL_S, _COMMIT_SHARE * self._commit_cost_s)

    def _commit(self, checkpoint: Checkpoint, position: Position | None, sink: DeltaSink, rejects: RejectSink) -> None:
        """Outputs first, then the checkpoint that speaks of them: what is cut off on a resumption came later."""
        started = time.monotonic()
        checkpoint.commit(self._engine.snapshot(), position, sink.commit(), rejects.commit())
        self._committed_at = time.monotonic()
        self._commit_cost_s = self._committed_at - started


class Stop:
    """A request to stop: SIGINT or SIGTERM. Taken between two events, or while waiting for input."""

    def __init__(self) -> None:
        self.is_asked = False
        self.reason = ""
        self._is_waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Handles the signals inside the block, where this thread may."""
        before: dict[int, Any] = {}
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                before[number] = signal.signal(number, self._ask)
        except ValueError:  # not the main thread: signals are somebody else's
            pass
        try:
            yield
        finally:
            for handled, handler in before.items():
                signal.signal(handled, handler)

    def interruptible(self, stream: Stream) -> Iterator[Any]:
        """The stream's batches, until a stop is asked for."""
        batches = iter(stream)
        while True:
            try:
                self._is_waiting = True
                if self.is_asked:
                    return
                batch = next(batches, None)
            except KeyboardInterrupt:
                return
            finally:
                self._is_waiting = False
            if batch is None:
                return
            yield batch

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True
        self.reason = f"interrupted by {signal.Signals(number).name}: what was reported so far is on disk"
        if self._is_waiting:
            raise KeyboardInterrupt


def _rejecter(rejects: RejectSink, source: str) -> Callable[[Malformed], None]:
    """Keeps a malformed row; a row that the engine could not place came from this source."""

    def reject(malformed: Malformed) -> None:
        if not malformed.source:
            malformed = Malformed(source, malformed.line, malformed.column, malformed.reason, malformed.text, False)
        rejects.write(malformed)

    return reject


def _table(registration: Registration) -> AnswerTable:
    query = registration.query
    is_ask = query.semantics is Semantics.ASK
    rows = registration.answers()
    return AnswerTable(registration.variables, rows, is_ask, bool(rows))
