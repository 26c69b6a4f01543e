"""deltastar on Spark: the source `rdfpatch`, and `continuous` for DataFrames of updates.

    from deltastar.spark import continuous

    updates = spark.readStream.format("rdfpatch").load("updates/")
    deltas = continuous(updates, {"triangle": "SELECT …"}, shards=8)

Importing it does not start Spark, and does not need it: the functions do.
"""

from deltastar.spark.frames import continuous

__all__ = ["continuous"]
