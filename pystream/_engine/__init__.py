"""How an operator works, between the public `Operator` and the extension.

engine          one running operator: what `Operator`, feeding and snapshot share
plan            a query on a schema: the columns that C gets, and how its output becomes Arrow again
feeding         whole inputs into an operator, by few threads
reading         finished rows out of it
handover        rows belong to the operator until the caller has them, whatever is raised meanwhile
async_batches   `async for batch in op`
user_windows    the objects of a `udf`
snapshot        the state as bytes, and back
stall           `Stats` and `Stall`: what an operator says of itself
structures      what `TGate` and `WHive` share
arguments       checks of arguments; time_text: timestamps in messages

Rooms below: `_inputs`, `_native`.
"""
