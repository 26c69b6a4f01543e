"""What went wrong inside Spark, as one of our errors: in one line, with the cause in place of the stack.

An exception from a Python worker reaches the driver as text, with the worker's traceback in it. Errors that deltastar
raised there are found in it by their class, and raised again.
"""

from __future__ import annotations

import re

from deltastar import errors
from deltastar.errors import DeltastarError, SourceError, UsageError

_OURS = re.compile(r"^(?:\s*|.*: )deltastar\.errors\.([A-Za-z]+): (.*)$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:pyspark\.\S+: )?([A-Za-z_.]*(?:Error|Exception|Interrupt)): (.*)$", re.MULTILINE)
_LIMIT = 400


def explained(error: BaseException, log: str) -> DeltastarError:
    """The error to raise in place of Spark's; `log` is where Spark's own words are."""
    text = str(error)
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, DeltastarError)
        revived: DeltastarError = kind.__new__(kind)
        revived.args = (message,)
        Exception.__init__(revived, message)
        return revived
    if "No module named 'deltastar'" in text or "No module named 'numba'" in text:
        return UsageError(
            "the cluster's Python workers cannot import deltastar; install it there too "
            "(pip install 'deltastar[spark]'), or set spark.pyspark.python to a Python that has it"
        )
    if "Python worker exited unexpectedly" in text or "worker crashed" in text:
        return SourceError(f"a Python worker of Spark was killed, again and again; is memory short? See {log}")
    return SourceError(f"Spark failed: {_cause(text)}; see {log}")


def _cause(text: str) -> str:
    """The innermost cause that the text names."""
    found = _PYTHON.findall(text)
    if found:
        kind, message = found[-1]
        cause = f"{kind.rpartition('.')[2]}: {message}"
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
        caused = [line for line in lines if line.startswith("Caused by: ")]
        cause = (caused or lines or ["it did not say why"])[-1 if caused else 0].removeprefix("Caused by: ")
    return cause if len(cause) <= _LIMIT else cause[: _LIMIT - 1] + "…"
