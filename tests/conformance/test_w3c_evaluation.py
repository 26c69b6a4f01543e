"""The W3C's evaluation tests whose query is a basic graph pattern, with or without DISTINCT, as streams.

The data goes in triple by triple in random order, and out again in another. After the last insertion the answers are
the W3C's, up to the names of blank nodes; after the last deletion there are none. The deltas add up to the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from random import Random

import pytest

from deltastar.delta import Binding, Delta
from deltastar.engine import Engine
from deltastar.rdf.ntriples import Syntax, scan
from deltastar.rdf.source import read_graph
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term
from deltastar.rdf.update import Malformed, Update

CLASSES = ("A-pure-bgp", "B-bgp+distinct")
RDF_12 = "sparql12__"
Row = frozenset[tuple[str, Term]]


def cases(data_dir: Path) -> list[tuple[Path, bool]]:
    """The folder of each test, and whether it needs the triple terms of RDF 1.2."""
    manifest = json.loads((data_dir / "sparql-eval" / "manifest.json").read_text("utf-8"))
    return [
        (data_dir / "sparql-eval" / entry["klass"] / entry["id"], entry["id"].startswith(RDF_12))
        for entry in manifest
        if entry["klass"] in CLASSES
    ]


def expected_rows(path: Path) -> Counter[Row]:
    """What the W3C expects; of an ASK, one empty row when it is true."""
    result = json.loads(path.read_text("utf-8"))
    if "boolean" in result:
        return Counter([frozenset[tuple[str, Term]]()] * result["boolean"])
    bindings = result["results"]["bindings"]
    return Counter(frozenset((name, _term(**value)) for name, value in row.items()) for row in bindings)


def _term(type: str, value: str, datatype: str = "", **language: str) -> Term:
    if type == "bnode":
        return BlankNode(value)
    return IRI(value) if type == "uri" else Literal(value, language=language.get("xml:lang", ""), datatype=datatype)


def rows_of(bindings: Iterable[Binding]) -> Counter[Row]:
    return Counter(frozenset(binding.items()) for binding in bindings)


def sum_of(deltas: Iterable[Delta]) -> Counter[Row]:
    """What the deltas add up to, without rows whose sum is zero."""
    total: Counter[Row] = Counter()
    for delta in deltas:
        total[frozenset(delta.binding.items())] += 1 if delta.op == "+" else -1
    return Counter({row: count for row, count in total.items() if count})


def is_renamed(actual: Counter[Row], expected: Counter[Row]) -> bool:
    """Whether the rows are the same but for the names of blank nodes."""
    return any(_renamed(actual, names) == expected for names in _renamings(_blanks(actual), _blanks(expected)))


def _blanks(rows: Counter[Row]) -> list[Term]:
    return sorted({term for row in rows for _, term in row if isinstance(term, BlankNode)})


def _renamings(ours: list[Term], theirs: list[Term]) -> Iterator[dict[Term, Term]]:
    if not ours:
        yield {}
        return
    for name in theirs:
        for others in _renamings(ours[1:], [other for other in theirs if other != name]):
            yield {ours[0]: name, **others}


def _renamed(rows: Counter[Row], names: dict[Term, Term]) -> Counter[Row]:
    return Counter(
        {frozenset((name, names.get(term, term)) for name, term in row): count for row, count in rows.items()}
    )


def shuffled(updates: list[Update], random: Random) -> list[Update]:
    return random.sample(updates, len(updates))


def read(path: Path) -> tuple[list[Update], list[Malformed]]:
    events = list(chain.from_iterable(batch.events for batch in read_graph(str(path))))
    return (
        [event for event in events if isinstance(event, Update)],
        [event for event in events if isinstance(event, Malformed)],
    )


@pytest.mark.parametrize("evaluation", ["kernel", "paper"])
def test_answers_come_and_vanish(data_dir: Path, evaluation: str) -> None:
    random, judged = Random(33), 0
    for folder, needs_triple_terms in cases(data_dir):
        if needs_triple_terms:
            continue
        expected = expected_rows(folder / "expected.srj")
        updates, malformed = read(folder / "data.nt")
        assert not malformed, folder.name
        for _ in range(3):
            engine = Engine(evaluation=evaluation)
            query = engine.register((folder / "query.rq").read_text("utf-8"))
            deltas = [delta for update in shuffled(updates, random) for delta in engine.process(update)]
            actual = rows_of(query.answers())
            assert is_renamed(actual, expected), f"{folder.name}: {actual} instead of {expected}"
            assert sum_of(deltas) == actual, folder.name
            deltas += [delta for update in shuffled(updates, random) for delta in engine.delete(*update.triple)]
            assert (query.count(), sum_of(deltas)) == (0, Counter()), folder.name
        judged += 1
    assert judged == 30


def test_triple_terms_are_refused_with_their_place(data_dir: Path) -> None:
    """Rows with triple terms are dead letters: each is named, and no answer is made of a part of one."""
    folders = [folder for folder, needs_triple_terms in cases(data_dir) if needs_triple_terms]
    assert len(folders) == 3
    for folder in folders:
        lines = (folder / "data.nt").read_text("utf-8").splitlines()
        updates, malformed = read(folder / "data.nt")
        assert malformed, folder.name
        assert len(updates) + len(malformed) == len(lines)
        for row in malformed:
            assert row.line
            assert row.column
            assert row.text == lines[row.line - 1]
            # the suite's own way to write them leaves their three terms bare: the row has too many
            assert row.reason.startswith("a fourth term")
    event = scan(b"<a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> .", "", 1, Syntax.NTRIPLES).events[0]
    assert isinstance(event, Malformed)
    assert (event.column, event.reason) == (13, "RDF 1.2 triple terms (<< … >>) are not supported")
