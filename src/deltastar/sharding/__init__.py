"""One stream on several engines, each of which keeps its share of the answers: routing, packing, shards, journals.

Nothing here knows Spark. A *router* turns a split of the stream into one packed blob for each shard; a *shard* applies
the blobs of all splits in order, micro-batch by micro-batch, and gives its part of the deltas; a *journal* remembers
what was applied, so that a shard can be made anew anywhere.
"""
