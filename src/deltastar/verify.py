"""Engine against reference, message by message; and the smallest stream that shows a difference.

In: queries, an initial graph, events. Out: nothing, or the first difference, shrunk until no event and no query can be
left out. Every shrinking step runs both from the start, so what is reported has been seen to fail as it stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from deltastar.delta import Delta
from deltastar.engine import Engine
from deltastar.query.algebra import Query
from deltastar.rdf.terms import Term, Triple
from deltastar.rdf.update import INSERT, Event, Malformed, Mark, Update
from deltastar.reference import ReferenceEngine

MakeEngine = Callable[[str], Engine]
"""From a granularity to an engine without queries."""

DeltaKey = tuple[str, int, str, tuple[tuple[str, Term], ...]]
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Difference:
    """Where engine and reference disagree, and on what they do."""

    queries: Mapping[str, Query]
    initial: Sequence[Triple]
    events: Sequence[Event]
    granularity: str
    seq: int
    missing: tuple[DeltaKey, ...]
    surplus: tuple[DeltaKey, ...]

    def describe(self) -> str:
        """What differs, in a few lines."""
        lines = [f"the engine differs from the reference at message {self.seq}:"]
        lines += [f"  missing  {_show(key)}" for key in self.missing[:5]]
        lines += [f"  surplus  {_show(key)}" for key in self.surplus[:5]]
        return "\n".join(lines)

    def reproduction(self) -> str:
        """The stream as RDF Patch, the initial graph as its first rows, with the queries as comments."""
        lines = [f"# {line}" for line in self.describe().splitlines()]
        lines.append(f"# granularity {self.granularity}")
        lines += [f"# {name}: {query}" for name, query in self.queries.items()]
        lines += ["# the initial graph:"] * bool(self.initial)
        lines += [f"A {triple}" for triple in self.initial]
        lines += ["# the updates:"] * bool(self.initial)
        lines += map(_row, self.events)
        return "\n".join(lines) + "\n"


def verify(
    queries: Mapping[str, Query],
    initial: Iterable[Triple],
    events: Iterable[Event],
    granularity: str = "message",
    make_engine: MakeEngine = lambda granularity: Engine(granularity=granularity),
) -> Difference | None:
    """The first difference between the engine and the reference, shrunk; None when there is none."""
    first = _first_difference(queries, list(initial), events, granularity, make_engine)
    return None if first is None else _shrink(first, make_engine)


def as_bag(deltas: Iterable[Delta]) -> Counter[DeltaKey]:
    """Deltas without their order."""
    return Counter((delta.query, delta.seq, delta.op, tuple(sorted(delta.binding.items()))) for delta in deltas)


def _first_difference(
    queries: Mapping[str, Query],
    initial: Sequence[Triple],
    events: Iterable[Event],
    granularity: str,
    make_engine: MakeEngine,
) -> Difference | None:
    engine, reference = make_engine(granularity), ReferenceEngine(dict(queries), granularity)
    for name, query in queries.items():
        engine.register(query, name)
    seen: list[Event] = []
    for actual, expected in _steps(engine, reference, initial, events, seen):
        if (have := as_bag(actual)) != (want := as_bag(expected)):
            return Difference(
                queries,
                initial,
                seen,
                granularity,
                reference.seq,
                tuple((want - have).elements()),
                tuple((have - want).elements()),
            )
    return None


def _steps(
    engine: Engine,
    reference: ReferenceEngine,
    initial: Sequence[Triple],
    events: Iterable[Event],
    seen: list[Event],
) -> Iterator[tuple[Iterable[Delta], Iterable[Delta]]]:
    """What both say to the initial graph, to each event, and to the end of the stream."""
    yield engine.load(initial), reference.load(initial)
    for event in events:
        seen.append(event)
        yield engine.process(event, lambda malformed: None), reference.step(event)
    yield engine.finish(), reference.finish()


def _shrink(difference: Difference, make_engine: MakeEngine) -> Difference:
    """Leaves out queries, then events and initial triples, as long as a difference remains."""
    best = difference

    def still_differs(
        queries: Mapping[str, Query], initial: Sequence[Triple], events: Sequence[Event]
    ) -> Difference | None:
        return _first_difference(queries, initial, events, difference.granularity, make_engine)

    for name in list(best.queries):
        if (smaller := still_differs({name: best.queries[name]}, best.initial, best.events)) is not None:
            best = smaller
            break
    queries = best.queries
    events = _minimal(best.events, lambda kept: still_differs(queries, best.initial, kept) is not None)
    initial = _minimal(best.initial, lambda kept: still_differs(queries, kept, events) is not None)
    final = still_differs(queries, initial, events)
    return final if final is not None else best


def _minimal(items: Sequence[_Item], fails: Callable[[Sequence[_Item]], bool]) -> list[_Item]:
    """Items of which none can be left out; chunks first, then one by one (delta debugging)."""
    kept = list(items)
    size = max(len(kept) // 2, 1)
    while kept:
        start, removed = 0, False
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if fails(fewer):
                kept, removed = fewer, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(size // 2, 1)
    return kept


def _show(key: DeltaKey) -> str:
    query, seq, op, row = key
    return f"{query} #{seq} {op} " + (" ".join(f"?{name}={value}" for name, value in row) or "()")


def _row(event: Event) -> str:
    if isinstance(event, Update):
        return f"{'A' if event.op == INSERT else 'D'} {event.triple}"
    if isinstance(event, Mark):
        return f"{event.value} ."
    assert isinstance(event, Malformed)
    return event.text
