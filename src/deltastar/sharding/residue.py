"""What a shard knows beside its arrays, kept with them: counts, the open transaction, the place in the stream.

There are two residues in an arena: of the state as it is, and as it was before the last batch. Each process that maps
the arena goes on from there, and a batch that is taken back takes its residue back. Messages that wait for the end of
their transaction are part of it. Invariant: the terms of waiting messages of both residues are in use, so their ids
mean the same as long as somebody may go back to them.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field, fields

from deltastar import layout as at
from deltastar.arena import H_SLOT
from deltastar.kernel import journal
from deltastar.layout import Ints, Longs
from deltastar.machine import Machine
from deltastar.statistics import Statistics


@dataclass(slots=True)
class Residue:
    """One of the two. All fields but the counts are numbers."""

    is_valid: int = 0
    version: int = 0
    chain: int = 0
    has_dropped: int = 0
    is_open: int = 0
    """Whether a transaction is open; then, by transaction, behind which message, and so on."""
    opened_at: int = 0
    waiting_absent: int = 0
    transaction: int = 0
    waiting_at: int = 0
    waiting: int = 0
    source: int = 0
    """A digest of the source's name, for the numbers of lines are those of its file."""
    lines: int = 0
    logged_bytes: int = 0
    """What was logged since the last snapshot, in how many batches; and how large that was."""
    logged: int = 0
    snapshot_bytes: int = 0
    statistics: Statistics = field(default_factory=Statistics)

    def numbers(self) -> list[int]:
        """All of it."""
        own = [getattr(self, name) for name in _OWN]
        return own + list(astuple(self.statistics))

    @classmethod
    def of(cls, numbers: list[int]) -> Residue:
        """What `numbers` gave."""
        own = numbers[: len(_OWN)]
        counts = numbers[len(_OWN) : len(_OWN) + len(fields(Statistics))]
        return cls(**dict(zip(_OWN, own, strict=True)), statistics=Statistics(*counts))


_OWN = [field_.name for field_ in fields(Residue) if field_.name != "statistics"]


class Residues:
    """The two residues of a machine's arena."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._numbers: Longs = machine.arena.arrays["residue"].reshape(2, at.RESIDUE)
        self._waiting: Ints = machine.arena.arrays["waiting"].reshape(-1, at.WAITING)

    @property
    def now(self) -> Residue:
        """That of the state as it is."""
        return Residue.of(self._numbers[self._slot].tolist())

    @property
    def before(self) -> Residue:
        """That of the state before the last batch. It is not valid when there is no way back."""
        return Residue.of(self._numbers[1 - self._slot].tolist())

    def waiting_of(self, residue: Residue) -> Ints:
        """The messages that wait: op, triple, and whether they are muted."""
        return self._waiting[residue.waiting_at : residue.waiting_at + residue.waiting]

    def begin(self) -> None:
        """A batch begins: the older residue is needed no more."""
        old = self.before
        if old.is_valid and not _continues(old, self.now):
            self._hold(old, 0, False)
        self._numbers[1 - self._slot] = 0

    def commit(self, residue: Residue, waiting: Ints) -> None:
        """The batch is applied. `waiting` are all messages that wait now."""
        before = self.now
        if _continues(before, residue):
            residue.waiting_at, known = before.waiting_at, before.waiting
        else:
            ends_at = before.waiting_at + before.waiting
            residue.waiting_at, known = (0 if len(waiting) <= before.waiting_at else ends_at), 0
        residue.waiting = len(waiting)
        start = residue.waiting_at
        self._waiting[start + known : start + len(waiting)] = waiting[known:]
        self._hold(residue, known, True)
        self._numbers[1 - self._slot, : len(residue.numbers())] = residue.numbers()
        self._machine.arena.header[H_SLOT] = 1 - self._slot

    def amend(self, residue: Residue) -> None:
        """Writes down what does not belong to the state itself."""
        numbers = self._numbers[self._slot]
        for name in ("logged_bytes", "logged", "snapshot_bytes"):
            numbers[_OWN.index(name)] = getattr(residue, name)

    def undo(self) -> None:
        """The last batch was taken back."""
        now, before = self.now, self.before
        self._hold(now, before.waiting if _continues(before, now) else 0, False)
        self._numbers[self._slot] = 0
        self._machine.arena.header[H_SLOT] = 1 - self._slot

    @property
    def _slot(self) -> int:
        return int(self._machine.arena.header[H_SLOT])

    def _hold(self, residue: Residue, first: int, is_held: bool) -> None:
        start = residue.waiting_at + first
        count = residue.waiting - first
        if count:
            journal.hold_messages(self._machine.table, self._waiting.reshape(-1), at.WAITING, start, count, is_held)


def _continues(before: Residue, after: Residue) -> bool:
    """Whether the waiting messages of the later one begin with those of the earlier one."""
    return bool(before.is_open and after.is_open) and before.transaction == after.transaction
