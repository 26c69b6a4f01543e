"""A plan as JSON: for programs, so every term stands in full and nothing is shortened.

All variables of the query are listed, hidden ones (`_:b`) included, in the order in which its patterns hold them.
"""

from __future__ import annotations

import json
from typing import Any

from deltastar.explain.sharding import as_json
from deltastar.plan.decompose import Component, Plan
from deltastar.plan.shares import QueryShares


def to_json(plan: Plan, shares: QueryShares | None = None) -> str:
    """The plan in the shape that `explain --format json` promises; with shares, they have a key of their own."""
    known = _plan(plan) if shares is None else {**_plan(plan), "shares": as_json(shares)}
    return json.dumps(known, ensure_ascii=False, indent=2)


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "class": plan.kind.value,
        "variables": [str(variable) for variable in plan.query.pattern.variables],
        "components": [_component(plan, component) for component in plan.components],
        "bounds": {"update": plan.bounds.update, "space": plan.bounds.space},
    }


def _component(plan: Plan, component: Component) -> dict[str, Any]:
    texts = [str(pattern) for pattern in plan.patterns]
    return {
        "class": component.kind.value,
        "patterns": [texts[index] for index in component.patterns],
        "stars": [
            {"centre": str(star.centre), "patterns": [texts[index] for index in star.patterns]}
            for star in component.stars
        ],
        "overlaps": [[str(left), str(right)] for left, right in component.overlaps],
        "orders": {texts[index]: [str(centre) for centre in order] for index, order in component.orders},
    }
