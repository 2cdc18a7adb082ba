------------------------- MODULE WHiveIsLinearizable --------------------------
(*****************************************************************************)
(* THEOREM  HistorySpec => []Linearizable                                    *)
(*                                                                           *)
(* No linearization points are chosen here.  `explanations` holds every      *)
(* state in which WindowOrder can be, given the calls and answers so far:    *)
(* a call in progress may have taken effect or not, in any order with the    *)
(* others; one that has returned has taken effect, with the answer that was  *)
(* seen.  If nothing explains a history, it was not linearizable.            *)
(*                                                                           *)
(* A call begins with its first access and returns with its last one, which  *)
(* is the narrowest reading: whatever holds for it holds for wider ones.     *)
(*****************************************************************************)
EXTENDS MCWHive

VARIABLE explanations

\* done[t]: calls of t that have taken effect; last: the last window that came out; answer: what the reader will be told.
Idle == <<"idle">>
Unanswered == <<"unanswered">>

Initially == [done |-> [t \in Threads |-> 0], last |-> -1, answer |-> Idle]

TakeEffect(e, t) == [e EXCEPT !.done[t] = @ + 1]
Answer(e) ==
  LET answer == Order!AnswerAfter(e.last, TuplesOf(e.done), PromisesOf(e.done))
  IN  [e EXCEPT !.answer = answer, !.last = IF answer = Order!Null THEN @ ELSE answer[1]]

\* Whatever the calls in progress can have brought about; begun[t] calls of t have begun.
RECURSIVE Closure(_, _)
Closure(set, begun) ==
  LET more == set
         \cup UNION {{TakeEffect(e, t) : e \in {f \in set : f.done[t] < begun[t]}} : t \in Threads}
         \cup {Answer(e) : e \in {f \in set : f.answer = Unanswered}}
  IN  IF more = set THEN set ELSE Closure(more, begun)

Begun == [t \in Threads |-> IF pc[t] = "publish" THEN turn[t] - 1 ELSE turn[t]]

UpdaterStep(t) ==
  /\ updater(t)
  /\ LET begins == pc[t] = "publish"
         returns == pc'[t] \in {"publish", "Done"}
         open == IF begins THEN Closure(explanations, [Begun EXCEPT ![t] = turn[t]]) ELSE explanations
     IN  explanations' = IF returns THEN {e \in open : e.done[t] = turn[t]} ELSE open

ReaderStep ==
  /\ reader
  /\ LET begins == pc[Reader] = "next_scan" /\ j = 1 /\ cand = Unset
         returns == pc'[Reader] = "Done" \/ (pc'[Reader] = "next_scan" /\ j' = 1 /\ cand' = Unset)
         seen == IF pc[Reader] \in {"next_scan", "next_peek", "next_read"} THEN Order!Null ELSE delivered'[Len(delivered')]
         open == IF begins THEN Closure({[e EXCEPT !.answer = Unanswered] : e \in explanations}, Begun) ELSE explanations
     IN  explanations' = IF returns THEN {[e EXCEPT !.answer = Idle] : e \in {f \in open : f.answer = seen}} ELSE open

HistorySpec ==
  /\ Init /\ explanations = {Initially}
  /\ [][ReaderStep \/ \E t \in Threads : UpdaterStep(t)]_<<vars, explanations>>

Linearizable == explanations # {}
==============================================================================
