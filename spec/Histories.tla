----------------------------- MODULE Histories ------------------------------
(***************************************************************************)
(* Linearizability without linearization points.  A monitor carries the    *)
(* set of ALL abstract configurations that the calls and answers so far    *)
(* allow; the history is linearizable as long as the set is not empty.     *)
(*                                                                         *)
(* A configuration is an abstract state and, for each thread, where its    *)
(* call stands: Idle, open (no effect yet), or done with an answer that    *)
(* the thread has not given yet.  Any open call may take effect at any     *)
(* moment.  It is enough to let that happen right before an answer: a call *)
(* that takes effect earlier, with no answer in between, can wait.         *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANT Outcomes(_, _, _)      \* Outcomes(state, thread, operation): all <<state afterwards, answer>>

Idle == << >>

Start(state, threads) == {[state |-> state, calls |-> [t \in threads |-> Idle]]}

IsOpen(configs, t) == \E c \in configs : c.calls[t] # Idle

Call(configs, t, op) == {[c EXCEPT !.calls[t] = <<"open", op>>] : c \in configs}

Effects(c) ==
  UNION {{[state |-> o[1], calls |-> [c.calls EXCEPT ![t] = <<"done", o[2]>>]] :
            o \in Outcomes(c.state, t, c.calls[t][2])} :
         t \in {t \in DOMAIN c.calls : c.calls[t] # Idle /\ c.calls[t][1] = "open"}}

RECURSIVE AllEffects(_, _)
AllEffects(found, new) ==
  LET more == (UNION {Effects(c) : c \in new}) \ found
  IN  IF more = {} THEN found ELSE AllEffects(found \cup more, more)

Answer(configs, t, answer) ==
  {[c EXCEPT !.calls[t] = Idle] : c \in {c \in AllEffects(configs, configs) : c.calls[t] = <<"done", answer>>}}
=============================================================================
