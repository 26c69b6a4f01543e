"""`deltastar run` on Spark: the deltas are those of the inline engine, however the stream is cut."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deltastar.answers import accumulate
from tests.conformance.test_streams import STREAMS, queries_of
from tests.spark.conftest import EXAMPLE, QUERIES, Run, inline, lines_by_seq

MANY = "4k"
ONE = "1g"


@pytest.mark.parametrize(("shards", "batch"), [(1, ONE), (2, MANY), (3, MANY), (8, ONE)])
@pytest.mark.parametrize("granularity", ["message", "transaction"])
def test_the_deltas_are_those_of_the_inline_engine(
    on_spark: Run, tmp_path: Path, transfers: Path, shards: int, batch: str, granularity: str
) -> None:
    given = [*QUERIES, "--updates", transfers, "--initial", EXAMPLE / "accounts.ttl", "--granularity", granularity]
    one, other = tmp_path / "inline.jsonl", tmp_path / "spark.jsonl"
    assert inline(*given, "--deltas", one, "--answers", tmp_path / "inline") == 0
    setting = f"spark.deltastar.maxBytesPerTrigger={batch}"
    code = on_spark(
        *given, "--deltas", other, "--answers", tmp_path / "spark", "--shards", str(shards), "--conf", setting
    )
    assert code == 0
    assert lines_by_seq(other) == lines_by_seq(one)
    for file in (tmp_path / "inline").iterdir():
        assert (tmp_path / "spark" / file.name).read_text() == file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2, 3, 8])
@pytest.mark.parametrize("batch", [ONE, "256k"])
@pytest.mark.parametrize("name", STREAMS)
def test_published_streams(
    request: pytest.FixtureRequest, on_spark: Run, data_dir: Path, tmp_path: Path, name: str, shards: int, batch: str
) -> None:
    if not request.config.getoption("--every-stream") and (name, shards, batch) != ("real-ldes-parkandride", 3, "256k"):
        pytest.skip("one of them is enough here; `make test-spark` runs all")
    updates = tmp_path / "updates.rdfp"
    with gzip.open(data_dir / name / "updates.rdfp.gz") as packed, updates.open("wb") as file:
        shutil.copyfileobj(packed, file)
    files, _ = queries_of(data_dir / name)
    given = [*files, "--updates", updates, "--initial", data_dir / name / "initial.nt.gz", "--quiet"]
    one, other = tmp_path / "inline.jsonl", tmp_path / "spark.jsonl"
    assert inline(*given, "--deltas", one) == 0
    setting = f"spark.deltastar.maxBytesPerTrigger={batch}"
    assert on_spark(*given, "--deltas", other, "--shards", str(shards), "--conf", setting) == 0
    assert lines_by_seq(other) == lines_by_seq(one)


STREAM = {
    "1.ru": "PREFIX : <http://ex/> INSERT DATA { :1 :to :2 . :2 :to :3 . :3 :to :1 }",
    "2.ru": "PREFIX : <http://ex/> DELETE DATA { :1 :to :2 } ; INSERT DATA { GRAPH <g:g> { :1 :to :2 , :1 } }",
    "3.ru": "LOAD <x>",
    "4.rdfp": 'A <http://ex/5> <http://ex/to> "x\nA <http://ex/5> <http://ex/to> <http://ex/5> .\r\nfoo\n',
    "5.nt": "\ufeff<http://ex/6> <http://ex/to> <http://ex/6> .",
}


def test_every_format_and_every_kind_of_fault(on_spark: Run, tmp_path: Path) -> None:
    (tmp_path / "ring.rq").write_text("PREFIX : <http://ex/>\nSELECT * { ?a :to ?b . ?b :to ?c . ?c :to ?a }\n")
    (tmp_path / "in").mkdir()
    for name, text in STREAM.items():
        (tmp_path / "in" / name).write_bytes(text.encode())
    given = [tmp_path / "ring.rq", "--updates", tmp_path / "in"]
    assert inline(*given, "--deltas", tmp_path / "inline.jsonl") == 3
    assert on_spark(*given, "--deltas", tmp_path / "spark.jsonl", "--shards", "2") == 3
    assert lines_by_seq(tmp_path / "spark.jsonl") == lines_by_seq(tmp_path / "inline.jsonl")
    rejects = [sorted((tmp_path / f"{e}.jsonl.rejects.jsonl").read_text().splitlines()) for e in ("inline", "spark")]
    assert rejects[0] == rejects[1]
    assert len(rejects[0]) == 3


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
def test_directories_are_written_by_the_shards(on_spark: Run, tmp_path: Path, transfers: Path, format: str) -> None:
    given = [*QUERIES, "--updates", transfers]
    assert inline(*given, "--deltas", tmp_path / "one.jsonl") == 0
    assert on_spark(*given, "--deltas", f"{tmp_path}/parts/", "--format", format, "--shards", "2") == 0
    expected, found = accumulate(str(tmp_path / "one.jsonl")), accumulate(str(tmp_path / "parts"))
    rows = [{name: sorted(map(str, table.rows)) for name, table in tables.items()} for tables in (expected, found)]
    assert rows[0] == rows[1]


def test_strict_stops_at_the_first_malformed_row(
    on_spark: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.rq").write_text("SELECT * { ?a <p:p> ?b }")
    rows = [f"A <p:{n}> <p:p> <p:{n}> .\n" for n in range(6)]
    rows[4] = "A <p:4> <p:p>\n"
    (tmp_path / "u.rdfp").write_text("".join(rows))
    given = [tmp_path / "q.rq", "--updates", tmp_path / "u.rdfp", "--strict"]
    assert inline(*given, "--deltas", tmp_path / "inline.jsonl") == 1
    one = capsys.readouterr().err.splitlines()[-1]
    assert on_spark(*given, "--deltas", tmp_path / "spark.jsonl", "--shards", "3") == 1
    assert capsys.readouterr().err.splitlines()[-1] == one
    assert lines_by_seq(tmp_path / "spark.jsonl") == lines_by_seq(tmp_path / "inline.jsonl")


def test_the_same_command_goes_on_from_its_checkpoint(on_spark: Run, tmp_path: Path) -> None:
    rows = EXAMPLE.joinpath("transfers.rdfp").read_text().splitlines(keepends=True)
    updates = tmp_path / "in"
    updates.mkdir()
    given = [*QUERIES, "--updates", updates, "--shards", "2"]
    deltas = tmp_path / "d.jsonl"
    for number, start in enumerate(range(0, len(rows), 600)):
        (updates / f"{number}.rdfp").write_text("".join(rows[start : start + 600]))
        assert on_spark(*given, "--deltas", deltas, "--checkpoint", tmp_path / "c") == 0
        if number == 1:
            with deltas.open("a") as file:
                file.write("what a killed run may have written\n")
    assert inline(*given[:-2], "--deltas", tmp_path / "whole.jsonl") == 0
    assert lines_by_seq(deltas) == lines_by_seq(tmp_path / "whole.jsonl")


def test_a_checkpoint_of_another_run_is_refused_before_anything_is_written(
    on_spark: Run, tmp_path: Path, transfers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*QUERIES, "--updates", transfers, "--deltas", tmp_path / "d.jsonl", "--checkpoint", tmp_path / "c"]
    assert on_spark(*given, "--shards", "2") == 0
    before = (tmp_path / "d.jsonl").read_text()
    assert on_spark(*given, "--shards", "3") == 1
    assert "another shards: 2, now 3" in capsys.readouterr().err
    assert on_spark(*given[1:], "--shards", "2") == 1
    assert "another queries" in capsys.readouterr().err
    assert inline(*given) == 1
    assert "another engine: 'spark', now 'inline'" in capsys.readouterr().err
    assert (tmp_path / "d.jsonl").read_text() == before
    assert on_spark(*given) == 0  # without --shards: as many as before


def test_errors_are_one_line(
    on_spark: Run, tmp_path: Path, transfers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = tmp_path / "damaged.rdfp.gz"
    damaged.write_bytes(gzip.compress(transfers.read_bytes())[:-20])
    assert on_spark(*QUERIES, "--updates", damaged, "--deltas", tmp_path / "d.jsonl") == 1
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert "its gzip data is cut short" in said
    lines = (tmp_path / "d.jsonl").read_text().splitlines()
    assert lines
    assert all(json.loads(line) for line in lines)  # what is in front of the fault is there


def command(*arguments: object) -> list[str]:
    """The command in a process of its own."""
    return [sys.executable, "-m", "deltastar", "run", *map(str, arguments), "--engine", "spark"]


@pytest.mark.slow
def test_executors_in_processes_of_their_own(tmp_path: Path, transfers: Path) -> None:
    given = [*QUERIES, "--updates", transfers, "--shards", "2"]
    master = ["--master", "local-cluster[2,1,2048]"]  # two executors of one core; less memory Spark refuses
    run = subprocess.run(
        command(*given, *master, "--deltas", tmp_path / "spark.jsonl", "--checkpoint", tmp_path / "c"),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert inline(*given[:-2], "--deltas", tmp_path / "inline.jsonl") == 0
    assert lines_by_seq(tmp_path / "spark.jsonl") == lines_by_seq(tmp_path / "inline.jsonl")


@pytest.mark.slow
def test_a_followed_stream_ends_when_it_is_interrupted_and_says_nothing_of_spark(
    tmp_path: Path, transfers: Path
) -> None:
    deltas = tmp_path / "d.jsonl"
    given = command(*QUERIES, "--updates", transfers, "--follow", "--deltas", deltas, "--master", "local[2]")
    with subprocess.Popen(given, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        end = time.monotonic() + 300
        while not deltas.exists() or len(deltas.read_text().splitlines()) < 47:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=300)[1].splitlines()
    assert process.returncode == 130
    assert said[0] == "starting Spark on local[2]"
    assert said[1] == "interrupted by SIGINT: what was reported so far is on disk"
    assert len(said) == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.jsonl", "transfers.rdfp"]
