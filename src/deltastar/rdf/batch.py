"""A part of a stream, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass

from deltastar.rdf.ntriples import BOM, Syntax, read_line, scan
from deltastar.rdf.update import Event


@dataclass(frozen=True)
class Position:
    """Where reading continues: a file, the offset in bytes of its text (decompressed), and the line there."""

    file: str
    offset: int
    line: int


class Batch:
    """A part of the stream: whole lines of a row format, not read yet, or events; and where it ends.

    Whoever reads the lines says so with `read_to`; `events` does both.
    """

    __slots__ = ("_end", "_events", "_start", "data", "line", "named_graphs", "source", "syntax")

    def __init__(self, start: Position, source: str, data: bytes = b"", syntax: Syntax | None = None) -> None:
        self.data, self.syntax = data, syntax
        self.line = start.line
        """The number of the first line."""
        self.source = source
        """What a message calls the file."""
        self.named_graphs = False
        self._start, self._end = start, start
        self._events: list[Event] | None = None

    @classmethod
    def of(cls, events: list[Event], end: Position, source: str) -> Batch:
        """Events that have been read."""
        batch = cls(end, source)
        batch._events = events
        return batch

    @property
    def events(self) -> list[Event]:
        """The events, in the order of the stream."""
        if self._events is None:
            assert self.syntax is not None
            result = scan(self.data, self.source, self.line, self.syntax)
            self._events = result.events
            self.read_to(self.line + result.lines, result.named_graphs)
        return self._events

    def place_of(self, index: int) -> tuple[int, str]:
        """The line of an event, and its text; line 0 where the batch came without lines. Slow: for errors."""
        if self.syntax is None:
            return 0, ""
        for line, row in enumerate(self.data.splitlines(), self.line):
            text = row.removeprefix(BOM) if line == 1 else row
            event, _ = read_line(text, self.source, line, self.syntax)
            if event is not None:
                if index == 0:
                    return line, text.decode(errors="backslashreplace")
                index -= 1
        raise IndexError("there are not so many events")

    @property
    def is_read(self) -> bool:
        """Whether it holds events, and not lines to be read."""
        return self._events is not None

    def read_to(self, line: int, named_graphs: bool) -> None:
        """The lines have been read, up to this one; a row of them named a graph."""
        self._end = Position(self._start.file, self._start.offset + len(self.data), line)
        self.named_graphs |= named_graphs

    @property
    def position(self) -> Position:
        """Where reading continues behind it. Reads it, if nobody has: the number of the next line depends on it."""
        if self._end is self._start and self.data:
            _ = self.events
        return self._end
