---------------------------- MODULE MCWindowOrder ----------------------------
(* WindowOrder by itself, bounded: does it keep its own invariants?          *)
EXTENDS WindowOrder

TuplesOneKey == {[ts |-> ts, key |-> "a", value |-> 1] : ts \in 0 .. 3}
TuplesTwoKeys == {[ts |-> ts, key |-> key, value |-> 1] : ts \in {0, 2, 3}, key \in {"a", "b"}}
==============================================================================
