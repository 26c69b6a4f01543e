"""Names of files and formats to the format and the compression that they mean.

The last extension may say how a file is compressed (`.gz`, `.zst`); the one before it says what it holds. A format that
the user names counts more than the extension.
"""

from __future__ import annotations

import os
from enum import Enum

from deltastar.errors import UsageError
from deltastar.rdf.rows import Syntax


class Format(Enum):
    """What a file holds. The value is what a message calls it."""

    PATCH = "RDF Patch"
    NTRIPLES = "N-Triples"
    NQUADS = "N-Quads"
    SPARQL_UPDATE = "SPARQL Update"
    TURTLE = "Turtle"
    TRIG = "TriG"
    RDF_XML = "RDF/XML"
    JSON_LD = "JSON-LD"

    @property
    def syntax(self) -> Syntax | None:
        """How its rows are read; None for a format without rows."""
        return _SYNTAX.get(self)


class Compression(Enum):
    """How a file is compressed. The value is its extension."""

    NONE = ""
    GZIP = ".gz"
    ZSTD = ".zst"


UPDATE_FORMATS = frozenset({Format.PATCH, Format.NTRIPLES, Format.NQUADS, Format.SPARQL_UPDATE})
GRAPH_FORMATS = frozenset(Format) - {Format.PATCH, Format.SPARQL_UPDATE}

_SYNTAX = {Format.PATCH: Syntax.PATCH, Format.NTRIPLES: Syntax.NTRIPLES, Format.NQUADS: Syntax.NQUADS}
_NAMES = {
    Format.PATCH: ("rdfp", "rdf-patch", "application/rdf-patch"),
    Format.NTRIPLES: ("nt", "application/n-triples"),
    Format.NQUADS: ("nq", "application/n-quads"),
    Format.SPARQL_UPDATE: ("ru", "application/sparql-update"),
    Format.TURTLE: ("ttl", "turtle", "text/turtle"),
    Format.TRIG: ("trig", "application/trig"),
    Format.RDF_XML: ("rdf", "rdfxml", "application/rdf+xml"),
    Format.JSON_LD: ("jsonld", "application/ld+json"),
}
_BY_NAME = {name: format_ for format_, names in _NAMES.items() for name in names}
_BY_EXTENSION = {"." + names[0]: format_ for format_, names in _NAMES.items()}


def named_format(name: str, allowed: frozenset[Format]) -> Format:
    """The format that a user names, by its extension or media type.

    >>> named_format("application/n-quads", UPDATE_FORMATS)
    <Format.NQUADS: 'N-Quads'>
    """
    format_ = _BY_NAME.get(name.lower().removeprefix("."))
    if format_ is None:
        raise UsageError(f"{name!r} is not an input format; use one of {_short_names(allowed)}")
    return _allowed(format_, f"the input format {name!r}", allowed)


def file_format(path: str, allowed: frozenset[Format]) -> Format:
    """The format that a file's name says it has.

    >>> file_format("updates/0001.rdfp.gz", UPDATE_FORMATS)
    <Format.PATCH: 'RDF Patch'>
    """
    base = path.lower().removesuffix(compression(path).value)
    format_ = _BY_EXTENSION.get(os.path.splitext(base)[1])
    if format_ is None:
        extensions = ", ".join(f".{_NAMES[known][0]}" for known in _NAMES if known in allowed)
        raise UsageError(
            f"{path}: its name does not say what it holds; known are {extensions}, each also with .gz or .zst "
            "(or name the input format)"
        )
    return _allowed(format_, path, allowed)


def compression(path: str) -> Compression:
    """How the file is compressed, by its last extension."""
    return next((known for known in _COMPRESSED if path.lower().endswith(known.value)), Compression.NONE)


def _allowed(format_: Format, what: str, allowed: frozenset[Format]) -> Format:
    if format_ in allowed:
        return format_
    if format_ in GRAPH_FORMATS:
        raise UsageError(
            f"{what} is {format_.value}, which can only be an initial graph; updates are {_short_names(allowed)}"
        )
    raise UsageError(
        f"{what} is {format_.value}, a stream of updates and not a graph; an initial graph is {_short_names(allowed)}"
    )


def _short_names(formats: frozenset[Format]) -> str:
    names = [_NAMES[format_][0] for format_ in _NAMES if format_ in formats]
    return f"{', '.join(names[:-1])} or {names[-1]}"


_COMPRESSED = (Compression.GZIP, Compression.ZSTD)
