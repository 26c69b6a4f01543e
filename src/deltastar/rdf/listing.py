"""Which files make a stream, in which order, and when one of them is at its end.

A `Listing` is one file or a directory. Without `follow` it is what is there when the stream is opened. With `follow`, a
single file is never at its end, and a directory's last file is not either until a later one appears: whoever writes
it may still be writing. Only a last row without its line end is taken as whole when it has not grown for a second;
the file is closed then, and reported if it grows after all.
"""

from __future__ import annotations

import os
from bisect import insort
from collections.abc import Callable, Iterator
from typing import Protocol

from deltastar.errors import SourceError, UsageError
from deltastar.rdf.files import Input, ReadFault, names_in
from deltastar.rdf.update import Event, Malformed

SETTLING_POLLS = 5


class Listing(Protocol):
    """The files of a stream."""

    @property
    def paths(self) -> Iterator[str | None]:
        """The files in order; None while there may be more but is none yet."""

    def may_end(self) -> bool:
        """Whether what is now the end of the current file is its end for good."""

    def settles(self, idle_polls: int) -> bool:
        """Whether a last row that has not grown for so many polls is whole."""

    def look(self, file: Input | None) -> list[Event]:
        """Looks for more, with the current file or between files; gives what has to be reported."""

    def ended(self, file: Input) -> None:
        """Is told that the current file has been read to its end."""


class SingleFile:
    """One file, or standard input."""

    def __init__(self, path: str, follow: bool) -> None:
        self.paths: Iterator[str | None] = iter((path,))
        self._follows = follow

    def may_end(self) -> bool:
        """At once, unless it is followed."""
        return not self._follows

    def settles(self, idle_polls: int) -> bool:
        """Never: the row may go on."""
        return False

    def look(self, file: Input | None) -> list[Event]:
        """Nothing new comes; but the file must still be the one that is followed."""
        if file is not None:
            file.check_followed()
        return []

    def ended(self, file: Input) -> None:
        """There is no other."""


class Directory:
    """The files of a directory in the order of their names.

    `first` is the name to begin with. `check` raises `UsageError` for a name that does not fit.
    """

    def __init__(self, path: str, check: Callable[[str], object], follow: bool, first: str = "") -> None:
        self._path, self._check, self._follows = path, check, follow
        self._current, self._size = first, -1
        self._notices: list[Event] = []
        names = self._names()
        if first and first not in names:
            raise SourceError(f"{os.path.join(path, first)} was being read last, and is not there; put it back")
        self._known = set(names)
        self._queue = [name for name in names if name >= first]
        for name in self._queue:
            try:
                check(os.path.join(path, name))
            except UsageError as error:
                raise SourceError(f"{error}; move it out of {path}") from None
        self.paths: Iterator[str | None] = self._files()

    def may_end(self) -> bool:
        """Once a later file is known."""
        return bool(self._queue) or not self._follows

    def settles(self, idle_polls: int) -> bool:
        """After a second."""
        return idle_polls >= SETTLING_POLLS

    def look(self, file: Input | None) -> list[Event]:
        """Queues files that appeared; gives those that came too late, and those that cannot be read."""
        self._refresh()
        if file is None and self._has_grown():
            self._size = -1
            reason = (
                "it grew after its last row, which had no line end, had been read as whole; what was added is not "
                "read. Move files in when they are complete"
            )
            self._notices.append(self._notice(self._current, reason))
        notices, self._notices = self._notices, []
        return notices

    def ended(self, file: Input) -> None:
        """Remembers the size that was read."""
        self._size = file.stored_bytes

    def _files(self) -> Iterator[str | None]:
        while True:
            if self._follows:
                self._refresh()  # what appeared in the meantime may come next
            if self._queue:
                self._current, self._size = self._queue.pop(0), -1
                yield os.path.join(self._path, self._current)
            elif self._follows:
                yield None
            else:
                return

    def _refresh(self) -> None:
        for name in self._names():
            if name not in self._known:
                self._known.add(name)
                if (reason := self._refusal(name)) is None:
                    insort(self._queue, name)
                else:
                    self._notices.append(self._notice(name, reason))

    def _names(self) -> list[str]:
        try:
            return names_in(self._path)
        except ReadFault as fault:
            raise SourceError(f"{self._path}: {fault.reason}; {fault.remedy}") from None

    def _refusal(self, name: str) -> str | None:
        if name < self._current:
            return f"it appeared after {self._current} had been begun, and is not read; give it a later name"
        try:
            self._check(os.path.join(self._path, name))
        except UsageError as error:
            return f"{error}; it is not read"
        return None

    def _has_grown(self) -> bool:
        try:
            return self._size >= 0 and os.path.getsize(os.path.join(self._path, self._current)) > self._size
        except OSError:
            return False  # taken away after it was read: as it should be

    def _notice(self, name: str, reason: str) -> Malformed:
        return Malformed(os.path.join(self._path, name), 0, 0, reason, "", is_message=False)
