"""Outputs that would destroy an input, or each other, are refused before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from deltastar.errors import UsageError


def check_apart(outputs: Mapping[str, str], inputs: Iterable[str]) -> None:
    """Raises `UsageError` when an output is an input, lies in a directory that is read, or is another output.

    `outputs` are paths by the option that names them. `-` and devices are no files, and so apart from everything.
    """
    files = {option: os.path.realpath(path) for option, path in outputs.items() if _is_file(path)}
    for path in filter(_is_file, inputs):
        real = os.path.realpath(path)
        for option, output in files.items():
            if output == real:
                raise UsageError(f"{option} {outputs[option]} would overwrite what is read from {path}; name another")
            if os.path.isdir(real) and os.path.dirname(output) == real and os.path.splitext(output)[1]:
                raise UsageError(f"{option} {outputs[option]} lies in {path}, whose files are read; name another place")
    options = list(files)
    for position, option in enumerate(options):
        for other in options[:position]:
            if files[option] == files[other]:
                raise UsageError(f"{other} and {option} both go to {outputs[option]}; name another for one of them")


def _is_file(path: str) -> bool:
    """Whether the path is, or could become, a file or directory of its own."""
    return (
        path != "-" and "://" not in path and (os.path.isfile(path) or os.path.isdir(path) or not os.path.exists(path))
    )
