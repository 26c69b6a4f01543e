"""The workloads: a graph, a query and messages, made by `generate.py` from a seed; what adapters need to read them.

All systems get the same files. `Query.unifies` says which rows match a pattern at all, and `Query.triggers` states the
delta rule for the adapters that need it written out: for each pattern that a changed triple can match (the trigger),
the others, and which of those must not match the changed triple itself: the later ones, so that each delta is found
once.
"""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import generate
import numpy as np

GRAPH_QUERIES = {
    "star": generate.QUERIES["star"],
    "path3": generate.QUERIES["path3"],
    "triangle": generate.QUERIES["triangle"],
    "cycle4": generate.QUERIES["cycle4"],
    "tree6": generate.QUERIES["tree6"],
    "selfpath": generate.QUERIES["selfpath"],
    "selfcycle4": generate.QUERIES["selfcycle4"],
}
LABEL_QUERIES = {
    "simplestar": "v0 p0 c0 . v0 p1 c0 . v0 p2 c0",
    "product": "c8 p5 c9 . v0 p0 c4 . v0 p1 c4 . v1 p6 v2 . v2 p3 c6",
}
"""Over the graph of `write_labels`; a constant c<id> is the node n<id>."""
QUERIES = ("simplestar", "star", "path3", "triangle", "cycle4", "tree6", "selfpath", "product")
"""The classes that are compared unless others are asked for."""
LABELS = 8
LABEL_SHARES = [2.0**-rank for rank in range(1, LABELS)] + [2.0 ** (1 - LABELS)]
LABEL_PREDICATES, EDGE_PREDICATES = 5, 2
GATE = (8, 5, 9)
"""The triple that the ground part of `product` asks for."""
GATE_CHANGES = 40
"""How often it goes and comes back in the messages drawn; it is there at first."""
STREAM_FACTOR = 15
"""Messages drawn for each one that is asked for: the rarest query matches a tenth of them."""


class Pattern(NamedTuple):
    """Terms as in RDF Patch, or variables `v0`, `v1`, …; predicates are constant."""

    s: str
    p: str
    o: str

    def matches(self, s: str, p: str, o: str) -> bool:
        """A triple can match it."""
        return (
            p == self.p
            and (is_variable(self.s) or s == self.s)
            and (is_variable(self.o) or o == self.o)
            and (self.s != self.o or s == o)
        )

    @property
    def is_open(self) -> bool:
        """Every triple with the predicate matches."""
        return is_variable(self.s) and is_variable(self.o) and self.s != self.o


class Trigger(NamedTuple):
    """A pattern that the changed triple is matched with, and the others, each with whether it must not match it."""

    pattern: Pattern
    others: tuple[tuple[Pattern, bool], ...]


