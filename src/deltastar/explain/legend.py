"""What the colours and signs of the picture mean: only those that are in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from deltastar.explain.diagram import Panel, Shape, Stroke
from deltastar.explain.geometry import Point, Size
from deltastar.explain.markup import group, point, sans, sans_width, tag
from deltastar.explain.measure import printable, shorten
from deltastar.explain.palette import CARD, INK, NEUTRAL, star_colour, tint
from deltastar.explain.shapes import LONGEST_LABEL
from deltastar.explain.wording import count
from deltastar.plan.decompose import Plan

FONT = 12.0
ROW = 22.0
SIGN_WIDTH = 26.0
ENTRY_GAP = 22.0
SAMPLE_COLOURS = (star_colour(0), star_colour(1))


@dataclass(frozen=True, slots=True)
class Entry:
    """A sign and what it means. `sign` draws it around a point."""

    sign: Callable[[Point], str]
    text: str

    @property
    def width(self) -> float:
        return SIGN_WIDTH + sans_width(self.text, FONT) + ENTRY_GAP

    def draw(self, at: Point) -> str:
        words = sans(self.text, at + complex(SIGN_WIDTH, 4), FONT, fill=INK)
        return group([self.sign(at + SIGN_WIDTH / 2 - 4), words])


def draw_legend(plan: Plan, panels: Sequence[Panel], at: Point, width: float) -> tuple[list[str], Size]:
    """The legend with its upper left corner at a point, and the room it takes."""
    parts: list[str] = []
    down = right = 0.0
    for entries, aligned in ((_star_entries(plan), True), (_sign_entries(plan, panels), False)):
        places, room = _flow(entries, width, aligned)
        parts += [entry.draw(at + 1j * down + place) for entry, place in zip(entries, places, strict=True)]
        down, right = down + room.height, max(right, room.width)
    return [group(parts, class_="legend")] if parts else [], Size(right, down)


def _flow(entries: Sequence[Entry], width: float, aligned: bool) -> tuple[list[Point], Size]:
    """Where the entries go, row by row; aligned, in columns as wide as the widest of them."""
    widest = max((entry.width for entry in entries), default=0.0)
    places: list[Point] = []
    x, y, right = 0.0, ROW / 2, 0.0
    for entry in entries:
        step = widest if aligned else entry.width
        if x and x + step - ENTRY_GAP > width:
            x, y = 0.0, y + ROW
        places.append(complex(x, y))
        x += step
        right = max(right, x - ENTRY_GAP)
    return places, Size(right, y + ROW / 2 + 4 if entries else 0.0)


def _star_entries(plan: Plan) -> list[Entry]:
    stars = [star for component in plan.components for star in component.stars]
    return [
        Entry(
            _disc(star_colour(number)),
            f"star {shorten(printable(star.centre), LONGEST_LABEL)}: {count(len(star.patterns), 'pattern')}",
        )
        for number, star in enumerate(stars)
    ]


def _sign_entries(plan: Plan, panels: Sequence[Panel]) -> list[Entry]:
    shapes = {node.shape for panel in panels for node in panel.nodes}
    strokes = {arc.stroke for panel in panels for arc in panel.arcs}
    entries = []
    if any(component.overlaps for component in plan.components):
        entries.append(Entry(_two_tone, "pattern of two stars"))
    if Shape.CONSTANT in shapes:
        entries.append(Entry(_box, "constant"))
    if Shape.PREDICATE in shapes:
        entries.append(Entry(_diamond, "predicate variable"))
    if Stroke.TIE in strokes:
        entries.append(Entry(_dots, "same variable"))
    if dropped(plan):
        entries.append(Entry(_dashed, "not in the rows"))
    return entries


def dropped(plan: Plan) -> frozenset[str]:
    """The variables that a SELECT leaves out; none for ASK, which leaves out all."""
    shown = plan.query.projection
    return frozenset(plan.query.pattern.variables) - frozenset(shown) if shown else frozenset()


def _disc(colour: str) -> Callable[[Point], str]:
    def draw(at: Point) -> str:
        return _circle(at, tint(colour), colour)

    return draw


def _dashed(at: Point) -> str:
    return _circle(at, CARD, NEUTRAL, stroke_dasharray="3 2")


def _circle(at: Point, fill: str, stroke: str, **look: object) -> str:
    return tag("circle", cx=at.real, cy=at.imag, r=7.0, fill=fill, stroke=stroke, stroke_width=2.0, **look)


def _two_tone(at: Point) -> str:
    left, right = SAMPLE_COLOURS
    look = {"stroke_width": 2.5, "fill": "none"}
    first = tag("path", d=f"M{point(at - 9)} L{point(at)}", stroke=left, **look)
    return first + tag("path", d=f"M{point(at)} L{point(at + 9)}", stroke=right, **look)


def _box(at: Point) -> str:
    corner = at - complex(9, 6)
    look = {"rx": 3.0, "fill": CARD, "stroke": NEUTRAL, "stroke_width": 1.5}
    return tag("rect", x=corner.real, y=corner.imag, width=18.0, height=12.0, **look)


def _diamond(at: Point) -> str:
    corners = (at + 10, at + 7j, at - 10, at - 7j)
    return tag("polygon", points=" ".join(map(point, corners)), fill=CARD, stroke=NEUTRAL, stroke_width=1.5)


def _dots(at: Point) -> str:
    way = f"M{point(at - 9)} L{point(at + 9)}"
    return tag("path", d=way, stroke=NEUTRAL, stroke_width=2.0, stroke_dasharray="1 5", stroke_linecap="round")
