"""A batch that is taken back leaves everything as it was, whatever was in it; and it can be applied again."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from deltastar.compiled import CompiledEvaluation
from deltastar.engine import Engine
from deltastar.machine import Machine
from deltastar.rdf.update import Malformed, Mark
from deltastar.verify import as_bag
from tests.support.generate import Case, random_case

CASES = int(os.environ.get("DELTASTAR_UNDO_CASES", "150"))


def state_of(engine: Engine) -> tuple[object, ...]:
    """What an engine knows, ids aside."""
    answers = {query.name: Counter(tuple(sorted(row.items())) for row in query.answers()) for query in engine.queries}
    counts = {query.name: query.count() for query in engine.queries}
    return frozenset(engine.retained()), engine.terms_in_use, answers, counts


def messages_only(case: Case) -> list[object]:
    """Whole transactions, and rows outside of them."""
    return [event for event in case.events if not isinstance(event, Malformed)]


@pytest.mark.parametrize("block", range(3))
def test_a_batch_taken_back_was_never_there(block: int) -> None:
    for seed in range(block, CASES, 3):
        case, random = random_case(seed), Random(seed)
        machine = Machine(hash_bits=random.choice((2, 31)), messages=random.choice((1, 4, 64)))
        engine = Engine(evaluation=lambda rules, statistics, m=machine: CompiledEvaluation(rules, statistics, m))  # type: ignore[misc]
        for name, query in case.queries.items():
            engine.register(query, name)
        events = messages_only(case)
        version = 0
        while events:
            size = random.choice((1, 3, 8))
            batch, events = events[:size], events[size:]
            is_open = engine._evaluation.opened_at is not None
            machine.begin_batch()
            assert machine.is_dirty
            before = state_of(engine)
            first = apply(engine, batch)
            machine.commit_batch(version := version + 1)
            assert (machine.version, machine.is_dirty) == (version, False)
            after = state_of(engine)
            if random.random() < 0.6:
                continue
            machine.undo_batch()
            assert (machine.version, machine.is_dirty) == (version - 1, False)
            assert state_of(engine) == before, f"seed {seed}"
            set_open(engine, is_open)
            machine.begin_batch()
            assert apply(engine, batch) == first, f"seed {seed}"
            machine.commit_batch(version)
            assert state_of(engine) == after


def apply(engine: Engine, batch: list[object]) -> Counter[object]:
    """The deltas, without their seq."""
    found: Counter[object] = Counter()
    for event in batch:
        for query, _, op, row in as_bag(engine.process(event, lambda malformed: None)).elements():  # type: ignore[arg-type]
            found[query, op, row] += 1
    return found


def set_open(engine: Engine, is_open: bool) -> None:
    """The mark that was passed last is the intake's to remember."""
    if (engine._evaluation.opened_at is not None) != is_open:
        from deltastar import layout as at

        engine._evaluation.machine.cursor[at.U_IS_OPEN] = is_open  # type: ignore[attr-defined]


def test_marks_are_events() -> None:
    assert any(Mark.ABORT in random_case(seed).events for seed in range(CASES))


def test_an_arena_in_a_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "arena"
    machine = Machine(str(path))
    machine.begin_batch()
    machine.commit_batch(7)
    again = Machine(str(path))
    assert (again.version, again.is_dirty, again.arena.is_new) == (7, False, False)
    assert path.stat().st_blocks * 512 < 1 << 20  # as long as it may ever become, and as large as it is
