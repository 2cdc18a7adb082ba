------------------------- MODULE WinSetIsLinearizable -------------------------
(*****************************************************************************)
(* THEOREM  HistorySpec => []Linearizable                                    *)
(*                                                                           *)
(* No linearization points are chosen here.  `explanations` holds every      *)
(* state in which WindowMap can be, given the calls and answers so far: a    *)
(* call in progress may have taken effect or not, in any order with the      *)
(* others; one that has returned has taken effect, with the answer that was  *)
(* seen.  If nothing explains a history, it was not linearizable.            *)
(*                                                                           *)
(* A call begins with its first access and returns with its last one, which  *)
(* is the narrowest reading: whatever holds for it holds for wider ones.     *)
(*****************************************************************************)
EXTENDS MCWinSet

VARIABLES explanations,
          begun           \* begun[t]: t is in a call

\* map: key -> window; answer[t]: the window that t will be told, or one of these.
Idle == <<"idle">>
Unanswered == <<"unanswered">>

Map == INSTANCE WindowMap WITH Offers <- << >>, AnswersMax <- 0, windows <- << >>

Initially == [map |-> << >>, answer |-> [t \in Threads |-> Idle]]

TakeEffect(e, t) ==
  LET key == Wanted[t][turn[t]]
      after == IF Inserts[t][turn[t]] THEN Map!Inserted(e.map, key, <<t, turn[t]>>) ELSE e.map
  IN  [map |-> after, answer |-> [e.answer EXCEPT ![t] = Map!Found(after, key)]]

RECURSIVE Closure(_)
Closure(set) ==
  LET more == set \cup UNION {{TakeEffect(e, t) : e \in {f \in set : f.answer[t] = Unanswered}} : t \in Threads}
  IN  IF more = set THEN set ELSE Closure(more)

Step(t) ==
  /\ caller(t)
  /\ LET returns == turn'[t] # turn[t] \/ pc'[t] = "Done"
         told == answers'[t][turn[t]][2]
         open == IF begun[t] THEN explanations
                 ELSE Closure({[e EXCEPT !.answer[t] = Unanswered] : e \in explanations})
     IN  /\ explanations' = IF returns THEN {[e EXCEPT !.answer[t] = Idle] : e \in {f \in open : f.answer[t] = told}}
                            ELSE open
         /\ begun' = [begun EXCEPT ![t] = ~returns]

HistorySpec ==
  /\ Init /\ explanations = {Initially} /\ begun = [t \in Threads |-> FALSE]
  /\ [][\E t \in Threads : Step(t)]_<<vars, explanations, begun>>

Linearizable == explanations # {}
==============================================================================
