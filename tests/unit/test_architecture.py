"""Imports point one way, in the order of the table in ARCHITECTURE.md."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import deltastar

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deltastar"


def layers() -> list[str]:
    """The modules and folders in reading order."""
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The package")[1].split("## One update")[0]
    return [
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`([\w./]+)`", row)
    ]


def place(module: str, order: list[str]) -> int:
    """Where a module stands: its own row, or that of its folder or of the neighbour that names the folder."""
    path = module.removeprefix("deltastar.").replace(".", "/")
    for name in (f"{path}.py", f"{path}/", f"{path.rsplit('/', 1)[0]}/"):
        if name in order:
            return order.index(name)
    folder = path.rsplit("/", 1)[0] + "/"
    return max(index for index, name in enumerate(order) if name.startswith(folder))


def imports_of(path: Path) -> set[str]:
    """The package's modules that a file imports at its top level."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deltastar."):
            is_package = (ROOT / "src" / str(node.module).replace(".", "/")).is_dir()
            submodules = {f"{node.module}.{alias.name}" for alias in node.names if is_package}
            files = {name for name in submodules if (ROOT / "src" / (name.replace(".", "/") + ".py")).exists()}
            names |= files or {str(node.module)}
    return names


def test_imports_point_one_way() -> None:
    order = layers()
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        relative = path.relative_to(PACKAGE)
        if relative.name in ("__init__.py", "__main__.py"):
            continue
        module = "deltastar." + str(relative.with_suffix("")).replace("/", ".")
        for imported in imports_of(path):
            if place(imported, order) > place(module, order):
                wrong.append(f"{module} imports {imported}")
    assert not wrong


def test_every_module_is_in_the_table() -> None:
    order = layers()
    for path in PACKAGE.glob("*.py"):
        assert path.name.startswith("__") or path.name in order, path.name


def test_every_public_name_has_a_home() -> None:
    assert {*deltastar._HOMES, "__version__"} == set(deltastar.__all__) <= set(dir(deltastar))
    assert all(getattr(deltastar, name) is not None for name in deltastar.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        deltastar.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_command_line_is_there_before_the_engine() -> None:
    """So Ctrl-C is answered in its own words from the first tenth of a second on."""
    code = "import sys, deltastar.cli; print([name for name in sys.modules if name.startswith('deltastar')])"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout == "['deltastar', 'deltastar.errors', 'deltastar.cli']\n"
