"""Plans to the integer arrays that the kernel reads.

In: plans, and the ids of their constants. Out: records in one array, appended to, and a dispatch table from triples to
relations. What is equal up to the names of variables is there once: relations (patterns), components, and views
(projections of components that are counted); each counts its users, and goes with the last.

The kernel knows only patterns of one or two variables. One with three distinct variables, whose predicate is one, is
taken apart: the triple becomes a node of its own, an *edge*, with three neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from deltastar import layout as at
from deltastar.layout import Longs
from deltastar.plan.decompose import Component, Plan
from deltastar.plan.relations import Constants, Relation, RelationKey, Shape
from deltastar.plan.triggers import Compiler, LiveKey
from deltastar.query.algebra import Semantics, TriplePattern, Variable
from deltastar.rdf.terms import Term

_START = 64  # the program's first record


@dataclass(eq=False)
class Evaluated:
    """A component that the kernel evaluates."""

    shape: Shape
    address: int
    target: int
    relations: list[Relation]
    triggers: list[int] = field(default_factory=list)
    plain_users: int = 0
    views: dict[tuple[int, ...], View] = field(default_factory=dict)
    lives: list[Live] = field(default_factory=list)


@dataclass(eq=False)
class Live:
    """A kind of live lists, which are kept or not. `links`: the chains that its needs are in, while they are kept."""

    key: LiveKey
    number: int
    address: int
    slot: int
    relation: Relation
    needs: list[tuple[int, Relation, Live | None]]
    """Of each: its address, whose neighbours or flag it looks at, and the kind that tells more."""
    users: int = 0
    above: set[Live] = field(default_factory=set)
    links: list[tuple[int, int]] = field(default_factory=list)

    @property
    def is_kept(self) -> bool:
        return bool(self.links)


@dataclass(eq=False)
class View:
    """A counted projection of a component."""

    component: Evaluated
    columns: tuple[int, ...]
    number: int
    address: int
    target: int
    shown_users: int = 0
    products: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Compiled:
    """What a query became: where its rows come from, and what they hold."""

    target: int
    columns: tuple[int, ...]
    """For each variable that is reported, its place in the target's rows."""
    component: Evaluated | None = None
    view: View | None = None
    product: Product | None = None


@dataclass(eq=False)
class Product:
    """Views whose rows are combined."""

    views: tuple[View, ...]
    target: int
    places: list[int]


class Fresh(NamedTuple):
    """What one query brought that was not there before."""

    relations: list[Relation]
    components: list[Evaluated]
    views: list[View]


