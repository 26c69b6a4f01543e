"""SPARQL text to algebra: what is accepted and as what, what is refused and with which words."""

from __future__ import annotations

import logging
import pickle
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyoxigraph
import pytest
import rdflib

from deltastar.errors import QueryError, QuerySyntaxError, UnsupportedQueryError, UsageError
from deltastar.query.algebra import Query, Semantics, Variable
from deltastar.query.parse import parse_query, read_query
from deltastar.query.prologue import resolve
from deltastar.rdf.terms import IRI, Literal

PREFIX = "PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"


def patterns(group: str) -> list[str]:
    """The triple patterns of a group graph pattern, the prefixes put back for reading."""
    query = parse_query(f"{PREFIX} SELECT * {{ {group} }}")
    return [abbreviate(str(pattern)) for pattern in query.pattern.patterns]


def abbreviate(text: str) -> str:
    for iri, prefix in ((RDF, "rdf:"), (XSD, "xsd:"), ("http://ex/", ":")):
        pieces = text.split(f"<{iri}")
        text = pieces[0] + "".join(prefix + piece.replace(">", "", 1) for piece in pieces[1:])
    return text


# ---------------------------------------------------------------- what is accepted


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("?x :p ?y", ["?x :p ?y"]),
        ("?x :p ?y .", ["?x :p ?y"]),
        ("?x a :C", ["?x rdf:type :C"]),
        ("$x :p ?x", ["?x :p ?x"]),
        ("?x ?x ?x", ["?x ?x ?x"]),
        (":a :p :b", [":a :p :b"]),
        ("?x :p ?y . ?x :p ?y", ["?x :p ?y"]),
        ("?x :p ?y . ?z :q ?w", ["?x :p ?y", "?z :q ?w"]),
        ("?x :p ?y , ?z ; :q ?w ; ;", ["?x :p ?y", "?x :p ?z", "?x :q ?w"]),
        ("?x :p [] , _:a . _:a :q []", ["?x :p _:b1", "?x :p _:a", "_:a :q _:b2"]),
        ("_:b1 :p [] . _:b3 :p [] , []", ["_:b1 :p _:b2", "_:b3 :p _:b4", "_:b3 :p _:b5"]),
        ("[ :p ?x ]", ["_:b1 :p ?x"]),
        ("[ :p ?x ; :q ?y ] :r ?z ; :s ?w", ["_:b1 :p ?x", "_:b1 :q ?y", "_:b1 :r ?z", "_:b1 :s ?w"]),
        ("?x :p [ :q [ :r ?y ] ] , ?z", ["?x :p _:b1", "_:b1 :q _:b2", "_:b2 :r ?y", "?x :p ?z"]),
        ("?x :p ()", ["?x :p rdf:nil"]),
        ("() :p ?x", ["rdf:nil :p ?x"]),
        (
            "?x :p (?y :z)",
            ["?x :p _:b1", "_:b1 rdf:first ?y", "_:b1 rdf:rest _:b2", "_:b2 rdf:first :z", "_:b2 rdf:rest rdf:nil"],
        ),
        (
            "([ :p ?x ]) :q (())",
            [
                *["_:b1 rdf:first _:b2", "_:b1 rdf:rest rdf:nil", "_:b2 :p ?x"],
                *["_:b1 :q _:b3", "_:b3 rdf:first rdf:nil", "_:b3 rdf:rest rdf:nil"],
            ],
        ),
        ("(1) .", ['_:b1 rdf:first "1"^^xsd:integer', "_:b1 rdf:rest rdf:nil"]),
        ("{ ?x :p ?y }", ["?x :p ?y"]),
        ("{{ ?x :p ?y } { ?y :q ?z . } ?z :r ?w }", ["?x :p ?y", "?y :q ?z", "?z :r ?w"]),
        ("?x :p ?y { ?y :q ?z } . ?z :r ?w", ["?x :p ?y", "?y :q ?z", "?z :r ?w"]),
        ("{} ?x :p ?y . {{}}", ["?x :p ?y"]),
        ("{ ?x :p _:a } { ?x :p _:c }", ["?x :p _:a", "?x :p _:c"]),
        ("'s' :p ?x . 5 :p ?x . true :p ?x", ['"s" :p ?x', '"5"^^xsd:integer :p ?x', '"true"^^xsd:boolean :p ?x']),
        ("5 :q ?z . { 6 :q ?z }", ['"5"^^xsd:integer :q ?z', '"6"^^xsd:integer :q ?z']),
        ("?optional :union ?filter # OPTIONAL {", None),
        ("?x :p 'OPTIONAL { ?x ?y ?z }'", ['?x :p "OPTIONAL { ?x ?y ?z }"']),
        ("?x <http://ex/FILTER(?x)> ?y", ["?x :FILTER(?x) ?y"]),
        ("?x:p?y", ["?x :p ?y"]),
        ("?x?p-5.?y?q'a'@en", ['?x ?p "-5"^^xsd:integer', '?y ?q "a"@en']),
    ],
)
def test_patterns(group: str, expected: list[str] | None) -> None:
    assert patterns(group + "\n") == (expected or ["?optional :union ?filter"])


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("?x :p/:q ?y", ["?x :p _:b1", "_:b1 :q ?y"]),
        ("?x :p / :q / a ?y", ["?x :p _:b1", "_:b1 :q _:b2", "_:b2 rdf:type ?y"]),
        ("?x ^:p ?y", ["?y :p ?x"]),
        ("?x ^a ?y", ["?y rdf:type ?x"]),
        ("?x (:p) ?y", ["?x :p ?y"]),
        ("?x ((^(:p))) ?y", ["?y :p ?x"]),
        ("?x (:p)?y", ["?x :p ?y"]),
        ("?x <http://ex/p>?y", ["?x :p ?y"]),
        ("?x :p/^:q ?y", ["?x :p _:b1", "?y :q _:b1"]),
        ("?x ^(:p/:q) ?y", ["?y :p _:b1", "_:b1 :q ?x"]),
        ("?x ^(:p/^:q) ?y", ["?y :p _:b1", "?x :q _:b1"]),
        ("?x (:p/:q)/:r ?y", ["?x :p _:b2", "_:b2 :q _:b1", "_:b1 :r ?y"]),
        ("?x ^(^(:p)) ?y", ["?x :p ?y"]),
        ("?x :p/:q ?y , ?z", ["?x :p _:b1", "_:b1 :q ?y", "?x :p _:b2", "_:b2 :q ?z"]),
        ("?x :p/:q [ ^:r ?y ]", ["?x :p _:b2", "_:b2 :q _:b1", "?y :r _:b1"]),
        ("_:b1 :p/:q ?y", ["_:b1 :p _:b2", "_:b2 :q ?y"]),
        ("'s' ^:p ?y", ['?y :p "s"']),
    ],
)
def test_paths(group: str, expected: list[str]) -> None:
    assert patterns(group) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5", Literal("5", datatype=XSD + "integer")),
        ("01", Literal("01", datatype=XSD + "integer")),
        ("+1", Literal("+1", datatype=XSD + "integer")),
        ("-01", Literal("-01", datatype=XSD + "integer")),
        ("1.0", Literal("1.0", datatype=XSD + "decimal")),
        ("+.50", Literal("+.50", datatype=XSD + "decimal")),
        ("-0.0", Literal("-0.0", datatype=XSD + "decimal")),
        ("1.0e0", Literal("1.0e0", datatype=XSD + "double")),
        ("1.E+01", Literal("1.E+01", datatype=XSD + "double")),
        ("true", Literal("true", datatype=XSD + "boolean")),
        ("FALSE", Literal("false", datatype=XSD + "boolean")),
        ("'true'", Literal("true")),
        ('"01"^^xsd:integer', Literal("01", datatype=XSD + "integer")),
        ('"01" ^^ xsd:integer', Literal("01", datatype=XSD + "integer")),
        ('"one"^^xsd:integer', Literal("one", datatype=XSD + "integer")),
        ('"1"^^xsd:boolean', Literal("1", datatype=XSD + "boolean")),
        ('"2020-1-1"^^xsd:date', Literal("2020-1-1", datatype=XSD + "date")),
        ('" 1 "^^xsd:double', Literal(" 1 ", datatype=XSD + "double")),
        ('"a"^^xsd:string', Literal("a")),
        ('"a"^^:my', Literal("a", datatype="http://ex/my")),
        ('"a"^^<http://ex/my>', Literal("a", datatype="http://ex/my")),
        ('"a"@en', Literal("a", "en")),
        ("'a' @EN-gb", Literal("a", "en-gb")),
        ('""', Literal("")),
        ('""""""', Literal("")),
        ("''''''@en", Literal("", "en")),
        ('"""a"b""c\n\r\nd"""', Literal('a"b""c\n\r\nd')),
        ("'''it's'''", Literal("it's")),
        ('"it\'s"', Literal("it's")),
        (r"'a\"b\'c'", Literal("a\"b'c")),
        ('"tab\there"', Literal("tab\there")),
        (r'"\t\b\n\r\f\"\'\\"', Literal("\t\b\n\r\f\"'\\")),
        (r'"\u00e9"', Literal("é")),
        (r'"\u00e9abcd"', Literal("éabcd")),
        (r'"\U0001F600"', Literal("\U0001f600")),
        (r'"\\u00e9"', Literal("\\u00e9")),
        (r'"\\\u00e9"', Literal("\\é")),
        (r'"\u0022"', Literal('"')),
        ('"nul\x00"', Literal("nul\x00")),
        (":a", IRI("http://ex/a")),
        (":", IRI("http://ex/")),
        (r":a\,b\-c", IRI("http://ex/a,b-c")),
        (":%41%e9", IRI("http://ex/%41%e9")),
        (r":\u00e9", IRI("http://ex/é")),
        (":a.b", IRI("http://ex/a.b")),
        (r"<http://ex/\u00e9>", IRI("http://ex/é")),
        ("<http://ex/a/../b>", IRI("http://ex/a/../b")),
        ("<urn:x>", IRI("urn:x")),
        (r"?\u00e9", Variable("é")),
        ("_:a.b", Variable.hidden("a.b")),
    ],
)
def test_terms_are_kept_as_written(written: str, expected: object) -> None:
    (pattern,) = parse_query(f"{PREFIX} ASK {{ ?s :p {written} }}").pattern.patterns
    assert pattern.object == expected
    assert type(pattern.object) is type(expected)


