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
from typing import Any, NamedTuple, TypeVar

from deltastar.errors import TermError

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

# Productions of the N-Triples grammar (RDF 1.1). White space inside an IRI is excluded up to U+0020 only: U+00A0,
# U+0085, U+2028 and the like are part of an IRI.
IRI_CHARS = r"[^\x00-\x20<>\"{}|^`\\]"
UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:"
_PN_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_PN_CHARS = _PN_BASE + r"_:0-9\u00b7\u0300-\u036f\u203f-\u2040" + "-"
BLANK_LABEL = f"[{_PN_BASE}_:0-9](?:[{_PN_CHARS}.]*[{_PN_CHARS}])?"
LANGUAGE = r"[A-Za-z]+(?:-[A-Za-z0-9]+)*"

_IRI = re.compile(rf"<({IRI_CHARS}*(?:(?:{UCHAR}){IRI_CHARS}*)*)>")
_BLANK = re.compile(rf"_:({BLANK_LABEL})")
_STRING = re.compile(rf'"([^"\\\n\r]*(?:(?:\\[tbnrf"\'\\]|{UCHAR})[^"\\\n\r]*)*)"')
_LANGUAGE = re.compile(rf"@({LANGUAGE})(?![A-Za-z0-9-])")
_ABSOLUTE = re.compile(SCHEME)
_IRI_ILLEGAL = re.compile(r"[\x00-\x20<>\"{}|^`\\\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_TO_ESCAPE = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPED = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}
_SURROGATE = re.compile("[\ud800-\udfff]")


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
        if _BLANK.fullmatch("_:" + label) is None:
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
        if _SURROGATE.search(value):
            raise TermError("a literal cannot hold a lone surrogate (U+D800 to U+DFFF)")
        if language:
            if re.fullmatch(LANGUAGE, language) is None:
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
    if isinstance(value, str) and type(value) is str:
        parsed, end = read_term(value, 0)
        if end != len(value):
            raise TermError(f"unexpected text after the term: {value[end : end + 20]!r}", end + 1)
        return parsed
    return _from_rdflib(value)


def read_term(text: str, start: int) -> tuple[Term, int]:
    """The term that begins at `start`, and where it ends. Raises `TermError` with the column of the fault."""
    first = text[start : start + 1]
    if first == "<":
        return _read_iri(text, start)
    if first == '"':
        return _read_literal(text, start)
    if first == "_":
        if (match := _BLANK.match(text, start)) is None:
            raise TermError("bad blank node; write it like _:b1", start + 1)
        return _make(BlankNode, match.group()), match.end()
    if first == "":
        raise TermError("the row ends where a term should be", start + 1)
    raise TermError(f"{_excerpt(text, start)} is not a term; write <iri>, \"literal\" or _:blank", start + 1)


def of_canonical(text: str) -> Term:
    """The term whose canonical text this is already: no checks. For the readers' fast path and for decoding."""
    return _make(_CLASS_BY_FIRST[text[0]], text)


def check_iri(value: str) -> None:
    """Raises `TermError` unless the value is an absolute IRI as RDF 1.1 N-Triples writes them."""
    if (bad := _IRI_ILLEGAL.search(value)) is not None:
        raise TermError(f"{bad.group()!r} is not allowed in an IRI; percent-encode it", bad.start() + 1)
    if _ABSOLUTE.match(value) is None:
        raise TermError(f"<{_clip(value)}> is a relative IRI; write it in full, with its scheme")


def unescape(text: str) -> str:
    """Resolves the escapes of N-Triples. Raises `TermError` for one that is none."""
    if "\\" not in text:
        return text

    def resolve(match: re.Match[str]) -> str:
        short, long, char = match.groups()
        if char is not None:
            if char not in _UNESCAPED:
                raise TermError(f"\\{char} is not an escape", match.start() + 1)
            return _UNESCAPED[char]
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise TermError(f"{match.group()} is not a character", match.start() + 1)
        return chr(code)

    return _ESCAPE.sub(resolve, text)


def escape(text: str) -> str:
    """A literal's lexical form as canonical N-Triples writes it between the quotes."""
    if _TO_ESCAPE.search(text) is None:
        return text
    return _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match.group()) or f"\\u{ord(match.group()):04X}", text)


