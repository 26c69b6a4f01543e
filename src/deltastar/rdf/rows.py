"""One row, read exactly: its event, or a `RowError` that says at which column it stops making sense, and why.

This is the judge of what a row means. `ntriples.py` reads plain rows in bulk and leaves all others to it; where both
can read a row, they agree.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NoReturn

from deltastar.errors import RowError, TermError
from deltastar.rdf.grammar import clip, end_of
from deltastar.rdf.terms import BlankNode, Term, read_term
from deltastar.rdf.update import DELETE, INSERT, Mark, Update


class Syntax(Enum):
    """The line-based formats."""

    PATCH = "RDF Patch"
    NTRIPLES = "N-Triples"
    NQUADS = "N-Quads"


_SPACE = re.compile(r"[ \t]*+")
_KEYWORD = re.compile(r"[A-Za-z]*+")
_WORD = re.compile(r"[^ \t]++")
_HEADER_NAME = re.compile(r'[^ \t<>"#.][^ \t<>"#]*+')
_PREFIX = re.compile(r'[^ \t<>"#:]*+:|[^ \t<>"#:.]++(?:\.++[^ \t<>"#:.]++)*+')
_BLANK_IRI = re.compile(r"<_:([^<>]*+)>")
_MARKS = {"TX": Mark.BEGIN, "TB": Mark.BEGIN, "TC": Mark.COMMIT, "TA": Mark.ABORT}
_OPS = {"A": INSERT, "D": DELETE}
_DIRECTIVES = {"@prefix", "@base", "@version", "prefix", "base", "version"}


class Row:
    """A row under the reader.

    >>> Row("D <http://ex/ann> <http://ex/knows> _:b1 <http://ex/graph> .", Syntax.PATCH).read()
    Update(del, <http://ex/ann> <http://ex/knows> _:b1 .)
    """

    __slots__ = ("_at", "_syntax", "_text", "has_graph")

    def __init__(self, text: str, syntax: Syntax) -> None:
        self._text, self._syntax = text, syntax
        self._at = 0
        self.has_graph = False

    def read(self) -> Update | Mark | None:
        """The row's event; None for one without (blank, comment, header, prefix)."""
        self._skip()
        if self._is_at_end():
            return None
        if self._syntax is not Syntax.PATCH:
            return self._triple(INSERT)
        start = self._at
        self._at = end_of(_KEYWORD, self._text, start)
        keyword = self._text[start : self._at]
        if keyword in _OPS:
            return self._triple(_OPS[keyword])
        if keyword in _MARKS:
            self._end()
            return _MARKS[keyword]
        if keyword in ("H", "PA", "PD", "Z"):
            self._bookkeeping(keyword)
            return None
        self._at = start
        return self._fail(
            f"{self._word()!r} does not begin a row of RDF Patch; one of H, TX, TC, TA, PA, PD, A, D and Z does"
        )

    def _triple(self, op: str) -> Update:
        start = self._skip()
        if self._syntax is not Syntax.PATCH and self._word().lower() in _DIRECTIVES:
            self._fail(f"{self._syntax.value} has no {self._word()}; write IRIs in full, or name the file .ttl")
        subject = self._term()
        if subject[0] == '"':
            self._fail("the subject is a literal; it must be an IRI or a blank node", start)
        start = self._skip()
        if self._text[start : start + 2] in ("a ", "a\t"):
            self._fail("'a' is Turtle; write <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>")
        predicate = self._term()
        if predicate[0] != "<":
            what = "literal" if predicate[0] == '"' else "blank node"
            self._fail(f"the predicate is a {what}; it must be an IRI", start)
        target = self._term()
        self._skip()
        if self._text[self._at : self._at + 1] in ("<", '"', "_"):
            self._graph()
        self._end()
        return Update(op, subject, predicate, target)

    def _graph(self) -> None:
        start = self._at
        graph = self._term()
        if self._syntax is Syntax.NTRIPLES:
            self._fail("a fourth term; N-Triples has three, N-Quads may have a graph too: use .nq", start)
        if graph[0] == '"':
            self._fail("the graph is a literal; it must be an IRI or a blank node", start)
        self.has_graph = True

    def _term(self) -> Term:
        start = self._skip()
        if self._text[start : start + 1] in (".", "#"):
            self._fail("a term is missing; a row has a subject, a predicate and an object")
        try:
            if self._syntax is Syntax.PATCH and (match := _BLANK_IRI.match(self._text, start)) is not None:
                self._at = match.end()
                return BlankNode(match.group(1))
            term, self._at = read_term(self._text, start)
        except TermError as fault:
            column = fault.column if fault.column > start else start + 1
            raise RowError(fault.reason, column) from None
        return term

    def _bookkeeping(self, keyword: str) -> None:
        """H name value; PA prefix iri; PD prefix; Z. Read leniently: nothing hangs on them.

        A prefix may be a string, a keyword, or end in a colon; its IRI may be a string: RDF Patch's own pages do both.
        """
        self._skip()
        if keyword == "H":
            self._header_name()
            self._term()
        elif keyword != "Z":
            self._prefix()
        while keyword in ("PA", "PD") and self._peek() in ("<", "_", '"'):
            self._prefix_argument()
        self._end()

    def _header_name(self) -> None:
        if self._peek() == '"':
            self._term()
        elif (end := end_of(_HEADER_NAME, self._text, self._at)) > self._at:
            self._at = end
        else:
            self._fail("a header is written H name value .")

    def _prefix(self) -> None:
        if self._peek() == '"':
            self._term()
        elif (match := _PREFIX.match(self._text, self._at)) is not None:
            self._at = match.end()
        else:
            self._fail('a prefix is written "ex", ex or ex: as in PA "ex" <http://example/> .')

    def _prefix_argument(self) -> None:
        if self._peek() == '"':
            self._term()
        else:
            self._at = self._closing_bracket() if self._peek() == "<" else end_of(_WORD, self._text, self._at)

    def _closing_bracket(self) -> int:
        end = self._text.find(">", self._at) + 1
        return end or self._fail("an IRI is not closed; '>' is missing")

    def _end(self) -> None:
        """The dot, and nothing behind it but a comment."""
        if self._peek() != ".":
            if self._is_at_end():
                self._fail("the row does not end with a dot")
            self._fail(f"{self._word()!r} stands where the dot that ends the row should be")
        self._at += 1
        self._skip()
        if not self._is_at_end():
            self._fail(f"{self._word()!r} stands behind the dot; a row has a line of its own")

    def _peek(self) -> str:
        start = self._skip()
        return self._text[start : start + 1]

    def _skip(self) -> int:
        self._at = end_of(_SPACE, self._text, self._at)
        return self._at

    def _is_at_end(self) -> bool:
        return self._text[self._at : self._at + 1] in ("", "#")

    def _word(self) -> str:
        return clip(self._text[self._at : end_of(_WORD, self._text, self._at)])

    def _fail(self, reason: str, at: int | None = None) -> NoReturn:
        raise RowError(reason, (self._at if at is None else at) + 1)


def is_message(text: str, syntax: Syntax) -> bool:
    """Whether a row, be it malformed, stands where a message should be, and so has a `seq`.

    >>> is_message("A<http://ex/a>", Syntax.PATCH), is_message("Add <http://ex/a>", Syntax.PATCH)
    (True, False)
    """
    start = end_of(_SPACE, text, 0)
    if syntax is not Syntax.PATCH:
        return text[start : start + 1] not in ("", "#")
    return text[start : end_of(_KEYWORD, text, start)] in _OPS
