"""Which shards a triple goes to: shares for the variables of each query (HyperCube; Afrati and Ullman, EDBT 2010).

In: plans, a number of shards, and what is known of how frequent their patterns are. Out, for each query: a grid of
*cells*, one axis for each variable with a share above 1, and the shard of each cell. A term hashes to a place on each
axis. A triple that unifies with a pattern goes to the cells that have the places of its terms for the pattern's
variables, whatever the others; an answer belongs to the one cell that has the places of all its variables' values. All
triples of an answer come to its cell; a shard has one cell of a query at most, and looks for that cell's answers only.
So each answer is found once, and shards never ask each other.

Only projected variables have shares, so that all embeddings of a row are in one shard. ASK, and a query without
variables to share, is on one shard as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import NamedTuple

from deltastar.plan.decompose import Plan
from deltastar.plan.frequencies import Frequencies
from deltastar.query.algebra import Query, TriplePattern, Variable

MOST_CLASSES = 24
"""Classes of terms that a shard tells apart. A query for which there are no more is on one shard as a whole."""
_MOST_CANDIDATES = 20_000
"""Where there are more, shares are set one after the other."""
_MOST, _TOLERANCE = 0.5, 1.3
"""A cell has most of the work when it gets more than this part of it, and of two cells more than 1.3 times its half."""


class Axis(NamedTuple):
    """A variable with a share. Equal salts and shares give equal places, so that queries can have classes in common."""

    variable: Variable
    salt: int
    share: int
    stride: int
    """How far apart its places are in the numbers of cells."""


class Place(NamedTuple):
    """Where on an axis a shard is: salt, share, and which of the classes of terms."""

    salt: int
    share: int
    place: int


class Coordinate(NamedTuple):
    """Which of a triple's terms says where on an axis the triple belongs."""

    position: int
    salt: int
    share: int
    stride: int


class Route(NamedTuple):
    """The cells of the triples of one pattern: one that the coordinates give, and then each of the offsets from it."""

    coordinates: tuple[Coordinate, ...]
    offsets: tuple[int, ...]

    @property
    def replication(self) -> int:
        """How many shards a triple goes to for this pattern."""
        return len(self.offsets)


