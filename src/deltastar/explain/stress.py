"""Where the nodes of a connected graph go: stress majorisation (Gansner, Koren and North, 2004).

Each pair of nodes wants to be as far apart as the shortest way between them is long; an edge is long enough for its
label, which takes more room lying than standing, so the lengths follow the directions as they settle.
"""

from __future__ import annotations

import cmath
import math
import random
from collections.abc import Sequence

from deltastar.explain.geometry import Point, Size, unit

Edge = tuple[int, int, Size]

ROUNDS = ((24, True), (24, False), (24, False), (12, False))
"""Sweeps with the same lengths, and whether to turn the picture so that it is wider than high afterwards."""
LARGE = 80
ROUNDS_IF_LARGE = ((12, True), (8, False))
ROOM_FOR_ARROW = 24.0
SHORTEST = 34.0
LONGEST = 900.0
"""No two nodes want to be further apart: a long chain bends instead of leaving the page."""


def settle(sizes: Sequence[Size], edges: Sequence[Edge], start: int) -> list[Point]:
    """The centres of the nodes. The graph must be connected; `start` chooses the placement to begin with."""
    points = _first_points(_distances(sizes, edges, None), edges, start)
    firmness = _firmness(len(sizes), edges)
    for sweeps, turn in ROUNDS if len(sizes) < LARGE else ROUNDS_IF_LARGE:
        distances = _distances(sizes, edges, points)
        for _ in range(sweeps):
            _sweep(points, distances, firmness)
        if turn:
            points = _turned_wide(points)
    return points


def _sweep(points: list[Point], distances: Sequence[Sequence[float]], firmness: Sequence[Sequence[float]]) -> None:
    """Moves each node in turn to where its distances, weighted by their inverse squares, would have it."""
    for node, ideals in enumerate(distances):
        here, total, weights = points[node], 0j, 0.0
        for other, (ideal, firm) in enumerate(zip(ideals, firmness[node], strict=True)):
            if other == node:
                continue
            there = points[other]
            apart = here - there
            length = abs(apart)
            weight = firm / (ideal * ideal)
            total += weight * (there + (ideal / length * apart if length > 1e-9 else complex(ideal, 0)))
            weights += weight
        if weights:
            points[node] = total / weights


def _firmness(count: int, edges: Sequence[Edge]) -> list[list[float]]:
    """How much more the length of an edge counts than other distances.

    The more neighbours a node has, the more they push each other away: without this they would settle in several
    rings around it, and edges to the outer ring would pass through the inner one.
    """
    neighbours = _neighbours(count, edges)
    table = [[1.0] * count for _ in range(count)]
    for source, target, _ in edges:
        firm = 1.0 + max(len(neighbours[source]), len(neighbours[target])) / 2
        table[source][target] = table[target][source] = firm
    return table


def _distances(sizes: Sequence[Size], edges: Sequence[Edge], points: Sequence[Point] | None) -> list[list[float]]:
    """The length of the shortest way between each two nodes (Floyd and Warshall)."""
    count = len(sizes)
    table = [[0.0 if row == column else math.inf for column in range(count)] for row in range(count)]
    lengths: dict[tuple[int, int], float] = {}
    for source, target, label in edges:
        direction = unit(points[target] - points[source]) if points else unit(1 + 1j)
        pair = (min(source, target), max(source, target))
        length = _length(sizes[source], sizes[target], label, direction)
        lengths[pair] = max(length, lengths.get(pair, 0.0))
    for (source, target), length in lengths.items():
        table[source][target] = table[target][source] = length
    for middle in range(count):
        through = table[middle]
        for row in table:
            first = row[middle]
            if first < math.inf:
                row[:] = [min(known, first + second) for known, second in zip(row, through, strict=True)]
    return [[min(length, LONGEST) for length in row] for row in table]


def _length(source: Size, target: Size, label: Size, direction: Point) -> float:
    inner = 2 * label.reach(direction) + 2 * ROOM_FOR_ARROW if label.width else SHORTEST
    return source.reach(direction) + target.reach(direction) + inner


def _first_points(distances: Sequence[Sequence[float]], edges: Sequence[Edge], start: int) -> list[Point]:
    count = len(distances)
    if start == 0:
        return _radial(distances, edges)
    if start == 1:
        return _scaled(distances)
    scale = 40.0 * math.sqrt(count)
    source = random.Random(start)
    return [complex(source.uniform(-scale, scale), source.uniform(-scale, scale)) for _ in range(count)]


def _radial(distances: Sequence[Sequence[float]], edges: Sequence[Edge]) -> list[Point]:
    """Around the node with most neighbours, each branch in a sector as wide as it has leaves: no tree crosses."""
    neighbours = _neighbours(len(distances), edges)
    root = max(range(len(distances)), key=lambda node: (len(neighbours[node]), -sum(distances[node])))
    order, parent = [root], {root: root}
    for node in order:  # breadth first: grows while it is walked
        fresh = [other for other in sorted(neighbours[node]) if other not in parent]
        parent.update(dict.fromkeys(fresh, node))
        order += fresh
    leaves = [0] * len(distances)
    for node in reversed(order):
        leaves[node] = max(leaves[node], 1)
        if node != root:
            leaves[parent[node]] += leaves[node]
    points = [0j] * len(distances)
    begin, taken = {root: 0.0}, {root: 0.0}
    for node in order[1:]:
        above = parent[node]
        begin[node], taken[node] = begin[above] + taken[above], 0.0
        sector = 2 * math.pi * leaves[node] / leaves[root]
        taken[above] += sector
        points[node] = cmath.rect(distances[root][node], begin[node] + sector / 2)
    return points


def _scaled(distances: Sequence[Sequence[float]]) -> list[Point]:
    """Classical scaling: the two leading eigenvectors of the doubly centred squares, by power iteration."""
    count = len(distances)
    squares = [[distance * distance for distance in row] for row in distances]
    means = [sum(row) / count for row in squares]
    mean = sum(means) / count
    matrix = [
        [(means[row] + means[column] - mean - squares[row][column]) / 2 for column in range(count)]
        for row in range(count)
    ]
    source = random.Random(0)
    axes: list[list[float]] = []
    for _ in range(2):
        vector = [source.uniform(-1, 1) for _ in range(count)]
        for _ in range(40):
            vector = [_dot(row, vector) for row in matrix]
            for axis in axes:
                share = _dot(axis, vector)
                vector = [value - share * along for value, along in zip(vector, axis, strict=True)]
            norm = math.sqrt(_dot(vector, vector)) or 1.0
            vector = [value / norm for value in vector]
        axes.append(vector)
    scale = math.sqrt(max(mean, 1.0) * count / 2)
    return [complex(x, y) * scale for x, y in zip(*axes, strict=True)]


def _turned_wide(points: Sequence[Point]) -> list[Point]:
    """The points turned so that they spread most from left to right."""
    centre = sum(points) / len(points)
    spread = sum((point - centre) ** 2 for point in points)
    turn = cmath.exp(-0.5j * cmath.phase(spread)) if abs(spread) > 1e-6 else 1
    return [(point - centre) * turn for point in points]


def _neighbours(count: int, edges: Sequence[Edge]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for source, target, _ in edges:
        neighbours[source].add(target)
        neighbours[target].add(source)
    return neighbours


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(first * second for first, second in zip(left, right, strict=True))
