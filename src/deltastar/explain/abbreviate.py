"""Terms as briefly as SPARQL can write them: `foaf:knows`, `a`, `5`, `"x"@en`.

The prefixes that the query declares come first; well-known ones fill the gaps, unless the query uses their name for
something else. Every abbreviation reads back as the same term.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from deltastar.explain.measure import printable
from deltastar.query.algebra import Node, TriplePattern
from deltastar.rdf.terms import IRI, XSD_STRING, Literal

RDF_TYPE = IRI("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
WELL_KNOWN = (
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("schema", "http://schema.org/"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("geo", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
)

# Stricter than PN_LOCAL, so that what is shown needs no escapes and cannot be misread at the end of a pattern.
_LOCAL = re.compile(r"(?:\w(?:[\w.-]*[\w-])?)?")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_SHORTHAND = {
    _XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    _XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    _XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+"),
    _XSD + "boolean": re.compile(r"true|false"),
}


class Names:
    """Abbreviates nodes and patterns, and remembers which well-known prefixes that took.

    >>> from deltastar.rdf.terms import term
    >>> names = Names([("ex", "http://ex/")])
    >>> names.of(term("<http://ex/ann>")), names.of(term("<http://xmlns.com/foaf/0.1/name>"))
    ('ex:ann', 'foaf:name')
    >>> names.borrowed
    {'foaf': 'http://xmlns.com/foaf/0.1/'}
    """

    def __init__(self, prefixes: Iterable[tuple[str, str]] = ()) -> None:
        declared = dict(prefixes)
        added = {name: space for name, space in WELL_KNOWN if name not in declared}
        self._spaces = sorted((declared | added).items(), key=lambda item: (-len(item[1]), item[0] in added))
        self._added = added
        self.borrowed: dict[str, str] = {}

    def of(self, node: Node, is_predicate: bool = False) -> str:
        """The node as briefly as it can be written; rdf:type is `a` as a predicate only."""
        if is_predicate and node == RDF_TYPE:
            return "a"
        if isinstance(node, IRI):
            return self._iri(node.value)
        if isinstance(node, Literal):
            return self._literal(node)
        return printable(str(node))

    def terms(self, pattern: TriplePattern) -> tuple[str, str, str]:
        """The three parts of a pattern, abbreviated."""
        return self.of(pattern.subject), self.of(pattern.predicate, is_predicate=True), self.of(pattern.object)

    def _iri(self, value: str) -> str:
        for name, space in self._spaces:
            local = value[len(space) :]
            if space and value.startswith(space) and _LOCAL.fullmatch(local) and local.isprintable():
                if name in self._added:
                    self.borrowed[name] = space
                return f"{name}:{local}"
        return f"<{printable(value)}>"

    def _literal(self, literal: Literal) -> str:
        shorthand = _SHORTHAND.get(literal.datatype)
        if shorthand is not None and shorthand.fullmatch(literal.value):
            return literal.value
        if literal.language or literal.datatype == XSD_STRING:
            return printable(str(literal))
        quoted = str(literal)[: str(literal).rindex('"') + 1]
        return f"{printable(quoted)}^^{self._iri(literal.datatype)}"
