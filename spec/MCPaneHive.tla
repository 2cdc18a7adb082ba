----------------------------- MODULE MCPaneHive ------------------------------
(*****************************************************************************)
(* Pane-Hive, bounded: what the threads do, what the reader must see,        *)
(* threads that stop for ever, and who is scheduled fairly.                  *)
(*****************************************************************************)
EXTENDS PaneHive

CONSTANTS CrashesMax,     \* how many threads may stop for ever
          Extent          \* of ScriptsEvery

-----------------------------------------------------------------------------
\* Scripts.  U: update with a tuple, H: heartbeat, C: close.  Values are powers of ten: a sum shows what is in it.

U(ts, key, value) == [kind |-> "update", ts |-> ts, key |-> key, value |-> value]
H(ts) == [kind |-> "heartbeat", ts |-> ts]
C == [kind |-> "close"]

\* Equal timestamps within an input and across inputs, at edges and between them.
ScriptTies == << <<U(1, "a", 1), U(1, "a", 10), U(2, "a", 100), U(2, "b", 1000), C>>,
                 <<U(1, "b", 10000), U(2, "a", 100000), U(2, "a", 1000000), C>> >>
\* Thread 2 has the earlier tuple of window 0, thread 1 that of window 4.
ScriptCross == << <<U(1, "a", 1), U(4, "a", 10), C>>,
                  <<U(0, "a", 100), U(5, "a", 1000), C>> >>
\* Tuples at, before and after each of the first edges.
ScriptSteps == << <<U(0, "a", 1), U(2, "a", 10), U(3, "b", 100), U(4, "a", 1000), U(6, "a", 10000), C>>,
                  <<U(1, "a", 100000), U(3, "a", 1000000), U(5, "b", 10000000), U(7, "a", 100000000), C>> >>
\* Promises at, before and after the edge of a window, and ones that say nothing new.
ScriptHeartbeats == << <<U(1, "a", 1), H(2), H(1), U(3, "b", 10), H(4), H(8)>>,
                       <<H(0), H(1), U(1, "a", 100), H(5), H(6)>> >>
\* Nobody closes: what is complete comes out nevertheless.
ScriptOpen == << <<U(0, "a", 1), U(3, "a", 10), U(5, "a", 100)>>,
                 <<U(1, "b", 1000), U(2, "a", 10000), U(5, "a", 100000)>> >>
\* Thread 2 says nothing that moves it.
ScriptIdle == << <<U(0, "a", 1), U(5, "a", 10), C>>,
                 <<H(0), U(0, "a", 100)>> >>
\* Thread 2 begins late, with a jump over edges; thread 1 closes with a slice of its own.
ScriptLate == << <<U(0, "a", 1), U(2, "a", 10), C>>,
                 <<U(9, "b", 100), C>> >>
ScriptBrief == << <<U(0, "a", 1), U(5, "a", 10)>>,
                  <<U(0, "a", 100), H(5)>> >>
ScriptThree == << <<U(0, "a", 1), U(2, "a", 10), U(4, "a", 100), C>>,
                  <<U(1, "a", 1000), H(3), C>>,
                  <<U(2, "b", 10000), U(5, "a", 100000), C>> >>

ScriptsTies == {ScriptTies, ScriptCross}
ScriptsTwo == {ScriptTies, ScriptCross, ScriptSteps, ScriptHeartbeats, ScriptOpen, ScriptIdle, ScriptLate}
ScriptsFew == {ScriptCross, ScriptOpen, ScriptIdle, ScriptLate}
ScriptsSteps == {ScriptSteps}
ScriptsOpen == {ScriptOpen, ScriptHeartbeats, ScriptIdle}
ScriptsLate == {ScriptLate}
ScriptsBrief == {ScriptBrief}
ScriptsThree == {ScriptThree}

