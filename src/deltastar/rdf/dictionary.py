"""Term to dense id and back. Strings become integers here, once, at the edge.

Terms come in as canonical text, and go out as `Term`. Invariant between calls: a term has an id exactly while it has
a use (a retained triple, or a registered pattern, that holds it). Ids without a use are given out again, so an endless
stream over a bounded graph needs bounded memory.
"""

from __future__ import annotations

from deltastar.rdf.terms import Term, of_canonical

NO_ID = -1


class Dictionary:
    """Counted, exact, recycling.

    >>> from deltastar.rdf.terms import IRI
    >>> ids = Dictionary()
    >>> first = ids.acquire(IRI("http://ex/a"))
    >>> ids.release(first)
    >>> ids.acquire(IRI("http://ex/b")) == first
    True
    """

    __slots__ = ("_free", "_id_of", "_term_of", "_uses")

    def __init__(self) -> None:
        self._id_of: dict[str, int] = {}
        self._term_of: list[Term | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._id_of)

    def find(self, term: str) -> int:
        """The term's id, or `NO_ID`."""
        return self._id_of.get(term, NO_ID)

    def acquire(self, term: str) -> int:
        """The term's id, a new one if need be, with one more use."""
        id_ = self._id_of.get(term, NO_ID)
        if id_ == NO_ID:
            if self._free:
                id_ = self._free.pop()
                self._term_of[id_] = of_canonical(term)
            else:
                id_ = len(self._term_of)
                self._term_of.append(of_canonical(term))
                self._uses.append(0)
            self._id_of[term] = id_
        self._uses[id_] += 1
        return id_

    def release(self, id_: int) -> None:
        """One use less; the last one frees the id."""
        self._uses[id_] -= 1
        if self._uses[id_] == 0:
            term = self._term_of[id_]
            assert term is not None
            del self._id_of[term]
            self._term_of[id_] = None
            self._free.append(id_)

    def term(self, id_: int) -> Term:
        """The term with this id, which must be in use."""
        term = self._term_of[id_]
        assert term is not None
        return term
