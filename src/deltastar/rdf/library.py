"""pyoxigraph's statements as ours: canonical terms, the same blank node labels in every run, faults with their place.

pyoxigraph keeps lexical forms and labels as they are written, and invents a random label for an anonymous blank node.
Those are told apart by the text: what is written there is a label. The others are numbered in the order in which they
come, so that reading the same file twice gives the same graph.
"""

from __future__ import annotations

import hashlib
import os
import re

import pyoxigraph

from deltastar.errors import TermError
from deltastar.rdf.terms import BlankNode, Literal
from deltastar.rdf.update import Update

_INVENTED = re.compile(r"[0-9a-f]{16,32}")  # 128 random bits: shorter once in 2**64
_LABEL = rb"(?:_:|nodeID\s*=\s*[\"'])"  # Turtle, TriG and JSON-LD; RDF/XML
_WRITTEN = re.compile(_LABEL + rb"([0-9a-f]{16,32})")
_OVERLAP = 64  # what a label, with what is in front of it, can need of the chunk before
_NOT_AS_IT_IS = re.compile(r"[\\\x00-\x1f\x7f]")


class BlankNames:
    """Labels for the blank nodes of one text.

    >>> names = BlankNames("data.ttl")
    >>> names.note(b"[] <http://ex/p> _:b1, _:00c0ffee00c0ffee, [] .")
    >>> [names.of(label) for label in ("b1", "00c0ffee00c0ffee", 32 * "d", 32 * "e", 32 * "d")]
    ['_:b1', '_:00c0ffee00c0ffee', '_:anon-c685b99a-1', '_:anon-c685b99a-2', '_:anon-c685b99a-1']
    """

    def __init__(self, source: str) -> None:
        digest = hashlib.sha256(os.path.basename(source).encode(errors="surrogateescape")).hexdigest()
        self._prefix = f"_:anon-{digest[:8]}-"
        self._written: set[str] = set()
        self._numbered: dict[str, str] = {}
        self._tail = b""

    def note(self, text: bytes) -> None:
        """Takes note of the labels that the text holds. It comes in order, before what is parsed from it."""
        text = self._tail + text
        self._written.update(label.decode() for label in _WRITTEN.findall(text))
        self._tail = text[-_OVERLAP:]

    def of(self, label: str) -> str:
        """The canonical text of the blank node with this label."""
        if _INVENTED.fullmatch(label) is None or label in self._written:
            return str(BlankNode(label))
        return self._numbered.setdefault(label, f"{self._prefix}{len(self._numbered) + 1}")


def update_of(op: str, statement: pyoxigraph.Quad | pyoxigraph.Triple, names: BlankNames) -> Update:
    """The statement as a message. Raises `TermError` for what RDF 1.1 does not have."""
    subject, target = statement.subject, statement.object
    if isinstance(subject, pyoxigraph.BlankNode):
        subject_text = names.of(subject.value)
    else:
        subject_text = str(subject)
    if isinstance(target, pyoxigraph.NamedNode):
        text = str(target)
    elif isinstance(target, pyoxigraph.Literal):
        text = _literal(target)
    elif isinstance(target, pyoxigraph.BlankNode):
        text = names.of(target.value)
    else:
        raise TermError("RDF 1.2 triple terms (<< … >>) are not supported")
    return Update(op, subject_text, str(statement.predicate), text)


def place_of(error: SyntaxError) -> tuple[int, int, str]:
    """Line, column (0 when it does not say) and reason of a syntax error that pyoxigraph found."""
    reason = re.sub(
        r"^Parser error (?:at|between) line \d+.*?: ", "", error.msg or str(error), count=1, flags=re.DOTALL
    )
    return error.lineno or 0, error.offset or 0, reason


def _literal(literal: pyoxigraph.Literal) -> str:
    if literal.direction is not None:
        raise TermError("RDF 1.2 literals with a base direction are not supported")
    text = str(literal)
    if _NOT_AS_IT_IS.search(text) is None:
        return text
    return str(Literal(literal.value, literal.language or "", literal.datatype.value))
