------------------------------- MODULE Promises -------------------------------
(***************************************************************************)
(* Which heartbeats reach a design (ours; promises.h).                     *)
(*                                                                         *)
(* In a gate or a list of slices a heartbeat is a node.  An input that     *)
(* promises on and on while another is silent would fill the list with     *)
(* nodes that nobody can pass.  So a heartbeat is only noted: the input    *)
(* owes it.  When the output thread finds nothing to do, it looks for the  *)
(* input that holds it up, the one with the lowest (told, number), where   *)
(* told is what the design knows.  If that input owes a promise, the       *)
(* output thread takes its turn and tells the design; if not, nothing that *)
(* others owe can help.                                                    *)
(*                                                                         *)
(*   input   told   latest                                                 *)
(*     1       5     90      owes 90; not needed as long as input 2 is at 3*)
(*     2       3      3      holds everything up                           *)
(*                                                                         *)
(* What an input adds says more than what it owed.  The turn of an input   *)
(* is only tried, so an input that has found itself owing when its call    *)
(* began rings when the call is over.                                      *)
(*                                                                         *)
(* Designs with Marks (sliced) do not hear of every add: only the input    *)
(* that is marked rings, when it passes an edge; see WakeMarks.  Who owes  *)
(* is never marked.  There, heartbeats that pass no edge leave no node     *)
(* and are told at once.                                                   *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  Kept      when nothing moves any more, the design knows of enough *)
(*                 promises: the least that it was told is in the slice of *)
(*                 the least that was promised                             *)
(*   I2  Few       of the heartbeats that an input's design was told, at   *)
(*                 most one has not been passed                            *)
(* Guarantees                                                              *)
(*   G1  owes, latest and told change under the input's turn.  The output  *)
(*       thread looks at told and owes without it; the doorbell orders     *)
(*       what it must not miss.  (In C: operator_ring.)                    *)
(*                                                                         *)
(* Which C function a label stands for: README.md.                         *)
(***************************************************************************)
\* Seeded labels: output_late
EXTENDS Integers, FiniteSets

CONSTANTS
  InputCount,
  Calls,          \* of each input
  Most,           \* the greatest timestamp
  EdgeEvery,
  Marks,          \* whether adds ring only if they are marked
  (* The rules: the first value is ours, the others are seeded bugs. *)
  TellRule,       \* "lowest": the lowest input's promise is told; "any": all that are owed are
  RingRule,       \* "owed": who owed when its call began rings in the end; "owes": who owes in the end
  MarkRule,       \* "others": only who does not owe is marked; "any"
  ArmRule         \* "before": the doorbell is prepared before the last look; "after"

ASSUME /\ Marks \in BOOLEAN
       /\ TellRule \in {"lowest", "any"}
       /\ RingRule \in {"owed", "owes"}
       /\ MarkRule \in {"others", "any"}
       /\ ArmRule \in {"before", "after"}

Inputs == 1..InputCount
Output == InputCount + 1
Nobody == 0
Before(f, j, k) == f[j] < f[k] \/ (f[j] = f[k] /\ j <= k)
Lowest(f) == CHOOSE k \in Inputs : \A j \in Inputs : Before(f, k, j)
Slice(ts) == ts \div EdgeEvery

(* --algorithm promises
variables
  latest = [k \in Inputs |-> 0],
  told = [k \in Inputs |-> 0],
  owes = [k \in Inputs |-> FALSE],
  turn = [k \in Inputs |-> Nobody],
  marked = Nobody,
  rung = FALSE,
  beats = [k \in Inputs |-> {}];          \* heartbeats that the design was told, for Few

define
  Edge(k, ts) == Slice(ts) # Slice(told[k])
end define;

process input \in Inputs
variables calls = 0, owed = FALSE, rings = FALSE;
begin
call_begin:
  await turn[self] = Nobody;
  turn[self] := self;
  owed := owes[self];
  rings := FALSE;
call_note:
  with ts \in latest[self]..Most do
    either                                \* add
      rings := IF Marks THEN Edge(self, ts) /\ marked = self ELSE TRUE;
      told[self] := ts || latest[self] := ts || owes[self] := FALSE;
    or                                    \* heartbeat
      await ts > latest[self];
      if Marks /\ ~Edge(self, ts) then
        told[self] := ts || latest[self] := ts;
      else
        latest[self] := ts || owes[self] := TRUE;
      end if;
    end either;
  end with;
call_end:
  rings := rings \/ owes[self] \/ (RingRule = "owed" /\ owed);
  turn[self] := Nobody;
call_ring:
  if rings then rung := TRUE; end if;
  calls := calls + 1;
  either await calls < Calls; goto call_begin;
  or skip;                                \* an input may stop at any time, for ever
  end either;
end process;

process output = Output
variables low = 1, at = 1, seen = [k \in Inputs |-> 0], fresh = FALSE;
begin
output_arm:
  if ArmRule = "before" then rung := FALSE; end if;
output_scan:
  seen[at] := told[at];
  if at < InputCount then
    at := at + 1;
    goto output_scan;
  else
    at := 1;
    low := Lowest(seen);
  end if;
output_try:
  with k \in IF TellRule = "lowest" THEN {low}
             ELSE IF \E k \in Inputs : owes[k] /\ turn[k] = Nobody THEN {k \in Inputs : owes[k] /\ turn[k] = Nobody}
             ELSE {low} do
    if owes[k] /\ turn[k] = Nobody then
      turn[k] := Output;
      low := k;
    else
      goto output_choose;
    end if;
  end with;
output_tell:
  if owes[low] then
    beats[low] := beats[low] \cup {latest[low]};
    told[low] := latest[low] || owes[low] := FALSE;
  end if;
  turn[low] := Nobody;
  goto output_scan;
output_choose:
  with who \in {k \in Inputs : /\ Slice(seen[k]) = Slice(seen[low])
                               /\ MarkRule = "any" \/ ~owes[k]} \cup
               IF \A k \in Inputs : Slice(seen[k]) = Slice(seen[low]) => owes[k] THEN {Nobody} ELSE {} do
    fresh := Marks /\ marked # who;
    if Marks then marked := who; end if;
  end with;
  if fresh then                           \* look once more: what came before the mark
    goto output_scan;
  elsif ArmRule = "after" then
output_late:
    rung := FALSE;
  end if;
output_sleep:
  await rung;
  goto output_arm;
end process;
end algorithm; *)
\* BEGIN TRANSLATION PCal-18fa6492c53a1ab7bf6d4c8311c75941
VARIABLES latest, told, owes, turn, marked, rung, beats, pc

(* define statement *)
Edge(k, ts) == Slice(ts) # Slice(told[k])

VARIABLES calls, owed, rings, low, at, seen, fresh

vars == << latest, told, owes, turn, marked, rung, beats, pc, calls, owed, 
           rings, low, at, seen, fresh >>

ProcSet == (Inputs) \cup {Output}

Init == (* Global variables *)
        /\ latest = [k \in Inputs |-> 0]
        /\ told = [k \in Inputs |-> 0]
        /\ owes = [k \in Inputs |-> FALSE]
        /\ turn = [k \in Inputs |-> Nobody]
        /\ marked = Nobody
        /\ rung = FALSE
        /\ beats = [k \in Inputs |-> {}]
        (* Process input *)
        /\ calls = [self \in Inputs |-> 0]
        /\ owed = [self \in Inputs |-> FALSE]
        /\ rings = [self \in Inputs |-> FALSE]
        (* Process output *)
        /\ low = 1
        /\ at = 1
        /\ seen = [k \in Inputs |-> 0]
        /\ fresh = FALSE
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "call_begin"
                                        [] self = Output -> "output_arm"]

call_begin(self) == /\ pc[self] = "call_begin"
                    /\ turn[self] = Nobody
                    /\ turn' = [turn EXCEPT ![self] = self]
                    /\ owed' = [owed EXCEPT ![self] = owes[self]]
                    /\ rings' = [rings EXCEPT ![self] = FALSE]
                    /\ pc' = [pc EXCEPT ![self] = "call_note"]
                    /\ UNCHANGED << latest, told, owes, marked, rung, beats, 
                                    calls, low, at, seen, fresh >>

call_note(self) == /\ pc[self] = "call_note"
                   /\ \E ts \in latest[self]..Most:
                        \/ /\ rings' = [rings EXCEPT ![self] = IF Marks THEN Edge(self, ts) /\ marked = self ELSE TRUE]
                           /\ /\ latest' = [latest EXCEPT ![self] = ts]
                              /\ owes' = [owes EXCEPT ![self] = FALSE]
                              /\ told' = [told EXCEPT ![self] = ts]
                        \/ /\ ts > latest[self]
                           /\ IF Marks /\ ~Edge(self, ts)
                                 THEN /\ /\ latest' = [latest EXCEPT ![self] = ts]
                                         /\ told' = [told EXCEPT ![self] = ts]
                                      /\ owes' = owes
                                 ELSE /\ /\ latest' = [latest EXCEPT ![self] = ts]
                                         /\ owes' = [owes EXCEPT ![self] = TRUE]
                                      /\ told' = told
                           /\ rings' = rings
                   /\ pc' = [pc EXCEPT ![self] = "call_end"]
                   /\ UNCHANGED << turn, marked, rung, beats, calls, owed, low, 
                                   at, seen, fresh >>

call_end(self) == /\ pc[self] = "call_end"
                  /\ rings' = [rings EXCEPT ![self] = rings[self] \/ owes[self] \/ (RingRule = "owed" /\ owed[self])]
                  /\ turn' = [turn EXCEPT ![self] = Nobody]
                  /\ pc' = [pc EXCEPT ![self] = "call_ring"]
                  /\ UNCHANGED << latest, told, owes, marked, rung, beats, 
                                  calls, owed, low, at, seen, fresh >>

call_ring(self) == /\ pc[self] = "call_ring"
                   /\ IF rings[self]
                         THEN /\ rung' = TRUE
                         ELSE /\ TRUE
                              /\ rung' = rung
                   /\ calls' = [calls EXCEPT ![self] = calls[self] + 1]
                   /\ \/ /\ calls'[self] < Calls
                         /\ pc' = [pc EXCEPT ![self] = "call_begin"]
                      \/ /\ TRUE
                         /\ pc' = [pc EXCEPT ![self] = "Done"]
                   /\ UNCHANGED << latest, told, owes, turn, marked, beats, 
                                   owed, rings, low, at, seen, fresh >>

input(self) == call_begin(self) \/ call_note(self) \/ call_end(self)
                  \/ call_ring(self)

output_arm == /\ pc[Output] = "output_arm"
              /\ IF ArmRule = "before"
                    THEN /\ rung' = FALSE
                    ELSE /\ TRUE
                         /\ rung' = rung
              /\ pc' = [pc EXCEPT ![Output] = "output_scan"]
              /\ UNCHANGED << latest, told, owes, turn, marked, beats, calls, 
                              owed, rings, low, at, seen, fresh >>

output_scan == /\ pc[Output] = "output_scan"
               /\ seen' = [seen EXCEPT ![at] = told[at]]
               /\ IF at < InputCount
                     THEN /\ at' = at + 1
                          /\ pc' = [pc EXCEPT ![Output] = "output_scan"]
                          /\ low' = low
                     ELSE /\ at' = 1
                          /\ low' = Lowest(seen')
                          /\ pc' = [pc EXCEPT ![Output] = "output_try"]
               /\ UNCHANGED << latest, told, owes, turn, marked, rung, beats, 
                               calls, owed, rings, fresh >>

