"""SPARQL text to tokens with their places: what refusals and syntax errors point at.

Text comes in, tokens go out; put end to end, they are the text again. One compiled regular expression does it,
after the terminals of the SPARQL 1.1 grammar (section 19.8), in time linear in the text up to the first fault. What
begins no token becomes a `FAULT` of one character, and `describe_fault` says what is wrong there. Keywords are bare
words, so `?optional`, `ex:optional`, `"OPTIONAL"` and comments are none.

    >>> [token.text for token in significant(tokenize("ASK { ?x a ex:optional } # OPTIONAL"))]
    ['ASK', '{', '?x', 'a', 'ex:optional', '}']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from deltastar.errors import QuerySyntaxError
from deltastar.rdf.grammar import IRI_CHARS, UCHAR, clip, iri_fault

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_START = _BASE + "_"
_MARKS = "\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = _START + "0-9" + _MARKS + "-"

# A dot belongs to a name only when more of the name follows; possessive repeats keep every match linear.
_PREFIX = rf"(?:[{_BASE}]|{UCHAR})(?:[{_CHARS}]|{UCHAR}|\.++(?=[{_CHARS}]|{UCHAR}))*+"
_PLX = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL_CHAR = rf"[{_CHARS}:]|{_PLX}|{UCHAR}"
_LOCAL = rf"(?:[{_START}:0-9]|{_PLX}|{UCHAR})(?:{_LOCAL_CHAR}|\.++(?={_LOCAL_CHAR}))*+"
_LABEL = rf"(?:[{_START}0-9]|{UCHAR})(?:[{_CHARS}]|{UCHAR}|\.++(?=[{_CHARS}]|{UCHAR}))*+"
_NAME = rf"(?:[{_START}0-9]|{UCHAR})(?:[{_START}0-9{_MARKS}]|{UCHAR})*+"


class Kind(Enum):
    """What a token is."""

    SPACE = "space"
    COMMENT = "comment"
    IRI = "iri"
    STRING = "string"
    BLANK = "blank"
    PNAME = "pname"
    VARIABLE = "variable"
    NUMBER = "number"
    LANGUAGE = "language"
    WORD = "word"
    PUNCTUATION = "punctuation"
    FAULT = "fault"


_TERMINALS = {
    Kind.SPACE: r"[ \t\r\n]++",
    Kind.COMMENT: r"#[^\r\n]*+",
    Kind.IRI: rf"<(?:{IRI_CHARS}|{UCHAR})*+>",
    Kind.STRING: r'"""(?:[^"\\]|\\.|"(?!""))*+"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r'|"(?!"")(?:[^"\\\r\n]|\\[^\r\n])*+"'
    r"|'(?!'')(?:[^'\\\r\n]|\\[^\r\n])*+'",
    Kind.BLANK: rf"_:{_LABEL}",
    Kind.PNAME: rf"(?:{_PREFIX})?:(?:{_LOCAL})?",
    Kind.VARIABLE: rf"[?$]{_NAME}",
    Kind.NUMBER: r"[+-]?(?:[0-9]++\.[0-9]*+[eE][+-]?[0-9]++|\.?[0-9]++[eE][+-]?[0-9]++|[0-9]*+\.[0-9]++|[0-9]++)",
    Kind.LANGUAGE: r"@[A-Za-z]++(?:-[A-Za-z0-9]++)*+(?:--[A-Za-z]++)?",
    Kind.WORD: rf"[{_START}][{_START}0-9{_MARKS}]*+",
    Kind.PUNCTUATION: r"\^\^|<<\(?|\{\||\|\||&&|!=|>=|[{}()\[\].,;*+?!|/^~=>&-]",
    Kind.FAULT: r".",
}
_TOKEN = re.compile("|".join(f"(?P<{kind.value}>{text})" for kind, text in _TERMINALS.items()), re.DOTALL)
# Where `a.a.a` turns out to be no prefix, the rest of it need not be tried as one again: that would be quadratic.
_BARE_TOKEN = re.compile(_TOKEN.pattern.replace(f"|(?P<pname>{_TERMINALS[Kind.PNAME]})", ""), re.DOTALL)
_PREFIX_RUN = re.compile(_PREFIX)
_KIND = {kind.value: kind for kind in Kind}
_NEWLINE = re.compile(r"\r\n?|\n")


class Token(NamedTuple):
    """A piece of the text. `line` and `column` are 1-based; a tab is one column."""

    kind: Kind
    text: str
    line: int
    column: int

    @property
    def keyword(self) -> str:
        """A bare word in capitals; '' for anything else."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def is_mark(self, *marks: str) -> bool:
        """Whether it is one of these punctuation marks."""
        return self.kind is Kind.PUNCTUATION and self.text in marks

    def error(self, reason: str, offset: int = 0) -> QuerySyntaxError:
        """A syntax error at this token, or `offset` characters into it."""
        line, column = advance(self.line, self.column, self.text[:offset])
        return QuerySyntaxError(reason, line, column)

    def __str__(self) -> str:
        text = clip(self.text)
        return text if self.kind in (Kind.STRING, Kind.IRI) and text.isprintable() else repr(text)


def tokenize(text: str) -> Iterator[Token]:
    """All tokens of the text, white space and comments too."""
    line, column, start, bare_until = 1, 1, 0, 0
    while start < len(text):
        match = (_TOKEN if start >= bare_until else _BARE_TOKEN).match(text, start)
        assert match is not None, "a fault matches any character"
        kind, piece = _KIND[match.lastgroup or ""], match.group()
        yield Token(kind, piece, line, column)
        if kind is Kind.WORD and start >= bare_until and (run := _PREFIX_RUN.match(text, start)):
            bare_until = run.end()
        start = match.end()
        if kind in (Kind.SPACE, Kind.STRING, Kind.FAULT):
            line, column = advance(line, column, piece)
        else:
            column += len(piece)


def significant(tokens: Iterable[Token]) -> list[Token]:
    """The tokens without white space and comments."""
    return [token for token in tokens if token.kind is not Kind.SPACE and token.kind is not Kind.COMMENT]


def describe_fault(text: str, fault: Token) -> QuerySyntaxError:
    """What is wrong at a `FAULT` of this text."""
    start = _offset(text, fault)
    if fault.text in ('"', "'"):
        long = text.startswith(fault.text * 3, start)
        quote = fault.text * 3 if long else fault.text
        hint = "" if long else f"; a string over several lines needs {fault.text * 3}"
        return fault.error(f"a string is not closed: {quote} is missing{hint}")
    if fault.text == "<":
        why = iri_fault(text, start)
        end = why.column - 1
        return fault._replace(text=text[start:end]).error(why.reason, end - start)
    return fault.error(f"{fault.text!r} does not belong in a query here")


def advance(line: int, column: int, text: str) -> tuple[int, int]:
    """The place after this text, for one that begins here. CR, LF and CR LF end a line."""
    end = 0
    for newline in _NEWLINE.finditer(text):
        line, column, end = line + 1, 1, newline.end()
    return line, column + len(text) - end


def _offset(text: str, token: Token) -> int:
    start = 0
    for _ in range(token.line - 1):
        start = _NEWLINE.search(text, start).end()  # type: ignore[union-attr]
    return start + token.column - 1
