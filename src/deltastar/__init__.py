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
