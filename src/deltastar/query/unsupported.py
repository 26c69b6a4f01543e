"""What SPARQL has and basic graph patterns have not: found in the tokens, refused by name, place and remedy.

Tokens come in, and the first construct in text order that this version cannot answer is raised as an
`UnsupportedQueryError`; nothing comes out when there is none. The scan needs no parse, so it also names constructs
that the parser does not know (RDF 1.2, vendors' extensions). It knows three regions: before the first `{`, inside
the pattern, and after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltastar.errors import UnsupportedQueryError
from deltastar.query.tokens import Kind, Token

_AGGREGATE = "aggregate the deltas where you read them"
_ONE_GRAPH = "the data is one graph, the union of all; leave it out"
_TWO_QUERIES = "register both patterns as queries, and subtract one answer from the other"
_UPDATE = "{} is an update, not a query; updates are the stream that queries are answered over"
_EXPRESSION = "project variables, and compute with them where you read the deltas"
_TRIPLE_TERM = "give the statement a node of its own, and say what it states with triple patterns"

# By first word: the construct's name when it has more than that word, and what to do instead.
_KEYWORDS = {
    "OPTIONAL": ("", "register the pattern without it, and the pattern with its triples, as two queries"),
    "UNION": ("", "register each branch as a query of its own"),
    "FILTER": ("", "filter the deltas where you read them"),
    "MINUS": ("", _TWO_QUERIES),
    "GRAPH": ("", _ONE_GRAPH),
    "SERVICE": ("", "put the other source's triples into the stream or the initial graph"),
    "BIND": ("", "compute the value where you read the deltas"),
    "VALUES": ("", "write the value into the pattern, one query a value"),
    "BINDINGS": ("", "write the value into the pattern, one query a value"),
    "GROUP": ("GROUP BY", _AGGREGATE),
    "HAVING": ("", _AGGREGATE),
    "ORDER": ("ORDER BY", "a continuous answer has no order; sort where you read it"),
    "LIMIT": ("", "a continuous answer has no order; cut it where you read the deltas"),
    "OFFSET": ("", "a continuous answer has no order; cut it where you read the deltas"),
    "CONSTRUCT": ("", "write SELECT, and build the triples from its deltas"),
    "DESCRIBE": ("", "write SELECT with the triple patterns that you want to see"),
    "JSON": ("", "write SELECT; deltas are JSON already"),
    "FROM": ("", _ONE_GRAPH),
    "EXISTS": ("", "write its pattern into the query, and SELECT DISTINCT"),
    "NOT": ("NOT EXISTS", _TWO_QUERIES),
    "LATERAL": ("", "write its pattern into the query"),
    "UNFOLD": ("", "unfold the value where you read the deltas"),
    "INCLUDE": ("", "write the named subquery's pattern into the query"),
    "OPTION": ("", "leave it out"),
    "DEFINE": ("", "leave it out"),
    "VERSION": ("", "leave it out; this is SPARQL 1.1"),
}
_UPDATES = frozenset(["INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"])
_AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
_FIXED_LENGTH = "write a path of fixed length, such as p/p"
_PATH_OPERATORS = {
    "|": "register each alternative as a query of its own",
    "*": _FIXED_LENGTH,
    "+": _FIXED_LENGTH,
    "?": "register the query with that step and the query without it",
    "!": "put a variable in the predicate's place, and filter the deltas",
}
_RDF_12 = {
    "<<(": "triple term '<<( )>>'",
    "<<": "reified triple '<< >>'",
    "{|": "annotation '{| |}'",
    "~": "reifier '~'",
}


def refuse_unsupported(tokens: Sequence[Token]) -> None:
    """Raises for the first construct that is more than a basic graph pattern.

    >>> from deltastar.query.tokens import significant, tokenize
    >>> refuse_unsupported(significant(tokenize("SELECT * { ?x a ?c OPTIONAL { ?x ?p ?y } }")))
    Traceback (most recent call last):
    ...
    deltastar.errors.UnsupportedQueryError: line 1, column 20: OPTIONAL is not supported; register the pattern \
without it, and the pattern with its triples, as two queries
    """
    depth, opening, is_empty = 0, None, True
    for index, token in enumerate(tokens):
        if token.kind is Kind.WORD:
            _refuse_word(tokens, index, depth, opening is not None)
        elif token.kind is Kind.LANGUAGE and "--" in token.text:
            raise _refusal(token, f"base direction '{token.text[token.text.index('--') :]}'", "leave it out")
        elif token.kind is Kind.PUNCTUATION:
            _refuse_mark(tokens, index, depth, opening is not None)
        if token.is_mark("{"):
            depth, opening = depth + 1, opening or token
        elif token.is_mark("}"):
            depth -= 1
            if depth == 0 and is_empty and opening:
                raise _refusal(opening, "empty graph pattern '{}'", "write at least one triple pattern in it")
        elif depth > 0:
            is_empty = False


def _refuse_word(tokens: Sequence[Token], index: int, depth: int, in_pattern: bool) -> None:
    token = tokens[index]
    word = token.keyword
    if word in _KEYWORDS:
        following = [later.keyword for later in tokens[index + 1 : index + 6] if not later.is_mark("(")]
        name, remedy = _KEYWORDS[word]
        if word == "FROM" and following[:1] == ["NAMED"]:
            name = "FROM NAMED"
        elif word == "FILTER" and following[:2] == ["NOT", "EXISTS"]:
            name, remedy = "FILTER NOT EXISTS", _TWO_QUERIES
        elif word == "FILTER" and following[:1] == ["EXISTS"]:
            name, remedy = "FILTER EXISTS", _KEYWORDS["EXISTS"][1]
        raise _refusal(token, name or word, remedy)
    if word == "SELECT" and depth > 0:
        raise _refusal(token, "subquery (nested SELECT)", "write its pattern into the outer query")
    if word in _UPDATES and not in_pattern:
        raise _refusal(token, word, _UPDATE.format(word))
    if word in _AGGREGATES and not in_pattern:
        raise _refusal(token, f"aggregate {word}", _AGGREGATE)


def _refuse_mark(tokens: Sequence[Token], index: int, depth: int, in_pattern: bool) -> None:
    token = tokens[index]
    if token.text in _RDF_12:
        raise _refusal(token, _RDF_12[token.text], _TRIPLE_TERM)
    if token.text == "(" and not in_pattern:
        if index + 1 < len(tokens) and tokens[index + 1].keyword in _AGGREGATES:
            return  # the next token is refused, by its own name
        raise _refusal(token, "expression in SELECT '( … AS ?v )'", _EXPRESSION)
    if depth == 0:
        return
    if token.text in _PATH_OPERATORS:
        raise _refusal(token, f"path operator '{token.text}'", _PATH_OPERATORS[token.text])
    if token.text == "{" and (count := _repetition(tokens, index)):
        raise _refusal(token, f"path operator '{count}'", _FIXED_LENGTH)


def _repetition(tokens: Sequence[Token], index: int) -> str:
    """The `{n}`, `{n,m}`, `{n,}` or `{,m}` that begins here, or ''. No group is ever just numbers and commas."""
    count = ""
    for token in tokens[index + 1 : index + 5]:
        if token.is_mark("}"):
            return f"{{{count}}}" if count else ""
        if token.kind is not Kind.NUMBER and not token.is_mark(","):
            return ""
        count += token.text
    return ""


def _refusal(token: Token, construct: str, remedy: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(construct, remedy, token.line, token.column)
