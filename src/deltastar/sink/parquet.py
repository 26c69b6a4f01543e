"""A directory of Parquet files.

Rows gather in memory up to a row group; row groups go to a hidden temporary file, which gets its final name when it is
finished: at a flush, a commit, or a number of rows. A reader of the directory therefore only ever sees whole files, and
a run continues by deleting the parts after the committed ones. Every flush that has something to write makes a file, so
flush as seldom as the reader allows.
"""

from __future__ import annotations

import os
from typing import Any

from deltastar.delta import Delta
from deltastar.errors import CheckpointError, UsageError
from deltastar.sink.base import DeltaSink, SinkState, doing, sync_directory
from deltastar.sink.encode import FIXED_COLUMNS, Variables, all_variables, delta_columns, fitting
from deltastar.sink.files import part_name, prepare_directory

ROW_GROUP = 1 << 16
PART_ROWS = 1 << 22


def pyarrow() -> Any:
    """pyarrow with its Parquet module; `UsageError` where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError("parquet needs pyarrow; install it with: pip install 'deltastar[parquet]'") from None
    return pyarrow


def arrow_schema(columns: list[str]) -> Any:
    """The types of a table's columns. Variables may be null, and times."""
    arrow = pyarrow()
    return arrow.schema(
        arrow.field(name, arrow.int64() if name == "seq" else arrow.string(), nullable=name not in FIXED_COLUMNS)
        for name in columns
    )


class ParquetSink(DeltaSink):
    """Columns query, seq, op, then one for each variable, null where it is not bound."""

    def __init__(
        self,
        directory: str,
        variables: Variables,
        with_time: bool = False,
        resume: SinkState | None = None,
        part_rows: int = PART_ROWS,
    ) -> None:
        super().__init__()
        self._arrow = pyarrow()
        self._directory, self._part_rows = directory, part_rows
        self._variables = variables
        self._names, self._with_time = all_variables(variables), with_time
        self._kind = self.kind(variables, with_time)
        self._part = 0 if resume is None else int(resume["part"])
        self._check_parts()
        prepare_directory(directory, first_dropped_part=self._part)
        self._schema = arrow_schema(self._kind["columns"])
        self._batches: list[Any] = []
        self._rows_gathered = 0
        self._writer: Any = None
        self._rows_in_part = 0
        self._is_closed = False

    @staticmethod
    def kind(variables: Variables, with_time: bool) -> SinkState:
        """What a state to resume from must agree with."""
        return {"output": "parts", "format": "parquet", "columns": delta_columns(variables, with_time)}

    def _put(self, batch: list[Delta]) -> None:
        values: list[list[Any]] = [[row.query for row in batch], [row.seq for row in batch], [row.op for row in batch]]
        if self._with_time:
            values.append([row.time or None for row in batch])
        bindings = [fitting(self._variables, row.query, row.binding) for row in batch]
        values += [[binding.get(name) for binding in bindings] for name in self._names]
        self._put_columns(self._arrow.record_batch(values, schema=self._schema))

    def _put_columns(self, batch: Any) -> None:
        self._batches.append(batch)
        self._rows_gathered += batch.num_rows
        if self._rows_gathered >= ROW_GROUP:
            self._write_row_group()
        if self._rows_in_part >= self._part_rows:
            self._finish_part()

    def _push(self) -> None:
        if self._rows_gathered:
            self._write_row_group()
        if self._writer is not None:
            self._finish_part()

    def commit(self) -> SinkState:
        self.flush()
        with doing(f"write {self._directory}"):
            sync_directory(self._directory)
        return {**self._kind, "part": self._part}

    def close(self) -> None:
        """Flushes. Without any delta, one part without rows is left, so that the directory has a schema."""
        if self._is_closed:
            return
        self._is_closed = True
        self.flush()
        if self._part == 0:
            self._open_part()
            self._finish_part()

    def _check_parts(self) -> None:
        for part in range(self._part):
            if not os.path.exists(path := self._part_path(part)):
                raise CheckpointError(
                    f"cannot continue {self._directory}: {path} is gone; restore it, or start anew without its "
                    "checkpoint"
                )

    def _part_path(self, part: int) -> str:
        return os.path.join(self._directory, part_name(part, "parquet"))

    def _temporary_path(self) -> str:
        return os.path.join(self._directory, f".{part_name(self._part, 'parquet')}.tmp")

    def _open_part(self) -> None:
        with doing(f"write {self._temporary_path()}"):
            self._writer = self._arrow.parquet.ParquetWriter(self._temporary_path(), self._schema)

    def _write_row_group(self) -> None:
        if self._writer is None:
            self._open_part()
        with doing(f"write {self._temporary_path()}"):
            self._writer.write_table(self._arrow.Table.from_batches(self._batches, self._schema))
        self._rows_in_part += self._rows_gathered
        self._batches, self._rows_gathered = [], 0

    def _finish_part(self) -> None:
        temporary = self._temporary_path()
        with doing(f"write {temporary}"):
            self._writer.close()
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, self._part_path(self._part))
        self._writer = None
        self._rows_in_part = 0
        self._part += 1
