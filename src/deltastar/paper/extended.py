"""Algorithm 6: the extended list of ground var-centric instances of a generalised star.

A record is a pair (M, V): which patterns of the star have a match, and the variables-summary that these matches give.
The list L_e holds, for each value of the centre, one record for each way of choosing a match for as many patterns as
agree with each other: the *maximal* choices. A record with a complete M is an embedding of the star.

The paper's rule for deletion ("remove one of the records with compatible summaries") is made exact by maximality: a
record goes when another one says everything that it says. Two forms keep that invariant:

- `FreeStar`, when every variable but the centre stands in one pattern. Any choices agree, so all records of a centre
  have the same M, and a record is its V.
- `JoinedStar`, when a variable stands in two patterns (`?x p ?y . ?y q ?x`). Choices may disagree, and M differs.

V is a tuple over the component's variables, `UNKNOWN` (the paper's `*`) where nothing is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from deltastar.plan.decompose import Star
from deltastar.query.algebra import TriplePattern, Variable
from deltastar.rdf.update import INSERT

UNKNOWN = None

Summary = tuple[int | None, ...]


def extended_list(star: Star, patterns: tuple[TriplePattern, ...], variables: tuple[Variable, ...]) -> ExtendedList:
    """An empty extended list of the fitting form."""
    occurrences = Counter(variable for index in star.patterns for variable in patterns[index].variables)
    shared = any(count > 1 for variable, count in occurrences.items() if variable != star.centre)
    return (JoinedStar if shared else FreeStar)(star, patterns, variables)


class ExtendedList:
    """What both forms have in common: bits of patterns and positions of variables."""

    def __init__(self, star: Star, patterns: tuple[TriplePattern, ...], variables: tuple[Variable, ...]) -> None:
        position_of = {variable: position for position, variable in enumerate(variables)}
        self.centre = position_of[star.centre]
        self.bit_of = {pattern: 1 << place for place, pattern in enumerate(star.patterns)}
        self.full = (1 << len(star.patterns)) - 1
        self.positions_of = {
            1 << place: tuple(position_of[variable] for variable in patterns[pattern].variables)
            for place, pattern in enumerate(star.patterns)
        }
        self.positions = frozenset(position for positions in self.positions_of.values() for position in positions)

    def process_update_message_on_star_ext(self, op: str, j: int, V_j: Summary) -> list[Summary]:
        """Applies an effective update that matches pattern j with the summary V_j.

        Returns the star's embeddings that it added, or that it removed.
        """
        bit = self.bit_of[j]
        return self.insert(bit, V_j) if op == INSERT else self.delete(bit, V_j)

    def insert(self, bit: int, V_j: Summary) -> list[Summary]:
        raise NotImplementedError

    def delete(self, bit: int, V_j: Summary) -> list[Summary]:
        raise NotImplementedError

    def get_ground_items(self, C: int) -> list[Summary]:
        """The paper's getGroundItems: the summaries of the complete records at a value of the centre."""
        raise NotImplementedError

    def records(self) -> Iterator[tuple[int, Summary]]:
        """All records, as (M, V)."""
        raise NotImplementedError


class FreeStar(ExtendedList):
    """The list of a star whose patterns share nothing but the centre: L_e[X_G] = {V, …}, with one M for all of them.

    Any choices agree, so the records of a match are its joins with one match of each other pattern. The paper finds
    them by looking through the list, which a hub pays for at every update; here the matches stand beside the list.
    """

    def __init__(self, star: Star, patterns: tuple[TriplePattern, ...], variables: tuple[Variable, ...]) -> None:
        super().__init__(star, patterns, variables)
        self.L_e: dict[int, set[Summary]] = {}
        self._matches: dict[int, dict[int, set[Summary]]] = {}  # centre → pattern → V_j

    def insert(self, bit: int, V_j: Summary) -> list[Summary]:
        """Adds the records of the match; those without a match of its pattern are not maximal any more.

        The paper copies every record that has a value in that place, which makes each copy once for each old match.
        """
        X_G = V_j[self.centre]
        assert X_G is not None
        matches = self._matches.setdefault(X_G, {})
        added = self._joins(matches, bit, V_j)
        if bit in matches:
            matches[bit].add(V_j)
            self.L_e[X_G].update(added)
        else:
            matches[bit] = {V_j}
            self.L_e[X_G] = set(added)
        return added if sum(matches) == self.full else []

    def delete(self, bit: int, V_j: Summary) -> list[Summary]:
        """Removes the records of the match; when it was the pattern's last, what is left of them is maximal again."""
        X_G = V_j[self.centre]
        assert X_G is not None
        matches = self._matches[X_G]
        M = sum(matches)
        gone = self._joins(matches, bit, V_j)
        matches[bit].remove(V_j)
        if matches[bit]:
            self.L_e[X_G].difference_update(gone)
        else:
            del matches[bit]
            self.L_e[X_G] = set(self._joins(matches, bit, self._only_centre(V_j)))
        if not matches:
            del self._matches[X_G], self.L_e[X_G]
        return gone if M == self.full else []

    def get_ground_items(self, C: int) -> list[Summary]:
        return list(self.L_e[C]) if sum(self._matches.get(C, ())) == self.full else []

    def records(self) -> Iterator[tuple[int, Summary]]:
        return ((sum(self._matches[X_G]), V) for X_G, records in self.L_e.items() for V in records)

    def _joins(self, matches: dict[int, set[Summary]], bit: int, V_j: Summary) -> list[Summary]:
        """The records that hold a match: its joins with one match of each other pattern."""
        records = [V_j]
        for other, others in matches.items():
            if other != bit and len(self.positions_of[other]) > 1:  # else it binds the centre alone
                records = [join(V, V_other) for V in records for V_other in others]
        return records

    def _only_centre(self, V: Summary) -> Summary:
        return tuple(value if position == self.centre else UNKNOWN for position, value in enumerate(V))


