"""What is wrong with a statement that the parser refused: the first token that cannot stand where it does.

A statement's tokens come in, an error with a place and a one-line reason comes out. The walk knows what may follow
what inside one statement, with a stack of open brackets. It has no say in what is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltastar.errors import QuerySyntaxError
from deltastar.query.tokens import Kind, Token

_TERMS = (Kind.IRI, Kind.PNAME, Kind.VARIABLE, Kind.BLANK, Kind.STRING, Kind.NUMBER)

# What must come next, by state; a state that a statement may end in has no entry.
_MISSING = {
    "verb": "a predicate",
    "step": "the next step of the path",
    "verb-in-path": "the next step of the path",
    "path": "an object",
    "object": "an object",
    "item": "')'",
}


def diagnose(tokens: Sequence[Token]) -> QuerySyntaxError:
    """The error to raise for a statement that is not one."""
    nodes = _fold(tokens)
    state, brackets = "subject", list[tuple[str, str]]()
    for position, token in enumerate(nodes):
        following = _next_state(state, token, brackets)
        if following is None:
            return _misplaced(state, token, nodes[position - 1] if position else token)
        state = following
    last = tokens[-1]
    if state in _MISSING:
        return last.error(f"{_MISSING[state]} is missing after {last}", len(last.text))
    return tokens[0].error("this is not a triple pattern")


def _fold(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with `[]`, `()` and literals of several tokens as one node each."""
    folded: list[Token] = []
    index = 0
    while index < len(tokens):
        token, after = tokens[index], tokens[index + 1 : index + 2]
        width = 1
        if after and (token.text, after[0].text) in (("[", "]"), ("(", ")")):
            token, width = token._replace(kind=Kind.BLANK, text=token.text + after[0].text), 2
        elif token.kind is Kind.STRING and after:
            width = 2 if after[0].kind is Kind.LANGUAGE else 3 if after[0].is_mark("^^") else 1
        folded.append(token)
        index += width
    return folded


def _next_state(state: str, token: Token, brackets: list[tuple[str, str]]) -> str | None:
    """The state after this token, or None where it cannot stand.

    A bracket is kept with the state to be in after it is closed; that of a path is `/`.
    """
    is_node = token.kind in _TERMS or token.keyword in ("TRUE", "FALSE")
    is_step = token.kind in (Kind.IRI, Kind.PNAME) or token.text == "a"
    inside = brackets[-1][0] if brackets else ""
    if state in ("verb", "verb?"):
        if token.kind is Kind.VARIABLE:
            return "object"
        if token.is_mark("^"):
            return "step"
        if state == "verb?" and (token.is_mark(";") or (token.is_mark("]") and inside == "[")):
            return "verb?" if token.text == ";" else brackets.pop()[1]
    if state in ("verb", "verb?", "step"):
        if token.is_mark("("):
            brackets.append(("/", "path"))
            return "verb-in-path"
        return "path" if is_step else None
    if state == "verb-in-path":
        return "step" if token.is_mark("^") else _next_state("step", token, brackets)
    if state == "path" and token.is_mark("/"):
        return "verb-in-path"
    if state == "path" and inside == "/":
        return brackets.pop()[1] if token.is_mark(")") else None
    return _next_in_nodes(state, token, is_node, inside, brackets)


def _next_in_nodes(state: str, token: Token, is_node: bool, inside: str, brackets: list[tuple[str, str]]) -> str | None:
    if state == "after":
        if token.is_mark(",", ";"):
            return "object" if token.text == "," else "verb?"
        return brackets.pop()[1] if token.is_mark("]") and inside == "[" else None
    if state == "item" and token.is_mark(")"):
        return brackets.pop()[1]
    after = {"subject": "verb", "item": "item"}.get(state, "after")
    if is_node:
        return after
    if token.is_mark("[", "("):
        brackets.append((token.text, "verb?" if state == "subject" else after))
        return "verb" if token.text == "[" else "item"
    return None


def _misplaced(state: str, token: Token, previous: Token) -> QuerySyntaxError:
    if state in ("verb", "verb?", "step", "verb-in-path") and token.kind in (*_TERMS, Kind.WORD):
        what = "a predicate is an IRI or a variable" if state in ("verb", "verb?") else "a path is made of IRIs"
        return token.error(f"{token} cannot stand here; {what}")
    if state == "after" and token.kind in _TERMS:
        return token.error(f"{token} cannot stand here; '.', ';' or ',' is missing before it")
    if state == "subject":
        return token.error(f"{token} cannot stand here; a triple pattern begins with its subject")
    if state in _MISSING:
        return token.error(f"{token} cannot stand here; {_MISSING[state]} is missing after {previous}")
    return token.error(f"{token} cannot stand in a triple pattern here")
