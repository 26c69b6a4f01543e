"""The kernel's arrays and their owner: queries in, messages of ids in, runs of rows out.

Everything that has to last lives in one arena; the rest is made anew from the queries. Invariant between calls: the
cursor is idle, and each retained triple is in all relations that it unifies with.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.arena import Arena
from deltastar.errors import SourceError
from deltastar.kernel import admit, terms
from deltastar.kernel import step as kernel
from deltastar.kernel.state import DTYPES, TERM_FIELDS, State, Table
from deltastar.layout import Ints
from deltastar.plan.decompose import Plan
from deltastar.plan.program import Compiled, Program, Relation, View
from deltastar.rdf.terms import Term, of_canonical
from deltastar.scan_layout import (
    GRANULE,
    HASH_BITS,
    KEYS,
    LENGTH_BYTES,
    N_PLACE,
    T_COUNT,
    T_COUNTERS,
    T_PENDING,
    TERM,
    TERM_CAPACITY,
    TERM_TOO_LONG,
    TEXT_CAPACITY,
    TEXT_CLASSES,
    TermArrays,
)

_IN_ARENA = {
    "counters": at.COUNTERS,
    "nodes": at.MAX_IDS * at.NODE,
    "heap": at.MAX_HEAP_UNITS * at.UNIT,
    "hubs": at.MAX_HUB_BUCKETS * at.BUCKET,
    "flags": at.MAX_IDS,
    "edges": (at.MAX_IDS - at.FIRST_EDGE) * at.EDGE,
    "edge_heads": at.MAX_IDS - at.FIRST_EDGE,
    "row_heads": at.MAX_TERMS,
    "relation_size": at.MAX_RELATIONS,
    "target_size": at.MAX_TARGETS,
    "view_state": at.MAX_TARGETS * at.VIEW_STATE,
    "term_counters": T_COUNTERS,
    "term_keys": KEYS,
    "term_heads": TERM_CAPACITY,
    "term": TERM_CAPACITY * TERM,
    "term_pending": TERM_CAPACITY,
    "term_free": TEXT_CLASSES,
    "text": TEXT_CAPACITY,
}
_COLLECT_AT = 256
OUT_INTS = 1 << 18
_STAGE_INTS = 1 << 14
_HITS = 64


class Run(NamedTuple):
    """Rows that one message adds to a target or removes from it."""

    target: int
    message: int
    sign: int
    rows: NDArray[np.int32]


class Counts(NamedTuple):
    """What a batch of messages came to."""

    effective: int
    repeated: int
    absent: int


class Machine:
    """An arena, a program, and the calls that work on them."""

    def __init__(
        self,
        path: str | None = None,
        out_ints: int = OUT_INTS,
        stage_ints: int = _STAGE_INTS,
        seed: int | None = None,
        hash_bits: int = HASH_BITS,
    ) -> None:
        self.arena = Arena({name: (getattr(DTYPES, name), size) for name, size in _IN_ARENA.items()}, path)
        arrays = self.arena.arrays
        self.terms = TermArrays._make([*(arrays[name] for name in TERM_FIELDS[:-1]), arrays["text"].view(np.int32)])
        if self.arena.is_new:
            terms.prepare(self.terms, secrets.randbits(64) if seed is None else seed, hash_bits)
        self.program = Program(self.acquire, self.release)
        self._memo: dict[int, Term] = {}
        self._incoming: NDArray[np.uint8] = np.zeros(1 << 12, np.uint8)
        self.out: Ints = np.zeros(out_ints, np.int32)
        self._stage: Ints = np.zeros(stage_ints, np.int32)
        self._messages: Ints = np.zeros(at.MESSAGE, np.int32)
        self._cursor: NDArray[np.int64] = np.zeros(at.CURSOR, np.int64)
        self._cursor[at.U_OUT_ROOM], self._cursor[at.U_STAGE_ROOM] = out_ints, stage_ints
        self._table: Table | None = None
        self._made_for: tuple[int, ...] = ()

    # Terms -----------------------------------------------------------------------------------------------------------

    def acquire(self, term: str) -> int:
        """A term's id, a new one if need be, with one more use."""
        id_ = int(admit.intern(self.table, self._bring(term.encode())))
        if id_ < 0:
            raise full(id_)
        return id_

    def release(self, id_: int) -> None:
        """One use of a term less."""
        admit.release(self.table, id_)

    def find(self, term: str) -> int:
        """A term's id, or 0."""
        return int(admit.look_up(self.table, self._bring(term.encode())))

    def term(self, id_: int) -> Term:
        """The term with this id."""
        term = self._memo.get(id_)
        if term is None:
            start = int(self.terms.term[id_ * TERM + N_PLACE]) * GRANULE
            length = int(self.terms.words[start >> 2])
            start += LENGTH_BYTES
            term = self._memo[id_] = of_canonical(self.terms.text[start : start + length].tobytes().decode())
        return term

    def collect(self, at_least: int = 0) -> None:
        """Frees the ids that have no use, if so many wait for it. What has been given out must not be decoded after."""
        pending = int(self.terms.counters[T_PENDING])
        if pending > at_least:
            for id_ in self.terms.pending[:pending].tolist():
                self._memo.pop(id_, None)
            admit.collect(self.table)

    @property
    def terms_in_use(self) -> int:
        """How many terms have an id."""
        self.collect()
        return int(self.terms.counters[T_COUNT])

    def _bring(self, text: bytes) -> int:
        """Puts text where the kernel takes it from; its length."""
        if len(text) > len(self._incoming):
            self._incoming = np.zeros(2 * len(text), np.uint8)
            self._made_for = ()
        self._incoming.data[: len(text)] = text
        return len(text)

    # Queries ---------------------------------------------------------------------------------------------------------

    def add(self, plan: Plan) -> Compiled:
        """Takes a query in, and brings what is new for it up to date with the triples that are there."""
        program = self.program
        known_relations = set(program.relations)
        known_components = set(program.components)
        known_views = {view for component in known_components for view in component.views.values()}
        compiled = program.add(plan)
        self._fill(
            [relation for relation in program.relations if relation not in known_relations],
            known_relations,
            [component for component in program.components if component not in known_components],
            [view for component in program.components for view in component.views.values() if view not in known_views],
        )
        return compiled

    def remove(self, compiled: Compiled) -> None:
        """Takes a query out, with all that was there for it alone."""
        views = self.program.views_of(compiled)
        gone = self.program.remove(compiled)
        for view in dict.fromkeys(views):
            if view.columns not in view.component.views:
                kernel.clear(self.table, view.number, len(view.columns))
        for relation in gone:
            triples = np.concatenate([*self._list_triples(relation, False), np.zeros(0, np.int32)])
            kernel.empty_relation(self.table, relation.address, triples, len(triples) // 3)
            self.program.forget(relation)

    def _fill(self, relations: list[Relation], known: set[Relation], components: list[Any], views: list[View]) -> None:
        program = self.program
        for view in views:
            self.arena.arrays["view_state"][view.number * at.VIEW_STATE + at.VIEW_WIDTH] = len(view.columns)
        slots, program.fresh_slots = program.fresh_slots, []
        if self.triples == 0:
            return
        for slot in slots:
            relation = program.relation_of_slot(slot)
            if relation in known:
                kernel.index_slot(self.table, relation.address, slot & 1)
        for other in known:
            for triples in self._list_triples(other, False):
                for relation in relations:
                    kernel.fill_relation(self.table, relation.address, triples, len(triples) // 3)
        for component in components:
            size = sum(len(rows) for rows in self.embeddings(component))
            self.arena.arrays["target_size"][component.target] = size
        for view in views:
            for rows in self.embeddings(view.component):
                if len(rows):
                    kernel.fill_view(self.table, view.address, rows.ravel(), len(rows))

    # Messages --------------------------------------------------------------------------------------------------------

    def admit(self, op: int, subject: str, predicate: str, object: str) -> int:
        """A message of texts, made ready for `apply_one`: what became of it (`layout.DROPPED` and so on)."""
        s, p, o = subject.encode(), predicate.encode(), object.encode()
        s_end = len(s)
        p_end = s_end + len(p)
        o_end = self._bring(s + p + o)
        status = int(admit.admit(self.table, op, s_end, p_end, o_end))
        if status < 0:
            raise full(status)
        return status

    def apply_one(self) -> Iterator[list[Run]]:
        """Applies the message that was admitted last."""
        return self.apply(self._messages, 1)

    def apply(self, messages: Ints, count: int) -> Iterator[list[Run]]:
        """Applies messages (op, s, p, o), and gives the rows they bring, whenever the output is full and at the end."""
        for end in self.steps(messages, count):
            yield self._runs(end)

    def steps(self, messages: Ints, count: int) -> Iterator[int]:
        """The same for whoever reads `out` as it is: gives where in it the runs end."""
        table, cursor = self._prepare(messages), self._cursor
        cursor[at.U_MESSAGE], cursor[at.U_MESSAGES] = 0, count
        while True:
            cursor[at.U_OUT] = 0
            status = kernel.step(table)
            yield int(cursor[at.U_OUT])
            if status == at.DONE:
                return

    def counts(self) -> Counts:
        """What the messages since the last call came to."""
        cursor = self._cursor
        counts = Counts(int(cursor[at.U_EFFECTIVE]), int(cursor[at.U_REPEATED]), int(cursor[at.U_ABSENT]))
        cursor[at.U_EFFECTIVE] = cursor[at.U_REPEATED] = cursor[at.U_ABSENT] = 0
        return counts

    def _runs(self, end: int) -> list[Run]:
        out, position, widths = self.out, 0, self.program.widths
        runs = []
        while position < end:
            target, message, sign, rows = out[position : position + at.O_HEADER].tolist()
            position += at.O_HEADER
            width = widths[target]
            if rows:
                block = out[position : position + rows * width].reshape(rows, width)
                runs.append(Run(target, message, sign, block))
            position += rows * width
        return runs

    # What is there ----------------------------------------------------------------------------------------------------

    @property
    def triples(self) -> int:
        """How many triples are retained."""
        return int(self.arena.arrays["counters"][at.C_TRIPLES])

    def size(self, compiled: Compiled) -> int:
        """How many rows a query has."""
        if compiled.component is not None:
            return int(self.arena.arrays["target_size"][compiled.component.target])
        size = 1
        for view in self.program.views_of(compiled):
            size *= int(self.arena.arrays["view_state"][view.number * at.VIEW_STATE + at.VIEW_SIZE])
        return size

    def rows(self, compiled: Compiled) -> Iterator[NDArray[np.int32]]:
        """All rows of a query, with the columns of its target."""
        if compiled.component is not None:
            yield from self.embeddings(compiled.component)
            return
        views = [self.view_rows(view) for view in self.program.views_of(compiled)]
        if len(views) == 1:
            yield views[0]
            return
        if self.size(compiled):
            yield from _product(views)

    def view_rows(self, view: View) -> NDArray[np.int32]:
        """The rows of a view."""
        size = int(self.arena.arrays["view_state"][view.number * at.VIEW_STATE + at.VIEW_SIZE])
        rows: Ints = np.zeros(size * len(view.columns), np.int32)
        kernel.list_rows(self.table, view.number, len(view.columns), rows)
        return rows.reshape(size, len(view.columns))

    def embeddings(self, component: Any) -> Iterator[NDArray[np.int32]]:
        """All embeddings of a component, in blocks that are valid until the next one is asked for."""
        table, cursor = self.table, self._cursor
        pattern = min(
            range(len(component.relations)), key=lambda index: self._relation_size(component.relations[index])
        )
        cursor[at.U_NODE] = cursor[at.U_INDEX] = 0
        width = component.shape.width
        while True:
            cursor[at.U_OUT] = 0
            cursor[at.U_MESSAGE] = 0
            status = kernel.list_embeddings(table, component.triggers[pattern], component.relations[pattern].address)
            position, end = 0, int(cursor[at.U_OUT])
            while position < end:
                rows = int(self.out[position + at.O_ROWS])
                position += at.O_HEADER
                yield self.out[position : position + rows * width].reshape(rows, width)
                position += rows * width
            if status == at.DONE:
                return

    def list_triples(self) -> Iterator[NDArray[np.int32]]:
        """All retained triples, in blocks of (s, p, o)."""
        for relation in list(self.program.relations):
            for block in self._list_triples(relation, True):
                yield block.reshape(-1, 3)

    def _list_triples(self, relation: Relation, first_only: bool) -> Iterator[Ints]:
        cursor = self._cursor
        node = index = 0
        while True:
            cursor[at.U_NODE], cursor[at.U_INDEX], cursor[at.U_OUT] = node, index, 0
            status = kernel.list_triples(self.table, relation.address, first_only)
            node, index = int(cursor[at.U_NODE]), int(cursor[at.U_INDEX])
            yield self.out[: cursor[at.U_OUT]].copy()
            if status == at.DONE:
                return

    def _relation_size(self, relation: Relation) -> int:
        return int(self.arena.arrays["relation_size"][relation.number])

    # Arrays ----------------------------------------------------------------------------------------------------------

    @property
    def table(self) -> int:
        """The table of all arrays, as they are now."""
        return self._prepare(self._messages)

    def _prepare(self, messages: Ints) -> int:
        program = self.program
        made_for = (
            program.version, program.most_variables, program.most_candidates, program.relation_numbers,
            program.most_views, messages.ctypes.data,
        )  # fmt: skip
        if self._table is None or made_for != self._made_for:
            self._make_table(messages)
            self._made_for = made_for
        assert self._table is not None
        return self._table.address

    def _make_table(self, messages: Ints) -> None:
        program = self.program
        variables = program.most_variables
        stamps = np.zeros(program.relation_numbers + 64, np.int64)
        private = {
            "program": program.code,
            "dispatch": program.dispatch,
            "stamps": stamps,
            "hits": np.zeros(_HITS, np.int64),
            "cursor": self._cursor,
            "values": np.zeros(variables, np.int64),
            "bound": np.ones(variables, np.int64),
            "offered": np.zeros(variables, np.int64),
            "candidates": np.zeros(program.most_candidates * at.GIVEN, np.int64),
            "frames": np.zeros(variables * at.FRAME, np.int64),
            "key": np.zeros(variables, np.int64),
            "odometer": np.zeros(program.most_views + 1, np.int64),
            "messages": messages,
            "incoming": self._incoming,
            "words": self.terms.words,
            "out": self.out,
            "stage": self._stage,
        }
        self._messages = messages
        if self._table is not None:
            self._table.close()
        self._table = Table(State(**{**self.arena.arrays, **private}))


def _product(views: list[NDArray[np.int32]]) -> Iterator[NDArray[np.int32]]:
    """All combinations of rows, a block for each row of the first view."""
    if not views:
        yield np.zeros((1, 0), np.int32)
        return
    for row in views[0]:
        for rest in _product(views[1:]):
            yield np.hstack([np.broadcast_to(row, (len(rest), len(row))), rest])


def full(status: int) -> SourceError:
    """What a negative status means."""
    if status == TERM_TOO_LONG:
        return SourceError("a term is longer than 1 GiB; no more than that can be kept")
    return SourceError("there are more terms, or more text in them, than an engine can hold; use more shards")
