"""Pipelines: raw files, prepared and aggregated into a sink, as a TOML file describes it.

described   the file, checked
intake      which files a stream of files has had, and which come next
sinks       where the rows go
here        without Spark
on_spark    on Spark
"""
