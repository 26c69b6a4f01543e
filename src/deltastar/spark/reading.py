"""What every task does with a split: read its bytes, and hand them on as whole rows or as events.

A damaged file gives everything in front of the fault, then the row in which it lies as a dead letter, then the `Fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deltastar.errors import SourceError
from deltastar.rdf.files import Input, ReadFault, WholeLines
from deltastar.rdf.formats import GRAPH_FORMATS, UPDATE_FORMATS, Format, file_format, named_format
from deltastar.rdf.graph_files import GraphFile
from deltastar.rdf.ntriples import BOM, Syntax, decode_row, malformed
from deltastar.rdf.sparql_update import read_request
from deltastar.rdf.update import Event, Malformed
from deltastar.spark.splits import Split

CHUNK_BYTES = 8 << 20
"""What is routed at once. A chunk's rows stay in one blob for each shard."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Whole lines of a row format."""

    data: bytes
    syntax: Syntax


@dataclass(frozen=True, slots=True)
class Events:
    """What is not read by rows."""

    events: list[Event]
    named_graphs: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """The file cannot be read on. The text is that of a `SourceError`."""

    message: str


Chunk = Rows | Events | Fault


def update_format(input_format: str | None) -> Callable[[str], Format]:
    """What a file of updates holds, by the name that the user gave the format, or by its own."""
    named = None if input_format is None else named_format(input_format, UPDATE_FORMATS)
    return lambda path: named or file_format(path, UPDATE_FORMATS)


def graph_format(path: str) -> Format:
    """What a file of an initial graph holds."""
    return file_format(path, GRAPH_FORMATS)


def read_split(split: Split, format_: Format, source: str, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
    """The rows or events of a split, in order."""
    if split.notice:
        yield Events([Malformed(source, 0, 0, split.notice, "", is_message=False)])
        return
    lines = WholeLines()
    try:
        if format_.syntax is not None:
            yield from _rows(split, format_.syntax, lines, chunk_bytes)
        elif format_ is Format.SPARQL_UPDATE:
            yield _request(split, source)
        else:
            yield from _graph(split, format_, source)
    except ReadFault as fault:
        yield from _cut(lines, format_.syntax, source)
        yield Fault(f"{source}: {fault.reason}; everything in front of it was read; {fault.remedy}")


def _rows(split: Split, syntax: Syntax, lines: WholeLines, chunk_bytes: int) -> Iterator[Rows]:
    gathered: list[bytes] = []
    size, is_start = 0, split.start == 0

    def rows() -> Iterator[Rows]:
        if gathered:
            data = b"".join(gathered)
            yield Rows(data.removeprefix(BOM) if is_start else data, syntax)

    try:
        for piece in _pieces(split):
            if whole := lines.push(piece):
                gathered.append(whole)
                size += len(whole)
            if size >= chunk_bytes:
                yield from rows()
                gathered, size, is_start = [], 0, False
    except ReadFault:
        yield from rows()
        raise
    if rest := lines.flush():
        gathered.append(rest)
    yield from rows()


def _pieces(split: Split) -> Iterator[bytes]:
    """The bytes of a split as text."""
    left = split.size
    if not split.is_whole:
        with _open(split.path) as file:
            file.seek(split.start)
            while left:
                if not (data := file.read(min(left, CHUNK_BYTES))):
                    raise SourceError(f"{split.path}: it became shorter while it was read; get a whole copy of it")
                left -= len(data)
                yield data
        return
    with Input(split.path, 1 << 20) as file:
        while data := file.read():
            yield data
        file.finish()


def _open(path: str):  # type: ignore[no-untyped-def]
    try:
        return open(path, "rb", buffering=0)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"{path}: {reason}; every machine of the cluster must be able to read it there") from None


def _request(split: Split, source: str) -> Events:
    request = read_request(b"".join(_pieces(split)), source)
    return Events(request.events, request.named_graphs)


def _graph(split: Split, format_: Format, source: str) -> Iterator[Events]:
    with Input(split.path, 1 << 20) as file:
        graph = GraphFile(file, split.path, format_, source)
        for events in graph.batches():
            yield Events(events, graph.named_graphs)
        file.finish()


def _cut(lines: WholeLines, syntax: Syntax | None, source: str) -> Iterator[Chunk]:
    """What is left of the row in which a fault lies. It is read again when the run continues: no message yet."""
    if not (rest := lines.flush()) or syntax is None:
        return
    text, fault = decode_row(rest)
    column, reason = fault or (len(text) + 1, "")
    reason = f"the row is cut here, where the file is damaged{'; ' + reason if reason else ''}"
    row = malformed(text, source, 0, syntax, column, reason)
    yield Events([Malformed(row.source, row.line, row.column, row.reason, row.text, is_message=False)])
