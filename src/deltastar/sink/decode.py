"""Written deltas, read back: any of the formats, compressed or not, one file or a directory of parts.

What a file holds is told from its content, not its name. Deltas come out in the order of the file; files of a directory
come in the order of their names, and since shards write them in parallel, `seq` is not ordered across them. A line that
is not a delta raises `RowError` with its place.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import zstandard

from deltastar.errors import SourceError, UsageError
from deltastar.sink.decode_columns import read_csv, read_parquet, read_tsv
from deltastar.sink.decode_jsonl import read_jsonl
from deltastar.sink.rows import Record

_GZIP, _ZSTD, _PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
_BOM = b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 17
_DELTA_FILE = re.compile(r"[^._].*\.(?:(?:jsonl|json|txt|csv|tsv)(?:\.(?:gz|zst))?|parquet)", re.IGNORECASE)


def delta_files(path: str) -> list[str]:
    """The files that hold the deltas of a path. Hidden files and those that begin with `_` are no deltas."""
    if path.startswith("kafka://"):
        raise UsageError(f"{path}: deltas are read from files; consume the topic into one first")
    if not os.path.isdir(path):
        return [path]
    found = []
    for directory, below, names in os.walk(path):
        below[:] = [name for name in below if name[0] not in "._"]
        found += [os.path.join(directory, name) for name in names if _DELTA_FILE.fullmatch(name)]
    return sorted(found)


def read_deltas(path: str) -> Generator[Record, None, None]:
    """The deltas of one file, or with `-` of standard input."""
    try:
        with _opened(path) as stream:
            yield from _records(stream, "standard input" if path == "-" else path)
    except SourceError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise SourceError(f"{path}: the compressed file is damaged or cut off: {error}") from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


def _records(stream: io.BufferedReader, source: str) -> Iterator[Record]:
    head = stream.peek(_BUFFER_BYTES).removeprefix(_BOM).lstrip()
    if head.startswith(_PARQUET):
        return read_parquet(stream, source)
    if re.match(rb'"?query"?,', head):
        return read_csv(stream, source)
    if not head.startswith(b"{") and b"\t" in head.partition(b"\n")[0]:
        return read_tsv(stream, source)
    return read_jsonl(stream, source)


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader]:
    """The file's bytes, decompressed when its first ones say that they are compressed. Leaves standard input open."""
    with nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb") as file:
        raw = cast(io.BufferedReader, file)
        magic = raw.peek(4)[:4]
        if magic.startswith(_GZIP):
            yield io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=raw)), _BUFFER_BYTES)
        elif magic == _ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=False)
            yield io.BufferedReader(cast(Any, reader), _BUFFER_BYTES)
        else:
            yield raw
