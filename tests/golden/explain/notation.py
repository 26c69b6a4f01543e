"""Queries from a short notation, so that tests of plans do not depend on the SPARQL parser.

`?x :p ?y . _:b a "5"^^xsd:integer`: patterns between ` . `, terms without spaces or quoted; `:` is http://ex/.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from deltastar.query.algebra import GraphPattern, Node, Query, TriplePattern, Variable
from deltastar.rdf.terms import IRI, term

PREFIXES = {"": "http://ex/", "foaf": "http://xmlns.com/foaf/0.1/"}
RDF_TYPE = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
XSD = "http://www.w3.org/2001/XMLSchema#"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"[^\s]*|<[^>]*>|\S+')


def graph_pattern(text: str) -> GraphPattern:
    """The graph pattern."""
    tokens = _TOKEN.findall(text)
    rows = [tokens[start : start + 3] for start in range(0, len(tokens), 4)]
    assert all(tokens[start] == "." for start in range(3, len(tokens), 4)), text
    return GraphPattern(tuple(TriplePattern(*map(node, row)) for row in rows))


def query(
    text: str, shown: Iterable[str] | None = None, distinct: bool = False, ask: bool = False, bare: bool = False
) -> Query:
    """The query; `shown` are the projected variables, all if None; `bare` when it declares no prefixes."""
    prefixes = () if bare else tuple(PREFIXES.items())
    if ask:
        return Query.ask(graph_pattern(text), prefixes)
    projection = None if shown is None else tuple(Variable(name) for name in shown)
    return Query.select(graph_pattern(text), projection, distinct, prefixes)


def node(text: str) -> Node:
    """A variable or a term."""
    if text.startswith("?"):
        return Variable(text[1:])
    if text.startswith("_:"):
        return Variable.hidden(text[2:])
    if text == "a":
        return RDF_TYPE
    if text[0] in '"<':
        return term(re.sub(r"\^\^xsd:(\w+)$", rf"^^<{XSD}\1>", text))
    prefix, local = text.split(":", 1)
    return IRI(PREFIXES[prefix] + local)