def _read_iri(text: str, start: int) -> tuple[IRI, int]:
    if text.startswith("<<", start):
        raise TermError("RDF 1.2 triple terms (<< … >>) are not supported", start + 1)
    if (match := _IRI.match(text, start)) is None:
        raise _iri_fault(text, start)
    inner = match.group(1)
    value = unescape(inner)
    try:
        check_iri(value)
    except TermError as fault:
        raise TermError(fault.reason, start + 1 + (fault.column if value == inner else 0)) from None
    return _make(IRI, f"<{value}>"), match.end()


def _read_literal(text: str, start: int) -> tuple[Literal, int]:
    if (match := _STRING.match(text, start)) is None:
        raise _string_fault(text, start)
    try:
        lexical = escape(unescape(match.group(1)))
    except TermError as fault:
        raise TermError(fault.reason, start + 1 + fault.column) from None
    end = match.end()
    follows = text[end : end + 1]
    if follows == "@":
        if (tag := _LANGUAGE.match(text, end)) is None:
            raise TermError("bad language tag; write it like @en or @pt-BR", end + 1)
        return _make(Literal, f'"{lexical}"@{tag.group(1).lower()}'), tag.end()
    if follows == "^":
        if not text.startswith("^^<", end):
            raise TermError("a datatype is written ^^<iri>", end + 1)
        datatype, end = _read_iri(text, end + 2)
        suffix = "" if datatype.value == XSD_STRING else f"^^{datatype}"
        return _make(Literal, f'"{lexical}"{suffix}'), end
    return _make(Literal, f'"{lexical}"'), end


def _iri_fault(text: str, start: int) -> TermError:
    position = start + 1
    while position < len(text) and text[position] not in ">\n\r":
        char = text[position]
        if char == "\\":
            escape_match = re.compile(UCHAR).match(text, position)
            if escape_match is None:
                return TermError("bad escape in an IRI; only \\uXXXX and \\UXXXXXXXX are allowed", position + 1)
            position = escape_match.end()
            continue
        if char <= " " or char in '<"{}|^`':
            return TermError(f"{char!r} is not allowed in an IRI; percent-encode it", position + 1)
        position += 1
    return TermError("an IRI is not closed; '>' is missing", start + 1)


def _string_fault(text: str, start: int) -> TermError:
    position = start + 1
    while position < len(text) and text[position] not in '"\n\r':
        if text[position] == "\\":
            good = re.compile(rf"\\[tbnrf\"'\\]|{UCHAR}").match(text, position)
            if good is None:
                return TermError("bad escape in a literal; allowed are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX", position + 1)
            position = good.end()
            continue
        position += 1
    return TermError("a literal is not closed; '\"' is missing", start + 1)


def _from_rdflib(value: object) -> Term:
    from rdflib import BNode, URIRef
    from rdflib import Literal as RdflibLiteral

    if isinstance(value, URIRef):
        return IRI(str(value))
    if isinstance(value, BNode):
        return BlankNode(str(value))
    if isinstance(value, RdflibLiteral):
        return Literal(str(value), language=value.language or "", datatype=str(value.datatype or ""))
    raise TermError(
        f"{type(value).__name__} is not a term; give an N-Triples string such as '<http://ex/a>', or an rdflib term"
    )


def _make(cls: type[_T], text: str) -> _T:
    return str.__new__(cls, text)


def _revive(text: str) -> Term:
    return of_canonical(text)


def _excerpt(text: str, start: int) -> str:
    match = re.compile(r"\S+").match(text, start)
    return repr(_clip(match.group() if match else text[start:]))


def _clip(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"


_CLASS_BY_FIRST: dict[str, type[Term]] = {"<": IRI, '"': Literal, "_": BlankNode}
