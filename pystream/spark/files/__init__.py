"""Files that the executors read themselves, with Arrow.

file_tasks    `aggregate_files`
file_source   what the driver learns from files, and how executors read them
listing       which files a path stands for
formats       what is in a file: parquet, Arrow IPC, CSV, JSON lines
partition_values   columns that folders of the form name=value give
splits        which task reads what
"""
