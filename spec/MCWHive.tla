------------------------------- MODULE MCWHive -------------------------------
(*****************************************************************************)
(* W-Hive, bounded: what the threads do, what the reader must see, threads   *)
(* that stop for ever, and who is scheduled fairly.                          *)
(*****************************************************************************)
EXTENDS WHive, SkipList

CONSTANT CrashesMax      \* how many threads may stop for ever

MinusInfinity == -1      \* for Unstarted: below every window start

-----------------------------------------------------------------------------
\* Scripts.  U: update with a tuple, H: heartbeat, C: close.  Values are powers of ten: a sum shows what is in it.

U(ts, key, value) == [kind |-> "update", ts |-> ts, key |-> key, value |-> value]
H(ts) == [kind |-> "heartbeat", ts |-> ts]
C == [kind |-> "close"]

One(script) == <<script>>

\* Both threads meet in one window with one key, then part.
ScriptMeet == One(<< <<U(0, "a", 1), U(2, "a", 10)>>,
                     <<U(1, "a", 100), U(4, "b", 1000)>> >>)
ScriptMeetClosed == One(<< <<U(1, "a", 1), U(2, "a", 10), C>>,
                           <<U(1, "a", 100), U(4, "b", 1000), C>> >>)
\* Thread 2 is a window ahead of thread 1, so that thread 1 links behind what is already there.
ScriptBehind == One(<< <<U(0, "a", 1), U(2, "a", 10), C>>,
                       <<U(2, "a", 100), U(4, "a", 1000)>> >>)
\* One call each, in the same window: the race for the node and for the key.
ScriptRace == One(<< <<U(0, "a", 1), C>>,
                     <<U(0, "a", 10), C>> >>)
\* The same with values of which the low digits run over, and with two tuples in turn: a digit may run over only in the
\* second step of a sum that the other thread has begun.
ScriptCarry == One(<< <<U(0, "a", 7), C>>,
                      <<U(0, "a", 26), C>> >>)
ScriptCarryTwice == One(<< <<U(0, "a", 7), U(1, "a", 8), C>>,
                           <<U(0, "a", 26), C>> >>)
\* Which is the greatest changes while others look.
ScriptGreatest == One(<< <<U(0, "a", 7), U(1, "a", 9), C>>,
                         <<U(0, "a", 8), C>> >>)
\* The same windows, but each key belongs to one thread, as in TuML_MC.
ScriptOwnKeys == One(<< <<U(0, "a", 1), U(1, "a", 10), C>>,
                        <<U(0, "b", 100), U(1, "b", 1000), C>> >>)
\* One thread by itself.
ScriptAlone == One(<< <<U(0, "a", 1), U(2, "a", 10), U(3, "b", 100), C>> >>)
\* Overlapping windows (Size 4, Advance 2): two windows for each tuple.
ScriptOverlap == One(<< <<U(2, "a", 1), U(3, "a", 10), C>>,
                        <<U(3, "b", 100), H(4)>> >>)
\* Gaps (Advance 4, Size 2): tuples and promises between windows.
ScriptGaps == One(<< <<U(1, "a", 1), U(3, "a", 10), U(5, "a", 100), H(7)>>,
                     <<H(2), U(4, "a", 1000), H(6)>> >>)
\* Promises at, before and after the edge of a window, and one that says nothing new.
ScriptHeartbeats == One(<< <<U(1, "a", 1), H(2), H(1), U(3, "b", 10), H(4)>>,
                           <<H(1), U(1, "a", 100), H(5)>> >>)
\* Nobody closes: what is complete comes out nevertheless.
ScriptOpen == One(<< <<U(0, "a", 1), U(3, "a", 10)>>,
                     <<U(1, "b", 100), U(2, "a", 1000)>> >>)
\* Thread 2 begins late.
ScriptLate == One(<< <<U(0, "a", 1), U(2, "a", 10), C>>,
                     <<U(0, "b", 100), C>> >>)
\* One thread walks far, so that searches start from heads that have moved.
ScriptLong == One(<< <<U(0, "a", 1), U(2, "a", 10), U(4, "a", 100), C>>,
                     <<H(2), U(4, "b", 1000), C>> >>)
ScriptThree == One(<< <<U(0, "a", 1), U(2, "a", 10), C>>,
                      <<U(1, "a", 100), H(4)>>,
                      <<U(2, "b", 1000), C>> >>)
