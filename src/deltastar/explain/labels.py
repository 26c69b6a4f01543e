"""Better places for labels: each may slide along its edge to where it hides no other edge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from deltastar.explain.geometry import Box, Point, Size, boxes_meet, segment_meets_box, unit
from deltastar.explain.spread import GAP, NODE_MARGIN, Edge

PLACES = (0.5, 0.44, 0.56, 0.38, 0.62, 0.32, 0.68)
HIDDEN_EDGE, BEND, OFF_MIDDLE = 80.0, 1.5, 60.0


def slide(nodes: Sequence[Point], sizes: Sequence[Size], edges: Sequence[Edge], labels: Sequence[Point]) -> list[Point]:
    """The labels' places, improved one after the other. Those of parallel edges, which are curved, stay."""
    places = list(labels)
    crowded = [(at, size.grown(NODE_MARGIN)) for at, size in zip(nodes, sizes, strict=True)]
    pairs = Counter(frozenset(edge[:2]) for edge in edges)
    for index, (source, target, size) in enumerate(edges):
        if not size.width or pairs[frozenset((source, target))] > 1:
            continue
        begin, end = _visible(nodes, sizes, source, target)
        taken = crowded + [(places[other], edge[2]) for other, edge in enumerate(edges) if other != index]
        choices = [(BEND * abs(places[index] - (begin + end) / 2), places[index])]
        for share in PLACES:
            spot = begin + share * (end - begin)
            if not any(boxes_meet((spot, size), box, GAP - 1) for box in taken if box[1].width):
                choices.append((OFF_MIDDLE * abs(share - 0.5), spot))
        costs = [cost + _hidden(nodes, edges, places, index, (spot, size)) for cost, spot in choices]
        places[index] = choices[costs.index(min(costs))][1]
    return places


def _visible(nodes: Sequence[Point], sizes: Sequence[Size], source: int, target: int) -> tuple[Point, Point]:
    """Where the straight line between two nodes leaves one box and enters the other."""
    direction = unit(nodes[target] - nodes[source])
    begin = nodes[source] + direction * sizes[source].reach(direction)
    return begin, nodes[target] - direction * sizes[target].reach(direction)


def _hidden(nodes: Sequence[Point], edges: Sequence[Edge], places: Sequence[Point], index: int, box: Box) -> float:
    """What it costs that a label in this place covers other edges."""
    covered = 0
    for other, (source, target, _) in enumerate(edges):
        if other != index:
            middle = places[other]
            covered += segment_meets_box(nodes[source], middle, box) or segment_meets_box(middle, nodes[target], box)
    return HIDDEN_EDGE * covered
