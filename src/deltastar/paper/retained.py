"""The triples that an engine keeps: a set of id triples, and the dictionary of their terms.

Invariant between calls: the dictionary counts one use of a term for each place where a kept triple has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from deltastar.rdf.dictionary import NO_ID, Dictionary
from deltastar.rdf.terms import Term

Row = tuple[str, str, str]
"""A triple as canonical texts."""
IdTriple = tuple[int, int, int]


class RetainedGraph:
    """A set of triples, as terms outside and as ids inside."""

    __slots__ = ("_dictionary", "_triples", "term")

    def __init__(self) -> None:
        self._dictionary = Dictionary()
        self._triples: set[IdTriple] = set()
        self.term = self._dictionary.term

    def __len__(self) -> int:
        return len(self._triples)

    def __iter__(self) -> Iterator[IdTriple]:
        return iter(self._triples)

    @property
    def terms_in_use(self) -> int:
        """How many terms have an id."""
        return len(self._dictionary)

    def holds(self, row: Row) -> bool:
        triple = self.find(row)
        return NO_ID not in triple and triple in self._triples

    def find(self, row: Row) -> IdTriple:
        """The ids of a kept triple."""
        find = self._dictionary.find
        return find(row[0]), find(row[1]), find(row[2])

    def terms(self, triple: IdTriple) -> tuple[Term, Term, Term]:
        term = self.term
        return term(triple[0]), term(triple[1]), term(triple[2])

    def add(self, row: Row) -> IdTriple:
        """Keeps a triple that is not there yet."""
        acquire = self._dictionary.acquire
        triple = acquire(row[0]), acquire(row[1]), acquire(row[2])
        self._triples.add(triple)
        return triple

    def take_out(self, row: Row) -> IdTriple:
        """Drops a triple that is there, but leaves its ids in use until `release`."""
        triple = self.find(row)
        self._triples.remove(triple)
        return triple

    def release(self, triple: IdTriple) -> None:
        """Lets go of the ids of a triple that was taken out."""
        for id_ in triple:
            self._dictionary.release(id_)

    def drop(self, triple: IdTriple) -> None:
        """Drops a triple, and lets go of its ids."""
        self._triples.remove(triple)
        self.release(triple)
