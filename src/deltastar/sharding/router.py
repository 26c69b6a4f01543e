"""From a split of the stream to what each shard gets of it.

In: whole lines, or columns of a table. Out: one blob for every shard. A row that unifies with no pattern of any query
ends here. All routers of a run agree on where a triple goes, for that depends on the queries and the triple alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from deltastar.errors import TermError, UsageError
from deltastar.plan.decompose import make_plan
from deltastar.plan.dispatch import Dispatch
from deltastar.query.algebra import Query
from deltastar.query.parse import parse_query
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.sharding.packed import HAS_DROPPED, HAS_GRAPHS, IS_INITIAL, IS_NUMBERED, MUTED, letter_line, pack

_MARKS = {name: mark for mark in Mark for name in (mark.value, mark.name)}


class Router:
    """Knows the queries, and the shards that each needs."""

    def __init__(
        self,
        queries: Mapping[str, str | Query],
        shards: int,
        granularity: str = "message",
        strict: bool = False,
        frequencies: Any = None,
    ) -> None:
        if shards < 1:
            raise UsageError(f"shards={shards}: give 1 or more")
        self._shards, self._strict = shards, strict
        self._dispatch: Dispatch[int] = Dispatch()
        for name, query in queries.items():
            plan = make_plan(parse_query(query) if isinstance(query, str) else query)
            for pattern in plan.patterns:
                self._dispatch.add(pattern, shard_of_query(name, shards))

    def route(self, data: bytes, syntax: Syntax, source: str, initial: bool = False) -> list[bytes]:
        """One blob a shard, of whole lines. With `initial` they are of the graph that the stream starts from."""
        result = scan(data, source, 1, syntax)
        flags = (HAS_GRAPHS if result.named_graphs else 0) | (IS_INITIAL if initial else 0)
        return self._pack(((None, event) for event in result.events), flags, result.lines)

    def route_rows(
        self, seqs: Iterable[int], ops: Iterable[str], ss: Iterable[Any], ps: Iterable[Any], os: Iterable[Any]
    ) -> list[bytes]:
        """The same of columns: each row has its number; its operation is that of an `Update`, or a mark."""
        events = [(int(seq), _event(op, (s, p, o))) for seq, op, s, p, o in zip(seqs, ops, ss, ps, os, strict=True)]
        return self._pack(events, IS_NUMBERED, 0)

    def _pack(self, events: Iterable[tuple[int | None, Event]], flags: int, lines: int) -> list[bytes]:
        places: list[list[int]] = [[] for _ in range(self._shards)]
        texts: list[list[bytes]] = [[] for _ in range(self._shards)]
        messages = relevant = 0
        for number, event in events:
            messages += event.is_message if isinstance(event, Malformed) else isinstance(event, Update)
            place = messages if number is None else number
            for shard, is_owner, text in self._rows(event):
                places[shard].append(2 * place + (0 if is_owner else MUTED))
                texts[shard].append(text)
            if isinstance(event, Update):
                is_relevant = self._dispatch.is_relevant(event[1:4])
                relevant += is_relevant
                flags |= 0 if is_relevant else HAS_DROPPED
        return [
            pack(flags, messages, lines, relevant, np.array(places[shard], np.int64), b"".join(texts[shard]))
            for shard in range(self._shards)
        ]

    def _rows(self, event: Event) -> Iterable[tuple[int, bool, bytes]]:
        """The shards that an event goes to, whether each of them counts it, and the row."""
        if isinstance(event, Malformed):
            return [(0, True, letter_line(event))]
        if isinstance(event, Mark):
            return [(shard, True, f"{event.value} .\n".encode()) for shard in range(self._shards)]
        text = f"{'A' if event[0] == INSERT else 'D'} {event[1]} {event[2]} {event[3]} .\n".encode()
        shards = sorted(set(self._dispatch.matches(event[1:4])))
        if self._strict and not shards:
            shards = [zlib.crc32(text[1:]) % self._shards]
        return [(shard, shard == shards[0], text) for shard in shards]


def shard_of_query(name: str, shards: int) -> int:
    """The shard of a query that is on one shard as a whole."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % shards


def _event(op: str, row: Sequence[Any]) -> Event:
    if op in _MARKS:
        return _MARKS[op]
    try:
        return Update.of(op, *row)
    except (TermError, UsageError) as error:
        text = " ".join(map(str, (op, *row)))
        return Malformed("", 0, getattr(error, "column", 1), str(error), text)
