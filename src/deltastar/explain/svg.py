"""A plan as a picture of its query graph: a white card with a title, a panel for each component, and a legend.

Standalone SVG: no scripts, no style sheets, no ids, so that several pictures may stand on one page.
"""

from __future__ import annotations

from dataclasses import dataclass

from deltastar.explain.diagram import Arc, Panel, caption, draw_panels
from deltastar.explain.geometry import Point, Size
from deltastar.explain.layout import Layout, lay_out, pack
from deltastar.explain.legend import draw_legend, dropped
from deltastar.explain.markup import group, number, sans, sans_width, tag
from deltastar.explain.measure import printable
from deltastar.explain.palette import BORDER, CARD, FAINT, GROUND, INK, panel_colour
from deltastar.explain.shapes import Figure
from deltastar.explain.strokes import Line, label_size
from deltastar.explain.wording import QUERY_CLASSES
from deltastar.plan.decompose import Plan

MARGIN = 24.0
HEADER = 74.0
PANEL_MARGIN = 24.0
PANEL_HEADER = 22.0
PANEL_GAP = 18.0
TITLE_FONT, TEXT_FONT = 18.0, 13.0


@dataclass(frozen=True, slots=True)
class Frame:
    """A panel with its nodes and arcs laid out."""

    panel: Panel
    figures: tuple[Figure, ...]
    layout: Layout
    size: Size

    @classmethod
    def of(cls, panel: Panel, least: float) -> Frame:
        """The panel laid out, at least as wide as given."""
        figures = tuple(map(Figure.of, panel.nodes))
        edges = [(arc.source, arc.target, label_size(arc)) for arc in panel.arcs]
        layout = lay_out([figure.size for figure in figures], edges)
        inner = layout.size.grown(PANEL_MARGIN)
        width = max(inner.width, least, sans_width(panel.title, TEXT_FONT) + 2 * PANEL_MARGIN)
        return cls(panel, figures, layout, Size(width, inner.height + PANEL_HEADER))

    def draw(self, plan: Plan, colour: str, corner: Point) -> str:
        """The panel with its upper left corner at a point."""
        width, height = self.size.width, self.size.height
        ground = tag(
            "rect", x=corner.real, y=corner.imag, width=width, height=height, rx=12.0, fill=colour, stroke=BORDER
        )
        title = sans(self.panel.title, corner + complex(16, 24), TEXT_FONT, font_weight="bold", fill=FAINT)
        origin = corner + complex((width - self.layout.size.width) / 2, PANEL_MARGIN + PANEL_HEADER)
        lines = [
            self._line(arc, index, origin).draw(_tooltip(plan, arc), colour)
            for index, arc in enumerate(self.panel.arcs)
        ]
        hidden = dropped(plan)
        nodes = [
            figure.draw(origin + at, dashed=str(figure.node.term) in hidden)
            for figure, at in zip(self.figures, self.layout.nodes, strict=True)
        ]
        return group([ground, title, *lines, *nodes], class_="component")

    def _line(self, arc: Arc, index: int, origin: Point) -> Line:
        places = self.layout.nodes
        return Line(
            arc,
            self.figures[arc.source],
            self.figures[arc.target],
            origin + places[arc.source],
            origin + places[arc.target],
            origin + self.layout.labels[index],
        )


def to_svg(plan: Plan) -> str:
    """The plan as a picture."""
    panels = draw_panels(plan)
    title, heading = f"{plan.kind.value} query", _heading(plan)
    width = max(sans_width(text, font) for text, font, _ in heading)
    frames = [Frame.of(panel, width if len(panels) == 1 else 0.0) for panel in panels]
    corners, room = pack([frame.size for frame in frames], PANEL_GAP)
    width, body = max(room.width, width), MARGIN + HEADER
    parts = [
        sans(text, complex(MARGIN, MARGIN + 16 + 20 * line), font, **look)
        for line, (text, font, look) in enumerate(heading)
    ]
    for index, (frame, corner) in enumerate(zip(frames, corners, strict=True)):
        colour = panel_colour(index) if frame.panel.component.stars else GROUND
        parts.append(frame.draw(plan, colour, corner + complex(MARGIN, body)))
    below = body + room.height + PANEL_GAP
    legend, legend_room = draw_legend(plan, panels, complex(MARGIN, below), width)
    return _card(title, [*parts, *legend], Size(width + 2 * MARGIN, below + legend_room.height + MARGIN - 6))


def _heading(plan: Plan) -> list[tuple[str, float, dict[str, object]]]:
    return [
        (f"{plan.kind.value} query", TITLE_FONT, {"font_weight": "bold", "fill": INK}),
        (QUERY_CLASSES[plan.kind], TEXT_FONT, {}),
        (caption(plan), TEXT_FONT, {}),
    ]


def _card(title: str, parts: list[str], size: Size) -> str:
    width, height = number(size.width), number(size.height)
    card = tag("rect", x=0.5, y=0.5, width=size.width - 1, height=size.height - 1, rx=14.0, fill=CARD, stroke=BORDER)
    return tag(
        "svg",
        "\n",
        *[part + "\n" for part in [card, *parts]],
        xmlns="http://www.w3.org/2000/svg",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=title,
    )


def _tooltip(plan: Plan, arc: Arc) -> str:
    return "" if arc.pattern is None else printable(str(plan.patterns[arc.pattern]))
