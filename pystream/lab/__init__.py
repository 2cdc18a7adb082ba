"""Measurements, on demand: nothing of the library imports them.

evaluation   throughput and latency of the designs, as the paper measures them: `pystream bench`
merge        S-Merge alone: T-Gate, queues, Java's skip list
report       one page about this installation: `pystream report`
"""
