"""The frame of a query: what it selects, its braces, and the statements between them.

Tokens after the prologue come in, with nothing unsupported among them. Nested groups are plain joins then, so the
pattern is a flat run of statements: the tokens of one subject with its predicates and objects, between dots and
braces. Each keeps the number of the basic graph pattern that it stands in, since a blank node's label is good for
one of them only. Whatever brackets a statement holds are balanced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deltastar.errors import QuerySyntaxError
from deltastar.query.tokens import Kind, Token

_CLOSES = {"}": "{", "]": "[", ")": "("}
_CLOSED_BY = {opening: closing for closing, opening in _CLOSES.items()}
_TERM_WORDS = ("TRUE", "FALSE")


class Statement(NamedTuple):
    """The tokens of one subject with its predicates and objects, and the basic graph pattern they belong to."""

    tokens: tuple[Token, ...]
    block: int


class Frame(NamedTuple):
    """A query without its prologue. A projection of None is `*`."""

    is_ask: bool
    is_distinct: bool
    projection: tuple[Token, ...] | None
    statements: tuple[Statement, ...]


def read_frame(tokens: Sequence[Token], start: int) -> Frame:
    """The frame that begins at a token. Raises `QuerySyntaxError`."""
    if start == len(tokens):
        raise QuerySyntaxError("the text holds no query; write SELECT or ASK", 1, 1)
    form = tokens[start]
    if form.keyword not in ("SELECT", "ASK"):
        raise form.error(f"{form} does not begin a query; write SELECT or ASK, after any BASE and PREFIX")
    index, modifier, projection = start + 1, "", None
    if form.keyword == "SELECT":
        modifier, projection, index = _read_selection(tokens, index)
    if index < len(tokens) and tokens[index].keyword == "WHERE":
        index += 1
    _expect(
        tokens, index, tokens[index : index + 1] != [] and tokens[index].is_mark("{"), "the pattern begins with '{'"
    )
    statements, index = _read_pattern(tokens, index)
    if index < len(tokens):
        trailing = tokens[index]
        if trailing.is_mark("}"):
            raise trailing.error("'}' closes nothing")
        raise trailing.error(f"{trailing} stands after the end of the query")
    return Frame(form.keyword == "ASK", modifier == "DISTINCT", projection, tuple(statements))


def _read_selection(tokens: Sequence[Token], index: int) -> tuple[str, tuple[Token, ...] | None, int]:
    modifier = tokens[index].keyword if index < len(tokens) else ""
    if modifier in ("DISTINCT", "REDUCED"):
        index += 1
    if index < len(tokens) and tokens[index].is_mark("*"):
        return modifier, None, index + 1
    variables = []
    while index < len(tokens) and tokens[index].kind is Kind.VARIABLE:
        variables.append(tokens[index])
        index += 1
    if index < len(tokens) and variables and tokens[index].is_mark(","):
        raise tokens[index].error("',' does not belong here; a space separates variables")
    _expect(tokens, index, variables != [], "SELECT needs variables, or *")
    return modifier, tuple(variables), index


def _read_pattern(tokens: Sequence[Token], start: int) -> tuple[list[Statement], int]:
    """The statements between the brace at `start` and the one that closes it, and the index after that."""
    open_brackets: list[Token] = []
    statements: list[Statement] = []
    current: list[Token] = []
    block = 0
    for index in range(start, len(tokens)):
        token = tokens[index]
        is_brace = token.is_mark("{", "}")
        if is_brace or token.is_mark("."):
            _check_separator(token, tokens[index - 1], open_brackets)
            if current:
                statements.append(Statement(tuple(current), block))
                current = []
            block += is_brace
        else:
            _check_word(token)
            current.append(token)
        _track_bracket(token, open_brackets)
        if not open_brackets:
            return statements, index + 1
    raise open_brackets[-1].error(_not_closed(open_brackets[-1]))


def _check_separator(token: Token, previous: Token, open_brackets: Sequence[Token]) -> None:
    innermost = open_brackets[-1].text if open_brackets else "{"
    if innermost != "{" and not token.is_mark("}"):
        raise token.error(f"{token} cannot stand inside '{innermost}'; {_not_closed(open_brackets[-1])}")
    if token.is_mark(".") and previous.is_mark("{", "."):
        raise token.error("'.' has no triple pattern before it")


def _track_bracket(token: Token, open_brackets: list[Token]) -> None:
    if token.is_mark("{", "[", "("):
        open_brackets.append(token)
    elif token.is_mark("}", "]", ")"):
        if open_brackets[-1].text == "{" and token.text != "}":
            raise token.error(f"{token} closes nothing")
        if open_brackets[-1].text != _CLOSES[token.text]:
            raise token.error(f"{token} cannot stand here; {_not_closed(open_brackets[-1])}")
        open_brackets.pop()


def _not_closed(opening: Token) -> str:
    place = f"'{opening.text}' of line {opening.line}, column {opening.column}"
    return f"the {place} is not closed: '{_CLOSED_BY[opening.text]}' is missing"


def _check_word(token: Token) -> None:
    if token.kind is Kind.WORD and token.text != "a" and token.keyword not in _TERM_WORDS:
        raise token.error(f'{token} is not a term; write ex:name, <IRI>, "text", ?variable or _:blank')


def _expect(tokens: Sequence[Token], index: int, is_there: bool, rule: str) -> None:
    if is_there:
        return
    if index == len(tokens):
        raise tokens[-1].error(f"the query ends too early; {rule}", len(tokens[-1].text))
    raise tokens[index].error(f"{tokens[index]} does not belong here; {rule}")
