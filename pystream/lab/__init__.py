"""Measurements, on demand: nothing of the library imports them.

evaluation   throughput and latency of the designs, as the paper measures them: `pystream bench`
report       one page about this installation: `pystream report`
"""
