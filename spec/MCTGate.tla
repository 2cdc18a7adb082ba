------------------------------- MODULE MCTGate -------------------------------
(*****************************************************************************)
(* T-Gate, bounded: what the inputs do, what every reader must see, threads  *)
(* that stop for ever, and who is scheduled fairly.                          *)
(*****************************************************************************)
EXTENDS TGate

CONSTANTS CrashesMax,    \* how many threads may stop for ever
          ReadsMax       \* reads that one insertion may take (departure 9)

-----------------------------------------------------------------------------
\* Scripts.  T: insert a tuple, H: heartbeat, C: close.

T(ts) == [kind |-> "tuple", ts |-> ts]
H(ts) == [kind |-> "heartbeat", ts |-> ts]
C == [kind |-> "close", ts |-> Forever]

One(script) == <<script>>

\* Equal timestamps within an input and across inputs; left open, or closed.
ScriptTies == One(<< <<T(1), T(1), T(2)>>,
                     <<T(1), T(2), T(2)>> >>)
ScriptTiesClosed == One(<< <<T(1), T(1), C>>,
                           <<T(1), T(2), C>> >>)
ScriptShort == One(<< <<T(1), T(2)>>,
                      <<T(1), T(1)>> >>)
ScriptShortClosed == One(<< <<T(1), C>>,
                            <<T(1), T(1), C>> >>)
\* The long ones.
ScriptLongClosed == One(<< <<T(1), T(1), T(2), C>>,
                           <<T(1), T(2), T(2), C>> >>)
ScriptThree == One(<< <<T(1), T(2)>>,
                      <<T(1), T(2)>>,
                      <<T(1), T(1)>> >>)
ScriptThreeClosed == One(<< <<T(1), C>>,
                            <<T(1), C>>,
                            <<T(1), C>> >>)
ScriptNothingThird == One(<< <<T(1), C>>,
                             <<T(1), C>>,
                             <<C>> >>)

\* The tuple of input 1 is ready as soon as that of input 2 is in.
ScriptOneEach == One(<< <<T(1)>>,
                        <<T(2)>> >>)
ScriptOneEachClosed == One(<< <<T(1), C>>,
                              <<T(1), C>> >>)
ScriptLate == One(<< <<T(1), T(3)>>,
                     <<T(2), T(2)>> >>)

\* Promises: one that an equal tuple follows, one that says nothing new, some in place of any tuple.
ScriptHeartbeats == One(<< <<T(1), H(2), T(2), H(1), C>>,
                           <<H(1), T(2), C>> >>)
ScriptIdle == One(<< <<T(1), T(2)>>,
                     <<H(1), H(2)>> >>)

\* All at once: a tie, a promise in place of tuples, a close.
ScriptMixed == One(<< <<T(1)>>,
                      <<T(1), C>>,
                      <<H(1)>> >>)

\* One input, all equal: what a quadratic search cannot hide.
ScriptEqual == One(<< <<T(1), T(1), T(1), T(1), T(1), T(1)>> >>)

