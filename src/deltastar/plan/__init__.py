"""Plans: how a query is taken apart, and in which order it is put together."""