class JoinedStar(ExtendedList):
    """The list of a star with a variable in several patterns: L_e[X_G] = {V: M}.

    The key may be V: two choices that give the same values agree, so their union would be the maximal one.
    """

    def __init__(self, star: Star, patterns: tuple[TriplePattern, ...], variables: tuple[Variable, ...]) -> None:
        super().__init__(star, patterns, variables)
        self.L_e: dict[int, dict[Summary, int]] = {}

    def insert(self, bit: int, V_j: Summary) -> list[Summary]:
        """Extends each record that agrees with the match; of the others, joins the part that agrees with it."""
        X_G = V_j[self.centre]
        assert X_G is not None
        records = self.L_e.setdefault(X_G, {})
        extended: dict[Summary, int] = {}
        for V, M in list(records.items()):
            agreeing = self._agreeing(V, M, V_j)
            if agreeing == M:
                del records[V]
            joined = join(V_j, self._restrict(V, agreeing))
            extended[joined] = extended.get(joined, 0) | agreeing | bit
        if not extended:
            extended[V_j] = bit
        changed = maximal(extended)
        records.update(changed)
        return [V for V, M in changed.items() if M == self.full]

    def delete(self, bit: int, V_j: Summary) -> list[Summary]:
        """Takes the match out of its records, and keeps what is left of each unless another record says it too."""
        X_G = V_j[self.centre]
        assert X_G is not None
        records = self.L_e[X_G]
        own = self.positions_of[bit]
        affected = [(V, M) for V, M in records.items() if M & bit and agree(V, V_j, own)]
        left: dict[Summary, int] = {}
        for V, M in affected:
            del records[V]
            if M != bit:
                left[self._restrict(V, M & ~bit)] = M & ~bit
        for V, M in maximal(left).items():
            if not any(says(other, V) and M & ~N == 0 for other, N in records.items()):
                records[V] = M
        if not records:
            del self.L_e[X_G]
        return [V for V, M in affected if M == self.full]

    def get_ground_items(self, C: int) -> list[Summary]:
        return [V for V, M in self.L_e.get(C, {}).items() if M == self.full]

    def records(self) -> Iterator[tuple[int, Summary]]:
        return ((M, V) for records in self.L_e.values() for V, M in records.items())

    def _agreeing(self, V: Summary, M: int, V_j: Summary) -> int:
        """The patterns of a record whose match has no other value for a variable of the new match."""
        return sum(
            bit
            for bit, positions in self.positions_of.items()
            if M & bit and all(V_j[position] in (UNKNOWN, V[position]) for position in positions)
        )

    def _restrict(self, V: Summary, M: int) -> Summary:
        """The summary with the variables of the patterns in M only."""
        kept = {position for bit, positions in self.positions_of.items() if M & bit for position in positions}
        return tuple(value if position in kept else UNKNOWN for position, value in enumerate(V))


def join(V_1: Summary, V_2: Summary) -> Summary:
    """The paper's join of compatible variables-summaries: what the first knows, else what the second knows."""
    return tuple(right if left is UNKNOWN else left for left, right in zip(V_1, V_2, strict=True))


def agree(V_1: Summary, V_2: Summary, positions: tuple[int, ...]) -> bool:
    """Whether two summaries have the same values there."""
    return all(V_1[position] == V_2[position] for position in positions)


def says(V_1: Summary, V_2: Summary) -> bool:
    """Whether the first summary knows everything that the second knows."""
    return all(right is UNKNOWN or left == right for left, right in zip(V_1, V_2, strict=True))


def maximal(records: dict[Summary, int]) -> dict[Summary, int]:
    """The records that no other one contains."""
    return {
        V: M
        for V, M in records.items()
        if not any(M != N and M & ~N == 0 and says(other, V) for other, N in records.items())
    }
