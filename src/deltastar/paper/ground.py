"""Algorithm 1: ground queries. A bit a pattern, and a count of those that are missing."""

from __future__ import annotations

from collections.abc import Iterable

from deltastar.rdf.update import INSERT


class GroundInstance:
    """A ground query Q_G with its triple match state M.

    The paper looks at all of M after every message; the count of zeros makes that O(1).
    """

    __slots__ = ("M", "_missing")

    def __init__(self, patterns: Iterable[int]) -> None:
        self.M = dict.fromkeys(patterns, False)
        self._missing = len(self.M)

    @property
    def is_complete(self) -> bool:
        """The paper's ground_BGP_eval."""
        return self._missing == 0

    def process_update_message_on_ground_BGP(self, op: str, i: int) -> bool:
        """Applies an effective update that matches pattern i. Whether the query's answer appeared or vanished."""
        if op == INSERT:
            self.M[i] = True
            self._missing -= 1
            return self._missing == 0
        self.M[i] = False
        self._missing += 1
        return self._missing == 1
