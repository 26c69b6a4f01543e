"""Colours that people with any colour vision tell apart, and a text never depends on colour alone.

The first seven are Okabe and Ito's, the yellow darkened to be seen on white; the others are from Paul Tol's muted
scheme. A query with more stars begins again: its labels still tell them apart.
"""

from __future__ import annotations

STARS = (
    "#0072B2",  # blue
    "#E69F00",  # orange
    "#009E73",  # green
    "#CC79A7",  # pink
    "#D55E00",  # vermilion
    "#56B4E9",  # sky
    "#B5A300",  # yellow
    "#332288",  # indigo
    "#882255",  # wine
    "#44AA99",  # teal
    "#999933",  # olive
    "#AA4499",  # purple
)
PANELS = ("#EFF5FB", "#FDF5E9", "#EEF7F2", "#F8F0F6", "#F4F3EA")

CARD = "#FFFFFF"
BORDER = "#C9CFD6"
GROUND = "#F1F2F4"
NEUTRAL = "#6B7480"
INK = "#1C2330"
FAINT = "#57606A"


def star_colour(number: int) -> str:
    """The colour of a star, by its number in the query."""
    return STARS[number % len(STARS)]


def panel_colour(number: int) -> str:
    """The tint of a component's panel, by its number in the query."""
    return PANELS[number % len(PANELS)]


def tint(colour: str, share: float = 0.2) -> str:
    """The colour mixed with white; `share` is how much of it stays.

    >>> tint("#0072B2", 0.5)
    '#80B9D9'
    """
    channels = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return "#" + "".join(f"{int(255 - (255 - channel) * share + 0.5):02X}" for channel in channels)
