---------------------------- MODULE TGateMonitor ----------------------------
(***************************************************************************)
(* Linearizability without chosen points.  Beside T-Gate runs a monitor    *)
(* that sees only when calls begin and with what they end, and holds every *)
(* abstract configuration this history allows: which calls have taken      *)
(* effect, and what the readers in the middle of a call will be told.  A   *)
(* call that has begun may take effect at any time; when it ends, the      *)
(* configurations in which it has not, or gave another answer, are struck  *)
(* out.  No configuration left: no order of the calls explains the history.*)
(*                                                                         *)
(* A call begins with its first step and ends with its last, the tightest  *)
(* interval there is.                                                      *)
(***************************************************************************)
EXTENDS MCTGate

VARIABLES called,    \* called[k]: number of the last call that input k has begun
          configs

monitored == <<vars, called, configs>>

Idle == -2           \* a reader's state in a configuration: between calls, before or after its call takes effect
Asking == -1         \* (after: the node it will be told, or None)

-----------------------------------------------------------------------------
\* The abstract gate, from the script alone: what is ready, in order, after so many calls of each input.

Progress == {f \in [Inputs -> 0 .. 9] : \A k \in Inputs : f[k] <= CallsMax[k]}
ProgressOf(s) == {f \in Progress : \A k \in Inputs : f[k] <= Len(Scripts[s][k])}

ReadyAfterOf == TLCEval([s \in DOMAIN Scripts |-> TLCEval([f \in ProgressOf(s) |->
  Merge(s, {n \in TupleNodes(s) : /\ Number(n) <= f[Input(n)]
                                  /\ \A k \in Inputs : \/ TsOf[s][n] < Latest(s, k, f[k])
                                                       \/ TsOf[s][n] = Latest(s, k, f[k]) /\ Input(n) <= k})])])
ReadyAfter == ReadyAfterOf[chosen]

-----------------------------------------------------------------------------
\* What may happen next inside a configuration: a call that has begun takes effect.

InsertTakesEffect(c, begun) == {[c EXCEPT !.applied[k] = @ + 1] : k \in {j \in Inputs : c.applied[j] < begun[j]}}

GetTakesEffect(c) ==
  {IF c.had[r] < Len(ReadyAfter[c.applied])
     THEN [c EXCEPT !.had[r] = @ + 1, !.told[r] = ReadyAfter[c.applied][c.had[r] + 1]]
     ELSE [c EXCEPT !.told[r] = None] : r \in {q \in Readers : c.told[q] = Asking}}

RECURSIVE Closure(_, _)
Closure(cs, begun) ==
  LET more == cs \cup UNION {InsertTakesEffect(c, begun) \cup GetTakesEffect(c) : c \in cs}
  IN  IF more = cs THEN cs ELSE Closure(more, begun)

-----------------------------------------------------------------------------
ObserveInput(k) ==
  IF op[k] > Len(Script[k])
    THEN UNCHANGED <<called, configs>>
    ELSE /\ called' = [called EXCEPT ![k] = op[k]]
         /\ LET possible == IF called[k] = op[k] THEN configs ELSE Closure(configs, called')
            IN  configs' = IF op'[k] = op[k] THEN possible ELSE {c \in possible : c.applied[k] = op[k]}

Answer(r) == IF Len(out'[r]) > Len(out[r]) THEN out'[r][Len(out'[r])] ELSE None

ObserveReader(r) ==
  /\ UNCHANGED called
  /\ LET begins == pc'[r] # "Done" /\ \E c \in configs : c.told[r] = Idle
         possible == IF begins THEN Closure({[c EXCEPT !.told[r] = Asking] : c \in configs}, called) ELSE configs
     IN  configs' = IF asked'[r] = asked[r]
                      THEN possible
                      ELSE {[c EXCEPT !.told[r] = Idle] : c \in {d \in possible : d.told[r] = Answer(r)}}

MonitorInit == /\ Init
               /\ called = [k \in Inputs |-> 0]
               /\ configs = {[applied |-> [k \in Inputs |-> 0],
                              had |-> [r \in Readers |-> 0],
                              told |-> [r \in Readers |-> Idle]]}

MonitorNext == \/ \E k \in Inputs : input(k) /\ ObserveInput(k)
               \/ \E r \in Readers : reader(r) /\ ObserveReader(r)

MonitorSpec == MonitorInit /\ [][MonitorNext]_monitored

Linearizable == configs # {}
=============================================================================
