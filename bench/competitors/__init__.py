"""Other systems that can keep the answers of a basic graph pattern, each behind the same small interface.

A system is a class of one query with

    load(path)      the graph before the first message, N-Triples; not timed
    run(path)       messages, RDF Patch; timed, from the text of the rows to deltas as Python values or as text
    deltas()        of all runs so far, as `(op, terms)`, op 1 or -1, terms in the order of the variables; not timed
    answer_count()  of the final graph, not timed
    close()

and `IS_PER_MESSAGE`, which is False where messages are applied in batches, so that a delta and its opposite in one
batch cancel out. `run` may be called again; the first call is the warm-up. Rows are split at blanks instead of being
parsed, and rows that match no pattern are dropped by a look into a dictionary: both are in favour of these systems,
which have no reader of their own. A package is imported when its class is made, so that the others work without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from competitors.workload import Query

SystemDelta = tuple[int, tuple[str, ...]]

SYSTEMS = {
    "deltastar": ("deltastar_engine", "Deltastar"),
    "deltastar-lines": ("deltastar_engine", "DeltastarLines"),
    "deltastar-table": ("deltastar_engine", "DeltastarTable"),
    "deltastar-text": ("deltastar_engine", "DeltastarText"),
    "sqlite": ("sqlite_triggers", "SqliteTriggers"),
    "clips": ("clips_rete", "ClipsRete"),
    "pathway": ("pathway_dataflow", "PathwayDataflow"),
    "pyoxigraph": ("oxigraph", "OxigraphQueries"),
    "pyoxigraph-parse": ("oxigraph", "OxigraphParse"),
}
"""Where each of them is."""


class System(Protocol):
    """See above."""

    IS_PER_MESSAGE: bool

    def load(self, path: Path) -> None: ...
    def run(self, path: Path) -> None: ...
    def deltas(self) -> Iterator[SystemDelta] | None: ...
    def answer_count(self) -> int | None: ...
    def close(self) -> None: ...


def make(name: str, query: Query, scratch: Path) -> System:
    """A system with one query; `scratch` is a directory for its files."""
    module, kind = SYSTEMS[name]
    system: Any = getattr(importlib.import_module(f"competitors.{module}"), kind)
    return system(query, scratch)  # type: ignore[no-any-return]
