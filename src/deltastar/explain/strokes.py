"""How an arc looks: each half in the colour of the star at its end, an arrow head at the object, its label half-way.

An arc between two variables belongs to the stars of both, and so has two colours; one at a constant belongs to one
star, and one between constants to none.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltastar.explain.diagram import Arc, Stroke
from deltastar.explain.geometry import Curve, Point, Size, halves_through, unit
from deltastar.explain.markup import group, mono, mono_width, point, tag
from deltastar.explain.measure import shorten
from deltastar.explain.palette import NEUTRAL
from deltastar.explain.shapes import Figure

FONT = 12.0
LONGEST_LABEL = 26
LINE_WIDTH = 2.0
ARROW_LENGTH, ARROW_WIDTH = 10.0, 8.0
LOOP_WIDTH = 30.0


@dataclass(frozen=True, slots=True)
class Line:
    """An arc and the two nodes it joins, at their places."""

    arc: Arc
    source: Figure
    target: Figure
    source_at: Point
    target_at: Point
    label_at: Point

    def draw(self, tooltip: str, ground: str) -> str:
        """The line, its arrow head, and its label on a patch of the ground."""
        first, second = self._colours()
        if self.arc.stroke is Stroke.TIE:
            colour = self.source.colour or NEUTRAL
            return group(
                [_path(self._curves(0.0), colour, stroke_dasharray="1 5", stroke_linecap="round")],
                tooltip,
                class_="tie",
            )
        is_arrow = self.arc.stroke is Stroke.ARROW
        curves = self._curves(ARROW_LENGTH - 2 if is_arrow else 0.0)
        parts = [_path(curves, first)] if first == second else [_path(curves[:1], first), _path(curves[1:], second)]
        if is_arrow:
            parts.append(self._arrow_head(curves[1], second))
        if self.arc.label:
            parts += self._label(ground)
        return group(parts, tooltip, class_="edge")

    def _label(self, ground: str) -> list[str]:
        size = label_size(self.arc)
        corner = self.label_at - complex(size.width, size.height) / 2
        patch = {"x": corner.real, "y": corner.imag, "width": size.width, "height": size.height, "rx": 4.0}
        return [tag("rect", **patch, fill=ground, class_="patch"), mono(shown(self.arc), self.label_at, FONT)]

    def _colours(self) -> tuple[str, str]:
        first = self.source.colour or self.target.colour or NEUTRAL
        return first, self.target.colour or first

    def _curves(self, shortened: float) -> tuple[Curve, Curve]:
        """The way from outline to outline through the label's place, as two halves."""
        if self.arc.source == self.arc.target:
            return self._loop(shortened)
        ahead, back = unit(self.label_at - self.source_at), unit(self.label_at - self.target_at)
        start = self.source_at + ahead * self.source.border(ahead)
        end = self.target_at + back * (self.target.border(back) + shortened)
        return halves_through(start, self.label_at, end)

    def _loop(self, shortened: float) -> tuple[Curve, Curve]:
        outward = unit(self.label_at - self.source_at)
        aside = outward * 1j * LOOP_WIDTH
        ahead, back = unit(outward + 0.6 * unit(aside)), unit(outward - 0.6 * unit(aside))
        start = self.source_at + ahead * self.source.border(ahead)
        end = self.source_at + back * (self.source.border(back) + shortened)
        return Curve(start, self.label_at + aside, self.label_at), Curve(self.label_at, self.label_at - aside, end)

    def _arrow_head(self, last: Curve, colour: str) -> str:
        toward = (
            unit(self.target_at - last.end) if self.arc.source != self.arc.target else unit(last.end - last.control)
        )
        toward = unit(toward + unit(last.end - last.control))
        tip = last.end + toward * (ARROW_LENGTH - 2)
        base = tip - toward * ARROW_LENGTH
        side = toward * 1j * ARROW_WIDTH / 2
        return tag("polygon", points=" ".join(map(point, (tip, base + side, base - side))), fill=colour)


def shown(arc: Arc) -> str:
    """The label as it is drawn."""
    return shorten(arc.label, LONGEST_LABEL)


def label_size(arc: Arc) -> Size:
    """The room that the label takes; 0 by 0 when there is none."""
    return Size(mono_width(shown(arc), FONT) + 6, FONT + 5) if arc.label else Size(0.0, 0.0)


def _path(curves: tuple[Curve, ...], colour: str, **look: object) -> str:
    way = f"M{point(curves[0].start)}" + "".join(f" Q{point(curve.control)} {point(curve.end)}" for curve in curves)
    return tag("path", d=way, fill="none", stroke=colour, stroke_width=LINE_WIDTH, **look)
