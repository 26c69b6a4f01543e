"""The pictures of the documents are what `deltastar explain` draws now."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deltastar.explain import explain
from deltastar.plan.decompose import Plan, make_plan
from deltastar.query.parse import parse_query
from tests.docs.test_documents import ROOT, all_blocks, blocks

READING_A_PLAN = ROOT / "docs/how-to/reading-a-plan.md"


def ring() -> Plan:
    return make_plan(parse_query((ROOT / "examples/transfers/ring.rq").read_text(encoding="utf-8")))


def paper() -> Plan:
    return make_plan(parse_query(next(text for _, name, text in all_blocks(READING_A_PLAN) if name == "paper.rq")))


@pytest.mark.parametrize(("name", "plan"), [("ring", ring), ("paper", paper)])
def test_svg(name: str, plan: Callable[[], Plan]) -> None:
    drawn = explain(plan(), "svg").rstrip("\n")
    kept = (ROOT / f"docs/img/{name}.svg").read_text(encoding="utf-8").rstrip("\n")
    assert kept == drawn, f"write it anew: deltastar explain {name}.rq --format svg > docs/img/{name}.svg"


def test_mermaid() -> None:
    assert blocks(READING_A_PLAN, "mermaid") == [explain(paper(), "mermaid").rstrip("\n") + "\n"]
