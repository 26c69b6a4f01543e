"""From the boxes of a graph to their places: no two boxes overlap, edges cross seldom, the same input gives the same.

The connected pieces are laid out one by one, from several placements to begin with, of which the best result is
taken; then they are packed in rows. Edges from a node to itself are led through a place of their own beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from deltastar.explain.geometry import Point, Size, segment_meets_box, segments_cross
from deltastar.explain.labels import slide
from deltastar.explain.spread import Edge, spread
from deltastar.explain.stress import settle

EFFORT = 2400
MOST_STARTS = 8
LARGE = 100
SCALES = (1.0, 1.12, 1.25, 1.4)
PIECE_GAP = 28.0
CROSSING, THROUGH_NODE, THROUGH_LABEL, BEND = 80.0, 250.0, 80.0, 1.5


@dataclass(frozen=True, slots=True)
class Layout:
    """The centres of the nodes and of the edges' labels, in a picture whose upper left corner is 0."""

    size: Size
    nodes: tuple[Point, ...]
    labels: tuple[Point, ...]


def lay_out(sizes: Sequence[Size], edges: Sequence[Edge]) -> Layout:
    """Where the nodes and the edges' labels go. An edge is (source, target, size of its label, 0 by 0 for none)."""
    node_points: dict[int, Point] = {}
    label_points: dict[int, Point] = {}
    pieces = []
    for members in _pieces(len(sizes), edges):
        inside = [index for index, edge in enumerate(edges) if edge[0] in members]
        pieces.append((members, inside, _lay_out_piece(sizes, edges, members, inside)))
    corners, size = pack([layout.size for _, _, layout in pieces], PIECE_GAP)
    for corner, (members, inside, layout) in zip(corners, pieces, strict=True):
        node_points.update((node, corner + at) for node, at in zip(members, layout.nodes, strict=True))
        label_points.update((edge, corner + at) for edge, at in zip(inside, layout.labels, strict=True))
    return Layout(
        size,
        tuple(node_points[node] for node in range(len(sizes))),
        tuple(label_points[edge] for edge in range(len(edges))),
    )


def pack(sizes: Sequence[Size], gap: float) -> tuple[list[Point], Size]:
    """The upper left corners of boxes put together without much waste, and the size of the whole.

    >>> pack([Size(30, 20), Size(10, 10), Size(10, 5)], gap=5)
    ([0j, (35+0j), (35+15j)], Size(width=45.0, height=20.0))
    """
    widest = max(size.width for size in sizes)
    area = sum((size.width + gap) * (size.height + gap) for size in sizes)
    limits = {max(widest, factor * area**0.5) for factor in (1.0, 1.3, 1.6, 2.0)}
    packings = [_pack_within(sizes, gap, limit) for limit in sorted(limits)]
    return min(packings, key=lambda packing: packing[1].width + 1.5 * packing[1].height)


def _pack_within(sizes: Sequence[Size], gap: float, limit: float) -> tuple[list[Point], Size]:
    """Each box goes as high as it can, right of or below one that is there."""
    placed: list[tuple[Point, Size]] = []
    for size in sizes:
        below = max((corner.imag + other.height + gap for corner, other in placed), default=0.0)
        spots = [0j, complex(0, below)]
        for corner, other in placed:
            spots.append(complex(corner.real + other.width + gap, corner.imag))
            spots.append(complex(corner.real, corner.imag + other.height + gap))
        fitting = [
            spot
            for spot in spots
            if (spot.real + size.width <= limit or spot.real == 0)
            and not any(_too_close((spot, size), box, gap) for box in placed)
        ]
        placed.append((min(fitting, key=lambda spot: (spot.imag, spot.real)), size))
    right = max(corner.real + size.width for corner, size in placed)
    bottom = max(corner.imag + size.height for corner, size in placed)
    return [corner for corner, _ in placed], Size(right, bottom)


def _too_close(one: tuple[Point, Size], other: tuple[Point, Size], gap: float) -> bool:
    """Whether boxes given by their corners overlap or leave less than the gap between them."""
    (a, first), (b, second) = one, other
    slack = gap - 1e-6
    return (
        a.real < b.real + second.width + slack
        and b.real < a.real + first.width + slack
        and a.imag < b.imag + second.height + slack
        and b.imag < a.imag + first.height + slack
    )


def _pieces(count: int, edges: Sequence[Edge]) -> list[list[int]]:
    """The nodes that edges connect, in the order of the first node of each piece."""
    leader = list(range(count))
    for source, target, _ in edges:
        old, new = leader[source], leader[target]
        leader = [new if name == old else name for name in leader]
    groups: dict[int, list[int]] = {}
    for node, name in enumerate(leader):
        groups.setdefault(name, []).append(node)
    return list(groups.values())


