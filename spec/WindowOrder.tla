---------------------------- MODULE WindowOrder -----------------------------
(***************************************************************************)
(* What W-Hive is, without saying how: several threads put their tuples    *)
(* into sliding windows, one reader receives the finished windows in the   *)
(* order of their starts.  Each operation is one atomic step.              *)
(*                                                                         *)
(*   update(t, tuple)  thread t has a tuple <ts, key, value>; ts never     *)
(*                     falls                                               *)
(*   heartbeat(t, ts)  t has nothing below ts any more                     *)
(*   close(t)          t has nothing any more                              *)
(*   ask               the reader wants the next winset                    *)
(*                                                                         *)
(* Window n covers [n*Advance, n*Advance + Size), n = 0, 1, 2, ...; it is  *)
(* named by its start.  It exists once a tuple fell into it.  Its winset   *)
(* maps each key that occurred to what the window function made of the     *)
(* key's tuples, here their sum or the greatest value.  A window is        *)
(* complete when every thread has come to its end or past it: latest[t] >= *)
(* start + Size.                                                           *)
(*                                                                         *)
(* `ask` is answered with the first window that exists, is complete and    *)
(* was not delivered before, and with null only when there is none.        *)
(*                                                                         *)
(*   I1  windows come out in the order of their starts, each at most once  *)
(*   I2  a delivered winset holds every tuple that ever falls into it      *)
(*   I3  when all threads are closed and the answer is null, every window  *)
(*       that exists has come out                                          *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANTS Threads,
          Tuples,                \* those that may occur: [ts, key, value], values positive
          Times,                 \* those of heartbeats
          Size, Advance,         \* the windows: positive, in any proportion
          Function,              \* "sum" or "max"
          TuplesMax, AsksMax     \* bounds per thread and for the reader

VARIABLES received,    \* received[t]: the tuples of thread t, in order
          latest,      \* latest[t]: thread t has nothing below this any more
          delivered,   \* the winsets that have come out, as <<start, winset>>
          asked        \* how often the reader asked; a null shows as an answer that delivered nothing

vars == <<received, latest, delivered, asked>>

Never == -1            \* latest of a thread that has not begun
Forever == 1000        \* latest of a closed thread
Null == << >>

-----------------------------------------------------------------------------
\* Windows and completeness, free of variables: the monitor of W-Hive uses them too.

LeastOf(set) == CHOOSE x \in set : \A y \in set : x <= y

Covers(start, ts) == start <= ts /\ ts < start + Size

WindowsOf(ts) == {start \in {n * Advance : n \in 0 .. ts \div Advance} : Covers(start, ts)}

TuplesIn(tuples, start) ==
  {<<t, i>> \in UNION {{t} \X DOMAIN tuples[t] : t \in DOMAIN tuples} : Covers(start, tuples[t][i].ts)}

Greater(a, b) == IF a > b THEN a ELSE b

RECURSIVE ResultOf(_, _)
ResultOf(tuples, places) ==
  IF places = {} THEN 0
  ELSE LET p == CHOOSE q \in places : TRUE
           value == tuples[p[1]][p[2]].value
           others == ResultOf(tuples, places \ {p})
       IN  IF Function = "sum" THEN value + others ELSE Greater(value, others)

WinSetOf(tuples, start) ==
  LET places == TuplesIn(tuples, start)
  IN  [key \in {tuples[p[1]][p[2]].key : p \in places} |->
         ResultOf(tuples, {p \in places : tuples[p[1]][p[2]].key = key})]

Existing(tuples) == UNION {UNION {WindowsOf(tuples[t][i].ts) : i \in DOMAIN tuples[t]} : t \in DOMAIN tuples}

IsComplete(start, promises) == \A t \in DOMAIN promises : promises[t] >= start + Size

\* The answer when the windows up to `last` have been delivered.
AnswerAfter(last, tuples, promises) ==
  LET ready == {start \in Existing(tuples) : start > last /\ IsComplete(start, promises)}
  IN  IF ready = {} THEN Null ELSE <<LeastOf(ready), WinSetOf(tuples, LeastOf(ready))>>

LastOf(answers) == IF answers = << >> THEN -1 ELSE answers[Len(answers)][1]

-----------------------------------------------------------------------------
Init == /\ received = [t \in Threads |-> << >>]
        /\ latest = [t \in Threads |-> Never]
        /\ delivered = << >>
        /\ asked = 0

Update(t, tuple) ==
  /\ latest[t] <= tuple.ts
  /\ latest' = [latest EXCEPT ![t] = tuple.ts]
  /\ Len(received[t]) < TuplesMax
  /\ received' = [received EXCEPT ![t] = Append(@, tuple)]
  /\ UNCHANGED <<delivered, asked>>

Heartbeat(t, ts) ==
  /\ latest[t] < ts        \* a promise that says nothing new changes nothing
  /\ latest' = [latest EXCEPT ![t] = ts]
  /\ UNCHANGED <<received, delivered, asked>>

Close(t) ==
  /\ latest' = [latest EXCEPT ![t] = Forever]
  /\ UNCHANGED <<received, delivered, asked>>

Ask ==
  /\ asked < AsksMax
  /\ asked' = asked + 1
  /\ LET answer == AnswerAfter(LastOf(delivered), received, latest)
     IN  delivered' = IF answer = Null THEN delivered ELSE Append(delivered, answer)
  /\ UNCHANGED <<received, latest>>

Next == \/ \E t \in Threads :
             \/ \E tuple \in Tuples : Update(t, tuple)
             \/ \E ts \in Times : Heartbeat(t, ts)
             \/ Close(t)
        \/ Ask

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
TypeOK == /\ received \in [Threads -> Seq(Tuples)]
          /\ latest \in [Threads -> Times \cup {tuple.ts : tuple \in Tuples} \cup {Never, Forever}]
          /\ asked \in 0 .. AsksMax

DeliveredInOrder == \A i, j \in DOMAIN delivered : i < j => delivered[i][1] < delivered[j][1]                \* I1
DeliveredWhole == \A i \in DOMAIN delivered : delivered[i][2] = WinSetOf(received, delivered[i][1])          \* I2
NullMeansAllOut ==                                                                                           \* I3
  (\A t \in Threads : latest[t] = Forever) /\ AnswerAfter(LastOf(delivered), received, latest) = Null
    => {delivered[i][1] : i \in DOMAIN delivered} = Existing(received)
=============================================================================
