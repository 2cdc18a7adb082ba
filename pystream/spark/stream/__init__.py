"""Streaming DataFrames and folders that get new files: exactly once, across restarts.

streaming       `aggregate` on a streaming DataFrame
ending          `finish`, `progress`; stall: `explain_stall`; orders: `Orders`
new_files       `aggregate_new_files`; noted_files: that none is left out
parcels         rows from partitions to shards; outgoing: results from shards to tasks
shard           what a micro-batch does to a shard; streams: the frontier; shard_windows: its windows
state           what the checkpoint holds; checkpoint: how far the query has come; hadoop_files: how a file is replaced
table_bytes     Arrow tables as bytes
"""
