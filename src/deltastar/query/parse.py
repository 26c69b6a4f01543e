"""SPARQL text to algebra.

Text comes in, a `Query` comes out, or a `QueryError` that says what is wrong and where. Four passes over the
tokens: what is unsupported is refused by name; the prologue and the frame are read; the terms are read; rdflib takes
the statements apart. An unsupported construct is named even where the text is not SPARQL otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import count
from pathlib import Path

from deltastar.errors import QueryError, QuerySyntaxError, UsageError
from deltastar.query.algebra import GraphPattern, Query, TriplePattern, Variable
from deltastar.query.frame import Frame, read_frame
from deltastar.query.prologue import Prologue, read_base, read_prologue
from deltastar.query.statement import make_skeleton, read_patterns
from deltastar.query.tokens import Kind, Token, advance, describe_fault, significant, tokenize
from deltastar.query.unsupported import refuse_unsupported

_NO_NAME_CHARACTER = re.compile(r"[/\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def parse_query(text: str, base: str | None = None) -> Query:
    """The query that a SPARQL text asks: a SELECT or ASK over a basic graph pattern.

    Groups within the pattern are plain joins, and are merged. Blank nodes, and the middles of paths such as
    `ex:a/^ex:b`, become hidden variables. REDUCED may drop duplicates and need not: here it keeps them, and the
    query is a bag as without it. Relative IRIs are resolved against the text's BASE, or else `base`.

    Raises `UnsupportedQueryError` for the first thing in the text that is more than a basic graph pattern, and
    `QuerySyntaxError` for text that is no query.

    >>> print(parse_query("PREFIX ex: <http://ex/> SELECT ?x { ?x a ex:Person ; ex:knows/ex:name 'Ann'@EN }"))
    SELECT ?x WHERE { ?x <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Person> . \
?x <http://ex/knows> _:b1 . _:b1 <http://ex/name> "Ann"@en }
    >>> parse_query("SELECT * { ?x ?p ?y } LIMIT 5")
    Traceback (most recent call last):
    ...
    deltastar.errors.UnsupportedQueryError: line 1, column 23: LIMIT is not supported; a continuous answer has no \
order; cut it where you read the deltas
    """
    tokens = _read_tokens(text.removeprefix("\ufeff"))
    prologue, start = read_prologue(tokens, read_base(base) if base else "")
    frame = read_frame(tokens, start)
    pattern = GraphPattern(tuple(_read_pattern(frame, prologue)))
    prefixes = tuple(prologue.prefixes.items())
    if frame.is_ask:
        return Query.ask(pattern, prefixes)
    projection = None
    if frame.projection is not None:
        nodes = (prologue.node(frame.projection, index)[0] for index in range(len(frame.projection)))
        projection = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Variable)))
    return Query.select(pattern, projection, frame.is_distinct, prefixes)


def read_query(spec: str) -> tuple[str, Query]:
    """The name and the query of a `FILE` or `NAME=FILE`; the name of a file is its stem.

    Where `=` could belong to the file's own name, `NAME=FILE` is meant if that FILE is there. A fault of the query
    is raised with the file's name before it.
    """
    name, path = _split_spec(spec)
    if not name or str(path) == ".":
        raise UsageError(f"the query {spec!r} lacks a {'file' if name else 'name'}; write FILE or NAME=FILE")
    if (bad := _NO_NAME_CHARACTER.search(name)) is not None:
        raise UsageError(
            f"a query cannot be named {name!r}: {bad.group()!r} cannot be in a file's name; write NAME=FILE"
        )
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no query file {str(path)!r}") from None
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise UsageError(f"the query file {str(path)!r} cannot be read: {reason}") from None
    try:
        return name, parse_query(_decode(data))
    except QueryError as fault:
        fault.args = (f"{path}: {fault}",)
        raise


def _read_tokens(text: str) -> list[Token]:
    """The tokens that count, with nothing unsupported among them, up to the end or to the first fault."""
    tokens: list[Token] = []
    fault = None
    for token in tokenize(text):
        if token.kind is Kind.FAULT:
            fault = token
            break
        tokens.append(token)
    tokens = significant(tokens)
    refuse_unsupported(tokens)
    if fault is not None:
        raise describe_fault(text, fault)
    return tokens


def _read_pattern(frame: Frame, prologue: Prologue) -> list[TriplePattern]:
    labels: dict[Variable, int] = {}
    skeletons = [make_skeleton(statement, prologue, labels) for statement in frame.statements]
    make_hidden = _fresh_variables(labels)
    return [pattern for skeleton in skeletons for pattern in read_patterns(skeleton, make_hidden)]


def _fresh_variables(taken: Collection[Variable]) -> Callable[[], Variable]:
    """Hidden variables `_:b1`, `_:b2`, … without those that the query has itself."""
    fresh = (variable for number in count(1) if (variable := Variable.hidden(f"b{number}")) not in taken)
    return lambda: next(fresh)


def _split_spec(spec: str) -> tuple[str, Path]:
    name, equals, file = spec.partition("=")
    if equals and not {"/", "\\"} & set(name) and (_is_file(file) or not _is_file(spec)):
        return name, Path(file)
    return Path(spec).stem, Path(spec)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line, column = advance(1, 1, data[: fault.start].decode("utf-8"))
        reason = f"byte 0x{data[fault.start]:02X} is not UTF-8; save the query as UTF-8"
        raise QuerySyntaxError(reason, line, column) from None
