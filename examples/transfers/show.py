"""Reads deltas (JSON Lines) on standard input and shows each as one short line, as it comes."""

import json
import sys

SHAPES = {
    "ring": "ring   {a} → {b} → {c} → {a}",
    "mule": "mule   {mule}",
    "alarm": "ALARM  money goes to a suspect account and comes back",
}


def main() -> None:
    colours = {"+": "\x1b[32m", "-": "\x1b[31m"} if sys.stdout.isatty() else {}
    for line in sys.stdin:
        delta = json.loads(line)
        names = {name: term["value"].rsplit("/", 1)[-1] for name, term in delta["binding"].items()}
        colour, reset = colours.get(delta["op"], ""), "\x1b[0m" if colours else ""
        shape = SHAPES[delta["query"]].format(**names)
        print(f"{colour}{delta['seq']:>5}  {delta['op']} {shape}{reset}", flush=True)


if __name__ == "__main__":
    main()