output_try == /\ pc[Output] = "output_try"
              /\ \E k \in IF TellRule = "lowest" THEN {low}
                          ELSE IF \E k \in Inputs : owes[k] /\ turn[k] = Nobody THEN {k \in Inputs : owes[k] /\ turn[k] = Nobody}
                          ELSE {low}:
                   IF owes[k] /\ turn[k] = Nobody
                      THEN /\ turn' = [turn EXCEPT ![k] = Output]
                           /\ low' = k
                           /\ pc' = [pc EXCEPT ![Output] = "output_tell"]
                      ELSE /\ pc' = [pc EXCEPT ![Output] = "output_choose"]
                           /\ UNCHANGED << turn, low >>
              /\ UNCHANGED << latest, told, owes, marked, rung, beats, calls, 
                              owed, rings, at, seen, fresh >>

output_tell == /\ pc[Output] = "output_tell"
               /\ IF owes[low]
                     THEN /\ beats' = [beats EXCEPT ![low] = beats[low] \cup {latest[low]}]
                          /\ /\ owes' = [owes EXCEPT ![low] = FALSE]
                             /\ told' = [told EXCEPT ![low] = latest[low]]
                     ELSE /\ TRUE
                          /\ UNCHANGED << told, owes, beats >>
               /\ turn' = [turn EXCEPT ![low] = Nobody]
               /\ pc' = [pc EXCEPT ![Output] = "output_scan"]
               /\ UNCHANGED << latest, marked, rung, calls, owed, rings, low, 
                               at, seen, fresh >>