def _lay_out_piece(
    sizes: Sequence[Size], edges: Sequence[Edge], members: Sequence[int], inside: Sequence[int]
) -> Layout:
    """The layout of one connected piece. A loop becomes a node the size of its label, tied to its owner."""
    position = {node: index for index, node in enumerate(members)}
    boxes = [sizes[node] for node in members]
    plain: list[Edge] = []
    place: list[tuple[bool, int]] = []  # for each edge inside: is it a loop, and at which index is its label
    for source, target, label in (edges[index] for index in inside):
        if source == target:
            place.append((True, len(boxes)))
            plain.append((position[source], len(boxes), Size(0, 0)))
            boxes.append(label if label.width else Size(20, 20))
        else:
            place.append((False, len(plain)))
            plain.append((position[source], position[target], label))
    nodes, labels = min(_candidates(boxes, plain), key=lambda candidate: _cost(boxes, plain, *candidate))
    labels = slide(nodes, boxes, plain, labels)
    nodes, labels = _facing_right(nodes, labels, plain)
    at_labels = [nodes[index] if loop else labels[index] for loop, index in place]
    return _from_corner(boxes, plain, nodes, labels, len(members), at_labels)


def _candidates(boxes: Sequence[Size], edges: Sequence[Edge]) -> Iterator[tuple[list[Point], list[Point]]]:
    """Layouts to choose from: the fewer, the larger the graph, and only one where it is past drawing well.

    A layout at a larger scale has straighter edges, since its labels find room without moving.
    """
    count = len(boxes) + len(edges)
    starts = max(2, min(MOST_STARTS, EFFORT // count**2)) if 3 < count < LARGE else 1
    for start in range(starts):
        centres = settle(boxes, edges, start)
        for scale in SCALES if count < LARGE else SCALES[-1:]:
            yield spread([scale * centre for centre in centres], boxes, edges)


def _cost(boxes: Sequence[Size], edges: Sequence[Edge], nodes: Sequence[Point], labels: Sequence[Point]) -> float:
    """How bad a layout is: crossings, edges through boxes, bends, area."""
    halves = [
        [(nodes[source], label), (label, nodes[target])]
        for (source, target, _), label in zip(edges, labels, strict=True)
    ]
    cost = 0.0
    for one, other in combinations(range(len(edges)), 2):
        if not {*edges[one][:2]} & {*edges[other][:2]}:
            cost += CROSSING * sum(segments_cross(a, b) for a in halves[one] for b in halves[other])
    for index, ((source, target, _), label) in enumerate(zip(edges, labels, strict=True)):
        ends = (source, target)
        for node, box in enumerate(boxes):
            if node not in ends and _meets(halves[index], nodes[node], box):
                cost += THROUGH_NODE
        for other, (_, _, size) in enumerate(edges):
            if other != index and size.width and _meets(halves[index], labels[other], size):
                cost += THROUGH_LABEL
        cost += BEND * max(0.0, abs(label - (nodes[source] + nodes[target]) / 2) - 5)
    size = _bounds(nodes, boxes)[1]
    return cost + 0.4 * (size.width + 1.5 * size.height)


def _meets(segments: Iterable[tuple[Point, Point]], centre: Point, size: Size) -> bool:
    return any(segment_meets_box(start, end, (centre, size)) for start, end in segments)


def _facing_right(
    nodes: Sequence[Point], labels: Sequence[Point], edges: Sequence[Edge]
) -> tuple[list[Point], list[Point]]:
    """The picture mirrored so that edges run rather from left to right and from top to bottom."""
    run = sum((nodes[target] - nodes[source] for source, target, _ in edges), 0j)
    across, along = (-1 if run.real < 0 else 1), (-1 if run.imag < 0 else 1)

    def mirrored(point: Point) -> Point:
        return complex(across * point.real, along * point.imag)

    return [mirrored(point) for point in nodes], [mirrored(point) for point in labels]


def _from_corner(
    boxes: Sequence[Size],
    edges: Sequence[Edge],
    nodes: Sequence[Point],
    labels: Sequence[Point],
    members: int,
    at_labels: Sequence[Point],
) -> Layout:
    corner, size = _bounds([*nodes, *labels], [*boxes, *[label for _, _, label in edges]])
    return Layout(
        size, tuple(point - corner for point in nodes[:members]), tuple(point - corner for point in at_labels)
    )


def _bounds(points: Sequence[Point], boxes: Sequence[Size]) -> tuple[Point, Size]:
    """The upper left corner and the size of what the boxes cover."""
    left = min(point.real - box.width / 2 for point, box in zip(points, boxes, strict=True))
    top = min(point.imag - box.height / 2 for point, box in zip(points, boxes, strict=True))
    right = max(point.real + box.width / 2 for point, box in zip(points, boxes, strict=True))
    bottom = max(point.imag + box.height / 2 for point, box in zip(points, boxes, strict=True))
    return complex(left, top), Size(right - left, bottom - top)
