"""A SPARQL Update request to one transaction: INSERT DATA and DELETE DATA, in the order of the text.

In: the bytes of a request. Out: its events between `Mark.BEGIN` and `Mark.COMMIT`, or one `Malformed` that says which
operation is not supported, or where the text is wrong; then nothing of the request is applied.

What stands in the braces of INSERT DATA and DELETE DATA is TriG but for the places of the graphs' braces, so pyoxigraph
reads it, with the prologue in front. rdflib's parser was the alternative: it is a hundred times slower, knows prefixes
that nobody declared, and rewrites literals unless a global switch is turned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import pyoxigraph

from deltastar.errors import RowError, TermError
from deltastar.rdf.grammar import clip
from deltastar.rdf.library import BlankNames, place_of, update_of
from deltastar.rdf.ntriples import BOM, decode_row, keep
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark

_TOKEN = re.compile(
    r"""
    (?P<space>  (?: [ \t\r\n]++ | \#[^\r\n]*+ )++ )
  | (?P<iri>    < [^\x00-\x20<>"{}|^`]*+ > )
  | (?P<string> \"{3} (?: [^"\\] | \\. | "(?!"") )*+ \"{3}  |  '{3} (?: [^'\\] | \\. | '(?!'') )*+ '{3}
              | " (?: [^"\\\r\n] | \\. )*+ "                |  ' (?: [^'\\\r\n] | \\. )*+ ' )
  | (?P<word>   (?: [^][ \t\r\n<>"'{}\#;,().\\] | \\. ) (?: \.*+ (?: [^][ \t\r\n<>"'{}\#;,().\\] | \\. ) )*+ )
  | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
_OPS = {"INSERT": INSERT, "DELETE": DELETE}
_QUERIES = {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}
_UNSUPPORTED = {"LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"}
_REMEDY = "only INSERT DATA and DELETE DATA are read"


@dataclass(frozen=True, slots=True)
class Request:
    """What a request brings, and whether it names a graph."""

    events: list[Event]
    named_graphs: bool


class _Token(NamedTuple):
    kind: str  # a group of the expression; "end" behind the last token
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the text goes on."""
        return self.start + len(self.text)

    @property
    def keyword(self) -> str:
        """The word as the grammar writes keywords."""
        return self.text.upper() if self.kind == "word" else ""


def read_request(data: bytes, source: str) -> Request:
    """Reads a request, the text of a whole file.

    >>> request = b"PREFIX ex: <http://ex/> INSERT DATA { ex:ann ex:knows ex:bob } ; DELETE DATA { ex:ann ex:age 7 }"
    >>> for event in read_request(request, "people.ru").events:
    ...     print(event)
    Mark.BEGIN
    Update(ins, <http://ex/ann> <http://ex/knows> <http://ex/bob> .)
    Update(del, <http://ex/ann> <http://ex/age> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .)
    Mark.COMMIT
    """
    text, fault = decode_row(data.removeprefix(BOM))
    reader = _Reader(text, source)
    try:
        if fault is not None:
            reader.fail(fault[1], fault[0] - 1)
        updates = list(reader.read())
    except RowError as error:
        kept, reason = keep(text, error.reason)
        return Request([Malformed(source, error.line, error.column, reason, kept, is_message=False)], False)
    return Request([Mark.BEGIN, *updates, Mark.COMMIT] if updates else [], reader.named_graphs)


class _Reader:
    """A request under the reader: the token at which it is, and the prologue so far."""

    def __init__(self, text: str, source: str) -> None:
        self.named_graphs = False
        self._text = text
        self._names = BlankNames(source)
        self._names.note(text.encode())
        self._prologue: list[str] = []
        self._tokens = self._tokenize()
        self._token = next(self._tokens)

    def read(self) -> Iterator[Event]:
        """The updates. Raises `RowError`, with line and column, behind those that come before the fault."""
        while True:
            self._read_prologue()
            if self._token.kind == "end":
                return
            yield from self._operation()
            if self._token.kind == "end":
                return
            if self._token.text != ";":
                self.fail(f"expected ';' between two operations, found {clip(self._token.text)!r}")
            self._take()

    def fail(self, reason: str, at: int | None = None) -> NoReturn:
        """Raises `RowError` for what is at an offset, by default at the token."""
        start = self._token.start if at is None else at
        line_start = self._text.rfind("\n", 0, start) + 1
        raise RowError(reason, start - line_start + 1, self._text.count("\n", 0, start) + 1)

    def _read_prologue(self) -> None:
        while (keyword := self._token.keyword) in ("PREFIX", "BASE"):
            self._take()
            if keyword == "PREFIX":
                if self._token.kind != "word" or not self._token.text.endswith(":"):
                    self.fail("a prefix is declared PREFIX ex: <http://example/>")
                keyword += " " + self._take()
            if self._token.kind != "iri":
                self.fail("an IRI is missing; write it in angle brackets")
            self._prologue.append(f"{keyword} {self._take()}")

    def _operation(self) -> Iterator[Event]:
        start, name = self._token.start, self._token.keyword
        if name in _QUERIES:
            self.fail(f"{name} is a query, and not an update; {_REMEDY}")
        if name in _UNSUPPORTED:
            self.fail(f"{name} is not supported; {_REMEDY}")
        if name not in _OPS:
            self.fail(f"expected INSERT DATA or DELETE DATA, found {clip(self._token.text)!r}")
        self._take()
        if self._token.keyword != "DATA":
            form = "DELETE WHERE" if self._token.keyword == "WHERE" else f"{name} … WHERE"
            self.fail(f"{form} is not supported; {_REMEDY}", start)
        self._take()
        body_start = self._token.start
        yield from self._parsed(_OPS[name], start, body_start, self._body())

    def _body(self) -> str:
        """The braces and what is in them, as TriG: `{ a GRAPH <g> { b } c }` becomes `{ a }     <g> { b }{ c }`."""
        parts: list[str] = []
        copied, depth = self._token.start, 0
        if self._token.text != "{":
            self.fail("expected '{' and triples")
        while True:
            token = self._token
            if token.kind == "end":
                self.fail("'}' is missing")
            self._take()
            depth += (token.text == "{") - (token.text == "}")
            if depth == 0:
                return "".join((*parts, self._text[copied : token.end]))
            if depth == 1 and token.keyword == "GRAPH":
                parts.append(self._text[copied : token.start] + "}    ")
                copied = token.end
            elif depth == 1 and token.text == "}":
                has_dot = self._token.text == "."
                parts.append(self._text[copied : self._token.start if has_dot else token.end] + "{")
                copied = self._token.end if has_dot else token.end
                if has_dot:
                    self._take()

    def _parsed(self, op: str, start: int, body_start: int, body: str) -> Iterator[Event]:
        document = f"{' '.join(self._prologue)}\n{body}".encode()
        try:
            for quad in pyoxigraph.parse(document, pyoxigraph.RdfFormat.TRIG):
                update = update_of(op, quad, self._names)
                if op == DELETE and (update[1][0] == "_" or update[3][0] == "_"):
                    self.fail(
                        "DELETE DATA has a blank node; SPARQL does not allow that: name the node by an IRI", start
                    )
                if isinstance(quad.graph_name, pyoxigraph.BlankNode):
                    self.fail("a graph is named by an IRI here, and not by a blank node", start)
                self.named_graphs |= isinstance(quad.graph_name, pyoxigraph.NamedNode)
                yield update
        except TermError as fault:
            self.fail(fault.reason, start)
        except SyntaxError as error:
            self._fail_in_body(error, start, body_start)

    def _fail_in_body(self, error: SyntaxError, start: int, body_start: int) -> NoReturn:
        """Raises `RowError` for a fault in the document that is the prologue, in one line, and the body."""
        line, column, reason = place_of(error)
        if line < 2:
            self.fail(reason, start)
        line_start = body_start
        for _ in range(line - 2):
            line_start = self._text.find("\n", line_start) + 1
        self.fail(reason, line_start + column - 1)

    def _take(self) -> str:
        """Goes on to the next token; the text of this one."""
        text = self._token.text
        self._token = next(self._tokens)
        return text

    def _tokenize(self) -> Iterator[_Token]:
        for match in _TOKEN.finditer(self._text):
            if (kind := match.lastgroup or "") != "space":
                yield _Token(kind, match.group(), match.start())
        yield _Token("end", "", len(self._text))
