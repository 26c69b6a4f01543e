"""The commands: from parsed options to an exit code. Imported once it is known which one is wanted."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from deltastar.errors import UsageError
from deltastar.pipeline import FAILED, OK, REJECTED, InlineRun, RunOptions
from deltastar.plan.decompose import make_plan
from deltastar.plan.frequencies import Frequencies
from deltastar.plan.shares import make_shares
from deltastar.progress import Progress
from deltastar.query.algebra import Query
from deltastar.query.parse import read_query
from deltastar.rdf.files import check_is_there
from deltastar.rdf.source import open_stream, read_graph
from deltastar.rdf.terms import Triple
from deltastar.rdf.update import Event, Malformed, Update
from deltastar.sink import answer_paths, default_rejects_path
from deltastar.sink.apart import check_apart
from deltastar.sink.base import doing
from deltastar.sink.encode import utf8
from deltastar.sink.files import drop_stdout
from deltastar.statistics import Statistics

_REPRODUCTION = "deltastar-verify.rdfp"


def run(options: argparse.Namespace) -> int:
    """`deltastar run`."""
    if options.engine != "spark":
        for option, value in (("--shards", options.shards), ("--master", options.master), ("--conf", options.conf)):
            if value:
                raise UsageError(f"{option} belongs to --engine spark; leave it out with --engine {options.engine}")
    progress = Progress(options.quiet, options.progress)
    with _noted(progress):
        queries = read_queries(options.queries)
        _check_outputs(options, queries)
        if options.engine == "spark":
            from deltastar.spark.pipeline import SparkRun

            return SparkRun(_run_options(options, queries), progress).execute()
        return InlineRun(_run_options(options, queries), progress).execute()


def explain(options: argparse.Namespace) -> int:
    """`deltastar explain`."""
    from deltastar.explain import explain as explain_plan

    name, query = read_query(options.query)
    plan, shares = make_plan(query), None
    if options.frequencies is not None and options.shards is None:
        raise UsageError("--frequencies say what shares to choose; say for how many --shards")
    if options.shards is not None:
        shares = make_shares({name: plan}, options.shards, _frequencies(options.frequencies)).queries[0]
    _print(explain_plan(plan, options.format, shares).rstrip("\n") + "\n")
    return OK


def _frequencies(path: str | None) -> Frequencies | None:
    if path is None:
        return None
    try:
        return Frequencies.parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def answers(options: argparse.Namespace) -> int:
    """`deltastar answers`."""
    from deltastar.answers import accumulate, render_all

    check_is_there(options.deltas)
    tables = accumulate(options.deltas, options.query, options.at)
    _print(render_all(tables, options.format))
    return OK


def verify(options: argparse.Namespace) -> int:
    """`deltastar verify`."""
    from deltastar.verify import verify as verify_stream

    queries = read_queries(options.queries)
    malformed: list[Malformed] = []
    initial = _initial_triples(options.initial, malformed) if options.initial else []
    progress, seen = Progress(line=options.progress), Statistics(malformed=len(malformed))

    def counted() -> Iterator[Event]:
        for batch in open_stream(options.updates, options.input_format):
            for event in batch.events:
                seen.messages += isinstance(event, Update) or (isinstance(event, Malformed) and event.is_message)
                if isinstance(event, Malformed):
                    seen.malformed += 1
                    malformed.append(event)
                progress.tick(seen)
                yield event

    difference = verify_stream(queries, initial, counted(), options.granularity)
    for row in malformed[:5]:
        progress.note(f"malformed row passed over: {row}")
    if difference is not None:
        progress.note(difference.describe())
        with doing(f"write {_REPRODUCTION}"), open(_REPRODUCTION, "w", encoding="utf-8") as file:
            file.write(difference.reproduction())
        progress.note(f"a stream of {len(difference.events)} rows that shows it is in {_REPRODUCTION}")
        return FAILED
    progress.note(f"{seen.messages:,} messages, {len(queries)} queries: engine and reference agree on every one")
    return REJECTED if malformed else OK


def bench(options: argparse.Namespace) -> int:
    """`deltastar bench`."""
    import json

    from deltastar.bench import bench as measure

    queries = read_queries(options.queries)
    if options.updates == "-":
        raise UsageError("a measured stream is read several times; standard input cannot be")
    malformed: set[tuple[str, int]] = set()
    report = measure(
        queries,
        options.updates,
        options.initial,
        options.input_format,
        options.granularity,
        options.repeat,
        lambda row: malformed.add((row.source, row.line)),
    )
    _print(json.dumps(report.to_json()) + "\n" if options.json else report.to_text())
    if malformed:
        Progress().note(f"{len(malformed):,} malformed rows were passed over")
    return REJECTED if malformed else OK


def warm(options: argparse.Namespace) -> int:
    """`deltastar warm`."""
    from deltastar.warm import warm as compile_all

    progress = Progress()
    for note in compile_all():
        progress.note(note)
    return OK


def read_queries(specs: Sequence[str]) -> dict[str, Query]:
    """The queries of the command line by name; two of one name are an error."""
    queries: dict[str, Query] = {}
    for spec in specs:
        name, query = read_query(spec)
        if name in queries:
            raise UsageError(f"two queries are named {name!r}; tell them apart with NAME=FILE")
        queries[name] = query
    return queries


def _print(text: str) -> None:
    """Writes a result to standard output, whole."""
    if sys.stdout is None:
        raise UsageError("standard output is closed, and the result goes there")
    try:
        with doing("write standard output"):
            sys.stdout.buffer.write(utf8(text))
            sys.stdout.buffer.flush()
    except OSError:
        drop_stdout()
        raise


def _check_outputs(options: argparse.Namespace, queries: Mapping[str, Query]) -> None:
    outputs = {"--deltas": options.deltas, "--rejects": options.rejects or default_rejects_path(options.deltas)}
    if options.answers is not None:
        paths = answer_paths(options.answers, queries)
        outputs |= {f"--answers of {name}" if len(paths) > 1 else "--answers": path for name, path in paths.items()}
    if options.checkpoint is not None:
        outputs["--checkpoint"] = options.checkpoint
    query_files = [path for spec in options.queries for path in (spec, spec.partition("=")[2]) if path]
    check_apart(outputs, [*query_files, options.updates, *([options.initial] if options.initial else [])])


def _run_options(options: argparse.Namespace, queries: Mapping[str, Query]) -> RunOptions:
    return RunOptions(
        queries=queries,
        updates=options.updates,
        input_format=options.input_format,
        initial=options.initial,
        deltas=options.deltas,
        format=options.format,
        answers=options.answers,
        granularity=options.granularity,
        engine=options.engine,
        follow=options.follow,
        checkpoint=options.checkpoint,
        rejects=options.rejects,
        strict=options.strict,
        quiet=options.quiet,
        progress=options.progress,
        shards=options.shards,
        master=options.master,
        settings=tuple(options.conf),
        debug=options.debug,
        identity=_identity(options, queries),
    )


def _identity(options: argparse.Namespace, queries: Mapping[str, Query]) -> dict[str, Any]:
    """What a checkpoint has to agree on: the queries, and whatever decides the deltas and where they go."""
    return {
        "queries": {name: hashlib.sha256(str(query).encode()).hexdigest()[:16] for name, query in queries.items()},
        "updates": _absolute(options.updates),
        "initial": _absolute(options.initial),
        "deltas": _absolute(options.deltas),
        "format": options.format,
        "granularity": options.granularity,
        "strict": options.strict,
        "engine": "spark" if options.engine == "spark" else "inline",
    }


def _absolute(path: str | None) -> str | None:
    return path if path is None or path == "-" else os.path.abspath(path) + ("/" if path.endswith("/") else "")


def _initial_triples(spec: str, malformed: list[Malformed]) -> list[Triple]:
    triples = []
    for event in chain.from_iterable(batch.events for batch in read_graph(spec)):
        if isinstance(event, Update):
            triples.append(event.triple)
        elif isinstance(event, Malformed):
            malformed.append(event)
    return triples


@contextmanager
def _noted(progress: Progress) -> Iterator[None]:
    """Warnings of the package become notes inside the block."""
    handler, log = _NoteHandler(progress), logging.getLogger("deltastar")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _NoteHandler(logging.Handler):
    """Warnings of the package, as notes between the progress lines."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(logging.WARNING)
        self._progress = progress

    def emit(self, record: logging.LogRecord) -> None:
        self._progress.note(record.getMessage())
