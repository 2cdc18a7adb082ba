"""Data in and out: make it, prepare it, replay it, write results.

generate   the made-up data sets as parquet
prepare    raw records into timestamp-sorted streams; raw_times their times, raw_keys which are equal, raw_frames files
source     the data sets as a source of Spark's
write      a result into a folder of sorted files
"""
