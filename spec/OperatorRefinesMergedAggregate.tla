-------------------- MODULE OperatorRefinesMergedAggregate --------------------
(***************************************************************************)
(* THEOREM  Each of the five designs implements "aggregate the merged      *)
(* input": every step of a thread accepts one event, emits one row, or     *)
(* changes nothing that MergedAggregate speaks of.                         *)
(*                                                                         *)
(* An event counts as accepted in the step that puts it into the first     *)
(* structure (add_enqueue, add_insert, add_update); a row is emitted by    *)
(* output_forward.  The result is computed once, when the run is chosen.   *)
(* Since the result does not look at the design, all designs agree.        *)
(***************************************************************************)
EXTENDS Operator

VARIABLE result         \* the rows of the run, as MergedAggregate defines them; never change

Merged == INSTANCE MergedAggregate WITH taken <- sent

RefinementInit == Init /\ result = Merged!Rows(run)

Refines     == Merged!Spec          \* safety: G1, and of MergedAggregate G1 and G2
RefinesFair == Merged!FairSpec      \* and every row that may come does come: G2

(* The same said of states alone, as invariants. *)
IsPrefix(s, t) == Len(s) <= Len(t) /\ s = SubSeq(t, 1, Len(s))

OutputIsPrefix   == IsPrefix(out, result)                                          \* I1
OutputIsComplete == \A n \in DOMAIN out : Merged!Complete(out[n][1])               \* I1
Settled          == Merged!Settled

InputsDone == \A k \in Inputs : pc[k] = "Done"
Finished   == InputsDone /\ pc[OutputThread] = "Done"

Deterministic == Finished => out = result       \* every terminal state has the same output

AllClosed == \A k \in Inputs : Events(k) # <<>> /\ At(k, Len(Events(k))).kind = "close"

NoStall  == AllClosed => <>Finished             \* G3
Released == <>[](Len(out) = Merged!Due)         \* G2: what is complete has left in the end
================================================================================
