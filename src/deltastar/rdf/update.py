"""What an update stream is made of: updates, transaction marks, and rows that are neither.

A source yields these events in the order of the stream; the engine numbers them. `seq` counts the `A`/`D` rows, the
malformed ones included, so an event does not carry its own number: its place in the stream is its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from deltastar.errors import UsageError
from deltastar.rdf.terms import Term, Triple, term

INSERT = "ins"
DELETE = "del"

_OP_BY_NAME = {
    "ins": INSERT, "insert": INSERT, "add": INSERT, "A": INSERT, "+": INSERT,
    "del": DELETE, "delete": DELETE, "D": DELETE, "-": DELETE,
}  # fmt: skip


class Update(NamedTuple):
    """One message of the stream: the insertion or deletion of a triple.

    `Update.of` checks and canonicalises; the plain constructor trusts its caller.

    >>> Update.of("ins", "<http://ex/a>", "<http://ex/p>", '"b"')
    Update(ins, <http://ex/a> <http://ex/p> "b" .)
    """

    op: str
    subject: Term
    predicate: Term
    object: Term
    time: str = ""

    @classmethod
    def of(cls, op: str, subject: object, predicate: object, object: object, time: str = "") -> Update:
        """From N-Triples strings or rdflib terms. `op` is `ins` or `del`; `A`, `D`, `+`, `-` do as well."""
        if (canonical := _OP_BY_NAME.get(op)) is None:
            raise UsageError(f"{op!r} is not an operation; give 'ins' or 'del'")
        return cls(canonical, *_checked(term(subject), term(predicate), term(object)), time)

    @classmethod
    def insert(cls, subject: object, predicate: object, object: object, time: str = "") -> Update:
        """An insertion, from N-Triples strings or rdflib terms."""
        return cls.of(INSERT, subject, predicate, object, time)

    @classmethod
    def delete(cls, subject: object, predicate: object, object: object, time: str = "") -> Update:
        """A deletion, from N-Triples strings or rdflib terms."""
        return cls.of(DELETE, subject, predicate, object, time)

    @property
    def triple(self) -> Triple:
        """The triple that is inserted or deleted."""
        return Triple(self.subject, self.predicate, self.object)

    def __repr__(self) -> str:
        return f"Update({self.op}, {self.subject} {self.predicate} {self.object} .)"


class Mark(Enum):
    """A transaction boundary: RDF Patch `TX` (or `TB`), `TC` and `TA`."""

    BEGIN = "TX"
    COMMIT = "TC"
    ABORT = "TA"


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row that could not be read. `is_message` says whether it stands where a message should be, and so has a seq."""

    source: str
    line: int
    column: int
    reason: str
    text: str
    is_message: bool = True

    def __str__(self) -> str:
        return f"{self.source}: line {self.line}, column {self.column}: {self.reason}"


Event = Update | Mark | Malformed


def _checked(subject: Term, predicate: Term, object: Term) -> tuple[Term, Term, Term]:
    if subject[0] == '"':
        raise UsageError(f"the subject is a literal ({subject}); it must be an IRI or a blank node")
    if predicate[0] != "<":
        raise UsageError(f"the predicate is {predicate}; it must be an IRI")
    return subject, predicate, object
