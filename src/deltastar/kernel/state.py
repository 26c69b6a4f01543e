"""All arrays that kernel functions work on, as one value: the address of a table of their addresses.

Handing thirty arrays to a compiled function costs more than most messages do, and compiling functions that hand them to
each other takes minutes. A compiled function sees bare pointers; with `NUMBA_BOUNDSCHECK=1`, arrays; and without the
compiler memoryviews, whose elements are plain Python integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deltastar.kernel.jit import IS_CHECKED, IS_COMPILED, inlined
from deltastar.scan_layout import TermArrays


class State(NamedTuple):
    """The arrays, in the order of the table. Those up to `words` live in the arena."""

    counters: Any
    nodes: Any
    heap: Any
    hubs: Any
    flags: Any
    """For each node: which unary relations it is in, a bit each."""
    edges: Any
    edge_heads: Any
    row_heads: Any
    relation_size: Any
    """For each relation: how many triples are in it."""
    target_size: Any
    """For each target of a component: how many embeddings it has."""
    view_state: Any
    lives: Any
    """For each kind of live lists, by number: `LIVE_STATE` numbers."""
    log: Any
    """Changes, the last ones of which may have to be taken back. Four ints each, as messages."""
    term_counters: Any
    term_keys: Any
    term_heads: Any
    term: Any
    term_pending: Any
    term_free: Any
    text: Any
    words: Any
    """The dictionary: see `TermArrays` in `scan_layout.py`. The words are the text once more."""
    program: Any
    dispatch: Any
    stamps: Any
    """For each relation: the last message whose triple is in it."""
    hits: Any
    cursor: Any
    values: Any
    bound: Any
    offered: Any
    """For each variable: how many lists of candidates it has been given."""
    candidates: Any
    frames: Any
    wakes: Any
    """Nodes that became live, or ceased to be, and whose neighbours have not all been told yet."""
    key: Any
    """Room for one row of a view."""
    odometer: Any
    """For each view of the product that is being enumerated: the unit of its row."""
    messages: Any
    groups: Any
    """For each message: the place of its group's header, and one, if that group is mixed."""
    slots: Any
    """Room for a hash table of a group's messages."""
    out: Any
    stage: Any
    muted: Any
    """For each message: 1 when it is not for this engine to count that it has no effect."""
    classes: Any
    """The classes of terms that variables are restricted to: see `layout.py`."""
    incoming: Any
    """The text of one message's terms, one behind the other."""


DTYPES = State(
    counters=np.int64,
    nodes=np.int32,
    heap=np.int32,
    hubs=np.int32,
    flags=np.int64,
    edges=np.int32,
    edge_heads=np.int32,
    row_heads=np.int32,
    relation_size=np.int64,
    target_size=np.int64,
    view_state=np.int64,
    lives=np.int64,
    log=np.int32,
    term_counters=np.int64,
    term_keys=np.int64,
    term_heads=np.int32,
    term=np.int32,
    term_pending=np.int32,
    term_free=np.int32,
    text=np.uint8,
    words=np.int32,
    program=np.int64,
    dispatch=np.int64,
    stamps=np.int64,
    hits=np.int64,
    cursor=np.int64,
    values=np.int32,
    bound=np.int64,
    offered=np.int64,
    candidates=np.int64,
    frames=np.int64,
    wakes=np.int64,
    key=np.int64,
    odometer=np.int64,
    messages=np.int32,
    groups=np.int32,
    slots=np.int32,
    out=np.int32,
    stage=np.int32,
    muted=np.int32,
    classes=np.int64,
    incoming=np.uint8,
)


TERM_FIELDS = ("term_counters", "term_keys", "term_heads", "term", "term_pending", "term_free", "text", "words")


class Table:
    """Addresses and lengths of a state's arrays. Keeps the arrays alive. What entry points are given is `address`."""

    def __init__(self, arrays: State) -> None:
        self._arrays = arrays
        self._rows = np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64).ravel()
        self.address = int(self._rows.ctypes.data)
        if not IS_COMPILED:
            _views[self.address] = State(*(memoryview(array) for array in arrays))

    def close(self) -> None:
        """Lets go of the arrays."""
        _views.pop(self.address, None)


