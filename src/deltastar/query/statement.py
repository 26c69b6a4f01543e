"""One statement to triple patterns: rdflib's grammar takes it apart, the terms stay as written.

Tokens come in, triple patterns come out. rdflib unfolds `;`, `,`, `a`, collections, `[ … ]` and paths. It is given
placeholders for the terms (`<t:0>`, `1`, `?v2`, `_:t3`), because it would change them: it rewrites literals to their
canonical form, turns tabs into spaces, reads `\\u00e9abcd` as one character, and takes `(<p>)?y` for a path with a
modifier. It is also given one statement at a time: a pattern of 100 statements exceeds Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

from deltastar.query.algebra import Node, TriplePattern, Variable
from deltastar.query.diagnose import diagnose
from deltastar.query.frame import Statement
from deltastar.query.prologue import Prologue
from deltastar.query.tokens import Kind, Token
from deltastar.rdf.terms import IRI

_MARKS = (";", ",", "[", "]", "(", ")", "/", "^")
_PARSER_LOCK = Lock()  # pyparsing completes a grammar when it is first used, and keeps its caches in globals


class Skeleton(NamedTuple):
    """A statement with placeholders for its terms, and the node that each stands for."""

    text: str
    nodes: dict[str, Node]
    tokens: Sequence[Token]


def make_skeleton(statement: Statement, prologue: Prologue, labels: dict[Variable, int]) -> Skeleton:
    """The skeleton of a statement. `labels` collects the blank nodes seen, with the pattern each belongs to."""
    tokens, nodes, index = statement.tokens, dict[str, Node](), 0
    pieces: list[str] = []
    while index < len(tokens):
        token = tokens[index]
        if token.is_mark(*_MARKS) or token.text == "a":
            pieces.append(token.text)
            index += 1
            continue
        if token.kind in (Kind.PUNCTUATION, Kind.LANGUAGE):
            raise token.error(f"{token} does not belong in a triple pattern here")
        node, index = prologue.node(tokens, index)
        if token.kind is Kind.BLANK and labels.setdefault(node, statement.block) != statement.block:  # type: ignore[arg-type]
            raise token.error(f"blank node {node} stands in two basic graph patterns; write a variable in its place")
        key, piece = _placeholder(token, node, len(pieces))
        nodes[key] = node
        pieces.append(piece)
    return Skeleton(" ".join(pieces), nodes, tokens)


def read_patterns(skeleton: Skeleton, make_hidden: Callable[[], Variable]) -> Iterator[TriplePattern]:
    """The triple patterns of a statement, in the order of the text. Raises `QuerySyntaxError`."""
    flat = _parse(skeleton)
    nodes = skeleton.nodes

    def node_of(parsed: Any) -> Node:
        key = str(parsed)
        if key not in nodes:
            nodes[key] = make_hidden() if type(parsed).__name__ == "BNode" else IRI(key)
        return nodes[key]

    for start in range(0, len(flat), 3):
        subject, predicate, object_ = flat[start : start + 3]
        yield from _expand(node_of(subject), predicate, node_of(object_), node_of, make_hidden)


def _placeholder(token: Token, node: Node, number: int) -> tuple[str, str]:
    """How rdflib names the placeholder, and how it is written."""
    if token.kind is Kind.VARIABLE:
        return f"v{number}", f"?v{number}"
    if token.kind is Kind.BLANK:
        return f"t{number}", f"_:t{number}"
    if isinstance(node, IRI):
        return f"t:{number}", f"<t:{number}>"
    return str(number), str(number)


def _parse(skeleton: Skeleton) -> list[Any]:
    """Subject, predicate, object, subject, …; a predicate may be rdflib's tree of a path."""
    from rdflib.plugins.sparql.parser import TriplesSameSubjectPath

    try:
        with _PARSER_LOCK:
            flat = list(TriplesSameSubjectPath.parse_string(skeleton.text, parse_all=True))
    except RecursionError:
        raise skeleton.tokens[0].error("brackets are nested too deeply in this statement") from None
    except Exception:
        raise diagnose(skeleton.tokens) from None
    if len(flat) % 3:
        raise diagnose(skeleton.tokens)
    return flat


def _expand(
    subject: Node, path: Any, object_: Node, node_of: Callable[[Any], Node], make_hidden: Callable[[], Variable]
) -> Iterator[TriplePattern]:
    """A path as triple patterns: `^` turns it around, `/` puts a hidden variable between its steps."""
    kind = getattr(path, "name", "")
    if kind == "PathEltOrInverse":
        yield from _expand(object_, path.part, subject, node_of, make_hidden)
    elif kind == "PathElt":
        yield from _expand(subject, path.part, object_, node_of, make_hidden)
    elif kind in ("PathAlternative", "PathSequence"):
        *steps, last = path.part
        for step in steps:
            middle = make_hidden()
            yield from _expand(subject, step, middle, node_of, make_hidden)
            subject = middle
        yield from _expand(subject, last, object_, node_of, make_hidden)
    else:
        yield TriplePattern(subject, node_of(path), object_)
