"""The kernel's arrays and their owner: queries in, messages of ids in, runs of rows out.

Everything that has to last lives in one arena; the rest is made anew from the queries. Invariant between calls: the
cursor is idle, and each retained triple is in all relations that it unifies with.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deltastar import layout as at
from deltastar.arena import H_DIRTY, H_PROGRAM, H_VERSION, Arena
from deltastar.errors import InvariantError, SourceError
from deltastar.kernel import admit, journal, live, scan, single, terms
from deltastar.kernel import step as kernel
from deltastar.kernel.state import DTYPES, TERM_FIELDS, State, Table
from deltastar.layout import Ints, Longs
from deltastar.plan.decompose import Plan
from deltastar.plan.program import Compiled, Live, Program, View
from deltastar.plan.relations import Relation
from deltastar.plan.shares import Place
from deltastar.query.algebra import TriplePattern, Variable
from deltastar.rdf.terms import Term, of_canonical
from deltastar.scan_layout import (
    ENTRY,
    GRANULE,
    HASH_BITS,
    K_MASK,
    KEYS,
    LENGTH_BYTES,
    N_HASH,
    N_PLACE,
    P_ANY,
    P_SETTINGS,
    SLOTS_PER_ENTRY,
    T_BUCKETS,
    T_COUNT,
    T_COUNTERS,
    T_PENDING,
    T_TOP,
    TERM,
    TERM_CAPACITY,
    TERM_TOO_LONG,
    TEXT_CAPACITY,
    TEXT_CLASSES,
    PredicateArrays,
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
    "lives": at.MAX_LIVES * at.LIVE_STATE,
    "keeps": at.MAX_RELATIONS,
    "residue": 2 * at.RESIDUE,
    "waiting": at.MAX_LOG * at.WAITING,
    "log": at.MAX_LOG * at.MESSAGE,
    "term_counters": T_COUNTERS,
    "term_keys": KEYS,
    "term_heads": TERM_CAPACITY,
    "term": TERM_CAPACITY * TERM,
    "term_pending": TERM_CAPACITY,
    "term_free": TEXT_CLASSES,
    "text": TEXT_CAPACITY,
}
_OTHERS = {"keeps": np.int64, "residue": np.int64, "waiting": np.int32}
"""Arrays of the arena that no kernel function looks for."""
OUT_INTS = 1 << 18
_STAGE_INTS = 1 << 14
_ROW_BYTES = 1 << 22
_HITS = 64
_MESSAGES = 1 << 12


class Run(NamedTuple):
    """Rows that one message adds to a target or removes from it."""

    target: int
    message: int
    sign: int
    rows: NDArray[np.int32]


class Machine:
    """An arena, a program, and the calls that work on them."""

    def __init__(
        self,
        path: str | None = None,
        out_ints: int = OUT_INTS,
        stage_ints: int = _STAGE_INTS,
        seed: int | None = None,
        hash_bits: int = HASH_BITS,
        messages: int = _MESSAGES,
        classes: Sequence[Place] = (),
        keys: Longs | None = None,
        live_room: int = at.LIVE_ROOM,
    ) -> None:
        self.arena = Arena(
            {name: (getattr(DTYPES, name, None) or _OTHERS[name], size) for name, size in _IN_ARENA.items()}, path
        )
        arrays = self.arena.arrays
        self.terms = TermArrays._make([*(arrays[name] for name in TERM_FIELDS[:-1]), arrays["text"].view(np.int32)])
        if self.arena.is_new:
            terms.prepare(self.terms, secrets.randbits(64) if seed is None else seed, hash_bits)
            if keys is not None:
                self.terms.keys[:] = keys
        self._is_attaching, self._is_shared = not self.arena.is_new, path is not None
        self.program = Program(self.acquire, self.release)
        self._flags = {class_: self.program.take_flag() for class_ in dict.fromkeys(classes)}
        self._classes = _class_array(self._flags)
        self._memo: dict[int, Term] = {}
        self._incoming: NDArray[np.uint8] = np.zeros(1 << 12, np.uint8)
        self.out: Ints = np.zeros(out_ints + at.ROW_SPARE, np.int32)
        self._stage: Ints = np.zeros(stage_ints + at.ROW_SPARE, np.int32)
        self.messages: Ints = np.zeros(messages * at.MESSAGE, np.int32)
        self.cursor: NDArray[np.int64] = np.zeros(at.CURSOR, np.int64)
        self.cursor[at.U_LIVE_ROOM] = live_room
        self.predicates = _predicate_arrays(1 << 10, 1 << 16)
        self._users_of_predicate: Counter[int] = Counter()
        self._private: dict[str, NDArray[Any]] = {}
        self._table: Table | None = None
        self._made_for: tuple[int, ...] = ()
        self._program_noted = 0

    @property
    def muted(self) -> Ints:
        """For each message: 1 when it is not for this engine to count that it has no effect."""
        return self._private["muted"]

    @property
    def groups(self) -> Ints:
        """For each message: not 0, and the same for all of its group, if that is mixed."""
        return self._private["groups"]

    # Terms -----------------------------------------------------------------------------------------------------------

    def acquire(self, term: str) -> int:
        """A term's id, a new one if need be, with one more use; on the way to what is in the arena already, just it."""
        if self._is_attaching:
            if not (known := self.find(term)):
                raise InvariantError(f"the arena was made for other queries: {term} is not in it")
            return known
        id_ = int(admit.intern(self.table, self._bring(term.encode())))
        if id_ < 0:
            raise full(id_)
        return id_

    def release(self, id_: int) -> None:
        """One use of a term less."""
        if self._is_attaching:
            return
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
            if self._memo:
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

    def add(self, plan: Plan, classes: Mapping[Variable, Place] | None = None) -> Compiled:
        """Takes a query in, and brings what is new for it up to date with the triples that are there.

        Some of its variables may be restricted to a class of terms each, one of those that the machine was made with.
        """
        flags = {variable: self._flags[class_] for variable, class_ in (classes or {}).items()}
        compiled = self.program.add(plan, flags)
        for relation in self.program.fresh.relations:
            self._open_door(relation)
        if not self._is_attaching:
            self._fill()
        return compiled

    def remove(self, compiled: Compiled) -> None:
        """Takes a query out, with all that was there for it alone."""
        views = self.program.views_of(compiled)
        gone = self.program.remove(compiled)
        for view in dict.fromkeys(views):
            if view.columns not in view.component.views:
                kernel.clear(self.table, view.number, len(view.columns))
        for unused in self.program.unused_lives:
            if unused.is_kept:
                self._drop_live(unused)
        while self.program.unused_lives:
            self.program.forget_live(self.program.unused_lives.pop())
        for relation in gone:
            self._close(relation)

    def end_attach(self) -> None:
        """All queries that the arena knows are there, in the order in which it came to know them."""
        if not self._is_attaching:
            return
        program, keeps, lives = self.program, self.arena.arrays["keeps"], self.arena.arrays["lives"]
        for relation in program.relations:
            program.code[relation.address + at.R_KEEP] = keeps[relation.number]
        for kind in program.lives:
            if lives[kind.number * at.LIVE_STATE + at.LIVE_IS_KEPT]:
                program.keep_live(kind)
        program.fresh_slots.clear()
        self._is_attaching = False
        self._program_noted = int(self.arena.header[H_PROGRAM])

    @property
    def is_current(self) -> bool:
        """Whether nobody else has changed what is indexed since this machine's program was made."""
        return self._program_noted == int(self.arena.header[H_PROGRAM])

    def forget_terms(self) -> None:
        """Somebody else has worked on the arena: an id may mean another term now."""
        self._memo.clear()

    def publish(self) -> None:
        """Tells other processes what is indexed."""
        keeps = self.arena.arrays["keeps"]
        for relation in self.program.relations:
            keeps[relation.number] = self.program.code[relation.address + at.R_KEEP]
        self.arena.header[H_PROGRAM] += np.uint64(1)
        self._program_noted = int(self.arena.header[H_PROGRAM])

    def retain_all(self) -> None:
        """Keeps triples that no query matches, too."""
        self.relate(TriplePattern(Variable("s"), Variable("p"), Variable("o")))

    def relate(self, pattern: TriplePattern) -> Relation:
        """Lets triples in that unify with a pattern, though no query may have it."""
        relation = self.program.relation(pattern)
        if relation.users == 1:
            self._open_door(relation)
        return relation

    def _close(self, relation: Relation) -> None:
        triples = np.concatenate([*self._list_triples(relation, False), np.zeros(0, np.int32)])
        kernel.empty_relation(self.table, relation.address, triples, len(triples) // 3)
        self._shut_door(relation)
        self.program.forget(relation)

    def _fill(self) -> None:
        """Brings what is fresh up to date."""
        program, fresh = self.program, self.program.fresh
        for view in fresh.views:
            self.arena.arrays["view_state"][view.number * at.VIEW_STATE + at.VIEW_WIDTH] = len(view.columns)
        if self.triples == 0:
            program.fresh_slots.clear()
            return
        new = set(fresh.relations)
        self._index(new)
        for relation in fresh.relations:
            for other in [other for other in program.relations if other not in new and other.may_share(relation)]:
                for triples in self._list_triples(other, False):
                    kernel.fill_relation(self.table, relation.address, triples, len(triples) // 3)
        for component in fresh.components:
            size = sum(len(rows) for rows in self.embeddings(component))
            self.arena.arrays["target_size"][component.target] = size
        for view in fresh.views:
            for rows in self.embeddings(view.component):
                if len(rows):
                    kernel.fill_view(self.table, view.address, rows.ravel(), len(rows))

    def _index(self, new: Set[Relation]) -> None:
        """Fills slots that are indexed from now on, of relations that are not new."""
        slots, self.program.fresh_slots = self.program.fresh_slots, []
        for slot in slots:
            relation = self.program.relation_of_slot(slot)
            if relation not in new:
                kernel.index_slot(self.table, relation.address, slot & 1)

    # Live lists -------------------------------------------------------------------------------------------------------

    def _switch(self) -> None:
        """Begins keeping a kind of live lists, or ends it, as the kernel asks. Those above it are made anew."""
        chosen = self.program.live_at(int(self.cursor[at.U_SWITCH]))
        self.cursor[at.U_SWITCH] = 0
        above = self.program.kept_above(chosen)
        for other in reversed(above):
            self._drop_live(other)
        if chosen.is_kept:
            self._drop_live(chosen)
        else:
            self._keep_live(chosen)
        for other in above:
            self._keep_live(other)
        if self._is_shared:
            self.publish()

    def _keep_live(self, kind: Live) -> None:
        self.program.keep_live(kind)
        self._index(set())
        self._set_live(kind, True)
        live.fill_live(self.table, kind.address)

    def _drop_live(self, kind: Live) -> None:
        live.clear_live(self.table, kind.slot)
        self._set_live(kind, False)
        self.program.drop_live(kind)

    def _set_live(self, kind: Live, is_kept: bool) -> None:
        state = self.arena.arrays["lives"][kind.number * at.LIVE_STATE : (kind.number + 1) * at.LIVE_STATE]
        state[at.LIVE_IS_KEPT], state[at.LIVE_BALANCE] = is_kept, 0

    # The door --------------------------------------------------------------------------------------------------------

    def _open_door(self, relation: Relation) -> None:
        """Rows that may unify with a relation pass the scanner from now on."""
        predicate = relation.key.constants[1]
        self._users_of_predicate[predicate] += 1
        if self._users_of_predicate[predicate] == 1:
            self._set_predicate(predicate, predicate)

    def _shut_door(self, relation: Relation) -> None:
        predicate = relation.key.constants[1]
        self._users_of_predicate[predicate] -= 1
        if self._users_of_predicate[predicate] == 0:
            del self._users_of_predicate[predicate]
            self._set_predicate(predicate, 0)

    def _set_predicate(self, id_: int, number: int) -> None:
        """Registers a predicate with the scanner, under its id, or takes it out; 0 is any predicate."""
        if id_ == 0:
            self.predicates.settings[P_ANY] = 0 in self._users_of_predicate
            return
        text: NDArray[np.uint8] = np.frombuffer(bytearray(self.term(id_).encode()), np.uint8)
        hashed = int(self.terms.term[id_ * TERM + N_HASH])
        while scan.set_predicate(self.predicates, text, 0, len(text), hashed, number) < 0:
            self.predicates = _predicate_arrays(2 * len(self.predicates.entries), 2 * len(self.predicates.text))
            for other in [other for other in self._users_of_predicate if other != id_]:
                self._set_predicate(other, other)

    # Messages --------------------------------------------------------------------------------------------------------

    def admit(self, op: int, row: tuple[str, str, str], written: int) -> int:
        """A message of texts, behind those written: what became of it (`layout.DROPPED` and so on)."""
        status = int(admit.admit(self.table, op, *self._bring_row(row), written))
        if status < 0:
            raise full(status)
        return status

    def apply_one(self, op: int, row: tuple[str, str, str]) -> tuple[int, int, int, int]:
        """Admits a message and applies it: what became of it, the step's status, the output's end, and how many ids
        wait to be freed.
        """
        s_end, p_end, end = self._bring_row(row)
        found: tuple[int, int, int, int] = single.apply_one(self._prepare(), op, s_end, p_end, end)
        if found[0] < 0:
            raise full(found[0])
        if found[1] == at.SWITCH:
            return found[0], self.step(), int(self.cursor[at.U_OUT]), found[3]
        return found

    def _bring_row(self, row: tuple[str, str, str]) -> tuple[int, int, int]:
        s, p, o = row
        text = s + p + o
        if text.isascii():
            s_end = len(s)
            return s_end, s_end + len(p), self._bring(text.encode())
        s_end = len(s.encode())
        return s_end, s_end + len(p.encode()), self._bring(text.encode())

    def step(self) -> int:
        """Goes on with the messages that `start` began; the output holds what came."""
        while True:
            status = int(kernel.step(self._prepare()))
            if status == at.SWITCH:
                self._switch()
                continue
            if status != at.OUT_GROW:
                return status
            self.out = np.concatenate([self.out, np.zeros_like(self.out)])
            self._made_for = ()

    def start(self, count: int) -> None:
        """Begins with the first of so many messages."""
        self.cursor[at.U_MESSAGE], self.cursor[at.U_MESSAGES] = 0, count

    def apply(self, messages: Ints, count: int) -> Iterator[list[Run]]:
        """Applies messages (op, s, p, o), and gives the rows they bring, whenever the output is full and at the end."""
        for end in self.steps(messages, count):
            yield self._runs(end)

    def steps(self, messages: Ints, count: int) -> Iterator[int]:
        """The same for whoever reads `out` as it is: gives where in it the runs end."""
        self.set_messages(messages)
        self.start(count)
        while True:
            self.cursor[at.U_OUT] = 0
            status = self.step()
            yield int(self.cursor[at.U_OUT])
            if status == at.DONE:
                return

    def set_messages(self, messages: Ints) -> None:
        """Where messages come from, from now on."""
        if messages is not self.messages:
            self.messages = messages
            self._made_for = ()

    # Batches that can be taken back -----------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The last batch that was committed."""
        return int(self.arena.header[H_VERSION])

    @property
    def is_dirty(self) -> bool:
        """Whether a batch is under way, or was when its process died."""
        return bool(self.arena.header[H_DIRTY])

    def begin_batch(self) -> None:
        """What is applied from here on can be taken back, until the next batch begins."""
        self.arena.header[H_DIRTY] = 1
        journal.open_batch(self.table)
        self.cursor[at.U_IS_LOGGED] = 1

    def commit_batch(self, version: int) -> None:
        """The batch is applied: this is the state's version now."""
        self.arena.header[H_VERSION] = version
        self.arena.header[H_DIRTY] = 0

    def undo_batch(self, version: int | None = None) -> None:
        """Goes back to where the last batch began. The answers are what they were; nobody is told.

        `version` is what the state was before; without it, one less than it is.
        """
        self.arena.header[H_DIRTY] = 1
        counters = self.arena.arrays["counters"]
        first = int(counters[at.C_BATCH_LOG])
        self.set_messages_room(int(counters[at.C_LOG_COUNT]) - first + 1)
        self.start(int(journal.write_undo(self.table, first)))
        status = -1
        while status != at.DONE:
            if status != at.SWITCH:
                self.cursor[at.U_OUT] = 0  # also when a group's rows do not fit: nobody reads them
            status = int(kernel.step(self._prepare()))
            if status == at.SWITCH:
                self._switch()
        self.cursor[at.U_MIXED] = self.cursor[at.U_GROUP_END] = self.cursor[at.U_OUT] = 0
        journal.close_undo_of_batch(self.table)
        self.arena.header[H_VERSION] = self.version - 1 if version is None else version
        self.arena.header[H_DIRTY] = 0

    def set_messages_room(self, messages: int) -> None:
        """Room for so many messages; those that are there stay."""
        if messages * at.MESSAGE > len(self.messages):
            longer: Ints = np.zeros(max(messages * at.MESSAGE, 2 * len(self.messages)), np.int32)
            longer[: len(self.messages)] = self.messages
            self.set_messages(longer)

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

    @property
    def arena_bytes(self) -> int:
        """What the arena's structures have taken at most so far, the terms' texts aside."""
        counters, terms = self.arena.arrays["counters"], self.terms.counters
        units, top = int(counters[at.C_HEAP_TOP]), int(terms[T_TOP]) + 1
        has_flags = bool(self.arena.arrays["flags"][:top].any())
        per_term = TERM * 4 + (at.NODE * 4 if units else 0) + (8 if has_flags else 0)
        buckets = int(terms[T_BUCKETS]) + int(counters[at.C_EDGE_BUCKETS]) + int(counters[at.C_ROW_BUCKETS])
        hubs, edges = int(counters[at.C_HUB_BUCKETS]), int(counters[at.C_EDGE_TOP])
        return units * at.UNIT * 4 + top * per_term + buckets * 4 + hubs * at.BUCKET * 4 + edges * at.EDGE * 4

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
        table, cursor = self.table, self.cursor
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

    def rows_of_triples(self) -> Iterator[bytes]:
        """All retained triples as rows of RDF Patch, many at a time."""
        return (text for messages in self.insertions() for _, _, text in self.rows_of(messages))

    def insertions(self) -> Iterator[Ints]:
        """The messages that would bring all retained triples, in blocks."""
        for block in self.list_triples():
            messages = np.empty((len(block), at.MESSAGE), np.int32)
            messages[:, at.M_OP], messages[:, at.M_S :] = at.OP_INSERT, block
            yield messages

    def rows_of(self, messages: Ints) -> Iterator[tuple[int, int, bytes]]:
        """Messages as rows of RDF Patch, as many at a time as fit: from which to which, and the rows."""
        flat, first, out = np.ascontiguousarray(messages).reshape(-1), 0, np.empty(_ROW_BYTES, np.uint8)
        end: Longs = np.zeros(1, np.int64)
        while first < len(messages):
            stop = int(terms.write_rows(self.terms, flat, first, len(messages), out, end))
            if stop == first:
                out = np.empty(2 * len(out), np.uint8)
                continue
            yield first, stop, out[: int(end[0])].tobytes()
            first = stop

    def _list_triples(self, relation: Relation, first_only: bool) -> Iterator[Ints]:
        cursor = self.cursor
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
        return self._prepare()

    def _prepare(self) -> int:
        program = self.program
        made_for = (program.version, program.most_variables, program.most_candidates, program.relation_numbers,
                    program.most_views, program.most_needs)  # fmt: skip
        if self._table is None or made_for != self._made_for:
            self._make_table()
            self._made_for = made_for
        assert self._table is not None
        return self._table.address

    def _make_table(self) -> None:
        program = self.program
        variables = program.most_variables
        messages = len(self.messages) // at.MESSAGE
        self._has_room("stamps", program.relation_numbers + 64, np.int64)
        self._has_room("hits", _HITS, np.int64)
        self._has_room("values", variables + at.ROW_SPARE, np.int32)
        for name in ("bound", "offered", "key"):
            self._has_room(name, variables, np.int64)
        self._has_room("frames", variables * at.FRAME, np.int64)
        self._has_room("wakes", program.most_needs * at.WAKE, np.int64)
        self._has_room("candidates", program.most_candidates * at.GIVEN, np.int64)
        self._has_room("odometer", program.most_views + 1, np.int64)
        self._has_room("groups", messages, np.int32)
        self._has_room("muted", messages, np.int32)
        self._has_room("slots", 1 << (2 * messages).bit_length(), np.int32)  # a hash table of them, half full at most
        self.cursor[at.U_OUT_ROOM], self.cursor[at.U_STAGE_ROOM] = (
            len(self.out) - at.ROW_SPARE,
            len(self._stage) - at.ROW_SPARE,
        )
        if self._table is not None:
            self._table.close()
        given = {
            "program": program.code,
            "dispatch": program.dispatch,
            "cursor": self.cursor,
            "messages": self.messages,
            "incoming": self._incoming,
            "words": self.terms.words,
            "out": self.out,
            "stage": self._stage,
            "classes": self._classes,
        }
        arrays = {name: self.arena.arrays[name] for name in _IN_ARENA if name in State._fields}
        self._table = Table(State(**{**arrays, **self._private, **given}))

    def _has_room(self, name: str, length: int, dtype: Any) -> None:
        """Makes an array of the private memory larger, if need be; what is in it stays."""
        old = self._private.get(name, np.zeros(0, dtype))
        if len(old) < length:
            self._private[name] = np.concatenate([old, np.zeros(max(length, 2 * len(old)) - len(old), dtype)])


def fixed_keys() -> Longs:
    """Keys of a hash that is the same in all processes: it says which class a term is in."""
    digest = hashlib.blake2b(b"deltastar", digest_size=8 * K_MASK).digest()
    keys: Longs = np.zeros(KEYS, np.int64)
    keys[:K_MASK] = np.frombuffer(digest, np.int64)
    keys[K_MASK] = (1 << HASH_BITS) - 1
    return keys


def _class_array(flags: Mapping[Place, int]) -> Longs:
    records = [number for class_, flag in flags.items() for number in (*class_, flag)]
    return np.array([*fixed_keys(), len(flags), sum(flags.values()), *records], np.int64)


def _predicate_arrays(entries: int, text: int) -> PredicateArrays:
    return PredicateArrays(
        settings=np.zeros(P_SETTINGS, np.int64),
        slots=np.zeros(entries * SLOTS_PER_ENTRY, np.int32),
        entries=np.zeros(entries * ENTRY, np.int32),
        text=np.zeros(text, np.uint8),
    )


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
