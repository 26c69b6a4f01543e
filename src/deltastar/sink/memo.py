"""A function remembered for the keys it was asked for lately, in bounded memory.

Terms and rows repeat, so writing and reading deltas mostly look texts up instead of making them. Two generations
stand for "lately": when the young one is full it becomes the old one, and what is asked for again moves up. A hit in
the young generation costs a plain dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_K = TypeVar("_K", str, bytes)
_V = TypeVar("_V")

_ENTRY_OVERHEAD = 300
"""Bytes that an entry takes beside its text, about."""


class Memo(dict[_K, _V]):
    """`memo[key]` is `function(key)`. Holds about `limit_bytes` a generation, counted by the length of the keys.

    >>> lengths = Memo(len)
    >>> lengths["four"]
    4
    """

    def __init__(self, function: Callable[[_K], _V], limit_bytes: int = 32 << 20) -> None:
        super().__init__()
        self._function: Callable[[_K], _V] = function
        self._limit_bytes = self._room = limit_bytes
        self._old: dict[_K, _V] = {}

    def __missing__(self, key: _K) -> _V:
        value = self._old[key] if key in self._old else self._function(key)
        self._room -= len(key) + _ENTRY_OVERHEAD
        if self._room < 0:
            self._old = dict(self)
            self.clear()
            self._room = self._limit_bytes
        self[key] = value
        return value