ScriptThreeClosed == One(<< <<U(0, "a", 1), U(2, "a", 10), C>>,
                            <<U(1, "a", 100), C>>,
                            <<U(2, "b", 1000), C>> >>)
\* One update each; two of them meet, and the third thread may link first.
ScriptThreeShort == One(<< <<U(0, "a", 1), H(2)>>,
                           <<U(1, "a", 10), C>>,
                           <<U(2, "b", 100)>> >>)
ScriptThreeRace == One(<< <<U(0, "a", 1), C>>,
                          <<U(1, "a", 10), C>>,
                          <<U(1, "b", 100), C>> >>)

\* The same two, short: with two levels there is much to interleave.
ScriptOverlapShort == One(<< <<U(2, "a", 1), C>>,
                             <<U(3, "a", 10), H(4)>> >>)
ScriptGapsShort == One(<< <<U(1, "a", 1), U(5, "a", 10)>>,
                          <<H(2), U(4, "a", 100)>> >>)
\* All small scripts.  A stream is what one thread does: 1 to n calls, close last, timestamps that never fall but for
\* heartbeats, which may say nothing new: below the latest, equal to it, above it.
Streams(n, times, values) ==
  LET calls == {U(ts, "a", 0) : ts \in times} \cup {H(ts) : ts \in times} \cup {C}
      WithValues(s) == [i \in DOMAIN s |-> IF IsUpdate(s[i]) THEN [s[i] EXCEPT !.value = values[i]] ELSE s[i]]
      Fits(s, i, k) == ~IsClose(s[i]) /\ (IsUpdate(s[k]) => s[i].ts <= s[k].ts)
  IN  {WithValues(s) : s \in {r \in UNION {[1 .. m -> calls] : m \in 1 .. n} :
                                \A i, k \in DOMAIN r : i < k => Fits(r, i, k)}}

RECURSIVE Listed(_)
Listed(set) == IF set = {} THEN << >> ELSE LET x == CHOOSE x \in set : TRUE IN <<x>> \o Listed(set \ {x})

\* Each of one list with each of the other.
Pairs(a, b) == [i \in 1 .. Len(a) * Len(b) |-> <<a[(i - 1) \div Len(b) + 1], b[((i - 1) % Len(b)) + 1]>>]

ScriptsSmall == Pairs(Listed(Streams(1, {1}, <<1>>)), Listed(Streams(2, {1, 2}, <<10, 100>>)))

-----------------------------------------------------------------------------
\* The calls of W-Hive as WindowOrder sees them, when the first done[t] calls of each thread t have taken effect.

TupleOf(call) == [ts |-> call.ts, key |-> call.key, value |-> call.value]

TuplesUpToIn == TLCEval([c \in DOMAIN Scripts |-> TLCEval([t \in Threads |-> TLCEval([count \in 0 .. Len(Scripts[c][t]) |->
                   LET updates == SelectSeq(SubSeq(Scripts[c][t], 1, count), IsUpdate)
                   IN  [i \in DOMAIN updates |-> TupleOf(updates[i])]])])])

PromiseUpToIn == TLCEval([c \in DOMAIN Scripts |-> TLCEval([t \in Threads |-> TLCEval([count \in 0 .. Len(Scripts[c][t]) |->
                   LET calls == Scripts[c][t]
                       promises == {-1} \cup {IF IsClose(calls[i]) THEN Infinity ELSE calls[i].ts : i \in 1 .. count}
                   IN  CHOOSE p \in promises : \A q \in promises : q <= p])])])

TuplesBy(c, done) == [t \in Threads |-> TuplesUpToIn[c][t][done[t]]]
PromisesBy(c, done) == [t \in Threads |-> PromiseUpToIn[c][t][done[t]]]
TuplesOf(done) == TuplesBy(chosen, done)
PromisesOf(done) == PromisesBy(chosen, done)

\* Has the call that t is in taken effect?  With PublishRule "last" it does at its end (G1).
TakenEffect(t) ==
  \/ pc[t] \in {"update_release", "Done"}
  \/ pc[t] # "publish" /\ (PublishRule # "last" \/ Targets[t][turn[t]] = {})

Published == [t \in Threads |-> IF TakenEffect(t) THEN turn[t] ELSE turn[t] - 1]

