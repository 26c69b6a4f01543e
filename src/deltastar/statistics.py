"""What an engine has seen, in numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Statistics:
    """What an engine has seen. Repetitions are counted among relevant messages (all of them with `retain="all"`)."""

    messages: int = 0
    relevant: int = 0
    deltas: int = 0
    malformed: int = 0
    repeated_inserts: int = 0
    absent_deletes: int = 0
    committed: int = 0
    aborted: int = 0
    discarded: int = 0
