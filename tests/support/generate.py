"""Random queries and streams: small, and full of collisions.

Few terms that serve as subjects, predicates and objects alike, so that a triple unifies with several patterns of a
query, in the same and in different components; repeated variables, duplicate inserts, absent deletes, transactions.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from deltastar.query.algebra import GraphPattern, Node, Query, TriplePattern, Variable
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term
from deltastar.rdf.update import DELETE, INSERT, Event, Malformed, Mark, Update

IRIS = tuple(IRI(f"http://ex/{name}") for name in "abcd")
PREDICATES = (*(IRI(f"http://ex/{name}") for name in "pq"), IRIS[0])
OBJECTS_ONLY: tuple[Term, ...] = (Literal("1"), Literal("1", language="en"))
VARIABLES = (*(Variable(name) for name in "xyzw"), Variable.hidden("b1"))


@dataclass(frozen=True)
class Case:
    """Queries, a stream, and how to run them."""

    queries: dict[str, Query]
    events: list[Event]
    granularity: str

    def __str__(self) -> str:
        lines = [f"# {self.granularity}"]
        lines += [f"# {name}: {query}" for name, query in self.queries.items()]
        for event in self.events:
            if isinstance(event, Update):
                lines.append(f"{'A' if event.op == INSERT else 'D'} {event.triple}")
            elif isinstance(event, Mark):
                lines.append(f"{event.value} .")
            else:
                lines.append(event.text)
        return "\n".join(lines)


def random_case(seed: int) -> Case:
    """The case with this number."""
    random = Random(seed)
    terms = _Terms(random)
    queries = {f"q{n}": random_query(random, terms) for n in range(random.choice((1, 1, 1, 2, 3)))}
    granularity = random.choice(("message", "message", "transaction"))
    return Case(queries, random_events(random, terms, granularity), granularity)


class _Terms:
    """The terms of one case: sometimes two, sometimes all."""

    def __init__(self, random: Random) -> None:
        self.nodes: list[Term] = random.sample(IRIS, random.randint(1, len(IRIS)))
        if random.random() < 0.2:
            self.nodes.append(BlankNode("n"))
        self.predicates: list[Term] = random.sample(PREDICATES, random.randint(1, len(PREDICATES)))
        self.objects: list[Term] = self.nodes + random.sample(OBJECTS_ONLY, random.randint(0, 2))


def random_query(random: Random, terms: _Terms) -> Query:
    """One to five patterns; all shapes, from ground to products of cycles with predicate variables."""
    variables = random.sample(VARIABLES, random.randint(1, len(VARIABLES)))
    share = random.choice((0.2, 0.5, 0.8, 0.95))  # how likely a node is a variable
    predicate_share = random.choice((0.0, 0.0, 0.1, 0.4))
    patterns = tuple(
        TriplePattern(
            _node(random, variables, terms.nodes, share),
            _node(random, variables, terms.predicates, predicate_share),
            _node(random, variables, terms.objects, share),
        )
        for _ in range(random.choice((1, 1, 2, 2, 3, 3, 4, 5)))
    )
    pattern = GraphPattern(tuple(_without_constant_blanks(p) for p in patterns))
    form = random.random()
    if form < 0.4:
        return Query.select(pattern)
    if form < 0.5:
        return Query.ask(pattern)
    visible = [variable for variable in pattern.variables if not variable.is_hidden]
    projection = tuple(random.sample(visible, random.randint(0, len(visible))))
    return Query.select(pattern, projection, distinct=random.random() < 0.5)


def random_events(random: Random, terms: _Terms, granularity: str) -> list[Event]:
    """Five to forty messages; graphs that fill up and empty out again."""
    triples = [
        (random.choice(terms.nodes), random.choice(terms.predicates), random.choice(terms.objects))
        for _ in range(random.randint(2, 12))
    ]
    marks = random.choice((0.0, 0.1, 0.3)) if granularity == "message" else random.choice((0.1, 0.3, 0.5))
    events: list[Event] = []
    deletes = 0.4
    for _ in range(random.randint(5, 40)):
        if random.random() < marks:
            events.append(random.choice((Mark.BEGIN, Mark.BEGIN, Mark.COMMIT, Mark.COMMIT, Mark.ABORT)))
        if random.random() < 0.1:
            deletes = random.choice((0.1, 0.4, 0.9))
        if random.random() < 0.02:
            events.append(Malformed("case", 1, 1, "not a row", "A oops", is_message=random.random() < 0.5))
        events.append(Update(DELETE if random.random() < deletes else INSERT, *random.choice(triples)))
    return events


def _node(random: Random, variables: list[Variable], terms: list[Term], share: float) -> Node:
    return random.choice(variables) if random.random() < share else random.choice(terms)


def _without_constant_blanks(pattern: TriplePattern) -> TriplePattern:
    """A query cannot name a blank node of the data: one becomes a hidden variable."""
    nodes = [Variable.hidden("n") if isinstance(node, BlankNode) else node for node in pattern.nodes]
    return TriplePattern(*nodes)
