----------------------- MODULE ReclaimRefinesReadyOrder -----------------------
(*****************************************************************************)
(* THEOREM  HistorySpec => Abstract!Spec: T-Gate with its reclamation, in    *)
(* one model, is linearizable to ReadyOrder, and what it frees nobody        *)
(* touches.  Points: insert at insert_publish; get with a tuple where the    *)
(* head moves, with null at next_read_written.                               *)
(*                                                                           *)
(* `had` and `asked` are history: what each reader was given, and how many   *)
(* calls were answered.  A reader that walks over a dummy answers nothing.   *)
(* Inputs have no heartbeats and no close here; TGate has them.              *)
(*****************************************************************************)
EXTENDS MCReclaim

VARIABLES had, asked

history == <<had, asked>>

IsDummy(n) == n % 10 = 0
Number(t) == t - 100

\* A null: the reader has looked, stays where it is, and has come to the end of its call.
Nulls(t) == pc[t] = "next_read_written" /\ pc'[t] # "next_read_next"
Gets(t) == head'[t] # head[t] /\ ~IsDummy(head'[t])

Answered(t) ==
  /\ Step(t)
  /\ had' = IF t \notin Inputs /\ Gets(t) THEN [had EXCEPT ![Number(t)] = Append(@, head'[t])] ELSE had
  /\ asked' = IF t \notin Inputs /\ (Gets(t) \/ Nulls(t)) THEN [asked EXCEPT ![Number(t)] = @ + 1] ELSE asked

HistorySpec == /\ Init /\ crashed = {}
               /\ had = [r \in Readers |-> << >>] /\ asked = [r \in Readers |-> 0]
               /\ [][(\E t \in Live : Answered(t)) \/ (Crash /\ UNCHANGED history)]_<<allVars, history>>

TupleOf(n) == <<TsOf(n), InputOf(n), n % 10>>

Abstract == INSTANCE ReadyOrder WITH
  Times <- UNION {{Script[k][i][1] : i \in DOMAIN Script[k]} : k \in Inputs},
  TuplesMax <- 99,
  AsksMax <- PollsMax,
  received <- [k \in Inputs |-> [i \in 1 .. written[k] % 10 |-> Script[k][i][1]]],
  latest <- [k \in Inputs |-> TsOf(written[k])],
  delivered <- [r \in Readers |-> [i \in DOMAIN had[r] |-> TupleOf(had[r][i])]],
  asked <- asked

\* Abstract!Spec, written so that TLC passes quickly over the steps that change nothing abstract.
Refines == Abstract!Init /\ [][UNCHANGED <<written, history>> \/ Abstract!Next]_(Abstract!vars)
==============================================================================
