"""Makes a graph, a stream of updates to it and queries over it, from a seed: the same command, the same bytes.

    python bench/generate.py graph [--triples 200000] [--updates 200000] [--deletions 0.3] [--seed 1] …
    python bench/generate.py hub [--neighbours 2000] [--updates 1000] …

Both write a directory (`out/bench/<name>` unless `--out` says otherwise):

    initial.nt  updates.rdfp         text: <http://bench/n123> <http://bench/p7> <http://bench/n45>
    initial.bin updates.bin          the same as int32, little-endian: op (1 insert, -1 delete), s, p, o
    queries/NAME.rq queries/NAME.txt the query as SPARQL, and for `native/yardstick`
    about.json                       the options, and what the graph looks like

`graph` is typed: every predicate leads from one type of node to another, or back to the same. Degrees follow a power
law. Some hubs are hubs of all predicates of their type, and most triples stay within a small community, so that cycles
close often enough to be seen. An insertion is drawn like the initial triples and is new at that time; a deletion takes
any triple that is there, each with the same chance. `--repeats` adds updates that change nothing.

`hub` is a path of six edges whose middle variable binds hubs of `--neighbours` out-neighbours. Each of these leads on,
but only `--live` of a hub's lead on twice: all other dead ends lie two steps away from the hub. Eight in ten updates
add or remove an edge into a hub, one an edge out of it, and one the last edge of a path, so that a dead end comes alive
or dies.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

INSERT, DELETE = 1, -1
Ids = NDArray[np.int64]
Row = tuple[int, int, int, int]  # op, s, p, o
Edge = tuple[int, int, int]  # s, p, o

TYPE_SHARES = {"A": 0.34, "B": 0.24, "C": 0.20, "D": 0.14, "E": 0.08}
"""Of all nodes."""

SCHEMA = (
    ("AA", 4), ("AB", 4), ("BC", 4), ("CA", 3), ("CD", 3), ("DA", 2), ("AC", 2), ("AD", 2), ("AE", 1), ("BB", 4),
    ("BD", 1), ("DE", 1), ("BE", 1), ("CC", 3), ("EA", 1), ("CE", 1), ("DB", 2), ("AB", 2), ("EC", 1), ("DD", 2),
)  # fmt: skip
"""From which type to which, and how often, by predicate; after the last it starts again."""

COMMUNITY_NODES = 50
LOCAL_SHARE = 0.6
"""Of all triples: the object is drawn from the subject's community, where that has such nodes."""
OWN_SHARE = 0.8
"""Of all draws: from the predicate's own order of nodes; the others are from one that the type's predicates share."""
EXPONENT_OFFSETS = (0.15, -0.15)
"""Of subjects and of objects: in-degrees are more skewed."""

PREDICATES_OF_QUERIES = 13

