"""Turtle, TriG, RDF/XML and JSON-LD to insertions, through pyoxigraph.

In: an `Input`. Out: lists of events. A syntax error ends the file: what comes before it is kept, and the error is one
`Malformed` at the end. A `ReadFault` passes through, behind everything that could be parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, cast

import pyoxigraph

from deltastar.errors import TermError
from deltastar.rdf.files import STANDARD_INPUT, Input, ReadFault
from deltastar.rdf.formats import Format
from deltastar.rdf.library import BlankNames, place_of, update_of
from deltastar.rdf.update import INSERT, Event, Malformed

_EVENTS_AT_ONCE = 10_000
_FORMATS = {
    Format.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.RDF_XML: pyoxigraph.RdfFormat.RDF_XML,
    Format.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
}


class GraphFile:
    """One file that pyoxigraph parses."""

    def __init__(self, file: Input, path: str, format_: Format, source: str) -> None:
        self.named_graphs = False
        self._source = source
        self._names = BlankNames(path)
        self._text = _Text(file, self._names)
        self._format = _FORMATS[format_]
        self._base = None if path == STANDARD_INPUT else Path(path).absolute().as_uri()

    def batches(self) -> Iterator[list[Event]]:
        """The insertions, some thousands at a time."""
        events = self._events()
        while batch := list(islice(events, _EVENTS_AT_ONCE)):
            yield batch
        if self._text.fault is not None:
            raise self._text.fault

    @property
    def bytes_read(self) -> int:
        """How much of the text went to the parser."""
        return self._text.bytes_read

    def _events(self) -> Iterator[Event]:
        try:
            for statement in pyoxigraph.parse(cast(IO[bytes], self._text), self._format, base_iri=self._base):
                try:
                    yield update_of(INSERT, statement, self._names)
                except TermError as fault:
                    yield self._malformed(0, 0, fault.reason, str(statement))
                if not isinstance(statement.graph_name, pyoxigraph.DefaultGraph):
                    self.named_graphs = True
        except SyntaxError as error:
            yield self._malformed(*place_of(error), "")
        except ReadFault:
            pass  # kept in the text, for when the events have been taken

    def _malformed(self, line: int, column: int, reason: str, text: str) -> Malformed:
        return Malformed(self._source, line, column, reason, text, is_message=False)


class _Text:
    """The file object that pyoxigraph reads from. It keeps the fault that the parser may swallow."""

    def __init__(self, file: Input, names: BlankNames) -> None:
        self.fault: ReadFault | None = None
        self.bytes_read = 0
        self._file, self._names = file, names
        self._piece = b""
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        if self._at == len(self._piece):
            self._piece, self._at = self._next(), 0
            self._names.note(self._piece)
        end = len(self._piece) if size < 0 else min(self._at + size, len(self._piece))
        data, self._at = self._piece[self._at : end], end
        self.bytes_read += len(data)
        return data

    def _next(self) -> bytes:
        try:
            piece = self._file.read()
            if not piece:
                self._file.finish()
        except ReadFault as fault:
            self.fault = fault
            raise
        return piece
