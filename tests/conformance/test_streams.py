"""Published streams with independently computed deltas: `deltastar run`, by transaction and by message.

For every transaction of every stream, each query's deltas must be the expected change of its answers. By message the
deltas within a transaction may cancel out; their sum must be the same.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from deltastar.cli import main
from deltastar.errors import UnsupportedQueryError
from deltastar.query.parse import read_query
from deltastar.rdf.terms import IRI, BlankNode, Literal, Term, term

STREAMS = ("ldbc-snb", "real-atc-gitstream", "real-ldes-parkandride", "watdiv")
REFUSED = {
    "x_count_likes": "aggregate",
    "x_not_exists": "FILTER NOT EXISTS",
    "x_optional_likes": "OPTIONAL",
    "q6_filter_low": "FILTER",
    "q7_sum": "aggregate",
}
Row = tuple[Term | None, ...]
Changes = dict[int, Counter[Row]]
"""For each transaction, how the multiplicity of each row changes; transaction 0 is the initial graph."""


def queries_of(stream: Path) -> tuple[list[Path], list[Path]]:
    """The queries of a stream that are basic graph patterns, and the others."""
    files = sorted((stream / "queries").glob("*.rq"))
    return [f for f in files if f.stem not in REFUSED], [f for f in files if f.stem in REFUSED]


def expected_changes(stream: Path, name: str) -> tuple[list[str], Changes]:
    """Variables and changes, from the initial answers and the deltas."""
    changes: Changes = defaultdict(Counter)
    with gzip.open(stream / "expected" / f"{name}.initial.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        header = next(file).rstrip("\n")
        for line in file:
            changes[0][_row(line.rstrip("\n").split("\t"))] += 1
    with gzip.open(stream / "expected" / f"{name}.deltas.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        next(file)
        for line in file:
            number, change, *cells = line.rstrip("\n").split("\t")
            changes[int(number)][_row(cells)] += int(change)
    return [variable[1:] for variable in header.split("\t")], changes


def _row(cells: list[str]) -> Row:
    if cells == ["true"]:
        return ()
    return tuple(_term(cell) if cell else None for cell in cells)


@cache
def _term(cell: str) -> Term:
    return term(cell)


def last_seq_of_transactions(stream: Path) -> Iterator[int]:
    """The seq of the last row of each transaction."""
    seq = 0
    with gzip.open(stream / "updates.rdfp.gz", "rb") as file:
        for line in file:
            if line.startswith((b"A ", b"D ")):
                seq += 1
            elif line.startswith(b"TC"):
                yield seq


def reported_changes(deltas: Path, stream: Path, variables: Mapping[str, list[str]]) -> dict[str, Changes]:
    """What a run reported, summed up for each transaction."""
    transaction_of = {0: 0}
    seq = 0
    for number, last in enumerate(last_seq_of_transactions(stream), 1):
        while seq < last:
            seq += 1
            transaction_of[seq] = number
    changes: dict[str, Changes] = {name: defaultdict(Counter) for name in variables}
    with deltas.open(encoding="utf-8") as file:
        for line in file:
            delta = json.loads(line)
            binding = {name: _from_json(**value) for name, value in delta["binding"].items()}
            names = variables[delta["query"]]
            row = tuple(binding.get(name) for name in names) if binding else ()
            changes[delta["query"]][transaction_of[delta["seq"]]][row] += 1 if delta["op"] == "+" else -1
    return changes


def _from_json(type: str, value: str, datatype: str = "", **language: str) -> Term:
    if type == "uri":
        return IRI(value)
    if type == "bnode":
        return BlankNode(value)
    return Literal(value, language=language.get("xml:lang", ""), datatype=datatype)


def without_zeros(changes: Changes) -> Changes:
    """Only what changed."""
    nonzero = {n: Counter({row: count for row, count in rows.items() if count}) for n, rows in changes.items()}
    return {number: rows for number, rows in nonzero.items() if rows}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["inline", "paper"])
@pytest.mark.parametrize("granularity", ["transaction", "message"])
@pytest.mark.parametrize("name", STREAMS)
def test_every_transaction_brings_the_expected_deltas(
    data_dir: Path, tmp_path: Path, name: str, granularity: str, engine: str
) -> None:
    stream = data_dir / name
    files, _ = queries_of(stream)
    deltas = tmp_path / "deltas.jsonl"
    code = main(
        [
            "run", *map(str, files), "--initial", str(stream / "initial.nt.gz"),
            "--updates", str(stream / "updates.rdfp.gz"), "--deltas", str(deltas), "--granularity", granularity,
            "--engine", engine,
        ]
    )  # fmt: skip
    assert code == 0
    expected = {file.stem: expected_changes(stream, file.stem) for file in files}
    reported = reported_changes(deltas, stream, {query: variables for query, (variables, _) in expected.items()})
    for query, (_, changes) in expected.items():
        assert without_zeros(reported[query]) == without_zeros(changes), query


@pytest.mark.parametrize("name", STREAMS)
def test_the_other_queries_are_refused_by_name(data_dir: Path, name: str) -> None:
    for file in queries_of(data_dir / name)[1]:
        with pytest.raises(UnsupportedQueryError, match=REFUSED[file.stem]) as refusal:
            read_query(str(file))
        assert refusal.value.line > 0
