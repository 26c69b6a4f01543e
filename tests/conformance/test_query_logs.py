"""Published queries: each is accepted, or refused by the name and place of what it needs beyond a basic graph pattern.

The data lies beside the repository (`DELTASTAR_DATA` says where else): queries of Wikidata's, DBpedia's and Semantic
Web Dog Food's logs, and of the W3C's SPARQL tests. Their manifests say what each query uses,
by another program's count.
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import rdflib
from rdflib import Literal
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parserutils import CompValue

from deltastar.errors import UnsupportedQueryError
from deltastar.plan.decompose import make_plan
from deltastar.query.algebra import Query, Variable
from deltastar.query.parse import parse_query
from deltastar.rdf.terms import Term

ACCEPTED = "accepted"


class Entry(NamedTuple):
    """A query with what its manifest says of it; `patterns` is 0 where it says nothing."""

    name: str
    klass: str
    features: frozenset[str]
    patterns: int
    text: str


class Outcome(NamedTuple):
    """A query's algebra or its refusal."""

    entry: Entry
    query: Query | None
    refusal: UnsupportedQueryError | None

    @property
    def label(self) -> str:
        return self.refusal.construct if self.refusal else ACCEPTED


def data_dir(name: str) -> Path:
    default = Path(__file__).parents[2].parent / "shared" / "data"
    directory = Path(os.environ.get("DELTASTAR_DATA", default)) / name
    if not directory.is_dir():
        pytest.skip(
            f"the published queries of {name} are not here; set DELTASTAR_DATA to the directory that holds them"
        )
    return directory


