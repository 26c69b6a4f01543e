"""A delta: one answer gained or lost by one message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deltastar.rdf.terms import Term

ADDED = "+"
REMOVED = "-"


class Delta(NamedTuple):
    """One answer that the message at `seq` added to a query (`+`) or removed from it (`-`).

    `binding` maps variable names (without `?`) to terms; `time` is that of the message, where the source has one.
    """

    query: str
    seq: int
    op: str
    binding: Mapping[str, Term]
    time: str = ""

    def __repr__(self) -> str:
        row = " ".join(f"?{name}={value}" for name, value in self.binding.items())
        return f"Delta({self.query} #{self.seq} {self.op} {row or '()'})"
