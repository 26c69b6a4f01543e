"""JSON Lines, read back.

A line as our own sinks write it is recognised by its shape, and only its binding goes through the JSON parser, unless
it was met lately. Any other line is parsed in full, which also finds what is wrong with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from deltastar.delta import ADDED, REMOVED
from deltastar.errors import RowError, TermError
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term
from deltastar.sink.memo import Memo
from deltastar.sink.rows import Record, Row, row_of

_LINE = re.compile(
    rb'\{"query":("(?:[^"\\]|\\.)*"),"seq":(0|[1-9]\d{0,17}),"op":"([+-])"'
    rb'(?:,"time":"([^"\\]*)")?,"binding":(\{.*\})\}\s*'
)
_OPS = {b"+": ADDED, b"-": REMOVED}
_PAIR = re.compile(
    rb'"([A-Za-z0-9_]+)":(\{"type":"[a-z]+","value":"(?:[^"\\]|\\.)*"(?:,"(?:xml:lang|datatype)":"[^"\\]*")?\})(,|\}$)'
)
_PAIR_MARKS = len(b'"":,')


def read_jsonl(stream: BinaryIO, source: str) -> Iterator[Record]:
    match_line, ops = _LINE.fullmatch, _OPS
    queries: Memo[bytes, str] = Memo(_query_of_json)
    rows: Memo[bytes, Row] = Memo(_Rows().row)
    for number, line in enumerate(stream, 1):
        if match := match_line(line):
            query, seq, op, time, binding = match.groups()
            try:
                yield Record(queries[query], int(seq), ops[op], rows[binding], time.decode() if time else "", number)
                continue
            except ValueError:
                pass  # whatever is wrong, the slow way says it
        if line.strip():
            yield _record_of_json(line, number, source)


def _record_of_json(line: bytes, number: int, source: str) -> Record:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RowError("the line is not UTF-8", error.start + 1, number, source) from None
    except (ValueError, RecursionError) as error:
        column = getattr(error, "colno", 1)
        cut = "" if line.endswith(b"\n") else ", and its end is missing: writing it may have been interrupted"
        raise RowError(
            f"the line is not a delta, a JSON object with query, seq, op and binding{cut}", column, number, source
        ) from None
    fault = _fault(value)
    if fault:
        raise RowError(f"the line is not a delta: {fault}", 1, number, source)
    try:
        row = _row_of_json_binding(value["binding"])
    except ValueError as error:
        raise RowError(f"the line is not a delta: {error}", 1, number, source) from None
    return Record(value["query"], value["seq"], value["op"], row, value.get("time") or "", number)


def _fault(value: Any) -> str:
    """What keeps a JSON value from being a delta; '' when nothing does."""
    if not isinstance(value, dict):
        return "it is not a JSON object"
    if not isinstance(value.get("query"), str):
        return "query must be a string"
    if type(value.get("seq")) is not int or value["seq"] < 0:
        return "seq must be a whole number from 0"
    if value.get("op") not in (ADDED, REMOVED):
        return 'op must be "+" or "-"'
    if not isinstance(value.get("time") or "", str):
        return "time must be a string"
    return "" if isinstance(value.get("binding"), dict) else "binding must be a JSON object"


def _query_of_json(text: bytes) -> str:
    return cast(str, json.loads(text.decode()))


class _Rows:
    """Rows from the JSON text of bindings; terms met lately are not parsed again."""

    def __init__(self) -> None:
        self._terms: Memo[bytes, Term] = Memo(lambda text: _term_of_json(json.loads(text.decode())))

    def row(self, text: bytes) -> Row:
        pairs = _PAIR.findall(text, 1)
        size = 1 + sum([len(name) + len(term) + _PAIR_MARKS for name, term, _ in pairs])
        if size != len(text) or len(pairs) < 1:
            return _row_of_json_binding(json.loads(text.decode()))
        return row_of({name.decode(): self._terms[term] for name, term, _ in pairs})


def _row_of_json_binding(binding: dict[str, Any]) -> Row:
    return row_of({name: _term_of_json(value) for name, value in binding.items()})


def _term_of_json(value: Any) -> Term:
    """The term that a SPARQL JSON results object stands for."""
    if not isinstance(value, dict) or not isinstance(value.get("value"), str):
        raise ValueError(f"{json.dumps(value)[:80]} is not a term")
    if not all(isinstance(part, str) for part in value.values()):
        raise ValueError(f"{json.dumps(value)[:80]} is not a term; its parts must be strings")
    kind, text = value.get("type"), value["value"]
    try:
        if kind == "uri":
            return IRI(text)
        if kind == "bnode":
            return BlankNode(text)
        if kind in ("literal", "typed-literal"):
            return Literal(text, language=value.get("xml:lang", ""), datatype=value.get("datatype", ""))
    except TermError as error:
        raise ValueError(f"{json.dumps(value)[:80]}: {error.reason}") from None
    raise ValueError(f"{kind!r} is not a type of term; it is uri, literal or bnode")
