"""The C++ yardstick finds what the reference finds, message by message; the generator's two forms say the same."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from deltastar.delta import ADDED, Delta
from deltastar.query.parse import parse_query
from deltastar.rdf.terms import Triple
from deltastar.rdf.update import DELETE, INSERT, Update
from deltastar.reference import ReferenceEngine

ROOT = Path(__file__).parents[2]
MASK = (1 << 64) - 1

QUERIES = {
    "edge": "v0 p0 v1",
    "star": "v0 p0 v1 . v0 p1 v2 . v0 p2 v3",
    "star of one predicate": "v0 p0 v1 . v0 p0 v2 . v3 p0 v0",
    "path": "v0 p0 v1 . v1 p1 v2 . v2 p2 v3",
    "path, variables out of order": "v2 p0 v0 . v0 p1 v3 . v3 p0 v1",
    "self-joined path": "v0 p0 v1 . v1 p0 v2",
    "there and back": "v0 p0 v1 . v1 p0 v0",
    "parallel": "v0 p0 v1 . v0 p1 v1 . v1 p0 v0",
    "triangle": "v0 p0 v1 . v1 p1 v2 . v2 p2 v0",
    "self-joined triangle": "v0 p0 v1 . v1 p0 v2 . v2 p0 v0",
    "self-joined 4-cycle": "v0 p0 v1 . v1 p0 v2 . v2 p0 v3 . v3 p0 v0",
    "cycle with a tail": "v0 p0 v1 . v1 p1 v2 . v2 p0 v0 . v2 p0 v3",
    "tree": "v0 p0 v1 . v0 p1 v2 . v1 p2 v3 . v2 p0 v4 . v5 p1 v0",
    "constant end": "v0 p0 c1 . v0 p1 v1",
    "constant joins": "c1 p0 v0 . v1 p0 c1 . v0 p1 v2",
    "constant twice": "c1 p0 v0 . v0 p1 c1",
    "ground pattern": "c1 p0 c2 . v0 p0 c2 . v0 p1 v1",
}


@pytest.fixture(scope="session")
def yardstick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled with checks, and with hash tables for lists of more than eight."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to compile the yardstick")
    program = tmp_path_factory.mktemp("yardstick") / "yardstick"
    checks = ["-D_GLIBCXX_ASSERTIONS", "-fsanitize=undefined", "-fno-sanitize-recover"]
    source = ROOT / "bench/native/yardstick.cpp"
    command = [compiler, "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-DSCAN_LIMIT=8", *checks]
    subprocess.run([*command, "-o", program, source], check=True)
    return program


@pytest.mark.parametrize("name", QUERIES)
def test_random_graphs(name: str, yardstick: Path, tmp_path: Path) -> None:
    patterns = QUERIES[name].split(" . ")
    for seed in range(4):
        rng = random.Random(f"{name} {seed}")
        initial, stream = random_stream(rng, nodes=rng.choice((3, 5)), count=60)
        assert run(yardstick, tmp_path, patterns, initial, stream) == expected(patterns, initial, stream)


@pytest.mark.parametrize("name", ["self-joined path", "parallel", "triangle", "cycle with a tail", "constant joins"])
def test_hubs(name: str, yardstick: Path, tmp_path: Path) -> None:
    patterns = QUERIES[name].split(" . ")
    rng = random.Random(name)
    wheel = [(rng.randrange(2), rng.randrange(3), rng.randrange(2, 70)) for _ in range(300)]
    wheel += [(o, p, s) for s, p, o in rng.sample(wheel, 30)]
    stream = [(INSERT, *triple) for triple in wheel[:200]]
    stream += [(rng.choice((INSERT, DELETE, DELETE, DELETE)), *rng.choice(wheel)) for _ in range(20)]
    everything = [*dict.fromkeys(wheel)]
    rng.shuffle(everything)
    stream += [(DELETE, *triple) for triple in everything]
    assert run(yardstick, tmp_path, patterns, [], stream[:240]) == expected(patterns, [], stream[:240])
    net = run(yardstick, tmp_path, patterns, wheel[200:], stream)  # ends with an empty graph
    assert net["deltas_plus"] + count_answers(patterns, wheel[200:]) == net["deltas_minus"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v0 p0", "not a pattern like `v0 p1 v1`: v0 p0"),
        ("v0 p0 x1", "neither a variable nor a constant: x1"),
        ("v0 p0 vx", "not v, p or c and a number: vx"),
        ("v0 p0 v2", "variables must be v0, v1, … without a gap"),
        ("v0 p0 v1 . v2 p0 v3", "the query is not connected"),
        ("v0 p0 v0", "a variable stands twice in one pattern"),
        ("", "the query must have 1 to 8 variables"),
    ],
)
def test_refused_queries(text: str, message: str, yardstick: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.bin").touch()
    (tmp_path / "query.txt").write_text(text.replace(" . ", "\n"), encoding="utf-8")
    command = [yardstick, tmp_path / "query.txt", tmp_path / "empty.bin", tmp_path / "empty.bin"]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert (result.returncode, result.stderr) == (1, f"yardstick: {message}\n")


# What is compared

COMPARED = ("messages", "relevant", "deltas_plus", "deltas_minus", "checksum", "checksum_seq")
Ids = tuple[int, int, int]
Row = tuple[str, int, int, int]


def random_stream(rng: random.Random, nodes: int, count: int) -> tuple[list[Ids], list[Row]]:
    """Few nodes, so that most updates meet others, and some change nothing."""

    def triple() -> Ids:
        return rng.randrange(nodes), rng.randrange(4), rng.randrange(nodes)

    initial = [triple() for _ in range(rng.randrange(10))]
    return initial, [(rng.choice((INSERT, INSERT, DELETE)), *triple()) for _ in range(count)]


def run(
    yardstick: Path, directory: Path, patterns: Sequence[str], initial: Sequence[Ids], stream: Sequence[Row]
) -> dict[str, Any]:
    """What the yardstick prints, as far as it does not depend on the machine."""
    (directory / "query.txt").write_text("\n".join(patterns))
    (directory / "initial.bin").write_bytes(packed((INSERT, *triple) for triple in initial))
    (directory / "updates.bin").write_bytes(packed(stream))
    command = [yardstick, *(directory / name for name in ("query.txt", "initial.bin", "updates.bin"))]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return {name: printed[name] for name in COMPARED}


def packed(rows: Iterable[Row]) -> bytes:
    return b"".join(struct.pack("<4i", 1 if op == INSERT else -1, s, p, o) for op, s, p, o in rows)


def expected(patterns: Sequence[str], initial: Sequence[Ids], stream: Sequence[Row]) -> dict[str, Any]:
    """The same from the reference."""
    engine = reference(patterns)
    engine.load(Triple(*texts(triple)) for triple in initial)
    deltas = [delta for op, *triple in stream for delta in engine.step(Update.of(op, *texts(triple)))]
    plus = sum(delta.op == ADDED for delta in deltas)
    return {
        "messages": len(stream),
        "relevant": sum(any(unifies(pattern, triple) for pattern in patterns) for _, *triple in stream),
        "deltas_plus": plus,
        "deltas_minus": len(deltas) - plus,
        "checksum": f"{sum(map(row_hash, deltas)) & MASK:016x}",
        "checksum_seq": f"{sum(mix(row_hash(delta) ^ delta.seq) for delta in deltas) & MASK:016x}",
    }


def count_answers(patterns: Sequence[str], triples: Sequence[Ids]) -> int:
    return len(reference(patterns).load(Triple(*texts(triple)) for triple in triples))


def reference(patterns: Sequence[str]) -> ReferenceEngine:
    nodes = {"v": "?v{}", "c": "<e:n{}>", "p": "<e:p{}>"}
    triples = [" ".join(nodes[word[0]].format(word[1:]) for word in pattern.split()) for pattern in patterns]
    return ReferenceEngine({"q": parse_query(f"SELECT * {{ {' . '.join(triples)} }}")})


def texts(triple: Sequence[int]) -> tuple[str, str, str]:
    s, p, o = triple
    return f"<e:n{s}>", f"<e:p{p}>", f"<e:n{o}>"


def unifies(pattern: str, triple: Sequence[int]) -> bool:
    return all(word[0] == "v" or int(word[1:]) == value for word, value in zip(pattern.split(), triple, strict=True))


def row_hash(delta: Delta) -> int:
    hashed = mix(1 if delta.op == ADDED else 2)
    for _, term in sorted(delta.binding.items()):
        hashed = mix(hashed ^ int(term[len("<e:n") : -1]))
    return hashed


def mix(z: int) -> int:
    """The finaliser of splitmix64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)