class Query:
    """Patterns, from a line each."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.patterns = [Pattern(*map(full_term, line.split())) for line in text.replace(" . ", "\n").splitlines()]
        numbers = {int(term[1:]) for pattern in self.patterns for term in pattern if is_variable(term)}
        self.variables = [f"v{number}" for number in sorted(numbers)]
        self.by_predicate: dict[str, list[Pattern]] = {}
        for pattern in self.patterns:
            self.by_predicate.setdefault(pattern.p, []).append(pattern)
        self.predicates = list(self.by_predicate)
        self.partly = {p for p, patterns in self.by_predicate.items() if not all(x.is_open for x in patterns)}
        """Predicates of which only some triples match."""

    def unifies(self, s: str, p: str, o: str) -> bool:
        """Some pattern can match the triple."""
        return any(pattern.matches(s, p, o) for pattern in self.by_predicate.get(p, ()))

    def triggers(self, predicate: str) -> Iterator[Trigger]:
        """All ways in which a triple with that predicate can be the changed one."""
        for place, pattern in enumerate(self.patterns):
            if pattern.p == predicate:
                others = [
                    (other, at > place and other.p == predicate)
                    for at, other in enumerate(self.patterns)
                    if at != place
                ]
                yield Trigger(pattern, tuple(connected_first(pattern, others)))

    def sparql(self) -> str:
        """All variables, in the order of their numbers."""
        variables = " ".join(f"?{variable}" for variable in self.variables)
        lines = "".join(f"  {sparql_term(s)} {p} {sparql_term(o)} .\n" for s, p, o in self.patterns)
        return f"SELECT {variables} WHERE {{\n{lines}}}\n"


def connected_first(first: Pattern, others: list[tuple[Pattern, bool]]) -> Iterator[tuple[Pattern, bool]]:
    """In an order of joins: those with the most bound variables first, and of these those with the most constants."""
    bound, left = {first.s, first.o}, list(others)

    def selectivity(entry: tuple[Pattern, bool]) -> tuple[int, int]:
        variables = [term for term in (entry[0].s, entry[0].o) if is_variable(term)]
        return sum(variable in bound for variable in variables), 2 - len(variables)

    while left:
        chosen = max(left, key=selectivity)
        left.remove(chosen)
        bound |= {chosen[0].s, chosen[0].o}
        yield chosen


def is_variable(term: str) -> bool:
    return term[0] == "v"


def full_term(word: str) -> str:
    """`c7` is a node and `p7` a predicate; variables stay."""
    return word if word[0] == "v" else f"<http://bench/{'n' if word[0] == 'c' else 'p'}{word[1:]}>"


def sparql_term(term: str) -> str:
    return f"?{term}" if is_variable(term) else term


# Files


class Workload(NamedTuple):
    """What one query is measured with."""

    query: Query
    initial: Path
    warm: Path
    timed: Path


def read(directory: Path) -> Workload:
    """A workload that `prepare` wrote."""
    name = directory.name.split("-")[0]
    text = (directory / "query.txt").read_text(encoding="ascii")
    initial = directory / (directory / "initial").read_text(encoding="ascii")
    return Workload(Query(name, text), initial, directory / "warm.rdfp", directory / "timed.rdfp")


def prepare(name: str, out: Path, options: argparse.Namespace, updates: int) -> Path:
    """Writes a workload, unless it is there: `options.warm` messages and then that many timed ones.

    With `options.relevant`, triples are left out of the stream until that share of the messages matches a pattern:
    all or none of the messages about one triple, so that an insertion stays new and a deletion stays one of a triple
    that is there.
    """
    kind = "labels" if name in LABEL_QUERIES else "graph"
    wanted = options.warm + updates
    source = out / f"{kind}-{options.triples}-{options.deletions}-{wanted}-{options.seed}"
    if not (source / "about.json").exists():
        arguments = ["graph", "--triples", str(options.triples), "--updates", str(wanted * STREAM_FACTOR)]
        arguments += ["--deletions", str(options.deletions), "--seed", str(options.seed), "--out", str(source)]
        parsed = generate.parse(arguments)
        (write_labels if kind == "labels" else generate.write_graph)(parsed)
    share = "mixed" if options.relevant is None else options.relevant
    directory = source / f"{name}-{share}-{options.warm}"
    if (directory / "initial").exists():
        return directory
    directory.mkdir(exist_ok=True)
    text = {**GRAPH_QUERIES, **LABEL_QUERIES}[name]
    query = Query(name, text)
    rows = list(thinned(source / "updates.rdfp", query, options.relevant, wanted))
    if len(rows) < wanted:
        raise SystemExit(f"only {len(rows)} of {wanted} messages of {name} with --relevant {options.relevant}")
    for part, chosen in (("warm", rows[: options.warm]), ("timed", rows[options.warm :])):
        (directory / f"{part}.rdfp").write_text("".join(chosen), encoding="ascii")
        plain = "".join(row[2:] for row in chosen)  # for a parser that knows no RDF Patch
        (directory / f"{part}.nt").write_text(plain, encoding="ascii")
    (directory / "query.txt").write_text(text.replace(" . ", "\n") + "\n", encoding="ascii")
    (directory / f"{name}.rq").write_text(query.sparql(), encoding="ascii")
    (directory / "initial").write_text("../initial.nt", encoding="ascii")
    return directory


def thinned(path: Path, query: Query, share: float | None, wanted: int) -> Iterator[str]:
    """Rows of a stream, such that about that share of them matches a pattern."""
    keep_relevant = keep_other = 1.0
    if share is not None:
        relevant = sum(query.unifies(s, p, o) for _, s, p, o in messages(path))
        other = sum(1 for _ in messages(path)) - relevant
        keep_relevant = min(1.0, share * other / max((1 - share) * relevant, 1e-9))
        keep_other = min(1.0, (1 - share) * relevant / max(share * other, 1e-9))
    kept = 0
    with path.open(encoding="ascii") as file:
        for row in file:
            _, s, p, o, _ = row.split(" ")
            keep = keep_relevant if query.unifies(s, p, o) else keep_other
            if keep == 1 or zlib.crc32(row[2:].encode()) < keep * 2**32:
                kept += 1
                yield row
            if kept == wanted:
                return


def messages(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """`A` or `D`, and the terms."""
    with path.open(encoding="ascii") as file:
        for line in file:
            op, s, p, o, _ = line.split(" ")
            yield op, s, p, o


def triples(path: Path, query: Query) -> Iterator[tuple[str, str, str]]:
    """Those of an N-Triples file that match a pattern."""
    with path.open(encoding="ascii") as file:
        for line in file:
            s, p, o, _ = line.split(" ")
            if p in query.by_predicate and query.unifies(s, p, o):
                yield s, p, o


def write_labels(options: argparse.Namespace) -> None:
    """A graph of nodes with labels, for queries with constants; `options` are those of `generate.py graph`.

    Predicates 0 … 4 lead to one of eight label nodes, each half as frequent as the one before; predicates 6 and 7 from
    any node to any other; predicate 5 is only in the triple of a ground pattern, which comes and goes.
    """
    rng = np.random.default_rng(options.seed)
    chance = random.Random(options.seed)
    nodes, total = options.nodes, LABEL_PREDICATES + EDGE_PREDICATES

    def keys(count: int) -> list[int]:
        predicate = rng.integers(0, total, count)
        labels = rng.choice(LABELS, count, p=LABEL_SHARES)
        s = rng.integers(LABELS + 2, nodes, count)
        o = np.where(predicate < LABEL_PREDICATES, labels, rng.integers(LABELS + 2, nodes, count))
        predicate += predicate >= LABEL_PREDICATES
        return ((predicate * nodes + s) * nodes + o).tolist()  # type: ignore[no-any-return]

    def row(op: int, key: int) -> generate.Row:
        ends, o = divmod(key, nodes)
        p, s = divmod(ends, nodes)
        return op, s, p, o

    there: dict[int, None] = {}
    while len(there) < options.triples:
        there.update(dict.fromkeys(keys(options.triples - len(there) + 10)))
    present = list(there)[: options.triples - 1]
    initial = [(generate.INSERT, *GATE), *(row(generate.INSERT, key) for key in present)]
    stream = []
    is_open, period = True, max(options.updates // GATE_CHANGES, 1)
    for number, (op, key) in enumerate(changes(present, keys, options, chance)):
        if number % period == period // 2:
            stream.append((generate.DELETE if is_open else generate.INSERT, *GATE))
            is_open = not is_open
        stream.append(row(op, key))
    generate.write(options, initial, stream, {}, {})


def changes(present: list[int], keys, options: argparse.Namespace, rng: random.Random) -> Iterator[tuple[int, int]]:  # type: ignore[no-untyped-def]
    """Operations and keys, as those of `generate.updates`."""
    there = set(present)
    fresh: list[int] = []
    for _ in range(options.updates):
        if present and rng.random() < options.deletions:
            place = rng.randrange(len(present))
            key, present[place] = present[place], present[-1]
            present.pop()
            there.remove(key)
            yield generate.DELETE, key
            continue
        while True:
            fresh = fresh or keys(1 << 16)
            key = fresh.pop()
            if key not in there:
                break
        present.append(key)
        there.add(key)
        yield generate.INSERT, key
