----------------------------- MODULE MCMSQueue ------------------------------
(***************************************************************************)
(* Models of MSQueue: scripts, bounds, crashes, fairness.                  *)
(***************************************************************************)
EXTENDS MSQueueRefinesFifo, MSQueueLinearizable

CONSTANT CrashesMax

VARIABLE crashed

E(v) == <<"enqueue", v>>
D == <<"dequeue", 0>>
P == <<"peek", 0>>
Q == <<"is_empty", 0>>

\* The use in MQ_LF: one input thread adds, the merging thread looks, takes and asks.
ScriptPair == <<<<E(11), E(12), E(13)>>, <<P, D, Q, D, D>>>>
\* One enqueuer and two dequeuers; two enqueuers and one dequeuer; each does both; a third thread only looks.
ScriptTwoOut == <<<<E(11), E(12)>>, <<D, D>>, <<D>>>>
ScriptTwoIn == <<<<E(11)>>, <<E(21)>>, <<D, D>>>>
ScriptIn == <<<<E(11)>>, <<E(21)>>>>
ScriptMixed == <<<<E(11), D>>, <<D, E(21)>>, <<D>>>>
ScriptPeeks == <<<<E(11), E(12)>>, <<D, D>>, <<P>>>>
ScriptAsks == <<<<E(11)>>, <<D>>, <<Q, P>>>>
ScriptStale == <<<<E(11), E(12)>>, <<E(21)>>, <<D, D, D>>>>
\* The long ones.
ScriptThree == <<<<E(11), E(12)>>, <<E(21), D>>, <<D, D>>>>
ScriptThreePeek == <<<<E(11), D, E(12)>>, <<D, E(21)>>, <<P, D>>>>

allVars == <<vars, busy, seen, configs, crashed>>
history == <<busy, seen, configs>>
NoHistory == busy = FALSE /\ seen = FALSE /\ configs = FALSE

Live == Threads \ crashed
Step(t) == thread(t) /\ UNCHANGED <<history, crashed>>
SomeStep == \E t \in Live : Step(t)
Crash == /\ Cardinality(crashed) < CrashesMax
         /\ \E t \in {t \in Live : pc[t] # "Done"} : crashed' = crashed \cup {t}
         /\ UNCHANGED <<vars, history>>

\* The plain algorithm; with one scheduler that only promises that somebody alive moves; with every thread moving.
Plain == Init /\ NoHistory /\ crashed = {} /\ [][SomeStep \/ Crash]_allVars
LockFree == Plain /\ WF_allVars(SomeStep)
Fair == Plain /\ \A t \in Threads : WF_allVars(Step(t))

RefineStepOf(t) == thread(t) /\ RefineStep(t) /\ UNCHANGED <<configs, crashed>>
Refining == Init /\ RefineInit /\ configs = FALSE /\ crashed = {} /\ [][\E t \in Threads : RefineStepOf(t)]_allVars

MonitorStepOf(t) == thread(t) /\ MonitorStep(t) /\ UNCHANGED <<busy, seen, crashed>>
Monitored == /\ Init /\ MonitorInit /\ busy = FALSE /\ seen = FALSE /\ crashed = {}
             /\ [][\E t \in Threads : MonitorStepOf(t)]_allVars
-----------------------------------------------------------------------------
AllLiveFinish == <>(\A t \in Threads : t \in crashed \/ pc[t] = "Done")
=============================================================================
