"""Shares: which variables get them, where cells lie, and what that costs."""

from __future__ import annotations

import json
import math
from random import Random

import pytest

from deltastar.errors import UsageError
from deltastar.explain import explain
from deltastar.plan.decompose import make_plan
from deltastar.plan.frequencies import Frequencies, Frequency, key_of
from deltastar.plan.shares import MOST_CLASSES, QueryShares, make_shares
from deltastar.query.parse import parse_query
from tests.support.generate import random_case

PATH = "SELECT * { ?a <p:p> ?b . ?b <p:q> ?c }"


def shares_of(text: str, shards: int, frequencies: Frequencies | None = None) -> QueryShares:
    return make_shares({"q": make_plan(parse_query(text))}, shards, frequencies).queries[0]


@pytest.mark.parametrize(
    ("text", "shards", "expected"),
    [
        ("SELECT * { ?x <p:p> ?y ; <p:q> ?z ; a <p:c> }", 8, {"?x": 8}),  # a star: its centre, no replication
        (PATH, 8, {"?b": 8}),  # a path: the middle
        (PATH, 7, {"?b": 7}),
        ("SELECT * { ?a <p:p> ?b . ?b <p:p> ?c . ?c <p:p> ?a }", 8, {"?a": 2, "?b": 2, "?c": 2}),  # a cube
        ("SELECT * { ?a <p:p> ?b . ?b <p:p> ?c . ?c <p:p> ?a }", 64, {"?a": 4, "?b": 4, "?c": 4}),
        ("SELECT * { ?a <p:p> <p:x> . ?b <p:q> <p:x> }", 4, {"?a": 2, "?b": 2}),  # a product: a grid
        (
            "SELECT DISTINCT ?a { ?a <p:p> ?b . ?b <p:q> ?c }",
            4,
            {"?a": 3},
        ),  # what is projected; more would send more than it spares
        ("SELECT ?c { ?a <p:p> ?b . ?b <p:q> ?c }", 4, {"?c": 3}),
        ("ASK { ?a <p:p> ?b }", 8, {}),
        ("SELECT * { <p:a> <p:p> <p:b> }", 8, {}),
        (PATH, 1, {}),
    ],
)
def test_which_variables_have_shares(text: str, shards: int, expected: dict[str, int]) -> None:
    shares = shares_of(text, shards)
    assert {str(axis.variable): axis.share for axis in shares.axes} == expected


def test_a_hub_does_not_put_most_of_the_work_in_one_shard() -> None:
    def hub(part: float) -> Frequencies:
        return Frequencies({"?0 <p:p> ?1": Frequency(1, (0, 0, part)), "?0 <p:q> ?1": Frequency(1, (part, 0, 0))})

    for shards in (2, 3, 4, 8, 16):
        even, skewed = shares_of(PATH, shards, hub(0.0)), shares_of(PATH, shards, hub(0.9))
        assert [axis.variable for axis in even.axes] == ["?b"]
        assert skewed.share_of(skewed.axes[0].variable) > 1
        assert skewed.load < 0.9 * 2  # what the hub's shard would get
        assert skewed.load <= 0.55 * skewed.sent * 2  # no shard has most of what is sent


def test_frequencies_move_the_shares() -> None:
    often = Frequencies({"?0 <p:p> ?1": Frequency(1000.0), "?0 <p:q> ?1": Frequency(1.0)})
    text = "SELECT ?a ?c { ?a <p:p> ?b . ?b <p:q> ?c }"
    assert [axis.variable for axis in shares_of(text, 4, often).axes] == ["?a"]


def test_frequencies_of_a_sample() -> None:
    patterns = parse_query(PATH).pattern.patterns
    rows = [(f"<p:{n}>", "<p:p>", "<p:hub>" if n < 6 else f"<p:{n}>") for n in range(10)]
    sampled = Frequencies.sampled(patterns, rows)
    assert sampled.of(patterns[0]) == Frequency(10, (0.1, 0.0, 0.6))
    assert sampled.of(patterns[1]).messages == 0.5  # not there, but it may come
    assert Frequencies.parse(json.dumps(sampled.to_json())) == sampled


