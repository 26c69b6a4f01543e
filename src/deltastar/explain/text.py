"""A plan as a tree of text, for people: patterns numbered, terms abbreviated, at most 100 columns wide.

What would say nothing is left out: the overlaps and orders of a single star, the meaning of letters not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deltastar.explain.abbreviate import Names
from deltastar.explain.measure import cells, shorten
from deltastar.explain.sharding import as_lines
from deltastar.explain.wording import COMPONENT_CLASSES, QUERY_CLASSES, UNITS, semantics_of
from deltastar.plan.decompose import Component, ComponentClass, Plan, QueryClass
from deltastar.plan.shares import QueryShares
from deltastar.query.algebra import Variable

COLUMNS = 100


@dataclass(frozen=True)
class Branch:
    """A line of the tree, as words that are not broken, and what hangs from it.

    Words after the first line of a long branch are indented by `hang`.
    """

    words: Sequence[str]
    below: Sequence[Branch] = ()
    hang: int = 2


def to_text(plan: Plan, shares: QueryShares | None = None) -> str:
    """The plan as a tree; with shares, what they mean for it."""
    names = Names(plan.query.prefixes)
    root = Branch(f"{plan.kind.value} query: {QUERY_CLASSES[plan.kind]}".split(), _parts(plan, shares, names))
    return "\n".join(_lines(root, "", ""))


def _parts(plan: Plan, shares: QueryShares | None, names: Names) -> list[Branch]:
    components = [_component(plan, index, names) for index in range(len(plan.components))]
    parts = [_variables(plan), _line(f"answers: {plan.query.semantics.value};", semantics_of(plan))]
    if plan.kind is QueryClass.GROUND:
        parts.pop(0)
    parts += components
    if shares is not None:
        heading, below = as_lines(shares, names)
        parts.append(_line(heading, below=[_line(text) for text in below]))
    parts.append(_bounds(plan))
    if names.borrowed:
        spaces = [_line(f"{name}: <{space}>") for name, space in sorted(names.borrowed.items())]
        parts.append(_line("prefixes that the query does not declare", below=spaces))
    return parts


def _variables(plan: Plan) -> Branch:
    shown = plan.query.projection
    dropped = [variable for variable in plan.query.pattern.variables if variable not in shown]
    words = ["variables:", *(shown or ["none"])]
    if dropped:
        words += ["(not", "shown:", *dropped[:-1], dropped[-1] + ")"]
    return Branch(words, hang=len("variables: "))


def _component(plan: Plan, position: int, names: Names) -> Branch:
    component = plan.components[position]
    width = len(str(len(plan.patterns)))
    patterns = [
        Branch([f"{index + 1:>{width}} ", *names.terms(plan.patterns[index])], hang=width + 2)
        for index in component.patterns
    ]
    meaning = COMPONENT_CLASSES[component.kind]
    if component.kind is ComponentClass.GROUND:
        return _line("ground part:", meaning, below=patterns)
    number = f" {position + 1}" if len(plan.components) > 1 else ""
    below = [_line("patterns", below=patterns), _stars(component)]
    if len(component.stars) > 1:
        below += [_overlaps(component), _orders(component)]
    return _line(f"component{number}: {component.kind.value};", meaning, below=below)


def _stars(component: Component) -> Branch:
    width = max(cells(star.centre) for star in component.stars)
    stars = [
        Branch([_padded(star.centre, width) + " ", *_numbers(star.patterns)], hang=width + 2)
        for star in component.stars
    ]
    if len(stars) == 1:
        return Branch(["star", "around", component.stars[0].centre])
    return _line("stars: each variable and the patterns that hold it", below=stars)


def _overlaps(component: Component) -> Branch:
    pairs = [f"{left} – {right}" for left, right in component.overlaps]
    return Branch(["overlaps:", *[pair + "," for pair in pairs[:-1]], pairs[-1]], hang=len("overlaps: "))


def _orders(component: Component) -> Branch:
    triggers: dict[tuple[Variable, ...], list[int]] = {}
    for index, order in component.orders:
        triggers.setdefault(order, []).append(index)
    heads = [" ".join(_numbers(indexes)) for indexes in triggers.values()]
    width = min(max(map(len, heads)), 24)
    orders = [
        Branch([_padded(head, width) + " ", *_arrows(order)], hang=max(width, len(head)) + 2)
        for head, order in zip(heads, triggers, strict=True)
    ]
    return _line("orders: the pattern that an update matches, then star after star", below=orders)


def _arrows(order: Iterable[Variable]) -> list[str]:
    first, *others = order
    return [first, *[f"→ {variable}" for variable in others]]


def _bounds(plan: Plan) -> Branch:
    bounds = [_line(f"update: {plan.bounds.update}"), _line(f"space:  {plan.bounds.space}")]
    used = [
        f"{unit}: {meaning}"
        for unit, meaning in UNITS.items()
        if re.search(rf"(?<![a-z|])\d*{re.escape(unit)}(?![a-z])", f"{plan.bounds.update} {plan.bounds.space}")
    ]
    return _line("bounds" + (f" ({', '.join(used)})" if used else ""), below=bounds)


def _line(*texts: str, below: Sequence[Branch] = ()) -> Branch:
    """A branch of running text, which may break at any space."""
    return Branch([word for text in texts for word in text.split(" ")], below)


def _numbers(indexes: Iterable[int]) -> list[str]:
    return [str(index + 1) for index in indexes]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def _lines(branch: Branch, first: str, rest: str) -> list[str]:
    """The lines of a branch and all below it; `first` and `rest` stand before its first and its other lines."""
    room = max(COLUMNS - len(first), 24)
    under = rest + ("│" if branch.below else " ")
    texts = _wrapped(branch.words, room, branch.hang)
    lines = [first + texts[0]] + [(under + text[1:]).rstrip() for text in texts[1:]]
    for child in branch.below[:-1]:
        lines += _lines(child, rest + "├── ", rest + "│   ")
    for child in branch.below[-1:]:
        lines += _lines(child, rest + "└── ", rest + "    ")
    return lines


def _wrapped(words: Iterable[str], room: int, hang: int) -> list[str]:
    lines = [""]
    for word in words:
        fitting = shorten(word, room - hang)
        joined = f"{lines[-1]} {fitting}" if lines[-1].strip() else lines[-1] + fitting
        if cells(joined) > room and lines[-1].strip():
            joined = " " * hang + fitting
            lines.append(joined)
        else:
            lines[-1] = joined
    return lines
