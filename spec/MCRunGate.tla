------------------------------ MODULE MCRunGate ------------------------------
(*****************************************************************************)
(* Run-Gate, bounded: what the inputs do, what every reader must see,        *)
(* threads that stop for ever, and who is scheduled fairly.                  *)
(*****************************************************************************)
EXTENDS RunGate

CONSTANT CrashesMax      \* how many threads may stop for ever

-----------------------------------------------------------------------------
\* Scripts.  R: insert a run, P: a run with a promise beyond its tuples, H: heartbeat, C: close.

R(tuples) == [tuples |-> tuples, last |-> tuples[Len(tuples)]]
P(tuples, ts) == [tuples |-> tuples, last |-> ts]
H(ts) == P(<< >>, ts)
C == H(Forever)

\* Equal timestamps within a run, from run to run and across inputs; left open, or closed.
ScriptTies == << <<R(<<1, 1>>), R(<<1, 2>>)>>,
                 <<R(<<1, 2>>), R(<<2>>)>> >>
ScriptTiesClosed == << <<R(<<1, 1>>), R(<<1, 2>>), C>>,
                       <<R(<<1, 2>>), P(<<2, 2>>, Forever)>> >>
ScriptShort == << <<R(<<1>>), R(<<2>>)>>,
                  <<R(<<1, 1>>)>> >>
ScriptShortClosed == << <<R(<<1, 2>>), C>>,
                        <<R(<<1, 1>>), C>> >>
ScriptThree == << <<R(<<1>>), R(<<1, 2>>)>>,
                  <<R(<<1, 2>>)>>,
                  <<R(<<1, 1>>), H(2)>> >>
ScriptThreeClosed == << <<R(<<1, 1>>), C>>,
                        <<R(<<1>>), R(<<1>>), C>>,
                        <<H(1), P(<<1>>, Forever)>> >>
ScriptThreeShort == << <<P(<<1, 1>>, Forever)>>,
                       <<R(<<1>>), C>>,
                       <<P(<<1>>, Forever)>> >>

\* The tuple of input 1 is ready as soon as that of input 2 is in.
ScriptOneEach == << <<R(<<1>>)>>,
                    <<R(<<2>>)>> >>

\* Input 2 has promised more than the head of input 1, and less than what follows in that run.
ScriptLate == << <<R(<<1, 3>>), R(<<4>>)>>,
                 <<H(2), R(<<2, 3>>)>> >>

\* Runs that a short block cuts, one of them among equal timestamps.
ScriptLong == << <<R(<<1, 2, 2, 2, 3>>)>>,
                 <<R(<<2, 2, 2>>), R(<<3>>)>> >>
ScriptLongClosed == << <<R(<<1, 2, 2, 2, 3>>), C>>,
                       <<R(<<2, 2, 2, 3>>), C>> >>

\* Promises: one that an equal tuple follows, one that says nothing new, one on a run with tuples, several in a row.
ScriptHeartbeats == << <<P(<<1>>, 2), R(<<2>>), H(1), H(3), C>>,
                       <<H(1), H(2), R(<<2, 3>>), C>> >>
ScriptIdle == << <<R(<<1>>), R(<<2>>)>>,
                 <<H(1), H(2)>> >>

\* All at once: ties, a promise in place of tuples, a close.
ScriptMixed == << <<R(<<1, 2>>), C>>,
                  <<R(<<1>>), R(<<1, 2>>)>>,
                  <<H(1), R(<<1>>), C>> >>

-----------------------------------------------------------------------------
\* What readers are promised

IsPrefix(a, b) == Len(a) <= Len(b) /\ \A i \in DOMAIN a : a[i] = b[i]

\* What input k has promised once its call number i is over.
LatestAfter(k, i) == LET times == {-1} \cup {Script[k][j].last : j \in 1 .. i}
                     IN  CHOOSE ts \in times : \A other \in times : other <= ts

\* The whole output, a constant of the script: all tuples in order, and those of them that are ready in the end.
Merged == TLCEval(Merge(AllTuples))
ReadyAtLast == TLCEval(
  Merge({t \in AllTuples : \A k \in Inputs : LET latest == LatestAfter(k, Len(Script[k]))
                                             IN  t[1] < latest \/ (t[1] = latest /\ t[2] <= k)}))

\* Each reader has had the beginning of the one and only order: nothing twice, nothing left out.
InOrder == \A r \in Readers : IsPrefix(out[r], Merged)

\* Nothing has come out that some input could still have preceded.
OnlyReady == \A r \in Readers : \A i \in DOMAIN out[r] : \A k \in Inputs :
               LET t == out[r][i]
                   latest == IF Number(tail[k]) = 0 THEN -1 ELSE Last[tail[k]]
               IN  t[1] < latest \/ (t[1] = latest /\ t[2] <= k)

AllDone == \A p \in ProcSet : pc[p] = "Done"

\* Every terminal state has the same output, and it is complete (for readers that poll until the end).
SameOutput == AllDone => \A r \in Readers : out[r] = Merged

-----------------------------------------------------------------------------
\* Each thread keeps running.

Step(p) == IF p \in Inputs THEN input(p) ELSE reader(p)
FairSpec == Spec /\ \A p \in ProcSet : WF_vars(Step(p))

\* What is ready comes out to every reader, without anything else having to happen first.
Complete == <>[](\A r \in Readers : out[r] = ReadyAtLast)

AllFinish == <>AllDone

\* Of each input only the last run remains (when all of them have to be read to get at everything).
FreedAtLast == <>[](freed = {n \in Runs : ~Skipped[n]} \ {tail[k] : k \in Inputs})

-----------------------------------------------------------------------------
\* Any thread may stop for ever at any step; all that is promised is that some live thread runs.

Stopped(p) == pc[p] = "stopped"
Crash(p) == /\ pc[p] # "Done" /\ ~Stopped(p)
            /\ Cardinality({q \in ProcSet : Stopped(q)}) < CrashesMax
            /\ pc' = [pc EXCEPT ![p] = "stopped"]
            /\ UNCHANGED <<next, filled, holders, freed, locked, out, asked, op, tail, cursor, at, leaving, ahead, seen>>

CrashSpec == Init /\ [][Next \/ \E p \in ProcSet : Crash(p)]_vars /\ WF_vars(Next)

LockFree == <>(\A p \in ProcSet : pc[p] = "Done" \/ Stopped(p))

\* More than that: whatever the others do or leave undone, a thread that keeps running finishes (scripts are finite).
WaitFree == \A p \in ProcSet : WF_vars(Step(p)) => <>(pc[p] = "Done")
==============================================================================