@pytest.mark.parametrize("text", ["[]", "{", '{"?0 <p:p> ?1": 3}', '{"?0 <p:p> ?1": {"count": 1, "top": {"s": 2}}}'])
def test_frequencies_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="frequencies are"):
        Frequencies.parse(text)


def test_keys_of_patterns_do_not_depend_on_names() -> None:
    first, second = parse_query("SELECT * { ?a <p:p> ?b . ?x <p:p> ?y }").pattern.patterns
    assert key_of(first) == key_of(second) == "?0 <p:p> ?1"


def test_cells_and_routes_of_random_queries() -> None:
    random = Random(7)
    for seed in range(300):
        shards = random.choice((1, 2, 3, 5, 8, 12))
        plans = {name: make_plan(query) for name, query in random_case(seed).queries.items()}
        made = make_shares(plans, shards)
        assert made == make_shares(plans, shards)
        for query in made.queries:
            assert 1 <= query.cells <= shards
            assert len({query.shard_of(cell) for cell in range(query.cells)}) == query.cells
            assert sum(query.places_on(shard) is not None for shard in range(shards)) == query.cells
            for pattern in query.plan.patterns:
                free = math.prod(axis.share for axis in query.axes if axis.variable not in pattern.nodes)
                assert query.route(pattern).replication == free


def test_small_queries_do_not_all_sit_on_one_shard() -> None:
    plans = {f"ask{n}": make_plan(parse_query(f"ASK {{ ?x <p:{n}> ?y }}")) for n in range(12)}
    made = make_shares(plans, 4)
    assert sorted(query.first for query in made.queries) == sorted([0, 1, 2, 3] * 3)


def test_classes_are_limited() -> None:
    texts = [
        f"SELECT * {{ ?a{n} <p:{n}> ?b . ?b <p:r{n}> ?c . ?c <p:s{n}> ?a{n} . ?c <p:t{n}> ?d . ?d <p:u{n}> ?b }}"
        for n in range(60)
    ]
    weights = {f"?0 <p:{kind}{n}> ?1": Frequency(1.0 + n % 7) for n in range(60) for kind in ("", "r", "s", "t", "u")}
    plans = {f"q{n}": make_plan(parse_query(text)) for n, text in enumerate(texts)}
    made = make_shares(plans, 12, Frequencies(weights))
    assert max(len(made.classes_on(shard)) for shard in range(12)) <= MOST_CLASSES


def test_many_variables_take_no_time() -> None:
    text = "SELECT * { " + " . ".join(f"?v{n} <p:p> ?v{n + 1}" for n in range(40)) + " }"
    assert shares_of(text, 64).cells > 1


def test_explain_shows_shares() -> None:
    plan = make_plan(parse_query(PATH))
    shares = make_shares({"q": plan}, 8).queries[0]
    text = explain(plan, "text", shares)
    assert "├── shards: 8 of 8 have a part of the answers each, by the shares ?b 8" in text
    assert "1  ?a <p:p> ?b: one shard" in text
    assert "the fullest shard gets 12.5 % of the messages; each goes to 1 shard on average" in text
    assert json.loads(explain(plan, "json", shares))["shares"] == {
        "shards": 8,
        "cells": 8,
        "shares": {"?b": 8},
        "patterns": {"?a <p:p> ?b": 1, "?b <p:q> ?c": 1},
        "fullest": 0.125,
        "sent": 1.0,
    }
    whole = make_shares({"q": make_plan(parse_query("ASK { ?a <p:p> ?b }"))}, 8).queries[0]
    assert "shards: one of 8 has the whole query" in explain(whole.plan, "text", whole)
    with pytest.raises(UsageError, match="shown as text or json"):
        explain(plan, "svg", shares)
