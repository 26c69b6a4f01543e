"""Answers as files and as text."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
from rdflib.query import Result

from deltastar.errors import SourceError, UsageError
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term, term
from deltastar.sink import AnswerTable, answer_paths, render, write_answers

A, B = IRI("http://ex/a"), BlankNode("b")
EN, INT = Literal("hi", language="en"), Literal("5", datatype="http://ex/int")
TABLE = AnswerTable(("x", "y"), [{"x": B, "y": EN}, {"x": A, "y": INT}, {"x": B, "y": EN}, {"y": Literal("")}])
NONE = AnswerTable(("x",), [])
EXPECTED = {
    "srj": '{"head":{"vars":["x","y"]},"results":{"bindings":[\n'
    '{"y":{"type":"literal","value":""}},\n'
    '{"x":{"type":"uri","value":"http://ex/a"},"y":{"type":"literal","value":"5","datatype":"http://ex/int"}},\n'
    '{"x":{"type":"bnode","value":"b"},"y":{"type":"literal","value":"hi","xml:lang":"en"}},\n'
    '{"x":{"type":"bnode","value":"b"},"y":{"type":"literal","value":"hi","xml:lang":"en"}}\n'
    "]}}\n",
    "csv": "x,y\r\n,\r\nhttp://ex/a,5\r\n_:b,hi\r\n_:b,hi\r\n",
    "tsv": '?x\t?y\n\t""\n<http://ex/a>\t"5"^^<http://ex/int>\n_:b\t"hi"@en\n_:b\t"hi"@en\n',
    "table": "?x             ?y\n"
    "-------------  --------------------\n"
    '               ""\n'
    '<http://ex/a>  "5"^^<http://ex/int>\n'
    '_:b            "hi"@en\n'
    '_:b            "hi"@en\n'
    "(4 rows)\n",
}
EMPTY = {
    "srj": '{"head":{"vars":["x"]},"results":{"bindings":[]}}\n',
    "csv": "x\r\n",
    "tsv": "?x\n",
    "table": "?x\n--\n(0 rows)\n",
}
TRUE = {"srj": '{"head":{},"boolean":true}\n', "csv": "true\n", "tsv": "true\n", "table": "true\n"}
FORMATS = list(EXPECTED)


@pytest.mark.parametrize("format", FORMATS)
def test_text_of_a_format(format: str) -> None:
    assert render(TABLE, format) == EXPECTED[format]
    assert render(NONE, format) == EMPTY[format]
    assert render(AnswerTable.ask(True), format) == TRUE[format]
    assert render(AnswerTable.ask(False), format) == TRUE[format].replace("true", "false")


def test_rows_in_any_order_are_the_same_bytes() -> None:
    backwards = AnswerTable(TABLE.variables, list(reversed(TABLE.rows)))
    assert [render(backwards, format) for format in FORMATS] == [render(TABLE, format) for format in FORMATS]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="'xml' is not a format of answers; choose from srj, csv, tsv, table"):
        render(TABLE, "xml")


NASTY = ['"', "\n\r\t", "\x1b[31m\0\x7f\x9b", "🎉 \u2028\u0085", "=cmd()", "a,b", "\\", "long" * 5000, " ", ""]


def of_oxigraph(value: Any) -> Term:
    return term(str(value))


@pytest.mark.parametrize("text", NASTY)
def test_other_libraries_read_the_same_terms(text: str) -> None:
    datatype = "http://ex/d"
    rows = [
        {"x": IRI("http://ex/é"), "y": each}
        for each in (Literal(text), Literal(text, "en"), Literal(text, "", datatype))
    ]
    table = AnswerTable(("x", "y"), rows)
    expected = sorted((row["x"], row["y"]) for row in rows)
    srj = render(table, "srj")
    solutions = pyoxigraph.parse_query_results(srj, format=pyoxigraph.QueryResultsFormat.JSON)
    assert [variable.value for variable in solutions.variables] == ["x", "y"]
    assert sorted((of_oxigraph(row["x"]), of_oxigraph(row["y"])) for row in solutions) == expected
    by_rdflib = Result.parse(source=io.BytesIO(srj.encode()), format="json")
    assert sorted((term(row[0]), term(row[1])) for row in by_rdflib) == expected
    tsv = pyoxigraph.parse_query_results(render(table, "tsv"), format=pyoxigraph.QueryResultsFormat.TSV)
    assert sorted((of_oxigraph(row["x"]), of_oxigraph(row["y"])) for row in tsv) == expected
    plain = list(csv.reader(io.StringIO(render(table, "csv"), newline="")))  # rdflib's would split at U+0085
    assert plain == [["x", "y"]] + 3 * [["http://ex/é", text]]


def test_boolean_results_are_read_by_another_library() -> None:
    srj = render(AnswerTable.ask(True), "srj")
    assert bool(pyoxigraph.parse_query_results(srj, format=pyoxigraph.QueryResultsFormat.JSON))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", '"\\u001B[31mred\\u0007"'),
        ("\x9b31m\u0085", '"\\u009B31m\\u0085"'),
        ("a\u202eb\u2066", '"a\\u202Eb\\u2066"'),
        ("a\u2028b", '"a\\u2028b"'),
        ("a\nb", '"a\\nb"'),
        ("👩\u200d💻 é", '"👩\u200d💻 é"'),
    ],
)
def test_a_table_cannot_steer_the_terminal(text: str, shown: str) -> None:
    assert render(AnswerTable(("x",), [{"x": Literal(text)}]), "table").split("\n")[2] == shown


def test_a_table_is_cut_only_when_it_must_be() -> None:
    long = Literal("x" * 300)
    wide = AnswerTable(("a", "b"), [{"a": A, "b": long}, {"a": A, "b": Literal("short")}])
    lines = render(wide, "table", width=60).splitlines()
    assert lines[2:4] == ['<http://ex/a>  "short"', f'<http://ex/a>  "{"x" * 43}…']
    assert max(map(len, lines)) == 60
    assert str(long) in render(wide, "table", width=400)
    assert all(len(line) <= 26 for line in render(wide, "table", width=10).splitlines())


def test_wide_characters_keep_the_columns_aligned() -> None:
    table = AnswerTable(("a", "b"), [{"a": Literal("日本"), "b": A}, {"a": Literal("e\u0301"), "b": A}])
    assert render(table, "table").splitlines()[2:4] == ['"e\u0301"     <http://ex/a>', '"日本"  <http://ex/a>']


@pytest.mark.parametrize(
    ("dest", "names", "paths"),
    [
        ("a.srj", ["q"], ["a.srj"]),
        ("a.CSV", ["q"], ["a.CSV"]),
        ("dir", ["q"], ["dir/q.srj"]),
        ("new/", ["q"], ["new/q.srj"]),
        ("new.tsv/", ["q"], ["new.tsv/q.tsv"]),
        ("new.tsv", ["q", "r"], ["new.tsv/q.tsv", "new.tsv/r.tsv"]),
        ("new", ["q", "r"], ["new/q.srj", "new/r.srj"]),
        ("new.txt", ["q", "r"], ["new.txt/q.srj", "new.txt/r.srj"]),
        ("new/", ["../../etc", ".", "..", "a b/ü", "", "~x"], [
            "new/%2E.%2F..%2Fetc.srj", "new/%2E.srj", "new/%2E..srj", "new/a%20b%2F%C3%BC.srj", "new/%.srj",
            "new/%7Ex.srj",
        ]),
    ],
)  # fmt: skip
def test_where_answers_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str, names: list[str], paths: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dir").mkdir()
    assert list(answer_paths(dest, names).values()) == paths
    write_answers(dest, dict.fromkeys(names, TABLE))
    for path in paths:
        assert Path(path).read_bytes().decode() == EXPECTED[os.path.splitext(path)[1][1:].lower()]
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(left) == len(paths)


@pytest.mark.parametrize(
    ("dest", "names", "message"),
    [
        ("a.xml", ["q"], "cannot tell the format of the answers from 'a.xml'; end it in .srj, .csv or .tsv"),
        ("-", ["q"], "cannot tell the format of the answers from '-'; end it in .srj, .csv or .tsv"),
        ("no/a.srj", ["q"], "cannot write no/a.srj: the directory no does not exist; create it first"),
        ("no/a/", ["q"], "cannot write no/a: the directory no does not exist; create it first"),
        ("f.srj", ["q", "r"], "f.srj is a file, and the answers of 2 queries need a directory; give another name"),
        ("f.srj/", ["q"], "f.srj is a file, and a directory is needed; give another name"),
    ],
)
def test_destinations_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest: str, names: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.srj").write_text("kept")
    with pytest.raises(UsageError) as caught:
        write_answers(dest, dict.fromkeys(names, TABLE))
    assert str(caught.value) == message
    assert (tmp_path / "f.srj").read_text() == "kept"


def test_a_failed_write_leaves_the_old_answers_and_no_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.srj"
    write_answers(str(path), {"q": NONE})
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(SourceError, match=r"cannot write .*a\.srj: No space left on device"):
        write_answers(str(path), {"q": TABLE})
    assert os.listdir(tmp_path) == ["a.srj"]
    assert json.loads(path.read_text())["results"]["bindings"] == []


def test_a_symbolic_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_answers(str(tmp_path / "link.csv"), {"q": AnswerTable.ask(True)})
    assert (tmp_path / "real.csv").read_text() == "true\n"
    assert (tmp_path / "link.csv").is_symlink()