Order == INSTANCE WindowOrder WITH
  Tuples <- {}, Times <- {}, TuplesMax <- 99, AsksMax <- 99,
  received <- TuplesOf(Published),
  latest <- PromisesOf(Published)

RECURSIVE Outputs(_, _, _)
Outputs(last, tuples, promises) ==
  LET answer == Order!AnswerAfter(last, tuples, promises)
  IN  IF answer = Order!Null THEN << >> ELSE <<answer>> \o Outputs(answer[1], tuples, promises)

\* Constants of the script: everything that could come out, and what is complete when all calls have been made.
AllCalls(c) == [t \in Threads |-> Len(Scripts[c][t])]
WholeOutputIn == TLCEval([c \in DOMAIN Scripts |-> Outputs(-1, TuplesBy(c, AllCalls(c)), [t \in Threads |-> Infinity])])
OutputAtLastIn == TLCEval([c \in DOMAIN Scripts |->
                    Outputs(-1, TuplesBy(c, AllCalls(c)), PromisesBy(c, AllCalls(c)))])
WholeOutput == WholeOutputIn[chosen]
OutputAtLast == OutputAtLastIn[chosen]

-----------------------------------------------------------------------------
\* What the reader is promised (G2, G3)

\* The beginning of the one and only output: nothing twice, nothing left out, nothing unfinished.
InOrder == IsPrefix(delivered, WholeOutput)

NeverTwice == \A i, k \in DOMAIN delivered : i # k => delivered[i][1] # delivered[k][1]
NeverEmpty == \A i \in DOMAIN delivered : delivered[i][2] # << >>

\* Nothing has come out to which some thread could still contribute.
OnlyComplete == \A i \in DOMAIN delivered : Order!IsComplete(delivered[i][1], PromisesOf(Published))

AllDone == \A p \in ProcSet : pc[p] = "Done"

\* Every terminal state has the same output (for a reader that asks until everything is out).
SameOutput == AllDone => delivered = OutputAtLast

-----------------------------------------------------------------------------
\* The structure (I1 to I6)

TypeOK ==
  /\ next \in [Nodes -> [LevelSet -> Nodes \cup {TailNode, Unset}]]
  /\ height \in [Nodes -> 0 .. Levels]
  /\ \A n \in Nodes : \A key \in DOMAIN winset[n] : winset[n][key] \in Nat
  /\ \A t \in Threads : written[t] \in {Unstarted, Infinity} \cup 0 .. 99
  /\ inserthead \in Nodes
  /\ anchor \in [Threads -> Nodes \cup {TailNode}]
  /\ lock \in Threads \cup {0}
  /\ freed \subseteq Nodes
  /\ readhead \in Nodes /\ cand \in Nodes \cup {TailNode, Unset}
  /\ cur \in [Threads -> Nodes] /\ nxt \in [Threads -> Nodes \cup {TailNode, Unset}]

StartsBefore(m, n) == Ts(m) < Ts(n)
Linked == Members(next, 0, HeadNode)

WellLinked ==                                                                                      \* I1
  /\ Sorted(next, Levels - 1, HeadNode, StartsBefore)
  /\ Nested(next, Levels - 1, HeadNode)
  /\ Grounded(next, Levels - 1, HeadNode, TailNode)

InCall(t) == pc[t] \notin {"publish", "Done"}
InWindow(t) == InCall(t) /\ pc[t] \notin {"publish_last", "update_release"} /\ Targets[t][turn[t]] # {}

