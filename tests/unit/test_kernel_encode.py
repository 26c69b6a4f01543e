"""The compiled encoder writes what the encoder of `Delta` objects writes; columns hold what the deltas hold."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltastar.delta import Delta
from deltastar.errors import InvariantError, TermError
from deltastar.kernel import terms as dictionary
from deltastar.kernel.jit import IS_COMPILED
from deltastar.kernel.state import DTYPES, TERM_FIELDS, State, Table
from deltastar.machine import Machine
from deltastar.plan.decompose import make_plan
from deltastar.query.parse import parse_query
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term, term
from deltastar.scan_layout import TEXT_FULL
from deltastar.sink import open_sink
from deltastar.sink.columns import ColumnEncoder, deltas, texts
from deltastar.sink.compiled import CompiledEncoder
from deltastar.sink.encode import Variables, encoder, utf8
from deltastar.sink.subscribers import Subscription
from tests.support.runs import Run, deltas_of, output_of
from tests.unit.test_kernel_terms import call, make

FORMATS = ("jsonl", "csv", "tsv")
EXAMPLES = 150 if IS_COMPILED else 15

SUBSCRIPTIONS = [
    Subscription("plain", ("a", "b"), 3, (0, 1)),
    Subscription('nasty,"\t\n\r\\ é\x7f', ("b", 'n,"ame\t'), 3, (0, 1)),
    Subscription("turned", ("c", "a"), 3, (0, 1)),
    Subscription("wide", ("a", "seq", "c", "d"), 5, (3, 0, 4, 0)),
    Subscription("ask", (), 7, ()),
    Subscription("", ("é",), 4, (2,)),
]
WIDTHS = {3: 2, 4: 3, 5: 5, 6: 1, 7: 0}
"""Nobody is told of target 6."""
VARIABLES = {each.name: each.variables for each in SUBSCRIPTIONS}


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine()


def encoded(
    machine: Machine,
    format: str,
    runs: Sequence[Run],
    numbers: Sequence[int],
    base: int = 0,
    subscriptions: Sequence[Subscription] = SUBSCRIPTIONS,
    buffer_bytes: int = 1 << 16,
    with_time: bool = False,
) -> bytes:
    """What the compiled encoder writes; its pieces are whole lines, and as many as it says."""
    variables = {each.name: each.variables for each in subscriptions}
    compiled = CompiledEncoder(format, variables, WIDTHS, with_time, buffer_bytes)
    for subscription in subscriptions:
        compiled.add(subscription)
    pieces, count = [], 0
    for data, lines in compiled.encode(machine.table, *output_of(machine, runs), np.array(numbers), base):
        pieces.append(bytes(data))
        count += lines
        assert pieces[-1].endswith(b"\n")
    assert count == len(list(deltas_of(subscriptions, runs, numbers, base)))
    return b"".join(pieces)


def expected(
    format: str,
    runs: Sequence[Run],
    numbers: Sequence[int],
    base: int = 0,
    subscriptions: Sequence[Subscription] = SUBSCRIPTIONS,
    with_time: bool = False,
) -> bytes:
    variables = {each.name: each.variables for each in subscriptions}
    return utf8(encoder(format, variables, with_time).encode(deltas_of(subscriptions, runs, numbers, base)))


# Terms --------------------------------------------------------------------------------------------------------------

PARTS = st.sampled_from(['"', "\\", "\\u", "u001F", "\n", "\r", "\t", "\b", "\f", "\0", "\x1b", "\x7f", "\x85", ","])
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=80),
    st.lists(PARTS | st.sampled_from(["a", "x" * 63, "é", "🎉", "\u2028", "'", ";"])).map("".join),
)
IRI_TEXT = st.one_of(TEXT, st.text("abc,;'\x7fé", max_size=140))
LANGUAGES = st.sampled_from(["en", "pt-br", "zh-hant-x-a1"])


def iri(text: str) -> Term:
    """An IRI with as much of the text as an IRI may hold."""
    try:
        return term(f"<http://ex/{text}>")
    except TermError:
        return term("<http://ex/" + "".join(char for char in text if char > " " and char not in '<>"{}|^`\\') + ">")


TERMS = st.one_of(
    IRI_TEXT.map(iri),
    TEXT.map(Literal),
    st.builds(lambda text, language: Literal(text, language=language), TEXT, LANGUAGES),
    st.builds(lambda text, datatype: Literal(text, datatype=iri(datatype).value), TEXT, IRI_TEXT),
    st.sampled_from(["b", "b.1", "été-·", "x" * 70, "0_", "名"]).map(BlankNode),
).map(term)


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    """A few runs of rows for any targets, those of several messages among them, and rows of few terms."""
    some = draw(st.lists(TERMS, min_size=1, max_size=6))
    result = []
    for message in range(draw(st.integers(0, 6))):
        target = draw(st.sampled_from(sorted(WIDTHS)))
        rows = draw(st.lists(st.tuples(*[st.sampled_from(some)] * WIDTHS[target]), max_size=4))
        result.append((target, message // 2, draw(st.sampled_from([1, -1])), rows))
    return result


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    runs(),
    st.sampled_from(FORMATS),
    st.integers(0, 1 << 62),
    st.lists(st.integers(0, 1 << 62), min_size=3, max_size=3),
    st.sampled_from([1, 64, 700, 1 << 16]),
    st.booleans(),
)
def test_lines_are_those_of_the_encoder_of_objects(runs, format, base, numbers, buffer_bytes, with_time) -> None:
    numbers = [min(number, (1 << 63) - 1 - base) for number in numbers]
    with_time &= format != "jsonl"
    machine = Machine()
    got = encoded(machine, format, runs, numbers, base, SUBSCRIPTIONS, buffer_bytes, with_time)
    assert got == expected(format, runs, numbers, base, SUBSCRIPTIONS, with_time)


@pytest.mark.parametrize("format", FORMATS)
def test_every_character_in_every_kind_of_term(machine: Machine, format: str) -> None:
    every = [chr(code) for code in (*range(0x180), 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F389, 0x10FFFF)]
    rows = []
    for char in every:
        literals = (
            Literal(char),
            Literal(f"a{char}{char}u{char}1", language="en"),
            Literal(char, datatype="http://ex/i"),
        )
        rows += [(each, iri(char)) for each in literals]
        rows.append((iri(f"{char},"), Literal("", datatype=iri(char).value)))
    runs = [(3, 0, 1, rows)]
    assert encoded(machine, format, runs, [1]) == expected(format, runs, [1])


@pytest.mark.parametrize("format", FORMATS)
def test_texts_of_all_lengths_with_an_escape_at_any_place(machine: Machine, format: str) -> None:
    rows = []
    for length in range(0, 140, 1 if IS_COMPILED else 20):
        x = "x" * length
        rows += [
            (IRI(f"a:{x}"), IRI(f"a:{x},")),
            (Literal(x), Literal(x, language="en")),
            (BlankNode("b" + x), IRI("a:")),
        ]
        rows += [(Literal(f'{x}"y'), Literal(f"{x}\\")), (Literal(f"{x}\x1f{x}"), Literal(f'\x7f{x}""', datatype="a:"))]
    runs = [(3, 0, 1, rows)]
    assert encoded(machine, format, runs, [1]) == expected(format, runs, [1])


def small_table(text_bytes: int) -> tuple[Table, object]:
    """A dictionary of its own, with room for little text."""
    arrays = make(terms=100, text_bytes=text_bytes)
    rest = {name: np.zeros(1, dtype) for name, dtype in DTYPES._asdict().items()}
    return Table(State(**{**rest, **dict(zip(TERM_FIELDS, arrays, strict=True))})), arrays


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "last", ["<a:b,c>", "<a:bc>", '"a\\"b,\\u001F"@en', '"é"^^<a:b,c>', "_:b", '"' + "x" * 70 + '"']
)
def test_the_very_last_text_that_a_dictionary_can_hold(format: str, last: str) -> None:
    for before in range(0, 160, 8):
        wanted = [Literal("x" * before), term(last)]
        size = 8 + sum((4 + len(each.encode()) + 7) // 8 * 8 for each in wanted)
        table, arrays = small_table(size)
        ids = [call(dictionary.acquire, arrays, each.encode()) for each in wanted]
        if TEXT_FULL in ids:  # blocks of that size are larger than the text
            continue
        query = Subscription("q", ("a",), 3, (1,))
        compiled = CompiledEncoder(format, {"q": ("a",)}, {3: 2})
        compiled.add(query)
        out = np.array([3, 0, 1, 1, *ids], np.int32)
        ((data, _),) = compiled.encode(table.address, out, len(out), np.array([1]))
        assert bytes(data) == expected(format, [(3, 0, 1, [tuple(wanted)])], [1], 0, [query])
        table.close()


# Places -------------------------------------------------------------------------------------------------------------

TERMS_OF_ROWS = [
    IRI("http://ex/a"), Literal('quo"te'), BlankNode("b"), Literal("x" * 300), Literal("5", datatype="a:i"),
]  # fmt: skip


def some_runs(seed: int, count: int) -> list[Run]:
    rng = random.Random(seed)
    result = []
    for message in range(count):
        target = rng.choice([3, 4, 5, 7])
        rows = [tuple(rng.choices(TERMS_OF_ROWS, k=WIDTHS[target])) for _ in range(rng.choice((0, 1, 1, 2, 5)))]
        result.append((target, message, rng.choice((1, -1)), rows))
    return result


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("buffer_bytes", [0, 400, 700, 1000, 2001, 5000])
def test_a_buffer_of_any_size_gives_the_same_bytes(machine: Machine, format: str, buffer_bytes: int) -> None:
    runs = some_runs(1, 60 if IS_COMPILED else 10)
    numbers = range(len(runs))
    assert encoded(machine, format, runs, numbers, 9, SUBSCRIPTIONS, buffer_bytes) == expected(format, runs, numbers, 9)


def test_queries_come_and_go(machine: Machine) -> None:
    runs = some_runs(2, 10)
    numbers = range(10)
    compiled = CompiledEncoder("jsonl", {}, WIDTHS)
    there: list[Subscription] = []
    for step, subscription in enumerate([*SUBSCRIPTIONS, *SUBSCRIPTIONS]):
        if step < len(SUBSCRIPTIONS):
            compiled.add(subscription)
            there.append(subscription)
        else:
            compiled.remove(subscription.name)
            there.remove(subscription)
        pieces = compiled.encode(machine.table, *output_of(machine, runs), np.array(numbers))
        assert b"".join(bytes(data) for data, _ in pieces) == expected("jsonl", runs, numbers, 0, there)


def test_rows_of_an_unknown_target_are_a_bug_and_not_lost(machine: Machine) -> None:
    for target in (1, 100):
        out = np.array([target, 0, 1, 1, 1, 1], np.int32)
        message = f"rows came for target {target}, which the encoder was not told of"
        with pytest.raises(InvariantError, match=message):
            list(CompiledEncoder("jsonl", {}, {3: 2}).encode(machine.table, out, len(out), np.array([1])))
        with pytest.raises(InvariantError, match=message):
            ColumnEncoder({}, {3: 2}).flatten(out, len(out), np.array([1]))


def test_a_query_without_columns_in_a_table_is_a_bug() -> None:
    for table in (CompiledEncoder("csv", {"q": ("a",)}, WIDTHS), ColumnEncoder({"q": ("a",)}, WIDTHS)):
        with pytest.raises(InvariantError, match=r"the sink was not opened for p with the variables \['b'\]"):
            table.add(Subscription("p", ("a", "b"), 3, (0, 1)))


NODES = ["<a:1>", "<a:2>", "_:3"]
QUERIES = {
    "pairs": "SELECT * { ?a <a:p> ?b . ?b <a:p> ?c }",
    "turned": "SELECT ?c ?b ?a { ?a <a:p> ?b . ?b <a:p> ?c }",
    "ends": "SELECT ?c ?a { ?x <a:p> ?b . ?a <a:p> ?x . ?b <a:p> ?c }",
    "distinct": "SELECT DISTINCT ?c { ?a <a:p> ?b . ?b <a:p> ?c }",
    "ask": "ASK { ?a <a:p> ?a }",
    "product": "SELECT DISTINCT ?y ?a { ?a <a:p> ?b . ?x <a:q> ?y }",
}


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_kernel_puts_out(format: str) -> None:
    machine = Machine(out_ints=200)
    compiled_queries = {name: machine.add(make_plan(parse_query(text))) for name, text in QUERIES.items()}
    names = {name: parse_query(text).names for name, text in QUERIES.items()}
    subscriptions = [
        Subscription(name, names[name], query.target, query.columns) for name, query in compiled_queries.items()
    ]
    compiled = CompiledEncoder(format, names, machine.program.widths)
    for subscription in subscriptions:
        compiled.add(subscription)
    rng, got, want = random.Random(5), [], []
    for first in range(1, 400, 40):
        messages: list[int] = []
        for _ in range(40):
            triple = rng.choice(NODES), rng.choice(("<a:p>", "<a:q>")), rng.choice([*NODES, '"x\\n"@en'])
            messages += [rng.choice((1, 1, -1)), *(machine.acquire(text) for text in triple)]
        numbers = np.arange(40) * 2
        for end in machine.steps(np.array(messages, np.int32), 40):
            pieces = compiled.encode(machine.table, machine.out, end, numbers, first)
            got.append(b"".join(bytes(data) for data, _ in pieces))
            runs = [
                (run.target, run.message, run.sign, [tuple(map(machine.term, row)) for row in run.rows.tolist()])
                for run in machine._runs(end)
            ]
            want.append(expected(format, runs, numbers.tolist(), first, subscriptions))
    assert got == want
    lines = b"".join(got)
    assert all(name.encode() in lines for name in QUERIES)
    assert lines.count(b"\n") > 1000
    assert len(got) > 30


# Columns ------------------------------------------------------------------------------------------------------------


def column_encoder(variables: Variables | None = VARIABLES, **options) -> ColumnEncoder:
    result = ColumnEncoder(variables, WIDTHS, **options)
    for subscription in SUBSCRIPTIONS:
        result.add(subscription)
    return result


@settings(max_examples=EXAMPLES, deadline=None)
@given(runs(), st.integers(0, 1 << 40))
def test_columns_hold_the_deltas(runs, base) -> None:
    machine = Machine()
    columns = column_encoder(None).flatten(*output_of(machine, runs), np.array([5, 5, 8]), base)
    assert list(deltas(columns, machine.term)) == list(deltas_of(SUBSCRIPTIONS, runs, [5, 5, 8], base))


@pytest.mark.parametrize("with_time", [False, True])
@pytest.mark.parametrize("most_bytes", [1 << 31, 400])
def test_arrow_batches_are_what_parquet_gets_from_deltas(
    machine: Machine, tmp_path, with_time: bool, most_bytes: int
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    runs = some_runs(3, 200 if IS_COMPILED else 20)
    numbers = range(len(runs))
    columns = column_encoder(with_time=with_time, most_bytes=most_bytes)
    batches = list(columns.arrow(machine.table, columns.flatten(*output_of(machine, runs), np.array(numbers))))
    assert (len(batches) > 1) == (most_bytes == 400)
    wanted = list(deltas_of(SUBSCRIPTIONS, runs, numbers, 0))
    with open_sink(str(tmp_path / "columns"), "parquet", VARIABLES, with_time=with_time) as sink:
        for batch in batches:
            batch.validate(full=True)
            sink.write_columns(batch)
    with open_sink(str(tmp_path / "deltas"), "parquet", VARIABLES, with_time=with_time) as sink:
        sink.write(wanted)
    one, other = (parquet.read_table(tmp_path / name) for name in ("columns", "deltas"))
    assert one.schema == other.schema
    assert one.to_pylist() == other.to_pylist()
    assert one.num_rows == len(wanted)


def test_no_rows_make_no_batch_and_no_variables_no_table(machine: Machine) -> None:
    columns = column_encoder()
    empty = columns.flatten(np.zeros(1, np.int32), 0, np.array([1]))
    assert len(empty) == 0
    assert list(columns.arrow(machine.table, empty)) == []
    with pytest.raises(InvariantError, match="without the variables of all queries there is no table"):
        list(column_encoder(None).arrow(machine.table, empty))


def test_texts_in_bulk(machine: Machine) -> None:
    ids = np.array([*map(machine.acquire, TERMS_OF_ROWS * 20), 0], np.int32)
    ends, data = texts(machine.table, ids)
    cut = [data[start:end].tobytes().decode() for start, end in pairwise(ends)]
    assert cut == [*TERMS_OF_ROWS * 20, ""]


# Sinks --------------------------------------------------------------------------------------------------------------

MANY = [Delta("plain", seq, "+", {"a": IRI(f"a:{seq}"), "b": Literal("x")}) for seq in range(1, 41)]


def lines_of(format: str, some: Sequence[Delta]) -> bytes:
    return utf8(encoder(format, VARIABLES, False).encode(some))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dest", ["out", "out/"])
def test_encoded_lines_keep_their_place_among_deltas(tmp_path, format: str, dest: str) -> None:
    path = f"{tmp_path}/{dest}"
    with open_sink(path, format, VARIABLES) as sink:
        sink.write(MANY[:3])
        lines = bytearray(lines_of(format, MANY[3:10]))
        assert sink.write_encoded(memoryview(lines), 7) == 7
        lines[:] = b"?" * len(lines)  # the buffer is used again
        sink.write(MANY[10:12])
        state = sink.commit()
        sink.write_encoded(b"not committed\n", 1)
    with open_sink(path, format, VARIABLES, resume=state) as sink:
        sink.write_encoded(lines_of(format, MANY[12:]), len(MANY) - 12)
    file = tmp_path / "out" if dest == "out" else tmp_path / "out" / f"part-00000.{format}"
    assert file.read_bytes() == utf8(encoder(format, VARIABLES, False).header) + lines_of(format, MANY)


def test_encoded_lines_begin_a_new_part_when_one_is_full(tmp_path) -> None:
    from deltastar.sink.files import PartsSink

    with PartsSink(f"{tmp_path}/", encoder("csv", VARIABLES, False), part_bytes=200) as sink:
        for delta in MANY:
            sink.write_encoded(lines_of("csv", [delta]), 1)
    parts = sorted(tmp_path.iterdir())
    header = utf8(encoder("csv", VARIABLES, False).header)
    assert len(parts) > 5
    assert all(part.stat().st_size < 300 for part in parts)
    assert b"".join(part.read_bytes().removeprefix(header) for part in parts) == lines_of("csv", MANY)


def test_encoded_lines_to_standard_output(capfdbinary) -> None:
    with open_sink("-", "jsonl", VARIABLES) as sink:
        sink.write(MANY[:1])
        sink.write_encoded(memoryview(lines_of("jsonl", MANY[1:])), len(MANY) - 1)
    assert capfdbinary.readouterr().out == lines_of("jsonl", MANY)


def test_a_sink_takes_what_it_is_for(tmp_path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with (
        open_sink(str(tmp_path / "p"), "parquet", VARIABLES) as parquet,
        open_sink(str(tmp_path / "f"), "jsonl", VARIABLES) as file,
    ):
        with pytest.raises(InvariantError, match="ParquetSink takes no lines"):
            parquet.write_encoded(b"{}\n", 1)
        with pytest.raises(InvariantError, match="FileSink takes no columns"):
            file.write_columns(pyarrow.record_batch({"seq": [1]}))
