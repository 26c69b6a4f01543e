"""A plan as a Mermaid flowchart, which GitHub and many Markdown viewers draw.

Variables are rounded, constants are boxes, predicate variables are diamonds; each star has its colour and each
component its frame.
"""

from __future__ import annotations

import re

from deltastar.explain.diagram import Arc, Node, Panel, Shape, Stroke, caption, centres, draw_panels
from deltastar.explain.measure import shorten
from deltastar.explain.palette import BORDER, GROUND, INK, NEUTRAL, panel_colour, star_colour, tint
from deltastar.plan.decompose import Plan

LONGEST_LABEL = 30
_SHAPES = {Shape.VARIABLE: ("([", "])"), Shape.CONSTANT: ("[", "]"), Shape.PREDICATE: ("{", "}")}
# What Mermaid or the Markdown inside its labels would read as syntax: quotes, tags, entities, emphasis, escapes.
_SYNTAX = re.compile(r'["#&<>`*_~\\|\[\](){}@;$%]|(?<=www)\.|:(?=//)|^[0-9]+(?=[.)])|^[-+](?= )')


def to_mermaid(plan: Plan) -> str:
    """The plan as a flowchart."""
    lines = ["flowchart TB", f"%% {plan.kind.value} query: {caption(plan)}"]
    for number, panel in enumerate(draw_panels(plan)):
        lines += _panel_lines(number, panel)
    for number, _ in enumerate(centres(plan)):
        colour = star_colour(number)
        lines.append(f"classDef star{number} fill:{tint(colour)},stroke:{colour},stroke-width:2px,color:{INK}")
    lines.append(f"classDef constant fill:#FFFFFF,stroke:{NEUTRAL},color:{INK}")
    return "\n".join(lines)


def quoted(label: str) -> str:
    """A label that Mermaid shows as it is.

    >>> quoted('"5"@en')
    '"#34;5#34;#64;en"'
    """
    return '"' + _SYNTAX.sub(_entity, shorten(label, LONGEST_LABEL)) + '"'


def _entity(match: re.Match[str]) -> str:
    first, rest = match.group()[0], match.group()[1:]
    return f"#{ord(first)};{rest}"


def _panel_lines(number: int, panel: Panel) -> list[str]:
    frame = f"component{number}"
    fill = panel_colour(number) if panel.component.stars else GROUND
    return [
        f"subgraph {frame}[{quoted(panel.title)}]",
        "    direction LR",
        *[f"    {_node(number, index, node)}" for index, node in enumerate(panel.nodes)],
        *[f"    {_arc(number, arc)}" for arc in panel.arcs],
        "end",
        f"style {frame} fill:{fill},stroke:{BORDER},color:{INK}",
    ]


def _node(panel: int, index: int, node: Node) -> str:
    left, right = _SHAPES[node.shape]
    style = "constant" if node.star is None else f"star{node.star}"
    return f"n{panel}_{index}{left}{quoted(node.label)}{right}:::{style}"


def _arc(panel: int, arc: Arc) -> str:
    line = {Stroke.ARROW: "-->", Stroke.LINE: "---", Stroke.TIE: "-.-"}[arc.stroke]
    label = f"|{quoted(arc.label)}|" if arc.label else ""
    return f"n{panel}_{arc.source} {line}{label} n{panel}_{arc.target}"
