"""Where events come from: files, directories, standard input; read once, or followed as they grow.

`open_stream` gives the updates, `read_graph` an initial graph. Both check what can be checked at once, and give batches
with the position behind each. What is wrong with a row is an event; what is wrong with a file is a
`SourceError`, raised after everything in front of the fault has been given.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Generator, Iterator

from deltastar.errors import SourceError, UsageError
from deltastar.rdf.batch import Batch, Position
from deltastar.rdf.files import STANDARD_INPUT, Input, ReadFault, WholeLines, check_is_there
from deltastar.rdf.formats import GRAPH_FORMATS, UPDATE_FORMATS, Format, file_format, named_format
from deltastar.rdf.graph_files import GraphFile
from deltastar.rdf.listing import Directory, Listing, SingleFile
from deltastar.rdf.ntriples import Syntax, decode_row, malformed
from deltastar.rdf.sparql_update import read_request
from deltastar.rdf.update import Event, Malformed

CHUNK_BYTES = 1 << 18  # the fastest: what a chunk becomes stays in the processor's cache
POLL_S = 0.2


def open_stream(
    spec: str,
    input_format: str | None = None,
    follow: bool = False,
    start: Position | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Stream:
    """The updates in a file, in the files of a directory, or on standard input (`-`).

    With `follow` it does not end: a file is read on as it grows, a directory as files appear, and an empty batch comes
    while there is nothing. `start` continues behind a batch of an earlier run over the same input; standard input must
    bring the same bytes again. What cannot work is refused at once with `UsageError`.

    >>> open_stream("kafka://localhost:9092/updates")
    Traceback (most recent call last):
    deltastar.errors.UsageError: kafka://localhost:9092/updates: Kafka is read by the Spark engine; use --engine spark
    """
    if spec.startswith("kafka://"):
        raise UsageError(f"{spec}: Kafka is read by the Spark engine; use --engine spark")
    check_is_there(spec)
    format_of = _update_format(None if input_format is None else named_format(input_format, UPDATE_FORMATS))
    if os.path.isdir(spec):
        return Stream(Directory(spec, format_of, follow, _first(spec, start)), format_of, chunk_bytes, spec, start)
    if format_of(spec) is Format.SPARQL_UPDATE and follow and spec != STANDARD_INPUT:
        raise UsageError(f"{spec}: a SPARQL Update file is one transaction and does not grow; follow its directory")
    if start is not None and start.file != spec:
        raise UsageError(f"the earlier run stopped in {start.file}, and that is not {spec}")
    return Stream(SingleFile(spec, follow and spec != STANDARD_INPUT), format_of, chunk_bytes, spec, start)


def read_graph(spec: str, input_format: str | None = None) -> Stream:
    """The triples of a graph, as insertions, from a file, a directory's files, or standard input (`-`)."""
    check_is_there(spec)
    named = None if input_format is None else named_format(input_format, GRAPH_FORMATS)
    if spec == STANDARD_INPUT and named is None:
        raise UsageError("a graph on standard input needs its format; name it (nt, nq, ttl, trig, rdf or jsonld)")

    def format_of(path: str) -> Format:
        return named or file_format(path, GRAPH_FORMATS)

    if os.path.isdir(spec):
        return Stream(Directory(spec, format_of, follow=False), format_of, CHUNK_BYTES, spec)
    format_of(spec)
    return Stream(SingleFile(spec, follow=False), format_of, CHUNK_BYTES, spec)


