"""pyoxigraph: a store, and a SPARQL query for each pattern that a changed triple can match; and its parser alone.

The queries are the delta rule, with the changed triple's terms as `substitutions` of variables. They run with the
triple in the store: after an insertion, before a deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from competitors import SystemDelta
from competitors.workload import Query, Trigger, is_variable, sparql_term, triples


class OxigraphQueries:
    """See above."""

    IS_PER_MESSAGE = True

    def __init__(self, query: Query, scratch: Path) -> None:
        import pyoxigraph

        self.query, self.pyoxigraph = query, pyoxigraph
        self.store = pyoxigraph.Store()
        self.found: list[tuple[int, int, tuple[str, ...]]] = []
        self.rules = {p: [self.rule(trigger) for trigger in query.triggers(p)] for p in query.predicates}

    def rule(self, trigger: Trigger) -> tuple[Trigger, str, Any, Any]:
        """The rest of the query as SPARQL, and the variables to put the changed triple's terms into."""
        pattern = trigger.pattern
        lines = [f"{sparql_term(other.s)} {other.p} {sparql_term(other.o)} ." for other, _ in trigger.others]
        for other, is_later in trigger.others:
            if is_later:
                lines.append(f"FILTER(!({sparql_term(other.s)} = ?s && {sparql_term(other.o)} = ?o))")
        text = "\n".join(lines)
        for term, name in ((pattern.s, "s"), (pattern.o, "o")):
            if is_variable(term):
                text = text.replace(f"?{term} ", f"?{name} ")
        bound = {term: name for term, name in ((pattern.o, "o"), (pattern.s, "s")) if is_variable(term)}
        columns = [f"?{bound.get(variable, variable)}" for variable in self.query.variables]
        ends = [
            f"?{name}" for name in ("s", "o") if f"?{name}" not in columns
        ]  # a substituted variable must be selected
        variable = self.pyoxigraph.Variable
        return trigger, f"SELECT {' '.join(columns + ends)} WHERE {{ {text} }}", variable("s"), variable("o")

    def load(self, path: Path) -> None:
        node, quad = self.pyoxigraph.NamedNode, self.pyoxigraph.Quad
        self.store.bulk_extend(
            quad(node(s[1:-1]), node(p[1:-1]), node(o[1:-1])) for s, p, o in triples(path, self.query)
        )

    def run(self, path: Path) -> None:
        node, quad, store, found = self.pyoxigraph.NamedNode, self.pyoxigraph.Quad, self.store, self.found
        rules, unifies, partly = self.rules, self.query.unifies, self.query.partly
        width = len(self.query.variables)
        with path.open(encoding="ascii") as file:
            for seq, line in enumerate(file, 1):
                op, s, p, o, _ = line.split(" ")
                if p not in rules or (p in partly and not unifies(s, p, o)):
                    continue
                subject, object = node(s[1:-1]), node(o[1:-1])
                changed = quad(subject, node(p[1:-1]), object)
                if (changed in store) == (op == "A"):
                    continue
                if op == "A":
                    store.add(changed)
                sign = 1 if op == "A" else -1
                for trigger, text, s_variable, o_variable in rules[p]:
                    if trigger.pattern.matches(s, p, o):
                        values = {s_variable: subject, o_variable: object}
                        for row in store.query(text, substitutions=values):
                            found.append((seq, sign, tuple([str(term) for term in row][:width])))
                if op == "D":
                    store.remove(changed)

    def deltas(self) -> Iterator[SystemDelta]:
        for _, op, terms in self.found:
            yield op, terms

    def answer_count(self) -> int:
        return sum(1 for _ in self.store.query(self.query.sparql()))

    def close(self) -> None:
        self.found.clear()


class OxigraphParse:
    """Only reads the rows, as N-Triples, into its terms."""

    IS_PER_MESSAGE = False
    IS_PARSER = True

    def __init__(self, query: Query, scratch: Path) -> None:
        import pyoxigraph

        self.pyoxigraph = pyoxigraph
        self.count = 0

    def load(self, path: Path) -> None:
        """Keeps nothing."""

    def run(self, path: Path) -> None:
        kind = self.pyoxigraph.RdfFormat.N_TRIPLES
        self.count += sum(1 for _ in self.pyoxigraph.parse(path=path.with_suffix(".nt"), format=kind))

    def deltas(self) -> None:
        return None

    def answer_count(self) -> None:
        return None

    def close(self) -> None:
        """Nothing is open."""
