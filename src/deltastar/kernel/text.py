"""Bytes, many at a time: how far a run of ordinary ones goes, whether two texts are equal, and a keyed hash.

Each primitive is a plain function, which says what it does, and machine code for it that LLVM makes from vectors of 64
bytes: a loop over single bytes takes four times as long. Both give the same; the tests hold them against each other.
Little-endian only. A run looks at 64 bytes, `load` at eight: the caller sees to it that they are there.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from deltastar.kernel.jit import IS_COMPILED, inlined
from deltastar.scan_layout import K_BLOCK, K_END, K_LAST, K_MASK, K_START

VECTOR = 64
WORD = 8
LANES = 8
QUAD = 4
# Not plain numbers: numba would compile a function anew for each that it is given.
ZERO = np.int64(0)
IN_IRI, IN_STRING, IN_LINE, IN_LABEL, IN_SCHEME, IN_TAG, IN_QUOTES, IN_CELL = (np.int64(1 << bit) for bit in range(8))
_BITS = (1 << 64) - 1


def _classes():
    """For each byte: where it is an ordinary one. Bytes of 0x80 and more are none in IRIs and strings to be checked."""
    table = np.zeros(256, np.int64)
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    table[[byte for byte in range(0x21, 0x80) if byte not in b'"<>\\^`{|}']] |= IN_IRI
    table[[byte for byte in range(0x20, 0x7F) if byte not in b'"\\']] |= IN_STRING
    table[[byte for byte in range(256) if byte not in b"\r\n"]] |= IN_LINE
    table[list(alphabet + b"0123456789_-")] |= IN_LABEL
    table[list(alphabet + b"0123456789+.-")] |= IN_SCHEME
    table[list(alphabet[26:] + b"0123456789")] |= IN_TAG
    table[[byte for byte in range(256) if byte not in b'"\\']] |= IN_QUOTES
    table[[byte for byte in range(256) if byte not in b","]] |= IN_CELL
    return table.astype(np.uint8)


CLASS = _classes()


def plain_iri_run(data, at):
    """How many of the 64 bytes from `at` on are ASCII characters of an IRI, up to the first that is not."""
    return _run(data, at, IN_IRI)


def plain_string_run(data, at):
    """The same for ASCII characters of a string that need no escape."""
    return _run(data, at, IN_STRING)


def plain_line_run(data, at):
    """The same for bytes that do not end a line."""
    return _run(data, at, IN_LINE)


def plain_quoted_run(data, at):
    """The same for bytes that are neither a quote nor a backslash."""
    return _run(data, at, IN_QUOTES)


def plain_cell_run(data, at):
    """The same for bytes that are no comma."""
    return _run(data, at, IN_CELL)


def plain_load(data, at):
    """The eight bytes from `at` on as a number."""
    assert 0 <= at <= len(data) - WORD
    return int.from_bytes(data[at : at + WORD].tobytes(), "little", signed=True)


def plain_fold(a, b):
    """The upper half of the 128-bit product, unsigned, xor the lower."""
    product = (int(a) & _BITS) * (int(b) & _BITS)
    folded = (product >> 64) ^ (product & _BITS)
    return folded - (folded >> 63 << 64)


def plain_copy(target, place, source, start, length):
    """Copies bytes between arrays that do not overlap."""
    assert 0 <= place <= len(target) - length
    assert 0 <= start <= len(source) - length
    target[place : place + length] = source[start : start + length]


def plain_move(target, place, source, start):
    """Copies 64 bytes between arrays that do not overlap."""
    plain_copy(target, place, source, start, VECTOR)


def plain_prefetch(array, index):
    """Has the memory at an index brought near."""


def plain_lane_of(numbers, at, number):
    """Which of the `LANES` numbers from `at` on is the first that equals one, or `LANES`."""
    for lane in range(min(LANES, len(numbers) - at)):
        if numbers[at + lane] == number:
            return lane
    return LANES


def plain_copy_row(target, place, source, width):
    """Copies a row of numbers, four at a time: up to three more than its width are written over."""
    for index in range(width):
        target[place + index] = source[index]


def _run(data, at, bits):
    assert 0 <= at <= len(data) - VECTOR
    ordinary = (CLASS[data[at : at + VECTOR]] & bits) != 0
    return VECTOR if ordinary.all() else int(ordinary.argmin())


# The machine code ---------------------------------------------------------------------------------------------------


def _pointer(context, builder, array_type, array, at):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [at])


def _run_of(find_stops):
    """An intrinsic that counts the bytes before the first that `find_stops` marks."""

    @intrinsic
    def run(typing_context, data, at):
        def generate(context, builder, signature, arguments):
            vector = ir.VectorType(ir.IntType(8), VECTOR)
            pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
            pointer = builder.bitcast(pointer, vector.as_pointer())
            stops = find_stops(_Vector(builder, builder.load(pointer, align=1)))
            mask = builder.bitcast(stops, ir.IntType(VECTOR))
            return builder.cttz(mask, ir.Constant(ir.IntType(1), 0))

        return types.int64(data, types.int64), generate

    return run


class _Vector:
    """Comparisons of 64 bytes with one."""

    def __init__(self, builder, value):
        self._builder, self._value = builder, value

    def compare(self, relation, byte, mask=0xFF, less=0):
        value = self._value
        if mask != 0xFF:
            value = self._builder.and_(value, self._constant(mask))
        if less:
            value = self._builder.sub(value, self._constant(less))
        return self._builder.icmp_unsigned(relation, value, self._constant(byte))

    def any_of(self, *marks):
        result = marks[0]
        for mark in marks[1:]:
            result = self._builder.or_(result, mark)
        return result

    def _constant(self, byte):
        return ir.Constant(self._value.type, [byte] * VECTOR)


def _iri_stops(bytes_):
    compare = bytes_.compare
    return bytes_.any_of(
        compare(">=", 0x7F - 0x20, less=0x21),  # all of 0x00-0x20 and 0x80-0xFF
        compare("==", ord('"')),
        compare("==", ord("<"), mask=0xFD),  # and ">"
        compare("==", ord("\\"), mask=0xFD),  # and "^"
        compare("==", ord("`")),
        compare("<=", 2, less=ord("{")),  # and "|" and "}"
    )


def _string_stops(bytes_):
    compare = bytes_.compare
    quotes = compare("==", ord('"')), compare("==", ord("\\"))
    return bytes_.any_of(compare(">=", 0x7F - 0x20, less=0x20), *quotes)


def _line_stops(bytes_):
    return bytes_.any_of(bytes_.compare("==", ord("\n")), bytes_.compare("==", ord("\r")))


def _quoted_stops(bytes_):
    return bytes_.any_of(bytes_.compare("==", ord('"')), bytes_.compare("==", ord("\\")))


def _cell_stops(bytes_):
    return bytes_.compare("==", ord(","))


@intrinsic
def machine_load(typing_context, data, at):
    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.int64(data, types.int64), generate


@intrinsic
def machine_fold(typing_context, a, b):
    def generate(context, builder, signature, arguments):
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return builder.xor(upper, builder.trunc(product, word))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def machine_copy(typing_context, target, place, source, start, length):
    def generate(context, builder, signature, arguments):
        to = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        from_ = _pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        cgutils.raw_memcpy(builder, to, from_, arguments[4], 1)
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64, types.int64), generate


@intrinsic
def machine_move(typing_context, target, place, source, start):
    def generate(context, builder, signature, arguments):
        vector = ir.VectorType(ir.IntType(8), VECTOR).as_pointer()
        to = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        from_ = _pointer(context, builder, signature.args[2], arguments[2], arguments[3])
        value = builder.load(builder.bitcast(from_, vector), align=1)
        builder.store(value, builder.bitcast(to, vector), align=1)
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64), generate


@intrinsic
def machine_prefetch(typing_context, array, index):
    def generate(context, builder, signature, arguments):
        number = ir.IntType(32)
        data = _data_of(context, builder, signature.args[0], arguments[0])
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        function_type = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [pointer, *(ir.Constant(number, value) for value in (0, 3, 1))])  # to read, to keep
        return context.get_dummy_value()

    return types.none(array, types.int64), generate


def _data_of(context, builder, array_type, array):
    """The pointer to an array's numbers, or the bare pointer that it is."""
    if isinstance(array_type, types.CPointer):
        return array
    return context.make_array(array_type)(context, builder, array).data


