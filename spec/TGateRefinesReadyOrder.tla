------------------------ MODULE TGateRefinesReadyOrder ------------------------
(*****************************************************************************)
(* THEOREM  Spec => Abstract!Spec, through the linearization points G1: what *)
(* an input has published is what has been received, and a call of get is    *)
(* answered in the step that counts it, with a tuple or with null.           *)
(*****************************************************************************)
EXTENDS MCTGate

\* The node as a tuple of the abstract order: its position counts tuples only.
TupleOf == TLCEval([s \in DOMAIN Scripts |-> TLCEval([n \in Nodes |-> <<TsOf[s][n], Input(n), IF n = Origin THEN 0 ELSE
             Cardinality({i \in 1 .. Number(n) : KindOf[s][Node(Input(n), i)] = "tuple"})>>])])

\* What input k has sent once its call number i has taken effect.
TuplesUpTo == TLCEval([s \in DOMAIN Scripts |-> TLCEval([k \in Inputs |-> TLCEval([i \in 0 .. Len(Scripts[s][k]) |->
                 LET calls == SelectSeq(SubSeq(Scripts[s][k], 1, i), LAMBDA call : call.kind = "tuple")
                 IN  [j \in DOMAIN calls |-> calls[j].ts]])])])

Times == UNION {UNION {{Scripts[s][k][i].ts : i \in DOMAIN Scripts[s][k]} : k \in Inputs} : s \in DOMAIN Scripts}

Abstract == INSTANCE ReadyOrder WITH
  TuplesMax <- 99,
  AsksMax <- Polls,
  received <- [k \in Inputs |-> IF written[k] = None THEN << >> ELSE TuplesUpTo[chosen][k][Number(written[k])]],
  latest <- [k \in Inputs |-> IF written[k] = None THEN -1 ELSE Ts[written[k]]],
  delivered <- [r \in Readers |-> [i \in DOMAIN out[r] |-> TupleOf[chosen][out[r][i]]]]

\* Abstract!Spec, written so that TLC passes quickly over the steps that change nothing abstract.
Refines == Abstract!Init /\ [][UNCHANGED <<written, out, asked>> \/ Abstract!Next]_(Abstract!vars)
==============================================================================