@pytest.mark.parametrize(
    ("text", "names", "semantics"),
    [
        ("SELECT * { ?x ?p ?y }", ("x", "p", "y"), Semantics.SET),
        ("select * where { ?x ?p ?y }", ("x", "p", "y"), Semantics.SET),
        ("SELECT ?y ?x ?p { ?x ?p ?y }", ("y", "x", "p"), Semantics.SET),
        ("SELECT DISTINCT * { ?x ?p ?y }", ("x", "p", "y"), Semantics.SET),
        ("SELECT ?x { ?x ?p ?y }", ("x",), Semantics.BAG),
        ("SELECT REDUCED ?x { ?x ?p ?y }", ("x",), Semantics.BAG),
        ("SELECT DISTINCT ?x { ?x ?p ?y }", ("x",), Semantics.DISTINCT),
        ("SELECT ?x $x ?x { ?x ?p ?y }", ("x",), Semantics.BAG),
        ("SELECT ?x ?none { ?x ?x ?x }", ("x", "none"), Semantics.SET),
        ("SELECT ?none { ?x ?x ?x }", ("none",), Semantics.BAG),
        ("SELECT * { ?x <p:p> [] }", ("x",), Semantics.BAG),
        ("SELECT * { ?x <p:p>/<p:q> ?y }", ("x", "y"), Semantics.BAG),
        ("SELECT * { <x:a> <x:b> <x:c> }", (), Semantics.SET),
        ("SELECT * { [] <x:b> <x:c> }", (), Semantics.BAG),
        ("ASK { ?x ?p ?y }", (), Semantics.ASK),
        ("ask where{<x:a> <x:b> 1}", (), Semantics.ASK),
        ("\ufeffASK{?x ?p ?y}#", (), Semantics.ASK),
    ],
)
def test_forms(text: str, names: tuple[str, ...], semantics: Semantics) -> None:
    query = parse_query(text)
    assert (query.names, query.semantics) == (names, semantics)


