"""The judge can see into the kernel, too: each rule, broken in a copy of its source, makes it find a difference.

The copy runs as plain Python, in a process of its own: nothing is compiled, and nothing of it reaches the cache.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deltastar

ROOT = Path(__file__).parents[2]
CASES = 400
JUDGE = f"""
import logging, deltastar
from tests.differential.__main__ import WAYS
logging.getLogger("deltastar").setLevel(logging.CRITICAL)
print(deltastar.__file__)
for seed in range({CASES}):
    try:
        WAYS["kernel"](seed)
        WAYS["switching"](seed)
    except Exception as fault:
        print(type(fault).__name__)
        break
else:
    print("nothing noticed")
"""

Edit = tuple[str, str, str]
BROKEN: dict[str, Edit] = {
    "the exactly-once rule: every pattern reads the graph with the triple": (
        "kernel/step.py",
        "st.stamps[st.program[st.hits[hit] + R_NUMBER]] = cursor[U_SERIAL]",
        "st.stamps[st.program[st.hits[hit] + R_NUMBER]] = 0",
    ),
    "the self-join rule: only the first relation that the triple is in triggers": (
        "kernel/step.py",
        "if cursor[U_HIT] == cursor[U_HITS]:",
        "if cursor[U_HIT] != 0:",
    ),
    "the self-join rule: only the first pattern of a relation triggers": (
        "kernel/step.py",
        "st.cursor[U_TRIGGER] = st.program[trigger + T_NEXT]",
        "st.cursor[U_TRIGGER] = 0",
    ),
    "the ground gate of a trigger: open": (
        "kernel/extend.py",
        "if st.relation_size[program[place]] == 0:",
        "if False:",
    ),
    "the counting of bags: a bag is taken for a set": (
        "plan/program.py",
        "query.semantics in (Semantics.DISTINCT, Semantics.ASK)",
        "query.semantics in (Semantics.DISTINCT, Semantics.ASK, Semantics.BAG)",
    ),
    "the counting of bags: rows of one message are counted once": (
        "kernel/step.py",
        "st.target_size[target] += (sink[run + O_ROWS] - before) * cursor[U_OP]",
        "st.target_size[target] += (sink[run + O_ROWS] > before) * cursor[U_OP]",
    ),
    "the counting of DISTINCT: every embedding is a first one, or a last one": (
        "kernel/views.py",
        "return row if heap[row * UNIT + ROW_COUNT] == 0 else 0",
        "return row",
    ),
    "products: a row is combined with itself twice": (
        "kernel/deliver.py",
        "if place < st.program[product + X_OWN] and row == st.cursor[U_TURN]:",
        "if False:",
    ),
    "repeated variables: the ends of a loop may differ": (
        "kernel/relations.py",
        "if program[relation + R_EQUAL] & ~equal == 0:",
        "if True:",
    ),
    "the graph is a set: what is there is inserted again": (
        "kernel/step.py",
        "if is_there == (op == OP_INSERT):",
        "if not is_there and op != OP_INSERT:",
    ),
    "net effects: a transaction reports what cancels out": (
        "kernel/netting.py",
        "entries[entry * NET + NET_SUM] += out[run + O_SIGN]",
        "entries[entry * NET + NET_SUM] += 1",
    ),
    "live lists: those that lead to a node do not hear that it came alive": (
        "kernel/live.py",
        "_wake(st, program[need + N_OWNER], node)",
        "pass",
    ),
    "aborts: the way back takes nothing back": (
        "kernel/journal.py",
        "st.messages[at + M_OP] = -st.log[entry + M_OP]",
        "st.messages[at + M_OP] = st.log[entry + M_OP]",
    ),
}


def judged(source: Path) -> str:
    """What the judge says of the package in this directory."""
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run(
        [sys.executable, "-c", JUDGE], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    package, verdict = result.stdout.splitlines()
    assert package == str(source / "deltastar" / "__init__.py")
    return verdict


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    package = Path(deltastar.__file__).parent
    shutil.copytree(package, tmp_path / "deltastar", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_noticed(copy: Path, rule: str) -> None:
    name, sound, broken = BROKEN[rule]
    path = copy / "deltastar" / name
    text = path.read_text(encoding="utf-8")
    assert text.count(sound) == 1, f"{name} has changed: say anew how to break {rule}"
    path.write_text(text.replace(sound, broken), encoding="utf-8")
    assert judged(copy) == "Difference"


def test_the_sound_kernel_is_not_noticed(copy: Path) -> None:
    assert judged(copy) == "nothing noticed"
