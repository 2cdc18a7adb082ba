"""Rows of a batch DataFrame: folded where they lie, shuffled as packed partials, combined by key.

batch            `aggregate` on a batch DataFrame
phases           fold, shuffle, combine; tally: whether all parcels have come
shard_hash       the shard of a key
task_numbers     how many tasks, on any session
needed_columns   the fewest columns that have to cross from Spark to Python
spark_types      Arrow types on their way into Spark
"""
