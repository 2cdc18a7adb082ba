"""Data sets: made-up ones in the shape of the paper's, and streams stored as parquet.

sample           readings of smart meters and comments on songs, the same rows for the same seed
stored_streams   the inputs of a folder of parquet, as `pystream generate` writes it
"""
