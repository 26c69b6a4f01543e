"""A broken engine is found out, and the stream that shows it is as short as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from deltastar.engine import Engine
from deltastar.paper.evaluation import PaperEvaluation
from deltastar.paper.evaluator import IdTriple, PaperEvaluator, Values
from deltastar.query.parse import parse_query
from deltastar.rdf.update import Mark, Update
from deltastar.verify import verify
from tests.support.generate import random_case


class Forgetful(PaperEvaluator):
    """Misses the second pattern of a self-join."""

    def step(self, op: str, triple: IdTriple, patterns: Sequence[int]) -> Iterator[Values]:
        yield from super().step(op, triple, patterns[:1])


def broken(granularity: str) -> Engine:
    return Engine(granularity=granularity, evaluation=partial(PaperEvaluation, evaluator=Forgetful))


QUERIES = {
    "fine": parse_query("SELECT * { ?x <e:q> ?y }"),
    "path": parse_query("SELECT * { ?x <e:p> ?y . ?y <e:p> ?z }"),
}


def stream(text: str) -> list[Update]:
    return [Update.of(row[0], *(f"<e:{name}>" for name in row[1:].split())) for row in text.split(" | ")]


def test_the_reproduction_is_minimal() -> None:
    events = stream("+a q b | +c p d | +x p y | -x p y | +a p b | +b p c | +e p f | +c q d")
    difference = verify(QUERIES, [], events, make_engine=broken)
    assert difference is not None
    assert list(difference.queries) == ["path"]
    assert len(difference.events) == 2
    assert difference.seq == 2
    assert (len(difference.missing), len(difference.surplus)) == (1, 0)
    assert "missing  path #2 + ?x=<e:" in difference.describe()
    rows = [row for row in difference.reproduction().splitlines() if not row.startswith("#")]
    assert len(rows) == 2
    assert all(row.startswith("A <e:") for row in rows)


def test_the_initial_graph_is_shrunk_too() -> None:
    initial = [update.triple for update in stream("+a p b | +x p y | +m q n")]
    difference = verify(QUERIES, initial, stream("+q p r | +b p c"), make_engine=broken)
    assert difference is not None
    assert len(difference.initial) + len(difference.events) == 2


def test_marks_may_be_left_out() -> None:
    events = [Mark.BEGIN, *stream("+a p b | +b p c"), Mark.COMMIT]
    difference = verify(QUERIES, [], events, "transaction", make_engine=broken)
    assert difference is not None
    assert difference.granularity == "transaction"


def test_a_sound_engine_has_no_difference() -> None:
    for seed in range(50):
        case = random_case(seed)
        assert verify(case.queries, [], case.events, case.granularity) is None
