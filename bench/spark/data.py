"""Streams for the benchmarks on Spark, and the query that they are for."""

from __future__ import annotations

from pathlib import Path

QUERY = "SELECT * { ?person <http://bench/knows> ?other ; <http://bench/likes> ?thing }"
PERSONS = 2_000_000


def write_stream(path: Path, messages: int, every: int) -> None:
    """Insertions of which one in `every` matches the star; about 127 bytes a row. Made once."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        for first in range(0, messages, 100_000):
            file.write("".join(_row(number, every) for number in range(first, min(first + 100_000, messages))))
    temporary.rename(path)


def _row(number: int, every: int) -> str:
    person = f"<http://bench/person/{number * 7919 % PERSONS:08}>"
    if number % every:
        value = f"<http://bench/value/that/nobody/asks/for/{number:012}>"
        return f"A {person} <http://bench/property/{number % 50:04}> {value} .\n"
    kind = "knows" if number // every % 3 else "likes"
    return f"A {person} <http://bench/{kind}> <http://bench/some/other/thing/or/person/{number:016}/of/the/stream> .\n"
