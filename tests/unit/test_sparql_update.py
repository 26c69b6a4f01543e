"""SPARQL Update requests: what they bring, what is refused by name, and where."""

from __future__ import annotations

import pytest
import rdflib
import rdflib.compare
from hypothesis import given, settings
from hypothesis import strategies as st

from deltastar.rdf.sparql_update import read_request
from deltastar.rdf.update import DELETE, INSERT, Malformed, Mark, Update

EX = "http://ex/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def updates_of(text: str) -> list[Update]:
    events = read_request(text.encode(), "test.ru").events
    if not events:
        return []
    assert (events[0], events[-1]) == (Mark.BEGIN, Mark.COMMIT), events
    assert all(isinstance(event, Update) for event in events[1:-1]), events
    return events[1:-1]  # type: ignore[return-value]


def ins(subject: str, predicate: str, target: str) -> Update:
    return Update(INSERT, subject, predicate, target)


READ = [
    ("", []),
    ("# nothing", []),
    ("PREFIX ex: <http://ex/>", []),
    ("INSERT DATA {}", []),
    ("INSERT DATA { <a:s> <a:p> <a:o> }", [ins("<a:s>", "<a:p>", "<a:o>")]),
    ("insert data{<a:s><a:p><a:o>.};", [ins("<a:s>", "<a:p>", "<a:o>")]),
    ("PREFIX : <a:> INSERT DATA { :s :p :o, :q ; a :T . :s2 :p :o.a }",
     [ins("<a:s>", "<a:p>", "<a:o>"), ins("<a:s>", "<a:p>", "<a:q>"),
      ins("<a:s>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<a:T>"), ins("<a:s2>", "<a:p>", "<a:o.a>")]),
    ("BASE <http://ex/> PREFIX p: <#> INSERT DATA { <s> p:p <> }", [ins("<http://ex/s>", "<http://ex/#p>", "<http://ex/>")]),
    ("INSERT DATA { <a:s> <a:p> <a:o> } ; DELETE DATA { <a:s> <a:p> <a:o> } ; INSERT DATA { <a:s> <a:p> <a:q> }",
     [ins("<a:s>", "<a:p>", "<a:o>"), Update(DELETE, "<a:s>", "<a:p>", "<a:o>"), ins("<a:s>", "<a:p>", "<a:q>")]),
    ("PREFIX x: <a:> INSERT DATA { x:s x:p x:o } ; PREFIX x: <b:> INSERT DATA { x:s x:p x:o } ; # end",
     [ins("<a:s>", "<a:p>", "<a:o>"), ins("<b:s>", "<b:p>", "<b:o>")]),
    ("INSERT DATA { <a:s> <a:p> 01, +1.50, 1e0, true, \"01\"^^<http://www.w3.org/2001/XMLSchema#int> }",
     [ins("<a:s>", "<a:p>", f'"01"^^<{XSD}integer>'), ins("<a:s>", "<a:p>", f'"+1.50"^^<{XSD}decimal>'),
      ins("<a:s>", "<a:p>", f'"1e0"^^<{XSD}double>'), ins("<a:s>", "<a:p>", f'"true"^^<{XSD}boolean>'),
      ins("<a:s>", "<a:p>", f'"01"^^<{XSD}int>')]),
    ("INSERT DATA { <a:s> <a:p> 'a}', \"\"\"b \"{ #\n\"\"\", '''c'd''', \"\\\"}\" , \"x\"@EN-gb }",
     [ins("<a:s>", "<a:p>", '"a}"'), ins("<a:s>", "<a:p>", r'"b \"{ #\n"'), ins("<a:s>", "<a:p>", "\"c'd\""),
      ins("<a:s>", "<a:p>", r'"\"}"'), ins("<a:s>", "<a:p>", '"x"@en-gb')]),
    ("INSERT DATA { # } ;\n <a:s> <a:p#> <a:o> # INSERT\n}", [ins("<a:s>", "<a:p#>", "<a:o>")]),
    ("INSERT DATA { _:b <a:p> _:c }", [ins("_:b", "<a:p>", "_:c")]),
    ("\ufeffINSERT DATA { <a:s> <a:p> <a:o> }", [ins("<a:s>", "<a:p>", "<a:o>")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ)
def test_data_is_read_in_the_order_of_the_text(text: str, expected: list[Update]) -> None:
    assert updates_of(text) == expected
    assert bool(read_request(text.encode(), "test.ru").events) is bool(expected)
    assert not read_request(text.encode(), "test.ru").named_graphs


GRAPHS = [
    ("INSERT DATA { GRAPH <a:g> { <a:s> <a:p> <a:o> } }", 1),
    ("INSERT DATA { <a:s> <a:p> <a:o> GRAPH<a:g>{ <a:s> <a:p> <a:q> }<a:s> <a:p> <a:r> }", 3),
    ("INSERT DATA { <a:s> <a:p> <a:o> . GRAPH <a:g> { <a:s> <a:p> <a:q> . } . <a:s> <a:p> <a:r> . }", 3),
    ("PREFIX g: <a:> INSERT DATA { graph g:graph { <a:s> <a:p> <a:o> } . Graph g:h {} . }", 1),
    ("DELETE DATA { GRAPH <a:g> { <a:s> <a:p> <a:o> } GRAPH <a:h> { <a:s> <a:p> <a:q> } }", 2),
]


@pytest.mark.parametrize(("text", "count"), GRAPHS)
def test_graphs_are_passed_over_and_flagged(text: str, count: int) -> None:
    assert [str(update.object) for update in updates_of(text)] == ["<a:o>", "<a:q>", "<a:r>"][:count]
    assert read_request(text.encode(), "test.ru").named_graphs


ONLY = "only INSERT DATA and DELETE DATA are read"
REFUSED = [
    ("CLEAR ALL", 1, 1, f"CLEAR is not supported; {ONLY}"),
    ("LOAD <a:b>", 1, 1, f"LOAD is not supported; {ONLY}"),
    ("DROP DEFAULT", 1, 1, f"DROP is not supported; {ONLY}"),
    ("CREATE GRAPH <a:g>", 1, 1, f"CREATE is not supported; {ONLY}"),
    ("ADD <a:g> TO <a:h>", 1, 1, f"ADD is not supported; {ONLY}"),
    ("MOVE <a:g> TO <a:h>", 1, 1, f"MOVE is not supported; {ONLY}"),
    ("copy <a:g> TO <a:h>", 1, 1, f"COPY is not supported; {ONLY}"),
    ("WITH <a:g> DELETE { ?s ?p ?o } WHERE {}", 1, 1, f"WITH is not supported; {ONLY}"),
    ("DELETE WHERE { ?s ?p ?o }", 1, 1, f"DELETE WHERE is not supported; {ONLY}"),
    ("PREFIX ex: <a:>\n  INSERT { ?s ?p 1 } WHERE { ?s ?p ?o FILTER(?o < 5) }", 2, 3,
     f"INSERT … WHERE is not supported; {ONLY}"),
    ("INSERT DATA { <a:s> <a:p> <a:o> } ;\nCLEAR ALL", 2, 1, f"CLEAR is not supported; {ONLY}"),
    ("SELECT * { ?s ?p ?o }", 1, 1, f"SELECT is a query, and not an update; {ONLY}"),
    ("hello", 1, 1, "expected INSERT DATA or DELETE DATA, found 'hello'"),
    ("{", 1, 1, "expected INSERT DATA or DELETE DATA, found '{'"),
    ("INSERT DATA <a:s>", 1, 13, "expected '{' and triples"),
    ("INSERT DATA", 1, 12, "expected '{' and triples"),
    ("INSERT DATA { <a:s> <a:p> <a:o>", 1, 32, "'}' is missing"),
    ("INSERT DATA {} INSERT DATA {}", 1, 16, "expected ';' between two operations, found 'INSERT'"),
    ("INSERT DATA {} }", 1, 16, "expected ';' between two operations, found '}'"),
    ("PREFIX ex <a:>", 1, 8, "a prefix is declared PREFIX ex: <http://example/>"),
    ("PREFIX ex: a", 1, 12, "an IRI is missing; write it in angle brackets"),
    ("BASE", 1, 5, "an IRI is missing"),
    ("INSERT DATA {\n <a:s> <a:p>\n  oops }", 3, 3, "oops"),
    ("  INSERT DATA { <a:s> <a:p> ?o }", 1, 29, "?o"),
    ("PREFIX ex: <a:>\nINSERT DATA { ex:s ex:p foaf:o }", 2, 25, "The prefix foaf: has not been declared"),
    ("INSERT DATA { <s> <a:p> <a:o> }", 1, 15, "IRI"),
    ("INSERT DATA {\n<a:s> <a:p> <a:o> {} }", 2, 19, ""),
    ("INSERT DATA { <a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> }", 1, 1, "triple terms"),
    ("INSERT DATA { <a:s> <a:p> 'a'@ar--rtl }", 1, 1, "base direction"),
    ("DELETE DATA { _:b <a:p> <a:o> }", 1, 1, "DELETE DATA has a blank node"),
    ("DELETE DATA { <a:s> <a:p> [] }", 1, 1, "DELETE DATA has a blank node"),
    ("INSERT DATA { GRAPH _:g { <a:s> <a:p> <a:o> } }", 1, 1, "a graph is named by an IRI"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "reason"), REFUSED)
def test_what_is_not_data_is_refused_whole(text: str, line: int, column: int, reason: str) -> None:
    (event,) = read_request(text.encode(), "test.ru").events
    assert isinstance(event, Malformed)
    assert reason in event.reason
    assert (event.line, event.column) == (line, column)
    assert (event.source, event.text, event.is_message) == ("test.ru", text, False)


def test_bytes_that_are_not_utf_8_are_refused_with_their_place() -> None:
    (event,) = read_request(b"INSERT DATA {\n <a:s> <a:p> 'caf\xe9' }", "test.ru").events
    assert isinstance(event, Malformed)
    assert (event.line, event.column) == (2, 18)
    assert "byte 0xe9 is not UTF-8" in event.reason


def test_anonymous_blank_nodes_get_the_same_fresh_labels_every_time() -> None:
    text = "INSERT DATA { [] <a:p> [ <a:q> _:c0ffee00c0ffee00 ] . _:b <a:p> (1) }"
    first, again = updates_of(text), updates_of(text)
    assert first == again
    labels = {term for update in first for term in update[1:4] if term.startswith("_:")}
    assert {"_:b", "_:c0ffee00c0ffee00"} < labels
    assert len(labels) == 5
    other = {
        term for event in read_request(text.encode(), "other.ru").events if isinstance(event, Update) for term in event
    }
    assert labels & other == {"_:b", "_:c0ffee00c0ffee00"}


NODES = st.sampled_from(["<a:s>", "ex:s", "ex:o.a", "_:b", "[]", "[ <a:q> 1 ]", "(1 ex:s)", "()"])
LITERALS = st.sampled_from(["'x'", '"\\u00e9"@en', "'''a'b'''", "01", "1.50", "true", "'01'^^<a:t>", "oops"])
SEPARATORS = st.sampled_from([".", " . ", ";", " , ", "", "# c\n."])
TRIPLES = st.tuples(NODES, st.sampled_from(["<a:p>", "ex:p", "a"]), NODES | LITERALS, SEPARATORS).map(" ".join)
REST = st.tuples(st.sampled_from(["<a:q>", "a"]), NODES | LITERALS, SEPARATORS).map(" ".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(TRIPLES | REST | LITERALS, max_size=4).map(" ".join))
def test_rdflib_agrees(body: str) -> None:
    """rdflib's parser is the judge of which triples a body holds; it declares no prefix of ours by itself."""
    text = f"PREFIX ex: <http://ex/> INSERT DATA {{ {body} }}"
    event = next(iter(read_request(text.encode(), "test.ru").events), None)
    graph = rdflib.Graph()
    before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
    try:
        graph.update(text)
    except Exception:
        assert isinstance(event, Malformed)
        return
    finally:
        rdflib.NORMALIZE_LITERALS = before
    if any(isinstance(subject, rdflib.Literal) for subject in graph.subjects()):
        assert isinstance(event, Malformed)  # the grammar has it, RDF has not
        return
    ours = rdflib.Graph()
    for update in updates_of(text):
        ours.add(tuple(term.to_rdflib() for term in update.triple))
    assert rdflib.compare.isomorphic(graph, ours)
