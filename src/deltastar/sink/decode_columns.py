"""The column formats, read back: CSV, TSV and Parquet.

They share the header's rule: query, seq and op come first, then perhaps time, then a column for each variable, whose
name has a `?` before it where it would be taken for one of those. Parquet written through Spark may instead hold a map
column `binding`. A blank cell is a variable that is not bound.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from deltastar.delta import ADDED, REMOVED
from deltastar.errors import RowError, TermError
from deltastar.rdf.terms import Term, term, unescape
from deltastar.sink.encode import FIXED_COLUMNS, RESERVED_COLUMNS, TIME_COLUMN
from deltastar.sink.memo import Memo
from deltastar.sink.parquet import pyarrow
from deltastar.sink.rows import Record, Row, check_name, row_of

_SEQ = re.compile("[0-9]{1,18}")
_LONGEST_FIELD = 1 << 30
_CUT_OFF = "the last line has no end: writing it may have been interrupted"


class _Table:
    """Turns lists of cells into records."""

    def __init__(self, columns: Sequence[str], source: str, header_line: int = 1) -> None:
        self._source, self._columns = source, columns
        if tuple(columns[: len(FIXED_COLUMNS)]) != FIXED_COLUMNS:
            raise RowError("the columns of deltas begin with query, seq, op", 1, header_line, source)
        self._has_time = TIME_COLUMN in columns[len(FIXED_COLUMNS) : len(FIXED_COLUMNS) + 1]
        self._fixed = len(FIXED_COLUMNS) + self._has_time
        self._names = [_name(column) for column in columns[self._fixed :]]
        self._rows: Memo[str, Row] = Memo(self._row)
        self._terms: Memo[str, Term] = Memo(term)
        try:
            for name in self._names:
                check_name(name)
        except ValueError as error:
            raise RowError(str(error), 1, header_line, source) from None

    def record(self, cells: Sequence[str], line: int) -> Record:
        if len(cells) != len(self._columns):
            raise RowError(
                f"the line is not a delta: it has {len(cells)} cells, and the header {len(self._columns)}",
                1, line, self._source,
            )  # fmt: skip
        query, seq, op = cells[:3]
        if _SEQ.fullmatch(seq) is None:
            raise RowError(f"the line is not a delta: seq is {seq!r}, and not a whole number", 1, line, self._source)
        if op not in (ADDED, REMOVED):
            raise RowError(f"the line is not a delta: op is {op!r}, and neither + nor -", 1, line, self._source)
        try:
            row = self._rows["\t".join(cells[self._fixed :])]
        except ValueError as error:
            raise RowError(f"the line is not a delta: {error}", 1, line, self._source) from None
        return Record(query, int(seq), op, row, cells[3] if self._has_time else "", line)

    def _row(self, text: str) -> Row:
        binding = {}
        for name, cell in zip(self._names, text.split("\t"), strict=bool(self._names)):
            if cell:
                try:
                    binding[name] = self._terms[cell]
                except TermError as error:
                    raise ValueError(f"?{name}: {error.reason}") from None
        return row_of(binding)


def _name(column: str) -> str:
    return column[1:] if column[:1] == "?" and column[1:] in RESERVED_COLUMNS else column


def read_csv(stream: BinaryIO, source: str) -> Iterator[Record]:
    # The csv module's limit is one for the whole process, and literals may be longer than its 128 kB.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))
    lines = _Lines(stream, source)
    reader = csv.reader(lines, strict=True)
    table: _Table | None = None
    try:
        for cells in reader:
            if table is None:
                table = _Table(cells, source)
            elif cells:
                yield table.record(cells, reader.line_num)
    except csv.Error as error:
        raise RowError(f"the line is not CSV: {error}", 1, reader.line_num, source) from None
    lines.check_end()


def read_tsv(stream: BinaryIO, source: str) -> Iterator[Record]:
    lines = _Lines(stream, source)
    table: _Table | None = None
    for number, line in enumerate(lines, 1):
        cells = line.rstrip("\r\n").split("\t")
        if table is None:
            table = _Table(cells, source)
        elif line.strip():
            cells[0] = _unescaped(cells[0], number, source)
            yield table.record(cells, number)
    lines.check_end()


def _unescaped(text: str, line: int, source: str) -> str:
    try:
        return unescape(text)
    except TermError as error:
        raise RowError(f"the line is not a delta: query: {error}", 1, line, source) from None


class _Lines:
    """The stream's lines as text. Cut off within a line, a table could still look whole, so its end is checked."""

    def __init__(self, stream: BinaryIO, source: str) -> None:
        self._stream, self._source = stream, source
        self._last, self._number = "\n", 0

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._stream, 1):
            try:
                self._last, self._number = line.decode("utf-8-sig" if number == 1 else "utf-8"), number
            except UnicodeDecodeError as error:
                raise RowError("the line is not UTF-8", error.start + 1, number, self._source) from None
            yield self._last

    def check_end(self) -> None:
        if not self._last.endswith("\n"):
            raise RowError(_CUT_OFF, 1, self._number, self._source)


def read_parquet(stream: BinaryIO, source: str) -> Iterator[Record]:
    arrow = pyarrow()
    if not stream.seekable():
        stream = io.BytesIO(stream.read())
    try:
        file = arrow.parquet.ParquetFile(stream)
        columns = file.schema_arrow.names
        record = (
            _spark_record(columns, source) if _has_map(arrow, file.schema_arrow) else _parquet_record(columns, source)
        )
        number = 0
        for batch in file.iter_batches():
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield record(values, number)
    except arrow.ArrowException as error:
        raise RowError(f"the file is not Parquet, or damaged: {error}", 1, 1, source) from None


def _has_map(arrow: Any, schema: Any) -> bool:
    return "binding" in schema.names and arrow.types.is_map(schema.field("binding").type)


def _parquet_record(columns: Sequence[str], source: str) -> Callable[[Sequence[Any], int], Record]:
    table = _Table(columns, source)
    return lambda values, number: table.record(["" if v is None else str(v) for v in values], number)


def _spark_record(columns: Sequence[str], source: str) -> Callable[[Sequence[Any], int], Record]:
    """Deltas as `deltastar.spark` makes them: query, seq, op and a map from variable to term."""
    at = {name: columns.index(name) for name in (*FIXED_COLUMNS, "binding")}

    def record(values: Sequence[Any], number: int) -> Record:
        query, seq, op, binding = (values[place] for place in at.values())
        try:
            row = row_of({name: term(text) for name, text in binding if text is not None})
        except ValueError as error:
            raise RowError(f"the line is not a delta: {error}", 1, number, source) from None
        return Record(query, seq, op, row, "", number)

    return record
