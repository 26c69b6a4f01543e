"""Deltas to text: JSON Lines, CSV and TSV.

An encoder turns a batch of deltas into the lines that go out, and knows the header that a file of its format starts
with. It holds no output and no position: the sinks do. JSON Lines come without spaces, keys in the order query, seq,
op, time, binding. CSV follows RFC 4180 and the SPARQL CSV format: lines end in CR LF and quotes are doubled. TSV lines
end in LF; canonical terms hold no raw tab or line break, so nothing in them needs escaping.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import repeat
from typing import ClassVar, Protocol

from deltastar.delta import ADDED, REMOVED, Binding, Delta
from deltastar.errors import InvariantError
from deltastar.rdf.terms import of_canonical
from deltastar.sink.memo import Memo

Variables = Mapping[str, tuple[str, ...]]
"""The names of the variables that each query projects."""

FIXED_COLUMNS = ("query", "seq", "op")
TIME_COLUMN = "time"
RESERVED_COLUMNS = frozenset((*FIXED_COLUMNS, TIME_COLUMN))


class Encoder(Protocol):
    """A text format of deltas."""

    format: ClassVar[str]

    @property
    def header(self) -> str:
        """What a file starts with."""

    @property
    def columns(self) -> list[str]:
        """The columns that a file has; none where lines name their parts."""

    def encode(self, deltas: Iterable[Delta]) -> str:
        """The lines of the deltas."""


def encoder(format: str, variables: Variables, with_time: bool) -> Encoder:
    """The encoder of a text format."""
    if format == "jsonl":
        return JsonLines()
    return (Csv if format == "csv" else Tsv)(variables, with_time)


def json_text(value: object) -> str:
    """JSON without spaces; characters beyond ASCII stay as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def json_of_term(text: str) -> str:
    """A canonical term as in the SPARQL 1.1 Query Results JSON Format."""
    return json_text(of_canonical(text).to_json())


def utf8(text: str) -> bytes:
    """Valid UTF-8 whatever the text: a lone surrogate becomes `\\udc80`, which in JSON means that surrogate again."""
    return text.encode("utf-8", "backslashreplace")


def delta_columns(variables: Variables, with_time: bool) -> list[str]:
    """The names of a table's columns. A variable called like a fixed column gets its `?` back."""
    fixed = [*FIXED_COLUMNS, TIME_COLUMN] if with_time else [*FIXED_COLUMNS]
    return fixed + [f"?{name}" if name in RESERVED_COLUMNS else name for name in all_variables(variables)]


def all_variables(variables: Variables) -> list[str]:
    """Every query's variables, each once, in the order of first appearance."""
    return list(dict.fromkeys(name for names in variables.values() for name in names))


def fitting(variables: Variables, query: str, binding: Mapping[str, str]) -> Mapping[str, str]:
    """A binding for the columns of a table. One that they cannot hold must not lose its terms in silence."""
    if isinstance(binding, Binding):
        values = binding._values
        binding = {name: values[position] for name, position in binding._positions.items()}
    if len(binding) > len(variables.get(query, ())):
        raise InvariantError(f"the sink was not opened for {query} with the variables {list(binding)}")
    return binding


_MIDDLE = {op: f',"op":"{op}","binding":{{' for op in (ADDED, REMOVED)}

Shape = tuple[Mapping[str, int], list[tuple[str, int]]]
"""The positions that a query's bindings share; and for each, the JSON that stands before its term."""
_NO_SHAPE: Shape = ({}, [])


@lru_cache
def _labels(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """For each variable, the JSON that stands before its term, and its name."""
    return [(f"{',' if place else ''}{json_text(name)}:", name) for place, name in enumerate(names)]


class JsonLines:
    """One JSON object a line."""

    format: ClassVar[str] = "jsonl"
    header = ""

    def __init__(self) -> None:
        self._term_json: Memo[str, str] = Memo(json_of_term)
        self._starts: Memo[str, str] = Memo(lambda query: f'{{"query":{json_text(query)},"seq":')
        self._shapes: dict[str, Shape] = {}

    @property
    def columns(self) -> list[str]:
        return []

    def encode(self, deltas: Iterable[Delta]) -> str:
        # A flat list of pieces, joined once, takes two thirds of the time of a format string per line.
        pieces: list[str] = []
        append, term_json, starts, shapes = pieces.append, self._term_json, self._starts, self._shapes
        for query, seq, op, binding, time in deltas:
            append(starts[query])
            append(str(seq))
            append(_MIDDLE[op] if not time else f',"op":"{op}","time":{json_text(time)},"binding":{{')
            if isinstance(binding, Binding):
                positions, labels = shapes.get(query, _NO_SHAPE)
                if positions is not binding._positions:
                    labels = self._learn(query, binding._positions)
                values = binding._values
                for label, position in labels:
                    append(label)
                    append(term_json[values[position]])
            else:
                for label, name in _labels(tuple(binding)):
                    append(label)
                    append(term_json[binding[name]])
            append("}}\n")
        return "".join(pieces)

    def _learn(self, query: str, positions: Mapping[str, int]) -> list[tuple[str, int]]:
        labels = [(label, positions[name]) for label, name in _labels(tuple(positions))]
        self._shapes[query] = positions, labels
        return labels


class _Columns:
    """What CSV and TSV share: a delta as a row of cells, blank where a variable is not bound."""

    def __init__(self, variables: Variables, with_time: bool) -> None:
        self._variables = variables
        self._names = all_variables(variables)
        self._with_time = with_time
        self.columns = delta_columns(variables, with_time)

    def rows(self, deltas: Iterable[Delta]) -> Iterator[list[str]]:
        names, with_time = self._names, self._with_time
        for query, seq, op, binding, time in deltas:
            terms = fitting(self._variables, query, binding)
            row = [query, str(seq), op, time] if with_time else [query, str(seq), op]
            row += map(terms.get, names, repeat(""))
            yield row


class Csv(_Columns):
    """Comma-separated values."""

    format: ClassVar[str] = "csv"

    @property
    def header(self) -> str:
        return csv_text([self.columns])

    def encode(self, deltas: Iterable[Delta]) -> str:
        return csv_text(self.rows(deltas))


class Tsv(_Columns):
    """Tab-separated values. A backslash, tab or line break in a query's name is escaped as in N-Triples."""

    format: ClassVar[str] = "tsv"

    @property
    def header(self) -> str:
        return "\t".join(self.columns) + "\n"

    def encode(self, deltas: Iterable[Delta]) -> str:
        lines = []
        for row in self.rows(deltas):
            row[0] = row[0].translate(TSV_ESCAPES)
            lines.append("\t".join(row) + "\n")
        return "".join(lines)


TSV_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()
