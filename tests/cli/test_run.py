"""`deltastar run`: output, exit codes, dead letters, checkpoints, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run

BAD = "A <http://ex/1> <http://ex/to> oops .\n"


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_deltas_on_standard_output_and_the_rest_on_standard_error(deltastar: Run, ring: Path) -> None:
    result = deltastar("run", "ring.rq", "--updates", "up.rdfp")
    assert result.returncode == 0
    deltas = [json.loads(line) for line in result.stdout.splitlines()]
    assert Counter((d["seq"], d["op"]) for d in deltas) == {(3, "+"): 3, (4, "-"): 3}
    first = next(d for d in deltas if d["binding"]["a"]["value"] == "http://ex/1")
    assert first == {
        "query": "ring",
        "seq": 3,
        "op": "+",
        "binding": {name: {"type": "uri", "value": f"http://ex/{n}"} for name, n in zip("abc", "123", strict=True)},
    }
    assert "4 messages (4 matched a query)" in result.stderr
    assert "6 deltas to standard output" in result.stderr


def test_quiet_says_nothing(deltastar: Run, ring: Path) -> None:
    assert deltastar("run", "ring.rq", "--updates", "up.rdfp", "--quiet").stderr == ""


def test_standard_input_and_names(deltastar: Run, ring: Path) -> None:
    text = (ring / "up.rdfp").read_text()
    result = deltastar("run", "r=ring.rq", "--updates", "-", stdin=text)
    assert {json.loads(line)["query"] for line in result.stdout.splitlines()} == {"r"}


def test_rejected_rows_are_kept_and_nothing_valid_is_lost(deltastar: Run, ring: Path) -> None:
    (ring / "up.rdfp").write_text(BAD + (ring / "up.rdfp").read_text())
    result = deltastar("run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl")
    assert result.returncode == 3
    assert Counter(d["seq"] for d in lines(ring / "d.jsonl")) == {4: 3, 5: 3}
    (reject,) = lines(ring / "d.jsonl.rejects.jsonl")
    assert (reject["source"], reject["line"], reject["text"]) == ("up.rdfp", 1, BAD.rstrip("\n"))
    assert "1 rejected rows are in d.jsonl.rejects.jsonl" in result.stderr


def test_strict_stops_at_the_first_malformed_row(deltastar: Run, ring: Path) -> None:
    (ring / "up.rdfp").write_text((ring / "up.rdfp").read_text() + BAD)
    result = deltastar("run", "ring.rq", "--updates", "up.rdfp", "--strict")
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 6
    assert "up.rdfp: line 7, column 32" in result.stderr
    assert "Traceback" not in result.stderr


def test_strict_refuses_what_has_no_effect(deltastar: Run, ring: Path) -> None:
    (ring / "up.rdfp").write_text("A <http://ex/1> <http://ex/other> <http://ex/2> .\n" * 2)
    result = deltastar("run", "ring.rq", "--updates", "up.rdfp", "--strict")
    assert result.returncode == 1
    assert "message 2 inserts a triple that is there already" in result.stderr


WRONG = {
    "no command": ([], "the following arguments are required"),
    "no updates": (["run", "ring.rq"], "--updates"),
    "no such query": (["run", "nope.rq", "--updates", "up.rdfp"], "nope.rq"),
    "no such updates": (["run", "ring.rq", "--updates", "nope.rdfp"], "nope.rdfp"),
    "no such initial graph": (["run", "ring.rq", "--updates", "up.rdfp", "--initial", "nope.ttl"], "nope.ttl"),
    "bad option": (["run", "ring.rq", "--updates", "up.rdfp", "--frobnicate"], "--frobnicate"),
    "two of one name": (["run", "ring.rq", "ring.rq", "--updates", "up.rdfp"], "two queries are named 'ring'"),
    "bad syntax": (["explain", "bad.rq"], "bad.rq: line 1"),
    "unsupported": (["explain", "optional.rq"], "OPTIONAL is not supported"),
    "checkpoint of standard input": (
        ["run", "ring.rq", "--updates", "-", "--checkpoint", "c", "--deltas", "d.jsonl"],
        "standard input cannot",
    ),
    "checkpoint to standard output": (["run", "ring.rq", "--updates", "up.rdfp", "--checkpoint", "c"], "--deltas"),
    "shards without Spark": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--shards", "2"],
        "--shards belongs to --engine spark; leave it out with --engine inline",
    ),
    "master without Spark": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--engine", "paper", "--master", "local[*]"],
        "--master belongs to --engine spark; leave it out with --engine paper",
    ),
    "no shards": (["run", "ring.rq", "--updates", "up.rdfp", "--shards", "0"], "'0' is not a number from 1 on"),
    "deltas over the updates": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--deltas", "./up.rdfp"],
        "--deltas ./up.rdfp would overwrite what is read from up.rdfp",
    ),
    "rejects over the initial graph": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--initial", "g.nt", "--rejects", "g.nt"],
        "--rejects g.nt would overwrite what is read from g.nt",
    ),
    "deltas among the updates": (
        ["run", "ring.rq", "--updates", "in", "--deltas", "in/d.jsonl"],
        "--deltas in/d.jsonl lies in in, whose files are read",
    ),
    "rejects over the deltas": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl", "--rejects", "d.jsonl"],
        "--deltas and --rejects both go to d.jsonl",
    ),
    "no such deltas": (["answers", "nope.jsonl"], "nope.jsonl is not there"),
    "a checkpoint that cannot be": (
        ["run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl", "--checkpoint", "g.nt"],
        "g.nt is a file; a checkpoint is a directory",
    ),
    "answers without a format": (["run", "ring.rq", "--updates", "up.rdfp", "--answers", "a.xyz"], ".srj"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_command_is_exit_code_2_and_one_clear_message(deltastar: Run, ring: Path, name: str) -> None:
    (ring / "bad.rq").write_text("SELECT * WHERE { ?x ")
    (ring / "g.nt").write_text("")
    (ring / "in").mkdir()
    (ring / "optional.rq").write_text("SELECT * WHERE { ?x <a:p> ?y OPTIONAL { ?y <a:p> ?z } }")
    arguments, message = WRONG[name]
    result = deltastar(*arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_clear_message(ring: Path) -> None:
    run = f"{sys.executable} -m deltastar run ring.rq --updates up.rdfp --quiet --deltas"
    subprocess.run(["bash", "-c", f"{run} d.jsonl"], cwd=ring, check=True, timeout=120)
    for command, message in {
        f"{run} /dev/full": "cannot write /dev/full: No space left on device",
        f"{run} - > /dev/full": "cannot write standard output: No space left on device",
        f"{sys.executable} -m deltastar explain ring.rq > /dev/full": "cannot write standard output: No space left",
        f"{sys.executable} -m deltastar answers d.jsonl > /dev/full": "cannot write standard output: No space left",
    }.items():
        result = subprocess.run(["bash", "-c", command], cwd=ring, capture_output=True, text=True, timeout=120)
        assert result.returncode == 1
        assert result.stderr.startswith(f"deltastar: {message}")
        assert len(result.stderr.splitlines()) == 1


def test_closed_or_full_standard_streams(ring: Path) -> None:
    """Without standard output the command is wrong; without standard error it goes on in silence."""
    run = f"{sys.executable} -m deltastar run ring.rq --updates up.rdfp"
    (ring / "d.jsonl").write_text("")
    for command in (
        run,
        f"{sys.executable} -m deltastar explain ring.rq",
        f"{sys.executable} -m deltastar answers d.jsonl",
    ):
        result = subprocess.run(["bash", "-c", f"{command} >&-"], cwd=ring, capture_output=True, text=True, timeout=120)
        assert result.returncode == 2
        assert result.stderr.startswith("deltastar: standard output is closed")
    for command, code in {
        f"{run} --deltas d.jsonl 2>&-": 0,
        f"{run} --deltas d.jsonl 2> /dev/full": 0,
        f"{run} --updates nope.rdfp 2>&-": 2,
        f"{run} --updates nope.rdfp 2> /dev/full": 2,
    }.items():
        assert subprocess.run(["bash", "-c", command], cwd=ring, timeout=120).returncode == code, command


def test_debug_shows_the_traceback(deltastar: Run, ring: Path) -> None:
    assert "Traceback" in deltastar("run", "nope.rq", "--updates", "up.rdfp", "--debug").stderr


def test_an_existing_output_is_mentioned(deltastar: Run, ring: Path) -> None:
    arguments = ("run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl")
    assert "was there already" not in deltastar(*arguments).stderr
    assert "d.jsonl was there already: starting from nothing" in deltastar(*arguments).stderr
    assert len(lines(ring / "d.jsonl")) == 6


def test_initial_graph_answers_and_granularity(deltastar: Run, ring: Path) -> None:
    (ring / "g.ttl").write_text("@prefix : <http://ex/> . :3 :to :1 . :2 :to :3 . :1 :to :2 .")
    (ring / "any.rq").write_text("ASK { ?a <http://ex/to> ?b }")
    result = deltastar(
        "run", "ring.rq", "any.rq", "--updates", "up.rdfp", "--initial", "g.ttl", "--granularity", "transaction",
        "--deltas", "d.jsonl", "--answers", "final/",
    )  # fmt: skip
    assert result.returncode == 0
    deltas = lines(ring / "d.jsonl")
    assert Counter((d["query"], d["seq"], d["op"]) for d in deltas) == {
        ("ring", 0, "+"): 3, ("any", 0, "+"): 1, ("ring", 4, "-"): 3,
    }  # fmt: skip
    assert "inserted what was there" in result.stderr
    assert json.loads((ring / "final" / "any.srj").read_text()) == {"head": {}, "boolean": True}
    assert json.loads((ring / "final" / "ring.srj").read_text())["results"]["bindings"] == []


@pytest.mark.parametrize("format", ["csv", "tsv", "parquet", "jsonl"])
def test_formats_add_up_to_the_same(deltastar: Run, ring: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    dest = "d.jsonl" if format == "jsonl" else f"out-{format}/"
    assert deltastar("run", "ring.rq", "--updates", "up.rdfp", "--deltas", dest, "--format", format).returncode == 0
    result = deltastar("answers", dest, "--query", "ring", "--at", "3", "--format", "csv")
    assert sorted(result.stdout.split()) == sorted(
        ["a,b,c"] + [",".join(f"http://ex/{n}" for n in row) for row in ("123", "231", "312")]
    )


def big_stream(path: Path, rows: int = 20_000) -> None:
    """A stream whose deltas keep coming, with a malformed row now and then."""
    with path.open("w") as file:
        for n in range(rows):
            op, n_of_edge = ("D", n - 1) if n % 3 == 2 else ("A", n)
            a, b = n_of_edge % 199, (n_of_edge * 31) % 211
            file.write(f"{op} <http://ex/{a}> <http://ex/to> <http://ex/{b}> .\n")
            if n % 1000 == 999:
                file.write(BAD)


def commits_in(checkpoint: Path) -> int:
    """How often a run has committed."""
    manifest = checkpoint / "checkpoint.json"
    return int(json.loads(manifest.read_text())["number"]) if manifest.exists() else 0


def wait_until(claim: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_killed_run_continues_and_ends_up_the_same(ring: Path) -> None:
    """SIGKILL at several moments; commits after every batch, batches of a few kilobytes."""
    big_stream(ring / "big.rdfp", 6000)
    (ring / "path.rq").write_text("SELECT * { ?a <http://ex/to> ?b . ?b <http://ex/to> ?c }")
    driver = (
        "import sys, deltastar.pipeline as p, deltastar.rdf.source as s\n"
        "p._COMMIT_INTERVAL_S, p._COMMIT_SHARE = 0.0, 0\n"
        "original = s.open_stream\n"
        "p.open_stream = lambda *a: original(*a, chunk_bytes=4096)\n"
        "from deltastar.cli import main\n"
        "sys.exit(main())\n"
    )
    arguments = ["run", "path.rq", "--updates", "big.rdfp", "--quiet", "--deltas"]
    command = [sys.executable, "-c", driver, *arguments]
    assert subprocess.run([*command, "whole.jsonl"], cwd=ring).returncode == 3
    for commits in (1, 3, 7):
        process = subprocess.Popen([*command, "cut.jsonl", "--checkpoint", "check"], cwd=ring)
        wait_until(lambda commits=commits: commits_in(ring / "check") >= commits)
        assert process.poll() is None, "killed too late to show anything"
        process.kill()
        process.wait()
    assert subprocess.run([*command, "cut.jsonl", "--checkpoint", "check"], cwd=ring).returncode == 3
    cut, whole = lines(ring / "cut.jsonl"), lines(ring / "whole.jsonl")
    assert [delta["seq"] for delta in cut] == [delta["seq"] for delta in whole]
    assert sorted(map(json.dumps, cut)) == sorted(map(json.dumps, whole))  # within one seq the order is free
    rejects = [(ring / f"{name}.jsonl.rejects.jsonl").read_bytes() for name in ("cut", "whole")]
    assert rejects[0] == rejects[1]


def test_a_checkpoint_that_cannot_be_written(deltastar: Run, ring: Path) -> None:
    result = deltastar("run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl", "--checkpoint", "up.rdfp/c")
    assert result.returncode == 1
    assert result.stderr == "deltastar: cannot make the checkpoint directory up.rdfp/c: Not a directory\n"


def test_a_checkpoint_of_another_run_is_refused_before_anything_is_written(deltastar: Run, ring: Path) -> None:
    arguments = ("run", "ring.rq", "--updates", "up.rdfp", "--deltas", "d.jsonl", "--checkpoint", "c")
    assert deltastar(*arguments).returncode == 0
    before = (ring / "d.jsonl").read_bytes()
    result = deltastar(*arguments, "--granularity", "transaction")
    assert result.returncode == 1
    assert "belongs to a run with another granularity: 'message', now 'transaction'" in result.stderr
    again = deltastar(*arguments)
    assert again.returncode == 0
    assert "continuing after message 4" in again.stderr
    assert (ring / "d.jsonl").read_bytes() == before
    (ring / "c" / "checkpoint.json").write_text("{")
    damaged = deltastar(*arguments)
    assert damaged.returncode == 1
    assert "is damaged" in damaged.stderr
    assert "Traceback" not in damaged.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_with_everything_on_disk(ring: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "deltastar", "run", "ring.rq", "--updates", "-", "--deltas", "d.jsonl"]
    process = subprocess.Popen(command, cwd=ring, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write((ring / "up.rdfp").read_text())
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while not ((ring / "d.jsonl").exists() and len((ring / "d.jsonl").read_text().splitlines()) == 6):
        assert time.monotonic() < deadline, "deltas of a slow pipe must come without waiting for more"
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said


def test_a_closed_pipe_is_no_error(ring: Path) -> None:
    big_stream(ring / "big.rdfp")
    (ring / "edge.rq").write_text("SELECT * { ?a <http://ex/to> ?b }")
    command = f"{sys.executable} -m deltastar run edge.rq --updates big.rdfp --quiet | head -n 1"
    result = subprocess.run(["bash", "-c", command], cwd=ring, capture_output=True, text=True, timeout=120)
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == ""


def test_following_a_directory(ring: Path) -> None:
    (ring / "in").mkdir()
    rows = (ring / "up.rdfp").read_text().splitlines(keepends=True)
    (ring / "in" / "1.rdfp").write_text("".join(rows[:4]))
    command = [sys.executable, "-m", "deltastar", "run", "ring.rq", "--updates", "in", "--follow"]
    command += ["--deltas", "d.jsonl"]
    process = subprocess.Popen(command, cwd=ring, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1.0)
        (ring / "in" / ".2.rdfp").write_text("".join(rows[4:]))
        os.rename(ring / "in" / ".2.rdfp", ring / "in" / "2.rdfp")
        deadline = time.monotonic() + 20
        while not ((ring / "d.jsonl").exists() and len((ring / "d.jsonl").read_text().splitlines()) == 6):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 130