class Program:
    """The arrays, and what is in them."""

    def __init__(self, id_of: Callable[[Term], int], release: Callable[[int], None]) -> None:
        self.version = 0
        """Changes with the arrays' places."""
        self.code: Longs = np.zeros(1 << 10, np.int64)
        self.dispatch: Longs = np.zeros(at.D_FIRST + 8 * at.DISPATCH, np.int64)
        self.dispatch[at.D_SIZE] = 8
        self._id_of, self._release = id_of, release
        self._top = _START
        self._relations: dict[RelationKey, Relation] = {}
        self._by_number: dict[int, Relation] = {}
        self._components: dict[Shape, Evaluated] = {}
        self._numbers, self._bits, self._targets, self._view_numbers = _Numbers(), _Numbers(), _Numbers(), _Numbers()
        self._lives: dict[LiveKey, Live] = {}
        self._live_numbers = _Numbers()
        self.unused_lives: list[Live] = []
        """Kinds of live lists that nobody needs now: `forget_live` them once they are empty."""
        self._keys: dict[tuple[int, Constants], int] = {}
        self.fresh_slots: list[int] = []
        """Slots that are indexed from now on, of relations that may hold triples already."""
        self.fresh: Fresh = Fresh([], [], [])
        """What `add` made, for whoever fills it."""
        self.most_variables = 8
        self.most_candidates = 8
        self.most_views = 1
        self.most_needs = 8
        self.widths: dict[int, int] = {}
        """For each target, how wide its rows are."""

    # What queries need ------------------------------------------------------------------------------------------------

    def add(self, plan: Plan, flags: Mapping[Variable, int] | None = None) -> Compiled:
        """Compiles a query, some of whose variables may take only values that have certain flags."""
        self.fresh = Fresh([], [], [])
        query = plan.query
        counted = query.semantics in (Semantics.DISTINCT, Semantics.ASK)
        projected = [variable for variable in query.projection if variable in query.pattern.variables]
        evaluated = [self._component(plan, component, flags or {}) for component in plan.components]
        if len(evaluated) == 1 and not counted:
            only, variables = evaluated[0]
            only.plain_users += 1
            self.code[only.address + at.K_IS_PLAIN] = 1
            return Compiled(only.target, tuple(map(variables.index, projected)), component=only)
        views, shown = [], []
        for component, variables in evaluated:
            own = [variable for variable in dict.fromkeys(projected) if variable in variables]
            kept = own if counted else variables
            views.append(self._view(component, tuple(variables.index(variable) for variable in kept)))
            shown += kept
        columns = tuple(map(shown.index, projected))
        if len(views) == 1:
            views[0].shown_users += 1
            self.code[views[0].address + at.W_IS_SHOWN] = 1
            return Compiled(views[0].target, columns, view=views[0])
        product = self._product(views)
        return Compiled(product.target, columns, product=product)

    def remove(self, compiled: Compiled) -> list[Relation]:
        """Takes a query out. Gives the relations that nobody needs now: `forget` them once they are empty."""
        if compiled.component is not None:
            compiled.component.plain_users -= 1
            self.code[compiled.component.address + at.K_IS_PLAIN] = compiled.component.plain_users > 0
            return self._drop_unused(compiled.component)
        if compiled.view is not None:
            compiled.view.shown_users -= 1
            self.code[compiled.view.address + at.W_IS_SHOWN] = compiled.view.shown_users > 0
            return self._drop_unused_view(compiled.view)
        assert compiled.product is not None
        gone: list[Relation] = []
        for view, place in zip(compiled.product.views, compiled.product.places, strict=True):
            self._unlink(view.address + at.W_PRODUCT, place, at.X_NEXT)
            view.products.remove(place)
        for view in dict.fromkeys(compiled.product.views):
            gone += self._drop_unused_view(view)
        self._targets.give_back(compiled.product.target)
        return gone

    def forget(self, relation: Relation) -> None:
        """Lets go of a relation that is empty and unused."""
        mask = _mask_of(relation.key.constants)
        self._unlink_dispatch(relation, mask)
        del self._relations[relation.key]
        for number in _numbers_of(relation):
            del self._by_number[number]
        for number in _numbers_of(relation):
            self._numbers.give_back(number)
        if relation.bit:
            self._bits.give_back(relation.bit.bit_length() - 1)
        for constant in relation.key.constants:
            if constant:
                self._release(constant)

    def relations_of(self, compiled: Compiled) -> set[Relation]:
        """The relations that a query reads."""
        views = compiled.product.views if compiled.product else [compiled.view] if compiled.view else []
        components = [compiled.component] if compiled.component else [view.component for view in views if view]
        return {relation for component in components for relation in component.relations}

    def views_of(self, compiled: Compiled) -> tuple[View, ...]:
        """The views that a query reads."""
        if compiled.product is not None:
            return compiled.product.views
        return (compiled.view,) if compiled.view is not None else ()

    @property
    def relations(self) -> Iterable[Relation]:
        """All of them."""
        return self._relations.values()

    @property
    def components(self) -> Iterable[Evaluated]:
        """All of them."""
        return self._components.values()

    def relation_of_slot(self, slot: int) -> Relation:
        """The relation whose triples a slot indexes."""
        return self._by_number[slot // 2]

    @property
    def targets(self) -> int:
        """One more than the largest target's number."""
        return self._targets.top

    @property
    def views(self) -> int:
        """One more than the largest view's number."""
        return self._view_numbers.top

    @property
    def relation_numbers(self) -> int:
        """One more than the largest relation's number."""
        return self._numbers.top

    def bounds(self) -> Bounds:
        """How many numbers of each kind are in use."""
        return Bounds(self.relation_numbers, self.targets, self.views)

    def take_flag(self) -> int:
        """A flag of nodes, for whoever sets it. To be asked for before the first query comes."""
        number = self._bits.take()
        assert number < at.MOST_BITS
        return 1 << number

    def suspend_plain(self) -> Callable[[], None]:
        """Has the kernel look for embeddings of those components only that have views. Gives the way back."""
        before = self.code.copy()
        viewed = {trigger for component in self.components if component.views for trigger in component.triggers}
        for relation in self.relations:
            head = relation.address + at.R_TRIGGER
            while trigger := int(self.code[head]):
                if trigger in viewed:
                    head = trigger + at.T_NEXT
                else:
                    self.code[head] = self.code[trigger + at.T_NEXT]

        def resume() -> None:
            for relation in self.relations:
                self.code[relation.address + at.R_TRIGGER] = before[relation.address + at.R_TRIGGER]
            for component in self.components:
                for trigger in component.triggers:
                    self.code[trigger + at.T_NEXT] = before[trigger + at.T_NEXT]

        return resume

    # Relations --------------------------------------------------------------------------------------------------------

    def relation(self, pattern: TriplePattern) -> Relation:
        """The relation of a pattern, a new one if need be, for one more user."""
        nodes = pattern.nodes
        constants = tuple(0 if isinstance(node, Variable) else self._id_of(node) for node in nodes)
        equal = sum(
            bit
            for left, right, bit in ((0, 1, at.S_IS_P), (0, 2, at.S_IS_O), (1, 2, at.P_IS_O))
            if isinstance(nodes[left], Variable) and nodes[left] == nodes[right]
        )
        key = RelationKey(constants, equal)  # type: ignore[arg-type]
        relation = self._relations.get(key)
        if relation is not None:
            for constant in constants:
                if constant:
                    self._release(constant)
        else:
            relation = self._new_relation(key, _positions(nodes))
        relation.users += 1
        return relation

    def _new_relation(self, key: RelationKey, positions: tuple[int, ...]) -> Relation:
        number = self._numbers.take(3 if len(positions) == 3 else 1)
        bit = 0
        if len(positions) == 1 and (free := self._bits.take()) is not None:
            if free < at.MOST_BITS:
                bit = 1 << free
            else:
                self._bits.give_back(free)
        address = self._append([0] * at.RELATION)
        relation = Relation(key, number, address, positions, bit)
        code = self.code
        code[address + at.R_NUMBER] = number
        code[address + at.R_ARITY] = len(positions)
        code[address + at.R_EQUAL] = key.equal
        code[address + at.R_POSITIONS : address + at.R_POSITIONS + len(positions)] = positions
        code[address + at.R_BIT] = bit
        code[address + at.R_SLOT] = 2 * number
        if len(positions) == 2:
            code[address + at.R_KEEP] = 0
        mask = _mask_of(key.constants)
        code[address + at.R_MASK] = mask
        code[address + at.R_CONSTANTS : address + at.R_CONSTANTS + 3] = key.constants
        self._relations[key] = relation
        self._by_number.update(dict.fromkeys(_numbers_of(relation), relation))
        self.fresh.relations.append(relation)
        row = self._dispatch_row(mask, key.constants)
        code[address + at.R_NEXT] = self.dispatch[row + at.D_RELATION]
        self.dispatch[row + at.D_RELATION] = address
        return relation

    def _keep(self, slot: int) -> None:
        """Indexes a slot from now on."""
        relation = self._by_number[slot // 2]
        if relation.arity != 2:
            return  # an edge's: all are indexed
        bit = at.KEEP_BACK if slot & 1 else at.KEEP_FORWARD
        if not self.code[relation.address + at.R_KEEP] & bit:
            self.code[relation.address + at.R_KEEP] |= bit
            self.fresh_slots.append(slot)

    # Dispatch ---------------------------------------------------------------------------------------------------------

    def _dispatch_row(self, mask: int, constants: Constants) -> int:
        """The row of these constants, a new one if need be."""
        key = (mask, constants)
        if key in self._keys:
            return self._keys[key]
        size = int(self.dispatch[at.D_SIZE])
        if (len(self._keys) + 2) * 2 > size:
            self._grow_dispatch(size * 2)
        row = self._place_in_dispatch(mask, constants)
        if mask & at.IN_P:
            if mask != at.IN_P:
                base = self._dispatch_row(at.IN_P, (0, constants[1], 0))
                self.dispatch[base + at.D_SUBMASKS] |= 1 << mask
                row = self._keys[key]
        else:
            self.dispatch[at.D_MASKS] |= 1 << mask
        return row

    def _place_in_dispatch(self, mask: int, constants: Constants) -> int:
        size = int(self.dispatch[at.D_SIZE])
        slot = dispatch_hash(mask, *constants) & (size - 1)
        while self.dispatch[at.D_FIRST + slot * at.DISPATCH + at.D_KEY]:
            slot = (slot + 1) & (size - 1)
        row = at.D_FIRST + slot * at.DISPATCH
        self.dispatch[row + at.D_KEY] = mask + 1
        self.dispatch[row + at.D_CONSTANTS : row + at.D_CONSTANTS + 3] = constants
        self._keys[mask, constants] = row
        return row

    def _grow_dispatch(self, size: int) -> None:
        old, keys = self.dispatch, dict(self._keys)
        self.dispatch = np.zeros(at.D_FIRST + size * at.DISPATCH, np.int64)
        self.dispatch[at.D_SIZE], self.dispatch[at.D_MASKS] = size, old[at.D_MASKS]
        self._keys.clear()
        for (mask, constants), row in keys.items():
            fresh = self._place_in_dispatch(mask, constants)
            self.dispatch[fresh + at.D_RELATION] = old[row + at.D_RELATION]
            self.dispatch[fresh + at.D_SUBMASKS] = old[row + at.D_SUBMASKS]
        self.version += 1

    def _unlink_dispatch(self, relation: Relation, mask: int) -> None:
        row = self._keys[mask, relation.key.constants]
        following = int(self.code[relation.address + at.R_NEXT])
        if self.dispatch[row + at.D_RELATION] == relation.address:
            self.dispatch[row + at.D_RELATION] = following
        else:
            other = int(self.dispatch[row + at.D_RELATION])
            self._unlink(other + at.R_NEXT, relation.address, at.R_NEXT)

    # Components, views, products --------------------------------------------------------------------------------------

    def _component(
        self, plan: Plan, component: Component, flags: Mapping[Variable, int]
    ) -> tuple[Evaluated, list[Variable]]:
        """The kernel's component for one of a plan's, and its variables in the order of its rows."""
        patterns = [plan.patterns[index] for index in component.patterns]
        relations = [self.relation(pattern) for pattern in patterns]
        order = sorted(range(len(patterns)), key=lambda index: relations[index].number)
        variables: list[Variable] = []
        members = []
        for index in order:
            nodes = patterns[index].nodes
            own = [nodes[position] for position in relations[index].positions]
            for variable in own:
                assert isinstance(variable, Variable)
                if variable not in variables:
                    variables.append(variable)
            places = tuple(variables.index(variable) for variable in own)  # type: ignore[arg-type]
            members.append((relations[index].number, places))
        shape = Shape(tuple(members), len(variables), tuple(flags.get(variable, 0) for variable in variables))
        evaluated = self._components.get(shape)
        if evaluated is None:
            evaluated = self._new_component(shape, [relations[index] for index in order])
        else:
            for relation in relations:
                relation.users -= 1
        return evaluated, variables

    def _new_component(self, shape: Shape, relations: list[Relation]) -> Evaluated:
        address = self._append([0] * at.COMPONENT)
        target = self._targets.take()
        evaluated = Evaluated(shape, address, target, relations)
        self.code[address + at.K_WIDTH] = shape.width
        self.code[address + at.K_TARGET] = target
        self.widths[target] = shape.width
        self._components[shape] = evaluated
        self.fresh.components.append(evaluated)
        compiler = Compiler(shape, relations)
        evaluated.lives = [self._live(key) for key in compiler.lives]
        live_at = {live.key: live.address for live in evaluated.lives}
        for pattern in range(len(relations)):
            trigger = self._append_trigger(address, compiler, pattern, live_at)
            evaluated.triggers.append(trigger)
            self._link(relations[pattern].address + at.R_TRIGGER, trigger, at.T_NEXT)
        for relation in relations:
            if relation.arity == 2 and not self.code[relation.address + at.R_KEEP]:
                self._keep(relation.slot)  # one direction tells whether a triple is there
        self.most_variables = max(self.most_variables, compiler.variables)
        self.most_candidates = max(self.most_candidates, compiler.candidates)
        return evaluated

    def _append_trigger(self, component: int, compiler: Compiler, pattern: int, live_at: Mapping[LiveKey, int]) -> int:
        made = compiler.trigger(pattern, live_at)
        for slot in made.slots:
            self._keep(slot)
        header = [0] * at.TRIGGER
        header[at.T_COMPONENT] = component
        header[at.T_WIDTH] = compiler.width
        for address_field, count_field, table, stride in (
            (at.T_BOUND, at.T_BOUNDS, made.bounds, at.BOUND),
            (at.T_CHECK, at.T_CHECKS, made.checks, at.CHECK),
            (at.T_INNER, at.T_INNERS, made.inner, 1),
            (at.T_LEAF, at.T_LEAVES, made.leaves, 1),
            (at.T_GROUND, at.T_GROUNDS, made.ground, 1),
        ):
            header[address_field] = self._append(table)
            header[count_field] = len(table) // stride
        records: list[int] = []
        for variable in range(compiler.variables):
            record = [0] * at.VARIABLE
            record[at.V_STEP] = self._append(made.steps[variable])
            record[at.V_STEPS] = len(made.steps[variable]) // at.STEP
            record[at.V_MASK] = made.masks[variable]
            record[at.V_EXTRA] = self._append(made.extras[variable])
            record[at.V_EXTRAS] = len(made.extras[variable]) // at.EXTRA
            record[at.V_CANDIDATE] = compiler.candidate_at[variable] * at.GIVEN
            records += record
        header[at.T_VARIABLE] = self._append(records)
        return self._append(header)

    def _view(self, component: Evaluated, columns: tuple[int, ...]) -> View:
        view = component.views.get(columns)
        if view is None:
            number = self._view_numbers.take()
            address = self._append([0] * at.W_COLUMNS + list(columns))
            view = View(component, columns, number, address, self._targets.take())
            self.widths[view.target] = len(columns)
            self.code[address + at.W_NUMBER] = number
            self.code[address + at.W_TARGET] = view.target
            self.code[address + at.W_WIDTH] = len(columns)
            self._link(component.address + at.K_VIEW, address, at.W_NEXT_VIEW)
            component.views[columns] = view
            self.fresh.views.append(view)
        return view

    def _product(self, views: Sequence[View]) -> Product:
        target = self._targets.take()
        width = sum(len(view.columns) for view in views)
        self.widths[target] = width
        self.most_views = max(self.most_views, len(views))
        entries: list[int] = []
        place = 0
        for view in views:
            entries += [view.number, len(view.columns), place]
            place += len(view.columns)
        places = []
        for own, view in enumerate(views):
            address = self._append([0, target, width, own, len(views), *entries])
            self._link(view.address + at.W_PRODUCT, address, at.X_NEXT)
            view.products.append(address)
            places.append(address)
        return Product(tuple(views), target, places)

    def _drop_unused_view(self, view: View) -> list[Relation]:
        if view.shown_users == 0 and not view.products:
            self._unlink(view.component.address + at.K_VIEW, view.address, at.W_NEXT_VIEW)
            del view.component.views[view.columns]
            self._view_numbers.give_back(view.number)
            self._targets.give_back(view.target)
        return self._drop_unused(view.component)

    def _drop_unused(self, component: Evaluated) -> list[Relation]:
        if component.plain_users or component.views or component.shape not in self._components:
            return []
        del self._components[component.shape]
        self._targets.give_back(component.target)
        for live in component.lives:
            live.users -= 1
            if live.users == 0:
                self.unused_lives.append(live)
        gone = []
        for relation, trigger in zip(component.relations, component.triggers, strict=True):
            self._unlink(relation.address + at.R_TRIGGER, trigger, at.T_NEXT)
            relation.users -= 1
            if relation.users == 0:
                gone.append(relation)
        return gone

    # Live lists -------------------------------------------------------------------------------------------------------

    def _live(self, key: LiveKey) -> Live:
        """The kind of live lists, a new one if need be, for one more user. Those below it are there."""
        live = self._lives.get(key)
        if live is None:
            live = self._lives[key] = self._new_live(key)
        live.users += 1
        return live

    def _new_live(self, key: LiveKey) -> Live:
        number, relation = self._live_numbers.take(), self._by_number[key.slot // 2]
        address = self._append([0] * at.LIVE)
        slot = 2 * self._numbers.take()
        needs: list[tuple[int, Relation, Live | None]] = []
        table = self._append([0] * at.NEED * (len(key.needs) + len(key.flags)))
        for place, (needed, below_key) in enumerate([*key.needs, *((at.BY_FLAG, None) for _ in key.flags)]):
            need = table + place * at.NEED
            below = None if below_key is None else self._lives[below_key]
            flag = key.flags[place - len(key.needs)] if needed == at.BY_FLAG else needed // 2
            self.code[need + at.N_OWNER], self.code[need + at.N_SLOT] = address, needed
            self.code[need + at.N_BELOW] = below.address if below else 0
            needs.append((need, self._by_number[flag], below))
        live = Live(key, number, address, slot, relation, needs)
        for field_, value in (
            (at.Y_NUMBER, number),
            (at.Y_SLOT, key.slot),
            (at.Y_LIVE_SLOT, slot),
            (at.Y_RELATION, relation.number),
            (at.Y_MASK, sum(self._by_number[flag].bit for flag in key.flags)),
            (at.Y_NEED, table),
            (at.Y_NEEDS, len(key.needs)),
        ):
            self.code[address + field_] = value
        for _, _, below in needs:
            if below is not None:
                below.above.add(live)
        self.most_needs += len(needs)
        return live

    @property
    def lives(self) -> Iterable[Live]:
        """All kinds of live lists, kept or not."""
        return self._lives.values()

    def live_at(self, address: int) -> Live:
        """The kind of live lists whose record is there."""
        return next(live for live in self._lives.values() if live.address == address)

    def kept_above(self, live: Live) -> list[Live]:
        """The kinds that are kept and depend on this one, those first that others depend on."""
        found: set[Live] = set()
        waiting = [live]
        while waiting:
            for above in waiting.pop().above:
                if above.is_kept and above not in found:
                    found.add(above)
                    waiting.append(above)
        return sorted(found, key=lambda other: other.key.height)

    def keep_live(self, live: Live) -> None:
        """Has the kernel keep these lists up from now on; see `fresh_slots`."""
        for slot in (live.key.slot, live.key.slot ^ 1, *(slot for slot, _ in live.key.needs)):
            self._keep(slot)
        live.links = [(live.relation.address + at.R_LIVES, live.address)]
        self._link(*live.links[0], at.Y_NEXT)
        for need, relation, below in live.needs:
            is_told = below is not None and below.is_kept
            head = below.address + at.Y_ABOVE if below is not None and is_told else relation.address + at.R_NEEDS
            live.links.append((head, need))
            self._link(head, need, at.N_NEXT)

    def drop_live(self, live: Live) -> None:
        """Has the kernel keep these lists up no longer."""
        (own, *needs), live.links = live.links, []
        self._unlink(*own, at.Y_NEXT)
        for head, need in needs:
            self._unlink(head, need, at.N_NEXT)

    def forget_live(self, live: Live) -> None:
        """Lets go of a kind of live lists that is neither kept nor used."""
        del self._lives[live.key]
        self._live_numbers.give_back(live.number)
        self._numbers.give_back(live.slot // 2)
        self.most_needs -= len(live.needs)
        for _, _, below in live.needs:
            if below is not None:
                below.above.discard(live)

    # The array --------------------------------------------------------------------------------------------------------

    def _append(self, record: Sequence[int]) -> int:
        """The address of a new record."""
        address, self._top = self._top, self._top + len(record)
        while self._top > len(self.code):
            self.code = np.concatenate([self.code, np.zeros_like(self.code)])
            self.version += 1
        self.code[address : self._top] = record
        return address

    def _link(self, head: int, record: int, next_field: int) -> None:
        """Puts a record in front of a chain."""
        self.code[record + next_field] = self.code[head]
        self.code[head] = record

    def _unlink(self, head: int, record: int, next_field: int) -> None:
        while self.code[head] != record:
            head = int(self.code[head]) + next_field
        self.code[head] = self.code[record + next_field]


class Bounds(NamedTuple):
    """One more than the largest number of each kind."""

    relations: int
    targets: int
    views: int


class _Numbers:
    """Numbers that are given back and given out again."""

    def __init__(self) -> None:
        self.top = 0
        self._free: list[int] = []

    def take(self, together: int = 1) -> int:
        """The next number; of several together, the first."""
        if together == 1 and self._free:
            return self._free.pop()
        self.top += together
        return self.top - together

    def give_back(self, number: int) -> None:
        self._free.append(number)


def _numbers_of(relation: Relation) -> range:
    """A relation of three variables has a number for each."""
    return range(relation.number, relation.number + (3 if relation.arity == 3 else 1))


def dispatch_hash(mask: int, s: int, p: int, o: int) -> int:
    """The same as the kernel's."""
    x = mask * 0x9E37 + s * 0x85EBCA6B + p * 0xC2B2AE35 + o * 0x27D4EB2F
    return (x ^ (x >> 15) ^ (x >> 31)) & 0x7FFFFFFF


def _positions(nodes: Sequence[object]) -> tuple[int, ...]:
    """Where each variable stands first: subject, predicate, object."""
    first: dict[object, int] = {}
    for position, node in enumerate(nodes):
        if isinstance(node, Variable):
            first.setdefault(node, position)
    return tuple(first.values())


def _mask_of(constants: Constants) -> int:
    return sum(1 << position for position, constant in enumerate(constants) if constant)
