"""Makes `spark.read.format("rdfpatch")` work without registration: Spark looks into every module named `pyspark_…`."""

from deltastar.spark.rows import RdfPatchSource as DefaultSource

__all__ = ["DefaultSource"]
