"""Engine == reference after every message: a seeded sample of what `make test-differential` runs in full."""

from __future__ import annotations

import os

import pytest

from tests.differential.__main__ import WAYS, main, run_block
from tests.support.judge import Difference

SAMPLE = int(os.environ.get("DELTASTAR_CASES", "2000"))
BLOCKS = 4


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("way", WAYS)
def test_engine_equals_reference(way: str, block: int) -> None:
    messages = sum(WAYS[way](seed) for seed in range(block, SAMPLE, BLOCKS))
    assert messages > SAMPLE // BLOCKS  # the sample was not empty


def test_the_full_run_says_how_much_it_compared(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["40", "7", "--engine", "all"]) == 0
    assert [line.split(",")[0] for line in capfd.readouterr().out.splitlines()] == [f"{way}: 40 cases" for way in WAYS]


def test_the_full_run_names_the_seeds_that_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(seed: int) -> int:
        if seed == 12:
            raise Difference("wrong on purpose")
        return 1

    monkeypatch.setitem(WAYS, "kernel", wrong)
    assert run_block("kernel", range(20)) == (19, [12])
    assert capsys.readouterr().err == "kernel, seed 12: Difference: wrong on purpose\n"
