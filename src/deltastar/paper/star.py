"""Algorithm 2: simple var-centric stars. A match state for every term that the centre might be."""

from __future__ import annotations

from collections.abc import Iterator

from deltastar.rdf.update import INSERT


class SimpleStar:
    """A simple var-centric star Q_S with its list L of ground instances, by the centre's value X_G.

    A match state is the bits of an integer. The paper's version returns at a negative answer before it clears the
    match state, and looks through the whole list on a delete; here the state is cleared first, and L is a map.
    """

    __slots__ = ("L", "_bit_of", "_full")

    def __init__(self, patterns: tuple[int, ...]) -> None:
        self._bit_of = {pattern: 1 << position for position, pattern in enumerate(patterns)}
        self._full = (1 << len(patterns)) - 1
        self.L: dict[int, int] = {}

    def process_update_message_on_star(self, op: str, j: int, X_G: int) -> bool:
        """Applies an effective update that matches pattern j at X_G. Whether the answer X_G appeared or vanished."""
        bit, before = self._bit_of[j], self.L.get(X_G, 0)
        after = before | bit if op == INSERT else before & ~bit
        if after:
            self.L[X_G] = after
        else:
            del self.L[X_G]
        return self._full in (before, after)

    def answers(self) -> Iterator[tuple[int]]:
        """The centre's values whose match state is complete."""
        return ((X_G,) for X_G, M in self.L.items() if M == self._full)
