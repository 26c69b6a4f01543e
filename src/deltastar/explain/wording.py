"""What the classes, the semantics and the bounds mean, in one phrase each: the same words in every form."""

from __future__ import annotations

from deltastar.plan.decompose import ComponentClass, Plan, QueryClass
from deltastar.query.algebra import Semantics

QUERY_CLASSES = {
    QueryClass.GROUND: "without variables, it holds or it does not",
    QueryClass.SIMPLE_STAR: "one variable, and constants around it",
    QueryClass.LOOSELY_CONNECTED: "no pattern joins two variables, so the answer is a product of simple stars",
    QueryClass.VAR_CONNECTED: "patterns join all variables into one component",
    QueryClass.GENERAL: "the answer is a product of components that share no variable",
}
COMPONENT_CLASSES = {
    ComponentClass.GROUND: "while one of its patterns is missing, there is no answer",
    ComponentClass.SIMPLE_STAR: "one variable and its constants",
    ComponentClass.STAR: "one variable is in every pattern",
    ComponentClass.ACYCLIC: "stars that join without a cycle",
    ComponentClass.CYCLIC: "stars that join in a cycle",
}
SEMANTICS = {
    Semantics.SET: "every variable is shown, so each answer is there once",
    Semantics.BAG: "some variable is dropped, so a row is there once for each embedding",
    Semantics.DISTINCT: "a row is there while it has an embedding",
    Semantics.ASK: "the empty row is there while there is an embedding",
}
UNITS = {
    "|Q|": "patterns",
    "n": "nodes of the data",
    "m": "triples that match",
    "|delta|": "answers gained or lost",
}


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "pattern"), count(3, "pattern")
    ('1 pattern', '3 patterns')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def semantics_of(plan: Plan) -> str:
    """What a row of the answer is."""
    if plan.kind is QueryClass.GROUND:
        return "the empty row is there while all patterns hold"
    return SEMANTICS[plan.query.semantics]