output_choose == /\ pc[Output] = "output_choose"
                 /\ \E who \in {k \in Inputs : /\ Slice(seen[k]) = Slice(seen[low])
                                               /\ MarkRule = "any" \/ ~owes[k]} \cup
                               IF \A k \in Inputs : Slice(seen[k]) = Slice(seen[low]) => owes[k] THEN {Nobody} ELSE {}:
                      /\ fresh' = (Marks /\ marked # who)
                      /\ IF Marks
                            THEN /\ marked' = who
                            ELSE /\ TRUE
                                 /\ UNCHANGED marked
                 /\ IF fresh'
                       THEN /\ pc' = [pc EXCEPT ![Output] = "output_scan"]
                       ELSE /\ IF ArmRule = "after"
                                  THEN /\ pc' = [pc EXCEPT ![Output] = "output_late"]
                                  ELSE /\ pc' = [pc EXCEPT ![Output] = "output_sleep"]
                 /\ UNCHANGED << latest, told, owes, turn, rung, beats, calls, 
                                 owed, rings, low, at, seen >>

output_late == /\ pc[Output] = "output_late"
               /\ rung' = FALSE
               /\ pc' = [pc EXCEPT ![Output] = "output_sleep"]
               /\ UNCHANGED << latest, told, owes, turn, marked, beats, calls, 
                               owed, rings, low, at, seen, fresh >>

