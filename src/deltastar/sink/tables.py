"""Answers as text: SPARQL 1.1 JSON, CSV and TSV results, and a table for people.

CSV holds plain values, as SPARQL 1.1 says: an IRI and a literal with the same text look the same, and a value that a
spreadsheet takes for a formula is not defused. TSV and JSON hold the terms whole. Rows come sorted, so that equal
answers are equal bytes.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deltastar.errors import UsageError
from deltastar.rdf.terms import Term
from deltastar.sink.encode import json_of_term, json_text
from deltastar.sink.memo import Memo

ANSWER_FORMATS = ("srj", "csv", "tsv", "table")
TABLE_WIDTH = 160
"""Columns that a table may take before its cells are cut."""

_NARROWEST_CELL = 12
_MARKED_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """A query's answers: its variables' names and its rows, a row as often as it is an answer. Or a truth value."""

    variables: tuple[str, ...]
    rows: Sequence[Mapping[str, Term]]
    is_ask: bool = False
    boolean: bool = False

    @classmethod
    def ask(cls, boolean: bool) -> AnswerTable:
        """The answer of an ASK or ground query."""
        return cls((), [{}] if boolean else [], True, boolean)


def render(table: AnswerTable, format: str, width: int = TABLE_WIDTH) -> str:
    """A query's answers as srj, csv, tsv or table; `width` is that of the screen, for the table.

    >>> print(render(AnswerTable.ask(True), "srj"), end="")
    {"head":{},"boolean":true}
    """
    if format not in ANSWER_FORMATS:
        raise UsageError(f"{format!r} is not a format of answers; choose from {', '.join(ANSWER_FORMATS)}")
    if table.is_ask:
        truth = "true" if table.boolean else "false"
        return f'{{"head":{{}},"boolean":{truth}}}\n' if format == "srj" else truth + "\n"
    rows = _sorted_rows(table)
    if format == "srj":
        return _srj(table.variables, rows)
    if format == "csv":
        return _csv(table.variables, rows)
    if format == "tsv":
        lines = [[f"?{name}" for name in table.variables], *rows]
        return "".join("\t".join(line) + "\n" for line in lines)
    return _table(table.variables, rows, width)


def printable(text: str) -> str:
    """The text with every character escaped that could steer a terminal, or change the order of what it shows."""
    if text.isprintable():
        return text
    return "".join(_escaped(char) if _steers(char) else char for char in text)


def _sorted_rows(table: AnswerTable) -> list[list[str]]:
    """The rows as lists of canonical terms, '' where a variable is not bound."""
    return sorted([row.get(name, "") for name in table.variables] for row in table.rows)


def _srj(names: Sequence[str], rows: Iterable[list[str]]) -> str:
    term_json: Memo[str, str] = Memo(json_of_term)
    labels = [json_text(name) for name in names]
    bindings = [
        "{" + ",".join(f"{label}:{term_json[cell]}" for label, cell in zip(labels, row, strict=True) if cell) + "}"
        for row in rows
    ]
    lines = "\n" + ",\n".join(bindings) + "\n" if bindings else ""
    return f'{{"head":{{"vars":{json_text(list(names))}}},"results":{{"bindings":[{lines}]}}}}\n'


def _csv(names: Sequence[str], rows: Iterable[list[str]]) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(names)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def _plain(cell: str) -> str:
    """A term as SPARQL CSV shows it: the IRI, the lexical form, or `_:label`."""
    return cell.value if isinstance(cell, Term) and cell[0] != "_" else cell


def _table(names: Sequence[str], rows: Sequence[list[str]], width: int) -> str:
    header = [printable(f"?{name}") for name in names]
    cells = [[printable(cell) for cell in row] for row in rows]
    count = f"({len(rows)} {'row' if len(rows) == 1 else 'rows'})\n"
    if not names:
        return count
    widths = [max(map(_width, column)) for column in zip(header, *cells, strict=True)]
    widths = _fit(widths, width - 2 * (len(names) - 1))
    lines = [header, ["-" * each for each in widths], *cells]
    return "".join(_line(line, widths) for line in lines) + count


def _fit(widths: list[int], room: int) -> list[int]:
    """The widths, the widest ones lowered to the level at which all fit, but not below what can still be read."""
    if sum(widths) <= room:
        return widths
    level = min(max(widths), max(room, _NARROWEST_CELL))
    while level > _NARROWEST_CELL and sum(min(each, level) for each in widths) > room:
        level -= 1
    return [min(each, level) for each in widths]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [_cut(cell, width) for cell, width in zip(cells, widths, strict=True)]
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(fitted, widths, strict=True)]
    return "  ".join(padded).rstrip() + "\n"


def _cut(cell: str, width: int) -> str:
    if _width(cell) <= width:
        return cell
    taken = 0
    for place, char in enumerate(cell):
        taken += _width(char)
        if taken > width - 1:
            return cell[:place] + "…"
    return cell


def _width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _steers(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") or char in _MARKED_CONTROLS


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04X}"
