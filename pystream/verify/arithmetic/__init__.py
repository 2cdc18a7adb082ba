"""Arithmetic without bounds: claims about all 64-bit values, proved by a solver on the text of csrc."""

from pystream.verify.arithmetic import edges, readiness, values
from pystream.verify.arithmetic.claims import Claim, Goal, Refuted, prove, prove_goal

CLAIMS = {claim.name: claim for claim in (*edges.CLAIMS, *values.CLAIMS, *readiness.CLAIMS)}

__all__ = ["CLAIMS", "Claim", "Goal", "Refuted", "prove", "prove_goal"]
