"""deltastar on Spark: the source `rdfpatch`, `continuous` for DataFrames, and the run of the command line."""
