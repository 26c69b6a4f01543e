"""The one decorator: how kernel functions are compiled, and where the compiled code is kept.

The cache directory's name includes a digest of all kernel sources and of the versions that matter, so that an edit in
one file cannot leave old code in another. `NUMBA_DISABLE_JIT=1` runs the same source as plain Python.
"""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import types

_F = TypeVar("_F", bound=Callable[..., Any])


def _digest() -> str:
    import numpy

    state = hashlib.sha256()
    here = Path(__file__).parent
    for path in sorted([*here.glob("*.py"), here.parent / "layout.py", here.parent / "scan_layout.py"]):
        state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    checks = os.environ.get("NUMBA_BOUNDSCHECK", "")
    state.update(f"{platform.machine()} {platform.python_version()} {numpy.__version__} {checks}".encode())
    return state.hexdigest()[:16]


def _cache_root() -> Path:
    """`DELTASTAR_CACHE`, the user's cache, or a temporary directory: whichever can be written first."""
    candidates = []
    if chosen := os.environ.get("DELTASTAR_CACHE"):
        candidates.append(Path(chosen))
    if base := os.environ.get("XDG_CACHE_HOME"):
        candidates.append(Path(base) / "deltastar")
    with suppress(RuntimeError):  # no home directory
        candidates.append(Path.home() / ".cache" / "deltastar")
    candidates.append(Path(tempfile.gettempdir()) / f"deltastar-{os.getuid()}")
    for candidate in candidates:
        try:
            candidate.mkdir(parents=True, exist_ok=True)
            if os.access(candidate, os.W_OK):
                return candidate
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="deltastar-"))


def is_cold() -> bool:
    """Whether the kernel has to be compiled yet, at least in part."""
    return IS_COMPILED and not (CACHE / _WARM).exists()


def say_warm() -> None:
    """Everything is compiled: the next process need not say that it waits for that."""
    with suppress(OSError):
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / _WARM).touch()


_WARM = "complete"
CACHE = _cache_root() / f"kernel-{_digest()}"

IS_COMPILED = not numba.config.DISABLE_JIT
IS_CHECKED = bool(numba.config.BOUNDSCHECK)


_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
"""Without reference counts: no kernel function allocates, and counting costs more than the work on a row."""


def kernel(function: _F) -> _F:
    """Compiles a kernel function on its first call, or takes it from the cache."""
    return _of_one_type(_compiled(function))


def inlined(function: _F) -> _F:
    """For small functions of the inner path: their code becomes part of the caller's, and of its compile time."""
    return _of_one_type(_compiled(function, forceinline=True))


def _compiled(function: _F, **options: Any) -> Any:
    """The function, whose code is kept in our cache; that of the program's other functions stays where it is."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE)
    try:
        return numba.njit(**_OPTIONS, **options)(function)
    finally:
        numba.config.CACHE_DIR = before


def _of_one_type(compiled: Any) -> Any:
    """Makes callers widen every integer to 64 bits.

    Otherwise numba compiles a function anew for each mixture of `int32`, `int64` and literals that it is called with:
    of 221 compiled functions only 150 were different, and a cold start took half as long again.
    """
    if not IS_COMPILED:
        return compiled
    resolve = compiled.get_call_template

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        widened = (types.int64 if isinstance(types.unliteral(a), types.Integer) else a for a in args)
        return resolve(tuple(widened), kws)

    compiled.get_call_template = get_call_template
    return compiled