QUERIES = {
    "star": "v0 p6 v1 . v0 p7 v2 . v0 p8 v3",
    "path3": "v0 p1 v1 . v1 p2 v2 . v2 p4 v3",
    "triangle": "v0 p1 v1 . v1 p2 v2 . v2 p3 v0",
    "cycle4": "v0 p1 v1 . v1 p2 v2 . v2 p4 v3 . v3 p5 v0",
    "tree6": "v0 p10 v1 . v0 p12 v2 . v1 p11 v3 . v4 p17 v0 . v4 p8 v5 . v1 p16 v6",
    "selfpath": "v0 p0 v1 . v1 p0 v2",
    "selfcycle4": "v0 p0 v1 . v1 p0 v2 . v2 p0 v3 . v3 p0 v0",
}
SWITCHED = 8
"""Neighbours of each hub whose first and last edges come and go."""
HUB_QUERY = " . ".join(f"v{edge} p{edge} v{edge + 1}" for edge in range(6))


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes what the command line asks for."""
    options = parse(arguments)
    if options.what == "graph":
        write_graph(options)
    else:
        write_hub(options)
    print(f"wrote {options.out}")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line; what it leaves open follows from the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    graph = commands.add_parser("graph", help="a typed power-law graph and seven queries")
    graph.add_argument("--triples", type=int, default=200_000)
    graph.add_argument("--nodes", type=int, help="default: an eighth of the triples")
    graph.add_argument("--predicates", type=int, default=20)
    graph.add_argument("--updates", type=int, default=200_000)
    graph.add_argument("--deletions", type=float, default=0.3, help="their share of the updates")
    graph.add_argument("--repeats", type=float, default=0.0, help="share of the updates that change nothing")
    graph.add_argument("--exponent", type=float, default=2.0, help="P(degree = d) falls like d to the minus this")
    hub = commands.add_parser("hub", help="a path through hubs, and dead ends behind them")
    hub.add_argument("--neighbours", type=int, default=2_000, help="of each hub")
    hub.add_argument("--hubs", type=int, default=4)
    hub.add_argument("--live", type=int, default=2, help="neighbours of each hub that lead to the end of the path")
    hub.add_argument("--updates", type=int, default=1_000)
    for command in (graph, hub):
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path, help="directory; default: out/bench/NAME")
    options = parser.parse_args(arguments)
    if options.what == "graph":
        options.nodes = options.nodes or max(options.triples // 8, 10)
        if options.predicates < PREDICATES_OF_QUERIES:
            parser.error(f"--predicates {options.predicates}: the queries use {PREDICATES_OF_QUERIES}")
        if options.exponent <= 1:
            parser.error(f"--exponent {options.exponent}: it must be more than 1")
    elif options.live > options.neighbours:
        parser.error(f"--live {options.live}: a hub has only {options.neighbours} neighbours")
    options.out = options.out or Path("out/bench") / (
        f"graph-{options.triples}" if options.what == "graph" else f"hub-{options.neighbours}"
    )
    return options


# The graph


class Side(NamedTuple):
    """One end of a predicate: orders of the type's nodes, and the chance of a place in the order or an earlier one."""

    shared: Ids
    own: Ids
    cumulated: NDArray[np.float64]

    def draw(self, count: int, rng: np.random.Generator) -> Ids:
        """Nodes, with repetition."""
        places = np.searchsorted(self.cumulated, rng.random(count), side="right")
        return np.where(rng.random(count) < OWN_SHARE, self.own[places], self.shared[places])


