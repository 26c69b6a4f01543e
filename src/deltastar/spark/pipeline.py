"""A run on Spark: source → routing → shards → sink, micro-batch by micro-batch, exactly once.

In: `RunOptions`. Out: files, and an exit code. Structured Streaming decides which splits make a micro-batch and
remembers it; the shards keep their state and their journals; this module writes what they give and commits. Between two
micro-batches everything that the source has given is in the shards, and every delta in the sink.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deltastar.delta import Binding
from deltastar.errors import DeltastarError, SourceError, UsageError
from deltastar.pipeline import INTERRUPTED, OK, REJECTED, RunOptions, Stop
from deltastar.progress import Progress
from deltastar.query.algebra import Semantics
from deltastar.rdf.source import open_stream, read_graph
from deltastar.rdf.terms import of_canonical
from deltastar.sink import (
    AnswerTable,
    default_rejects_path,
    exists,
    format_of,
    open_rejects,
    write_answers,
)
from deltastar.sink.encode import encoder, utf8
from deltastar.spark.commits import NOTHING, Commit, RunDirectory
from deltastar.spark.failures import explained
from deltastar.spark.session import Session, check_installed, is_one_machine, parsed_settings, parsed_size
from deltastar.spark.spool import Spool, is_spooled
from deltastar.statistics import Statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from deltastar.spark.evaluate import ShardPlan
    from deltastar.spark.outputs import Output

FINITE_BATCH_BYTES = 1 << 28
FOLLOWED_BATCH_BYTES = 1 << 25
BATCH_BYTES = "spark.deltastar.maxBytesPerTrigger"
"""The setting that says what a micro-batch may hold."""
_WAIT_S = 0.2


class SparkRun:
    """One run, from its options to its exit code."""

    def __init__(self, options: RunOptions, progress: Progress) -> None:
        check_installed()
        self._options, self._progress = options, progress
        self._stop = Stop()
        self._format = format_of(options.deltas, options.format)
        self._variables = {name: query.names for name, query in options.queries.items()}
        self._statistics = Statistics()
        self._failure: BaseException | None = None
        self._writing = threading.Lock()
        self._batch = NOTHING
        self._is_graph_named = False
        self._waiting: int | None = None
        self._check()

    def execute(self) -> int:
        """Runs to the end of the stream, or until it is asked to stop."""
        from deltastar.warm import compile_once

        options, progress = self._options, self._progress
        compile_once(progress.note)
        with ExitStack() as stack:
            self._run = stack.enter_context(RunDirectory(options.checkpoint, options.identity))
            replaces = options.checkpoint is None and exists(options.deltas)
            expected = self._run.shards()
            if expected is not None:
                self._run.load(options.shards or expected)  # refused before anything is started
            self._session = stack.enter_context(self._started())
            self._shards = options.shards or expected or self._session.cores
            commit = self._run.load(self._shards)
            stack.enter_context(self._arenas())
            self._plan = self._shard_plan()
            self._output = self._open_output(commit)
            stack.callback(self._output.close)
            if replaces:
                progress.note(
                    f"{options.deltas} was there already: starting from nothing and replacing it "
                    "(a run with --checkpoint DIR can be continued)"
                )
            path = options.rejects or default_rejects_path(options.deltas)
            self._rejects = stack.enter_context(open_rejects(path, commit.rejects if commit else None))
            stack.enter_context(self._stop.on_signals())
            if commit is not None:
                self._batch, self._statistics = commit.batch, commit.statistics
                progress.note(f"continuing after message {self._statistics.messages:,}")
            progress.start(self._statistics)
            code = self._consume()
        progress.summary(self._statistics, options.deltas)
        if self._statistics.malformed:
            progress.note(f"{self._statistics.malformed:,} rejected rows are in {path}")
        return code

    # Before anything runs --------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuses at once what cannot work; starting Spark takes seconds."""
        options = self._options
        if options.deltas.startswith("kafka://") or options.updates.startswith("kafka://"):
            raise UsageError("Kafka is not part of this version; use files")
        if options.checkpoint is not None and options.deltas == "-":
            raise UsageError("--checkpoint needs deltas that can be cut back; name a file with --deltas")
        if options.checkpoint is None and not is_one_machine(options.master):
            raise UsageError(
                "on a cluster, a run needs a --checkpoint on a file system that all its machines have: "
                "that is how one of them goes on with the shards of another"
            )
        open_stream(options.updates, options.input_format, options.follow).close()
        if options.checkpoint is not None and is_spooled(options.updates):
            raise UsageError("--checkpoint needs updates that can be read again; standard input cannot")
        if options.initial is not None:
            read_graph(options.initial).close()
            if options.initial == "-" or is_spooled(options.initial):
                raise UsageError("the initial graph must be a file or a directory; a pipe cannot be read twice")

    def _started(self) -> Session:
        options = self._options
        return Session(options.master, options.settings, options.debug, self._progress.note)

    @contextmanager
    def _arenas(self) -> Iterator[None]:
        """The directory of the shards' arenas on this machine, in memory where that is possible."""
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else self._run.directory("arenas")
        _clear_away(base)
        self._arena_directory = os.path.join(base, f"deltastar-run-{os.getpid()}-{self._session.application}")
        try:
            yield
        finally:
            shutil.rmtree(self._arena_directory, ignore_errors=True)

    def _shard_plan(self) -> ShardPlan:
        from deltastar.spark.evaluate import ShardPlan

        options = self._options
        writes_parts = self._format == "parquet" or options.deltas.endswith("/")
        header = b"" if self._format == "parquet" else utf8(encoder(self._format, self._variables, False).header)
        is_shared = self._session.is_local or self._run.is_durable
        if writes_parts and not self._session.is_local and not options.deltas.startswith("/"):
            raise UsageError("on a cluster, name the directory of the deltas by its full path")
        return ShardPlan(
            queries={name: str(query) for name, query in options.queries.items()},
            shards=self._shards,
            granularity=options.granularity,
            strict=options.strict,
            format=self._format,
            journals=self._run.directory("shards") if self._run.is_durable else self._arena_directory,
            arenas=self._arena_directory,
            spool=self._run.directory("spool") if is_shared else None,
            parts=os.path.abspath(options.deltas) if writes_parts else None,
            header=header,
        )

    def _open_output(self, commit: Commit | None) -> Output:
        from deltastar.spark.outputs import OneFile, Parts

        state = commit.deltas if commit else None
        if self._plan.parts is not None:
            return Parts(self._options.deltas, self._format, self._variables, self._shards, state)
        return OneFile(self._options.deltas, self._format, self._variables, state)

    # The stream ------------------------------------------------------------------------------------------------------

    def _consume(self) -> int:
        options = self._options
        spool = None
        if is_spooled(options.updates):
            spool = Spool(options.updates, options.input_format, self._run.directory("input"))
        query = self._start(spool)
        try:
            self._await(query, spool)
        except Exception as failure:  # Spark wraps what a micro-batch raised
            self._failure = self._failure or failure
        finally:
            query.stop()
            with self._writing:  # a micro-batch that is being written is written to its end
                pass
        self._raise_failure(query)
        if self._stop.is_asked:
            self._progress.note(self._stop.reason)
            return INTERRUPTED
        self._finish(spool)
        return REJECTED if self._statistics.malformed else OK

    def _start(self, spool: Spool | None) -> StreamingQuery:
        from deltastar.spark.chunks import NAME, OPTION, ChunkPlan, ChunkSource

        options = self._options
        is_endless = options.follow or spool is not None
        plan = ChunkPlan(
            updates=spool.path if spool else _full(options.updates),
            queries=self._plan.queries,
            shards=self._shards,
            granularity=options.granularity,
            strict=options.strict,
            input_format=options.input_format,
            initial=None if options.initial is None else _full(options.initial),
            labels=self._labels(spool),
            follow=is_endless,
            batch_bytes=self._batch_bytes(is_endless),
            cores=self._session.cores,
        )
        spark = self._session.spark
        spark.dataSource.register(ChunkSource)
        frame = spark.readStream.format(NAME).option(OPTION, plan.to_json()).load()
        writer = frame.writeStream.foreachBatch(self._apply).option("checkpointLocation", self._run.directory("spark"))
        trigger = {"processingTime": "0 seconds"} if is_endless else {"availableNow": True}
        return writer.trigger(**trigger).start()

    def _batch_bytes(self, is_endless: bool) -> int:
        chosen = parsed_settings(self._options.settings).get(BATCH_BYTES)
        chosen = chosen or self._session.spark.conf.get(BATCH_BYTES, None)
        if chosen is not None:
            return parsed_size(BATCH_BYTES, chosen)
        return FOLLOWED_BATCH_BYTES if is_endless else FINITE_BATCH_BYTES

    def _labels(self, spool: Spool | None) -> dict[str, str]:
        """What messages call the inputs, where that is not their full path."""
        options = self._options
        labels = {spool.path: spool.label} if spool else {_full(options.updates): options.updates}
        if options.initial is not None:
            labels[_full(options.initial)] = options.initial
        return labels

    def _await(self, query: StreamingQuery, spool: Spool | None) -> None:
        while not self._stop.is_asked:
            if spool is not None and spool.ended.is_set():
                query.processAllAvailable()
                return
            if query.awaitTermination(_WAIT_S):  # type: ignore[arg-type]
                return

    def _raise_failure(self, query: StreamingQuery) -> None:
        failure = self._failure or query.exception()
        if failure is None or (self._stop.is_asked and not isinstance(failure, OSError | DeltastarError)):
            return  # stopping a query in the middle of a micro-batch makes it fail
        if isinstance(failure, OSError | DeltastarError | MemoryError):
            raise failure
        if self._options.debug:  # Spark's exceptions cannot tell any more once it has stopped
            self._progress.note(str(failure))
        error = explained(failure, self._session.log)
        if self._session.log in str(error):
            self._session.keep_log()
        raise error from failure

    # A micro-batch ---------------------------------------------------------------------------------------------------

    def _apply(self, frame: DataFrame, batch: int) -> None:
        """What Spark calls. A failure is kept: what Spark makes of it on the way is hard to read."""
        with self._writing:
            if self._stop.is_asked or batch <= self._batch:
                return  # this one was written, and Spark was stopped before it knew
            try:
                self._apply_batch(frame, batch)
            except BaseException as failure:
                self._failure = failure
                raise

    def _apply_batch(self, frame: DataFrame, batch: int) -> None:
        from deltastar.spark.evaluate import PIECES, evaluation
        from deltastar.spark.outputs import BatchOutput, check, write_rejects

        started = time.monotonic()
        shards = frame.repartitionById(self._shards, "shard").mapInArrow(evaluation(self._plan, batch), PIECES)
        output = BatchOutput.of(shards.toArrow())
        self._output.write(batch, output)
        write_rejects(self._rejects, output)
        if output.statistics:
            self._statistics = output.total()
            self._waiting = output.waiting
            self._is_graph_named |= output.is_graph_named
        check(output)
        self._batch = batch
        if self._run.is_durable:
            self._run.commit(Commit(batch, self._statistics, self._output.commit(batch), self._rejects.commit()))
        self._progress.tick(self._statistics, f"micro-batch {batch} in {1000 * (time.monotonic() - started):,.0f} ms")

    # The end ---------------------------------------------------------------------------------------------------------

    def _finish(self, spool: Spool | None) -> None:
        options = self._options
        if spool is not None and spool.fault is not None:
            raise SourceError(spool.fault)
        if self._waiting is not None:
            self._statistics.discarded += 1
            self._progress.note(f"the stream ends inside a transaction (no TC): its {self._waiting} rows are discarded")
        if self._is_graph_named:
            self._progress.note("graph names were passed over: deltastar answers over the union of all graphs")
        if options.answers is not None:
            write_answers(options.answers, self._answers())

    def _answers(self) -> dict[str, AnswerTable]:
        """All queries' answers, from all shards."""
        from deltastar.spark.evaluate import PIECES, description
        from deltastar.spark.outputs import BatchOutput

        shards = self._session.spark.range(0, self._shards, 1, self._shards)
        names = list(self._options.queries)
        try:
            table = shards.mapInArrow(description(self._plan, names), PIECES).toArrow()
        except Exception as failure:
            raise explained(failure, self._session.keep_log()) from failure
        found = BatchOutput.of(table).answers
        return {name: self._table(name, found.get(name, [])) for name in names}

    def _table(self, name: str, rows: list[list[str]]) -> AnswerTable:
        query = self._options.queries[name]
        bound = [variable for variable in query.projection if variable in query.pattern.variables]
        positions = {variable.name: position for position, variable in enumerate(bound)}
        bindings = [Binding(positions, tuple(map(of_canonical, row if bound else []))) for row in rows]
        return AnswerTable(query.names, bindings, query.semantics is Semantics.ASK, bool(bindings))


def _full(path: str) -> str:
    """The path from the root: a worker may have another current directory."""
    return str(Path(path).absolute())


def _clear_away(base: str) -> None:
    """Removes the arenas of runs that were killed."""
    for name in os.listdir(base):
        match = re.fullmatch(r"deltastar-run-(\d+)-.*", name)
        if match is not None and not os.path.exists(f"/proc/{match[1]}"):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
