"""How a node looks: a circle or pill for a variable, a box for a constant, a diamond for a predicate variable."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deltastar.explain.diagram import Node, Shape
from deltastar.explain.geometry import Point, Size
from deltastar.explain.markup import group, mono, mono_width, point, tag
from deltastar.explain.measure import printable, shorten
from deltastar.explain.palette import CARD, NEUTRAL, star_colour, tint

FONT = 13.0
LONGEST_LABEL = 28
SMALLEST_CIRCLE = 40.0
LARGEST_CIRCLE = 62.0
BOX_HEIGHT = 30.0
DIAMOND = Size(46.0, 34.0)


@dataclass(frozen=True, slots=True)
class Figure:
    """A node as it is drawn: what it says, and the room it takes."""

    node: Node
    label: str
    size: Size

    @classmethod
    def of(cls, node: Node) -> Figure:
        label = shorten(node.label, LONGEST_LABEL)
        return cls(node, label, _size(node.shape, mono_width(label, FONT)))

    @property
    def colour(self) -> str | None:
        """The colour of its star, if it is a variable."""
        return None if self.node.star is None else star_colour(self.node.star)

    def border(self, direction: Point) -> float:
        """How far it is from the centre to the outline along a direction of length one."""
        if self.node.shape is Shape.CONSTANT:
            return self.size.reach(direction)
        across, along = abs(direction.real), abs(direction.imag)
        half = self.size.height / 2
        top = half / along if along > 1e-9 else math.inf
        if self.node.shape is Shape.PREDICATE:
            slope = _point_of_diamond(self.size) / half
            return min(top, self.size.width / 2 / (across + slope * along))
        straight = self.size.width / 2 - half
        if top * across <= straight:
            return top
        return straight * across + math.sqrt(max(half * half - (straight * along) ** 2, 0.0))

    def draw(self, at: Point, dashed: bool = False) -> str:
        """The node with its centre at a point; dashed when its values are not shown."""
        colour = self.colour or NEUTRAL
        look = {
            "fill": tint(colour) if self.colour else CARD,
            "stroke": colour,
            "stroke_width": 2.5 if self.colour else 1.5,
            "stroke_dasharray": "5 3" if dashed else None,
        }
        label = mono(self.label, at, FONT, font_weight="bold" if self.colour else None)
        kind = self.node.shape.value.split()[0]
        return group([self._outline(at, look), label], printable(str(self.node.term)), class_=f"node {kind}")

    def _outline(self, at: Point, look: dict[str, object]) -> str:
        width, height = self.size.width, self.size.height
        if self.node.shape is Shape.VARIABLE and width == height:
            return tag("circle", cx=at.real, cy=at.imag, r=height / 2, **look)
        if self.node.shape is Shape.PREDICATE:
            corners = _diamond(self.size)
            return tag("polygon", points=" ".join(point(at + corner) for corner in corners), **look)
        corner = at - complex(width, height) / 2
        rounding = height / 2 if self.node.shape is Shape.VARIABLE else 5.0
        return tag("rect", x=corner.real, y=corner.imag, width=width, height=height, rx=rounding, **look)


def _size(shape: Shape, text: float) -> Size:
    if shape is Shape.CONSTANT:
        return Size(max(text + 20, BOX_HEIGHT), BOX_HEIGHT)
    if shape is Shape.PREDICATE:
        return Size(max(text + 30, DIAMOND.width), DIAMOND.height)
    if text + 16 <= LARGEST_CIRCLE:
        diameter = max(text + 16, SMALLEST_CIRCLE)
        return Size(diameter, diameter)
    return Size(text + 30, SMALLEST_CIRCLE - 4)


def _point_of_diamond(size: Size) -> float:
    """How long its pointed ends are: all of it when the label is short, so that it is a diamond."""
    return min(size.width / 2, DIAMOND.width / 2)


def _diamond(size: Size) -> list[Point]:
    width, height = size.width / 2, size.height / 2
    inner = width - _point_of_diamond(size)
    corners = [(width, 0), (inner, height), (-inner, height), (-width, 0), (-inner, -height), (inner, -height)]
    return list(dict.fromkeys(complex(x, y) for x, y in corners))