@intrinsic
def machine_lane_of(typing_context, numbers, at, number):
    def generate(context, builder, signature, arguments):
        element, index = ir.IntType(32), ir.IntType(32)
        vector = ir.VectorType(element, LANES)
        place = builder.gep(_data_of(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        lanes = builder.load(builder.bitcast(place, vector.as_pointer()), align=4)
        wanted = builder.insert_element(
            ir.Constant(vector, ir.Undefined), builder.trunc(arguments[2], element), ir.Constant(index, 0)
        )
        wanted = builder.shuffle_vector(wanted, wanted, ir.Constant(ir.VectorType(index, LANES), [0] * LANES))
        equal_lanes = builder.bitcast(builder.icmp_signed("==", lanes, wanted), ir.IntType(LANES))
        mask = builder.or_(builder.zext(equal_lanes, ir.IntType(64)), ir.Constant(ir.IntType(64), 1 << LANES))
        return builder.cttz(mask, ir.Constant(ir.IntType(1), 1))

    return types.int64(numbers, types.int64, types.int64), generate


@intrinsic
def _machine_quad(typing_context, target, place, source, start):
    def generate(context, builder, signature, arguments):
        quad = ir.VectorType(ir.IntType(32), QUAD).as_pointer()
        to = builder.gep(_data_of(context, builder, signature.args[0], arguments[0]), [arguments[1]])
        from_ = builder.gep(_data_of(context, builder, signature.args[2], arguments[2]), [arguments[3]])
        value = builder.load(builder.bitcast(from_, quad), align=4)
        builder.store(value, builder.bitcast(to, quad), align=4)
        return context.get_dummy_value()

    return types.none(target, types.int64, source, types.int64), generate


if IS_COMPILED:

    @inlined
    def machine_copy_row(target, place, source, width):
        """Copies a row of numbers, four at a time: up to three more than its width are written over."""
        index = ZERO
        while index < width:
            _machine_quad(target, place + index, source, index)
            index += QUAD


iri_run = _run_of(_iri_stops) if IS_COMPILED else plain_iri_run
string_run = _run_of(_string_stops) if IS_COMPILED else plain_string_run
line_run = _run_of(_line_stops) if IS_COMPILED else plain_line_run
quoted_run = _run_of(_quoted_stops) if IS_COMPILED else plain_quoted_run
cell_run = _run_of(_cell_stops) if IS_COMPILED else plain_cell_run
load = machine_load if IS_COMPILED else plain_load
fold = machine_fold if IS_COMPILED else plain_fold
copy = machine_copy if IS_COMPILED else plain_copy
move = machine_move if IS_COMPILED else plain_move
prefetch = machine_prefetch if IS_COMPILED else plain_prefetch
lane_of = machine_lane_of if IS_COMPILED else plain_lane_of
copy_row = machine_copy_row if IS_COMPILED else plain_copy_row


# What is made of them -----------------------------------------------------------------------------------------------


@inlined
def equal(a, at, b, bt, length):
    """Whether two ranges hold the same bytes."""
    if length < WORD:
        for index in range(length):
            if a[at + index] != b[bt + index]:
                return False
        return True
    index = 0
    while index < length - WORD:
        if load(a, at + index) != load(b, bt + index):
            return False
        index += WORD
    return load(a, at + length - WORD) == load(b, bt + length - WORD)


@inlined
def hash_bytes(keys, data, start, end):
    """A hash of HASH_BITS. Who does not know the keys cannot choose texts that collide.

    Folded multiplication, as in wyhash and foldhash; but all factors depend on the keys, so that none is ever known.
    """
    at, block = start, keys[K_BLOCK]
    state = keys[K_START] ^ (end - start)
    while at < end - 2 * WORD:
        state = fold(load(data, at) ^ state, load(data, at + WORD) ^ block)
        at += 2 * WORD
    if end - start >= WORD:
        first = load(data, max(start, end - 2 * WORD))
        second = load(data, end - WORD)
    else:
        first, second = _short(data, start, end), ZERO
    state = fold(first ^ state, second ^ keys[K_LAST])
    return fold(state, keys[K_END]) & keys[K_MASK]


@inlined
def _short(data, start, end):
    word = ZERO
    for at in range(start, end):
        word = (word << 8) | np.int64(data[at])
    return word
