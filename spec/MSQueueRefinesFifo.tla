------------------------ MODULE MSQueueRefinesFifo --------------------------
(***************************************************************************)
(* Theorem: MSQueue implements Fifo.  Linearization points: the successful *)
(* CAS of `next` for enqueue, of `head` for dequeue; the read of an empty  *)
(* pool for "full".  Answers without effect are right at some moment of    *)
(* their call; `busy` and `seen` are history variables that say so.        *)
(***************************************************************************)
EXTENDS MSQueue

VARIABLES busy, seen

TookEffect(t) == pc[t] \in HasLinked \cup HasRemoved                 \* and has not answered yet
Answers == [t \in Threads |-> IF pc[t] \in HasLinked THEN Append(answers[t], Ok)
                              ELSE IF pc[t] \in HasRemoved THEN Append(answers[t], got[t])
                              ELSE answers[t]]

F == INSTANCE Fifo WITH queue <- Contents, answers <- Answers, busy <- busy, seen <- seen, Room <- Nodes - 1

RefineInit == F!Init

RefineStep(t) ==                                                     \* beside a step of thread t
  /\ busy' = [busy EXCEPT ![t] = ~(pc[t] = "start" \/ TookEffect(t) \/ Len(Answers'[t]) # Len(Answers[t]))]
  /\ seen' = [u \in Threads |-> IF ~busy'[u] THEN {}
                                ELSE seen[u] \cup F!WithoutEffect(Contents', Script[u][Len(Answers[u]) + 1])]

Refines == F!Spec
=============================================================================
