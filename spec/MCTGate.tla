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

\* Equal timestamps within an input and across inputs; left open, or closed.
ScriptTies == << <<T(1), T(1), T(2)>>,
                 <<T(1), T(2), T(2)>> >>
ScriptTiesClosed == << <<T(1), T(1), C>>,
                       <<T(1), T(2), C>> >>
ScriptShort == << <<T(1), T(2)>>,
                  <<T(1), T(1)>> >>
ScriptShortClosed == << <<T(1), C>>,
                        <<T(1), T(1), C>> >>
\* The long ones.
ScriptLongClosed == << <<T(1), T(1), T(2), C>>,
                       <<T(1), T(2), T(2), C>> >>
ScriptThree == << <<T(1), T(2)>>,
                  <<T(1), T(2)>>,
                  <<T(1), T(1)>> >>
ScriptThreeClosed == << <<T(1), C>>,
                        <<T(1), C>>,
                        <<T(1), C>> >>
ScriptNothingThird == << <<T(1), C>>,
                         <<T(1), C>>,
                         <<C>> >>

\* The tuple of input 1 is ready as soon as that of input 2 is in.
ScriptOneEach == << <<T(1)>>,
                    <<T(2)>> >>
ScriptLate == << <<T(1), T(3)>>,
                 <<T(2), T(2)>> >>

\* Promises: one that an equal tuple follows, one that says nothing new, some in place of any tuple.
ScriptHeartbeats == << <<T(1), H(2), T(2), H(1), C>>,
                       <<H(1), T(2), C>> >>
ScriptIdle == << <<T(1), T(2)>>,
                 <<H(1), H(2)>> >>

\* All at once: a tie, a promise in place of tuples, a close.
ScriptMixed == << <<T(1)>>,
                  <<T(1), C>>,
                  <<H(1)>> >>

\* One input, all equal: what a quadratic search cannot hide.
ScriptEqual == << <<T(1), T(1), T(1), T(1), T(1), T(1)>> >>

-----------------------------------------------------------------------------
\* What readers are promised

TupleNodes == {n \in Nodes : IsTuple(n)}
FirstOf(nodes) == CHOOSE n \in nodes : \A m \in nodes : ~Before(m, n)

RECURSIVE Merge(_)
Merge(nodes) == IF nodes = {} THEN << >> ELSE LET n == FirstOf(nodes) IN <<n>> \o Merge(nodes \ {n})

\* The whole output, a constant of the script: all tuples in order, and those of them that are ready in the end.
Merged == TLCEval(Merge(TupleNodes))

LastTs(k) == LET times == {-1} \cup {Script[k][i].ts : i \in DOMAIN Script[k]}
             IN  CHOOSE ts \in times : \A other \in times : other <= ts
ReadyAtLast == TLCEval(
  Merge({n \in TupleNodes : \A k \in Inputs : Ts[n] < LastTs(k) \/ (Ts[n] = LastTs(k) /\ Input(n) <= k)}))

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
            /\ UNCHANGED <<next, written, locked, out, asked, op, level, cur, found, height, hint, reads, head, peek>>

CrashSpec == Init /\ [][Next \/ \E p \in ProcSet : Crash(p)]_vars /\ WF_vars(Next)

LockFree == <>(\A p \in ProcSet : pc[p] = "Done" \/ Stopped(p))
==============================================================================