\* All small scripts.  A stream is what one input does: up to n calls, tuples in order, close last, heartbeats as they
\* come: below the latest timestamp, equal to it, above it.
Streams(n, times) ==
  LET calls == {T(ts) : ts \in times} \cup {H(ts) : ts \in times} \cup {C}
  IN  {s \in UNION {[1 .. m -> calls] : m \in 0 .. n} :
         \A i, j \in DOMAIN s : i < j => s[i].kind # "close" /\ (s[j].kind = "tuple" => s[i].ts <= s[j].ts)}

RECURSIVE Listed(_)
Listed(set) == IF set = {} THEN << >> ELSE LET x == CHOOSE x \in set : TRUE IN <<x>> \o Listed(set \ {x})

\* Each of one list with each of the other.
Pairs(a, b) == [i \in 1 .. Len(a) * Len(b) |-> <<a[(i - 1) \div Len(b) + 1], b[((i - 1) % Len(b)) + 1]>>]

ScriptsSmall == Pairs(Listed(Streams(1, {1})), Listed(Streams(2, {1})))
ScriptsSmallTimes == Pairs(Listed(Streams(1, {1})), Listed(Streams(2, {1, 2})))
ScriptsAll == Pairs(Listed(Streams(2, {1, 2})), Listed(Streams(2, {1, 2})))

-----------------------------------------------------------------------------
\* What readers are promised

TupleNodes(s) == {n \in Nodes : KindOf[s][n] = "tuple"}

\* In the order (ts, input, position): a node's number says the rest.
FirstOf(s, nodes) == CHOOSE n \in nodes : \A m \in nodes : TsOf[s][n] < TsOf[s][m] \/ (TsOf[s][n] = TsOf[s][m] /\ n <= m)

RECURSIVE Merge(_, _)
Merge(s, nodes) == IF nodes = {} THEN << >> ELSE LET n == FirstOf(s, nodes) IN <<n>> \o Merge(s, nodes \ {n})

\* The latest timestamp of the first i calls of input k.
Latest(s, k, i) == LET times == {-1} \cup {Scripts[s][k][j].ts : j \in 1 .. i}
                   IN  CHOOSE ts \in times : \A other \in times : other <= ts

\* The whole output, a constant of the script: all tuples in order, and those of them that are ready in the end.
MergedOf == TLCEval([s \in DOMAIN Scripts |-> Merge(s, TupleNodes(s))])
Merged == MergedOf[chosen]

LastTs(s, k) == Latest(s, k, Len(Scripts[s][k]))
ReadyAtLastOf == TLCEval([s \in DOMAIN Scripts |-> Merge(s, {n \in TupleNodes(s) : \A k \in Inputs :
  TsOf[s][n] < LastTs(s, k) \/ (TsOf[s][n] = LastTs(s, k) /\ Input(n) <= k)})])
ReadyAtLast == ReadyAtLastOf[chosen]

\* Each reader has had the beginning of the one and only order: nothing twice, nothing left out, no marker.
InOrder == \A r \in Readers : IsPrefix(out[r], Merged)

\* Nothing has come out that some input could still have preceded.
OnlyReady == \A r \in Readers : \A i \in DOMAIN out[r] : \A k \in Inputs :
               LET n == out[r][i] IN written[k] # None /\ ~Before(written[k], n)

AllDone == \A p \in ProcSet : pc[p] = "Done"

\* Every terminal state has the same output, and it is complete (for readers that poll until the end).
SameOutput == AllDone => \A r \in Readers : out[r] = Merged

ShortSearch == \A k \in Inputs : reads[k] <= ReadsMax

-----------------------------------------------------------------------------
\* Each thread keeps running.

Step(p) == IF p \in Inputs THEN input(p) ELSE reader(p)
FairSpec == Spec /\ \A p \in ProcSet : WF_vars(Step(p))

\* What is ready comes out to every reader, without anything else having to happen first.
Complete == <>[](\A r \in Readers : out[r] = ReadyAtLast)

AllFinish == <>AllDone

-----------------------------------------------------------------------------
\* Any thread may stop for ever at any step; all that is promised is that some live thread runs.

Stopped(p) == pc[p] = "stopped"
Crash(p) == /\ pc[p] # "Done" /\ ~Stopped(p)
            /\ Cardinality({q \in ProcSet : Stopped(q)}) < CrashesMax
            /\ pc' = [pc EXCEPT ![p] = "stopped"]
            /\ UNCHANGED <<chosen, next, written, locked, out, asked, op, level, cur, found, height, hint, reads, head, peek>>

CrashSpec == Init /\ [][Next \/ \E p \in ProcSet : Crash(p)]_vars /\ WF_vars(Next)

LockFree == <>(\A p \in ProcSet : pc[p] = "Done" \/ Stopped(p))
==============================================================================