WorkIsAhead == \A t \in Threads : InWindow(t) => w[t] >= written[t]                                  \* I2
WrittenNeverFalls == [][\A t \in Threads : written'[t] >= written[t]]_vars                           \* I2

\* Windows of the call in progress that the tuple has reached, and those that it has not reached yet.
Reached(t) == IF InWindow(t) THEN {s \in Targets[t][turn[t]] : s < w[t]} ELSE Targets[t][turn[t]]
Waiting(t) == Targets[t][turn[t]] \ Reached(t)

RECURSIVE SumOf(_, _)
SumOf(value, threads) ==
  IF threads = {} THEN 0 ELSE LET t == CHOOSE t \in threads : TRUE IN value[t] + SumOf(value, threads \ {t})

\* What lies in the list is what has taken effect, but for the calls in progress.
ListHoldsAll ==                                                                                      \* I2
  LET tuples == TuplesOf(Published)
      Due(s, key) == LET winset_due == Order!WinSetOf(tuples, s) IN IF key \in DOMAIN winset_due THEN winset_due[key] ELSE 0
      calling == {t \in Threads : InCall(t) /\ IsUpdate(Script[t][turn[t]])}
      Held(s, key) == LET nodes == {n \in Linked : Ts(n) = s /\ key \in DOMAIN winset[n]}
                      IN  IF nodes = {} THEN 0 ELSE winset[CHOOSE n \in nodes : TRUE][key]
      Early(t, s, key) == IF ~TakenEffect(t) /\ s \in Reached(t) /\ Script[t][turn[t]].key = key
                            THEN Script[t][turn[t]].value ELSE 0
      Owed(t, s, key) == IF TakenEffect(t) /\ s \in Waiting(t) /\ Script[t][turn[t]].key = key
                            THEN Script[t][turn[t]].value ELSE 0
  IN  \A i \in DOMAIN WholeOutput : \A key \in DOMAIN WholeOutput[i][2] :
        LET s == WholeOutput[i][1]
        IN  Held(s, key) + SumOf([t \in calling |-> Owed(t, s, key)], calling)
              = Due(s, key) + SumOf([t \in calling |-> Early(t, s, key)], calling)

Behind == {n \in Linked \ {HeadNode} : Ts(n) <= Ts(readhead)}
Handing == pc[Reader] \in {"next_head", "next_take"}      \* readhead is passed, its winset not handed out yet

BehindIsDelivered ==                                                                                  \* I3
  {Ts(n) : n \in Behind} = {delivered[i][1] : i \in DOMAIN delivered} \cup IF Handing THEN {Ts(readhead)} ELSE {}
DeliveredStays ==                                                                                     \* I3
  \A n \in Behind : \A i \in DOMAIN delivered : delivered[i][1] = Ts(n) => delivered[i][2] = winset[n]

LinkedEverywhere(n) == height[n] = Levels /\ \A l \in LevelSet : n \in Members(next, l, HeadNode)
StartsAreSafe ==                                                                                      \* I4
  IF StartRule = "inserthead"
    THEN LinkedEverywhere(inserthead) /\ \A t \in Threads : Ts(inserthead) < written[t] \/ inserthead = HeadNode
    ELSE \A t \in Threads : anchor[t] = TailNode \/ (LinkedEverywhere(anchor[t]) /\ Ts(anchor[t]) <= written[t])

Walking(t) == pc[t] \in {"update_search", "insert_read", "insert_cas"}
InNode(t) == pc[t] \in {"window_find", "window_insert", "window_process", "window_store", "window_carry", "window_swap"}

NoUnsetPointer ==                                                                                     \* I5
  /\ \A t \in Threads : Walking(t) => next[cur[t]][level[t]] # Unset
  /\ next[readhead][0] # Unset
NoUseAfterFree ==                                                                                     \* I6
  /\ \A t \in Threads : Walking(t) \/ InNode(t) => cur[t] \notin freed
  /\ readhead \notin freed

NothingFreed == freed = {}      \* must fail: otherwise I6 would say nothing

-----------------------------------------------------------------------------
\* Each thread keeps running.

Step(p) == IF p = Reader THEN reader ELSE updater(p)
FairSpec == Spec /\ \A p \in ProcSet : WF_vars(Step(p))

\* What is complete comes out, without anything else having to happen first (for a reader that asks for ever).
Complete == <>[](delivered = OutputAtLast)

AllFinish == <>AllDone

-----------------------------------------------------------------------------
\* Any thread may stop for ever at any step; all that is promised is that some live thread runs.

Stopped(p) == pc[p] = "stopped"
Crash(p) == /\ pc[p] # "Done" /\ ~Stopped(p)
            /\ Cardinality({q \in ProcSet : Stopped(q)}) < CrashesMax
            /\ pc' = [pc EXCEPT ![p] = "stopped"]
            /\ UNCHANGED <<chosen, next, height, winset, written, inserthead, anchor, lock, freed, delivered,
                           turn, w, level, cur, nxt, path, sum, readhead, cand, low, j, asked, limit>>

CrashSpec == Init /\ [][Next \/ \E p \in ProcSet : Crash(p)]_vars /\ WF_vars(Next)

LockFree == <>(\A p \in ProcSet : pc[p] = "Done" \/ Stopped(p))
=============================================================================
