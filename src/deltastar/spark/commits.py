"""The checkpoint of a run on Spark: a directory from which the same command continues.

    checkpoint.json   what the run is, its last micro-batch whose deltas are written, how far the outputs reach
    spark/            Spark's own: which splits each micro-batch has
    shards/           the journal of each shard

The shards have a micro-batch in their journals before its deltas are written, and the deltas are durable before
`checkpoint.json` speaks of them. So what is behind it is either done again, with the same result, or cut off.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deltastar.checkpoint import MANIFEST, VERSION, check_manifest, prepare, write_durably
from deltastar.errors import CheckpointError, UsageError
from deltastar.sink import SinkState
from deltastar.sink.base import doing
from deltastar.statistics import Statistics

NOTHING = -1


@dataclass(frozen=True, slots=True)
class Commit:
    """Where a run stood after a micro-batch."""

    batch: int
    statistics: Statistics
    deltas: SinkState | None
    rejects: SinkState | None


class RunDirectory:
    """Where a run keeps what has to outlast a task: its checkpoint, or a directory that goes when the run ends."""

    def __init__(self, checkpoint: str | None, identity: Mapping[str, Any]) -> None:
        self._identity = dict(identity)
        self.is_durable = checkpoint is not None
        if checkpoint is None:
            self.path = Path(tempfile.mkdtemp(prefix="deltastar-run-"))
        else:
            self.path = Path(os.path.abspath(checkpoint))
            if self.path.exists() and not self.path.is_dir():
                raise UsageError(f"{checkpoint} is a file; a checkpoint is a directory")

    def __enter__(self) -> RunDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_durable:
            shutil.rmtree(self.path, ignore_errors=True)

    def shards(self) -> int | None:
        """How many shards the checkpoint is for; None when there is none yet."""
        return self._manifest()["identity"]["shards"] if self._exists() else None

    def load(self, shards: int) -> Commit | None:
        """The last commit, or None when this run is new. A checkpoint of another run is an error."""
        self._identity["shards"] = shards
        if not self._exists():
            if self.is_durable:
                prepare(self.path)
            self.commit(Commit(NOTHING, Statistics(), None, None))
            return None
        manifest = self._manifest()
        try:
            check_manifest(str(self.path), manifest, self._identity)
            commit = Commit(
                manifest["batch"], Statistics(**manifest["statistics"]), manifest["deltas"], manifest["rejects"]
            )
        except (KeyError, TypeError) as error:
            raise self._damaged(error) from error
        return None if commit.deltas is None else commit

    def commit(self, commit: Commit) -> None:
        """Makes this the point to continue from. The outputs must have been committed before."""
        manifest = {
            "version": VERSION,
            "identity": self._identity,
            "batch": commit.batch,
            "statistics": asdict(commit.statistics),
            "deltas": commit.deltas,
            "rejects": commit.rejects,
        }
        with doing(f"write the checkpoint {self.path}"):
            write_durably(self.path / MANIFEST, [json.dumps(manifest, ensure_ascii=False, indent=1).encode()])

    def directory(self, name: str) -> str:
        """A directory inside, made when it is not there."""
        path = self.path / name
        with doing(f"make the directory {path}"):
            path.mkdir(parents=True, exist_ok=True)
        return str(path)

    def _exists(self) -> bool:
        return (self.path / MANIFEST).exists()

    def _manifest(self) -> Mapping[str, Any]:
        try:
            manifest = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
            if manifest["identity"].get("engine") != "spark":
                check_manifest(str(self.path), manifest, {"engine": "spark"})
            return dict(manifest)
        except (KeyError, TypeError, ValueError, OSError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CheckpointError:
        return CheckpointError(f"{self.path / MANIFEST} is damaged ({error}); remove the directory to start anew")
