"""Which sink a destination means: `-`, a file, or a directory of parts."""

from __future__ import annotations

import os

from deltastar.errors import UsageError
from deltastar.sink.base import DeltaSink, SinkState, check_state
from deltastar.sink.encode import Variables, encoder
from deltastar.sink.files import FileSink, PartsSink, StdoutSink
from deltastar.sink.parquet import ParquetSink

FORMATS = ("jsonl", "csv", "tsv", "parquet")
STDOUT = "-"
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")


def open_sink(
    dest: str,
    format: str | None,
    variables: Variables,
    resume: SinkState | None = None,
    with_time: bool = False,
) -> DeltaSink:
    """The sink that writes to a destination: `-`, `FILE`, or `DIR/` for a directory of part files.

    `variables` names what each query projects; a format of None is taken from the extension. What is there is
    overwritten, unless `resume` holds what `commit` returned: then the output continues from that commit, and all that
    was written after it is cut off. `with_time` adds the column `time` to CSV, TSV and Parquet; JSON Lines carry the
    time of every delta that has one.
    """
    format = format_of(dest, format)
    if dest == STDOUT:
        if resume is not None:
            raise UsageError("standard output cannot be resumed; write the deltas to a file or a directory")
        return StdoutSink(encoder(format, variables, with_time))
    if format == "parquet":
        check_state(resume, ParquetSink.kind(variables, with_time), dest)
        return ParquetSink(dest, variables, with_time, resume)
    text = encoder(format, variables, with_time)
    if dest.endswith("/"):
        check_state(resume, PartsSink.kind(text), dest)
        return PartsSink(dest, text, resume)
    if os.path.isdir(dest):
        raise UsageError(f"{dest} is a directory; to fill it with part files, write {dest}/")
    check_state(resume, FileSink.kind(text), dest)
    return FileSink(dest, text, resume)


def exists(dest: str) -> bool:
    """Whether there is something at the destination that opening it would overwrite."""
    if dest == STDOUT or dest.startswith("kafka://"):
        return False
    if os.path.isdir(dest):
        return any(not name.startswith(".") for name in os.listdir(dest))
    return os.path.isfile(dest) and os.path.getsize(dest) > 0


def format_of(dest: str, format: str | None) -> str:
    """The format asked for, or the one that the extension names, or JSON Lines."""
    if not dest:
        raise UsageError("the destination of the deltas is empty; give -, FILE or DIR/")
    if dest.startswith("kafka://"):
        raise UsageError(f"{dest} needs the Spark engine; without it, write to -, FILE or DIR/")
    if format is not None and format not in FORMATS:
        raise UsageError(f"{format!r} is not a format of deltas; choose from {', '.join(FORMATS)}")
    extension = os.path.splitext(dest.rstrip("/"))[1].lower()
    if extension in _COMPRESSED:
        raise UsageError(f"{dest}: deltas are not written compressed; write {dest[: -len(extension)]} and compress it")
    if format is None:
        format = extension[1:] if extension[1:] in FORMATS else "jsonl"
    if format == "parquet" and dest == STDOUT:
        raise UsageError("parquet cannot go to standard output; give a directory")
    return format