def test_prefixes_and_base() -> None:
    query = parse_query(
        "BASE <http://ex/dir/file?q#f> PREFIX : <> PREFIX up: <../> BASE <sub/> prefix p: <#> PREFIX up: <x>\n"
        "ASK { <a> :b up:c ; p:d <#e> , <?f> , </g> , <//h/i> , <> , <./j/../k> }"
    )
    assert query.prefixes == (("", "http://ex/dir/file?q"), ("up", "http://ex/dir/sub/x"), ("p", "http://ex/dir/sub/#"))
    assert [str(pattern) for pattern in query.pattern.patterns] == [
        "<http://ex/dir/sub/a> <http://ex/dir/file?qb> <http://ex/dir/sub/xc>",
        *(
            f"<http://ex/dir/sub/a> <http://ex/dir/sub/#d> <{iri}>"
            for iri in (
                *["http://ex/dir/sub/#e", "http://ex/dir/sub/?f", "http://ex/g", "http://h/i"],
                *["http://ex/dir/sub/", "http://ex/dir/sub/k"],
            )
        ),
    ]


def test_base_given_beside_the_text() -> None:
    query = parse_query("BASE <b/> ASK { <c> <c> <c> }", base="http://ex/a")
    assert query.pattern.patterns[0].subject == IRI("http://ex/b/c")


