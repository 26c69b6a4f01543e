"""Adding written deltas up to answers."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from deltastar.answers import AnswerTable, accumulate, render_all
from deltastar.delta import Delta
from deltastar.errors import DeltastarError, RowError, SourceError, UnknownQueryError, UsageError
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term
from deltastar.sink import open_sink

A, B = IRI("http://ex/a"), IRI("http://ex/b")
VARIABLES = {"pairs": ("x", "y"), "flag": (), "one": ("y",)}
FORMATS = ("jsonl", "csv", "tsv", "parquet")
STORY = [
    Delta("pairs", 0, "+", {"x": A, "y": B}),
    Delta("pairs", 2, "+", {"x": A, "y": B}),
    Delta("flag", 3, "+", {}),
    Delta("pairs", 5, "-", {"x": A, "y": B}),
    Delta("one", 5, "+", {"y": Literal("1")}),
    Delta("flag", 8, "-", {}),
    Delta("one", 9, "-", {"y": Literal("1")}),
]

Bag = Counter[frozenset[tuple[str, Term]]]


def bags(tables: dict[str, AnswerTable]) -> dict[str, Bag]:
    """The rows of every query, as often as they are there; a true ASK has one empty row."""
    return {name: Counter(frozenset(row.items()) for row in table.rows) for name, table in tables.items()}


def expected_bags(deltas: list[Delta], until: int) -> dict[str, Bag]:
    """The same, computed directly."""
    result: dict[str, Bag] = {delta.query: Counter() for delta in deltas}
    for delta in deltas:
        if delta.seq <= until:
            result[delta.query][frozenset(delta.binding.items())] += 1 if delta.op == "+" else -1
    return {name: +bag for name, bag in result.items()}


def write(
    path: str, deltas: list[Delta], variables: dict[str, tuple[str, ...]] = VARIABLES, with_time: bool = False
) -> None:
    with open_sink(path, None, variables, with_time=with_time) as sink:
        sink.write(deltas)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("at", [None, "0", "2", "4", "5", "8", "100"])
def test_answers_at_every_moment(tmp_path: Path, format: str, at: str | None) -> None:
    path = f"{tmp_path}/d.{format}"
    write(path, STORY)
    tables = accumulate(path, at=at)
    assert bags(tables) == expected_bags(STORY, int(at) if at else 99)
    assert tables["pairs"].variables == ("x", "y")
    assert tables["flag"] == AnswerTable.ask(at in ("4", "5"))
    assert accumulate(path, "one", at) == {"one": tables["one"]}


TERMS = st.sampled_from(
    [
        A, BlankNode("x.1"), IRI("http://ex/é\u0085\u2028"), Literal(""), Literal('q"\\'), Literal("a\n\r\tb"),
        Literal("\0\x1b\x7f"),
        Literal("🎉"), Literal("=cmd()"), Literal("a,b"), Literal("x", "en-gb"), Literal("x", "", "http://ex/d"),
        Literal("long" * 40_000), Literal("<a>"), Literal("}},{"),
    ]
)  # fmt: skip
NAMES = st.sampled_from(["q", 'odd,"na\tme\\n\n', "seq"])
SHAPES = {"q": ("x", "seq"), 'odd,"na\tme\\n\n': ("time", "x", "é"), "seq": ()}


@st.composite
def histories(draw: st.DrawFn) -> list[Delta]:
    """Deltas that only remove what is there."""
    deltas: list[Delta] = []
    there: list[Delta] = []
    for seq in range(draw(st.integers(0, 12))):
        if there and draw(st.booleans()):
            gone = there.pop(draw(st.integers(0, len(there) - 1)))
            deltas.append(gone._replace(seq=seq, op="-"))
        else:
            name = draw(NAMES)
            bound = [each for each in SHAPES[name] if name == "seq" or draw(st.integers(0, 5))]
            there.append(Delta(name, seq, "+", {each: draw(TERMS) for each in bound}))
            deltas.append(there[-1])
    return deltas


@settings(max_examples=60, deadline=None)
@given(histories(), st.sampled_from(["d.jsonl", "d.csv", "d.tsv", "d/", "d.tsv/", "d.parquet"]), st.integers(0, 12))
def test_every_format_gives_back_what_was_written(deltas: list[Delta], dest: str, until: int) -> None:
    with TemporaryDirectory() as directory:
        path = f"{directory}/{dest}"
        write(path, deltas, SHAPES)
        assert bags(accumulate(path)) == expected_bags(deltas, 99)
        assert bags(accumulate(path, at=str(until))) == expected_bags(deltas, until)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv"])
def test_compressed_files(tmp_path: Path, format: str, compress: object) -> None:
    write(f"{tmp_path}/d.{format}", STORY)
    data = (tmp_path / f"d.{format}").read_bytes()
    packed = tmp_path / "packed"
    packed.write_bytes(compress(data[:40]) + compress(data[40:]))  # type: ignore[operator]
    assert bags(accumulate(str(packed))) == expected_bags(STORY, 99)
    packed.write_bytes(compress(os.urandom(10_000))[:-100])  # type: ignore[operator]
    with pytest.raises(DeltastarError):
        accumulate(str(packed))


def test_a_compressed_file_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "d.gz").write_bytes(gzip.compress(b'{"query":"q","seq":1,"op":"+","binding":{}}\n' * 10_000)[:-20])
    with pytest.raises(SourceError, match=r"d\.gz: the compressed file is damaged or cut off"):
        accumulate(f"{tmp_path}/d.gz")


def test_parts_of_a_directory_in_any_order_and_format(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "shard=1").mkdir(parents=True)
    write(f"{out}/part-9.jsonl", STORY[:3])
    write(f"{out}/part-0.csv", STORY[3:5])
    write(f"{out}/shard=1/part-0.tsv", STORY[5:6])
    write(f"{tmp_path}/p", [])
    write(f"{tmp_path}/p.parquet", STORY[6:])
    (tmp_path / "p.parquet" / "part-00000.parquet").rename(out / "a.parquet")
    for other in ("_SUCCESS", ".part-00003.jsonl.tmp", "_log.jsonl", "notes.md"):
        (out / other).write_text("no deltas")
    assert bags(accumulate(f"{out}/")) == expected_bags(STORY, 99)
    assert bags(accumulate(str(out))) == expected_bags(STORY, 99)


def test_nothing_written_is_no_query(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "dir").mkdir()
    assert accumulate(f"{tmp_path}/empty") == {}
    assert accumulate(f"{tmp_path}/dir") == {}


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    write(f"{tmp_path}/d.{format}", STORY)
    with open(tmp_path / f"d.{format}", encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert bags(accumulate("-")) == expected_bags(STORY, 99)
        assert not stdin.closed


def test_parquet_as_spark_writes_it(tmp_path: Path) -> None:
    kind = pyarrow.map_(pyarrow.string(), pyarrow.string())
    bindings = pyarrow.array([list(delta.binding.items()) for delta in STORY], kind)
    table = pyarrow.table(
        {
            "query": [delta.query for delta in STORY],
            "seq": [delta.seq for delta in STORY],
            "op": [delta.op for delta in STORY],
            "binding": bindings,
        }
    )
    (tmp_path / "out").mkdir()
    parquet.write_table(table, tmp_path / "out" / "part-00000-4fe.c000.snappy.parquet")
    assert bags(accumulate(f"{tmp_path}/out")) == expected_bags(STORY, 99)


def test_other_spellings_of_the_same_delta(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        '\ufeff{"query":"q","seq":1,"op":"+","binding":{"x":{"type":"literal","value":"\\u00e9","xml:lang":"EN"},'
        '"y":{"type":"uri","value":"http://ex/a"}}}\n\n'
        ' {"binding": {"y": {"value": "http://ex/a", "type": "uri"}, "x": {"type": "literal", "value": "é", '
        '"xml:lang": "en"}}, "op": "-", "seq": 2, "query": "q", "more": 1}\r\n'
        '{"query":"q","seq":3,"op":"+","binding":{"x":{"type":"literal","value":"a",'
        '"datatype":"http://www.w3.org/2001/XMLSchema#string"},"y":{"type":"typed-literal","value":"1",'
        '"datatype":"http://ex/d"}}}',
        encoding="utf-8",
    )
    table = accumulate(str(path))["q"]
    assert table == AnswerTable(("x", "y"), [{"x": Literal("a"), "y": Literal("1", "", "http://ex/d")}])


GOOD = '{"query":"q","seq":1,"op":"+","binding":{"x":{"type":"uri","value":"http://ex/a"}}}\n'
FAULTS = [
    ("[]", "line 2, column 1: the line is not a delta: it is not a JSON object"),
    ("nonsense", "line 2, column 1: the line is not a delta, a JSON object with query, seq, op and binding"),
    (GOOD[:30], "and its end is missing: writing it may have been interrupted"),
    (GOOD.replace('"q"', "7"), "the line is not a delta: query must be a string"),
    (GOOD.replace(":1,", ":-1,"), "the line is not a delta: seq must be a whole number from 0"),
    (GOOD.replace(":1,", ":true,"), "the line is not a delta: seq must be a whole number from 0"),
    (GOOD.replace('"+"', '"*"'), 'the line is not a delta: op must be "+" or "-"'),
    (GOOD.replace('"binding"', '"bindings"'), "the line is not a delta: binding must be a JSON object"),
    (GOOD.replace('"op"', '"time":5,"op"'), "the line is not a delta: time must be a string"),
    (GOOD.replace("uri", "url"), "the line is not a delta: 'url' is not a type of term; it is uri, literal or bnode"),
    (GOOD.replace("http://ex/a", "a"), "<a> is a relative IRI; write it in full, with its scheme"),
    (GOOD.replace("http://ex/a", "http://ex/a b"), "' ' is not allowed in an IRI; percent-encode it"),
    (GOOD.replace('"x"', '"x y"'), "'x y' is not the name of a variable"),
    (GOOD.replace('"value":"http://ex/a"', '"v":1'), "is not a term"),
    (GOOD.replace('{"type":"uri","value":"http://ex/a"}', "null"), "null is not a term"),
    (GOOD.replace('"uri","value":"http://ex/a"', '"literal","value":"\\udc80"'), "lone surrogate"),
    (GOOD.replace('"uri"', '"literal","xml:lang":5'), "is not a term"),
    ("[" * 100_000, "the line is not a delta"),
]


@pytest.mark.parametrize(("line", "message"), FAULTS)
def test_a_line_that_is_no_delta_is_located(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(GOOD + line)
    with pytest.raises(RowError) as caught:
        accumulate(str(path))
    assert str(caught.value).startswith(f"{path}: line 2, column ")
    assert message in str(caught.value)


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    for format, head in (("jsonl", GOOD), ("csv", "query,seq,op,x\r\n"), ("tsv", "query\tseq\top\tx\n")):
        path = tmp_path / f"d.{format}"
        path.write_bytes(head.encode() + GOOD.replace("http://ex/a", "http://ex/ü").encode("latin-1"))
        with pytest.raises(RowError, match=r"line 2, column \d+: the line is not UTF-8"):
            accumulate(str(path))


COLUMN_FAULTS = [
    (["q", "1", "+"], "it has 3 cells, and the header 4"),
    (["q", "x", "+", "<http://ex/a>"], "seq is 'x', and not a whole number"),
    (["q", "1", "++", "<http://ex/a>"], "op is '++', and neither + nor -"),
    (["q", "1", "+", "http://ex/a"], "?x: http://ex/a is not in angle brackets; an IRI is written <http://ex/a>"),
    (["q", "1", "+", "<http://ex/a> "], "?x: unexpected text after the term"),
]


@pytest.mark.parametrize(("cells", "message"), COLUMN_FAULTS)
@pytest.mark.parametrize(("comma", "end"), [(",", "\r\n"), ("\t", "\n")])
def test_a_row_of_columns_that_is_no_delta_is_located(
    tmp_path: Path, cells: list[str], message: str, comma: str, end: str
) -> None:
    path = tmp_path / "d"
    path.write_bytes((comma.join(["query", "seq", "op", "x"]) + end + comma.join(cells) + end).encode())
    with pytest.raises(RowError) as caught:
        accumulate(str(path))
    assert str(caught.value).startswith(f"{path}: line 2, column 1: the line is not a delta: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query\tseq\n", "line 1, column 1: the columns of deltas begin with query, seq, op"),
        ("query,op,seq\r\n", "line 1, column 1: the columns of deltas begin with query, seq, op"),
        ("query,seq,op,a b\r\n", "line 1, column 1: 'a b' is not the name of a variable"),
        ("query,seq,op,a\r\nq,1,+,_:b1", "line 2, column 1: the last line has no end"),
        ("query\tseq\top\ta\nq\t1\t+\t_:b1", "line 2, column 1: the last line has no end"),
        ('query,seq,op,a\r\nq,1,+,"x" y\r\n', "line 2, column 1: the line is not CSV"),
        ('query,seq,op,a\r\nq,1,+,"""x', "line 2, column 1: the line is not CSV"),
        ("query\tseq\top\nq\\x\t1\t+\n", "line 2, column 1: the line is not a delta: query"),
        ("PAR1 but not really", "the file is not Parquet, or damaged"),
    ],
)
def test_tables_that_are_damaged(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d"
    path.write_bytes(text.encode())
    with pytest.raises(RowError) as caught:
        accumulate(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize("format", FORMATS)
def test_a_negative_count_names_query_row_and_line(tmp_path: Path, format: str) -> None:
    path = f"{tmp_path}/d.{format}"
    write(path, [*STORY, STORY[3], STORY[3]._replace(seq=10)])
    with pytest.raises(DeltastarError) as caught:
        accumulate(path)
    line = {"jsonl": 9, "parquet": 9}.get(format, 10)
    assert f"line {line}: query 'pairs' loses ?x=<http://ex/a> ?y=<http://ex/b> more often than it gains it" in str(
        caught.value
    )
    assert accumulate(path, "one")["one"].rows == []


def test_a_removal_may_come_before_its_addition_in_another_file(tmp_path: Path) -> None:
    write(f"{tmp_path}/part-0.jsonl", [STORY[3], STORY[5]])
    write(f"{tmp_path}/part-1.jsonl", [STORY[0], STORY[1], STORY[2]])
    assert bags(accumulate(str(tmp_path))) == expected_bags([*STORY[:4], STORY[5]], 99)


TIMES = ["", "2026-01-31T12:00:00Z", "2026-01-31T13:00:01.5+01:00", "2026-01-31T12:00:02"]
TIMED = [Delta("q", seq, "+", {"x": Literal(str(seq))}, time) for seq, time in enumerate(TIMES)]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("at", "count"),
    [
        ("2026-01-31T11:59:59Z", 1), ("2026-01-31T12:00:00", 2), ("2026-01-31T12:00:01.499Z", 2),
        ("2026-01-31T12:00:01.500Z", 3), ("2026-01-31T06:00:02-06:00", 4), ("2030-01-01", 4), ("1", 2),
    ],
)  # fmt: skip
def test_answers_at_a_time(tmp_path: Path, format: str, at: str, count: int) -> None:
    path = f"{tmp_path}/d.{format}"
    write(path, TIMED, {"q": ("x",)}, with_time=True)
    assert len(accumulate(path, at=at)["q"].rows) == count


def test_times_that_cannot_be_used(tmp_path: Path) -> None:
    path = f"{tmp_path}/d.jsonl"
    write(path, STORY)
    with pytest.raises(UsageError, match=r"d\.jsonl: line 2 has no time, so --at needs a seq instead of 2026-01-31"):
        accumulate(path, at="2026-01-31")
    for at in ("yesterday", "-1", "1.5", ""):
        with pytest.raises(UsageError, match=f"--at {at}: neither a seq nor an ISO 8601 time; give a number"):
            accumulate(path, at=at)
    write(path, [TIMED[1], TIMED[3]._replace(seq=2), TIMED[2]._replace(seq=3)])
    with pytest.raises(UsageError, match=r"seq 2 is after .*, and seq 3 is not; end at a seq instead, such as --at 1"):
        accumulate(path, at="2026-01-31T12:00:01.7Z")
    write(path, [TIMED[1]._replace(time="noon")])
    with pytest.raises(RowError, match="line 1, column 1: the line is not a delta: 'noon' is not an ISO 8601 time"):
        accumulate(path, at="2026-01-31")


def test_an_unknown_query_names_those_that_are_there(tmp_path: Path) -> None:
    path = f"{tmp_path}/d.jsonl"
    write(path, STORY)
    with pytest.raises(UnknownQueryError, match="there are no deltas of a query 'tri'; they hold pairs, flag, one"):
        accumulate(path, "tri")
    write(path, [])
    with pytest.raises(UnknownQueryError, match="there are no deltas of a query 'tri'; they hold no query at all"):
        accumulate(path, "tri")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read .*/no\.jsonl: No such file or directory"):
        accumulate(f"{tmp_path}/no.jsonl")
    with pytest.raises(UsageError, match="kafka://h/t: deltas are read from files; consume the topic into one first"):
        accumulate("kafka://h/t")


def test_several_queries_fit_a_table_only() -> None:
    tables = {"a\x1b": AnswerTable(("x",), [{"x": A}]), "b": AnswerTable.ask(False)}
    assert render_all(tables, "table") == "a\\u001B\n?x\n-------------\n<http://ex/a>\n(1 row)\n\nb\nfalse\n"
    for format in ("srj", "csv", "tsv"):
        with pytest.raises(UsageError, match=f"{format} holds the answers of one query; choose with --query from a"):
            render_all(tables, format)
    assert render_all({"b": tables["b"]}, "table") == "false\n"
    assert render_all({}, "table") == "(no deltas)\n"
    assert json.loads(render_all({}, "srj")) == {"head": {"vars": []}, "results": {"bindings": []}}


def test_a_long_file_is_read_as_it_comes(tmp_path: Path) -> None:
    write(f"{tmp_path}/d.jsonl", [Delta("q", seq, "+-"[seq % 2], {"x": A}) for seq in range(40_001)])
    assert accumulate(f"{tmp_path}/d.jsonl")["q"].rows == [{"x": A}]
    assert io.DEFAULT_BUFFER_SIZE < os.path.getsize(tmp_path / "d.jsonl")
