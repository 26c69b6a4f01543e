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
    return Case(queries, random_events(random, terms, queries, granularity), granularity)


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
    if random.random() < 0.3:
        patterns = _shape(random, terms) + patterns[: random.randint(0, 2)]
    pattern = GraphPattern(tuple(_without_constant_blanks(p) for p in patterns))
    form = random.random()
    if form < 0.4:
        return Query.select(pattern)
    if form < 0.5:
        return Query.ask(pattern)
    visible = [variable for variable in pattern.variables if not variable.is_hidden]
    projection = tuple(random.sample(visible, random.randint(0, len(visible))))
    return Query.select(pattern, projection, distinct=random.random() < 0.5)


def _shape(random: Random, terms: _Terms) -> tuple[TriplePattern, ...]:
    """A path, cycle or tree of variables, its edges in random directions."""
    length = random.randint(2, 4)
    variables = random.sample(VARIABLES, length)
    kind = random.choice(("path", "cycle", "tree"))
    pairs = [(random.randrange(n) if kind == "tree" else n - 1, n) for n in range(1, length)]
    if kind == "cycle":
        pairs.append((length - 1, 0))
    random.shuffle(pairs)
    edges = [(variables[a], variables[b]) for a, b in pairs]
    edges = [edge if random.random() < 0.5 else edge[::-1] for edge in edges]
    return tuple(TriplePattern(tail, random.choice(terms.predicates), head) for tail, head in edges)


def random_events(random: Random, terms: _Terms, queries: dict[str, Query], granularity: str) -> list[Event]:
    """Five to forty messages; graphs that fill up and empty out again.

    Some triples are arbitrary; others are images of a whole query, so that it has answers.
    """
    triples = [
        (random.choice(terms.nodes), random.choice(terms.predicates), random.choice(terms.objects))
        for _ in range(random.randint(1, 6))
    ]
    for _ in range(random.randint(0, 3)):
        triples += _image(random, terms, random.choice(list(queries.values())))
    random.shuffle(triples)
    del triples[14:]
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


def _image(random: Random, terms: _Terms, query: Query) -> list[tuple[Term, Term, Term]]:
    """The query's patterns under a random embedding, where that gives triples."""
    predicates = {pattern.predicate for pattern in query.pattern.patterns}
    embedding: dict[Node, Term] = {
        variable: random.choice(terms.predicates if variable in predicates else terms.nodes)
        for variable in query.pattern.variables
    }
    images = [tuple(embedding.get(node, node) for node in pattern.nodes) for pattern in query.pattern.patterns]
    return [(s, p, o) for s, p, o in images if isinstance(s, IRI | BlankNode) and isinstance(p, IRI)]


def _node(random: Random, variables: list[Variable], terms: list[Term], share: float) -> Node:
    return random.choice(variables) if random.random() < share else random.choice(terms)


def _without_constant_blanks(pattern: TriplePattern) -> TriplePattern:
    """A query cannot name a blank node of the data: one becomes a hidden variable."""
    nodes = [Variable.hidden("n") if isinstance(node, BlankNode) else node for node in pattern.nodes]
    return TriplePattern(*nodes)
