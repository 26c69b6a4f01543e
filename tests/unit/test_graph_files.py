"""Graphs that a library parses: terms, labels, faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltastar.rdf import source
from deltastar.rdf.source import read_graph
from deltastar.rdf.update import INSERT, Malformed, Update
from tests.support.rows import JSON_LD, NT, RDF_XML, TURTLE, events_of, update, write


def test_turtle_keeps_lexical_forms_labels_and_resolves_against_its_file(tmp_path: Path) -> None:
    path = tmp_path / "a b.ttl"
    write(
        path,
        'PREFIX ex: <http://ex/> <x> ex:p 01, 1.50, "a"@EN-us, '
        '"t\\tq\\"\\u007f", _:b1, _:c0ffee00c0ffee00, <http://ex/é> .',
    )
    subject = f"<{tmp_path.as_uri()}/x>"
    xsd = "http://www.w3.org/2001/XMLSchema#"
    objects = [
        f'"01"^^<{xsd}integer>',
        f'"1.50"^^<{xsd}decimal>',
        '"a"@en-us',
        r'"t\tq\"\u007F"',
        "_:b1",
        "_:c0ffee00c0ffee00",
    ]
    expected = [Update(INSERT, subject, "<http://ex/p>", target) for target in [*objects, "<http://ex/é>"]]
    assert events_of(read_graph(str(path))) == expected


ANONYMOUS = {
    "ttl": "[ <a:p> [ <a:q> _:c0ffee00c0ffee00 ] ] . _:c0ffee00c0ffee00 <a:q> [] .",
    "trig": "{ [ <a:p> [ <a:q> _:c0ffee00c0ffee00 ] ] . } GRAPH <a:g> { _:c0ffee00c0ffee00 <a:q> [] . }",
    "rdf": """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="a:">
      <rdf:Description><a:p>
        <rdf:Description><a:q rdf:nodeID="c0ffee00c0ffee00"/></rdf:Description></a:p></rdf:Description>
      <rdf:Description rdf:nodeID = 'c0ffee00c0ffee00'><a:q><rdf:Description/></a:q></rdf:Description></rdf:RDF>""",
    "jsonld": '[{"a:p": {"a:q": {"@id": "_:c0ffee00c0ffee00", "a:q": {"a:r": 1}}}}]',
}


@pytest.mark.parametrize("extension", ANONYMOUS)
def test_anonymous_nodes_have_the_same_labels_in_every_reading(tmp_path: Path, extension: str) -> None:
    path = write(tmp_path / f"a.{extension}", ANONYMOUS[extension])
    first = events_of(read_graph(path))
    assert first == events_of(read_graph(path))
    labels = {term for event in first if isinstance(event, Update) for term in event if term.startswith("_:")}
    assert len(labels) == 4
    assert "_:c0ffee00c0ffee00" in labels
    other = events_of(read_graph(write(tmp_path / f"b.{extension}", ANONYMOUS[extension])))
    assert labels & {term for event in other if isinstance(event, Update) for term in event} == {"_:c0ffee00c0ffee00"}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 4096])
def test_labels_are_seen_wherever_the_text_is_cut(
    tmp_path: Path, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", chunk_bytes)
    path = write(
        tmp_path / "a.ttl", "_:aaaabbbbccccdddd <a:p> _:ddddccccbbbbaaaa .\n" * 3 + "_:aaaabbbbccccdddde <a:p> [] ."
    )
    labels = {term for event in events_of(read_graph(path)) if isinstance(event, Update) for term in event}
    assert {"_:aaaabbbbccccdddd", "_:ddddccccbbbbaaaa", "_:aaaabbbbccccdddde"} < labels


FAULTY = [
    ("ttl", TURTLE + "\n<http://ex/2> <http://ex/p> oops .", 2, 29, "oops is not a valid RDF object"),
    ("trig", f"{{ {TURTLE} }}\n{{ ?x", 2, 3, "?x"),
    ("ttl", TURTLE + "\n<http://ex/2> ", 2, 15, "Unexpected end"),
    ("rdf", RDF_XML.replace("</rdf:RDF>", "</rdf:oops>"), 0, 0, "oops"),
    ("jsonld", f'[{JSON_LD},\n {{"http://ex/q": [1, }}', 2, 22, "Unexpected closing curly bracket"),
]


@pytest.mark.parametrize(("extension", "text", "line", "column", "reason"), FAULTY)
def test_a_syntax_error_ends_a_graph_file_and_keeps_what_was_before(
    tmp_path: Path, extension: str, text: str, line: int, column: int, reason: str
) -> None:
    write(tmp_path / "b.nt", NT.replace("/1", "/9"))
    events = events_of(read_graph(str(Path(write(tmp_path / f"a.{extension}", text)).parent)))
    assert events[-1] == update(9)
    fault = events[-2]
    assert isinstance(fault, Malformed)
    assert (fault.line, fault.column) == (line, column)
    assert reason in fault.reason
    assert not fault.reason.startswith("Parser error")
    assert fault.source == str(tmp_path / f"a.{extension}")
    assert events[:-2] == [update(1)]


def test_rdf_1_2_is_refused_statement_by_statement(tmp_path: Path) -> None:
    text = f"{TURTLE} <a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> , 'x'@ar--rtl , <a:o> ."
    first, triple_term, direction, last = events_of(read_graph(write(tmp_path / "a.ttl", text)))
    assert (first, last) == (update(1), Update(INSERT, "<a:s>", "<a:p>", "<a:o>"))
    assert "triple terms" in triple_term.reason  # type: ignore[union-attr]
    assert "base direction" in direction.reason  # type: ignore[union-attr]


def test_graph_names_are_flagged(tmp_path: Path) -> None:
    graph = read_graph(write(tmp_path / "a.trig", "<a:g> { <a:s> <a:p> <a:o> }"))
    assert len(events_of(graph)) == 1
    assert graph.named_graphs_seen


def test_a_large_graph_comes_in_batches(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.ttl.gz", "".join(f"<http://ex/{n}> <http://ex/p> <http://ex/o> .\n" for n in range(25_000))
    )
    batches = list(read_graph(path))
    assert [event for batch in batches for event in batch.events] == [update(number) for number in range(25_000)]
    assert len(batches) > 1
    assert {batch.source for batch in batches} == {path}