@pytest.mark.parametrize(
    ("reference", "expected"),
    [  # RFC 3986, sections 5.4.1 and 5.4.2
        *[("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/")],
        *[("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y")],
        *[("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s")],
        *[(";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/")],
        *[("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g")],
        *[("../..", "http://a/"), ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g")],
        *[("../../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"), ("g.", "http://a/b/c/g.")],
        *[("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/")],
        *[("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("g;x=1/../y", "http://a/b/c/y")],
        *[("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("g?", "http://a/b/c/g?")],
    ],
)
def test_relative_iris(reference: str, expected: str) -> None:
    assert resolve("http://a/b/c/d;p?q", reference) == expected


@pytest.mark.parametrize(
    ("base", "reference", "expected"),
    [
        ("http://a", "g", "http://a/g"),
        ("http://a?q", "", "http://a?q"),
        ("urn:a:b", "c", "urn:c"),
        ("urn:a:b", "#c", "urn:a:b#c"),
        ("file:///a/b", "../c", "file:///c"),
    ],
)
def test_relative_iris_on_odd_bases(base: str, reference: str, expected: str) -> None:
    assert resolve(base, reference) == expected


# ---------------------------------------------------------------- what is refused as unsupported

LIMIT = "a continuous answer has no order; cut it where you read the deltas"
FIXED = "write a path of fixed length, such as p/p"
STATEMENT = "give the statement a node of its own, and say what it states with triple patterns"
AGGREGATE = "aggregate the deltas where you read them"
BOTH = "register both patterns as queries, and subtract one answer from the other"
ONE_GRAPH = "the data is one graph, the union of all; leave it out"
EXPRESSION = "project variables, and compute with them where you read the deltas"


@pytest.mark.parametrize(
    ("text", "line", "column", "construct", "remedy"),
    [
        (
            *("SELECT * {\n  ?x ?p ?y\n  OPTIONAL { ?y ?q ?z } }", 3, 3, "OPTIONAL"),
            "register the pattern without it, and the pattern with its triples, as two queries",
        ),
        ("ASK {{?x ?p ?y}UNION{?x ?q ?y}}", 1, 16, "UNION", "register each branch as a query of its own"),
        ("ASK {?x ?p ?y filter(?y > 5)}", 1, 15, "FILTER", "filter the deltas where you read them"),
        ("ASK {?x ?p ?y FILTER NOT EXISTS {}}", 1, 15, "FILTER NOT EXISTS", BOTH),
        ("ASK {?x ?p ?y FILTER (NOT\nEXISTS {})}", 1, 15, "FILTER NOT EXISTS", BOTH),
        (
            *("ASK {?x ?p ?y FILTER EXISTS {}}", 1, 15, "FILTER EXISTS"),
            "write its pattern into the query, and SELECT DISTINCT",
        ),
        ("ASK {?x ?p ?y MINUS {?x ?q ?y}}", 1, 15, "MINUS", BOTH),
        ("ASK { GRAPH ?g {?x ?p ?y}}", 1, 7, "GRAPH", ONE_GRAPH),
        (
            *("ASK { SERVICE <x:y> {?x ?p ?y}}", 1, 7, "SERVICE"),
            "put the other source's triples into the stream or the initial graph",
        ),
        ("ASK { BIND(1 AS ?x) ?x ?p ?y}", 1, 7, "BIND", "compute the value where you read the deltas"),
        ("ASK { VALUES ?x {1} ?x ?p ?y}", 1, 7, "VALUES", "write the value into the pattern, one query a value"),
        ("ASK {?x ?p ?y} VALUES ?x {1}", 1, 16, "VALUES", "write the value into the pattern, one query a value"),
        ("SELECT ?x {?x ?p ?y}\rGROUP BY ?x", 2, 1, "GROUP BY", AGGREGATE),
        ("SELECT ?x {?x ?p ?y} HAVING(1)", 1, 22, "HAVING", AGGREGATE),
        (
            *("SELECT * {?x ?p ?y}\r\norder by ?x LIMIT 1", 2, 1, "ORDER BY"),
            "a continuous answer has no order; sort where you read it",
        ),
        ("SELECT * {?x ?p ?y} LIMIT 10 OFFSET 5", 1, 21, "LIMIT", LIMIT),
        ("SELECT * {?x ?p ?y} OFFSET 5", 1, 21, "OFFSET", LIMIT),
        (
            *("SELECT * { { SELECT ?x {?x ?p ?y} } }", 1, 14, "subquery (nested SELECT)"),
            "write its pattern into the outer query",
        ),
        ("SELECT (?x AS ?z) {?x ?p ?y}", 1, 8, "expression in SELECT '( … AS ?v )'", EXPRESSION),
        ("SELECT ?x (STR(?y)AS?z) {?x ?p ?y}", 1, 11, "expression in SELECT '( … AS ?v )'", EXPRESSION),
        ("SELECT (count(*) AS ?n) {?x ?p ?y}", 1, 9, "aggregate COUNT", AGGREGATE),
        ("SELECT COUNT(*) {?x ?p ?y}", 1, 8, "aggregate COUNT", AGGREGATE),
        ("CONSTRUCT {?x ?p ?y} {?x ?p ?y}", 1, 1, "CONSTRUCT", "write SELECT, and build the triples from its deltas"),
        ("DESCRIBE <x:y>", 1, 1, "DESCRIBE", "write SELECT with the triple patterns that you want to see"),
        ("SELECT * FROM <x:y> {?x ?p ?y}", 1, 10, "FROM", ONE_GRAPH),
        ("SELECT * FROM NAMED <x:y> {?x ?p ?y}", 1, 10, "FROM NAMED", ONE_GRAPH),
        ("ASK {?x <x:p>|<x:q> ?y}", 1, 14, "path operator '|'", "register each alternative as a query of its own"),
        ("ASK {?x <x:p>* ?y}", 1, 14, "path operator '*'", FIXED),
        ("ASK {?x <x:p>+ 5}", 1, 14, "path operator '+'", FIXED),
        ("ASK {?x <x:p>+?y}", 1, 14, "path operator '+'", FIXED),
        (
            *("ASK {?x <x:p>? ?y}", 1, 14, "path operator '?'"),
            "register the query with that step and the query without it",
        ),
        (
            *("ASK {?x ! <x:p> ?y}", 1, 9, "path operator '!'"),
            "put a variable in the predicate's place, and filter the deltas",
        ),
        ("ASK {?x <x:p>{2} ?y}", 1, 14, "path operator '{2}'", FIXED),
        ("ASK {?x <x:p>{2 , 3} ?y}", 1, 14, "path operator '{2,3}'", FIXED),
        ("ASK {?x <x:p>{,3} ?y}", 1, 14, "path operator '{,3}'", FIXED),
        ("ASK {?x a/<x:p>{1,}/a ?y}", 1, 16, "path operator '{1,}'", FIXED),
        ("ASK {<<?a ?b ?c>> ?p ?y}", 1, 6, "reified triple '<< >>'", STATEMENT),
        ("ASK {?x ?p <<( ?a ?b ?c )>> }", 1, 12, "triple term '<<( )>>'", STATEMENT),
        ("ASK {?x ?p ?y {| ?q ?z |} }", 1, 15, "annotation '{| |}'", STATEMENT),
        ("ASK {?x ?p ?y ~ ?r }", 1, 15, "reifier '~'", STATEMENT),
        ("ASK {?x ?p 'a'@en--ltr }", 1, 15, "base direction '--ltr'", "leave it out"),
        ("VERSION '1.2' ASK {?x ?p ?y}", 1, 1, "VERSION", "leave it out; this is SPARQL 1.1"),
        ("ASK {}", 1, 5, "empty graph pattern '{}'", "write at least one triple pattern in it"),
        (
            "SELECT * WHERE {{} {{}}} LIMIT 1",
            1,
            16,
            "empty graph pattern '{}'",
            "write at least one triple pattern in it",
        ),
        ("DEFINE input:inference 'x' ASK {?x ?p ?y}", 1, 1, "DEFINE", "leave it out"),
        ("ASK { LATERAL { ?x ?p ?y } }", 1, 7, "LATERAL", "write its pattern into the query"),
    ],
)
def test_unsupported(text: str, line: int, column: int, construct: str, remedy: str) -> None:
    with pytest.raises(UnsupportedQueryError) as raised:
        parse_query(text)
    error = raised.value
    assert str(error) == f"line {line}, column {column}: {construct} is not supported; {remedy}"
    assert (error.construct, error.line, error.column) == (construct, line, column)


@pytest.mark.parametrize("word", ["INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"])
def test_updates(word: str) -> None:
    with pytest.raises(UnsupportedQueryError) as raised:
        parse_query(f"PREFIX : <http://ex/>\n {word.lower()} DATA {{ :a :b :c }}")
    assert str(raised.value) == (
        f"line 2, column 2: {word} is not supported; {word} is an update, not a query; "
        "updates are the stream that queries are answered over"
    )


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("ASK { ?x ?p ?y OPTIONAL { ?x ?q ?y } FILTER(?y) } LIMIT 1", "OPTIONAL"),
        ("ASK { ?x ?p ?y FILTER(?y < 5 && 'a' = ?z) OPTIONAL {} }", "FILTER"),
        ("SELECT (SUM(?y) AS ?s) FROM <x:y> { ?x <x:p>* ?y }", "aggregate SUM"),
        ("SELECT * FROM <x:y> { ?x <x:p>* ?y } LIMIT 1", "FROM"),
        ("CONSTRUCT { ?x ?p ?y } WHERE { OPTIONAL {} }", "CONSTRUCT"),
        ("ASK { ?x undeclared:p|:q ?y", "path operator '|'"),
        ("ASK { ?x ?p ?y OPTIONAL { ?x ?p 'unclosed", "OPTIONAL"),
        ("ASK { ?x ?p LIMIT", "LIMIT"),
        ("ASK ?x ?p ?y } } LIMIT 5 \x00", "LIMIT"),
        ("SELECT ?x { ?x <relative> ?y . FILTER bif:contains(?y, 'x') }", "FILTER"),
    ],
)
def test_the_first_construct_is_named_whatever_else_is_wrong(text: str, construct: str) -> None:
    with pytest.raises(UnsupportedQueryError) as raised:
        parse_query(text)
    assert raised.value.construct == construct


# ---------------------------------------------------------------- what is no query


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        # the frame
        ("", 1, 1, "the text holds no query; write SELECT or ASK"),
        (" # ASK\n", 1, 1, "the text holds no query; write SELECT or ASK"),
        ("PREFIX : <http://ex/>", 1, 1, "the text holds no query; write SELECT or ASK"),
        (
            *("SELEKT * { ?x ?p ?y }", 1, 1),
            "'SELEKT' does not begin a query; write SELECT or ASK, after any BASE and PREFIX",
        ),
        ("ASK { ?x ?p ?y } ASK", 1, 18, "'ASK' stands after the end of the query"),
        ("ASK { ?x ?p ?y } .", 1, 18, "'.' stands after the end of the query"),
        ("ASK { ?x ?p ?y } }", 1, 18, "'}' closes nothing"),
        ("ASK { ?x ?p ?y", 1, 5, "the '{' of line 1, column 5 is not closed: '}' is missing"),
        ("ASK\n{{ ?x ?p ?y }", 2, 1, "the '{' of line 2, column 1 is not closed: '}' is missing"),
        ("ASK", 1, 4, "the query ends too early; the pattern begins with '{'"),
        ("ASK WHERE ?x", 1, 11, "'?x' does not belong here; the pattern begins with '{'"),
        ("SELECT * ?x { ?x ?p ?y }", 1, 10, "'?x' does not belong here; the pattern begins with '{'"),
        ("SELECT", 1, 7, "the query ends too early; SELECT needs variables, or *"),
        ("SELECT DISTINCT { ?x ?p ?y }", 1, 17, "'{' does not belong here; SELECT needs variables, or *"),
        ("SELECT ?x, ?y { ?x ?p ?y }", 1, 10, "',' does not belong here; a space separates variables"),
        # the prologue
        ("PREFIX ASK { ?x ?p ?y }", 1, 8, "'ASK' does not belong here; write it like PREFIX ex: <http://example.org/>"),
        (
            *("PREFIX ex <http://ex/> ASK", 1, 8),
            "'ex' does not belong here; write it like PREFIX ex: <http://example.org/>",
        ),
        (
            *("PREFIX ex:a <http://ex/> ASK", 1, 8),
            "'ex:a' does not belong here; write it like PREFIX ex: <http://example.org/>",
        ),
        ("PREFIX ex: ASK", 1, 12, "'ASK' does not belong here; write it like PREFIX ex: <http://example.org/>"),
        ("PREFIX", 1, 1, "the PREFIX is not complete; write it like PREFIX ex: <http://example.org/>"),
        ("BASE ex:", 1, 6, "'ex:' does not belong here; write it like BASE <http://example.org/>"),
        ("BASE <a> ASK", 1, 6, "<a> is a relative IRI; begin with BASE <…>, or write it in full"),
        ("PREFIX : <a> ASK", 1, 10, "<a> is a relative IRI; begin with BASE <…>, or write it in full"),
        # terms
        ("ASK { ?x ex:p 1 }", 1, 10, "prefix 'ex:' is not declared; begin with PREFIX ex: <…>"),
        (
            *("ASK { ?x a\n foaf:Person }", 2, 2),
            "prefix 'foaf:' is not declared; begin with PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
        ),
        ("ASK { ?x ?p 1 . ?y :p 1 }", 1, 20, "prefix ':' is not declared; begin with PREFIX : <…>"),
        (
            *("ASK { ?x ?p '1'^^xsd:int }", 1, 18),
            "prefix 'xsd:' is not declared; begin with PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>",
        ),
        ("ASK { ?x <p> 1 }", 1, 10, "<p> is a relative IRI; begin with BASE <…>, or write it in full"),
        ("ASK { ?x ?p <a b> }", 1, 15, "' ' is not allowed in an IRI; percent-encode it"),
        (r"ASK { ?x ?p <x:\u0020> }", 1, 13, "' ' is not allowed in an IRI; percent-encode it"),
        ("ASK { ?x ?p <x:\ud800> }", 1, 13, "'\\ud800' is not allowed in an IRI; percent-encode it"),
        ("ASK { ?x ?p <x:a }", 1, 17, "' ' is not allowed in an IRI; percent-encode it"),
        ("ASK { ?x ?p 'a }", 1, 13, "a string is not closed: ' is missing; a string over several lines needs '''"),
        ('ASK { ?x ?p "\ud800" }', 1, 13, "a literal cannot hold a lone surrogate (U+D800 to U+DFFF)"),
        (r"ASK { ?x ?p 'ab\ud800' }", 1, 16, "\\ud800 is not a character"),
        (r"ASK { ?x ?p 'ab\uD83D\uDE00' }", 1, 16, "\\uD83D is not a character"),
        (r"ASK { ?x ?p '\U00110000' }", 1, 14, "\\U00110000 is not a character"),
        (r"ASK { ?x ?p 'a\qb' }", 1, 15, "\\q is not an escape"),
        ("ASK { ?x ?p '''\na\\q''' }", 2, 2, "\\q is not an escape"),
        (r"ASK { ?x ?p ?a\u0020b }", 1, 13, "'?a\\\\u0020b' has an escaped character that a name cannot have"),
        (r"ASK { ?x ?p _:a\uD800 }", 1, 16, "\\uD800 is not a character"),
        ("ASK { ?x ?p 'a'^^5 }", 1, 16, "a datatype is missing after '^^'; write an IRI, such as xsd:date"),
        ("ASK { ?x ?p §5 }", 1, 13, "'§' does not belong in a query here"),
        ("\x7fELF\x01\x00", 1, 1, "'\\x7f' does not belong in a query here"),
        ("ASK { ?x ?p foo }", 1, 13, "'foo' is not a term; write ex:name, <IRI>, \"text\", ?variable or _:blank"),
        ("ASK { ?x ?p SELEKT }", 1, 13, "'SELEKT' is not a term; write ex:name, <IRI>, \"text\", ?variable or _:blank"),
        (
            *("ASK { ?x ?p _:a . { ?x ?q _:b } ?y ?q _:a }", 1, 39),
            "blank node _:a stands in two basic graph patterns; write a variable in its place",
        ),
        (
            *("ASK { { ?x ?p _:a } { _:a ?p ?x } }", 1, 23),
            "blank node _:a stands in two basic graph patterns; write a variable in its place",
        ),
        # statements
        ("ASK { ?x }", 1, 9, "a predicate is missing after '?x'"),
        ("ASK { ?x ?p }", 1, 12, "an object is missing after '?p'"),
        ("ASK { ?x ?p . }", 1, 12, "an object is missing after '?p'"),
        ("ASK { ?x ?p ?y , }", 1, 17, "an object is missing after ','"),
        ("ASK { ?x ?p ?y ?z }", 1, 16, "'?z' cannot stand here; '.', ';' or ',' is missing before it"),
        ("ASK { ?x ?p 'a'@en ?z }", 1, 20, "'?z' cannot stand here; '.', ';' or ',' is missing before it"),
        ("ASK { ?x 'p' ?z }", 1, 10, "'p' cannot stand here; a predicate is an IRI or a variable"),
        ("ASK { ?x _:p ?z }", 1, 10, "'_:p' cannot stand here; a predicate is an IRI or a variable"),
        ("ASK { ?x ?p a }", 1, 13, "'a' cannot stand here; an object is missing after '?p'"),
        ("ASK { ?x A ?y }", 1, 10, "'A' is not a term; write ex:name, <IRI>, \"text\", ?variable or _:blank"),
        ("ASK { a ?p ?y }", 1, 7, "'a' cannot stand here; a triple pattern begins with its subject"),
        ("ASK { ?x a/ ?y }", 1, 13, "'?y' cannot stand here; a path is made of IRIs"),
        ("ASK { ?x a/ }", 1, 12, "the next step of the path is missing after '/'"),
        ("ASK { ?x ^^a ?y }", 1, 10, "'^^' does not belong in a triple pattern here"),
        ("ASK { ?x ^ ^a ?y }", 1, 12, "'^' cannot stand here; the next step of the path is missing after '^'"),
        (
            *("ASK { ?x (a ?y }", 1, 16),
            "'}' cannot stand here; the '(' of line 1, column 10 is not closed: ')' is missing",
        ),
        ("ASK { ?x (a ?y) }", 1, 13, "'?y' cannot stand here; an object is missing after 'a'"),
        ("ASK { ?x = ?y }", 1, 10, "'=' does not belong in a triple pattern here"),
        ("ASK { ?x ?p @en }", 1, 13, "'@en' does not belong in a triple pattern here"),
        ("ASK { [] }", 1, 9, "a predicate is missing after ']'"),
        ("ASK { ?x ?p [ ?q ] }", 1, 18, "']' cannot stand here; an object is missing after '?q'"),
        (
            *("ASK { ?x ?p [ ?q ?y }", 1, 21),
            "'}' cannot stand here; the '[' of line 1, column 13 is not closed: ']' is missing",
        ),
        (
            *("ASK { ?x ?p ( ?q ] }", 1, 18),
            "']' cannot stand here; the '(' of line 1, column 13 is not closed: ')' is missing",
        ),
        ("ASK { ?x ?p ?y ) }", 1, 16, "')' closes nothing"),
        (
            "ASK { ?x (a]) ?y }",
            1,
            12,
            "']' cannot stand here; the '(' of line 1, column 10 is not closed: ')' is missing",
        ),
        (
            *("ASK { ?x ?p [ ?q ?y . ] }", 1, 21),
            "'.' cannot stand inside '['; the '[' of line 1, column 13 is not closed: ']' is missing",
        ),
        (
            *("ASK { ?x ?p ( { } ) }", 1, 15),
            "'{' cannot stand inside '('; the '(' of line 1, column 13 is not closed: ')' is missing",
        ),
        ("ASK { ?x ?p (?a , ?b) }", 1, 17, "',' cannot stand here; ')' is missing after '?a'"),
        ("ASK { . ?x ?p ?y }", 1, 7, "'.' has no triple pattern before it"),
        ("ASK { ?x ?p ?y . . }", 1, 18, "'.' has no triple pattern before it"),
        ("ASK { ; ?x ?p ?y }", 1, 7, "';' cannot stand here; a triple pattern begins with its subject"),
        ("ASK { ?x ?p ?y ;; , ?z }", 1, 19, "',' cannot stand in a triple pattern here"),
    ],
)
def test_syntax_errors(text: str, line: int, column: int, reason: str) -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        parse_query(text)
    assert str(raised.value) == f"line {line}, column {column}: {reason}"
    assert (raised.value.line, raised.value.column) == (line, column)


def test_a_relative_base_beside_the_text() -> None:
    with pytest.raises(QuerySyntaxError, match=r"^the base IRI is no good: <a> is a relative IRI; write it in full"):
        parse_query("ASK { ?x ?p ?y }", base="a")


@pytest.mark.parametrize(
    ("before", "opening", "middle", "closing", "after"),
    [(":p ", "[ :p ", "?y ", "] ", ""), (":p ", "( ", "?y ", ") ", ""), ("", "^ ( ", ":p ", ") ", "?y ")],
)
def test_deep_nesting(before: str, opening: str, middle: str, closing: str, after: str) -> None:
    def parse(depth: int) -> Query:
        return parse_query(f"{PREFIX} ASK {{ ?x {before}{opening * depth}{middle}{closing * depth}{after} }}")

    assert parse(10).pattern.patterns
    with pytest.raises(
        QuerySyntaxError, match=rf"^line 1, column {len(PREFIX) + 8}: brackets are nested too deeply in"
    ):
        parse(500)


def test_groups_nest_and_patterns_repeat_without_limit() -> None:
    assert len(parse_query("ASK " + "{ " * 5000 + "?x ?p ?y" + "}" * 5000).pattern.patterns) == 1
    chain = " . ".join(f"?v{number} <x:p> ?v{number + 1}" for number in range(300))
    assert len(parse_query(f"SELECT * {{ {chain} }}").pattern.patterns) == 300


def test_a_fault_of_the_parser_is_a_syntax_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def parse_string(self, text: str, parse_all: bool) -> None:
            raise KeyError(text)

    monkeypatch.setattr("rdflib.plugins.sparql.parser.TriplesSameSubjectPath", Broken())
    with pytest.raises(QuerySyntaxError, match=r"^line 2, column 3: this is not a triple pattern$"):
        parse_query("ASK {\n  ?x ?p ?y }")


# ---------------------------------------------------------------- files

GOOD, BAD = "SELECT * { ?x ?p ?y }", "SELECT *\n { ?x ?p 'y }"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("plain.rq", "two.dots.rq", "a=b.rq", "=c.rq", "d=plain.rq", "sub/e=f.rq"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("plain.rq", "plain"),
        ("./plain.rq", "plain"),
        ("two.dots.rq", "two.dots"),
        ("triangle=plain.rq", "triangle"),
        ("t=./plain.rq", "t"),
        ("t=sub/e=f.rq", "t"),
        ("a=b.rq", "a=b"),
        ("=c.rq", "=c"),
        ("d=plain.rq", "d"),
        ("sub/e=f.rq", "e=f"),
        ("ünï cödé=plain.rq", "ünï cödé"),
    ],
)
@pytest.mark.usefixtures("directory")
def test_names(spec: str, name: str) -> None:
    assert read_query(spec) == (name, parse_query(GOOD))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("none.rq", "there is no query file 'none.rq'"),
        ("t=none.rq", "there is no query file 'none.rq'"),
        ("sub/t=none.rq", "there is no query file 'sub/t=none.rq'"),
        ("=plain.rq", "the query '=plain.rq' lacks a name; write FILE or NAME=FILE"),
        ("t=", "the query 't=' lacks a file; write FILE or NAME=FILE"),
        ("", "the query '' lacks a name; write FILE or NAME=FILE"),
        ("a\tb=plain.rq", r"a query cannot be named 'a\tb': '\t' cannot be in a file's name; write NAME=FILE"),
        ("a\x00b=plain.rq", r"a query cannot be named 'a\x00b': '\x00' cannot be in a file's name; write NAME=FILE"),
        ("a=\x00", r"the query file '\x00' cannot be read: embedded null byte"),
        ("sub", "the query file 'sub' cannot be read: Is a directory"),
        ("plain.rq/x", "the query file 'plain.rq/x' cannot be read: Not a directory"),
    ],
)
@pytest.mark.usefixtures("directory")
def test_bad_specs(spec: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_query(spec)
    assert str(raised.value) == message


def test_a_file_named_with_a_backslash_needs_a_name(directory: Path) -> None:
    (directory / "a\\b.rq").write_text(GOOD, encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot be named 'a\\\\b'"):
        read_query("a\\b.rq")
    assert read_query("name=a\\b.rq")[0] == "name"


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (BAD.encode(), QuerySyntaxError, "line 2, column 10: a string is not closed: ' is missing"),
        (b"ASK {} LIMIT 3", UnsupportedQueryError, "line 1, column 5: empty graph pattern '{}' is not supported;"),
        (b"ASK { ?x ?p\r\n '\xc3\xa9\xff' }", QuerySyntaxError, "line 2, column 4: byte 0xFF is not UTF-8; save"),
        (GOOD.encode("utf-16"), QuerySyntaxError, "line 1, column 1: byte 0xFF is not UTF-8; save the query as UTF-8"),
        (b"", QuerySyntaxError, "line 1, column 1: the text holds no query; write SELECT or ASK"),
    ],
)
def test_errors_name_the_file(directory: Path, data: bytes, error: type[QueryError], message: str) -> None:
    (directory / "triangle.rq").write_bytes(data)
    with pytest.raises(error) as raised:
        read_query("t=triangle.rq")
    assert str(raised.value).startswith(f"triangle.rq: {message}")
    assert f"line {raised.value.line}, column {raised.value.column}: " in message


