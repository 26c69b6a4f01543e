"""BASE and PREFIX, and what the terms of a query stand for under them.

Tokens come in, terms come out. Terms are read here and not by the parser because they must be kept exactly as
written: lexical forms, escapes, tabs. Every IRI that leaves is absolute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deltastar.errors import QuerySyntaxError, TermError
from deltastar.query.algebra import Node, Variable
from deltastar.query.tokens import Kind, Token, tokenize
from deltastar.rdf.grammar import UCHAR, unescape
from deltastar.rdf.terms import IRI, Literal

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"

_WELL_KNOWN = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dcterms": "http://purl.org/dc/terms/",
    "schema": "http://schema.org/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
}
_REFERENCE = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.DOTALL,
)
_UCHAR = re.compile(UCHAR)
_NAME_ESCAPE = re.compile(r"\\(.)")
_EXPONENT = re.compile("[eE]")


class Prologue(NamedTuple):
    """The base IRI ('' when there is none) and the declared prefixes, without their colons."""

    base: str
    prefixes: Mapping[str, str]

    def iri(self, token: Token) -> str:
        """The absolute IRI that an IRI or a prefixed name stands for."""
        if token.kind is Kind.PNAME:
            prefix, local = _decode_name(token).split(":", 1)
            if prefix not in self.prefixes:
                known = _WELL_KNOWN.get(prefix, "…")
                raise token.error(f"prefix '{prefix}:' is not declared; begin with PREFIX {prefix}: <{known}>")
            return _checked(token, self.prefixes[prefix] + _NAME_ESCAPE.sub(r"\1", local))
        value = _decode(token, token.text[1:-1])
        if _parts(value)["scheme"] is not None:
            return _checked(token, value)
        if not self.base:
            raise token.error(f"{token} is a relative IRI; begin with BASE <…>, or write it in full")
        return _checked(token, resolve(self.base, value))

    def node(self, tokens: Sequence[Token], index: int) -> tuple[Node, int]:
        """The variable or term that begins at a token, and the index after it. A blank node is a hidden variable."""
        token = tokens[index]
        if token.kind is Kind.STRING:
            return self._literal(tokens, index)
        if token.kind is Kind.VARIABLE:
            return Variable(_decode_name(token)[1:]), index + 1
        if token.kind is Kind.BLANK:
            return Variable.hidden(_decode_name(token)[2:]), index + 1
        if token.kind is Kind.NUMBER:
            return Literal(token.text, datatype=XSD + _number_type(token.text)), index + 1
        if token.kind is Kind.WORD:
            return Literal(token.text.lower(), datatype=XSD + "boolean"), index + 1
        return IRI(self.iri(token)), index + 1

    def _literal(self, tokens: Sequence[Token], index: int) -> tuple[Literal, int]:
        token = tokens[index]
        width = 3 if len(token.text) >= 6 and token.text.startswith(('"""', "'''")) else 1
        lexical = _decode(token, token.text[width:-width], width)
        language = datatype = ""
        follows = tokens[index + 1] if index + 1 < len(tokens) else token
        end = index + 1
        if follows.kind is Kind.LANGUAGE:
            language, end = follows.text[1:], index + 2
        elif follows.is_mark("^^"):
            if index + 2 == len(tokens) or tokens[index + 2].kind not in (Kind.IRI, Kind.PNAME):
                raise follows.error("a datatype is missing after '^^'; write an IRI, such as xsd:date")
            datatype, end = self.iri(tokens[index + 2]), index + 3
        try:
            return Literal(lexical, language, datatype), end
        except TermError as fault:
            raise token.error(fault.reason) from None


