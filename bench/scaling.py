"""Time and memory of ground and simple-star queries over 10^4 to 10^7 messages, with fitted slopes and a plot.

    python bench/scaling.py [--sizes 10000,100000,1000000,10000000] [--plot docs/img/scaling.svg] [--json FILE]

*ground*: four patterns without variables; of all messages, all about the predicates that are asked for, one in ten
adds or removes one of the four triples. *simple star*: insertions of three labels on a third as many nodes, so that
all are kept. CPU time from bytes to the kernel's output, and `arena_bytes`. The slope is that of the logarithms: 1 is
linear, 0 is constant; the paper has both in constant time a message, and in constant and linear space.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from subject import Subject

SHAPES = {
    "ground": "ASK { " + " . ".join(f"<http://s/g{n}> <http://s/p{n}> <http://s/g{n}>" for n in range(4)) + " }",
    "simple star": "SELECT * { " + " . ".join(f"?x <http://s/p{n}> <http://s/c{n}>" for n in range(3)) + " }",
}
PIECE = 300_000
REPEATED = 1_000_000
SIZE = 360
MARGIN = 64
COLOURS = {"ground": "#2f6f9f", "simple star": "#b5542c"}


class Point(NamedTuple):
    messages: int
    seconds: float
    arena_bytes: int


class Panel(NamedTuple):
    """One diagram: what it shows of a point, and what the axis says."""

    title: str
    field: str
    unit: str


PANELS = (Panel("CPU time", "seconds", "s"), Panel("arena", "arena_bytes", "B"))


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    results: dict[str, list[Point]] = {}
    for shape in SHAPES:
        measure(shape, min(options.sizes))  # whatever is made on first use
        results[shape] = [min((measure(shape, size) for _ in range(again(size))), key=cpu) for size in options.sizes]
        for point in results[shape]:
            print(
                f"{shape:12} {point.messages:>11,} messages  {point.seconds / point.messages * 1e9:7.0f} ns each  "
                f"{point.arena_bytes:>12,} arena bytes",
                flush=True,
            )
        slopes = (f"{panel.title} {slope(results[shape], panel.field):.2f}" for panel in PANELS)
        print(f"{shape:12} slopes: {', '.join(slopes)}")
    if options.plot:
        options.plot.parent.mkdir(parents=True, exist_ok=True)
        options.plot.write_text(plot(results), encoding="utf-8")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        found: dict[str, Any] = {shape: [point._asdict() for point in points] for shape, points in results.items()}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="ascii")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=sizes)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def again(size: int) -> int:
    """Short runs are repeated, and the best counts."""
    return 5 if size <= REPEATED else 1


def cpu(point: Point) -> float:
    return point.seconds


def measure(shape: str, size: int) -> Point:
    """A stream from nothing; the rows are made while the clock stands."""
    gc.collect()
    subject = Subject({"query": SHAPES[shape]})
    subject.run_rows(b"A <http://s/first> <http://s/first> <http://s/first> .\n")
    seconds = 0.0
    for rows in (ground if shape == "ground" else star)(size):
        started = time.process_time()
        subject.run_rows(rows)
        seconds += time.process_time() - started
    return Point(size, seconds, subject.machine.arena_bytes)


def ground(size: int) -> Iterator[bytes]:
    for first in range(0, size, PIECE):
        yield b"".join(
            b"%c <http://s/g%d> <http://s/p%d> <http://s/g%d> .\n" % (b"AD"[n // 40 % 2], *(n // 10 % 4,) * 3)
            if n % 10 == 0
            else b"A <http://s/n%d> <http://s/p%d> <http://s/n%d> .\n" % (n, n % 4, n + 1)
            for n in range(first, min(first + PIECE, size))
        )


def star(size: int) -> Iterator[bytes]:
    for first in range(0, size, PIECE):
        yield b"".join(
            b"A <http://s/n%d> <http://s/p%d> <http://s/c%d> .\n" % (n // 3, n % 3, n % 3)
            for n in range(first, min(first + PIECE, size))
        )


def slope(points: list[Point], field: str) -> float:
    """Of the line through the logarithms, by least squares."""
    return fit(points, field)[0]


def fit(points: list[Point], field: str) -> tuple[float, float]:
    xs = [math.log10(point.messages) for point in points]
    ys = [math.log10(max(getattr(point, field), 1e-9)) for point in points]
    x_mean, y_mean = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - x_mean) ** 2 for x in xs)
    rise = sum((x - x_mean) * (y - y_mean) for x, y in zip(xs, ys, strict=True)) / spread if spread else 0.0
    return rise, y_mean - rise * x_mean


# The plot ------------------------------------------------------------------------------------------------------------


def plot(results: dict[str, list[Point]]) -> str:
    """Both panels, side by side, with logarithmic axes."""
    width, height = len(PANELS) * (SIZE + MARGIN) + MARGIN, SIZE + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, panel in enumerate(PANELS):
        parts += draw(panel, results, MARGIN + number * (SIZE + MARGIN))
    return "\n".join([*parts, "</svg>"]) + "\n"


def draw(panel: Panel, results: dict[str, list[Point]], left: int) -> Iterator[str]:
    """One panel: a grid of decades, the points, and the fitted lines with their slopes."""
    everything = [point for points in results.values() for point in points]
    xs = decades([point.messages for point in everything])
    ys = decades([getattr(point, panel.field) for point in everything])

    def x(value: float) -> float:
        return left + (value - xs[0]) / (xs[-1] - xs[0]) * SIZE

    def y(value: float) -> float:
        return MARGIN + SIZE - (value - ys[0]) / (ys[-1] - ys[0]) * SIZE

    yield f'<text x="{left}" y="{MARGIN - 30}" font-weight="bold">{panel.title} by messages</text>'
    for decade in xs:
        yield f'<path d="M{x(decade):.1f} {MARGIN}V{MARGIN + SIZE}" stroke="#ddd"/>'
        yield f'<text x="{x(decade):.1f}" y="{MARGIN + SIZE + 20}" text-anchor="middle">10{raised(decade)}</text>'
    for decade in ys:
        yield f'<path d="M{left} {y(decade):.1f}H{left + SIZE}" stroke="#ddd"/>'
        yield f'<text x="{left - 6}" y="{y(decade) + 4:.1f}" text-anchor="end">10{raised(decade)} {panel.unit}</text>'
    for number, (shape, points) in enumerate(results.items()):
        rise, at_zero = fit(points, panel.field)
        ends = [math.log10(point.messages) for point in (points[0], points[-1])]
        line = " ".join(f"{x(end):.1f},{y(rise * end + at_zero):.1f}" for end in ends)
        yield f'<polyline points="{line}" stroke="{COLOURS[shape]}" fill="none"/>'
        for point in points:
            at = math.log10(max(getattr(point, panel.field), 1e-9))
            yield f'<circle cx="{x(math.log10(point.messages)):.1f}" cy="{y(at):.1f}" r="4" fill="{COLOURS[shape]}"/>'
        label = f"{shape}, slope {rise:.2f}"
        yield f'<text x="{left + 8}" y="{MARGIN + 18 + 18 * number}" fill="{COLOURS[shape]}">{label}</text>'


def decades(values: Sequence[float]) -> list[int]:
    """The powers of ten around them."""
    logs = [math.log10(max(value, 1e-9)) for value in values]
    first, last = math.floor(min(logs)), math.ceil(max(logs))
    return list(range(first, max(last, first + 1) + 1))


def raised(number: int) -> str:
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


if __name__ == "__main__":
    sys.exit(main())
