"""Where a query's triples go when several shards evaluate it: for text and JSON.

The load is of the messages that match a pattern of the query, as far as their frequencies are known.
"""

from __future__ import annotations

from typing import Any

from deltastar.explain.abbreviate import Names
from deltastar.plan.shares import QueryShares


def as_json(shares: QueryShares) -> dict[str, Any]:
    """What `explain --format json --shards N` adds, under `shares`."""
    return {
        "shards": shares.shards,
        "cells": shares.cells,
        "shares": {str(axis.variable): axis.share for axis in shares.axes},
        "patterns": {str(pattern): shares.route(pattern).replication for pattern in shares.plan.patterns},
        "fullest": round(shares.part, 6),
        "sent": round(shares.sent, 6),
    }


def as_lines(shares: QueryShares, names: Names) -> tuple[str, list[str]]:
    """A heading, and what hangs from it."""
    if not shares.axes:
        return f"shards: one of {shares.shards} has the whole query", [
            "no variable is projected that could have a share"
        ]
    grid = " × ".join(f"{axis.variable} {axis.share}" for axis in shares.axes)
    plan, width = shares.plan, len(str(len(shares.plan.patterns)))
    replications = [
        f"{index + 1:>{width}}  {' '.join(names.terms(pattern))}: {_shards(shares.route(pattern).replication)}"
        for index, pattern in enumerate(plan.patterns)
    ]
    heading = f"shards: {shares.cells} of {shares.shards} have a part of the answers each, by the shares {grid}"
    sent = f"{shares.sent:.3g} shard{'s' if shares.sent > 1 else ''} on average"
    load = f"load: the fullest shard gets {_percent(shares.part)} of the messages; each goes to {sent}"
    return heading, [*replications, load]


def _shards(replication: int) -> str:
    return "one shard" if replication == 1 else f"{replication} shards"


def _percent(part: float) -> str:
    return f"{100 * part:.3g} %"
