"""What reading deltas back yields: records, and rows as canonical texts.

A row is the sorted `name term` pairs of a binding, joined by tabs; canonical terms hold neither tabs nor line breaks,
and names no blanks. Equal bindings are equal texts, whatever the order of their variables was. A string keeps its hash,
so counting rows costs little when a repeated row is the same object.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from deltastar.rdf.terms import Term, of_canonical

_BLANK_IN_NAME = re.compile(r"\s")


class Row(NamedTuple):
    """A binding: its canonical text, and its variables in the order in which they were written."""

    text: str
    names: tuple[str, ...]


class Record(NamedTuple):
    """A delta as it was read. `line` is its place in the file: a line number, or in Parquet a row number."""

    query: str
    seq: int
    op: str
    row: Row
    time: str
    line: int


def row_of(binding: Mapping[str, Term]) -> Row:
    """The row of a binding. Raises `ValueError` for a name that no variable can have."""
    names, in_order = _checked(tuple(binding))
    return Row("\t".join([name + " " + binding[name] for name in in_order]), names)


@lru_cache
def _checked(names: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """One tuple for all equal ones, so that comparing them is quick; and the names sorted."""
    for name in names:
        check_name(name)
    return names, sorted(names)


def binding_of(text: str) -> dict[str, Term]:
    """The binding that a row's text stands for."""
    pairs = (pair.partition(" ") for pair in text.split("\t") if pair)
    return {name: of_canonical(term) for name, _, term in pairs}


def check_name(name: str) -> None:
    """Raises `ValueError` for what cannot be a variable's name."""
    if not name or _BLANK_IN_NAME.search(name):
        raise ValueError(f"{name!r} is not the name of a variable")
