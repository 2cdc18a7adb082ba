-------------------------------- MODULE Fifo --------------------------------
(***************************************************************************)
(* What a queue is, without saying how.  Each operation is one atomic step *)
(* on a sequence; threads run scripts of operations.                       *)
(*                                                                         *)
(* An operation that changes nothing (a dequeue that finds nothing, a      *)
(* peek) may answer whatever was true at some moment of its call: `seen`   *)
(* gathers what has been true so far.  That is linearizability for such    *)
(* operations, and needs no guess about the future.                        *)
(*                                                                         *)
(* There is room for `Room` values; but a thread in the middle of a call   *)
(* may keep one place from the others, so "full" can come that much early. *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Threads, Script, Room

VARIABLES queue,      \* oldest first
          answers,    \* answers[t]: what the operations of thread t returned
          busy,       \* busy[t]: thread t is in a call that has not taken effect yet
          seen        \* seen[t]: answers without effect that were right at some moment of that call

vars == <<queue, answers, busy, seen>>

\* All <<queue afterwards, answer>> of one operation on queue q.
Outcomes(q, op) ==
  CASE op[1] = "enqueue"  -> (IF Len(q) < Room THEN {<<Append(q, op[2]), 1>>} ELSE {})
                             \cup (IF Len(q) + Cardinality(Threads) - 1 >= Room THEN {<<q, 0>>} ELSE {})
    [] op[1] = "dequeue"  -> IF q = << >> THEN {<<q, 0>>} ELSE {<<Tail(q), Head(q)>>}
    [] op[1] = "peek"     -> {<<q, IF q = << >> THEN 0 ELSE Head(q)>>}
    [] op[1] = "is_empty" -> {<<q, IF q = << >> THEN 1 ELSE 0>>}

WithoutEffect(q, op) == {o[2] : o \in {o \in Outcomes(q, op) : o[1] = q}}

Left(t) == Len(answers[t]) < Len(Script[t])
Op(t) == Script[t][Len(answers[t]) + 1]
-----------------------------------------------------------------------------
Init == /\ queue = << >>
        /\ answers = [t \in Threads |-> << >>]
        /\ busy = [t \in Threads |-> FALSE]
        /\ seen = [t \in Threads |-> {}]

Begin(t) ==
  /\ Left(t) /\ ~busy[t]
  /\ busy' = [busy EXCEPT ![t] = TRUE]
  /\ seen' = [seen EXCEPT ![t] = WithoutEffect(queue, Op(t))]
  /\ UNCHANGED <<queue, answers>>

Change(t) ==
  /\ Left(t)
  /\ \E o \in Outcomes(queue, Op(t)) :
       /\ o[1] # queue
       /\ queue' = o[1]
       /\ answers' = [answers EXCEPT ![t] = Append(@, o[2])]
  /\ busy' = [busy EXCEPT ![t] = FALSE]
  /\ seen' = [u \in Threads |-> IF busy'[u] THEN seen[u] \cup WithoutEffect(queue', Op(u)) ELSE {}]

Report(t) ==
  /\ Left(t)
  /\ \E a \in (IF busy[t] THEN seen[t] ELSE WithoutEffect(queue, Op(t))) :
       answers' = [answers EXCEPT ![t] = Append(@, a)]
  /\ busy' = [busy EXCEPT ![t] = FALSE]
  /\ seen' = [seen EXCEPT ![t] = {}]
  /\ UNCHANGED queue

Next == \E t \in Threads : Begin(t) \/ Change(t) \/ Report(t)
Spec == Init /\ [][Next]_vars
=============================================================================
