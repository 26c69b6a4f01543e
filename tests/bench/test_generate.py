"""The generated streams are what `bench/generate.py` says they are."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from deltastar.query.parse import parse_query

pytest.importorskip("numpy", reason="the generator draws with numpy")

ROOT = Path(__file__).parents[2]


def generate(out: Path, *options: str) -> Path:
    subprocess.run([sys.executable, ROOT / "bench/generate.py", *options, "--out", out], check=True)
    return out


def rows(path: Path) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack("<4i", path.read_bytes()))


SMALL = ("graph", "--triples", "3000", "--updates", "2000")


def test_updates_change_the_graph(tmp_path: Path) -> None:
    out = generate(tmp_path, *SMALL)
    initial = rows(out / "initial.bin")
    there = {row[1:] for row in initial}
    assert len(there) == len(initial) == 3000
    deletions = 0
    for op, *triple in rows(out / "updates.bin"):
        assert (tuple(triple) in there) == (op == -1)
        there ^= {tuple(triple)}
        deletions += op == -1
    assert 500 < deletions < 700


def test_repeats_change_nothing(tmp_path: Path) -> None:
    out = generate(tmp_path, *SMALL, "--repeats", "0.2")
    there = {row[1:] for row in rows(out / "initial.bin")}
    idle = 0
    for op, *triple in rows(out / "updates.bin"):
        before = len(there)
        (there.add if op == 1 else there.discard)(tuple(triple))
        idle += len(there) == before
    assert 300 < idle < 500


@pytest.mark.parametrize("options", [SMALL, ("hub", "--neighbours", "50", "--updates", "100")])
def test_texts_and_binaries_agree_and_repeat(options: tuple[str, ...], tmp_path: Path) -> None:
    out = generate(tmp_path / "one", *options)
    again = generate(tmp_path / "two", *options)
    for path in out.rglob("*.*"):
        assert path.read_bytes() == (again / path.relative_to(out)).read_bytes()
    for text, binary in (("initial.nt", "initial.bin"), ("updates.rdfp", "updates.bin")):
        lines = []
        for op, s, p, o in rows(out / binary):
            sign = "" if text == "initial.nt" else "A " if op == 1 else "D "
            lines.append(f"{sign}<http://bench/n{s}> <http://bench/p{p}> <http://bench/n{o}> .")
        assert (out / text).read_text(encoding="ascii").splitlines() == lines


def test_queries(tmp_path: Path) -> None:
    out = generate(tmp_path, *SMALL)
    names = {path.stem for path in (out / "queries").glob("*.rq")}
    assert names == {"star", "path3", "triangle", "cycle4", "tree6", "selfpath", "selfcycle4"}
    for name in names:
        query = parse_query((out / f"queries/{name}.rq").read_text(encoding="ascii"))
        patterns = [str(pattern) for pattern in query.pattern.patterns]
        words = [line.split() for line in (out / f"queries/{name}.txt").read_text(encoding="ascii").splitlines()]
        assert patterns == [f"?{s} <http://bench/{p}> ?{o}" for s, p, o in words]
        assert query.names == tuple(f"v{number}" for number in range(len(query.names)))


def test_dead_ends_are_two_steps_from_the_hubs(tmp_path: Path) -> None:
    out = generate(tmp_path, "hub", "--neighbours", "50", "--hubs", "2", "--live", "3")
    by_predicate: dict[int, list[tuple[int, int]]] = {}
    for _, s, p, o in rows(out / "initial.bin"):
        by_predicate.setdefault(p, []).append((s, o))
    assert {p: len(edges) for p, edges in by_predicate.items()} == {0: 32, 1: 32, 3: 100, 4: 100, 5: 6}
    assert len({s for s, _ in by_predicate[3]}) == 2
    assert json.loads((out / "about.json").read_text())["neighbours"] == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("graph", "--predicates", "3"), "--predicates 3: the queries use"),
        (("graph", "--exponent", "1"), "--exponent 1.0: it must be more than 1"),
        (("hub", "--neighbours", "1"), "--live 2: a hub has only 1 neighbours"),
        (("graph", "--triples", "9000", "--nodes", "20"), "20 nodes are too few for 9000 triples"),
    ],
)
def test_refusals(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "bench/generate.py", *options, "--out", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    assert message in result.stderr
