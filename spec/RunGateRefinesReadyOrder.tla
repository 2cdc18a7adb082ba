----------------------- MODULE RunGateRefinesReadyOrder -----------------------
(*****************************************************************************)
(* THEOREM  UnfoldedSpec => Abstract!Spec, through the linearization points   *)
(* G1: what an input has published is what has been received, and a call of   *)
(* get is answered in the step that counts it, with tuples or with null.      *)
(*                                                                            *)
(* One step of Run-Gate may be several of ReadyOrder: the tuples of a run and *)
(* its promise, or the tuples of a slice.  UnfoldedSpec shows them one by one *)
(* while everything else stands still: `owed` counts those not yet shown.     *)
(* That adds steps in which nothing happens and changes no behaviour.         *)
(*****************************************************************************)
EXTENDS MCRunGate

VARIABLES actor,     \* the thread that took the latest step of Run-Gate
          owed       \* how many abstract steps of it are still to be shown

unfolded == <<vars, actor, owed>>

\* What the runs of an input up to and including n say: a timestamp per tuple, and promises.
Says(ts, tuple) == [ts |-> ts, tuple |-> tuple]
OwnWords(n) == [i \in DOMAIN Times[n] |-> Says(Times[n][i], TRUE)]
               \o IF Times[n] # << >> /\ Times[n][Len(Times[n])] = Last[n] THEN << >> ELSE <<Says(Last[n], FALSE)>>

RECURSIVE WordsUpTo(_)
WordsUpTo(n) == CASE Number(n) = 0 -> << >>
                  [] Skipped[n]    -> WordsUpTo(n - 1)
                  [] OTHER         -> WordsUpTo(n - 1) \o OwnWords(n)
Words == TLCEval([n \in Runs |-> WordsUpTo(n)])

AllButLast(seq, n) == SubSeq(seq, 1, Len(seq) - n)
Owed(p) == IF p = actor THEN owed ELSE 0
Shown(k) == AllButLast(Words[tail[k]], Owed(k))
TupleTimes(words) == LET tuples == SelectSeq(words, LAMBDA word : word.tuple) IN [i \in DOMAIN tuples |-> tuples[i].ts]

Abstract == INSTANCE ReadyOrder WITH
  Times <- UNION {{Times[n][i] : i \in DOMAIN Times[n]} \cup {Last[n]} : n \in Runs},
  TuplesMax <- 99,
  AsksMax <- 99,
  received <- [k \in Inputs |-> TupleTimes(Shown(k))],
  latest <- [k \in Inputs |-> IF Shown(k) = << >> THEN -1 ELSE Shown(k)[Len(Shown(k))].ts],
  delivered <- [r \in Readers |-> AllButLast(out[r], Owed(r))],
  asked <- [r \in Readers |-> asked[r] - Owed(r)]

\* How many steps of ReadyOrder the step that thread p takes now is.
Worth(p) == IF p \in Inputs THEN Len(Words[tail'[p]]) - Len(Words[tail[p]]) ELSE asked'[p] - asked[p]

UnfoldedInit == Init /\ actor = None /\ owed = 0

Act(p) == /\ owed = 0
          /\ Step(p)
          /\ owed' = IF Worth(p) > 1 THEN Worth(p) - 1 ELSE 0
          /\ actor' = IF owed' = 0 THEN None ELSE p

Unfold == /\ owed > 0
          /\ owed' = owed - 1
          /\ actor' = IF owed' = 0 THEN None ELSE actor
          /\ UNCHANGED vars

UnfoldedSpec == UnfoldedInit /\ [][Unfold \/ \E p \in ProcSet : Act(p)]_unfolded

\* Abstract!Spec, written so that TLC passes quickly over the steps that change nothing abstract.
Refines == Abstract!Init /\ [][UNCHANGED <<tail, out, asked, owed>> \/ Abstract!Next]_(Abstract!vars)
==============================================================================
