"""An open transaction: what has to be known to apply it as one, or to take it back.

By message, rows are applied as they come, and the effective changes are noted for a `TA`. By transaction, rows are held
back, and noted as what each triple's presence is to be in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from deltastar.rdf.update import DELETE, INSERT

Row = tuple[str, str, str]
"""A triple as canonical texts."""
Change = tuple[str, Row]


@dataclass(slots=True)
class Transaction:
    """The open transaction of an engine."""

    changes: list[Change] = field(default_factory=list)
    """By message: the changes that were made, in order."""
    presence: dict[Row, bool] = field(default_factory=dict)
    """By transaction: whether each triple that it touches is to be there."""
    messages: int = 0
    time: str = ""

    def net(self, holds: Callable[[Row], bool]) -> list[Change]:
        """By transaction: what it changes in the end. Deletions first, which keeps intermediate answers small."""
        return _difference({row: present for row, present in self.presence.items() if present != holds(row)})

    def undo(self, holds: Callable[[Row], bool]) -> list[Change]:
        """By message: the way back from its changes, where they still stand."""
        before: dict[Row, bool] = {}
        for op, row in self.changes:
            before.setdefault(row, op == DELETE)
        return _difference({row: present for row, present in before.items() if present != holds(row)})


def _difference(presence: dict[Row, bool]) -> list[Change]:
    def rows(wanted: bool) -> Iterator[Row]:
        return (row for row, present in presence.items() if present == wanted)

    return [(DELETE, row) for row in rows(False)] + [(INSERT, row) for row in rows(True)]
