------------------------ MODULE TGateRefinesReadyOrder ------------------------
(*****************************************************************************)
(* THEOREM  Spec => Abstract!Spec, through the linearization points G1: what *)
(* an input has published is what has been received, and a call of get is    *)
(* answered in the step that counts it, with a tuple or with null.           *)
(*****************************************************************************)
EXTENDS MCTGate

\* The node as a tuple of the abstract order: its position counts tuples only.
TupleOf == TLCEval([n \in Nodes |-> <<Ts[n], Input(n), IF n = Origin THEN 0 ELSE
                                Cardinality({i \in 1 .. Number(n) : Script[Input(n)][i].kind = "tuple"})>>])

\* What input k has sent once its call number i has taken effect.
TuplesUpTo == TLCEval([k \in Inputs |-> [i \in 0 .. Len(Script[k]) |->
                 LET calls == SelectSeq(SubSeq(Script[k], 1, i), LAMBDA call : call.kind = "tuple")
                 IN  [j \in DOMAIN calls |-> calls[j].ts]]])

Times == UNION {{Script[k][i].ts : i \in DOMAIN Script[k]} : k \in Inputs}

Abstract == INSTANCE ReadyOrder WITH
  TuplesMax <- 99,
  AsksMax <- Polls,
  received <- [k \in Inputs |-> IF written[k] = None THEN << >> ELSE TuplesUpTo[k][Number(written[k])]],
  latest <- [k \in Inputs |-> IF written[k] = None THEN -1 ELSE Ts[written[k]]],
  delivered <- [r \in Readers |-> [i \in DOMAIN out[r] |-> TupleOf[out[r][i]]]]

\* Abstract!Spec, written so that TLC passes quickly over the steps that change nothing abstract.
Refines == Abstract!Init /\ [][UNCHANGED <<written, out, asked>> \/ Abstract!Next]_(Abstract!vars)
==============================================================================
