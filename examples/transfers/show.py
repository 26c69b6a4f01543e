"""Shows what happens, as it happens: each message that changes an answer, and under it the deltas that it brings.

Deltas (JSON Lines) come in on standard input; the argument is the stream that they come from, which says what the
message of a `seq` was. On a terminal it takes its time, so that one can watch.
"""

import json
import re
import signal
import sys
import time
from collections import Counter
from itertools import groupby
from typing import Any

ROW = re.compile(r"([AD]) <\S+/(\S+)> <\S+/(\w+)> (?:<\S+/(\S+)>|\S+) \.")
SAID = {
    ("A", "sentTo"): "{0} pays {1}",
    ("D", "sentTo"): "three days ago {0} paid {1}: forgotten",
    ("A", "risk"): "{0} comes under suspicion",
    ("D", "risk"): "{0} is cleared",
}
SHAPES = {
    "ring": "ring   {a} → {b} → {c} → {a}",
    "mule": "mule   {mule}",
    "alarm": "alarm  a suspect account pays somebody who pays it back",
}
PAUSE_S = 0.2


def main(stream: str) -> None:
    messages = read_messages(stream)
    is_terminal = sys.stdout.isatty()
    colours = {"+": "\x1b[32m", "-": "\x1b[31m"} if is_terminal else {}
    reset = "\x1b[0m" if is_terminal else ""
    open_answers: Counter[str] = Counter()
    for seq, deltas in groupby(map(json.loads, sys.stdin), key=lambda delta: delta["seq"]):
        print(messages[seq])
        for line in sorted(map(shown, deltas), key=lambda line: (line[0] == "+", line[2:])):
            open_answers[line.split()[1]] += 1 if line[0] == "+" else -1
            print(f"    {colours.get(line[0], '')}{line}{reset}", flush=True)
        time.sleep(PAUSE_S if is_terminal else 0)
    there = ", ".join(f"{open_answers[name]} × {name}" for name in SHAPES)
    print(f"the end: {len(messages):,} messages have come; the answers that are left: {there}")


def read_messages(stream: str) -> dict[int, str]:
    """What each message says, by its seq: its place among the A and D rows. A comment tells the hour."""
    messages: dict[int, str] = {}
    hour = ""
    with open(stream, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                hour = line[1:].strip()
            elif row := ROW.match(line):
                op, subject, predicate, value = row.groups()
                messages[len(messages) + 1] = f"{hour}   {SAID[op, predicate].format(subject, value)}"
    return messages


def shown(delta: dict[str, Any]) -> str:
    """One delta in a few words."""
    names = {name: term["value"].rsplit("/", 1)[-1] for name, term in delta["binding"].items()}
    return f"{delta['op']} {SHAPES[delta['query']].format(**names)}"


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(sys.argv[1])
