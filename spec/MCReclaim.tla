----------------------------- MODULE MCReclaim ------------------------------
(***************************************************************************)
(* Models of Reclaim: scripts, bounds, crashes, fairness.                  *)
(***************************************************************************)
EXTENDS Reclaim

CONSTANT CrashesMax

VARIABLE crashed

\* <<ts, height>>; equal timestamps across and within inputs.
ScriptOne == <<<<<<10, 2>>, <<20, 1>>, <<20, 2>>>>>>
ScriptTies == <<<<<<10, 2>>, <<10, 1>>>>, <<<<10, 2>>>>>>
\* Input 1 runs ahead, is idle while input 2 catches up, and comes back with a hint that lies in freed memory.
ScriptIdle == <<<<<<50, 1>>, <<60, 1>>>>, <<<<10, 2>>>>>>
\* The same, long enough for a later front to lie where the first one lay.
ScriptReuse == <<<<<<50, 1>>, <<60, 1>>>>, <<<<10, 2>>, <<30, 2>>>>>>
\* Front moves while tall nodes are linked behind it.
ScriptTall == <<<<<<10, 2>>>>, <<<<10, 1>>, <<20, 2>>>>>>
ScriptShort == <<<<<<10, 1>>, <<30, 1>>>>, <<<<20, 1>>>>>>
ScriptPair == <<<<<<10, 2>>>>, <<<<10, 2>>>>>>
ScriptAhead == <<<<<<50, 1>>>>, <<<<10, 2>>>>>>
\* The long one.
ScriptFour == <<<<<<10, 2>>, <<10, 1>>>>, <<<<10, 1>>, <<20, 2>>>>>>

allVars == <<vars, crashed>>
Live == Threads \ crashed
Step(t) == (IF t \in Inputs THEN input(t) ELSE reader(t)) /\ UNCHANGED crashed
SomeStep == \E t \in Live : Step(t)
Crash == /\ Cardinality(crashed) < CrashesMax
         /\ \E t \in {t \in Live : pc[t] # "Done"} : crashed' = crashed \cup {t}
         /\ UNCHANGED vars

Plain == Init /\ crashed = {} /\ [][SomeStep \/ Crash]_allVars
LockFree == Plain /\ WF_allVars(SomeStep)
Fair == Plain /\ \A t \in Threads : WF_allVars(t \in Live /\ Step(t))
-----------------------------------------------------------------------------
AllLiveFinish == <>(\A t \in Threads : t \in crashed \/ pc[t] = "Done")

\* Readers have been everywhere, and whatever lies before front is freed.
AllFreedAtEnd == <>[](freed = {n \in Nodes : Before(n, FrontAtEnd)})

\* A thread that stops outside a call holds nothing: front follows the readers and what is before it is freed.
OutsideHoldsNothing == <>[](\/ 101 \in crashed
                            \/ \E k \in crashed \cap Inputs : Inside(k)
                            \/ Garbage = {})

\* A busy input does not starve reclamation: once the call that was noted has ended, it is waited for no longer, although
\* other calls of that input may be under way whenever one looks.  Only the reclaimer is fair: an input that stops
\* for ever inside a later call is what it would look like if it were always busy.
ReclaimerFair == Plain /\ WF_allVars(101 \in Live /\ Step(101))
Noted(k) == waiting[101][k] \notin {0, Nil}
BusyHoldsNothing == \A k \in Inputs : (Noted(k) /\ active[k] # waiting[101][k]) ~> ~Noted(k)

\* At the end: every reader has walked over all there is, in order, and only the end of the list is left.
DoneMeansDone ==
  (crashed = {} /\ PollsMax = 0 /\ \A t \in Threads : pc[t] = "Done") =>
    /\ \A r \in Readers : head[100 + r] = Final /\ passed[r] = Cardinality({n \in Nodes : Before(n, Final)})
    /\ freed = {n \in Nodes : Before(n, FrontAtEnd)}
=============================================================================
