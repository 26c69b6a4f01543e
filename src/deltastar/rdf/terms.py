"""RDF terms and triples: immutable values with one canonical text each.

A term *is* its canonical N-Triples text (a `str` subclass), so that two terms are equal exactly when RDF 1.1 says
so, hashing and comparing cost what they cost for strings, and `print(term)` shows N-Triples. Canonical means:
escapes are resolved, except those that the grammar needs (`\\"`, `\\\\`, control characters); `^^xsd:string` is
left out; language tags are in lower case, because they compare case-insensitively.

    >>> term('"caf\\\\u00e9"@EN')
    Literal('café', language='en')
    >>> print(term('"x"^^<http://www.w3.org/2001/XMLSchema#string>'))
    "x"
"""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple, TypeVar

from deltastar.errors import TermError
from deltastar.rdf import grammar
from deltastar.rdf.grammar import (
    RDF_LANG_STRING,
    UCHAR,
    XSD_STRING,
    check_iri,
    check_string,
    escape,
    unescape,
)

__all__ = [
    "IRI",
    "RDF_LANG_STRING",
    "UCHAR",
    "XSD_STRING",
    "BlankNode",
    "Literal",
    "Term",
    "Triple",
    "check_iri",
    "escape",
    "of_canonical",
    "read_term",
    "term",
    "unescape",
]


class Term(str):
    """An RDF term: an `IRI`, a `Literal` or a `BlankNode`. Equal to its canonical N-Triples text."""

    __slots__ = ()

    @property
    def value(self) -> str:
        """The text inside: an IRI without its angle brackets, a literal's lexical form, a blank node's label."""
        raise NotImplementedError

    def to_json(self) -> dict[str, str]:
        """The term as in the SPARQL 1.1 Query Results JSON Format."""
        raise NotImplementedError

    def to_rdflib(self) -> Any:
        """The same term for rdflib, its lexical form kept."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_revive, (str.__str__(self),))


class IRI(Term):
    """An absolute IRI.

    >>> IRI("http://ex/a").value
    'http://ex/a'
    """

    __slots__ = ()

    def __new__(cls, value: str) -> IRI:
        check_iri(value)
        return str.__new__(cls, f"<{value}>")

    @property
    def value(self) -> str:
        return self[1:-1]

    def to_json(self) -> dict[str, str]:
        return {"type": "uri", "value": self[1:-1]}

    def to_rdflib(self) -> Any:
        from rdflib import URIRef

        return URIRef(self[1:-1])

    def __repr__(self) -> str:
        return f"IRI({self[1:-1]!r})"


class BlankNode(Term):
    """A blank node of the data: a constant named by its label."""

    __slots__ = ()

    def __new__(cls, label: str) -> BlankNode:
        if grammar.BLANK.fullmatch("_:" + label) is None:
            raise TermError(f"{label!r} is not a blank node label; use letters, digits, '_', '-' and '.'")
        return str.__new__(cls, "_:" + label)

    @property
    def value(self) -> str:
        return self[2:]

    def to_json(self) -> dict[str, str]:
        return {"type": "bnode", "value": self[2:]}

    def to_rdflib(self) -> Any:
        from rdflib import BNode

        return BNode(self[2:])

    def __repr__(self) -> str:
        return f"BlankNode({self[2:]!r})"


class Literal(Term):
    """A literal: a lexical form with a datatype or a language.

    >>> Literal("5", datatype="http://www.w3.org/2001/XMLSchema#integer").datatype
    'http://www.w3.org/2001/XMLSchema#integer'
    """

    __slots__ = ()

    def __new__(cls, value: str, language: str = "", datatype: str = "") -> Literal:
        if language and datatype not in ("", RDF_LANG_STRING):
            raise TermError("a literal has a language or a datatype, not both")
        check_string(value)
        if language:
            if re.fullmatch(grammar.LANGUAGE, language) is None:
                raise TermError(f"{language!r} is not a language tag; write it like 'en' or 'pt-BR'")
            suffix = "@" + language.lower()
        elif datatype in ("", XSD_STRING):
            suffix = ""
        else:
            check_iri(datatype)
            suffix = f"^^<{datatype}>"
        return str.__new__(cls, f'"{escape(value)}"{suffix}')

    @property
    def value(self) -> str:
        return unescape(self[1 : self.rindex('"')])

    @property
    def language(self) -> str:
        """The language tag in lower case, or ''."""
        suffix = self[self.rindex('"') + 1 :]
        return suffix[1:] if suffix[:1] == "@" else ""

    @property
    def datatype(self) -> str:
        """The datatype's IRI; a plain literal's is xsd:string, a language-tagged one's rdf:langString."""
        suffix = self[self.rindex('"') + 1 :]
        if suffix[:1] == "@":
            return RDF_LANG_STRING
        return suffix[3:-1] if suffix else XSD_STRING

    def to_json(self) -> dict[str, str]:
        json = {"type": "literal", "value": self.value}
        suffix = self[self.rindex('"') + 1 :]
        if suffix[:1] == "@":
            json["xml:lang"] = suffix[1:]
        elif suffix:
            json["datatype"] = suffix[3:-1]
        return json

    def to_rdflib(self) -> Any:
        from rdflib import Literal as RdflibLiteral
        from rdflib import URIRef

        suffix = self[self.rindex('"') + 1 :]
        if suffix[:1] == "@":
            return RdflibLiteral(self.value, lang=suffix[1:])
        return RdflibLiteral(self.value, datatype=URIRef(suffix[3:-1]) if suffix else None, normalize=False)

    def __repr__(self) -> str:
        suffix = self[self.rindex('"') + 1 :]
        if suffix[:1] == "@":
            return f"Literal({self.value!r}, language={suffix[1:]!r})"
        return f"Literal({self.value!r}{f', datatype={suffix[3:-1]!r}' if suffix else ''})"


