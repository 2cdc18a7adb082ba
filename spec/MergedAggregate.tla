--------------------------- MODULE MergedAggregate ---------------------------
(***************************************************************************)
(* What every design of the operator has to do, as one atomic machine:     *)
(* aggregate the merged input.                                             *)
(*                                                                         *)
(* A run fixes the scripts of all inputs, the window and the function.     *)
(* Its result is settled by the run alone: one row <<window start, key,    *)
(* value>> for each window and key that some tuple fell into, the value    *)
(* taken over these tuples in the order (ts, input, position), the rows in *)
(* the order (window start, key).  The machine accepts the events of each  *)
(* script one by one and emits the rows of the result one by one.          *)
(*                                                                         *)
(* G1  Rows come in the order of the result, each of them once.            *)
(* G2  A row comes only when no input can contribute to its window any     *)
(*     more: every input has promised a timestamp at or past its end.      *)
(* G3  A row that may come does come (FairSpec).                           *)
(*                                                                         *)
(* An event is [kind, ts, key, val]: a "tuple", a "beat" (heartbeat: from  *)
(* now on nothing below ts) or a "close" (ts = Forever: nothing any more). *)
(* Who runs in which thread, and which design, does not appear here.       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Inputs,       \* the inputs, numbered from 0
          Runs,         \* records with the fields script, window, fn (and others)
          Script(_),    \* name of a script -> input -> sequence of events
          Forever       \* later than every timestamp

VARIABLES run,          \* what is aggregated; never changes
          result,       \* its rows; never change
          taken,        \* input -> how many events have been accepted
          out           \* the rows emitted so far

abstract_vars == <<run, result, taken, out>>

--------------------------------------------------------------------------------
(* The result, said with sets: no notion of a step, a thread or a state.   *)

Event(r, k, i) == Script(r.script)[k][i]

Tuples(r, upto) ==      \* the tuples among the first upto[k] events of each k
  {x \in UNION {{<<k, i>> : i \in 1..upto[k]} : k \in Inputs} :
     Event(r, x[1], x[2]).kind = "tuple"}

Covers(r, w, ts) == w <= ts /\ ts < w + r.window[1]

Starts(r, ts) == {n * r.window[2] : n \in 0..ts}

Within(r, tuples, w, key) ==
  {x \in tuples : /\ Covers(r, w, Event(r, x[1], x[2]).ts)
                  /\ Event(r, x[1], x[2]).key = key}

Before(r, x, y) ==      \* the contract's total order of tuples
  LET a == Event(r, x[1], x[2]).ts
      b == Event(r, y[1], y[2]).ts
  IN  \/ a < b
      \/ a = b /\ x[1] < y[1]
      \/ a = b /\ x[1] = y[1] /\ x[2] < y[2]

InOrder(S, less(_, _)) ==
  [n \in 1..Cardinality(S) |->
     CHOOSE x \in S : Cardinality({y \in S : less(y, x)}) = n - 1]

RECURSIVE Total(_, _)
Total(r, seq) ==
  IF seq = <<>> THEN 0
  ELSE Event(r, Head(seq)[1], Head(seq)[2]).val + Total(r, Tail(seq))

Value(r, seq) ==
  CASE r.fn = "count" -> Len(seq)
    [] r.fn = "sum" -> Total(r, seq)
    [] r.fn \in {"first", "first_tagged"} -> Event(r, seq[1][1], seq[1][2]).val

RowsOf(r, upto) ==
  LET tuples == Tuples(r, upto)
      cells  == UNION {{<<w, Event(r, x[1], x[2]).key>> :
                          w \in {s \in Starts(r, Event(r, x[1], x[2]).ts) :
                                   Covers(r, s, Event(r, x[1], x[2]).ts)}} : x \in tuples}
      sorted == InOrder(cells, LAMBDA a, b : a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2]))
      value(c) == Value(r, InOrder(Within(r, tuples, c[1], c[2]),
                                   LAMBDA x, y : Before(r, x, y)))
  IN  [n \in 1..Len(sorted) |-> <<sorted[n][1], sorted[n][2], value(sorted[n])>>]

Rows(r) == RowsOf(r, [k \in Inputs |-> Len(Script(r.script)[k])])

--------------------------------------------------------------------------------
(* The machine.                                                             *)

Promise(k) ==           \* input k sends nothing below this any more
  IF taken[k] = 0 THEN 0 ELSE Event(run, k, taken[k]).ts

Complete(w) == \A k \in Inputs : Promise(k) >= w + run.window[1]

Due == Cardinality({n \in 1..Len(result) : Complete(result[n][1])})

Init ==
  /\ run \in Runs
  /\ result = Rows(run)
  /\ taken = [k \in Inputs |-> 0]
  /\ out = <<>>

Accept(k) ==
  /\ taken[k] < Len(Script(run.script)[k])
  /\ taken' = [taken EXCEPT ![k] = @ + 1]
  /\ UNCHANGED <<run, result, out>>

Emit ==
  /\ Len(out) < Len(result)
  /\ Complete(result[Len(out) + 1][1])
  /\ out' = Append(out, result[Len(out) + 1])
  /\ UNCHANGED <<run, result, taken>>

Next == Emit \/ \E k \in Inputs : Accept(k)

Spec == Init /\ [][Next]_abstract_vars

FairSpec == Spec /\ WF_abstract_vars(Emit)

(* The machine is no oracle: the rows that may come are those one computes from the
   accepted events alone, whatever the rest of the scripts holds. *)
Settled ==
  LET so_far == RowsOf(run, taken)
  IN  \A n \in 1..Len(result) : Complete(result[n][1]) => /\ n <= Len(so_far)
                                                          /\ so_far[n] = result[n]
================================================================================
