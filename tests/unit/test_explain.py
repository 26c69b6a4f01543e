"""The four forms of an explanation: kept files for text, JSON and Mermaid; geometry for the pictures."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
import re
import time
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deltastar.explain
from deltastar.errors import UsageError
from deltastar.explain import FORMATS, explain
from deltastar.explain.abbreviate import Names
from deltastar.explain.geometry import Size
from deltastar.explain.layout import pack
from deltastar.explain.measure import cells, printable, shorten
from deltastar.explain.mermaid import quoted
from deltastar.explain.text import COLUMNS
from deltastar.plan.decompose import make_plan
from deltastar.query.algebra import GraphPattern, Query, TriplePattern, Variable
from deltastar.rdf.terms import Literal
from tests.golden.explain.notation import node, query
from tests.golden.explain.queries import DRAWN, GOLDEN
from tests.unit.test_decompose import GRAPH_PATTERNS

DIRECTORY = Path(__file__).parent.parent / "golden" / "explain"
REWRITE = os.environ.get("DELTASTAR_UPDATE_GOLDEN") == "1"
SUFFIXES = {"text": "txt", "json": "json", "mermaid": "mmd"}
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize("name", GOLDEN)
def test_kept_explanations(name: str, form: str) -> None:
    """DELTASTAR_UPDATE_GOLDEN=1 writes the files anew."""
    path = DIRECTORY / f"{name}.{SUFFIXES[form]}"
    written = explain(make_plan(GOLDEN[name]), form) + "\n"
    if REWRITE:
        path.write_text(written, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == written


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(deltastar.explain.__path__)])
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"deltastar.explain.{name}")).failed == 0


def test_the_example_of_explain() -> None:
    assert doctest.testmod(deltastar.explain).failed == 0


def test_an_unknown_format_is_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as fault:
        explain(make_plan(GOLDEN["paper"]), "pdf")
    assert str(fault.value) == "'pdf' is not a format of explain; use one of text, json, svg, mermaid"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["paper", "predicate-variables"])
def test_the_same_plan_gives_the_same_text(name: str, form: str) -> None:
    assert explain(make_plan(DRAWN[name]), form) == explain(make_plan(DRAWN[name]), form)


# --- text ---


@pytest.mark.parametrize("name", DRAWN)
def test_text_is_legible(name: str) -> None:
    lines = explain(make_plan(DRAWN[name])).splitlines()
    assert max(map(cells, lines)) <= COLUMNS
    assert all(line == line.rstrip() for line in lines)
    numbers = {int(match.group(1)) for line in lines if (match := re.match(r"[│├└─ ]+ +(\d+)  ", line))}
    assert set(range(1, len(DRAWN[name].pattern.patterns) + 1)) <= numbers


@pytest.mark.parametrize("name", ["ground", "simple-star"])
def test_short_queries_give_short_text(name: str) -> None:
    assert len(explain(make_plan(DRAWN[name])).splitlines()) <= 12


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (query("?x :p ?y"), "answers: set; every variable is shown, so each answer is there once"),
        (query("?x :p ?y", ["x"]), "answers: bag; some variable is dropped, so a row is there once for each embedding"),
        (query("?x :p ?y", ["x"], distinct=True), "answers: distinct; a row is there while it has an embedding"),
        (query("?x :p ?y", ask=True), "answers: ask; the empty row is there while there is an embedding"),
        (query("?x :p ?y", ["x"]), "variables: ?x (not shown: ?y)"),
        (query("?x :p ?y", ask=True), "variables: none (not shown: ?x ?y)"),
        (query("_:b :p ?y . ?y :q ?z"), "variables: ?y ?z (not shown: _:b)"),
    ],
)
def test_text_tells_what_is_shown(asked: Query, line: str) -> None:
    assert line in explain(make_plan(asked))


# --- json ---


@pytest.mark.parametrize("name", DRAWN)
def test_json_has_the_promised_shape(name: str) -> None:
    asked = DRAWN[name]
    found = json.loads(explain(make_plan(asked), "json"))
    assert list(found) == ["class", "variables", "components", "bounds"]
    assert list(found["bounds"]) == ["update", "space"]
    assert found["variables"] == list(asked.pattern.variables)
    patterns = [str(pattern) for pattern in asked.pattern.patterns]
    assert sorted(text for each in found["components"] for text in each["patterns"]) == sorted(patterns)
    for component in found["components"]:
        assert list(component) == ["class", "patterns", "stars", "overlaps", "orders"]
        assert set(component["orders"]) == (set(component["patterns"]) if component["stars"] else set())
        for star in component["stars"]:
            assert list(star) == ["centre", "patterns"]
            assert all(star["centre"] in text.split() for text in star["patterns"])


# --- abbreviations ---


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("<http://ex/a>", ":a"),
        ("<http://ex/>", ":"),
        ("<http://ex/a.b-c>", ":a.b-c"),
        ("<http://ex/a.>", "<http://ex/a.>"),
        ("<http://ex/a/b>", "<http://ex/a/b>"),
        ("<http://ex/a%20b>", "<http://ex/a%20b>"),
        ("<http://ex/deep/er>", "deep:er"),
        ("<http://www.w3.org/2002/07/owl#Class>", "owl:Class"),
        ("<http://xmlns.com/foaf/0.1/name>", "<http://xmlns.com/foaf/0.1/name>"),
        ("<http://other/x>", "foaf:x"),
        ("a", "rdf:type"),
        ('"5"^^xsd:integer', "5"),
        ('"05"^^xsd:integer', "05"),
        ('"five"^^xsd:integer', '"five"^^xsd:integer'),
        ('"1.5"^^xsd:decimal', "1.5"),
        ('"1."^^xsd:decimal', '"1."^^xsd:decimal'),
        ('"1e3"^^xsd:double', "1e3"),
        ('"true"^^xsd:boolean', "true"),
        ('"1"^^xsd:boolean', '"1"^^xsd:boolean'),
        ('"x"@EN', '"x"@en'),
        ('"x"^^<http://ex/t>', '"x"^^:t'),
        ('"a\\nb"', '"a\\nb"'),
        ('"right\u202eleft"', '"right\\u202Eleft"'),
        ("_:b", "_:b"),
        ("?x", "?x"),
    ],
)
def test_abbreviations(text: str, short: str) -> None:
    names = Names([("", "http://ex/"), ("deep", "http://ex/deep/"), ("foaf", "http://other/")])
    assert names.of(node(text)) == short


def test_a_stands_for_rdf_type_as_a_predicate_only() -> None:
    assert Names().of(node("a"), is_predicate=True) == "a"
    assert Names().of(node("a")) == "rdf:type"


@given(st.text(), st.integers(1, 30))
def test_shortened_texts_fit_and_keep_their_ends(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert cells(short) <= limit
    assert short == text or "…" in short


@given(st.text())
def test_printable_texts_print(text: str) -> None:
    assert printable(text).isprintable()


# --- mermaid ---


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("?x", '"?x"'),
        ("foaf:knows", '"foaf:knows"'),
        ('say "hi"', '"say #34;hi#34;"'),
        ("a|b [c] {d} (e)", '"a#124;b #91;c#93; #123;d#125; #40;e#41;"'),
        ("<http://ex/a>", '"#60;http#58;//ex/a#62;"'),
        ("1. list", '"#49;. list"'),
        ("- list", '"#45; list"'),
        ("www.ex.org", '"www#46;ex.org"'),
        ("_:b", '"#95;:b"'),
        ("#35;", '"#35;35#59;"'),
        ("日本語", '"日本語"'),
        ("x" * 40, '"' + "x" * 15 + "…" + "x" * 14 + '"'),
    ],
)
def test_mermaid_labels_are_escaped(label: str, written: str) -> None:
    assert quoted(label) == written


@given(st.text(min_size=1))
def test_mermaid_labels_hold_no_syntax(label: str) -> None:
    inside = re.sub(r"#\d+;", "", quoted(printable(label))[1:-1])
    assert not set(inside) & set('"|[](){}<>#;`\\\n')


@pytest.mark.parametrize("name", DRAWN)
def test_mermaid_draws_every_pattern(name: str) -> None:
    asked = DRAWN[name]
    text = explain(make_plan(asked), "mermaid")
    binary = sum(not isinstance(pattern.predicate, Variable) for pattern in asked.pattern.patterns)
    assert text.startswith("flowchart ")
    assert len(re.findall(r"-->\|", text)) == binary
    assert len(re.findall(r"-->", text)) == len(asked.pattern.patterns)
    assert text.count("subgraph ") == len(re.findall(r"^end$", text, re.MULTILINE)) == len(make_plan(asked).components)


# --- svg ---

Rectangle = tuple[float, float, float, float]


def rectangle(shape: ET.Element) -> Rectangle:
    """Left, top, right, bottom of a circle, a rectangle or a polygon."""
    if shape.tag == f"{SVG}circle":
        x, y, r = (float(shape.attrib[key]) for key in ("cx", "cy", "r"))
        return x - r, y - r, x + r, y + r
    if shape.tag == f"{SVG}rect":
        x, y, width, height = (float(shape.attrib[key]) for key in ("x", "y", "width", "height"))
        return x, y, x + width, y + height
    corners = [tuple(map(float, corner.split(","))) for corner in shape.attrib["points"].split()]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def node_boxes(picture: ET.Element) -> list[Rectangle]:
    groups = [each for each in picture.iter(f"{SVG}g") if each.get("class", "").startswith("node ")]
    return [
        rectangle(next(part for part in each if part.tag[len(SVG) :] in ("circle", "rect", "polygon")))
        for each in groups
    ]


def label_boxes(picture: ET.Element) -> list[Rectangle]:
    return [rectangle(each) for each in picture.iter(f"{SVG}rect") if each.get("class") == "patch"]


def apart(one: Rectangle, other: Rectangle) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def check_geometry(picture: ET.Element) -> None:
    """No two nodes, no two labels, and no label and node overlap; all of them are on the card."""
    boxes = node_boxes(picture) + label_boxes(picture)
    for one, other in combinations(boxes, 2):
        assert apart(one, other), (one, other)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for left, top, right, bottom in boxes:
        assert left > 0, "left of the card"
        assert top > 0, "above the card"
        assert right < width, "right of the card"
        assert bottom < height, "below the card"


@pytest.mark.parametrize("name", DRAWN)
def test_pictures_say_everything_and_overlap_nothing(name: str) -> None:
    asked = DRAWN[name]
    picture = ET.fromstring(explain(make_plan(asked), "svg"))
    check_geometry(picture)
    shown = {each.text or "" for each in picture.iter(f"{SVG}text")}
    tooltips = {each.text for each in picture.iter(f"{SVG}title")}
    names = Names(asked.prefixes)
    assert f"{make_plan(asked).kind.value} query" in shown
    for pattern in asked.pattern.patterns:
        assert str(pattern) in tooltips
        for part, term in zip(names.terms(pattern), pattern.nodes, strict=True):
            assert {part, shorten(part, 28), shorten(part, 26)} & shown, part
            assert term in tooltips or term == pattern.predicate
    for star in (star for component in make_plan(asked).components for star in component.stars):
        assert any(text.startswith(f"star {star.centre}: {len(star.patterns)} pattern") for text in shown)


@given(st.lists(st.builds(Size, st.floats(1, 300), st.floats(1, 300)), min_size=1, max_size=7))
def test_packed_boxes_keep_their_distance(sizes: list[Size]) -> None:
    corners, room = pack(sizes, 10)
    placed = [
        (at.real, at.imag, at.real + size.width, at.imag + size.height) for at, size in zip(corners, sizes, strict=True)
    ]
    for (left, top, right, bottom), other in combinations(placed, 2):
        assert apart((left - 9.9, top - 9.9, right + 9.9, bottom + 9.9), other)
    assert max(right for _, _, right, _ in placed) == room.width
    assert max(bottom for _, _, _, bottom in placed) == room.height


def test_an_edge_of_two_stars_has_both_colours() -> None:
    picture = ET.fromstring(explain(make_plan(query("?x :p ?y . ?y :q :a")), "svg"))
    edges = [each for each in picture.iter(f"{SVG}g") if each.get("class") == "edge"]
    colours = [[path.get("stroke") for path in edge.iter(f"{SVG}path")] for edge in edges]
    assert colours == [["#0072B2", "#E69F00"], ["#E69F00"]]


def test_a_constant_is_drawn_once_in_each_component() -> None:
    picture = ET.fromstring(explain(make_plan(query("?x :p :a . ?x :q :a . ?y :p :a . :a :p :b")), "svg"))
    nodes = [each for each in picture.iter(f"{SVG}g") if each.get("class") == "node constant"]
    labels = [text.text for each in nodes for text in each.iter(f"{SVG}text")]
    assert sorted(map(str, labels)) == [":a", ":a", ":a", ":b"]


def test_variables_left_out_of_the_rows_are_dashed() -> None:
    picture = ET.fromstring(explain(make_plan(query("?x :p ?y", ["x"])), "svg"))
    dashed = [each.get("stroke-dasharray") for each in picture.iter(f"{SVG}circle")][:2]
    assert dashed == [None, "5 3"]


def test_pictures_of_twenty_patterns_take_less_than_a_second_or_so() -> None:
    begin = time.process_time()
    explain(make_plan(DRAWN["star of twenty"]), "svg")
    assert time.process_time() - begin < 3  # 0.4 s where it was written; room for slow machines and tracing


@settings(max_examples=60, deadline=None)
@given(GRAPH_PATTERNS)
def test_any_query_can_be_explained(pattern: GraphPattern) -> None:
    plan = make_plan(Query.select(pattern))
    json.loads(explain(plan, "json"))
    assert max(map(cells, explain(plan, "text").splitlines())) <= COLUMNS
    explain(plan, "mermaid")
    check_geometry(ET.fromstring(explain(plan, "svg")))


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
@settings(max_examples=60, deadline=None)
def test_any_literal_can_be_shown(text: str) -> None:
    pattern = TriplePattern(Variable("x"), node(":p"), Literal(text))
    plan = make_plan(Query.select(GraphPattern((pattern,))))
    picture = ET.fromstring(explain(plan, "svg"))
    check_geometry(picture)
    assert printable(str(Literal(text))) in {each.text for each in picture.iter(f"{SVG}title")}
    assert max(map(cells, explain(plan).splitlines())) <= COLUMNS
