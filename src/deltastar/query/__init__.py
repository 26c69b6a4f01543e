"""Queries: SPARQL text to algebra."""