\* Every script there is: so many calls, timestamps that never fall, heartbeats that say something new, close at the end.
CallOf(code, most, t, i) ==
  IF code <= most THEN U(code, IF (t + i) % 2 = 0 THEN "a" ELSE "b", 10 ^ (3 * (t - 1) + i - 1))
  ELSE IF code <= 2 * most THEN H(code - most) ELSE C
Orderly(calls) ==
  \A i \in 1 .. Len(calls) - 1 :
    /\ ~IsClose(calls[i])
    /\ IsClose(calls[i + 1]) \/ calls[i].ts < calls[i + 1].ts \/ (IsUpdate(calls[i + 1]) /\ calls[i].ts = calls[i + 1].ts)
\* Of thread t, with `count` calls and timestamps 0 .. most.
Every(t, count, most) ==
  {calls \in {[i \in 1 .. count |-> CallOf(codes[i], most, t, i)] : codes \in [1 .. count -> 0 .. 2 * most + 1]} : Orderly(calls)}
\* Chosen by a constant, because TLC works out all constants of a module before it begins.
ScriptsEvery == CASE Extent = "none" -> {}
                  [] Extent = "brief" -> Every(1, 2, 3) \X Every(2, 1, 3)
                  [] Extent = "pair" -> Every(1, 2, 4) \X Every(2, 2, 4)
                  [] Extent = "long" -> Every(1, 3, 4) \X Every(2, 2, 4)
                  [] Extent = "three" -> Every(1, 2, 3) \X Every(2, 2, 3) \X Every(3, 1, 3)

-----------------------------------------------------------------------------
\* The calls as WindowOrder sees them, when the first done[t] calls of each thread t have taken effect.

TupleOf(call) == [ts |-> call.ts, key |-> call.key, value |-> call.value]

TuplesOf(done) == [t \in Threads |->
  LET updates == SelectSeq(SubSeq(script[t], 1, done[t]), IsUpdate) IN [i \in DOMAIN updates |-> TupleOf(updates[i])]]

PromisesOf(done) == [t \in Threads |->
  LET promises == {-1} \cup {IF IsClose(script[t][i]) THEN Forever ELSE script[t][i].ts : i \in 1 .. done[t]}
  IN  CHOOSE p \in promises : \A q \in promises : q <= p]

AllDone == \A p \in ProcSet : pc[p] = "Done"

\* The calls of each thread that have taken effect: all that are over, and one that has linked its node (G1).
Published == [t \in Threads |-> IF pc[t] \in {"publish_fill", "publish_unlock", "Done"} THEN turn[t] ELSE turn[t] - 1]

Order == INSTANCE WindowOrder WITH
  Tuples <- {}, Times <- {}, Function <- "sum", TuplesMax <- 99, AsksMax <- 99,
  received <- TuplesOf(Published),
  latest <- PromisesOf(Published)