class Sampler:
    """Draws triples; a triple is its key `(p * nodes + s) * nodes + o`."""

    def __init__(self, nodes: int, predicates: int, exponent: float, rng: np.random.Generator) -> None:
        self.nodes, self.rng = nodes, rng
        self.schema = [SCHEMA[predicate % len(SCHEMA)] for predicate in range(predicates)]
        shares = np.cumsum([float(share) for _, share in self.schema])
        self.cumulated = shares / shares[-1]
        shuffled = rng.permutation(nodes)  # so that a node's number says nothing about its type or degree
        bounds = np.rint(np.cumsum([0.0, *TYPE_SHARES.values()]) * nodes).astype(np.int64)
        members = {kind: shuffled[bounds[at] : bounds[at + 1]] for at, kind in enumerate(TYPE_SHARES)}
        orders = {(kind, end): rng.permutation(members[kind]) for kind in TYPE_SHARES for end in (0, 1)}
        chances = {
            (kind, end): power_law(len(members[kind]), exponent + offset)
            for kind in TYPE_SHARES
            for end, offset in enumerate(EXPONENT_OFFSETS)
        }
        self.sides = [
            [
                Side(orders[side], rng.permutation(members[side[0]]), chances[side])
                for side in zip(ends, (0, 1), strict=True)
            ]
            for ends, _ in self.schema
        ]
        communities = max(nodes // COMMUNITY_NODES, 1)
        self.community = rng.integers(0, communities, nodes)
        self.residents = {
            kind: members[kind][np.argsort(self.community[members[kind]], kind="stable")] for kind in members
        }
        self.starts = {
            kind: np.searchsorted(self.community[nodes], np.arange(communities + 1))
            for kind, nodes in self.residents.items()
        }  # of a community's residents of a type

    def keys(self, count: int) -> Ids:
        """That many triples, with repetition."""
        predicate = np.searchsorted(self.cumulated, self.rng.random(count), side="right")
        key = np.empty(count, np.int64)
        for number, (subjects, objects) in enumerate(self.sides):
            where = np.flatnonzero(predicate == number)
            s = subjects.draw(len(where), self.rng)
            o = self.with_neighbours(s, objects.draw(len(where), self.rng), self.schema[number][0][1])
            key[where] = (number * self.nodes + s) * self.nodes + o
        return key

    def with_neighbours(self, s: Ids, o: Ids, kind: str) -> Ids:
        """The objects, most of them replaced by nodes of the subject's community; the first of these come up most."""
        starts = self.starts[kind]
        first, beyond = starts[self.community[s]], starts[self.community[s] + 1]
        place = first + (self.rng.random(len(s)) ** 2 * (beyond - first)).astype(np.int64)
        is_local = (self.rng.random(len(s)) < LOCAL_SHARE) & (beyond > first)
        return np.where(is_local, self.residents[kind][np.minimum(place, starts[-1] - 1)], o)

    def row(self, op: int, key: int) -> Row:
        """A triple's row."""
        ends, o = divmod(key, self.nodes)
        p, s = divmod(ends, self.nodes)
        return op, s, p, o


def power_law(count: int, exponent: float) -> NDArray[np.float64]:
    """The chances of ranks 1 … count, cumulated, such that degrees fall off with that exponent.

    The first ranks are flattened (Zipf–Mandelbrot): the largest hub has a few times the square root of the nodes for
    neighbours, not a constant share of all edges, which a set of triples could not hold.
    """
    weight = (np.arange(count) + 1 + count**0.5 / 8) ** (-1 / (exponent - 1))
    cumulated = np.cumsum(weight)
    return cumulated / cumulated[-1]


def initial_keys(sampler: Sampler, count: int) -> list[int]:
    """Distinct triples."""
    keys = np.empty(0, np.int64)
    while len(keys) < count:
        drawn = np.concatenate([keys, sampler.keys(count - len(keys) + count // 20 + 10)])
        _, first = np.unique(drawn, return_index=True)
        if len(first) - len(keys) < (len(drawn) - len(keys)) // 100:
            raise SystemExit(f"{sampler.nodes} nodes are too few for {count} triples; give more with --nodes")
        keys = drawn[np.sort(first)]
    return keys[:count].tolist()


def updates(sampler: Sampler, present: list[int], options: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """Operations and keys. `present` is the graph, and changes."""
    rng = random.Random(options.seed)
    there = set(present)
    fresh = new_keys(sampler, there)
    for _ in range(options.updates):
        is_deletion = bool(present) and rng.random() < options.deletions
        if rng.random() < options.repeats:
            yield (DELETE, next(fresh)) if is_deletion or not present else (INSERT, rng.choice(present))
        elif is_deletion:
            place = rng.randrange(len(present))
            key, present[place] = present[place], present[-1]
            present.pop()
            there.remove(key)
            yield DELETE, key
        else:
            key = next(fresh)
            present.append(key)
            there.add(key)
            yield INSERT, key


def new_keys(sampler: Sampler, there: set[int]) -> Iterator[int]:
    """Triples that are not there when they are asked for."""
    while True:
        for key in sampler.keys(1 << 16).tolist():
            if key not in there:
                yield key


def write_graph(options: argparse.Namespace) -> None:
    """Everything of a typed graph."""
    sampler = Sampler(options.nodes, options.predicates, options.exponent, np.random.default_rng(options.seed))
    present = initial_keys(sampler, options.triples)
    about = describe(sampler, np.array(present, np.int64))
    initial = [sampler.row(INSERT, key) for key in present]
    stream = [sampler.row(op, key) for op, key in updates(sampler, present, options)]
    write(options, initial, stream, QUERIES, about)


def describe(sampler: Sampler, keys: Ids) -> dict[str, float]:
    """What the neighbour lists (of one predicate, one direction, one node) look like."""
    ends, o = np.divmod(keys, sampler.nodes)
    p, s = np.divmod(ends, sampler.nodes)
    about: dict[str, float] = {}
    for name, node in (("out", s), ("in", o)):
        _, degrees = np.unique(p * sampler.nodes + node, return_counts=True)
        about[f"{name}_lists"] = len(degrees)
        about[f"{name}_mean"] = round(float(degrees.mean()), 2)
        about[f"{name}_three_or_fewer"] = round(float((degrees <= 3).mean()), 3)
        about[f"{name}_largest"] = int(degrees.max())
        tail = degrees[degrees >= 5]  # maximum likelihood, Clauset et al. 2009, equation 3.7
        about[f"{name}_exponent"] = round(1 + len(tail) / float(np.log(tail / 4.5).sum()), 2) if len(tail) else 0.0
    return about


# Hubs


def write_hub(options: argparse.Namespace) -> None:
    """Everything of a path through hubs; predicate number i is the path's i-th edge."""
    rng = random.Random(options.seed)
    new = itertools.count()
    edges: list[Edge] = []
    feeders: list[int] = []  # where short live paths end, one step before the hubs
    for _ in range(16 * options.hubs):
        first, second, third = next(new), next(new), next(new)
        edges += [(first, 0, second), (second, 1, third)]
        feeders.append(third)
    hubs = [next(new) for _ in range(options.hubs)]
    exits: list[Edge] = []
    ends: list[Edge] = []
    for hub in hubs:
        for number in range(options.neighbours):
            near, far = next(new), next(new)
            edges += [(hub, 3, near), (near, 4, far)]
            if number < options.live:
                edges.append((far, 5, next(new)))
            if number < SWITCHED:
                exits.append((hub, 3, near))
                ends.append(edges[-1] if number < options.live else (far, 5, next(new)))
    entries = [(feeder, 2, hub) for feeder in feeders for hub in hubs]
    names = list(range(next(new)))
    rng.shuffle(names)
    rng.shuffle(edges)
    there = set(edges)
    stream: list[Row] = []
    for _ in range(options.updates):
        s, p, o = edge = rng.choice(rng.choices((entries, exits, ends), (8, 1, 1))[0])
        stream.append((DELETE if edge in there else INSERT, names[s], p, names[o]))
        there ^= {edge}
    initial = [(INSERT, names[s], p, names[o]) for s, p, o in edges]
    write(options, initial, stream, {"hub": HUB_QUERY}, {"nodes": len(names)})


# Files


def write(
    options: argparse.Namespace, initial: list[Row], stream: list[Row], queries: dict[str, str], about: dict[str, float]
) -> None:
    """The directory."""
    out: Path = options.out
    (out / "queries").mkdir(parents=True, exist_ok=True)
    for name, rows in (("initial", initial), ("updates", stream)):
        np.array(rows, "<i4").reshape(-1, 4).tofile(out / f"{name}.bin")
    with (out / "initial.nt").open("w", encoding="ascii") as file:
        file.writelines(f"{triple_text(row)} .\n" for row in initial)
    with (out / "updates.rdfp").open("w", encoding="ascii") as file:
        file.writelines(f"{'A' if row[0] == INSERT else 'D'} {triple_text(row)} .\n" for row in stream)
    for name, text in queries.items():
        patterns = text.split(" . ")
        (out / "queries" / f"{name}.rq").write_text(sparql(patterns), encoding="ascii")
        (out / "queries" / f"{name}.txt").write_text("\n".join(patterns) + "\n", encoding="ascii")
    asked = {key: value for key, value in vars(options).items() if key != "out"}
    (out / "about.json").write_text(json.dumps({**asked, "initial": len(initial), **about}, indent=1) + "\n")


def triple_text(row: Row) -> str:
    return f"<http://bench/n{row[1]}> <http://bench/p{row[2]}> <http://bench/n{row[3]}>"


def sparql(patterns: list[str]) -> str:
    """A SELECT of all variables, in the order of their numbers."""
    numbers = sorted({int(word[1:]) for pattern in patterns for word in pattern.split() if word[0] == "v"})
    lines = "".join(f"  ?{s} <http://bench/{p}> ?{o} .\n" for s, p, o in map(str.split, patterns))
    return f"SELECT {' '.join(f'?v{number}' for number in numbers)} WHERE {{\n{lines}}}\n"


if __name__ == "__main__":
    main()
