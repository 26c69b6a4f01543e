"""Published cases of syntax: the W3C's N-Triples and N-Quads suites, samples of RDF Patch and of SPARQL Update."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from deltastar.engine import Engine
from deltastar.rdf.source import open_stream, read_graph
from deltastar.rdf.terms import BlankNode, Literal, Term
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update

FORMATS = {".nt": pyoxigraph.RdfFormat.N_TRIPLES, ".nq": pyoxigraph.RdfFormat.N_QUADS}


def cases(data_dir: Path, *folders: str) -> list[dict[str, Any]]:
    """The entries of a manifest."""
    found: list[dict[str, Any]] = json.loads(data_dir.joinpath(*folders, "manifest.json").read_text("utf-8"))
    assert found, f"no cases in {folders}"
    return found


def as_pyoxigraph(term: Term) -> Any:
    """The term as pyoxigraph makes it from the value, not from our text."""
    if isinstance(term, Literal):
        if term.language:
            return pyoxigraph.Literal(term.value, language=term.language)
        return pyoxigraph.Literal(term.value, datatype=pyoxigraph.NamedNode(term.datatype))
    if isinstance(term, BlankNode):
        return pyoxigraph.BlankNode(term.value)
    return pyoxigraph.NamedNode(term.value)


@pytest.mark.parametrize("suite", ["rdf11-n-triples", "rdf11-n-quads"])
def test_w3c_suites(data_dir: Path, suite: str) -> None:
    kinds = set()
    for case in cases(data_dir, "w3c-syntax", suite):
        path = data_dir / "w3c-syntax" / suite / case["file"]
        graph, stream = read_graph(str(path)), open_stream(str(path))
        events = [event for batch in graph for event in batch.events]
        assert events == [event for batch in stream for event in batch.events], case["file"]
        faults = [event for event in events if isinstance(event, Malformed)]
        kinds.add(case["expect"])
        if case["expect"] == "reject":
            assert faults, f"{case['file']} is accepted: {case['comment']}"
            assert all(fault.line and fault.column and fault.is_message and fault.text for fault in faults)
            continue
        assert not faults, f"{case['file']}: {faults}"
        assert len(events) == case["statements_pyoxigraph"], case["file"]
        expected = list(pyoxigraph.parse(path=path, format=FORMATS[path.suffix]))
        triples = [event.triple for event in events if isinstance(event, Update)]
        for triple, quad in zip(triples, expected, strict=True):
            assert [as_pyoxigraph(term) for term in triple] == [quad.subject, quad.predicate, quad.object], case["file"]
        names_graphs = any(quad.graph_name != pyoxigraph.DefaultGraph() for quad in expected)
        assert graph.named_graphs_seen is stream.named_graphs_seen is names_graphs, case["file"]
    assert kinds == {"accept", "reject"}


def test_rdf_patches(data_dir: Path) -> None:
    for case in cases(data_dir, "rdf-patch"):
        stream = open_stream(str(data_dir / "rdf-patch" / case["file"]))
        events = [event for batch in stream for event in batch.events]
        ops = [event.op for event in events if isinstance(event, Update)]
        assert not [event for event in events if isinstance(event, Malformed)], case["file"]
        assert (ops.count("ins"), ops.count("del")) == (case["adds"], case["deletes"]), case["file"]
        assert stream.named_graphs_seen is case["quads"], case["file"]
        assert [events[0], events[-1]] == [Mark.BEGIN, Mark.COMMIT], case["file"]


def test_sparql_updates(data_dir: Path) -> None:
    applied = []
    for case in cases(data_dir, "sparql-update"):
        folder = data_dir / "sparql-update" / case["id"]
        events = [event for batch in open_stream(str(folder / "update.ru")) for event in batch.events]
        if all(operation.endswith(" DATA") for operation in case["operations"]):
            assert [events[0], events[-1]] == [Mark.BEGIN, Mark.COMMIT]
            assert applied_to(graph_in(folder / "before.nt"), events) == graph_in(folder / "after.nt")
            applied.append(case["id"])
            continue
        (refusal,) = events
        assert isinstance(refusal, Malformed)
        assert not refusal.is_message
        assert refusal.line
        assert refusal.column
        assert any(operation in refusal.reason for operation in case["operations"]), refusal.reason
        assert "not supported; only INSERT DATA and DELETE DATA" in refusal.reason
    assert applied


def graph_in(path: Path) -> set[tuple[str, ...]]:
    """The triples of a file."""
    return applied_to(set(), [event for batch in read_graph(str(path)) for event in batch.events])


def applied_to(graph: set[tuple[str, ...]], events: list[Event]) -> set[tuple[str, ...]]:
    """The graph behind the updates."""
    graph = set(graph)
    for event in events:
        if isinstance(event, Update):
            (graph.add if event.op == INSERT else graph.discard)(event[1:4])
    return graph


@pytest.mark.parametrize(
    "folders", [("w3c-syntax", "rdf11-n-triples"), ("w3c-syntax", "rdf11-n-quads"), ("rdf-patch",)]
)
@pytest.mark.parametrize("evaluation", ["kernel", "paper"])
def test_an_engine_takes_the_same_triples_in(data_dir: Path, folders: tuple[str, ...], evaluation: str) -> None:
    """The compiled reader behind the engine, and the exact one, agree on every file of the suites."""
    for case in cases(data_dir, *folders):
        path = str(data_dir.joinpath(*folders, case["file"]))
        events = [event for batch in open_stream(path) for event in batch.events]
        engine, rejected = Engine(retain="all", evaluation=evaluation), list[Malformed]()
        assert not list(engine.apply(path, rejected.append))
        assert rejected == [event for event in events if isinstance(event, Malformed)], case["file"]
        assert {tuple(triple) for triple in engine.retained()} == applied_to(set(), events), case["file"]
        assert engine.seq == sum(isinstance(event, Update) for event in events) + len(rejected), case["file"]
