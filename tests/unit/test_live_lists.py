"""Live lists: they hold what is live and nothing else, come where dead ends are, and go when they cost more."""

from __future__ import annotations

from random import Random

import pytest

from deltastar import layout as at
from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.kernel import graph
from deltastar.machine import Machine
from tests.support.generate import random_case
from tests.support.judge import judge, switching

PATH = "SELECT * { ?a <u:p> ?hub . ?hub <u:q> ?n . ?n <u:r> ?m . ?m <u:s> ?z }"


def engine_of(machine: Machine, *queries: str) -> Engine:
    engine = Engine(evaluation=lambda rules, statistics: CompiledEvaluation(rules, statistics, machine))
    for query in queries:
        engine.register(query)
    return engine


def lists(machine: Machine) -> dict[tuple[int, int], tuple[set[int], set[int]]]:
    """For each kind that is kept and each node: the neighbours that are live, and those in its live list."""
    arrays, nodes = machine.arena.arrays, int(machine.terms.counters[1]) + 1

    def neighbours(node: int, slot: int) -> set[int]:
        entry = graph.find_entry(arrays["nodes"], arrays["heap"], node, slot)
        count = graph.size_of(arrays["heap"], entry) if entry else 0
        return {int(graph.neighbour_at(arrays["heap"], entry, index)) for index in range(count)}

    found = {}
    for kind in machine.program.lives:
        if kind.is_kept:
            for node in range(1, nodes):
                alive = {n for n in neighbours(node, kind.key.slot) if is_live(machine, kind.key, n, neighbours)}
                found[kind.number, node] = alive, neighbours(node, kind.slot)
    return found


def is_live(machine: Machine, key, node, neighbours) -> bool:  # type: ignore[no-untyped-def]
    """From the definition, with no lists but those of all neighbours."""
    told = {kind.key for kind in machine.program.lives if kind.is_kept}
    flags = int(machine.arena.arrays["flags"][node])
    by_number = {relation.number: relation for relation in machine.program.relations}
    if not all(flags & by_number[flag].bit for flag in key.flags):
        return False
    return all(
        any(below not in told or is_live(machine, below, n, neighbours) for n in neighbours(node, slot))
        for slot, below in key.needs
    )


@pytest.mark.parametrize("seed", range(30))
def test_they_hold_exactly_what_is_live(seed: int) -> None:
    random = Random(seed)
    machine = Machine(live_room=-1000)
    engine = engine_of(
        machine,
        PATH,
        "SELECT * { ?a <u:p> ?b . ?b <u:p> ?c . ?c <u:q> ?d . ?c <u:k> <u:1> . ?d <u:r> ?e }",
        "SELECT * { ?a <u:q> ?b . ?b <u:r> ?c . ?c <u:p> ?a . ?c <u:s> ?d . ?d <u:s> ?e }",
    )
    seen = 0
    for _ in range(150):
        s, o = (f"<u:{random.randrange(5)}>" for _ in "so")
        change = engine.insert if random.random() < 0.6 else engine.delete
        change(s, f"<u:{random.choice('pqrsk')}>", o)
        for alive, listed in lists(machine).values():
            assert listed == alive
            seen += len(listed)
    assert seen


def hub(engine: Engine, neighbours: int) -> None:
    """A hub whose neighbours lead on, but not twice."""
    for n in range(neighbours):
        engine.insert("<u:hub>", "<u:q>", f"<u:n{n}>")
        engine.insert(f"<u:n{n}>", "<u:r>", f"<u:m{n}>")


def kept(machine: Machine) -> int:
    return sum(kind.is_kept for kind in machine.program.lives)


def test_they_come_with_dead_ends_and_go_with_the_queries() -> None:
    machine = Machine(live_room=100)
    engine = engine_of(machine, PATH)
    hub(engine, 300)
    assert kept(machine) == 0
    for n in range(20):
        assert engine.insert(f"<u:a{n}>", "<u:p>", "<u:hub>") == []
    assert kept(machine) == 2  # the neighbours that lead on, and the hub's of which these are live
    assert len(engine.insert("<u:m7>", "<u:s>", "<u:z>")) == 20
    assert len(engine.insert("<u:b>", "<u:p>", "<u:hub>")) == 1
    assert len(engine.delete("<u:hub>", "<u:q>", "<u:n7>")) == 21
    engine.queries[0].unregister()
    assert list(machine.program.lives) == []
    assert machine.arena.arrays["counters"][at.C_HEAP_IN_USE] <= 1  # a hub's number waits for the next hub


def test_they_go_when_they_cost_more_than_they_spare() -> None:
    machine = Machine(live_room=100)
    engine = engine_of(machine, PATH)
    hub(engine, 300)
    for n in range(20):
        engine.insert(f"<u:a{n}>", "<u:p>", "<u:hub>")
    came = [kind for kind in machine.program.lives if kind.is_kept]
    assert len(came) == 2
    for n in range(20):
        engine.delete(f"<u:a{n}>", "<u:p>", "<u:hub>")
    for turn in range(400):  # nobody asks for the hub's live neighbours, and they change all the time
        change = engine.delete if turn % 2 else engine.insert
        for n in range(5):
            assert change(f"<u:m{n}>", "<u:s>", "<u:z>") == []
    assert not any(kind.is_kept for kind in came)


def test_ordinary_streams_do_without() -> None:
    machine, random = Machine(), Random(1)
    engine = engine_of(machine, PATH)
    for _ in range(20_000):
        s, o = (f"<u:{random.randrange(3000)}>" for _ in "so")
        (engine.insert if random.random() < 0.7 else engine.delete)(s, f"<u:{random.choice('pqrs')}>", o)
    assert kept(machine) == 0


@pytest.mark.parametrize("block", range(4))
def test_answers_are_the_same_while_they_come_and_go(block: int) -> None:
    assert sum(judge(random_case(seed), switching) for seed in range(block, 400, 4)) > 400
