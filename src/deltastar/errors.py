"""The errors a user can cause, and the one that is ours.

    DeltastarError
    ├── QueryError            (ValueError)           a query that cannot be registered
    │   ├── QuerySyntaxError                         it is not SPARQL
    │   └── UnsupportedQueryError                    it is SPARQL, but not a basic graph pattern
    ├── TermError             (ValueError)           text that is not an RDF term
    ├── RowError              (ValueError)           a malformed row of a stream or graph
    ├── NoEffectError         (ValueError)           strict: an insert of a present, or a delete of an absent triple
    ├── SourceError           (OSError)              an input or output that cannot be opened, read or written
    ├── CheckpointError       (ValueError)           a checkpoint that does not belong to this run
    ├── UsageError            (ValueError)           options or arguments that make no sense
    ├── UnknownQueryError     (LookupError)          no query of that name is registered
    └── InvariantError        (AssertionError)       a bug in deltastar: please report it

A message says what was wrong, where, and what would be right.
"""

from __future__ import annotations

from typing import Any


class DeltastarError(Exception):
    """Base of everything that deltastar raises on purpose. Pickles whole, so that it can come from another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (type(self), self.args, self.__dict__)


class QueryError(DeltastarError, ValueError):
    """A query that cannot be registered. `line` and `column` are 1-based, or 0 when the place is unknown."""

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        self.reason, self.line, self.column = reason, line, column
        super().__init__(f"line {line}, column {column}: {reason}" if line else reason)


class QuerySyntaxError(QueryError):
    """The text is not a SPARQL query."""


class UnsupportedQueryError(QueryError):
    """The text is SPARQL, but asks for more than a basic graph pattern. `construct` names what."""

    def __init__(self, construct: str, remedy: str = "", line: int = 0, column: int = 0) -> None:
        self.construct = construct
        super().__init__(f"{construct} is not supported{f'; {remedy}' if remedy else ''}", line, column)


class TermError(DeltastarError, ValueError):
    """Text that is not an RDF term. `column` is 1-based within that text."""

    def __init__(self, reason: str, column: int = 1) -> None:
        self.reason, self.column = reason, column
        super().__init__(f"column {column}: {reason}")


class RowError(DeltastarError, ValueError):
    """A malformed row. `source`, `line` and `column` say where."""

    def __init__(self, reason: str, column: int = 1, line: int = 0, source: str = "") -> None:
        self.reason, self.column, self.line, self.source = reason, column, line, source
        place = f"line {line}, column {column}: " if line else f"column {column}: "
        super().__init__(f"{source + ': ' if source else ''}{place}{reason}")


class NoEffectError(DeltastarError, ValueError):
    """With `strict`: a message that changes nothing. `seq` is its number."""

    seq = 0


class SourceError(DeltastarError, OSError):
    """An input or output that cannot be opened, read or written."""


class CheckpointError(DeltastarError, ValueError):
    """A checkpoint directory that does not fit the command it is used with."""


class UsageError(DeltastarError, ValueError):
    """Options or arguments that make no sense, alone or together."""


class UnknownQueryError(DeltastarError, LookupError):
    """No query of that name is registered."""


class InvariantError(DeltastarError, AssertionError):
    """A bug in deltastar."""


def _revive(kind: type[DeltastarError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> DeltastarError:
    error = kind.__new__(kind)
    error.args = arguments
    error.__dict__.update(attributes)
    return error
