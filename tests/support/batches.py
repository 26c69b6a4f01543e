"""The judge of what comes in as bytes: a case as RDF Patch, cut anywhere, through an engine with no room to spare."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.evaluation import Rules
from deltastar.machine import Machine
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.ntriples import Syntax
from deltastar.rdf.terms import Term
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.reference import ReferenceEngine
from deltastar.sink.encode import JsonLines
from deltastar.statistics import Statistics
from deltastar.verify import as_bag
from tests.support.generate import Case
from tests.support.judge import Difference, compare_answers


def cramped(random: Random, granularity: str) -> Engine:
    """An engine whose buffers are so small that everything has to be stopped and continued; its hashes collide."""
    machine = Machine(
        out_ints=random.choice((16, 24, 100)),
        stage_ints=random.choice((16, 40)),
        seed=random.randrange(1 << 30),
        hash_bits=random.choice((1, 3, 31)),
        messages=random.choice((1, 2, 5, 64)),
        live_room=random.choice((-1000, -12, 0)),
    )

    def evaluation(rules: Rules, statistics: Statistics) -> CompiledEvaluation:
        return CompiledEvaluation(rules, statistics, machine)

    return Engine(granularity=granularity, evaluation=evaluation)


def text_of(event: Event, random: Random) -> str:
    """A row of RDF Patch, plain or so that only the exact reader can read it."""
    if isinstance(event, Update):
        space = random.choice((" ", " ", " ", "\t", "  "))
        row = space.join(("A" if event.op == INSERT else "D", *map(str, event.triple)))
        if random.random() < 0.2:
            row = row.replace("http://ex/", "http://\\u0065x/", 1)
        return row + random.choice((" .", ".", " . # comment"))
    if isinstance(event, Mark):
        return event.value + random.choice((" .", " .", ".", "  . # mark"))
    return event.text if event.is_message else "nonsense"


def judge_batches(case: Case, seed: int) -> int:
    """Feeds the case as bytes. Per seq, its deltas must be those of the reference. Returns the number of messages."""
    random = Random(seed)
    engine = cramped(random, case.granularity)
    for name, query in case.queries.items():
        engine.register(query, name)
    write_lines = JsonLines()
    lines = [text_of(event, random) for event in case.events]
    end = random.choice(("\n", "\n", "\r\n"))
    data = "".join(line + end + random.choice(("", "", "# note" + end)) for line in lines).encode()
    rejected: list[Malformed] = []
    actual: Counter[object] = Counter()
    batches = list(cut(data, random))
    line = 1
    for piece in batches:
        batch = Batch(Position("case", 0, line), "case", piece, Syntax.PATCH)
        for block in engine.blocks(batch, rejected.append):
            deltas = list(block)
            actual += as_bag(deltas)
            assert all(json.loads(text)["seq"] for text in write_lines.encode(deltas).splitlines())
        line = batch.position.line
    actual += as_bag(engine.finish())
    compare_to_reference(case, engine, actual, rejected, data)
    return len(case.events)


def compare_to_reference(
    case: Case, engine: Engine, actual: Counter[object], rejected: list[Malformed], data: bytes
) -> None:
    """The whole run against the reference, event by event."""
    reference = ReferenceEngine(case.queries, case.granularity)
    expected: Counter[object] = Counter()
    misplaced, is_open = 0, False
    for event in case.events:
        if isinstance(event, Mark):
            misplaced += is_open == (event is Mark.BEGIN)
            is_open = event is Mark.BEGIN
        expected += as_bag(reference.step(event))
    expected += as_bag(reference.finish())
    if actual != expected:
        raise Difference(f"missing {list(expected - actual)}, surplus {list(actual - expected)} in\n{data.decode()}")
    malformed = sum(isinstance(event, Malformed) for event in case.events)
    if len(rejected) != malformed + misplaced or engine.statistics.malformed != len(rejected):
        raise Difference(f"{len(rejected)} rejected instead of {malformed + misplaced} in\n{data.decode()}")
    if engine.seq != reference.seq:
        raise Difference(f"seq {engine.seq} instead of {reference.seq}")
    compare_answers(engine, case.queries, reference.graph, f"{case}")
    constants = {
        node
        for query in case.queries.values()
        for pattern in query.pattern.patterns
        for node in pattern.nodes
        if isinstance(node, Term)
    }
    terms = {term for triple in engine.retained() for term in triple}
    if not len(terms) <= engine.terms_in_use <= len(terms | constants):
        raise Difference(f"{engine.terms_in_use} terms in use instead of {len(terms)} in\n{data.decode()}")


def cut(data: bytes, random: Random) -> list[bytes]:
    """Whole lines, in pieces."""
    lines = data.splitlines(keepends=True)
    pieces = []
    while lines:
        size = random.choice((1, 2, 3, 7, 1000))
        pieces.append(b"".join(lines[:size]))
        lines = lines[size:]
    return pieces
