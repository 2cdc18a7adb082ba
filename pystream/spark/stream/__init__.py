"""Streaming DataFrames and folders that get new files: exactly once, across restarts.

streaming       `aggregate` on a streaming DataFrame, `finish`
new_files       `aggregate_new_files`
parcels         rows from partitions to shards; outgoing: results from shards to tasks
shard           what a micro-batch does to a shard; shard_windows: its windows
state           what the checkpoint holds; checkpoint: whether it is whole, how it is ended
table_bytes     Arrow tables as bytes
"""