class Stream(Iterator[Batch]):
    """Batches, to go through once. `named_graphs_seen` says whether a graph name has been passed over so far."""

    def __init__(
        self,
        files: Listing,
        format_of: Callable[[str], Format],
        chunk_bytes: int,
        spec: str,
        start: Position | None = None,
    ) -> None:
        self.named_graphs_seen = False
        self._files, self._format_of, self._chunk_bytes = files, format_of, chunk_bytes
        self._position = start or Position(spec, 0, 1)
        self._batches = self._run()

    def __next__(self) -> Batch:
        return next(self._batches)

    def close(self) -> None:
        """Lets go of the file that is open. Going through all batches does so, too."""
        self._batches.close()

    def _run(self) -> Generator[Batch, None, None]:
        for path in self._files.paths:
            if path is None:
                yield from self._wait(None)
                continue
            if path != self._position.file:
                self._position = Position(path, 0, 1)
            rest = WholeLines()
            try:
                with Input(path, self._chunk_bytes, self._position.offset) as file:
                    yield from self._read(path, file, rest)
                    self._files.ended(file)
            except ReadFault as fault:
                yield from self._cut(rest)
                raise self._error(fault) from None

    def _read(self, path: str, file: Input, lines: WholeLines) -> Iterator[Batch]:
        format_ = self._format_of(path)
        if format_.syntax is not None:
            return self._rows(file, format_.syntax, lines)
        if format_ is Format.SPARQL_UPDATE:
            return self._request(file)
        return self._graph(path, file, format_)

    def _rows(self, file: Input, syntax: Syntax, lines: WholeLines) -> Iterator[Batch]:
        for piece in self._pieces(file, lines.__bool__):
            if not piece:
                yield from self._wait(file)
            elif whole := lines.push(piece):
                yield from self._lines(whole, syntax)
        if rest := lines.flush():
            yield from self._lines(rest, syntax)

    def _lines(self, whole: bytes, syntax: Syntax) -> Iterator[Batch]:
        batch = Batch(self._position, self._source, whole, syntax)
        yield batch
        self._position = batch.position
        self.named_graphs_seen |= batch.named_graphs

    def _cut(self, lines: WholeLines) -> Iterator[Batch]:
        """What is left of the row in which a fault lies. It is read again when the run continues: no message yet."""
        rest = lines.flush()
        syntax = self._format_of(self._position.file).syntax
        if rest and syntax is not None:
            if rest.endswith(b"\r"):  # it only waited for an LF
                yield from self._lines(rest, syntax)
                return
            text, fault = decode_row(rest)
            column, reason = fault or (len(text) + 1, "")
            reason = f"the row is cut here, where the file is damaged{'; ' + reason if reason else ''}"
            row = malformed(text, self._source, self._position.line, syntax, column, reason)
            yield self._batch([Malformed(row.source, row.line, row.column, row.reason, row.text, is_message=False)])

    def _request(self, file: Input) -> Iterator[Batch]:
        parts: list[bytes] = []
        for piece in self._pieces(file, lambda: bool(parts)):
            if piece:
                parts.append(piece)
            else:
                yield from self._wait(file)
        if data := b"".join(parts):
            at = self._position
            request = read_request(data, self._source)
            self.named_graphs_seen |= request.named_graphs
            end = Position(at.file, at.offset + len(data), at.line + data.count(b"\n"))
            yield self._batch(request.events, end)

    def _graph(self, path: str, file: Input, format_: Format) -> Iterator[Batch]:
        graph = GraphFile(file, path, format_, self._source)
        for events in graph.batches():
            self.named_graphs_seen |= graph.named_graphs
            yield self._batch(events, Position(path, graph.bytes_read, 0))
        self.named_graphs_seen |= graph.named_graphs

    def _pieces(self, file: Input, has_rest: Callable[[], bool]) -> Iterator[bytes]:
        """The file's text up to its end; empty pieces while it may go on and does not."""
        idle_polls = 0
        while True:
            may_end = self._files.may_end()  # asked first: what is written before a later file appears is read
            if piece := file.read():
                idle_polls = 0
                yield piece
            elif may_end or (has_rest() and file.is_whole and self._files.settles(idle_polls)):
                file.finish()
                return
            else:
                idle_polls += 1
                yield b""

    def _wait(self, file: Input | None) -> Iterator[Batch]:
        yield self._batch([])
        time.sleep(POLL_S)
        if events := self._files.look(file):
            yield self._batch(events)

    def _batch(self, events: list[Event], position: Position | None = None) -> Batch:
        self._position = position or self._position
        return Batch.of(events, self._position, self._source)

    @property
    def _source(self) -> str:
        return "standard input" if self._position.file == STANDARD_INPUT else self._position.file

    def _error(self, fault: ReadFault) -> SourceError:
        line = self._position.line - 1
        if self._position.offset == 0:
            extent = "nothing of it was read"
        elif line < 0:
            extent = f"the first {self._position.offset:,} bytes of its text were read"
        else:
            extent = f"its rows up to line {line:,} were read"
        return SourceError(f"{self._source}: {fault.reason}; {extent}; {fault.remedy}")


def _update_format(named: Format | None) -> Callable[[str], Format]:
    def format_of(path: str) -> Format:
        if named is not None:
            return named
        if path == STANDARD_INPUT:
            return Format.PATCH
        try:
            return file_format(path, UPDATE_FORMATS)
        except UsageError:
            if _is_pipe(path):
                return Format.PATCH
            raise

    return format_of


def _is_pipe(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _first(directory: str, start: Position | None) -> str:
    """The name of the file in which an earlier run stopped; none if it had not begun."""
    if start is None or start.file == directory:
        return ""
    name = os.path.basename(start.file)
    if os.path.join(directory, name) != start.file:
        raise UsageError(f"the earlier run stopped in {start.file}, and that is not in {directory}")
    return name
