"""The dead-letter output: rows that could not be read, one JSON object a line.

The file appears with the first reject. One left from an earlier run is emptied at once, so that a run without rejects
does not seem to have them.
"""

from __future__ import annotations

import os
import stat
from types import TracebackType

from deltastar.errors import UsageError
from deltastar.rdf.update import Malformed
from deltastar.sink.base import SinkState, check_parent, check_state, doing
from deltastar.sink.encode import json_text, utf8
from deltastar.sink.files import AppendFile, check_length

_FALLBACK = "deltastar.rejects.jsonl"
_KIND: SinkState = {"output": "rejects"}


def default_rejects_path(dest: str) -> str:
    """Where dead letters go when nobody says: beside the deltas, or in the current directory.

    >>> default_rejects_path("out/deltas.jsonl"), default_rejects_path("out/"), default_rejects_path("-")
    ('out/deltas.jsonl.rejects.jsonl', 'out.rejects.jsonl', 'deltastar.rejects.jsonl')
    """
    if dest == "-" or dest.startswith("kafka://") or _is_device(dest):
        return _FALLBACK
    path = dest.rstrip("/")
    if os.path.basename(path) in ("", ".", ".."):
        path = os.path.abspath(dest)
    return f"{path}.rejects.jsonl"


def _is_device(path: str) -> bool:
    """Whether the path is /dev/null or the like, which nothing can be put beside."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def open_rejects(path: str, resume: SinkState | None = None) -> RejectSink:
    """The dead-letter output at a path; `resume` is what `commit` returned."""
    return RejectSink(path, resume)


class RejectSink:
    """Takes malformed rows. `count` is how many there were, those before a resumed run included."""

    def __init__(self, path: str, resume: SinkState | None = None) -> None:
        check_parent(path)
        if os.path.isdir(path):
            raise UsageError(f"{path} is a directory; give a file for the rejected rows")
        self.path = path
        self.count = 0
        self._length = 0
        self._file: AppendFile | None = None
        check_state(resume, _KIND, path)
        if resume is not None:
            self.count, self._length = int(resume["count"]), int(resume["length"])
        with doing(f"open {path}"):
            check_length(path, self._length)
            if os.path.isfile(path):
                os.truncate(path, self._length)

    def write(self, row: Malformed) -> None:
        """Takes one row."""
        if self._file is None:
            self._file = AppendFile(self.path, self._length or None)
        fields = {
            "source": row.source, "line": row.line, "column": row.column, "reason": row.reason, "text": row.text,
        }  # fmt: skip
        self._file.append(utf8(json_text(fields) + "\n"))
        self.count += 1

    def flush(self) -> None:
        """Makes everything written so far visible to a reader."""
        if self._file is not None:
            self._file.flush()

    def commit(self) -> SinkState:
        """Makes everything written so far durable; returns the state to continue from."""
        if self._file is not None:
            self._file.sync()
            self._length = self._file.length
        return {**_KIND, "count": self.count, "length": self._length}

    def close(self) -> None:
        """Flushes and lets go of the file."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> RejectSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
