"""A plan in a form to read: how a query is taken apart, and in which order an update puts it together.

    plan → text      a tree, for people at a terminal
         → json      the same for programs, every term in full
         → mermaid   a flowchart that Markdown pages draw
         → svg       a picture of the query graph, stars in colour

Pure functions: a plan goes in, a text comes out, the same each time.
"""

from __future__ import annotations

from collections.abc import Callable

from deltastar.errors import UsageError
from deltastar.explain.jsonform import to_json
from deltastar.explain.mermaid import to_mermaid
from deltastar.explain.svg import to_svg
from deltastar.explain.text import to_text
from deltastar.plan.decompose import Plan
from deltastar.plan.shares import QueryShares

FORMATS: dict[str, Callable[[Plan], str]] = {
    "text": to_text,
    "json": to_json,
    "svg": to_svg,
    "mermaid": to_mermaid,
}
SHOW_SHARES: dict[str, Callable[[Plan, QueryShares], str]] = {"text": to_text, "json": to_json}


def explain(plan: Plan, format: str = "text", shares: QueryShares | None = None) -> str:
    """The plan as text, json, svg or mermaid; as text or json also its shares, if they are given.

    >>> from deltastar.plan.decompose import make_plan
    >>> from deltastar.query.parse import parse_query
    >>> print(explain(make_plan(parse_query("SELECT * { ?x a <urn:C> ; <urn:p> <urn:b> }"))))
    simple-var-centric-star query: one variable, and constants around it
    ├── variables: ?x
    ├── answers: set; every variable is shown, so each answer is there once
    ├── component: simple-star; one variable and its constants
    │   ├── patterns
    │   │   ├── 1  ?x a <urn:C>
    │   │   └── 2  ?x <urn:p> <urn:b>
    │   └── star around ?x
    └── bounds (|Q|: patterns, n: nodes of the data)
        ├── update: O(|Q|)
        └── space:  O(n): one match state a candidate centre
    """
    if format not in FORMATS:
        raise UsageError(f"{format!r} is not a format of explain; use one of {', '.join(FORMATS)}")
    if shares is None:
        return FORMATS[format](plan)
    if format not in SHOW_SHARES:
        raise UsageError(
            f"shares are shown as {' or '.join(SHOW_SHARES)}; leave out the shards, or the format {format}"
        )
    return SHOW_SHARES[format](plan, shares)


__all__ = ["FORMATS", "explain"]
