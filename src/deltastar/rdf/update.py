"""What an update stream is made of: updates, transaction marks, and rows that are neither.

A source yields these events in the order of the stream; the engine numbers them. `seq` counts the `A`/`D` rows,
the malformed ones included, so an event does not carry its own number: its place in the stream is its number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from deltastar.errors import UsageError
from deltastar.rdf.grammar import PLAIN_BLANK, PLAIN_IRI, PLAIN_LITERAL
from deltastar.rdf.terms import Term, Triple, of_canonical, term

INSERT = "ins"
DELETE = "del"

TermLike: TypeAlias = object  # an N-Triples string or an rdflib term; what is neither is refused when it comes

_OP_BY_NAME = {
    "ins": INSERT, "insert": INSERT, "add": INSERT, "A": INSERT, "+": INSERT,
    "del": DELETE, "delete": DELETE, "D": DELETE, "-": DELETE,
}  # fmt: skip

_is_plain = re.compile(
    rf"(?:{PLAIN_IRI}|{PLAIN_BLANK})\n{PLAIN_IRI}\n(?:{PLAIN_IRI}|{PLAIN_LITERAL}|{PLAIN_BLANK})"
).fullmatch
"""Three canonical texts, a line each. None has a line end inside: each must be what stands on its line."""


class _Texts(NamedTuple):
    op: str
    subject: str
    predicate: str
    object: str
    time: str = ""


class Update(_Texts):
    """One message of the stream: the insertion or deletion of a triple.

    As a tuple it holds the terms' canonical texts, which may be plain strings: equal to the terms, and half the cost
    of reading a row that nobody looks at. The attributes `subject`, `predicate` and `object` are terms.

    `Update.of` checks and canonicalises; the plain constructor trusts its caller.

    >>> Update.of("ins", "<http://ex/a>", "<http://ex/p>", '"b"')
    Update(ins, <http://ex/a> <http://ex/p> "b" .)
    """

    __slots__ = ()

    @classmethod
    def of(cls, op: str, subject: TermLike, predicate: TermLike, object: TermLike, time: str = "") -> Update:
        """From N-Triples strings or rdflib terms. `op` is `ins` or `del`; `A`, `D`, `+`, `-` do as well."""
        if (canonical := _OP_BY_NAME.get(op)) is None:
            raise UsageError(f"{op!r} is not an operation; give 'ins' or 'del'")
        if type(subject) is str and type(predicate) is str and type(object) is str:
            text = f"{subject}\n{predicate}\n{object}"
            if text.isascii() and _is_plain(text):  # the rest knows more characters, and what is wrong with a term
                return tuple.__new__(cls, (canonical, subject, predicate, object, time))
        return cls(canonical, *_checked(term(subject), term(predicate), term(object)), time)

    @classmethod
    def insert(cls, subject: TermLike, predicate: TermLike, object: TermLike, time: str = "") -> Update:
        """An insertion, from N-Triples strings or rdflib terms."""
        return cls.of(INSERT, subject, predicate, object, time)

    @classmethod
    def delete(cls, subject: TermLike, predicate: TermLike, object: TermLike, time: str = "") -> Update:
        """A deletion, from N-Triples strings or rdflib terms."""
        return cls.of(DELETE, subject, predicate, object, time)

    @property
    def subject(self) -> Term:
        """The subject: an IRI or a blank node."""
        return of_canonical(self[1])

    @property
    def predicate(self) -> Term:
        """The predicate: an IRI."""
        return of_canonical(self[2])

    @property
    def object(self) -> Term:
        """The object."""
        return of_canonical(self[3])

    @property
    def triple(self) -> Triple:
        """The triple that is inserted or deleted."""
        return Triple(of_canonical(self[1]), of_canonical(self[2]), of_canonical(self[3]))

    def __repr__(self) -> str:
        return f"Update({self[0]}, {self[1]} {self[2]} {self[3]} .)"


class Mark(Enum):
    """A transaction boundary: RDF Patch `TX` (or `TB`), `TC` and `TA`."""

    BEGIN = "TX"
    COMMIT = "TC"
    ABORT = "TA"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row that could not be read.

    `is_message` says whether it stands where a message should be, and so has a seq. `line` and `column` are 1-based,
    or 0 when the place is unknown.
    """

    source: str
    line: int
    column: int
    reason: str
    text: str
    is_message: bool = True

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        return f"{self.source}: {place}{self.reason}"


Event = Update | Mark | Malformed


def _checked(subject: Term, predicate: Term, object: Term) -> tuple[Term, Term, Term]:
    if subject[0] == '"':
        raise UsageError(f"the subject is a literal ({subject}); it must be an IRI or a blank node")
    if predicate[0] != "<":
        raise UsageError(f"the predicate is {predicate}; it must be an IRI")
    return subject, predicate, object
