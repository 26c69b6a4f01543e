"""How often triples unify with patterns, and how much of them one value makes up: given, sampled, or guessed.

Patterns are told apart by their constants and by which of their variables are the same, not by the variables' names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from deltastar.errors import UsageError
from deltastar.plan.dispatch import Dispatch
from deltastar.query.algebra import TriplePattern, Variable

_RARER = 0.1
"""Guess: a constant subject or object leaves a tenth of the triples, a variable predicate is ten predicates."""
_MOST_VALUES = 1 << 16
"""Values of one position that a sample tells apart."""


class Frequency(NamedTuple):
    """Of one pattern: how many messages of so many, and for each position the part that its top value makes up."""

    messages: float
    top: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """What is known of patterns. Of those of which nothing is known, the constants say how rare they are.

    >>> Frequencies.parse('{"?0 <p:likes> ?1": {"count": 500, "top": {"o": 0.4}}}').patterns
    {'?0 <p:likes> ?1': Frequency(messages=500.0, top=(0.0, 0.0, 0.4))}
    """

    patterns: Mapping[str, Frequency] = field(default_factory=dict)

    def of(self, pattern: TriplePattern) -> Frequency:
        """That of one pattern."""
        known = self.patterns.get(key_of(pattern))
        if known is not None:
            return known
        count = 1.0 if not isinstance(pattern.predicate, Variable) else 1 / _RARER
        for node in (pattern.subject, pattern.object):
            count *= 1.0 if isinstance(node, Variable) else _RARER
        return Frequency(count)

    @classmethod
    def sampled(cls, patterns: Iterable[TriplePattern], rows: Iterable[tuple[str, str, str]]) -> Frequencies:
        """Counts the rows, triples as texts, that unify with each pattern."""
        dispatch: Dispatch[str] = Dispatch()
        by_key = {key_of(pattern): pattern for pattern in patterns}
        for key, pattern in by_key.items():
            dispatch.add(pattern, key)
        counts: Counter[str] = Counter()
        values: dict[tuple[str, int], Counter[str]] = {}
        for row in rows:
            for key in dispatch.matches(row):
                counts[key] += 1
                for position, node in enumerate(by_key[key].nodes):
                    if isinstance(node, Variable):
                        seen = values.setdefault((key, position), Counter())
                        if row[position] in seen or len(seen) < _MOST_VALUES:
                            seen[row[position]] += 1
        return cls({key: Frequency(max(counts[key], 0.5), _tops(key, counts[key], values)) for key in by_key})

    @classmethod
    def parse(cls, text: str) -> Frequencies:
        """From JSON: for each pattern `{"count": …, "top": {"s": …, "p": …, "o": …}}`, of which the top may miss."""
        try:
            given = json.loads(text)
            return cls({key: _frequency(value) for key, value in given.items()})
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise UsageError(
                f'frequencies are {{"?0 <p> ?1": {{"count": 500, "top": {{"o": 0.4}}}}, …}}: {error}'
            ) from error

    def to_json(self) -> dict[str, Any]:
        """What `parse` reads."""
        return {
            key: {"count": frequency.messages, "top": dict(zip("spo", frequency.top, strict=True))}
            for key, frequency in self.patterns.items()
        }


def key_of(pattern: TriplePattern) -> str:
    """A pattern with its variables named by where they stand first.

    >>> from deltastar.query.parse import parse_query
    >>> key_of(parse_query("SELECT * { ?x <p:likes> ?x }").pattern.patterns[0])
    '?0 <p:likes> ?0'
    """
    names: dict[Variable, str] = {}
    return " ".join(
        names.setdefault(node, f"?{len(names)}") if isinstance(node, Variable) else str(node) for node in pattern.nodes
    )


def _tops(key: str, count: int, values: Mapping[tuple[str, int], Counter[str]]) -> tuple[float, float, float]:
    tops = [max(values.get((key, position), {"": 0}).values()) / max(count, 1) for position in range(3)]
    return tops[0], tops[1], tops[2]


def _frequency(value: Mapping[str, Any]) -> Frequency:
    top = value.get("top", {})
    parts = [float(top.get(name, 0)) for name in "spo"]
    count = float(value["count"])
    if count < 0 or not all(0 <= part <= 1 for part in parts):
        raise ValueError("a count is 0 or more, and the part of a top value is from 0 to 1")
    return Frequency(count, (parts[0], parts[1], parts[2]))
