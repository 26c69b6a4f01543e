"""RDF: terms, updates, and the formats they come in."""
