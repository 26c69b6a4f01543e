"""The plane in which a query graph is laid out: points, boxes, curves.

A point is a complex number, x to the right and y downwards, in pixels. Pure arithmetic: no notion of queries here.
"""

from __future__ import annotations

from dataclasses import dataclass

Point = complex
Box = tuple[Point, "Size"]


@dataclass(frozen=True, slots=True)
class Size:
    """The width and height of a box."""

    width: float
    height: float

    def reach(self, direction: Point) -> float:
        """How far it is from the centre to the border along a direction of length one.

        >>> Size(40, 20).reach(1 + 0j), Size(40, 20).reach(1j)
        (20.0, 10.0)
        """
        across, along = abs(direction.real), abs(direction.imag)
        by_width = self.width / 2 / across if across > 1e-9 else float("inf")
        by_height = self.height / 2 / along if along > 1e-9 else float("inf")
        return min(by_width, by_height)

    def grown(self, margin: float) -> Size:
        """The size with a margin on all four sides."""
        return Size(self.width + 2 * margin, self.height + 2 * margin)


@dataclass(frozen=True, slots=True)
class Curve:
    """A quadratic Bézier curve."""

    start: Point
    control: Point
    end: Point

    def split(self, share: float) -> tuple[Curve, Curve]:
        """The same curve as two, which meet after a share of the way (de Casteljau)."""
        left = self.start + share * (self.control - self.start)
        right = self.control + share * (self.end - self.control)
        middle = left + share * (right - left)
        return Curve(self.start, left, middle), Curve(middle, right, self.end)


def halves_through(start: Point, middle: Point, end: Point) -> tuple[Curve, Curve]:
    """A smooth curve by way of a point, as its two parts before and after it."""
    before, after = abs(middle - start), abs(end - middle)
    share = min(max(before / (before + after or 1.0), 0.1), 0.9)
    rest = 1 - share
    control = (middle - rest * rest * start - share * share * end) / (2 * share * rest)
    return Curve(start, control, end).split(share)


def unit(vector: Point) -> Point:
    """The direction of a vector; to the right for the null vector."""
    length = abs(vector)
    return vector / length if length > 1e-9 else 1 + 0j


def boxes_meet(left: Box, right: Box, gap: float = 0.0) -> bool:
    """Whether two boxes overlap or come closer than a gap."""
    (left_centre, left_size), (right_centre, right_size) = left, right
    apart = left_centre - right_centre
    across = (left_size.width + right_size.width) / 2 + gap - abs(apart.real)
    along = (left_size.height + right_size.height) / 2 + gap - abs(apart.imag)
    return across > 0 and along > 0


def segments_cross(first: tuple[Point, Point], second: tuple[Point, Point]) -> bool:
    """Whether two segments cross at a point inside both."""
    (a, b), (c, d) = first, second
    return _turn(a, b, c) * _turn(a, b, d) < 0 and _turn(c, d, a) * _turn(c, d, b) < 0


def segment_meets_box(start: Point, end: Point, box: Box) -> bool:
    """Whether a segment passes through a box (Liang and Barsky)."""
    centre, size = box
    enter, leave = 0.0, 1.0
    step, offset = end - start, start - centre
    for delta, begin, half in (
        (step.real, offset.real, size.width / 2),
        (step.imag, offset.imag, size.height / 2),
    ):
        if abs(delta) < 1e-9:
            if abs(begin) > half:
                return False
            continue
        near, far = sorted(((-half - begin) / delta, (half - begin) / delta))
        enter, leave = max(enter, near), min(leave, far)
    return enter < leave


def _turn(origin: Point, first: Point, second: Point) -> float:
    return ((first - origin).conjugate() * (second - origin)).imag