def of_log(name: str) -> Iterator[Entry]:
    with gzip.open(data_dir(name) / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            klass = entry.get("klass") or f"{entry['source']}/{entry['category']}"
            yield Entry(
                entry["id"], klass, frozenset(entry.get("features", ())), entry.get("patterns", 0), entry["query"]
            )


def of_suite() -> Iterator[Entry]:
    directory = data_dir("sparql-eval")
    for entry in json.loads((directory / "manifest.json").read_text(encoding="utf-8")):
        text = (directory / entry["klass"] / entry["id"] / "query.rq").read_bytes().decode("utf-8")
        yield Entry(entry["id"], entry["klass"], frozenset(entry["features"]), entry["patterns"], text)


@cache
def outcomes(name: str) -> tuple[Outcome, ...]:
    """A syntax error, or anything else than a refusal, fails the test that asks."""
    found = []
    for entry in of_suite() if name == "sparql-eval" else of_log(name):
        try:
            found.append(Outcome(entry, parse_query(entry.text), None))
        except UnsupportedQueryError as refusal:
            found.append(Outcome(entry, None, refusal))
        except Exception as fault:
            raise AssertionError(f"{entry.name}: {fault}\n{entry.text}") from fault
    return tuple(found)


ALL = pytest.mark.parametrize("name", ["wikidata-bgp-queries", "real-log-queries", "sparql-eval"])

COUNTS = {
    "wikidata-bgp-queries": {
        "WDBench/single": {ACCEPTED: 140},
        "WDBench/multi": {ACCEPTED: 341},
        "WDBench/optional": {"OPTIONAL": 249},
        "MillenniumDB-benchmark/real-multi": {ACCEPTED: 217},
        "MillenniumDB-benchmark/real-single": {ACCEPTED: 200},
        "MillenniumDB-benchmark/synthetic-wgpb": {ACCEPTED: 425},
    },
    "real-log-queries": {
        "A-pure-bgp": {ACCEPTED: 101},
        "B-bgp+distinct": {ACCEPTED: 13},
        "C-bgp+filter": {"FILTER": 39},
        "D-union": {"UNION": 32},
        "E-optional": {"FILTER": 11, "OPTIONAL": 12, "UNION": 188},
        "G-aggregate": {"aggregate MAX": 1},
        "I-order/limit": {
            "FILTER": 9,
            "LIMIT": 9,
            "ORDER BY": 14,
            "expression in SELECT '( … AS ?v )'": 1,
        },
        "construct/describe": {"DESCRIBE": 188},
        "named-graph/from/service": {"FROM": 2, "SERVICE": 1},
    },
    "sparql-eval": {
        "A-pure-bgp": {ACCEPTED: 31},
        "B-bgp+distinct": {ACCEPTED: 2},
        "C-bgp+filter": {"FILTER": 80},
        "D-union": {"BIND": 1, "UNION": 1, "subquery (nested SELECT)": 1},
        "E-optional": {"OPTIONAL": 13, "expression in SELECT '( … AS ?v )'": 1},
        "F-negation/exists": {
            "FILTER": 1,
            "FILTER EXISTS": 1,
            "FILTER NOT EXISTS": 1,
            "OPTIONAL": 1,
            "expression in SELECT '( … AS ?v )'": 1,
        },
        "G-aggregate": {
            "GROUP BY": 2,
            "OPTIONAL": 1,
            "aggregate AVG": 4,
            "aggregate COUNT": 8,
            "aggregate MAX": 4,
            "aggregate MIN": 1,
            "aggregate SAMPLE": 2,
            "aggregate SUM": 2,
            "subquery (nested SELECT)": 5,
        },
        "H-path": {  # two paths are sequences and inverses only: basic graph patterns
            ACCEPTED: 2,
            "VALUES": 1,
            "path operator '!'": 3,
            "path operator '*'": 4,
            "path operator '+'": 3,
            "path operator '?'": 2,
            "path operator '|'": 2,
        },
        "I-order/limit": {"BIND": 1, "ORDER BY": 13, "subquery (nested SELECT)": 2},
        "J-values/bind/subquery": {
            "BIND": 7,
            "FILTER": 1,
            "VALUES": 6,
            "expression in SELECT '( … AS ?v )'": 42,
            "subquery (nested SELECT)": 2,
        },
        "Z-unparsed-by-rdflib": {
            "BIND": 1,
            "FILTER": 1,
            "GRAPH": 2,
            "VALUES": 6,
            "expression in SELECT '( … AS ?v )'": 1,
            "reified triple '<< >>'": 7,
        },
    },
}

# Which of the manifests' features a refusal's construct belongs to.
FEATURES = {
    "OPTIONAL": {"OPTIONAL"},
    "UNION": {"UNION"},
    "FILTER": {"FILTER"},
    "FILTER EXISTS": {"EXISTS"},
    "FILTER NOT EXISTS": {"EXISTS"},
    "BIND": {"BIND/EXPR"},
    "VALUES": {"VALUES/SUBQUERY"},
    "subquery (nested SELECT)": {"VALUES/SUBQUERY", "AGGREGATE"},
    "expression in SELECT '( … AS ?v )'": {"BIND/EXPR", "AGGREGATE"},
    "GROUP BY": {"AGGREGATE"},
    "ORDER BY": {"ORDERBY"},
    "LIMIT": {"LIMIT/OFFSET"},
    "DESCRIBE": {"DESCRIBE"},
    "FROM": {"FROM"},
    "SERVICE": {"SERVICE"},
}


@ALL
def test_counts(name: str) -> None:
    counted: dict[str, Counter[str]] = {}
    for outcome in outcomes(name):
        counted.setdefault(outcome.entry.klass, Counter())[outcome.label] += 1
    assert counted == COUNTS[name]


def test_totals_of_the_logs() -> None:
    both = [*outcomes("wikidata-bgp-queries"), *outcomes("real-log-queries")]
    accepted = sum(outcome.query is not None for outcome in both)
    assert (len(both), accepted) == (2193, 1437)


@ALL
def test_the_place_of_a_refusal_shows_the_construct(name: str) -> None:
    for entry, _, refusal in outcomes(name):
        if refusal is None:
            continue
        line = re.split(r"\r\n|\r|\n", entry.text)[refusal.line - 1]
        shown = line[refusal.column - 1 :].upper()
        quoted = re.search(r"'([^ ']+)", refusal.construct)
        nested = "SELECT" if "nested SELECT" in refusal.construct else ""
        expected = nested or (quoted[1] if quoted else refusal.construct.removeprefix("aggregate ").split()[0])
        assert shown.startswith(expected), f"{entry.name}: {refusal}"
        start = f"line {refusal.line}, column {refusal.column}: {refusal.construct} is not supported; "
        assert str(refusal).startswith(start)


@ALL
def test_the_manifests_know_the_refused_constructs(name: str) -> None:
    for entry, _, refusal in outcomes(name):
        if refusal is None or not entry.features or "UNPARSED-BY-RDFLIB" in entry.features:
            continue
        kind = refusal.construct.split()[0]
        expected = FEATURES.get(refusal.construct, {"AGGREGATE"} if kind == "aggregate" else {"PATH"})
        assert expected & entry.features, f"{entry.name}: {refusal}"


@ALL
def test_accepted_queries_have_only_features_of_basic_graph_patterns(name: str) -> None:
    plain = {"SELECT", "ASK", "DISTINCT", "REDUCED", "JOIN", "PATH"}
    for entry, query, _ in outcomes(name):
        if query is not None:
            assert entry.features <= plain, entry.name


@ALL
def test_accepted_queries_have_the_patterns_that_the_manifests_count(name: str) -> None:
    different = {
        "sparql10__basic__var-2": (2, 1),  # one pattern, written twice
        "sparql11__property-path__pp01": (1, 3),  # paths, counted as one pattern there
        "sparql11__property-path__pp03": (1, 4),
    }
    for entry, query, _ in outcomes(name):
        if query is not None and entry.patterns:
            expected = different.get(entry.name, (entry.patterns, entry.patterns))
            assert (entry.patterns, len(query.pattern.patterns)) == expected, entry.name


@ALL
def test_accepted_queries_can_be_planned_and_printed(name: str) -> None:
    for entry, query, _ in outcomes(name):
        if query is not None:
            plan = make_plan(query)
            covered = sorted(index for component in plan.components for index in component.patterns)
            assert covered == list(range(len(query.pattern.patterns))), entry.name
            assert parse_query(str(query)) == query, entry.name


@pytest.mark.parametrize("name", ["real-log-queries", "sparql-eval"])
def test_rdflib_sees_the_same_patterns(name: str) -> None:
    """Where there are no blank nodes and paths, whose names are each program's own."""
    compared = 0
    for entry, query, _ in outcomes(name):
        if query is None or any(variable.is_hidden for variable in query.pattern.variables) or "\\" in entry.text:
            continue
        ours = {tuple(map(as_rdflib, pattern.nodes)) for pattern in query.pattern.patterns}
        assert ours == set(triples(prepareQuery(entry.text).algebra)), entry.name
        compared += 1
    assert compared > 20


def as_rdflib(node: Variable | Term) -> Any:
    return f"?{node.name}" if isinstance(node, Variable) else normal(node.to_rdflib())


def normal(term: Any) -> Any:
    """A literal in the form that rdflib gives most of them: for comparing only."""
    if isinstance(term, Literal):
        return Literal(str(term), lang=term.language, datatype=term.datatype)
    return term.n3() if isinstance(term, rdflib.Variable) else term


def triples(node: object) -> Iterator[tuple[Any, ...]]:
    """Those of all basic graph patterns in rdflib's algebra."""
    if isinstance(node, CompValue):
        for value in node.values():
            yield from triples(value)
        if node.name == "BGP":
            yield from (tuple(map(normal, triple)) for triple in node.triples)
