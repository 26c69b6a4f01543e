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

    @classmethod
    def through(cls, start: Point, middle: Point, end: Point) -> Curve:
        """The curve that is at `middle` half of the way."""
        return cls(start, 2 * middle - (start + end) / 2, end)

    @property
    def middle(self) -> Point:
        return (self.start + 2 * self.control + self.end) / 4

    def halves(self) -> tuple[Curve, Curve]:
        """The same curve as two, which meet in the middle."""
        left, right = (self.start + self.control) / 2, (self.control + self.end) / 2
        return Curve(self.start, left, self.middle), Curve(self.middle, right, self.end)


def unit(vector: Point) -> Point:
    """The direction of a vector; to the right for the null vector."""
    length = abs(vector)
    return vector / length if length > 1e-9 else 1 + 0j


def overlap(left: Box, right: Box, gap: float = 0.0) -> Point:
    """How far two boxes reach into each other or come closer than `gap`: positive in both parts when they do."""
    (left_centre, left_size), (right_centre, right_size) = left, right
    apart = left_centre - right_centre
    return complex(
        (left_size.width + right_size.width) / 2 + gap - abs(apart.real),
        (left_size.height + right_size.height) / 2 + gap - abs(apart.imag),
    )


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
