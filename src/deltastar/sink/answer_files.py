"""`--answers DEST`: the final answers, one file per query.

One query goes to DEST itself; several go to files in the directory DEST. A file appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from deltastar.errors import UsageError
from deltastar.sink.base import check_parent, doing
from deltastar.sink.encode import utf8
from deltastar.sink.tables import AnswerTable, render

FILE_FORMATS = ("srj", "csv", "tsv")


def answer_paths(dest: str, names: Iterable[str]) -> dict[str, str]:
    """The file that each query's answers go to. Raises `UsageError` for a DEST that cannot work, so ask early.

    >>> answer_paths("final.csv", ["one", "two"])
    {'one': 'final.csv/one.csv', 'two': 'final.csv/two.csv'}
    """
    names = list(names)
    format = os.path.splitext(dest.rstrip("/"))[1][1:].lower()
    if len(names) == 1 and not dest.endswith("/") and not os.path.isdir(dest):
        if format not in FILE_FORMATS:
            raise UsageError(f"cannot tell the format of the answers from {dest!r}; end it in .srj, .csv or .tsv")
        check_parent(dest)
        return {names[0]: dest}
    directory = dest.rstrip("/") or "/"
    check_parent(directory)
    if os.path.exists(directory) and not os.path.isdir(directory):
        need = f"the answers of {len(names)} queries need a directory" if len(names) > 1 else "a directory is needed"
        raise UsageError(f"{directory} is a file, and {need}; give another name")
    extension = format if format in FILE_FORMATS else "srj"
    return {name: os.path.join(directory, f"{file_name(name)}.{extension}") for name in names}


def write_answers(dest: str, answers: Mapping[str, AnswerTable]) -> None:
    """Writes each query's answers to its file, in the format that the file's extension names."""
    for name, path in answer_paths(dest, answers).items():
        text = render(answers[name], os.path.splitext(path)[1][1:].lower())
        with doing(f"write {path}"):
            if os.path.dirname(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            _replace(os.path.realpath(path), utf8(text))


def file_name(query: str) -> str:
    """A query's name made safe for a file: all but letters, digits, `-`, `_` and inner dots percent-encoded.

    >>> file_name("../a b"), file_name(".")
    ('%2E.%2Fa%20b', '%2E')
    """
    escaped = quote(query, safe="", errors="surrogatepass").replace("~", "%7E")
    if escaped.startswith("."):
        escaped = "%2E" + escaped[1:]
    return escaped or "%"


def _replace(path: str, data: bytes) -> None:
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.remove(temporary)
        raise
