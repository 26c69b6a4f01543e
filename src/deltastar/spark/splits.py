"""Which bytes of which files make a micro-batch, cut into splits at line ends.

In: a file or a directory, the place where the stream has come to, and how many bytes may come at once. Out: the place
behind the next bytes, and the splits in between. The splits are part of that place, so that whoever stored it gets the
same splits again, whatever has happened to the directory since. Knows nothing of Spark.

The rules of `rdf/listing.py` hold: the files of a directory are read in the order of their names; when they are
followed, the last one is not at its end before a later one appears, but for a last row without its line end that has
not grown for a second. A compressed file and a SPARQL Update request are one split each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deltastar.errors import SourceError, UsageError
from deltastar.rdf.files import ReadFault, names_in
from deltastar.rdf.formats import Compression, Format, compression

Place = dict[str, Any]
"""Where a stream has come to, as JSON can hold it: the file, the offset in it, and the splits of the last step."""

SPLIT_BYTES = 256 << 20
"""A split is at most this. What a task does before its first row is worth some tens of megabytes, so it may be large;
it is read in chunks anyway."""
LEAST_SPLIT_BYTES = 1 << 20
"""It takes longer to send a smaller split to another core than to read it."""

_SETTLING_S = 1.0
_LOOK_BYTES = 1 << 16
_EVERYTHING = 1 << 62


@dataclass(frozen=True, slots=True)
class Split:
    """Whole rows of one file. `is_whole` means the file as it is, decompressed; `notice` stands for a file left out."""

    path: str
    start: int
    end: int
    is_whole: bool = False
    notice: str = ""

    def to_json(self) -> list[Any]:
        """For a place."""
        return [self.path, self.start, self.end, int(self.is_whole), self.notice]

    @classmethod
    def of_json(cls, fields: list[Any]) -> Split:
        """From a place."""
        path, start, end, is_whole, notice = fields
        return cls(path, start, end, bool(is_whole), notice)

    @property
    def size(self) -> int:
        """Bytes as they are stored."""
        return self.end - self.start


class UpdateFiles:
    """The files of a stream. Between calls it remembers only what it has seen of their growth."""

    def __init__(self, spec: str, format_of: Callable[[str], Format], follow: bool) -> None:
        if "://" in spec:
            raise UsageError(f"{spec}: files are read from paths that every machine of the cluster has; mount it")
        self._spec, self._format_of, self._follows = spec, format_of, follow
        self._is_directory = os.path.isdir(spec)
        self._known: set[str] | None = None
        self._sizes: dict[str, tuple[int, float]] = {}
        self._frozen: dict[str, int] | None = None

    def start(self) -> Place:
        """The place before the first row."""
        return {"file": "", "offset": 0, "splits": []}

    def freeze(self) -> None:
        """From now on nothing appears or grows: what is there is all there is."""
        self._frozen = {name: self._size(name) for name in self._names()}

    def next(self, place: Place, limit: int | None = None, cores: int = 1) -> Place:
        """The place behind the next rows, at most about `limit` bytes on; the same place when there are none."""
        names = self._names()
        notices = self._notices(names, place["file"])
        step = _Step(place, _EVERYTHING if limit is None else max(limit, 1))
        for position, name in enumerate(names):
            if name < place["file"]:
                continue
            is_final = position + 1 < len(names) or not self._follows or self._frozen is not None
            if not self._advance(step, name, is_final):
                break
        if not step.taken and not notices:
            return place
        taken = [piece for split in step.taken for piece in _cut(split, _split_bytes(step.size, cores))]
        return {"file": step.file, "offset": step.offset, "splits": [split.to_json() for split in (*notices, *taken)]}

    def _advance(self, step: _Step, name: str, is_final: bool) -> bool:
        """Takes what there is of a file; says whether the next one may be looked at."""
        path, size = self._path(name), self._size(name)
        offset = step.offset if name == step.file else 0
        if size < offset:
            raise SourceError(f"{path}: it was cut back while it was followed; follow a directory instead")
        if compression(path) is not Compression.NONE or self._format_of(path).syntax is None:
            if offset or not size:
                self._check_whole(path, offset, size)
                step.go(name, offset)
                return True
            if (not is_final and not self._is_settled(name, size)) or (step.taken and size > step.budget):
                return False
            step.take(name, Split(path, 0, size, is_whole=True))
            return step.budget > 0
        end = min(size, offset + step.budget)
        is_end = end == size and (is_final or (self._is_directory and self._is_settled(name, size)))
        if not is_end:
            end = _line_end(path, offset, end, size) or (size if is_final else offset)
        if end > offset:
            step.take(name, Split(path, offset, end))
        else:
            step.go(name, offset)
        return end == size and step.budget > 0

    def _check_whole(self, path: str, offset: int, size: int) -> None:
        if offset and size > offset:
            raise SourceError(f"{path}: it grew after it had been read as whole; move files in when they are complete")

    def _is_settled(self, name: str, size: int) -> bool:
        now = time.monotonic()
        seen, since = self._sizes.get(name, (-1, now))
        if seen != size:
            self._sizes[name] = (size, now)
            return False
        return now - since >= _SETTLING_S

    def _names(self) -> list[str]:
        if self._frozen is not None:
            return sorted(self._frozen)
        if not self._is_directory:
            return [os.path.basename(self._spec) or self._spec]
        try:
            names = names_in(self._spec)
        except ReadFault as fault:
            raise SourceError(f"{self._spec}: {fault.reason}; {fault.remedy}") from None
        if self._known is None:
            self._known = set(names)
            for name in names:
                self._check_at_start(name)
        return [name for name in names if self._refusal(name) is None]

    def _check_at_start(self, name: str) -> None:
        if (reason := self._refusal(name)) is not None:
            raise SourceError(f"{reason}; move it out of {self._spec}")

    def _refusal(self, name: str) -> str | None:
        try:
            self._format_of(self._path(name))
        except UsageError as error:
            return str(error)
        return None

    def _notices(self, names: list[str], current: str) -> list[Split]:
        """Files that came too late, or cannot be read."""
        if not self._is_directory or self._known is None or self._frozen is not None:
            return []
        notices = []
        for name in sorted({*names_in(self._spec)} - self._known):
            self._known.add(name)
            reason = self._refusal(name)
            if reason is not None:
                reason = f"{reason}; it is not read"
            elif name < current:
                reason = f"it appeared after {current} had been begun, and is not read; give it a later name"
            if reason is not None:
                notices.append(Split(self._path(name), 0, 0, notice=reason))
        return notices

    def _path(self, name: str) -> str:
        return os.path.join(self._spec, name) if self._is_directory else self._spec

    def _size(self, name: str) -> int:
        if self._frozen is not None:
            return self._frozen[name]
        try:
            return os.path.getsize(self._path(name))
        except FileNotFoundError:
            raise SourceError(f"{self._path(name)}: it is not there any more; put it back and run again") from None


class _Step:
    """What one call of `next` takes."""

    def __init__(self, place: Place, budget: int) -> None:
        self.file, self.offset, self.budget = place["file"], place["offset"], budget
        self.taken: list[Split] = []

    def take(self, name: str, split: Split) -> None:
        self.taken.append(split)
        self.budget -= split.size
        self.go(name, split.end)

    def go(self, name: str, offset: int) -> None:
        self.file, self.offset = name, offset

    @property
    def size(self) -> int:
        return sum(split.size for split in self.taken)


def splits_of(place: Place) -> list[Split]:
    """The splits that lead to a place."""
    return [Split.of_json(fields) for fields in place["splits"]]


def grouped(splits: list[Split], cores: int) -> list[list[Split]]:
    """Neighbours that are too small for a task of their own come together; the order stays."""
    least = _split_bytes(sum(split.size for split in splits), cores)
    groups: list[list[Split]] = []
    size = least
    for split in splits:
        if size + split.size > least:
            groups.append([])
            size = 0
        groups[-1].append(split)
        size += split.size
    return groups


def _split_bytes(total: int, cores: int) -> int:
    return min(SPLIT_BYTES, max(LEAST_SPLIT_BYTES, -(-total // max(cores, 1))))


def _cut(split: Split, size: int) -> Iterator[Split]:
    """A split of a plain file as several, at line ends."""
    start = split.start
    while not split.is_whole and split.end - start > size + size // 8:
        end = _line_end(split.path, start, start + size, split.end)
        if not end:
            break
        yield Split(split.path, start, end)
        start = end
    if start < split.end or split.is_whole:
        yield Split(split.path, start, split.end, split.is_whole)


def _line_end(path: str, start: int, end: int, size: int) -> int:
    """The offset behind the last LF in front of `end`, or behind the first one after it; 0 if there is none."""
    with open(path, "rb") as file:
        high = end
        while high > start:
            low = max(start, high - _LOOK_BYTES)
            file.seek(low)
            if (found := file.read(high - low).rfind(b"\n")) >= 0:
                return low + found + 1
            high = low
        file.seek(end)
        at = end
        while at < size and (data := file.read(min(_LOOK_BYTES, size - at))):
            if (found := data.find(b"\n")) >= 0:
                return at + found + 1
            at += len(data)
    return 0
