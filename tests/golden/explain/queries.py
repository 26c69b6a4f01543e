"""The queries whose explanations are kept as files, and some more to draw."""

from __future__ import annotations

from deltastar.query.algebra import Query
from tests.golden.explain.notation import query

PAPER = "?X :p1 ?Z . :a :p2 ?X . ?Y :p3 ?X . ?Y :p4 :a . ?Y :p5 :b . :d :p10 ?Z"

GOLDEN: dict[str, Query] = {
    "ground": query(":a :p :b", ask=True),
    "simple-star": query("?x a foaf:Person . ?x :livesIn :oslo . :ann foaf:knows ?x"),
    "loosely-connected": query("?x :p :a . ?x :q :b . ?y :p :a . :c :r :d"),
    "paper": query(PAPER),
    "triangle": query("?x foaf:knows ?y . ?y foaf:knows ?z . ?z foaf:knows ?x", shown=["x"], distinct=True),
    "general": query(
        "?x foaf:knows ?y . ?y :livesIn :oslo . ?y :likes ?z . ?w a foaf:Person . :oslo :in :norway", shown=["x", "w"]
    ),
    "predicate-variables": query("?x ?p ?y . ?p :isA :Relation . ?y ?q :b . ?z ?q ?x . ?x ?x ?x"),
    "long-terms": query(
        "?person <http://www.example.org/a/vocabulary/of/its/own/2024/hasParticipatedInEvent> _:event . "
        '_:event :label "Treffen | \\"große\\" [Runde] <b>, 日本語 & more, so that it is far too long for a line"@de . '
        '_:event :year "2024"^^xsd:integer . _:event :on "2024-02-30"^^xsd:date',
        bare=True,
    ),
}

DRAWN: dict[str, Query] = GOLDEN | {
    "square": query("?a :p ?b . ?b :q ?c . ?c :r ?d . ?d :s ?a"),
    "star of eight": query(" . ".join(f"?x :property{n} ?value{n}" for n in range(8))),
    "self loops": query("?x :knows ?x . ?x :likes ?x . ?x :name ?n . ?x ?p ?x . ?p :in ?p"),
    "parallel": query("?x :knows ?y . ?y :knows ?x . ?x :likes ?y . ?x :worksWith ?y . ?y :p :a . :a :q ?y"),
    "ground cycle": query(":a :p :b . :b :p :c . :c :p :a . :d :p :d"),
    "shared predicate": query("?x ?p :a . ?y ?p :b . :c ?p ?z"),
    "five of five": query(" . ".join(f"?v{m} :p ?v{n}" for m in range(5) for n in range(m))),
    "twenty": query(" . ".join(f"?v{n // 3} :property{n} ?v{n + 1}" for n in range(20))),
    "star of twenty": query(" . ".join(f"?x :property{n} {'?v' if n % 2 else ':c'}{n}" for n in range(20))),
    "purchases": query(
        "?v0 :legalName ?v1 . ?v0 :offers ?v2 . ?v2 :eligibleRegion :Country5 . ?v2 :includes ?v3 . "
        "?v4 :jobTitle ?v5 . ?v4 foaf:homepage ?v6 . ?v4 :makesPurchase ?v7 . ?v7 :purchaseFor ?v3 . "
        "?v3 :hasReview ?v8 . ?v8 :totalVotes ?v9",
        shown=["v0", "v3", "v4", "v8"],
    ),
}
