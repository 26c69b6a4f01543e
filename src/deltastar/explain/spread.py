"""Room for every box: nodes and labels that overlap are pushed apart, and labels stay near the middle of their edge.

Labels of several edges between the same two nodes start side by side, so that these edges curve apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from deltastar.explain.geometry import Point, Size, unit

GAP = 10.0
NODE_MARGIN = 6.0
LABEL_SHARE = 0.8
STEPS = 40
SETTLING_STEPS = 24
GROWTH = 1.06
LARGE, GROWTH_IF_LARGE = 80, 1.4
ATTEMPTS = 60
TOLERANCE = 0.25
UNLABELLED = Size(26.0, 26.0)

Edge = tuple[int, int, Size]


def spread(centres: Sequence[Point], sizes: Sequence[Size], edges: Sequence[Edge]) -> tuple[list[Point], list[Point]]:
    """The centres of nodes and of labels, with no two boxes closer than a gap; the picture grows if it must."""
    ranks = parallel_ranks(edges)
    nodes = list(centres)
    for _ in range(ATTEMPTS):
        settled, labels = _separate(nodes, sizes, edges, ranks)
        if labels or not edges:
            return settled, labels
        nodes = [point * (GROWTH if len(sizes) < LARGE else GROWTH_IF_LARGE) for point in settled]
    return nodes, _rests(nodes, sizes, edges, ranks)


def _separate(
    centres: Sequence[Point], sizes: Sequence[Size], edges: Sequence[Edge], ranks: Sequence[float]
) -> tuple[list[Point], list[Point]]:
    """Pushes until nothing overlaps; no labels when that does not come to an end."""
    count = len(centres)
    boxes = [size.grown(NODE_MARGIN) for size in sizes] + [label for _, _, label in edges]
    points = [*centres, *_rests(centres, sizes, edges, ranks)]
    for step in range(STEPS):
        drift = 0.25 * max(0.0, 1 - step / SETTLING_STEPS)
        rests = _rests(points, sizes, edges, ranks) if drift else []
        for index, rest in enumerate(rests, count):
            points[index] += drift * (rest - points[index])
        if not _push(points, boxes, count):
            return points[:count], points[count:]
    return points[:count], []


def parallel_ranks(edges: Sequence[Edge]) -> list[float]:
    """For each edge, on which side of the straight line it runs: 0 if alone, …, -1, 0, 1, … among its parallels."""
    groups: dict[tuple[int, int], list[int]] = {}
    for index, (source, target, _) in enumerate(edges):
        groups.setdefault((min(source, target), max(source, target)), []).append(index)
    ranks = [0.0] * len(edges)
    for members in groups.values():
        for position, index in enumerate(members):
            ranks[index] = position - (len(members) - 1) / 2
    return ranks


def _rests(
    points: Sequence[Point], sizes: Sequence[Size], edges: Sequence[Edge], ranks: Sequence[float]
) -> list[Point]:
    """Where the labels would like to be: in the middle of what is seen of the edge, or beside it."""
    rests = []
    for (source, target, label), rank in zip(edges, ranks, strict=True):
        low, high = points[min(source, target)], points[max(source, target)]
        direction = unit(high - low)
        begin = low + direction * sizes[min(source, target)].reach(direction)
        end = high - direction * sizes[max(source, target)].reach(direction)
        normal = direction * 1j
        box = label if label.width else UNLABELLED
        rests.append((begin + end) / 2 + rank * normal * (2 * box.reach(normal) + GAP))
    return rests


def _push(points: list[Point], boxes: Sequence[Size], nodes: int) -> bool:
    """Pushes overlapping boxes apart along the shorter way; a label gives way to a node. True if there were any."""
    found = False
    for one, box in enumerate(boxes):
        if not box.width:
            continue
        for other in range(one + 1, len(boxes)):
            if not boxes[other].width:
                continue
            apart = points[one] - points[other]
            across = (box.width + boxes[other].width) / 2 + GAP - abs(apart.real)
            along = (box.height + boxes[other].height) / 2 + GAP - abs(apart.imag)
            if across <= 0 or along <= 0:
                continue
            found = found or min(across, along) > TOLERANCE
            if across < along:
                shift = complex(across if apart.real >= 0 else -across, 0)
            else:
                shift = complex(0, along if apart.imag >= 0 else -along)
            share = 0.5 if (one < nodes) == (other < nodes) else 1 - LABEL_SHARE
            points[one] += shift * share
            points[other] -= shift * (1 - share)
    return found
