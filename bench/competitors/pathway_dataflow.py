"""Pathway, an incremental dataflow engine in Rust: joins of one table of triples, which is filtered for each pattern.

A thread of Pathway takes the rows from a queue and commits them in batches of a thousand; Pathway writes the deltas of
each batch into a file, from Rust, which costs as much as a Python callback for each of them, or a little less. Within a
batch an answer that comes and goes leaves no delta.

The rows go into a native session, which is wrong where a stream repeats itself; the streams here do not. Nothing tells
when Pathway has worked off its queue, so a run ends when the process has used no time for a while; the waiting itself
costs no CPU time.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

from competitors import SystemDelta
from competitors.workload import Pattern, Query, connected_first, is_variable, messages, triples

BATCH = 1000
IDLE_S, IDLE_CPU_S, IDLE_TIMES = 0.2, 0.004, 4
"""Idle is: so many times in a row, in such a stretch of time, the process used less than so much time."""


class PathwayDataflow:
    """See above."""

    IS_PER_MESSAGE = False

    def __init__(self, query: Query, scratch: Path) -> None:
        os.environ.setdefault("PATHWAY_THREADS", "1")
        import pathway

        self.query, self.pathway = query, pathway
        self.out = scratch / "deltas.jsonl"
        self.commands: Queue[Iterable[tuple[str, str, str, str]] | None] = Queue()
        self.fed = threading.Event()
        self.loaded_bytes = 0
        self.has_ended = False
        self.thread = threading.Thread(target=self.flow, daemon=True)

    def flow(self) -> None:
        """Builds the dataflow and runs it until the queue ends."""
        pw = self.pathway
        system = self

        class Triples(pw.Schema):  # type: ignore[name-defined, misc]
            s: str = pw.column_definition(primary_key=True)
            p: str = pw.column_definition(primary_key=True)
            o: str = pw.column_definition(primary_key=True)

        class Feed(pw.io.python.ConnectorSubject):  # type: ignore[name-defined, misc]
            _deletions_enabled = True  # Pathway's guess, from the source of `run`, misses them

            def run(self) -> None:
                while (rows := system.commands.get()) is not None:
                    number = 0
                    for number, (op, s, p, o) in enumerate(rows, 1):
                        (self.next if op == "A" else self.delete)(s=s, p=p, o=o)
                        if number % BATCH == 0:
                            self.commit()
                    if number % BATCH:
                        self.commit()
                    system.fed.set()

        table = pw.io.python.read(Feed(), schema=Triples, autocommit_duration_ms=None)
        pw.io.jsonlines.write(self.joined(table), self.out)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)

    def joined(self, table: Any) -> Any:
        """The query's answers, a column for each variable."""
        first, *rest = self.query.patterns
        answers = self.matches(table, first)
        for pattern, _ in connected_first(first, [(p, False) for p in rest]):
            other = self.matches(table, pattern)
            columns = answers.column_names()
            shared = [name for name in other.column_names() if name in columns]
            new = [name for name in other.column_names() if name not in columns]
            answers = answers.join(other, *(answers[name] == other[name] for name in shared)).select(
                *(answers[name] for name in columns), *(other[name] for name in new)
            )
        return answers.select(**{name: answers[name] for name in self.query.variables})

    def matches(self, table: Any, pattern: Pattern) -> Any:
        """A table of the pattern's variables; a ground pattern has none, which a product takes as one row or none."""
        condition = table.p == pattern.p
        for column, term in ((table.s, pattern.s), (table.o, pattern.o)):
            if not is_variable(term):
                condition &= column == term
        if pattern.s == pattern.o:
            condition &= table.s == table.o
        chosen = table.filter(condition)
        named = {term: column for term, column in ((pattern.s, chosen.s), (pattern.o, chosen.o)) if is_variable(term)}
        return chosen.select(**named) if named else chosen.select(ground=True)

    def relevant(self, rows: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
        predicates, partly, unifies = self.query.by_predicate, self.query.partly, self.query.unifies
        for row in rows:
            p = row[2]
            if p in predicates and (p not in partly or unifies(*row[1:])):
                yield row

    def load(self, path: Path) -> None:
        self.thread.start()
        self.feed(("A", *triple) for triple in triples(path, self.query))
        self.loaded_bytes = self.out.stat().st_size

    def run(self, path: Path) -> None:
        self.feed(self.relevant(messages(path)))

    def feed(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        self.fed.clear()
        self.commands.put(rows)
        while not self.fed.wait(1):
            if not self.thread.is_alive():
                raise RuntimeError("Pathway stopped, see above")
        quiet, before = 0, time.process_time()
        while quiet < IDLE_TIMES:
            time.sleep(IDLE_S)
            now = time.process_time()
            quiet = quiet + 1 if now - before < IDLE_CPU_S else 0
            before = now

    def end(self) -> None:
        if not self.has_ended:
            self.commands.put(None)
            self.thread.join()
            self.has_ended = True

    def lines(self, start: int) -> Iterator[SystemDelta]:
        self.end()
        with self.out.open("rb") as file:
            file.seek(start)
            for line in file:
                row = json.loads(line)
                yield row["diff"], tuple(row[variable] for variable in self.query.variables)

    def deltas(self) -> Iterator[SystemDelta]:
        return self.lines(self.loaded_bytes)

    def answer_count(self) -> int:
        return sum(op for op, _ in self.lines(0))

    def close(self) -> None:
        self.end()
