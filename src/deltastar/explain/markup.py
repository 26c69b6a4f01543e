"""The few words of SVG that the picture needs. Text is escaped here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from deltastar.explain.geometry import Point
from deltastar.explain.measure import cells
from deltastar.explain.palette import FAINT, INK

MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
SANS = "system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
MONO_CELL = 0.61
SANS_CELL = 0.56


def tag(name: str, *inside: str, **attributes: object) -> str:
    """An element. An underscore in an attribute's name stands for a hyphen; one that is None is left out.

    >>> tag("rect", width=10.0, stroke_width=1.25, rx=None)
    '<rect width="10" stroke-width="1.2"/>'
    """
    written = "".join(
        f" {key.strip('_').replace('_', '-')}={quoteattr(_value(value))}"
        for key, value in attributes.items()
        if value is not None
    )
    if not inside:
        return f"<{name}{written}/>"
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def group(parts: Iterable[str], tooltip: str = "", **attributes: object) -> str:
    """Elements together, with a text that shows when one points at them."""
    title = [tag("title", escape(tooltip))] if tooltip else []
    return tag("g", "\n", *[part + "\n" for part in [*title, *parts]], **attributes)


def mono(text: str, at: Point, size: float, **attributes: object) -> str:
    """A term, centred at a point."""
    return _text(text, at + 0.35j * size, size, MONO, {"text_anchor": "middle", "fill": INK} | attributes)


def sans(text: str, at: Point, size: float, **attributes: object) -> str:
    """Words that begin at a point of their base line."""
    return _text(text, at, size, SANS, {"fill": FAINT} | attributes)


def mono_width(text: str, size: float) -> float:
    """How wide a term will be, about."""
    return cells(text) * size * MONO_CELL


def sans_width(text: str, size: float) -> float:
    """How wide words will be, about; rather too wide than too narrow."""
    return cells(text) * size * SANS_CELL


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel, so that rounding in the last place changes no picture.

    >>> number(3.0), number(-0.01), number(2.26)
    ('3', '0', '2.3')
    """
    rounded = f"{value:.1f}"
    return {"-0.0": "0"}.get(rounded, rounded.removesuffix(".0"))


def point(at: Point) -> str:
    return f"{number(at.real)},{number(at.imag)}"


def _text(text: str, at: Point, size: float, family: str, attributes: dict[str, object]) -> str:
    return tag("text", escape(text), x=at.real, y=at.imag, font_size=size, font_family=family, **attributes)


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