def read_prologue(tokens: Sequence[Token], base: str = "") -> tuple[Prologue, int]:
    """The BASE and PREFIX declarations that open a query, and the index of the first token after them."""
    prefixes: dict[str, str] = {}
    prologue, index = Prologue(base, prefixes), 0
    while index < len(tokens) and tokens[index].keyword in ("BASE", "PREFIX"):
        keyword, index = tokens[index], index + 1
        name = None
        if keyword.keyword == "PREFIX":
            name = _expect(tokens, index, keyword, lambda token: token.kind is Kind.PNAME and token.text[-1] == ":")
            index += 1
        iri = prologue.iri(_expect(tokens, index, keyword, lambda token: token.kind is Kind.IRI))
        index += 1
        if name is None:
            prologue = prologue._replace(base=iri)
        else:
            prefixes[_decode_name(name)[:-1]] = iri
    return prologue, index


def resolve(base: str, reference: str) -> str:
    """A relative reference made absolute (RFC 3986, section 5.2). One that has a scheme is kept as written.

    >>> resolve("http://ex/a/b?q", "../c#d")
    'http://ex/c#d'
    """
    ours, theirs = _parts(reference), _parts(base)
    authority, path, query = theirs["authority"], theirs["path"] or "", ours["query"]
    if ours["scheme"] is not None:
        return reference
    if ours["authority"] is not None:
        authority, path = ours["authority"], _remove_dots(ours["path"] or "")
    elif ours["path"]:
        path = _remove_dots(_merged(theirs, ours["path"]))
    elif query is None:
        query = theirs["query"]
    return (
        f"{theirs['scheme']}:"
        + (f"//{authority}" if authority is not None else "")
        + path
        + (f"?{query}" if query is not None else "")
        + (f"#{ours['fragment']}" if ours["fragment"] is not None else "")
    )


def _parts(reference: str) -> dict[str, str | None]:
    return _REFERENCE.fullmatch(reference).groupdict()  # type: ignore[union-attr]


def _merged(base: Mapping[str, str | None], path: str) -> str:
    if path.startswith("/"):
        return path
    if base["authority"] is not None and not base["path"]:
        return "/" + path
    directory, slash, _ = (base["path"] or "").rpartition("/")
    return directory + slash + path


def _remove_dots(path: str) -> str:
    """Section 5.2.4."""
    root = "/" if path.startswith("/") else ""
    kept: list[str] = []
    segments = path.removeprefix("/").split("/")
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return root + "/".join(kept) + ("/" if kept and segments[-1] in (".", "..") else "")


def _expect(tokens: Sequence[Token], index: int, keyword: Token, is_right: Callable[[Token], bool]) -> Token:
    example = "BASE <http://example.org/>" if keyword.keyword == "BASE" else "PREFIX ex: <http://example.org/>"
    if index == len(tokens):
        raise keyword.error(f"the {keyword.keyword} is not complete; write it like {example}")
    if not is_right(tokens[index]):
        raise tokens[index].error(f"{tokens[index]} does not belong here; write it like {example}")
    return tokens[index]


def _decode(token: Token, text: str, start: int = 1) -> str:
    """The text with its escapes resolved; it begins `start` characters into the token."""
    try:
        return unescape(text)
    except TermError as fault:
        raise token.error(fault.reason, start + fault.column - 1) from None


def _decode_name(token: Token) -> str:
    r"""A name with its \u escapes resolved: they may only stand for characters that could stand there themselves."""
    if "\\u" not in token.text and "\\U" not in token.text:
        return token.text
    decoded = _UCHAR.sub(lambda match: _decode(token, match.group(), match.start()), token.text)
    if [other.kind for other in tokenize(decoded)] != [token.kind]:
        raise token.error(f"{token} has an escaped character that a name cannot have")
    return decoded


def _checked(token: Token, iri: str) -> str:
    try:
        return IRI(iri).value
    except TermError as fault:
        raise token.error(fault.reason) from None


def _number_type(text: str) -> str:
    if _EXPONENT.search(text):
        return "double"
    return "decimal" if "." in text else "integer"


def read_base(base: str) -> str:
    """A base IRI given beside the query; it must be absolute."""
    try:
        return IRI(base).value
    except TermError as fault:
        raise QuerySyntaxError(f"the base IRI is no good: {fault.reason}") from None
