"""A shard's journal in Spark's state store: for queries whose checkpoint belongs to the user.

The store keeps what is written here if and only if the micro-batch is committed, and gives it back on any executor.
An index, read and written once per micro-batch, says which batches there are; their bytes are in bounded pieces.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from deltastar.errors import CheckpointError
from deltastar.sharding.journal import NOTHING, Entry, Recovery, Splits

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

PIECE_BYTES = 4 << 20
_LOG, _SNAPSHOT = "log", "snapshot"


class StateJournal:
    """See `Journal`. `settings` say whose it is; it refuses to be somebody else's."""

    def __init__(self, handle: StatefulProcessorHandle, settings: dict[str, Any]) -> None:
        self._index: ValueState = handle.getValueState("index", "text string")
        self._pieces: MapState = handle.getMapState("pieces", "name string", "data binary")
        self._settings = settings

    def open(self) -> None:
        """Reads the index. To be called with a key at hand, before anything else."""
        found = self._index.get() if self._index.exists() else None
        fresh = {"settings": self._settings, "stream": uuid.uuid4().hex, "entries": []}
        self._known: dict[str, Any] = json.loads(found[0]) if found else fresh
        if self._known["settings"] != self._settings:
            raise CheckpointError(
                "this checkpoint belongs to a stream with other queries or another number of shards; "
                "repeat those, or name a new checkpointLocation"
            )

    @property
    def stream(self) -> str:
        """A name that no other stream has."""
        return str(self._known["stream"])

    @property
    def last(self) -> int:
        """The last batch that was logged."""
        return max((entry[1] for entry in self._known["entries"]), default=NOTHING)

    def entry(self, batch: int) -> Entry | None:
        """See `Journal`."""
        found = [entry for entry in self._known["entries"] if entry[1] <= batch]
        return Entry(*max(found, key=lambda entry: entry[1])[1:4]) if found else None

    def latest(self) -> int:
        """See `Journal`."""
        return self.last

    def log(self, batch: int, chain: int, splits: Splits) -> int:
        """See `Journal`."""
        frames = [part for source, blob in splits for part in (source.encode("utf-8", "surrogatepass"), blob)]
        size = self._write(_LOG, batch, chain, frames)
        self._forget_before(batch)
        self._save()
        return size

    def snapshot(self, batch: int, chain: int, chunks: Iterable[bytes]) -> int:
        """See `Journal`."""
        size = self._write(_SNAPSHOT, batch, chain, chunks)
        self._save()
        return size

    def read(self, batch: int, behind: int | None = None) -> Recovery:
        """See `Journal`."""
        entries = sorted((entry for entry in self._known["entries"] if entry[1] <= batch), key=lambda entry: entry[1])
        snapshot = next((entry for entry in reversed(entries) if entry[0] == _SNAPSHOT), None)
        first = snapshot[1] if snapshot else NOTHING
        if behind is not None and first <= behind:
            first, snapshot = behind, None
        later = [entry for entry in entries if entry[0] == _LOG and entry[1] > first]
        chunks = self._frames(snapshot) if snapshot else iter(())
        return Recovery(Entry(*snapshot[1:4]) if snapshot else None, chunks, map(self._log_of, later))

    def _write(self, kind: str, batch: int, chain: int, frames: Iterable[bytes]) -> int:
        self._drop(kind, batch)
        size, sizes = 0, []
        for number, frame in enumerate(frames):
            sizes.append([len(frame), zlib.crc32(frame)])
            size += len(frame)
            for start in range(0, len(frame), PIECE_BYTES):
                self._pieces.updateValue((_name(kind, batch, number, start),), (frame[start : start + PIECE_BYTES],))
        self._known["entries"].append([kind, batch, chain, size, sizes])
        return size

    def _frames(self, entry: list[Any]) -> Iterator[bytes]:
        kind, batch, _, _, sizes = entry
        for number, (size, checksum) in enumerate(sizes):
            starts = range(0, size, PIECE_BYTES)
            found = [self._pieces.getValue((_name(kind, batch, number, start),)) for start in starts]
            frame = b"".join(bytes(piece[0]) for piece in found if piece is not None)
            if len(frame) != size or zlib.crc32(frame) != checksum:
                raise CheckpointError(f"the state of batch {batch} is damaged; start with a new checkpointLocation")
            yield frame

    def _log_of(self, entry: list[Any]) -> tuple[Entry, Splits]:
        parts = list(self._frames(entry))
        names = (part.decode("utf-8", "surrogatepass") for part in parts[::2])
        return Entry(*entry[1:4]), list(zip(names, parts[1::2], strict=True))

    def _forget_before(self, batch: int) -> None:
        """Removes what the last snapshot before this batch has made needless."""
        keep = max((e[1] for e in self._known["entries"] if e[0] == _SNAPSHOT and e[1] < batch), default=NOTHING)
        for kind, number, *_ in list(self._known["entries"]):
            if number < keep or (number == keep and kind == _LOG):
                self._drop(kind, number)

    def _drop(self, kind: str, batch: int) -> None:
        for entry in [e for e in self._known["entries"] if e[:2] == [kind, batch]]:
            for number, (size, _) in enumerate(entry[4]):
                for start in range(0, size, PIECE_BYTES):
                    self._pieces.removeKey((_name(kind, batch, number, start),))
            self._known["entries"].remove(entry)

    def _save(self) -> None:
        self._index.update((json.dumps(self._known),))


def _name(kind: str, batch: int, number: int, start: int) -> str:
    return f"{kind} {batch} {number} {start}"
