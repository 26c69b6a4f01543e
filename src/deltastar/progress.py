"""What a run says while it works: a progress line, notes, and a summary, all on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TextIO

from deltastar.statistics import Statistics

_INTERVAL_S = 1.0


class Progress:
    """Standard error during a run. `line` switches the progress line, `quiet` everything but errors.

    What cannot be said because standard error is closed or full is left unsaid: the run goes on.
    """

    def __init__(self, quiet: bool = False, line: bool | None = None, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream is not None and self._stream.isatty()
        self._quiet = quiet
        self._shows_line = (self._is_terminal and not quiet) if line is None else line
        self._started = self._last = time.monotonic()
        self._messages_at_start = 0
        self._last_messages = 0
        self._is_line_open = False

    def start(self, statistics: Statistics) -> None:
        """The clock starts here; messages from before a resumption do not count towards the rate."""
        self._started = self._last = time.monotonic()
        self._messages_at_start = self._last_messages = statistics.messages

    def note(self, text: str) -> None:
        """A sentence worth knowing."""
        if not self._quiet:
            self._clear()
            self._print(text + "\n")

    def tick(self, statistics: Statistics, more: str = "") -> None:
        """Shows the progress line, at most once a second; `more` is what else there is to say."""
        now = time.monotonic()
        if not self._shows_line or now - self._last < _INTERVAL_S:
            return
        rate = (statistics.messages - self._last_messages) / (now - self._last)
        self._last, self._last_messages = now, statistics.messages
        text = (
            f"{statistics.messages:,} messages, {rate:,.0f}/s, {statistics.deltas:,} deltas, "
            f"{statistics.malformed:,} rejected{', ' if more else ''}{more}"
        )
        if self._is_terminal:
            self._print("\r\x1b[K" + text)
            self._is_line_open = True
        else:
            self._print(text + "\n")

    def summary(self, statistics: Statistics, destination: str) -> None:
        """What was done, at the end."""
        elapsed_s = max(time.monotonic() - self._started, 1e-9)
        messages = statistics.messages - self._messages_at_start
        parts = [f"{statistics.relevant:,} matched a query"]
        for count, what in (
            (statistics.repeated_inserts, "inserted what was there"),
            (statistics.absent_deletes, "deleted what was not"),
            (statistics.malformed, "rejected"),
        ):
            if count:
                parts.append(f"{count:,} {what}")
        where = "standard output" if destination == "-" else destination
        self.note(
            f"{statistics.messages:,} messages ({', '.join(parts)}) in {elapsed_s:.1f} s, "
            f"{messages / elapsed_s:,.0f}/s; {statistics.deltas:,} deltas to {where}"
        )
        if statistics.committed or statistics.aborted or statistics.discarded:
            self.note(
                f"{statistics.committed:,} transactions committed, {statistics.aborted:,} aborted, "
                f"{statistics.discarded:,} discarded"
            )

    def _clear(self) -> None:
        if self._is_line_open:
            self._print("\r\x1b[K")
            self._is_line_open = False

    def _print(self, text: str) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(text)
                self._stream.flush()
