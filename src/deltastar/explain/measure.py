"""How wide a text is, and how to make it fit: for columns of a terminal and for boxes of a picture.

Widths are counted in cells of a fixed-width font: two for a wide East Asian character, none for a combining one.
"""

from __future__ import annotations

import unicodedata

ELLIPSIS = "…"


def cells(text: str) -> int:
    """The width of a text in cells.

    >>> cells("abc"), cells("日本"), cells("e\\u0301")
    (3, 4, 1)
    """
    return sum(_cells_of(character) for character in text)


def shorten(text: str, limit: int) -> str:
    """The text cut in its middle so that it fits, since the ends of an IRI tell more than what is between.

    >>> shorten("http://example.org/a/long/path#name", 15)
    'http://…th#name'
    """
    if cells(text) <= limit:
        return text
    room = max(limit - 1, 0)
    head = _prefix(text, (room + 1) // 2 if room % 2 else room // 2)
    tail = _prefix(text[::-1], room - cells(head))[::-1]
    return head + ELLIPSIS + tail


def printable(text: str) -> str:
    """The text with every character that would not show, or would upset what is around it, as an escape.

    >>> print(printable("a\\u202eb"))
    a\\u202Eb
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _cells_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "FW" else 1


def _prefix(text: str, room: int) -> str:
    for end, character in enumerate(text):
        room -= _cells_of(character)
        if room < 0:
            return text[:end]
    return text


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