@dataclass(frozen=True, slots=True)
class QueryShares:
    """The grid of one query, and where it lies on the shards."""

    name: str
    plan: Plan
    axes: tuple[Axis, ...]
    first: int
    """The shard of cell 0; the others follow, round and round."""
    shards: int
    load: float
    """Messages that come to the fullest cell, of as many as the frequencies count together."""
    part: float
    """The same as a part of all messages that match a pattern of the query."""
    sent: float
    """How many shards such a message goes to, on average."""

    @property
    def cells(self) -> int:
        return math.prod(axis.share for axis in self.axes)

    def share_of(self, variable: Variable) -> int:
        """The share of a variable."""
        return next((axis.share for axis in self.axes if axis.variable == variable), 1)

    def shard_of(self, cell: int) -> int:
        return (self.first + cell) % self.shards

    def places_on(self, shard: int) -> dict[Variable, Place] | None:
        """What a shard's answers are restricted to; None when it has no cell of the query."""
        cell = (shard - self.first) % self.shards
        if cell >= self.cells:
            return None
        return {axis.variable: Place(axis.salt, axis.share, cell // axis.stride % axis.share) for axis in self.axes}

    def route(self, pattern: TriplePattern) -> Route:
        """Where triples go that unify with a pattern."""
        coordinates, free = [], []
        for axis in self.axes:
            if axis.variable in pattern.nodes:
                position = pattern.nodes.index(axis.variable)
                coordinates.append(Coordinate(position, axis.salt, axis.share, axis.stride))
            else:
                free.append(range(0, axis.share * axis.stride, axis.stride))
        return Route(tuple(coordinates), tuple(sorted(map(sum, product(*free)))))


@dataclass(frozen=True, slots=True)
class Shares:
    """The grids of all queries of a run."""

    shards: int
    queries: tuple[QueryShares, ...]

    def classes_on(self, shard: int) -> tuple[Place, ...]:
        """The classes of terms that a shard has to tell apart."""
        places = (query.places_on(shard) or {} for query in self.queries)
        return tuple(dict.fromkeys(place for of_query in places for place in of_query.values()))


def make_shares(plans: Mapping[str, Plan], shards: int, frequencies: Frequencies | None = None) -> Shares:
    """Shares for all queries. Those with the largest loads choose their shards first.

    >>> from deltastar.plan.decompose import make_plan
    >>> from deltastar.query.parse import parse_query
    >>> path = make_plan(parse_query("SELECT * { ?a <p:p> ?b . ?b <p:q> ?c }"))
    >>> [(axis.variable, axis.share) for axis in make_shares({"path": path}, 8).queries[0].axes]
    [(?b, 8)]
    """
    known = frequencies or Frequencies()
    chosen = {name: choose_shares(plan, shards, known) for name, plan in plans.items()}
    patterns = {name: [_Known.of(pattern, known) for pattern in plan.patterns] for name, plan in plans.items()}
    order = sorted(plans, key=lambda name: (-_load(patterns[name], chosen[name]) * _cells(chosen[name]), name))
    loads = [0.0] * shards
    classes: list[set[Place]] = [set() for _ in range(shards)]
    placed: dict[str, QueryShares] = {}
    for name in order:
        query = _place(name, plans[name], chosen[name], patterns[name], loads, classes)
        if query is None:
            query = _place(name, plans[name], {}, patterns[name], loads, classes)
        assert query is not None
        for cell in range(query.cells):
            shard = query.shard_of(cell)
            loads[shard] += query.load
            classes[shard].update((query.places_on(shard) or {}).values())
        placed[name] = query
    return Shares(shards, tuple(placed[name] for name in plans))


def choose_shares(plan: Plan, shards: int, frequencies: Frequencies) -> dict[Variable, int]:
    """The best shares above 1.

    The cost is what the fullest cell gets, twice, for that is what a batch waits for, and what all get, divided among
    all shards. Where the shares use all shards evenly, that ranks them as the sum of Afrati and Ullman does. Before
    that come shares with which no cell gets most of the work.
    """
    patterns = [_Known.of(pattern, frequencies) for pattern in plan.patterns]

    def rank(shares: Mapping[Variable, int]) -> tuple[bool, float, int, int]:
        fullest, total = _load(patterns, shares), _sent(patterns, shares)
        cells = _cells(shares)
        is_lopsided = fullest > total * max(_MOST, _TOLERANCE / cells if cells > 1 else 0.0)
        return is_lopsided, round(2 * fullest + total / shards, 9), cells, len(shares)

    variables = shareable(plan.query)
    if _count(len(variables), shards) <= _MOST_CANDIDATES:
        best = min(_candidates(variables, shards), key=rank)
    else:
        best = _climb(variables, shards, rank)
    return best


def _cells(shares: Mapping[Variable, int]) -> int:
    return math.prod(shares.values())


def shareable(query: Query) -> tuple[Variable, ...]:
    """The variables that may have a share: those that are projected, so that equal rows are in one shard.

    With DISTINCT they are counted there. In a bag a transaction, or the way back from one, may take a row away and add
    an equal one, which is no change; two shards could not know.
    """
    return tuple(variable for variable in query.pattern.variables if variable in query.projection)


class _Known(NamedTuple):
    """A pattern's frequency, and for each of its variables the part of the triples that the top value makes up."""

    messages: float
    tops: Mapping[Variable, float]

    @classmethod
    def of(cls, pattern: TriplePattern, frequencies: Frequencies) -> _Known:
        frequency = frequencies.of(pattern)
        pairs = zip(reversed(pattern.nodes), reversed(frequency.top), strict=True)
        return cls(frequency.messages, {node: top for node, top in pairs if isinstance(node, Variable)})


def _sent(patterns: Sequence[_Known], shares: Mapping[Variable, int]) -> float:
    """The sum over all patterns of frequency times the shares of the variables that are not in it."""
    return sum(
        pattern.messages * math.prod(share for variable, share in shares.items() if variable not in pattern.tops)
        for pattern in patterns
    )


def _load(patterns: Sequence[_Known], shares: Mapping[Variable, int]) -> float:
    """Messages that come to the fullest cell.

    Of the triples of a pattern, a cell gets the part `1/s` for each of the pattern's variables, of share `s`; but the
    cell that has the most frequent value of the variable, which makes up the part `h` of the triples, gets
    `h + (1 - h)/s`.
    """
    load = 0.0
    for pattern in patterns:
        part = pattern.messages
        for variable, top in pattern.tops.items():
            if variable in shares:
                part *= top + (1 - top) / shares[variable]
        load += part
    return load


def _climb(
    variables: Sequence[Variable], shards: int, rank: Callable[[Mapping[Variable, int]], tuple[bool, float, int, int]]
) -> dict[Variable, int]:
    """For many variables: one share after the other is set to what is best then, as long as that helps."""
    best: dict[Variable, int] = {}
    while True:
        room = shards // math.prod(best.values())
        others = [
            {variable: share for variable, share in {**best, chosen: share}.items() if share > 1}
            for chosen in variables
            for share in range(1, room * best.get(chosen, 1) + 1)
        ]
        better = min(others, key=rank)
        if rank(better) >= rank(best):
            return best
        best = better


@cache
def _count(variables: int, shards: int) -> int:
    """How many candidates there are."""
    if variables == 0:
        return 1
    return sum(_count(variables - 1, shards // share) for share in range(1, shards + 1))


def _candidates(variables: Sequence[Variable], shards: int) -> Iterator[dict[Variable, int]]:
    """All shares whose product is at most the number of shards."""
    for axes in range(min(len(variables), int(math.log2(shards))) + 1):
        for chosen in combinations(variables, axes):
            for shares in _factors(axes, shards):
                yield dict(zip(chosen, shares, strict=True))


def _factors(axes: int, limit: int) -> Iterator[tuple[int, ...]]:
    """Tuples of numbers above 1 whose product is at most the limit."""
    if axes == 0:
        yield ()
        return
    for first in range(2, limit // 2 ** (axes - 1) + 1):
        for rest in _factors(axes - 1, limit // first):
            yield (first, *rest)


def _place(
    name: str,
    plan: Plan,
    shares: Mapping[Variable, int],
    patterns: Sequence[_Known],
    loads: Sequence[float],
    classes: Sequence[set[Place]],
) -> QueryShares | None:
    """The shards on which the most loaded one stays least loaded; None when there would be too many classes."""
    axes: list[Axis] = []
    stride = 1
    for salt, (variable, share) in enumerate(shares.items()):
        axes.append(Axis(variable, salt, share, stride))
        stride *= share
    load, sent, total = _load(patterns, shares), _sent(patterns, shares), _sent(patterns, {}) or 1.0
    best: tuple[float, QueryShares] | None = None
    for first in range(len(loads)):
        query = QueryShares(name, plan, tuple(axes), first, len(loads), load, load / total, sent / total)
        taken = [query.shard_of(cell) for cell in range(query.cells)]
        if any(len(classes[shard] | set((query.places_on(shard) or {}).values())) > MOST_CLASSES for shard in taken):
            continue
        fullest = max(loads[shard] for shard in taken) + load
        if best is None or fullest < best[0]:
            best = fullest, query
    return best[1] if best else None
