"""Developers' tools that check the C core and its specs. Loaded on demand: nothing of the library imports them.

tlc               run the TLA+ models of spec/ with TLC: `pystream check`
scheduler         run the lock-free C under a scheduler: every interleaving of a small program
linearizability   decide whether a recorded history is one of a sequential object
"""
