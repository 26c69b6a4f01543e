"""The engine's own behaviour: registration, multiplicities, granularity, retention, strictness, counters."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

import deltastar
from deltastar import Delta, Engine, Mark, Update

EX = "http://ex/"


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def update(row: str) -> Update:
    """`+ a p b` or `- a p b`."""
    op, *names = row.split()
    return Update.of(op, *map(iri, names))


def q(pattern: str, form: str = "SELECT *") -> str:
    return f"PREFIX : <{EX}> {form} {{ {pattern} }}"


def rows(deltas: Iterable[Delta]) -> Counter[str]:
    """Deltas like `+x=a y=b`, or `+` for an empty binding."""
    return Counter(
        delta.op + " ".join(f"{name}={term.value[len(EX) :]}" for name, term in delta.binding.items())
        for delta in deltas
    )


def run(engine: Engine, *events: str | Mark) -> list[Counter[str]]:
    return [rows(engine.process(update(event) if isinstance(event, str) else event)) for event in events]


def test_the_contract_example() -> None:
    engine = deltastar.Engine()
    people = engine.register(
        "SELECT * WHERE { ?x a <http://ex/Person> ; <http://ex/livesIn> ?c }",
        name="people",
    )
    a = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    assert engine.insert("<http://ex/ann>", a, "<http://ex/Person>") == []
    (delta,) = engine.insert("<http://ex/ann>", "<http://ex/livesIn>", "<http://ex/oslo>")
    assert (delta.query, delta.seq, delta.op) == ("people", 2, "+")
    assert delta.binding == {"x": "<http://ex/ann>", "c": "<http://ex/oslo>"}
    assert people.count() == 1
    assert people.answers() == [delta.binding]
    (gone,) = engine.delete("<http://ex/ann>", "<http://ex/livesIn>", "<http://ex/oslo>")
    assert (gone.seq, gone.op, gone.binding) == (3, "-", delta.binding)
    people.unregister()
    assert engine.insert("<http://ex/ann>", "<http://ex/livesIn>", "<http://ex/oslo>") == []
    assert list(engine.retained()) == []


def test_rdflib_terms_are_terms() -> None:
    rdflib = pytest.importorskip("rdflib")
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    lexical = rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False)
    (delta,) = engine.insert(rdflib.URIRef(EX + "a"), rdflib.URIRef(EX + "p"), lexical)
    assert delta.binding["y"] == '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert delta.binding["y"].to_rdflib() == lexical


SEMANTICS = {
    "set": (q("?x :p ?y"), ["+ a p b", "+ a p b", "- a p b"], ["+x=a y=b", "", "-x=a y=b"]),
    "bag": (q("?x :p ?y", "SELECT ?x"), ["+ a p b", "+ a p c", "- a p b", "- a p c"], ["+x=a", "+x=a", "-x=a", "-x=a"]),
    "distinct": (
        q("?x :p ?y", "SELECT DISTINCT ?x"),
        ["+ a p b", "+ a p c", "- a p b", "- a p c"],
        ["+x=a", "", "", "-x=a"],
    ),
    "reduced is a bag": (q("?x :p ?y", "SELECT REDUCED ?x"), ["+ a p b", "+ a p c"], ["+x=a", "+x=a"]),
    "ask": (q("?x :p ?y", "ASK"), ["+ a p b", "+ a p c", "- a p b", "- a p c"], ["+", "", "", "-"]),
    "ground": (q(":a :p :b . :c :p :d"), ["+ a p b", "+ c p d", "- a p b"], ["", "+", "-"]),
    "a blank node is not projected": (q("?x :p []"), ["+ a p b", "+ a p c"], ["+x=a", "+x=a"]),
    "an unbound variable stays unbound": (q("?x :p :b", "SELECT ?x ?z"), ["+ a p b"], ["+x=a"]),
    "a duplicate pattern counts once": (q("?x :p ?y . ?x :p ?y"), ["+ a p b"], ["+x=a y=b"]),
    "two variables may bind one term": (q("?x :p ?y . ?y :p ?z"), ["+ a p a"], ["+x=a y=a z=a"]),
    "a variable in the predicate": (q(":a ?p ?y . ?p :q ?z"), ["+ a r b", "+ r q c"], ["", "+p=r y=b z=c"]),
    "a product": (q("?x :p :a . ?y :q :a"), ["+ b p a", "+ c q a", "- b p a"], ["", "+x=b y=c", "-x=b y=c"]),
}


@pytest.mark.parametrize("name", SEMANTICS)
def test_semantics(name: str) -> None:
    query, events, expected = SEMANTICS[name]
    engine = Engine()
    engine.register(query, "q")
    assert run(engine, *events) == [Counter([row] if row else []) for row in expected]


def test_by_message_an_abort_takes_back_what_stands() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    results = run(engine, "+ a p b", Mark.BEGIN, "- a p b", "+ c p d", "+ c p d", "+ e p f", "- e p f", Mark.ABORT)
    assert results[:-1] == [
        Counter(r) for r in (["+x=a y=b"], [], ["-x=a y=b"], ["+x=c y=d"], [], ["+x=e y=f"], ["-x=e y=f"])
    ]
    assert results[-1] == Counter(["+x=a y=b", "-x=c y=d"])
    assert engine.seq == 6


def test_by_message_an_abort_reports_at_the_last_row() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    run(engine, "+ a p b", Mark.BEGIN, "- a p b", "+ a q b")
    assert [(delta.seq, delta.op) for delta in engine.process(Mark.ABORT)] == [(3, "+")]


def test_by_transaction_only_the_net_effect_is_reported() -> None:
    engine = Engine(granularity="transaction")
    engine.register(q("?x :p ?y", "SELECT ?x"), "bag")
    engine.register(q("?x :p ?y", "ASK"), "ask")
    assert run(engine, "+ a p b") == [Counter(["+x=a", "+"])]  # a row outside is a transaction of its own
    assert run(engine, Mark.BEGIN, "- a p b", "+ a p c", "+ z p z", "- z p z", Mark.COMMIT) == [Counter()] * 6
    assert run(engine, Mark.BEGIN, "- a p c", Mark.ABORT) == [Counter()] * 3
    assert [delta.seq for delta in (*map(engine.process, [Mark.BEGIN, update("- a p c"), Mark.COMMIT]),)[2]] == [7, 7]


def test_by_transaction_an_open_one_is_discarded_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(granularity="transaction")
    handle = engine.register(q("?x :p ?y"), "q")
    assert list(engine.apply([update("+ a p b"), Mark.BEGIN, update("+ c p d")])) != []
    assert handle.count() == 1
    assert engine.statistics.discarded == 1
    assert "no TC" in caplog.text


def test_misplaced_marks_are_rejected_and_lose_nothing() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    rejected: list[deltastar.Malformed] = []
    events = [Mark.COMMIT, Mark.BEGIN, update("+ a p b"), Mark.BEGIN, Mark.ABORT, Mark.ABORT]
    deltas = list(engine.apply(events, rejected.append))
    assert rows(deltas) == Counter(["+x=a y=b", "-x=a y=b"])
    assert [row.reason.split(";")[0] for row in rejected] == [
        "TC after message 0, but no transaction is open",
        "TX after message 1, but a transaction is open already",
        "TA after message 1, but no transaction is open",
    ]
    assert engine.statistics.malformed == 3


@pytest.mark.parametrize("event", [1, None, ("ins", "<a:s>", "<a:p>", "<a:o>"), "A <a:s> <a:p> <a:o> ."])
def test_what_is_no_update_is_refused(event: object) -> None:
    with pytest.raises(deltastar.UsageError, match=r"is no update; give Update.insert\(s, p, o\)"):
        list(Engine().apply([event]))  # type: ignore[list-item]


@pytest.mark.parametrize("evaluation", ["kernel", "paper"])
def test_a_misplaced_mark_of_a_file_is_named_with_its_line(tmp_path: Path, evaluation: str) -> None:
    path = tmp_path / "a.rdfp"
    path.write_bytes(b"\xef\xbb\xbf# note\nTC .\nTX .\r\nTB  . # again\nA <a:s> <a:p> <a:o> .\nTC .\nTA.")
    rejected: list[deltastar.Malformed] = []
    list(Engine(evaluation=evaluation).apply(path, rejected.append))
    assert [(row.source, row.line, row.text) for row in rejected] == [
        (str(path), 2, "TC ."),
        (str(path), 4, "TB  . # again"),
        (str(path), 7, "TA."),
    ]


def test_malformed_messages_have_a_seq(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    bad = deltastar.Malformed("f", 1, 3, "not a term", "A x")
    comment = deltastar.Malformed("f", 2, 1, "not a row", "?", is_message=False)
    deltas = list(engine.apply([bad, comment, update("+ a p b")]))
    assert [delta.seq for delta in deltas] == [2]
    assert "f: line 1, column 3: not a term" in caplog.text


def test_strict_names_the_message() -> None:
    engine = Engine(strict=True)
    engine.register(q("?x :p ?y"), "q")
    run(engine, "+ a q b")
    with pytest.raises(
        deltastar.NoEffectError, match=r"message 2 inserts a triple that is there already: <http://ex/a>"
    ):
        run(engine, "+ a q b")
    with pytest.raises(deltastar.NoEffectError, match=r"message 3 deletes a triple that is not there"):
        run(engine, "- z q b")
    with pytest.raises(deltastar.RowError, match="f: line 7, column 3: no"):
        engine.process(deltastar.Malformed("f", 7, 3, "no", "A x"))


def test_statistics() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "q")
    run(engine, "+ a p b", "+ a p b", "- c p d", "+ a q b", "- a p b", Mark.BEGIN, Mark.COMMIT)
    s = engine.statistics
    assert (s.messages, s.relevant, s.deltas, s.repeated_inserts, s.absent_deletes, s.committed) == (5, 4, 2, 1, 1, 1)


def test_a_late_query_knows_what_it_missed() -> None:
    engine = Engine()
    first = engine.register(q("?x :p ?y"), "first")
    run(engine, "+ a p b", "+ a q b", "+ a r c")
    covered = engine.register(q("?x :p ?y . ?y :p ?z"), "covered")
    late = engine.register(q("?x :p ?y . ?x :q ?z"), "late")
    assert (first.complete_since, covered.complete_since, late.complete_since) == (0, 0, 3)
    assert late.count() == 0
    assert run(engine, "+ a q d") == [Counter(["+x=a y=b z=d"])]
    later = engine.register(q("?s :q :d"), "later")
    assert (later.complete_since, later.answers()) == (3, [{"s": iri("a")}])


def test_retain_all_makes_every_query_complete() -> None:
    engine = Engine(retain="all")
    run(engine, "+ a p b", "+ b p c", "- b p c", "+ b p d")
    late = engine.register(q("?x :p ?y . ?y :p ?z"), "late")
    assert late.complete_since == 0
    assert late.answers() == [{"x": iri("a"), "y": iri("b"), "z": iri("d")}]


def test_unregistering_drops_what_nobody_needs() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y"), "p")
    both = engine.register(q("?x :p ?y . ?x :q ?z"), "both")
    run(engine, "+ a p b", "+ a q c")
    both.unregister()
    assert [str(triple) for triple in engine.retained()] == [f"{iri('a')} {iri('p')} {iri('b')} ."]
    with pytest.raises(deltastar.UnknownQueryError, match=r"no query is named 'both'; registered: p"):
        both.unregister()


def test_names() -> None:
    engine = Engine()
    assert [engine.register(q("?x :p ?y")).name for _ in range(2)] == ["q1", "q2"]
    with pytest.raises(deltastar.UsageError, match="'q1' is registered already"):
        engine.register(q("?x :p ?y"), "q1")
    assert [registration.name for registration in engine.queries] == ["q1", "q2"]


def test_the_initial_graph_is_seq_0() -> None:
    engine = Engine()
    engine.register(q("?x :p ?y", "SELECT DISTINCT ?x"), "q")
    triples = [update(row).triple for row in ("+ a p b", "+ a p b", "+ a p c", "+ b q c")]
    assert [(delta.seq, delta.op) for delta in engine.load(triples)] == [(0, "+")]
    run(engine, "+ a p d")
    with pytest.raises(deltastar.UsageError, match="before the first message"):
        list(engine.load(triples))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retain": "some"}, "retain='some': give 'relevant' or 'all'"),
        ({"granularity": "day"}, "granularity='day': give 'message' or 'transaction'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(deltastar.UsageError, match=message):
        Engine(**arguments)  # type: ignore[arg-type]


def test_values_are_small_immutable_and_have_a_good_repr() -> None:
    engine = Engine()
    handle = engine.register(q("?x :p ?y"), "q")
    (delta,) = engine.process(update("+ a p b"))
    assert repr(delta) == "Delta(q #1 + ?x=<http://ex/a> ?y=<http://ex/b>)"
    assert repr(update("- a p b")) == "Update(del, <http://ex/a> <http://ex/p> <http://ex/b> .)"
    assert repr(handle).startswith("Registration(q: SELECT ?x ?y WHERE { ?x <http://ex/p> ?y }, 1 answers")
    assert hash(delta.binding) == hash(handle.answers()[0])
    assert len({delta.binding, handle.answers()[0]}) == 1
    with pytest.raises(AttributeError):
        delta.seq = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        delta.binding["x"] = iri("c")  # type: ignore[index]
    assert pickle.loads(pickle.dumps(delta)) == delta


def test_importing_deltastar_is_cheap() -> None:
    import subprocess
    import sys

    heavy = ("rdflib", "pyoxigraph", "pyarrow", "pyspark", "numba")
    code = f"import sys, deltastar; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
