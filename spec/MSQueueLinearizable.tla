------------------------ MODULE MSQueueLinearizable -------------------------
(***************************************************************************)
(* Theorem: every history of MSQueue is linearizable, by the monitor of    *)
(* Histories; no linearization points are named.                           *)
(***************************************************************************)
EXTENDS MSQueue

VARIABLE configs

\* Only the constant operator Outcomes of Fifo is used; its variables are bound to anything.
Abstract == INSTANCE Fifo WITH Room <- Nodes - 1, queue <- answers, answers <- answers, busy <- answers, seen <- answers
Outcomes(state, t, op) == Abstract!Outcomes(state, op)
H == INSTANCE Histories

MonitorInit == configs = H!Start(<< >>, Threads)

MonitorStep(t) ==                                                    \* beside a step of thread t
  LET called == IF pc[t] = "start" \/ H!IsOpen(configs, t) THEN configs
                ELSE H!Call(configs, t, Script[t][Len(answers[t]) + 1])
  IN  configs' = IF Len(answers'[t]) = Len(answers[t]) THEN called
                 ELSE H!Answer(called, t, answers'[t][Len(answers'[t])])

Linearizable == configs # {}
=============================================================================
