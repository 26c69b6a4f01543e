"""A checkpoint of an inline run: a directory from which the same command continues.

    checkpoint.json        what the run is, how far it has read and written, counters, the open transaction
    graph-000012.rdfp.zst  the retained triples at that point, as rows of RDF Patch

A commit writes the graph under a new name, then replaces `checkpoint.json`: whatever happens in between, the directory
holds one whole checkpoint. Nothing in it is executed or unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import zstandard

from deltastar.engine import Snapshot
from deltastar.errors import CheckpointError, UsageError
from deltastar.rdf.batch import Position
from deltastar.rdf.terms import of_canonical
from deltastar.sink import SinkState
from deltastar.sink.base import doing
from deltastar.statistics import Statistics
from deltastar.transaction import Row, Transaction

VERSION = 2
MANIFEST = "checkpoint.json"
_BLOCK = 1 << 20
_BEFORE = {"engine": "inline"}
"""What a checkpoint that does not say it was made with."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where a run stood at its last commit."""

    snapshot: Snapshot
    position: Position | None
    deltas: SinkState
    rejects: SinkState


class Checkpoint:
    """The checkpoint directory of one run. `identity` is what must be the same for the run to continue."""

    def __init__(self, directory: str, identity: Mapping[str, Any]) -> None:
        self._directory = Path(directory)
        self._identity = dict(identity)
        self._number = 0
        if self._directory.exists() and not self._directory.is_dir():
            raise UsageError(f"{directory} is a file; a checkpoint is a directory")

    def load(self) -> Resumption | None:
        """The last commit, or None when this run is new. A checkpoint of another run is an error."""
        path = self._directory / MANIFEST
        if not path.exists():
            prepare(self._directory)
            return None
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            check_manifest(str(self._directory), manifest, self._identity)
            self._number = manifest["number"]
            return self._resumption(manifest)
        except (KeyError, TypeError, ValueError, OSError, zstandard.ZstdError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(f"{path} is damaged ({error}); remove the directory to start anew") from error

    def commit(self, snapshot: Snapshot, position: Position | None, deltas: SinkState, rejects: SinkState) -> None:
        """Makes this point the one to continue from. The outputs must have been committed before."""
        with doing(f"write the checkpoint {self._directory}"):
            self._commit(snapshot, position, deltas, rejects)

    def _commit(self, snapshot: Snapshot, position: Position | None, deltas: SinkState, rejects: SinkState) -> None:
        self._number += 1
        graph = f"graph-{self._number:06}.rdfp.zst"
        write_durably(self._directory / graph, _compressed(snapshot.rows))
        manifest = {
            "version": VERSION,
            "number": self._number,
            "identity": self._identity,
            "seq": snapshot.seq,
            "statistics": asdict(snapshot.statistics),
            "transaction": _transaction_json(snapshot.transaction),
            "position": asdict(position) if position else None,
            "deltas": deltas,
            "rejects": rejects,
            "graph": graph,
        }
        text = json.dumps(manifest, ensure_ascii=False, indent=1)
        write_durably(self._directory / MANIFEST, [text.encode()])
        for old in self._directory.glob("graph-*.rdfp.zst*"):
            if old.name != graph:
                old.unlink(missing_ok=True)

    def _resumption(self, manifest: Mapping[str, Any]) -> Resumption:
        snapshot = Snapshot(
            manifest["seq"],
            Statistics(**manifest["statistics"]),
            _transaction(manifest["transaction"]),
            _rows(self._directory / manifest["graph"]),
        )
        position = Position(**manifest["position"]) if manifest["position"] else None
        return Resumption(snapshot, position, manifest["deltas"], manifest["rejects"])


def prepare(directory: Path) -> None:
    """Makes the directory of a new checkpoint; one that holds something else is refused."""
    if directory.exists() and any(directory.iterdir()):
        raise UsageError(f"{directory} holds other files, and no checkpoint; name a new directory")
    with doing(f"make the checkpoint directory {directory}"):
        directory.mkdir(parents=True, exist_ok=True)


def check_manifest(directory: str, manifest: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Raises `CheckpointError` unless the checkpoint was made by this version, for a run like this one."""
    if manifest["version"] != VERSION:
        raise CheckpointError(f"{directory} was written by another version of deltastar; start anew")
    for key, value in identity.items():
        if (before := manifest["identity"].get(key, _BEFORE.get(key))) != value:
            raise CheckpointError(
                f"{directory} belongs to a run with another {key}: {_brief(before)}, now {_brief(value)}; "
                "repeat that command, or name a new directory"
            )


def _compressed(blocks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zstandard.ZstdCompressor(level=1, write_checksum=True).compressobj()
    for block in blocks:
        yield compressor.compress(block)
    yield compressor.flush()


def _rows(path: Path) -> list[bytes]:
    """All rows at once, in blocks of whole lines: a checkpoint is either good or not."""
    blocks: list[bytes] = []
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as reader:
        rest = b""
        while block := reader.read(_BLOCK):
            whole, newline, rest = (rest + block).rpartition(b"\n")
            blocks.append(whole + newline)
    return [*blocks, rest] if rest else blocks


def _transaction_json(transaction: Transaction | None) -> dict[str, Any] | None:
    if transaction is None:
        return None
    return {
        "changes": [[op, list(row)] for op, row in transaction.changes],
        "presence": [[list(row), present] for row, present in transaction.presence.items()],
        "messages": transaction.messages,
        "time": transaction.time,
    }


def _transaction(json: Mapping[str, Any] | None) -> Transaction | None:
    if json is None:
        return None
    changes = [(op, _row(row)) for op, row in json["changes"]]
    return Transaction(
        changes, {_row(row): present for row, present in json["presence"]}, json["messages"], json["time"]
    )


def _row(texts: list[str]) -> Row:
    subject, predicate, object = map(of_canonical, texts)
    return subject, predicate, object


def write_durably(path: Path, blocks: Iterable[bytes]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        for block in blocks:
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
