"""The kernel's arrays and their owner: queries in, messages of ids in, runs of rows out.

Everything that has to last lives in one arena; the rest is made anew from the queries. Invariant between calls: the
cursor is idle, and each retained triple is in all relations that it unifies with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.arena import Arena
from deltastar.kernel import step as kernel
from deltastar.kernel.state import DTYPES, State, Table
from deltastar.layout import Ints
from deltastar.plan.decompose import Plan
from deltastar.plan.program import Compiled, Program, Relation, View
from deltastar.rdf.terms import Term

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
    "term_heads": at.MAX_TERMS,
    "term_next": at.MAX_TERMS,
    "term_hash": at.MAX_TERMS,
    "term_uses": at.MAX_TERMS,
    "term_place": at.MAX_TERMS,
    "term_length": at.MAX_TERMS,
    "text": at.MAX_TEXT,
}
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
        id_of: Callable[[Term], int],
        release: Callable[[int], None],
        path: str | None = None,
        out_ints: int = OUT_INTS,
        stage_ints: int = _STAGE_INTS,
    ) -> None:
        self.arena = Arena({name: (getattr(DTYPES, name), size) for name, size in _IN_ARENA.items()}, path)
        self.program = Program(id_of, release)
        self.out: Ints = np.zeros(out_ints, np.int32)
        self._stage: Ints = np.zeros(stage_ints, np.int32)
        self._messages: Ints = np.zeros(at.MESSAGE, np.int32)
        self._cursor: NDArray[np.int64] = np.zeros(at.CURSOR, np.int64)
        self._cursor[at.U_OUT_ROOM], self._cursor[at.U_STAGE_ROOM] = out_ints, stage_ints
        self._table: Table | None = None
        self._made_for: tuple[int, ...] = ()
        self._one: Ints = np.zeros(at.MESSAGE, np.int32)

    # Queries ---------------------------------------------------------------------------------------------------------

    def add(self, plan: Plan) -> Compiled:
        """Takes a query in, and brings what is new for it up to date with the triples that are there."""
        program = self.program
        known_relations = set(program.relations)
        known_components = set(program.components)
        known_views = {view for component in known_components for view in component.views.values()}
        compiled = program.add(plan)
        if self.triples or True:
            self._fill(
                [relation for relation in program.relations if relation not in known_relations],
                known_relations,
                [component for component in program.components if component not in known_components],
                [
                    view
                    for component in program.components
                    for view in component.views.values()
                    if view not in known_views
                ],
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

    def apply(self, messages: Ints, count: int) -> Iterator[list[Run]]:
        """Applies messages (op, s, p, o), and gives the rows they bring, whenever the output is full and at the end."""
        table, cursor = self._prepare(messages), self._cursor
        cursor[at.U_MESSAGE], cursor[at.U_MESSAGES] = 0, count
        while True:
            cursor[at.U_OUT] = 0
            status = kernel.step(table)
            yield self._runs(int(cursor[at.U_OUT]))
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
            program.most_views, messages.ctypes.data, len(messages),
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