_T = TypeVar("_T", bound=Term)


class Triple(NamedTuple):
    """A data triple."""

    subject: Term
    predicate: Term
    object: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


def term(value: object) -> Term:
    """The term that an N-Triples string or an rdflib term stands for.

    >>> term("<http://ex/a>")
    IRI('http://ex/a')
    """
    if isinstance(value, Term):
        return value
    if type(value) is not str and (converted := _from_rdflib(value)) is not None:
        return converted
    if not isinstance(value, str):
        raise TermError(
            f"{type(value).__name__} is not a term; give an N-Triples string such as '<http://ex/a>', or an rdflib term"
        )
    text = str(value)
    parsed, end = read_term(text, 0)
    if end != len(text):
        raise TermError(f"unexpected text after the term: {text[end : end + 20]!r}", end + 1)
    return parsed


def read_term(text: str, start: int) -> tuple[Term, int]:
    """The term that begins at `start`, and where it ends. Raises `TermError` with the column of the fault."""
    first = text[start : start + 1]
    if first == "<":
        return _read_iri(text, start)
    if first == '"':
        return _read_literal(text, start)
    if first == "_":
        if (match := grammar.BLANK.match(text, start)) is None:
            raise TermError("bad blank node; write it like _:b1", start + 1)
        return _make(BlankNode, match.group()), match.end()
    raise grammar.no_term(text, start)


def of_canonical(text: str) -> Term:
    """The term whose canonical text this is already: no checks. For the readers' fast path and for decoding."""
    return _make(_CLASS_BY_FIRST[text[0]], text)


def _read_iri(text: str, start: int) -> tuple[IRI, int]:
    if text.startswith("<<", start):
        raise TermError("RDF 1.2 triple terms (<< … >>) are not supported", start + 1)
    if (match := grammar.IRI.match(text, start)) is None:
        raise grammar.iri_fault(text, start)
    try:
        value = unescape(match.group(1))
    except TermError as fault:
        raise TermError(fault.reason, start + 1 + fault.column) from None
    try:
        check_iri(value)
    except TermError as fault:
        raise TermError(fault.reason, start + 1) from None
    return _make(IRI, f"<{value}>"), match.end()


def _read_literal(text: str, start: int) -> tuple[Literal, int]:
    if (match := grammar.STRING.match(text, start)) is None:
        raise grammar.string_fault(text, start)
    try:
        value = unescape(match.group(1))
        check_string(value)
    except TermError as fault:
        raise TermError(fault.reason, start + 1 + fault.column) from None
    lexical, end = escape(value), match.end()
    follows = text[end : end + 1]
    if follows == "@":
        if (tag := grammar.LANGUAGE_TAG.match(text, end)) is None:
            raise TermError("bad language tag; write it like @en or @pt-BR", end + 1)
        return _make(Literal, f'"{lexical}"@{tag.group(1).lower()}'), tag.end()
    if follows == "^":
        if not text.startswith("^^<", end):
            raise TermError("a datatype is written ^^<iri>", end + 1)
        datatype, end = _read_iri(text, end + 2)
        suffix = "" if datatype.value == XSD_STRING else f"^^{datatype}"
        return _make(Literal, f'"{lexical}"{suffix}'), end
    return _make(Literal, f'"{lexical}"'), end


def _from_rdflib(value: object) -> Term | None:
    """The term that an rdflib term is; None for what is not one of rdflib's."""
    rdflib = sys.modules.get("rdflib")  # whoever has one of its terms has loaded it
    if rdflib is None:
        return None
    if isinstance(value, rdflib.URIRef):
        return IRI(str(value))
    if isinstance(value, rdflib.BNode):
        return BlankNode(str(value))
    if isinstance(value, rdflib.Literal):
        return Literal(str(value), language=value.language or "", datatype=str(value.datatype or ""))
    return None


def _make(cls: type[_T], text: str) -> _T:
    return str.__new__(cls, text)


def _revive(text: str) -> Term:
    return of_canonical(text)


_CLASS_BY_FIRST: dict[str, type[Term]] = {"<": IRI, '"': Literal, "_": BlankNode}
