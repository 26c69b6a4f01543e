"""CLIPS, a Rete engine, through clipspy: a fact for each triple, and rules that print deltas into a file, from C.

One rule matches the query and prints an addition for each new match. Rete tells nobody when a match goes, so before a
fact is retracted another one, `gone-…`, is asserted for it, and a rule for each pattern it can match prints the
removals (the delta rule, with the later patterns not matching that fact). The textbook alternative, `logical` facts
that CLIPS retracts by itself, and `watch`, which prints it, was slower by 2 to 4 times where there are many deltas.

**The leak.** `clips.facts.Fact.__init__` calls `RetainFact`, and `__del__` calls `ReleaseFact(env, fact)`; the C
function takes the fact alone, and the `TypeError` is swallowed (clipspy 1.0.6). The count of a fact that Python has
ever seen never falls to zero: it stays after `retract`, 160 bytes and its place in a list of garbage. The patch here
is to make no `Fact`: facts are asserted and retracted through the library beneath, by pointers which are kept only
while the fact is there and which were never counted, so there is nothing to release.

Two more things made it faster, measured: `FactBuilder` with strings takes 3 µs where `assert_string` takes 70; and
clipspy's error router, which is asked in Python about every word that CLIPS prints, is deactivated (5 times on a path).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from competitors import SystemDelta
from competitors.workload import Pattern, Query, connected_first, is_variable, triples


class ClipsRete:
    """See above. CLIPS ignores a fact that is there already."""

    IS_PER_MESSAGE = True

    def __init__(self, query: Query, scratch: Path) -> None:
        import clips
        from clips._clips import ffi, lib

        self.query, self.lib = query, lib
        self.environment = clips.Environment()
        self.pointer = self.environment._env
        lib.DeactivateRouter(self.pointer, b"python-error-router")
        self.templates = {predicate: f"t{number}" for number, predicate in enumerate(query.predicates)}
        for construct in self.constructs():
            self.environment.build(construct)
        self.builders: dict[str, Any] = {}
        self.gone_builders: dict[str, Any] = {}
        for predicate, template in self.templates.items():
            self.builders[predicate] = lib.CreateFactBuilder(self.pointer, template.encode())
            self.gone_builders[predicate] = lib.CreateFactBuilder(self.pointer, f"gone-{template}".encode())
        self.values = ffi.new("CLIPSValue *"), ffi.new("CLIPSValue *")
        self.facts: dict[tuple[str, str, str], Any] = {}
        self.first, self.out = scratch / "first.txt", scratch / "deltas.txt"

    def constructs(self) -> Iterator[str]:
        """Templates and rules."""
        for template in self.templates.values():
            yield f"(deftemplate {template} (slot s) (slot o))"
            yield f"(deftemplate gone-{template} (slot s) (slot o))"
        first, *rest = self.query.patterns
        order = [first, *(pattern for pattern, _ in connected_first(first, [(p, False) for p in rest]))]
        yield f"(defrule added {' '.join(map(self.condition, order))} => {self.print('+')})"
        for predicate, template in self.templates.items():
            for number, trigger in enumerate(self.query.triggers(predicate)):
                conditions = [self.condition(trigger.pattern).replace("(", "(gone-", 1)]
                for other, is_later in trigger.others:
                    conditions.append(self.condition(other))
                    if is_later:
                        pairs = zip(other[::2], trigger.pattern[::2], strict=True)
                        same = " ".join(f"(eq {word(mine)} {word(changed)})" for mine, changed in pairs)
                        conditions.append(f"(test (not (and {same})))")
                yield f"(defrule gone-{template}-{number} {' '.join(conditions)} => {self.print('-')})"

    def condition(self, pattern: Pattern) -> str:
        return f"({self.templates[pattern.p]} (s {word(pattern.s)}) (o {word(pattern.o)}))"

    def print(self, op: str) -> str:
        """A line of a delta: the sign and the terms, tabs between them."""
        terms = " ".join(f'"\t" ?{variable}' for variable in self.query.variables)
        return f'(printout out "{op}" {terms} crlf)'

    def load(self, path: Path) -> None:
        self.open(self.first, "w")
        for triple in triples(path, self.query):
            self.facts[triple] = self.assert_fact(self.builders[triple[1]], triple[0], triple[2])
        self.lib.Run(self.pointer, -1)
        self.environment.eval("(close out)")
        self.out.touch()

    def open(self, path: Path, mode: str) -> None:
        self.environment.eval(f'(open "{path}" out "{mode}")')

    def assert_fact(self, builder: Any, s: str, o: str) -> Any:
        lib, (s_value, o_value) = self.lib, self.values
        s_value.lexemeValue = lib.CreateString(self.pointer, s.encode())
        o_value.lexemeValue = lib.CreateString(self.pointer, o.encode())
        lib.FBPutSlot(builder, b"s", s_value)
        lib.FBPutSlot(builder, b"o", o_value)
        return lib.FBAssert(builder)

    def run(self, path: Path) -> None:
        facts, assert_fact = self.facts, self.assert_fact
        fire, retract, pointer = self.lib.Run, self.lib.Retract, self.pointer
        builders, gone_builders, unifies = self.builders, self.gone_builders, self.query.unifies
        partly = self.query.partly
        self.open(self.out, "a")
        with path.open(encoding="ascii") as file:
            for line in file:
                op, s, p, o, _ = line.split(" ")
                if p not in builders or (p in partly and not unifies(s, p, o)):
                    continue
                triple = s, p, o
                if op == "A":
                    if triple not in facts:
                        facts[triple] = assert_fact(builders[p], s, o)
                        fire(pointer, -1)
                elif triple in facts:
                    gone = assert_fact(gone_builders[p], s, o)
                    fire(pointer, -1)
                    retract(gone)
                    retract(facts.pop(triple))
        self.environment.eval("(close out)")

    def deltas(self) -> Iterator[SystemDelta]:
        with self.out.open(encoding="ascii") as file:
            for line in file:
                op, *terms = line.rstrip("\n").split("\t")
                yield (1 if op == "+" else -1), tuple(terms)

    def answer_count(self) -> int:
        with self.first.open(encoding="ascii") as file:
            return sum(1 for _ in file) + sum(op for op, _ in self.deltas())

    def close(self) -> None:
        for builder in [*self.builders.values(), *self.gone_builders.values()]:
            self.lib.FBDispose(builder)


def word(term: str) -> str:
    """A variable, or a string."""
    if is_variable(term):
        return f"?{term}"
    return '"' + term.replace("\\", "\\\\").replace('"', '\\"') + '"'
