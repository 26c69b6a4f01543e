"""Algorithm 6: the extended list of ground var-centric instances of a generalised star.

A record is a pair (M, V): which patterns of the star have a match, and the variables-summary that these matches give.
The list L_e holds, for each value of the centre, one record for each way of choosing a match for as many patterns as
agree with each other: the *maximal* choices. A record with a complete M is an embedding of the star.

The paper's rule for deletion ("remove one of the records with compatible summaries") is made exact by maximality: a
record goes when another one says everything that it says. Two forms keep that invariant:

- `FreeStar`, when every variable but the centre stands in one pattern. Any choices agree, so all records of a centre
  have the same M, and the matches alone say what they are.
- `JoinedStar`, when a variable stands in two patterns (`?x p ?y . ?y q ?x`). Choices may disagree, and M differs.

V is a tuple over the component's variables, `UNKNOWN` (the paper's `*`) where nothing is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

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
        self._unknown: Summary = (UNKNOWN,) * len(variables)
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

    def get_ground_items(self, V_i: Summary) -> list[Summary]:
        """The paper's getGroundItems: the complete records at V_i's centre, those that are compatible with V_i."""
        raise NotImplementedError

    def records(self) -> Iterator[tuple[int, Summary]]:
        """All records, as (M, V)."""
        raise NotImplementedError

    def _restrict(self, V: Summary, M: int) -> Summary:
        """The summary with the variables of the patterns in M only."""
        kept = {position for bit, positions in self.positions_of.items() if M & bit for position in positions}
        return tuple(value if position in kept else UNKNOWN for position, value in enumerate(V))


class FreeStar(ExtendedList):
    """The list of a star whose patterns share nothing but the centre: L_e[X_G] = {pattern: {V_j, …}}.

    Any choices agree, so the records of a centre all have the same M, and are the joins of one match of each of its
    patterns. The paper writes each of them down, and looks through all of them at every update; here the list holds the
    matches, and a record is made when it is asked for.
    """

    def __init__(self, star: Star, patterns: tuple[TriplePattern, ...], variables: tuple[Variable, ...]) -> None:
        super().__init__(star, patterns, variables)
        self.L_e: dict[int, dict[int, set[Summary]]] = {}

    def insert(self, bit: int, V_j: Summary) -> list[Summary]:
        """Adds a match: the records that hold it are new.

        The paper copies every record that has a value in that place, which makes each copy once for each old match.
        """
        X_G = V_j[self.centre]
        assert X_G is not None
        self.L_e.setdefault(X_G, {}).setdefault(bit, set()).add(V_j)
        return self.get_ground_items(V_j)

    def delete(self, bit: int, V_j: Summary) -> list[Summary]:
        """Removes a match: the records that held it are gone."""
        X_G = V_j[self.centre]
        assert X_G is not None
        gone = self.get_ground_items(V_j)
        matches = self.L_e[X_G]
        matches[bit].remove(V_j)
        if not matches[bit]:
            del matches[bit]
            if not matches:
                del self.L_e[X_G]
        return gone

    def get_ground_items(self, V_i: Summary) -> list[Summary]:
        C = V_i[self.centre]
        assert C is not None
        matches = self.L_e.get(C, {})
        return self._joins(matches, V_i) if sum(matches) == self.full else []

    def records(self) -> Iterator[tuple[int, Summary]]:
        for X_G, matches in self.L_e.items():
            for V in self._joins(matches, (*self._unknown[: self.centre], X_G, *self._unknown[self.centre + 1 :])):
                yield sum(matches), V

    def _joins(self, matches: dict[int, set[Summary]], V_i: Summary) -> list[Summary]:
        """The records of one centre that are compatible with V_i, which knows the centre."""
        records = [self._unknown]
        for bit, all_V_j in matches.items():
            known = [position for position in self.positions_of[bit] if V_i[position] is not UNKNOWN]
            compatible: Collection[Summary] = all_V_j
            if len(known) == len(self.positions_of[bit]):
                compatible = all_V_j & {self._restrict(V_i, bit)}
            elif len(known) > 1:
                compatible = [V_j for V_j in all_V_j if agree(V_i, V_j, known)]
            records = [join(V, V_j) for V in records for V_j in compatible]
        return records


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

    def get_ground_items(self, V_i: Summary) -> list[Summary]:
        C = V_i[self.centre]
        assert C is not None
        known = [position for position in self.positions if V_i[position] is not UNKNOWN]
        return [V for V, M in self.L_e.get(C, {}).items() if M == self.full and agree(V, V_i, known)]

    def records(self) -> Iterator[tuple[int, Summary]]:
        return ((M, V) for records in self.L_e.values() for V, M in records.items())

    def _agreeing(self, V: Summary, M: int, V_j: Summary) -> int:
        """The patterns of a record whose match has no other value for a variable of the new match."""
        return sum(
            bit
            for bit, positions in self.positions_of.items()
            if M & bit and all(V_j[position] in (UNKNOWN, V[position]) for position in positions)
        )


def join(V_1: Summary, V_2: Summary) -> Summary:
    """The paper's join of compatible variables-summaries: what the first knows, else what the second knows."""
    return tuple(right if left is UNKNOWN else left for left, right in zip(V_1, V_2, strict=True))


def agree(V_1: Summary, V_2: Summary, positions: Sequence[int]) -> bool:
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
