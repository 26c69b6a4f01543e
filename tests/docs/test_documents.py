"""The documentation is true: every command and example in it is run, and shows what the text says it shows.

In a fenced block `console`, a line `$ command` is run with bash in a directory that holds the repository's examples;
the lines up to the next command are what it prints (standard output and standard error together), where `…` stands for
any text, a line `…` for any lines. Blocks `python` of one document are run one after the other, like a session; the
comment `# → text` at the end of a line is what that line's expression or print shows.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

import deltastar

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.DOTALL | re.MULTILINE)
SETUP_ONLY = ("make ", "git clone", "cd deltastar", ". .venv/bin/activate", "pip install", "xdg-open")
"""Commands of a checkout: `make test` is what CI itself runs."""
STANDS_FOR = {
    "make run": "examples/transfers/watch",
    "mkdir -p out/tutorial && cp examples/transfers/* out/tutorial && cd out/tutorial": "cp examples/transfers/* .",
}
EXPORT = re.compile(r"export (\w+)=(\S*)")
DELTA = re.compile(r'\{"query":"[^"]*","seq":(\d+),')


def blocks(document: Path, kind: str) -> list[str]:
    return [text for language, _, text in all_blocks(document) if language == kind]


def all_blocks(document: Path) -> list[tuple[str, str, str]]:
    """The language, the file's name or "", and the text of each block."""
    return BLOCK.findall((ROOT / document).read_text(encoding="utf-8"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "console")], ids=str)
def test_commands(document: Path, workspace: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    del environment["DELTASTAR_ENGINE"]  # documents show what users get, and say so where they choose another engine
    for language, name, text in all_blocks(document):
        if name:
            (workspace / name).write_text(text, encoding="utf-8")
        for command, expected in commands_of(text) if language == "console" else []:
            command = STANDS_FOR.get(command, command)
            if setting := EXPORT.fullmatch(command):
                environment[setting[1]] = setting[2]
            if command.startswith(SETUP_ONLY) or setting:
                continue
            result = subprocess.run(
                ["bash", "-c", command], cwd=workspace, env=environment, text=True, timeout=120,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert matches(expected, result.stdout), f"$ {command}\n{result.stdout}\n--- instead of\n{expected}"


def commands_of(block: str) -> list[tuple[str, str]]:
    commands: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
        elif commands and commands[-1][0].endswith("\\"):
            commands[-1] = (commands[-1][0][:-1] + line.strip().removeprefix("> "), "")
        elif commands:
            commands[-1] = (commands[-1][0], commands[-1][1] + line + "\n")
    return commands


def matches(expected: str, actual: str) -> bool:
    lines = in_one_order(expected).split("\n")
    patterns = [r"(?:.*\n)*?.*" if line == "…" else re.escape(line).replace("…", ".*") for line in lines]
    return re.fullmatch("\n".join(patterns), in_one_order(actual)) is not None


def in_one_order(text: str) -> str:
    """The text with the deltas of one seq sorted."""
    lines: list[str] = []
    for delta, group in groupby(text.rstrip("\n").split("\n"), lambda line: (m := DELTA.match(line)) and m.group(1)):
        same = list(group)
        lines += sorted(same) if delta else same
    return "\n".join(lines)


@pytest.fixture
def no_spark_behind() -> Iterator[None]:
    """A document may start a Spark of its own: the JVM ends with it."""
    yield
    if "pyspark" not in sys.modules:
        return
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        return  # that of other tests
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")], ids=str)
@pytest.mark.xdist_group("spark")  # of which one at a time is enough
@pytest.mark.usefixtures("no_spark_behind")
def test_python_examples(document: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)
    namespace: dict[str, object] = {"__name__": "example"}
    for language, name, block in all_blocks(document):
        if name:
            (workspace / name).write_text(block, encoding="utf-8")
        if language != "python":
            continue
        promised = [line.split("# → ", 1)[1].rstrip() for line in block.splitlines() if "# → " in line]
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(block, str(document), "exec"), namespace)
        assert matches("\n".join(promised), shown.getvalue()), f"{shown.getvalue()} instead of {promised}"


MODULES = [name for _, name, _ in pkgutil.walk_packages(deltastar.__path__, "deltastar.") if "__main__" not in name]


@pytest.mark.parametrize("name", ["deltastar", *MODULES])
def test_docstring_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


LINK = re.compile(r"\[[^\]]+\]\(([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    for target in LINK.findall((ROOT / document).read_text(encoding="utf-8")):
        assert "://" in target or (ROOT / document).parent.joinpath(target).exists(), target
