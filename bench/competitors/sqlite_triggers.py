"""SQLite in memory: a table for each predicate, and triggers with the delta rules that write into a table of deltas.

Terms are numbers in the database, given out by a dictionary in Python; text keys were slower, by up to 1.8 times. An
insertion's trigger runs after it, a deletion's before it, so that both see the graph with the triple, and the rule for
patterns that can match the same triple is one condition: a later pattern's row is not the changed row. `OR IGNORE`
makes the graph a set: an ignored row fires no trigger. Deltas are fetched every thousand messages; `total_changes`
tells how many of them belong to which message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from competitors import SystemDelta
from competitors.workload import Pattern, Query, Trigger, is_variable, triples

FETCH_EVERY = 1000


class SqliteTriggers:
    """See above."""

    IS_PER_MESSAGE = True

    def __init__(self, query: Query, scratch: Path) -> None:
        self.query = query
        self.ids: dict[str, int] = {}
        self.names: list[str] = []
        self.tables = {predicate: f"t{number}" for number, predicate in enumerate(query.predicates)}
        self.found: list[tuple[int, int, tuple[str, ...]]] = []
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        run = self.database.execute
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "temp_store=MEMORY", "locking_mode=EXCLUSIVE"):
            run(f"PRAGMA {pragma}")
        for table in self.tables.values():
            run(f"CREATE TABLE {table}(s INTEGER, o INTEGER, PRIMARY KEY(s, o)) WITHOUT ROWID")
            run(f"CREATE UNIQUE INDEX {table}_o ON {table}(o, s)")
        run(f"CREATE TABLE delta(op INTEGER, {', '.join(f'{v} INTEGER' for v in query.variables)})")

    def load(self, path: Path) -> None:
        rows: dict[str, list[tuple[int, int]]] = {predicate: [] for predicate in self.tables}
        for s, p, o in triples(path, self.query):
            rows[p].append((self.id(s), self.id(o)))
        for predicate, table in self.tables.items():
            self.database.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows[predicate])
        self.database.execute("ANALYZE")  # the planner then knows the fan-outs
        for statement in self.triggers():
            self.database.execute(statement)

    def triggers(self) -> Iterator[str]:
        """The delta rules."""
        number = 0
        for predicate, table in self.tables.items():
            for trigger in self.query.triggers(predicate):
                for when, op in (("AFTER INSERT", 1), ("BEFORE DELETE", -1)):
                    row = "NEW" if op == 1 else "OLD"
                    number += 1
                    yield (
                        f"CREATE TRIGGER r{number} {when} ON {table} {self.guard(trigger, row)} "
                        f"BEGIN INSERT INTO delta {self.select(trigger, row, op)}; END"
                    )

    def guard(self, trigger: Trigger, row: str) -> str:
        """The changed row matches the pattern."""
        s, o = trigger.pattern.s, trigger.pattern.o
        tests = [f"{row}.{c} = {self.id(t)}" for c, t in (("s", s), ("o", o)) if not is_variable(t)]
        if s == o:
            tests.append(f"{row}.s = {row}.o")
        return f"WHEN {' AND '.join(tests)}" if tests else ""

    def select(self, trigger: Trigger, row: str, op: int) -> str:
        """The rest of the query, with the changed row's terms in it."""
        where = {t: f"{row}.{c}" for c, t in (("s", trigger.pattern.s), ("o", trigger.pattern.o)) if is_variable(t)}
        sources, tests = [], []
        for number, (pattern, is_later) in enumerate(trigger.others):
            alias = f"x{number}"
            sources.append(f"{self.tables[pattern.p]} AS {alias}")
            for column, term in (("s", pattern.s), ("o", pattern.o)):
                if not is_variable(term):
                    tests.append(f"{alias}.{column} = {self.id(term)}")
                elif term in where:
                    tests.append(f"{alias}.{column} = {where[term]}")
                else:
                    where[term] = f"{alias}.{column}"
            if is_later:
                tests.append(f"NOT ({alias}.s = {row}.s AND {alias}.o = {row}.o)")
        columns = ", ".join([str(op), *(where[variable] for variable in self.query.variables)])
        return f"SELECT {columns} FROM {', '.join(sources)} WHERE {' AND '.join(tests)}"

    def id(self, term: str) -> int:
        number = self.ids.get(term)
        if number is None:
            number = self.ids[term] = len(self.names)
            self.names.append(term)
        return number

    def run(self, path: Path) -> None:
        execute, ids, names = self.database.execute, self.ids, self.names
        insert = {p: f"INSERT OR IGNORE INTO {table} VALUES (?, ?)" for p, table in self.tables.items()}
        delete = {p: f"DELETE FROM {table} WHERE s = ? AND o = ?" for p, table in self.tables.items()}
        unifies, partly = self.query.unifies, self.query.partly
        ends: list[tuple[int, int]] = []  # after which message the database had made how many changes
        start = self.database.total_changes
        execute("BEGIN")
        with path.open(encoding="ascii") as file:
            for seq, line in enumerate(file, 1):
                op, s, p, o, _ = line.split(" ")
                if p in insert and (p not in partly or unifies(s, p, o)):
                    for term in (s, o):
                        if term not in ids:
                            ids[term] = len(names)
                            names.append(term)
                    execute((insert if op == "A" else delete)[p], (ids[s], ids[o]))
                    ends.append((seq, self.database.total_changes))
                if seq % FETCH_EVERY == 0:
                    self.fetch(start, ends)
                    ends.clear()
                    start = self.database.total_changes
        self.fetch(start, ends)
        execute("COMMIT")

    def fetch(self, start: int, ends: list[tuple[int, int]]) -> None:
        """Moves the table of deltas into Python, with their messages."""
        names, rows = self.names, self.database.execute("SELECT * FROM delta ORDER BY rowid")
        found = self.found
        for seq, end in ends:
            for _ in range(end - start - 1):
                op, *numbers = next(rows)
                found.append((seq, op, tuple([names[number] for number in numbers])))
            start = max(end, start)
        self.database.execute("DELETE FROM delta")

    def deltas(self) -> Iterator[SystemDelta]:
        for _, op, terms in self.found:
            yield op, terms

    def answer_count(self) -> int:
        nothing = Pattern("<>", "<>", "<>")
        select = self.select(Trigger(nothing, tuple((pattern, False) for pattern in self.query.patterns)), "", 1)
        (count,) = self.database.execute(f"SELECT count(*) FROM ({select})").fetchone()
        return int(count)

    def close(self) -> None:
        self.database.close()