_views: dict[int, State] = {}
"""Without the compiler: the arrays, by the address of their table."""

if IS_COMPILED:
    from llvmlite import ir
    from numba.core import types
    from numba.core.datamodel import models
    from numba.core.typing.templates import AttributeTemplate
    from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model
    from numba.np import arrayobj, numpy_support

    class StateType(types.Type):
        """What a compiled function knows of a state: where its table is."""

        def __init__(self) -> None:
            super().__init__(name="State")

    _STATE = StateType()
    _ELEMENTS = {name: numpy_support.from_dtype(np.dtype(dtype)) for name, dtype in DTYPES._asdict().items()}
    _PLACES = {name: place for place, name in enumerate(State._fields)}

    @register_model(StateType)
    class _Model(models.PrimitiveModel):
        def __init__(self, manager, front_end_type):  # type: ignore[no-untyped-def]
            super().__init__(manager, front_end_type, ir.PointerType(ir.IntType(64)))

    def _load(builder, table, place):  # type: ignore[no-untyped-def]
        number = builder.load(builder.gep(table, [ir.Constant(ir.IntType(32), place)]))
        number.set_metadata("invariant.load", builder.module.add_metadata([]))  # the table stays as it is
        return number

    def _pointer_to(context, builder, table, name):  # type: ignore[no-untyped-def]
        address = _load(builder, table, 2 * _PLACES[name])
        return builder.inttoptr(address, context.get_value_type(types.CPointer(_ELEMENTS[name])))

    def _array_of(context, builder, table, name):  # type: ignore[no-untyped-def]
        array = arrayobj.make_array(_array_type(name))(context, builder)
        size = context.get_constant(types.intp, np.dtype(getattr(DTYPES, name)).itemsize)
        arrayobj.populate_array(
            array,
            data=_pointer_to(context, builder, table, name),
            shape=[_load(builder, table, 2 * _PLACES[name] + 1)],
            strides=[size],
            itemsize=size,
            meminfo=None,
            parent=None,
        )
        return array._getvalue()

    def _array_type(name):  # type: ignore[no-untyped-def]
        return types.Array(_ELEMENTS[name], 1, "C")

    @infer_getattr
    class _Attributes(AttributeTemplate):
        key = StateType

        def generic_resolve(self, state, name):  # type: ignore[no-untyped-def]
            return _array_type(name) if IS_CHECKED else types.CPointer(_ELEMENTS[name])

    @lower_getattr_generic(StateType)
    def _field(context, builder, state, table, name):  # type: ignore[no-untyped-def]
        return (_array_of if IS_CHECKED else _pointer_to)(context, builder, table, name)

    @intrinsic
    def _state_at(typing_context, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.inttoptr(arguments[0], context.get_value_type(_STATE))

        return _STATE(types.int64), codegen

    @inlined
    def attach(address):  # type: ignore[no-untyped-def]
        """The state whose table is at that address."""
        return _state_at(address)

    @intrinsic
    def incoming_of(typing_context, st):  # type: ignore[no-untyped-def]
        """The text of one message's terms."""

        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return _array_of(context, builder, arguments[0], "incoming")

        return _array_type("incoming")(st), codegen

    @intrinsic
    def terms_of(typing_context, st):  # type: ignore[no-untyped-def]
        """The arrays of the dictionary, as its functions want them."""
        tuple_type = types.NamedTuple([_array_type(name) for name in TERM_FIELDS], TermArrays)

        def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            arrays = [_array_of(context, builder, arguments[0], name) for name in TERM_FIELDS]
            return context.make_tuple(builder, tuple_type, arrays)

        return tuple_type(st), codegen

else:

    def attach(address):  # type: ignore[no-untyped-def]
        """The state whose table is at that address."""
        return _views[address]

    def incoming_of(st):  # type: ignore[no-untyped-def]
        """The text of one message's terms."""
        return np.asarray(st.incoming)

    def terms_of(st):  # type: ignore[no-untyped-def]
        """The arrays of the dictionary, as its functions want them."""
        return TermArrays(*map(np.asarray, (getattr(st, name) for name in TERM_FIELDS)))