def test_line_ends_and_byte_order_marks_of_files(directory: Path) -> None:
    (directory / "crlf.rq").write_bytes(b"\xef\xbb\xbfASK {\r\n ?x ?p '''a\r\nb''' }")
    (pattern,) = read_query("crlf.rq")[1].pattern.patterns
    assert pattern.object == Literal("a\r\nb")


# ---------------------------------------------------------------- manners


def test_rdflib_is_left_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        parse_query(f'{PREFIX} ASK {{ ?x :p "x"^^xsd:integer , "x"^^xsd:date , 5 }}')
    assert caplog.records == []
    assert rdflib.NORMALIZE_LITERALS is True
    assert str(rdflib.Literal("01", datatype=rdflib.XSD.integer)) == "1"


def test_parsing_in_many_threads() -> None:
    texts = [f"SELECT * {{ ?x <x:p>/<x:q> [ <x:p> {number} ] , (1 ?y) }}" for number in range(40)]
    expected = [parse_query(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(parse_query, texts)) == expected


def test_importing_does_not_import_rdflib() -> None:
    code = "import sys, deltastar.query.parse; sys.exit('rdflib' in sys.modules or 'pyparsing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_parsing_takes_milliseconds() -> None:
    text = f"{PREFIX} SELECT * {{ {' . '.join(f'?a{n} :p ?b{n} ; :q {n}' for n in range(10))} }}"
    parse_query(text)
    started = time.process_time()
    for _ in range(5):
        parse_query(text)
    assert (time.process_time() - started) / 5 < 0.1  # takes 0.01 s


def test_queries_survive_pickling() -> None:
    query = parse_query(f"{PREFIX} SELECT DISTINCT ?x {{ ?x :p/:q 'a'@en }}")
    assert pickle.loads(pickle.dumps(query)) == query


# ---------------------------------------------------------------- against another parser

TOKENS = ["?x", "?y", ":p", ":a", "_:l", "a", "true", "5", "'s'", "[]", "()", *"[](){}.;,/^"]


class Writer:
    """Random group graph patterns: all the syntax that is supported, few terms."""

    def __init__(self, random: random.Random) -> None:
        self.random = random

    def group(self, depth: int = 0) -> str:
        parts = []
        for _ in range(self.random.choice([1, 1, 2])):
            if depth < 3 and self.random.random() < 0.2:
                parts.append(f"{{ {self.group(depth + 1)} }} {self.random.choice(['', '.'])}")
            else:
                parts.append(self.statement() + " .")
        return " ".join(parts)

    def statement(self) -> str:
        kind = self.random.random()
        if kind < 0.1:
            return f"[ {self.properties(1)} ] {self.random.choice(['', self.properties(0)])}"
        if kind < 0.15:
            return f"( {self.node(1)} {self.node(1)} ) {self.random.choice(['', self.properties(0)])}"
        return f"{self.random.choice(['?x', '?y', ':a', '_:m', '[]', '1'])} {self.properties(0)}"

    def properties(self, depth: int) -> str:
        lists = []
        for _ in range(self.random.choice([1, 1, 2])):
            verb = self.random.choice(["?x", "?p"]) if self.random.random() < 0.15 else self.path(depth)
            lists.append(verb + " " + " , ".join(self.node(depth) for _ in range(self.random.choice([1, 1, 2]))))
        return " ; ".join(lists) + self.random.choice(["", "", " ;"])

    def node(self, depth: int) -> str:
        kind = self.random.random()
        if depth < 2 and kind < 0.1:
            return f"[ {self.properties(depth + 1)} ]"
        if depth < 2 and kind < 0.15:
            return f"( {' '.join(self.node(depth + 1) for _ in range(self.random.randint(1, 3)))} )"
        return self.random.choice(["?x", "?y", "?z", ":a", ":b", "_:l", "[]", "()", "1", "'s'", "?x", "?y"])

    def path(self, depth: int) -> str:
        kind = self.random.random()
        if depth < 3 and kind < 0.1:
            return f"( {self.path(depth + 1)} )"
        if depth < 3 and kind < 0.2:
            return f"^ {self.random.choice([':p', 'a', f'( {self.path(depth + 1)} )'])}"
        if depth < 3 and kind < 0.35:
            return f"{self.path(depth + 1)} / {self.path(depth + 1)}"
        return self.random.choice([":p", ":q", "a", ":r"])

    def mutated(self, group: str) -> str:
        tokens = group.split()
        place = self.random.randrange(len(tokens))
        tokens[place : place + self.random.randint(0, 1)] = self.random.choice([[], [self.random.choice(TOKENS)]])
        return " ".join(tokens)

    def store(self) -> pyoxigraph.Store:
        nodes = [f"<http://ex/{name}>" for name in "ab"] + [f"<{RDF}nil>"]
        predicates = [f"<http://ex/{name}>" for name in "pqr"] + [
            f"<{RDF}{name}>" for name in ("type", "first", "rest")
        ]
        objects = [*nodes, f'"1"^^<{XSD}integer>', '"s"']
        lines = (
            f"{self.random.choice(nodes)} {self.random.choice(predicates)} {self.random.choice(objects)} .\n"
            for _ in range(40)
        )
        store = pyoxigraph.Store()
        store.load("".join(lines).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
        return store


def answers(store: pyoxigraph.Store, text: str, names: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    solutions = store.query(text)
    assert isinstance(solutions, pyoxigraph.QuerySolutions)
    assert {variable.value for variable in solutions.variables} == set(names)
    return Counter(tuple(str(solution[name]) for name in names) for solution in solutions)


def accepted(text: str) -> Query | None:
    try:
        return parse_query(text)
    except QuerySyntaxError:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_oxigraph_agrees(seed: int) -> None:
    """On what is SPARQL, and on the answers of the text and of the basic graph pattern that it became."""
    writer, found, compared = Writer(random.Random(seed)), 0, 0
    for number in range(60):
        group = writer.group()
        text = f"PREFIX : <http://ex/> SELECT * {{ {writer.mutated(group) if number % 2 else group} }}"
        store = writer.store()
        try:
            query = accepted(text)
        except UnsupportedQueryError:
            continue
        try:
            store.query(text)
        except SyntaxError:
            assert query is None, text
            continue
        assert query is not None, text
        assert parse_query(str(query)) == query
        expected = answers(store, text, query.names)
        assert answers(store, str(query), query.names) == expected, text
        found, compared = found + bool(expected), compared + 1
    assert compared > 30
    assert found > 5
