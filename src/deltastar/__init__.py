"""deltastar keeps the answers of SPARQL queries exactly up to date while the RDF graph under them changes.

>>> import deltastar
>>> engine = deltastar.Engine()
>>> pairs = engine.register("SELECT * WHERE { ?x <http://ex/knows> ?y . ?y <http://ex/knows> ?x }", name="pairs")
>>> engine.insert("<http://ex/ann>", "<http://ex/knows>", "<http://ex/bob>")
[]
>>> deltas = engine.insert("<http://ex/bob>", "<http://ex/knows>", "<http://ex/ann>")
>>> for x, delta in sorted((delta.binding["x"], delta) for delta in deltas):
...     print(delta.op, delta.query, x)
+ pairs <http://ex/ann>
+ pairs <http://ex/bob>
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deltastar.delta import Binding, Delta
    from deltastar.engine import Engine
    from deltastar.errors import (
        CheckpointError,
        DeltastarError,
        NoEffectError,
        QueryError,
        QuerySyntaxError,
        RowError,
        SourceError,
        TermError,
        UnknownQueryError,
        UnsupportedQueryError,
        UsageError,
    )
    from deltastar.query.parse import parse_query
    from deltastar.rdf.terms import IRI, BlankNode, Literal, Term, Triple, term
    from deltastar.rdf.update import Malformed, Mark, Update
    from deltastar.registration import Registration
    from deltastar.statistics import Statistics

__version__ = "0.1.0"

_HOMES = {
    "Binding": "deltastar.delta",
    "Delta": "deltastar.delta",
    "Engine": "deltastar.engine",
    "CheckpointError": "deltastar.errors",
    "DeltastarError": "deltastar.errors",
    "NoEffectError": "deltastar.errors",
    "QueryError": "deltastar.errors",
    "QuerySyntaxError": "deltastar.errors",
    "RowError": "deltastar.errors",
    "SourceError": "deltastar.errors",
    "TermError": "deltastar.errors",
    "UnknownQueryError": "deltastar.errors",
    "UnsupportedQueryError": "deltastar.errors",
    "UsageError": "deltastar.errors",
    "parse_query": "deltastar.query.parse",
    "BlankNode": "deltastar.rdf.terms",
    "IRI": "deltastar.rdf.terms",
    "Literal": "deltastar.rdf.terms",
    "Term": "deltastar.rdf.terms",
    "Triple": "deltastar.rdf.terms",
    "term": "deltastar.rdf.terms",
    "Malformed": "deltastar.rdf.update",
    "Mark": "deltastar.rdf.update",
    "Update": "deltastar.rdf.update",
    "Registration": "deltastar.registration",
    "Statistics": "deltastar.statistics",
}
"""Where each public name is. It is brought in when it is asked for: so the command line is there at once, and an early
Ctrl-C finds it ready."""

__all__ = [
    "IRI",
    "Binding",
    "BlankNode",
    "CheckpointError",
    "Delta",
    "DeltastarError",
    "Engine",
    "Literal",
    "Malformed",
    "Mark",
    "NoEffectError",
    "QueryError",
    "QuerySyntaxError",
    "Registration",
    "RowError",
    "SourceError",
    "Statistics",
    "Term",
    "TermError",
    "Triple",
    "UnknownQueryError",
    "UnsupportedQueryError",
    "Update",
    "UsageError",
    "__version__",
    "parse_query",
    "term",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