\* The places of the first tuples of thread t, as Fold makes them, but for those in no window.
PlacesUpTo(t, count) ==
  {<<script[t][i].ts, t, i>> : i \in {i \in 1 .. count : IsUpdate(script[t][i]) /\ WindowsAt(script[t][i].ts) # {}}}
CallAt(place) == script[place[2]][place[3]]

RECURSIVE PartialsOf(_)
PartialsOf(places) ==
  IF places = {} THEN NoPartials
  ELSE LET p == CHOOSE p \in places : TRUE
       IN  JoinAll(CallAt(p).key :> [sum |-> CallAt(p).value, first |-> p], PartialsOf(places \ {p}))

\* What must come out, all in all: the answers of WindowOrder with these promises when all calls have been made.
RECURSIVE OutputsAfter(_, _, _)
OutputsAfter(start, tuples, promises) ==
  LET answer == Order!AnswerAfter(start, tuples, promises)
  IN  IF answer = Order!Null THEN << >> ELSE <<answer>> \o OutputsAfter(answer[1], tuples, promises)

AllCalls == [t \in Threads |-> Len(script[t])]
WholeOutput == OutputsAfter(-1, TuplesOf(AllCalls), [t \in Threads |-> Forever])
OutputAtLast == OutputsAfter(-1, TuplesOf(AllCalls), PromisesOf(AllCalls))

\* The first tuples of a window, in the order (ts, input, position).
NotAfter(a, b) == a[1] < b[1] \/ (a[1] = b[1] /\ (a[2] < b[2] \/ (a[2] = b[2] /\ a[3] <= b[3])))
FirstsIn(s) ==
  LET places == {p \in UNION {PlacesUpTo(t, Len(script[t])) : t \in Threads} : Order!Covers(s, p[1])}
      Of(key) == {p \in places : CallAt(p).key = key}
  IN  [key \in {CallAt(p).key : p \in places} |-> CHOOSE p \in Of(key) : \A q \in Of(key) : NotAfter(p, q)]

-----------------------------------------------------------------------------
\* What the reader is promised (G2, G3)

IsPrefix(a, b) == Len(a) <= Len(b) /\ SubSeq(b, 1, Len(a)) = a

JustDelivered == pc[Reader] = "next_drop"      \* `delivered` changes nowhere else

\* The beginning of the one and only output: nothing twice, nothing left out, nothing unfinished.
InOrder == JustDelivered => IsPrefix(delivered, WholeOutput)

\* The first tuple of each key and window is the first one in the order (ts, input, position), ties included.
FirstsInOrder == JustDelivered => firsts = [i \in DOMAIN delivered |-> FirstsIn(delivered[i][1])]

\* Nothing has come out to which some thread could still contribute.
OnlyComplete == \A i \in DOMAIN delivered : Order!IsComplete(delivered[i][1], PromisesOf(Published))

\* Every terminal state has the same output (for a reader that asks until everything is out).
SameOutput == AllDone => delivered = OutputAtLast /\ firsts = [i \in DOMAIN delivered |-> FirstsIn(delivered[i][1])]

-----------------------------------------------------------------------------
\* The structure (I1 to I6)

TypeOK ==
  /\ \A n \in Nodes : next[n] \in Nodes \cup {Null}
  /\ \A n \in Nodes : slice[n].begin \in 0 .. 99 /\ slice[n].position \in 0 .. 99 \cup {Forever}
  /\ \A n \in Nodes : \A key \in DOMAIN slice[n].partials : slice[n].partials[key].sum \in Nat
  /\ \A t \in Threads : begin_ts[t] \in 0 .. 99 \cup {Forever} /\ last[t] \in Nodes /\ last[t][1] = t
  /\ lock \in Threads \cup {0}
  /\ freed \subseteq Nodes /\ held \subseteq Nodes
  /\ \A t \in Threads : cursor[t] \in Nodes /\ cursor[t][1] = t /\ seen[t] = slice[cursor[t]].position
  /\ j \in Threads /\ passed \in -1 .. 99 /\ asked \in 0 .. Polls

\* The nodes of a list from n on, in order.
RECURSIVE ListFrom(_)
ListFrom(n) == IF n = Null THEN << >> ELSE <<n>> \o ListFrom(next[n])
List(t) == ListFrom(<<t, 0>>)
Linked(t) == {List(t)[i] : i \in DOMAIN List(t)}

EndToEnd ==                                                                                          \* I1
  \A t \in Threads :
    LET list == List(t)
    IN  /\ \A i \in 2 .. Len(list) : slice[list[i]].begin < slice[list[i]].position
        /\ \A i \in 2 .. Len(list) : slice[list[i]].begin = IF i = 2 THEN 0 ELSE slice[list[i - 1]].position
        /\ last[t] = list[Len(list)]
        /\ begin_ts[t] = IF Len(list) = 1 THEN 0 ELSE slice[last[t]].position

EachTupleOnce ==                                                                                     \* I2
  \A t \in Threads :
    LET places == PlacesUpTo(t, Published[t])
        Between(from, to) == PartialsOf({p \in places : from <= p[1] /\ p[1] < to})
    IN  /\ \A n \in Linked(t) : n[2] > 0 => slice[n].partials = Between(slice[n].begin, slice[n].position)
        /\ partials[t] = Between(begin_ts[t], Forever)

SlicesFit ==                                                                                         \* I3
  \A t \in Threads : \A n \in Linked(t) :
    \A p \in PlacesUpTo(t, Published[t]) :
      slice[n].begin <= p[1] /\ p[1] < slice[n].position => WindowsAt(p[1]) = WindowsAt(slice[n].begin)

NodesAreConstant == [][\A t \in Threads : \A n \in Linked(t) : slice'[n] = slice[n]]_vars           \* I4

\* The slices that are alive are those of open windows; besides them, only the nodes on which the reader stands.
MemoryBound ==                                                                                       \* I5
  pc[Reader] # "next_drop" =>
    LET read == UNION {{n \in Linked(t) : n[2] <= cursor[t][2]} : t \in Threads}
    IN  /\ held = {n \in read : slice[n].partials # NoPartials /\ \E s \in WindowsAt(slice[n].begin) : s > passed}
        /\ read \ freed = held \cup {cursor[t] : t \in Threads}

NoUseAfterFree ==                                                                                    \* I6
  /\ \A t \in Threads : last[t] \notin freed /\ cursor[t] \notin freed
  /\ held \cap freed = {}

NothingFreed == freed = {}      \* must fail: otherwise I6 would say nothing
NothingShared == \A s \in {delivered[i][1] : i \in DOMAIN delivered} :   \* must fail: overlapping windows do reuse slices
                   \A n \in held : ~InWindow(s, slice[n].begin) \/ pc[Reader] = "next_drop"

-----------------------------------------------------------------------------
\* Each thread keeps running.

Stopped(p) == pc[p] = "stopped"
Step(p) == IF p = Reader THEN reader ELSE updater(p)

\* p can do something that shows; a poll that finds nothing does not, unless polls are counted.  The same as
\* ENABLED <<Step(p)>>_vars, which TLC takes very long to work out.
CanStep(p) ==
  /\ pc[p] # "Done" /\ ~Stopped(p)
  /\ pc[p] = "publish_lock" => lock = 0
  /\ pc[p] = "next_read" /\ Polls = 0 /\ ReadRule = "slowest" => next[cursor[j]] # Null \/ Lowest(seen, cursor) = Forever
CanStepMeansEnabled == \A p \in ProcSet : CanStep(p) <=> ENABLED <<Step(p)>>_vars

\* Weak fairness of one thread, and of all of them together.
KeepsRunning(p) == []<>~CanStep(p) \/ []<><<Step(p)>>_vars
SomeoneRuns == []<>(\A p \in ProcSet : ~CanStep(p)) \/ []<><<\E p \in ProcSet : Step(p)>>_vars

FairSpec == Spec /\ \A p \in ProcSet : KeepsRunning(p)

\* What is complete comes out, without anything else having to happen first (for a reader that asks for ever).
Complete == <>[](delivered = OutputAtLast)

AllFinish == <>AllDone

\* Wait-freedom: whoever runs finishes, whatever the others do.
WaitFree == \A p \in ProcSet : KeepsRunning(p) => <>(pc[p] = "Done")

-----------------------------------------------------------------------------
\* Any thread may stop for ever at any step; all that is promised is that some live thread runs.

Crash(p) == /\ pc[p] # "Done" /\ ~Stopped(p)
            /\ Cardinality({q \in ProcSet : Stopped(q)}) < CrashesMax
            /\ pc' = [pc EXCEPT ![p] = "stopped"]
            /\ UNCHANGED <<script, next, slice, lock, freed, delivered, firsts, turn, begin_ts, partials, last,
                           cursor, seen, held, passed, j, asked>>

CrashSpec == Init /\ [][Next \/ \E p \in ProcSet : Crash(p)]_vars /\ SomeoneRuns

LockFree == <>(\A p \in ProcSet : pc[p] = "Done" \/ Stopped(p))
=============================================================================
