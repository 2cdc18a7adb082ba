--------------------------- MODULE RunGateMonitor ---------------------------
(***************************************************************************)
(* Linearizability without chosen points.  Beside Run-Gate runs a monitor  *)
(* that sees only when calls begin and with what they end, and holds every *)
(* abstract configuration this history allows: which calls have taken      *)
(* effect, and what the readers in the middle of a call will be told.  A   *)
(* call that has begun may take effect at any time; when it ends, the      *)
(* configurations in which it has not, or gave another answer, are struck  *)
(* out.  No configuration left: no order of the calls explains the history.*)
(*                                                                         *)
(* A run takes effect as a whole.  A call that takes many may be told any  *)
(* number of ready tuples, but null only if there are none.  A call begins *)
(* with its first step and ends with its last, the tightest interval there *)
(* is.                                                                     *)
(***************************************************************************)
EXTENDS MCRunGate

VARIABLES called,    \* called[k]: number of the last call that input k has begun
          configs

monitored == <<vars, called, configs>>

\* A reader's state in a configuration: between calls, before or after its call takes effect (after: what it will be told).
Idle == << <<None>> >>
Asking == << <<Unknown>> >>
Null == << >>

-----------------------------------------------------------------------------
\* The abstract gate, from the script alone: what is ready, in order, after so many calls of each input.

Progress == {f \in [Inputs -> 0 .. 9] : \A k \in Inputs : f[k] <= Len(Script[k])}

ReadyAfter == TLCEval([f \in Progress |->
  LET arrived == UNION {UNION {{Tuples[Run(k, i)][j] : j \in DOMAIN Tuples[Run(k, i)]} : i \in 1 .. f[k]} : k \in Inputs}
  IN  Merge({t \in arrived : \A k \in Inputs : LET latest == LatestAfter(k, f[k])
                                               IN  t[1] < latest \/ (t[1] = latest /\ t[2] <= k)})])

-----------------------------------------------------------------------------
\* What may happen next inside a configuration: a call that has begun takes effect.

InsertTakesEffect(c, begun) == {[c EXCEPT !.applied[k] = @ + 1] : k \in {j \in Inputs : c.applied[j] < begun[j]}}

TellsSome(c, r) ==
  LET ready == ReadyAfter[c.applied]
      most == IF GetRule = "one" THEN c.had[r] + 1 ELSE Len(ready)
  IN  IF c.had[r] < Len(ready)
        THEN {[c EXCEPT !.had[r] = n, !.told[r] = SubSeq(ready, c.had[r] + 1, n)] : n \in c.had[r] + 1 .. most}
        ELSE {[c EXCEPT !.told[r] = Null]}

GetTakesEffect(c) == UNION {TellsSome(c, r) : r \in {q \in Readers : c.told[q] = Asking}}

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

Answer(r) == SubSeq(out'[r], Len(out[r]) + 1, Len(out'[r]))

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