output_sleep == /\ pc[Output] = "output_sleep"
                /\ rung
                /\ pc' = [pc EXCEPT ![Output] = "output_arm"]
                /\ UNCHANGED << latest, told, owes, turn, marked, rung, beats, 
                                calls, owed, rings, low, at, seen, fresh >>

output == output_arm \/ output_scan \/ output_try \/ output_tell
             \/ output_choose \/ output_late \/ output_sleep

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == output
           \/ (\E self \in Inputs: input(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION TLA-a33141a9d7d54558558bb671b5458343

TypeOK ==
  /\ latest \in [Inputs -> 0..Most] /\ told \in [Inputs -> 0..Most]
  /\ owes \in [Inputs -> BOOLEAN] /\ turn \in [Inputs -> {Nobody, Output} \cup Inputs]
  /\ \A k \in Inputs : told[k] <= latest[k] /\ (owes[k] <=> told[k] < latest[k])

Least(f) == f[Lowest(f)]
Still == pc[Output] = "output_sleep" /\ ~rung /\ \A k \in Inputs : pc[k] = "Done"
Kept == Still => Slice(Least(told)) = Slice(Least(latest))                                           \* I1
Few == \A k \in Inputs : Cardinality({ts \in beats[k] : ts > Least(told)}) <= 1                      \* I2
=============================================================================
