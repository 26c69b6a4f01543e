"""Compiles the kernel ahead of the first run: a small stream that goes through everything there is to compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory

from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.errors import UsageError
from deltastar.evaluation import Rules
from deltastar.kernel.jit import CACHE, is_cold, say_warm
from deltastar.machine import Machine
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.update import Mark, Update
from deltastar.sharding.journal import MemoryJournal
from deltastar.sharding.router import Router
from deltastar.sharding.shard import Compaction, Shard, ShardSettings
from deltastar.sink.columns import texts
from deltastar.statistics import Statistics

NOTE = "compiling the kernel, which is done once and takes half a minute ('deltastar warm' does it ahead of a run)"

_QUERIES = {
    "path": "SELECT * { ?a <w:p> ?b . ?b <w:q> ?c }",
    "ring": "SELECT ?a { ?a <w:p> ?b . ?b <w:p> ?c . ?c <w:p> ?a . ?a <w:q> 'x' }",
    "tree": "SELECT DISTINCT ?a { ?a <w:p> ?b . ?a <w:q> ?c . ?b <w:q> ?d . ?a <w:k> <w:1> }",
    "product": "SELECT * { ?a <w:p> ?b . ?c <w:q> <w:1> . <w:1> <w:p> <w:2> }",
    "any": "ASK { ?a ?p ?b . ?b ?p ?c }",
}
_ROWS = """\
A <w:1> <w:p> <w:2> .
TX .
A <w:2> <w:q> <w:3> .
D <w:2> <w:q> <w:3> .
A <w:2> <w:q> "x" .
TA .
A <w:3> <w:p> <w:1> .
A <w:2> <w:p> <w:3> .
D <w:2> <w:p> <w:3> .
"""


def warm() -> Iterator[str]:
    """Does it, and says what it does; nothing if it was done before."""
    if not is_cold():
        yield f"compiled already: {CACHE}"
        return
    yield f"compiling the kernel into {CACHE}"
    for granularity in ("message", "transaction"):
        machine = Machine()
        evaluation = _Given(machine)
        engine = Engine(granularity=granularity, evaluation=evaluation)
        for name, text in _QUERIES.items():
            engine.register(text, name)
        _go_through(engine, machine, evaluation)
        yield f"{granularity} by {granularity}: done"
    with TemporaryDirectory(prefix="deltastar-") as directory:
        for granularity in ("message", "transaction"):
            _go_through_shards(granularity, directory)
    yield "shards: done"
    say_warm()


def compile_once(say: Callable[[str], None]) -> None:
    """Before a run: if nothing was compiled yet, says so and does it."""
    if is_cold():
        say(NOTE)
        for _ in warm():
            pass


def _go_through_shards(granularity: str, directory: str) -> None:
    """What a run on several shards compiles beside that: routing, arenas, snapshots, cuts."""
    router, settings = Router(_QUERIES, 2, granularity), ShardSettings(_QUERIES, 0, 2, granularity)
    journal, arenas = MemoryJournal(), f"{directory}/{granularity}"
    data = _ROWS + "TX .\nA <w:8> <w:p> <w:2> .\n"
    routed = [("warm", router.route(data.encode(), Syntax.PATCH, "warm")[0])]
    numbered = [("", router.route_rows([seq], ["A"], [f"<w:{seq}>"], ["<w:p>"], ["<w:2>"])[0]) for seq in (9, 8)]
    shard = Shard(settings, journal, arenas, Compaction(0, 0.0))
    for batch in (0, 0, 1):
        for _ in shard.apply(batch, routed):
            pass
    again = Shard(settings, journal, f"{arenas}-again")
    for _ in again.apply(2, numbered):
        pass


class _Given:
    """Makes the evaluation with a machine that can be reached from outside."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __call__(self, rules: Rules, statistics: Statistics) -> CompiledEvaluation:
        self.evaluation = CompiledEvaluation(rules, statistics, self._machine)
        return self.evaluation


def _go_through(engine: Engine, machine: Machine, given: _Given) -> None:
    variables = {query.name: query.variables for query in engine.queries}
    writers = [given.evaluation.writer(format, variables) for format in ("jsonl", "csv", "tsv")]
    with suppress(UsageError):  # without pyarrow there are no columns
        writers.append(given.evaluation.writer("parquet", variables))
    sink = _Nowhere()
    for syntax, data in ((Syntax.PATCH, _ROWS), (Syntax.NTRIPLES, "<w:3> <w:q> <w:4> .\n")):
        batch = Batch(Position("warm", 0, 1), "warm", data.encode(), syntax)
        for block in given.evaluation.load_batch(batch, lambda malformed: None):
            list(block)
        batch = Batch(Position("warm", 0, 1), "warm", data.encode(), syntax)
        for block in given.evaluation.batch(batch, lambda malformed: None):
            list(block)
            for writer in writers:
                with suppress(UsageError):
                    writer.write(block, sink)  # type: ignore[arg-type]
    machine.begin_batch()
    _one_by_one(engine)
    machine.commit_batch(1)
    machine.undo_batch()
    late = engine.register("SELECT * { ?x <w:p> ?y . ?y <w:p> ?z . ?z <w:k> ?x . ?u <w:k> ?v }", "late")
    assert late.answers() is not None
    assert all(query.answers() is not None for query in engine.queries)
    for query in engine.queries:
        query.unregister()
    texts(machine.table, machine.out[:0])
    assert engine.terms_in_use >= 0


def _one_by_one(engine: Engine) -> None:
    for mark in (Mark.BEGIN, Mark.COMMIT):
        engine.process(mark)
        for node in "123":
            engine.process(Update.insert(f"<w:{node}>", "<w:p>", "<w:2>"))
            engine.process(Update.delete("<w:1>", "<w:p>", f"<w:{node}>"))
    engine.process(Mark.BEGIN)
    engine.process(Update.insert("<w:1>", "<w:q>", "<w:1>"))
    engine.process(Mark.ABORT)


class _Nowhere:
    """A sink that takes everything."""

    def write_encoded(self, data: object, count: int) -> None:
        """Lines."""

    def write_columns(self, batch: object) -> None:
        """Columns."""
