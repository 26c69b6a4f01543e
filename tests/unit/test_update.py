"""Updates and dead letters."""

from __future__ import annotations

import pickle

import pytest
import rdflib

from deltastar.errors import TermError, UsageError
from deltastar.rdf.terms import IRI, BlankNode, Literal, Triple
from deltastar.rdf.update import DELETE, INSERT, Malformed, Update


@pytest.mark.parametrize("op", ["ins", "insert", "add", "A", "+"])
def test_names_of_insertion(op: str) -> None:
    assert Update.of(op, "<a:s>", "<a:p>", "<a:o>") == Update.insert("<a:s>", "<a:p>", "<a:o>")


@pytest.mark.parametrize("op", ["del", "delete", "D", "-"])
def test_names_of_deletion(op: str) -> None:
    assert Update.of(op, "<a:s>", "<a:p>", "<a:o>") == Update.delete("<a:s>", "<a:p>", "<a:o>")


def test_attributes_are_terms_whatever_the_tuple_holds() -> None:
    plain = Update(INSERT, "_:s", "<a:p>", '"o"@en')
    made = Update.insert(rdflib.BNode("s"), rdflib.URIRef("a:p"), rdflib.Literal("o", lang="EN"))
    assert plain == made
    assert hash(plain) == hash(made)
    for update in (plain, made, pickle.loads(pickle.dumps(plain))):
        assert isinstance(update.subject, BlankNode)
        assert isinstance(update.predicate, IRI)
        assert isinstance(update.object, Literal)
        assert update.triple == Triple(BlankNode("s"), IRI("a:p"), Literal("o", "en"))
        assert update[1:4] == update.triple
        assert repr(update) == 'Update(ins, _:s <a:p> "o"@en .)'
    assert Update.delete("_:s", "<a:p>", "<a:o>", time="2024-01-01T00:00:00Z").time == "2024-01-01T00:00:00Z"
    assert Update.delete("_:s", "<a:p>", "<a:o>").op == DELETE


@pytest.mark.parametrize(
    ("row", "kind", "reason"),
    [
        (("A", '"s"', "<a:p>", "<a:o>"), UsageError, "the subject is a literal"),
        (("A", "<a:s>", "_:p", "<a:o>"), UsageError, "the predicate is _:p; it must be an IRI"),
        (("X", "<a:s>", "<a:p>", "<a:o>"), UsageError, "'X' is not an operation; give 'ins' or 'del'"),
        (("A", "<a:s>", "<a:p>", "o"), TermError, "'o' is not a term"),
        (("A", "<a:s>", "<a:p>", 5), TermError, "int is not a term"),
    ],
)
def test_what_is_no_update_is_refused(row: tuple[str, str, str, object], kind: type[Exception], reason: str) -> None:
    with pytest.raises(kind, match=reason):
        Update.of(*row)


def test_a_dead_letter_names_its_place_if_it_has_one() -> None:
    assert str(Malformed("a.nt", 3, 7, "why", "text")) == "a.nt: line 3, column 7: why"
    assert str(Malformed("a.rdf", 0, 0, "why", "")) == "a.rdf: why"
