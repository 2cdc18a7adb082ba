-------------------------------- MODULE WakeMarks --------------------------------
(***************************************************************************)
(* Who wakes the output thread of the sliced design, and when (ours).      *)
(*                                                                         *)
(* An input hands over a slice when it passes an edge, and says with every *)
(* add how far it has come, its promise.  The output thread needs to hear  *)
(* of very few of these adds.  So each input has a word of marks that the  *)
(* output thread sets, and that the input reads after each add:            *)
(*                                                                         *)
(*   edge   on one input, whose next slice is missing: tell me when you    *)
(*          have passed an edge.  Until then no window can be complete     *)
(*   any    on all inputs, while somebody waits for room: tell me of every *)
(*          add, because it may make tuples of others ready, and only I    *)
(*          can count them out (settle)                                    *)
(*                                                                         *)
(* The doorbell is that of Operator: prepare, look once more, sleep.       *)
(*                                                                         *)
(* Tuple n of every input has timestamp n; an edge lies before every       *)
(* EdgeEvery-th of them.  Window n is complete when all inputs have handed *)
(* over n slices.  A tuple is ready when all inputs have come to it.  An   *)
(* input may stop at any time, for ever.                                   *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  Delivered   when nothing moves any more, all complete windows are *)
(*                   out                                                   *)
(*   I2  Roomy       ... and who still waits for room waits for tuples     *)
(*                   that are not ready                                    *)
(*   I3  InTime      no window is out before it is complete                *)
(* Guarantee                                                               *)
(*   G1  The input's add_watch and the output thread's output_mark are     *)
(*       read-modify-writes of one word: either the mark is found, or the  *)
(*       look that follows the mark finds the add.  (In C: acquire and     *)
(*       release, as for the doorbell's tickets.)                          *)
(*                                                                         *)
(* Why any input with the lowest position will do as the one to be watched *)
(* (output_choose takes any): new slices begin at the lowest position or   *)
(* behind it, so windows that they bring end behind it; nothing is         *)
(* complete before every input has left the lowest position.               *)
(*                                                                         *)
(* Which C function a label stands for: README.md.                         *)
(***************************************************************************)
\* Seeded labels: add_early
EXTENDS Integers, FiniteSets

CONSTANTS
  InputCount,
  Tuples,         \* of each input
  EdgeEvery,
  MaxPending,     \* tuples of an input that may be held
  (* The rules: the first value is ours, the others are seeded bugs. *)
  LookRule,       \* "after": look again after the marks; "before": sleep at once
  TellRule,       \* "after": the input reads its marks after the add; "before"
  WantRule,       \* "mark_first": then ring; "ring_first"
  PressRule,      \* "all": all inputs are marked; "none": edges must do
  TargetRule      \* "lowest": an input with the lowest position; "behind": any that has not come to the next window's end

ASSUME /\ LookRule \in {"after", "before"}
       /\ TellRule \in {"after", "before"}
       /\ WantRule \in {"mark_first", "ring_first"}
       /\ PressRule \in {"all", "none"}
       /\ TargetRule \in {"lowest", "behind"}

Inputs == 1..InputCount
Output == InputCount + 1
Nobody == 0
Least(f) == CHOOSE x \in {f[k] : k \in Inputs} : \A k \in Inputs : x <= f[k]
IsEdge(n) == n % EdgeEvery = 0
Edges(n) == n \div EdgeEvery        \* passed by an input that has added n tuples

(* --algorithm watch
variables
  slices = [k \in Inputs |-> 0],        \* handed over
  promise = [k \in Inputs |-> 0],       \* tuples added
  settled = [k \in Inputs |-> 0],       \* and done with
  full = [k \in Inputs |-> FALSE],      \* waits for room
  edge = [k \in Inputs |-> FALSE],      \* marks
  any = [k \in Inputs |-> FALSE],
  waiting = FALSE, rung = FALSE,        \* the doorbell
  seen = [k \in Inputs |-> 0],          \* the output thread's
  out = 0;

define
  Fits(k) == promise[k] - settled[k] < MaxPending
end define;

macro ring() begin
  if waiting then rung := TRUE; end if;
end macro;

process input \in Inputs
variables passes = FALSE, told = FALSE;
begin
add_next:
  if promise[self] = Tuples then goto Done;
  else
    either goto Done;
    or skip;
    end either;
  end if;
add_room:
  if ~Fits(self) then
    if WantRule = "mark_first" then goto add_full_mark; else goto add_full_ring; end if;
  end if;
add_early:
  passes := IsEdge(promise[self] + 1);
  if TellRule = "before" then told := any[self] \/ (passes /\ edge[self]); end if;
add_link:
  if passes then slices[self] := slices[self] + 1; end if;
add_promise:
  promise[self] := promise[self] + 1;
add_watch:
  if TellRule = "after" then told := any[self] \/ (passes /\ edge[self]); end if;
add_ring:
  if told then ring(); end if;
  told := FALSE;
  passes := FALSE;
  goto add_next;
add_full_mark:
  if Fits(self) then goto add_next;
  else
    full[self] := TRUE;
    if WantRule = "ring_first" then goto add_full_sleep; end if;
  end if;
add_full_ring:
  ring();
  if WantRule = "ring_first" then goto add_full_mark; end if;
add_full_sleep:
  await ~full[self];
  goto add_next;
end process;

process output = Output
variables
  come = [k \in Inputs |-> 0],          \* promises as they were looked at
  at = 1, pressed = FALSE, marked = FALSE, watched = Nobody, target = Nobody, armed = FALSE, looked = FALSE;
begin
output_read:                            \* one read of the next of the slowest
  with slowest = CHOOSE i \in Inputs : \A j \in Inputs : seen[i] < seen[j] \/ (seen[i] = seen[j] /\ i <= j) do
    if Least(seen) > out then
      out := out + 1;
      if armed then waiting := FALSE; armed := FALSE; end if;
      looked := FALSE;
      goto output_read;
    elsif slices[slowest] > seen[slowest] then
      seen[slowest] := seen[slowest] + 1;
      goto output_read;
    end if;
  end with;
output_turn:
  if looked then
    looked := FALSE;
    at := 1;
    goto output_space;
  else
    at := 1;
  end if;
output_look:
  come[at] := promise[at];
  if at < InputCount then
    at := at + 1;
    goto output_look;
  else
    looked := TRUE;
    goto output_read;
  end if;
output_space:
  settled[at] := IF Least(come) < come[at] THEN Least(come) ELSE come[at];
  if full[at] /\ promise[at] - settled[at] < MaxPending then full[at] := FALSE; end if;
  if at < InputCount then
    at := at + 1;
    goto output_space;
  else
    at := 1;
    pressed := FALSE;
  end if;
output_pressed:
  pressed := pressed \/ (full[at] /\ PressRule = "all");
  if at < InputCount then
    at := at + 1;
    goto output_pressed;
  end if;
output_choose:
  with lagging = {i \in Inputs : /\ Edges(come[i]) <= seen[i]
                                 /\ TargetRule = "lowest" => seen[i] = Least(seen)} do
    if lagging = {} then goto output_read;
    else
      with i \in IF watched \in lagging THEN {watched} ELSE lagging do target := i; end with;
    end if;
  end with;
output_mark_off:
  if watched # target /\ watched # Nobody then edge[watched] := FALSE; end if;
  at := 1;
  if watched = target /\ pressed = marked then goto output_arm; end if;
output_mark:
  edge[at] := (at = target);
  any[at] := pressed;
  if at < InputCount then
    at := at + 1;
    goto output_mark;
  else
    watched := target;
    marked := pressed;
    if LookRule = "after" then goto output_read; end if;
  end if;
output_arm:
  if ~armed then
    waiting := TRUE;
    armed := TRUE;
    if LookRule = "after" then goto output_read; end if;
  end if;
output_sleep:
  await rung;
  rung := FALSE;
  waiting := FALSE;
  armed := FALSE;
  goto output_read;
end process;
end algorithm; *)
\* BEGIN TRANSLATION PCal-2c06dd979731797e7e34250b3f062c3f
VARIABLES slices, promise, settled, full, edge, any, waiting, rung, seen, out, 
          pc

(* define statement *)
Fits(k) == promise[k] - settled[k] < MaxPending

VARIABLES passes, told, come, at, pressed, marked, watched, target, armed, 
          looked

vars == << slices, promise, settled, full, edge, any, waiting, rung, seen, 
           out, pc, passes, told, come, at, pressed, marked, watched, target, 
           armed, looked >>

ProcSet == (Inputs) \cup {Output}

Init == (* Global variables *)
        /\ slices = [k \in Inputs |-> 0]
        /\ promise = [k \in Inputs |-> 0]
        /\ settled = [k \in Inputs |-> 0]
        /\ full = [k \in Inputs |-> FALSE]
        /\ edge = [k \in Inputs |-> FALSE]
        /\ any = [k \in Inputs |-> FALSE]
        /\ waiting = FALSE
        /\ rung = FALSE
        /\ seen = [k \in Inputs |-> 0]
        /\ out = 0
        (* Process input *)
        /\ passes = [self \in Inputs |-> FALSE]
        /\ told = [self \in Inputs |-> FALSE]
        (* Process output *)
        /\ come = [k \in Inputs |-> 0]
        /\ at = 1
        /\ pressed = FALSE
        /\ marked = FALSE
        /\ watched = Nobody
        /\ target = Nobody
        /\ armed = FALSE
        /\ looked = FALSE
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "add_next"
                                        [] self = Output -> "output_read"]

add_next(self) == /\ pc[self] = "add_next"
                  /\ IF promise[self] = Tuples
                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                        ELSE /\ \/ /\ pc' = [pc EXCEPT ![self] = "Done"]
                                \/ /\ TRUE
                                   /\ pc' = [pc EXCEPT ![self] = "add_room"]
                  /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                  waiting, rung, seen, out, passes, told, come, 
                                  at, pressed, marked, watched, target, armed, 
                                  looked >>

add_room(self) == /\ pc[self] = "add_room"
                  /\ IF ~Fits(self)
                        THEN /\ IF WantRule = "mark_first"
                                   THEN /\ pc' = [pc EXCEPT ![self] = "add_full_mark"]
                                   ELSE /\ pc' = [pc EXCEPT ![self] = "add_full_ring"]
                        ELSE /\ pc' = [pc EXCEPT ![self] = "add_early"]
                  /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                  waiting, rung, seen, out, passes, told, come, 
                                  at, pressed, marked, watched, target, armed, 
                                  looked >>

add_early(self) == /\ pc[self] = "add_early"
                   /\ passes' = [passes EXCEPT ![self] = IsEdge(promise[self] + 1)]
                   /\ IF TellRule = "before"
                         THEN /\ told' = [told EXCEPT ![self] = any[self] \/ (passes'[self] /\ edge[self])]
                         ELSE /\ TRUE
                              /\ told' = told
                   /\ pc' = [pc EXCEPT ![self] = "add_link"]
                   /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                   waiting, rung, seen, out, come, at, pressed, 
                                   marked, watched, target, armed, looked >>

add_link(self) == /\ pc[self] = "add_link"
                  /\ IF passes[self]
                        THEN /\ slices' = [slices EXCEPT ![self] = slices[self] + 1]
                        ELSE /\ TRUE
                             /\ UNCHANGED slices
                  /\ pc' = [pc EXCEPT ![self] = "add_promise"]
                  /\ UNCHANGED << promise, settled, full, edge, any, waiting, 
                                  rung, seen, out, passes, told, come, at, 
                                  pressed, marked, watched, target, armed, 
                                  looked >>

add_promise(self) == /\ pc[self] = "add_promise"
                     /\ promise' = [promise EXCEPT ![self] = promise[self] + 1]
                     /\ pc' = [pc EXCEPT ![self] = "add_watch"]
                     /\ UNCHANGED << slices, settled, full, edge, any, waiting, 
                                     rung, seen, out, passes, told, come, at, 
                                     pressed, marked, watched, target, armed, 
                                     looked >>

add_watch(self) == /\ pc[self] = "add_watch"
                   /\ IF TellRule = "after"
                         THEN /\ told' = [told EXCEPT ![self] = any[self] \/ (passes[self] /\ edge[self])]
                         ELSE /\ TRUE
                              /\ told' = told
                   /\ pc' = [pc EXCEPT ![self] = "add_ring"]
                   /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                   waiting, rung, seen, out, passes, come, at, 
                                   pressed, marked, watched, target, armed, 
                                   looked >>

add_ring(self) == /\ pc[self] = "add_ring"
                  /\ IF told[self]
                        THEN /\ IF waiting
                                   THEN /\ rung' = TRUE
                                   ELSE /\ TRUE
                                        /\ rung' = rung
                        ELSE /\ TRUE
                             /\ rung' = rung
                  /\ told' = [told EXCEPT ![self] = FALSE]
                  /\ passes' = [passes EXCEPT ![self] = FALSE]
                  /\ pc' = [pc EXCEPT ![self] = "add_next"]
                  /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                  waiting, seen, out, come, at, pressed, 
                                  marked, watched, target, armed, looked >>

add_full_mark(self) == /\ pc[self] = "add_full_mark"
                       /\ IF Fits(self)
                             THEN /\ pc' = [pc EXCEPT ![self] = "add_next"]
                                  /\ full' = full
                             ELSE /\ full' = [full EXCEPT ![self] = TRUE]
                                  /\ IF WantRule = "ring_first"
                                        THEN /\ pc' = [pc EXCEPT ![self] = "add_full_sleep"]
                                        ELSE /\ pc' = [pc EXCEPT ![self] = "add_full_ring"]
                       /\ UNCHANGED << slices, promise, settled, edge, any, 
                                       waiting, rung, seen, out, passes, told, 
                                       come, at, pressed, marked, watched, 
                                       target, armed, looked >>

add_full_ring(self) == /\ pc[self] = "add_full_ring"
                       /\ IF waiting
                             THEN /\ rung' = TRUE
                             ELSE /\ TRUE
                                  /\ rung' = rung
                       /\ IF WantRule = "ring_first"
                             THEN /\ pc' = [pc EXCEPT ![self] = "add_full_mark"]
                             ELSE /\ pc' = [pc EXCEPT ![self] = "add_full_sleep"]
                       /\ UNCHANGED << slices, promise, settled, full, edge, 
                                       any, waiting, seen, out, passes, told, 
                                       come, at, pressed, marked, watched, 
                                       target, armed, looked >>

add_full_sleep(self) == /\ pc[self] = "add_full_sleep"
                        /\ ~full[self]
                        /\ pc' = [pc EXCEPT ![self] = "add_next"]
                        /\ UNCHANGED << slices, promise, settled, full, edge, 
                                        any, waiting, rung, seen, out, passes, 
                                        told, come, at, pressed, marked, 
                                        watched, target, armed, looked >>

input(self) == add_next(self) \/ add_room(self) \/ add_early(self)
                  \/ add_link(self) \/ add_promise(self) \/ add_watch(self)
                  \/ add_ring(self) \/ add_full_mark(self)
                  \/ add_full_ring(self) \/ add_full_sleep(self)

output_read == /\ pc[Output] = "output_read"
               /\ LET slowest == CHOOSE i \in Inputs : \A j \in Inputs : seen[i] < seen[j] \/ (seen[i] = seen[j] /\ i <= j) IN
                    IF Least(seen) > out
                       THEN /\ out' = out + 1
                            /\ IF armed
                                  THEN /\ waiting' = FALSE
                                       /\ armed' = FALSE
                                  ELSE /\ TRUE
                                       /\ UNCHANGED << waiting, armed >>
                            /\ looked' = FALSE
                            /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                            /\ seen' = seen
                       ELSE /\ IF slices[slowest] > seen[slowest]
                                  THEN /\ seen' = [seen EXCEPT ![slowest] = seen[slowest] + 1]
                                       /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                                  ELSE /\ pc' = [pc EXCEPT ![Output] = "output_turn"]
                                       /\ seen' = seen
                            /\ UNCHANGED << waiting, out, armed, looked >>
               /\ UNCHANGED << slices, promise, settled, full, edge, any, rung, 
                               passes, told, come, at, pressed, marked, 
                               watched, target >>

output_turn == /\ pc[Output] = "output_turn"
               /\ IF looked
                     THEN /\ looked' = FALSE
                          /\ at' = 1
                          /\ pc' = [pc EXCEPT ![Output] = "output_space"]
                     ELSE /\ at' = 1
                          /\ pc' = [pc EXCEPT ![Output] = "output_look"]
                          /\ UNCHANGED looked
               /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                               waiting, rung, seen, out, passes, told, come, 
                               pressed, marked, watched, target, armed >>

output_look == /\ pc[Output] = "output_look"
               /\ come' = [come EXCEPT ![at] = promise[at]]
               /\ IF at < InputCount
                     THEN /\ at' = at + 1
                          /\ pc' = [pc EXCEPT ![Output] = "output_look"]
                          /\ UNCHANGED looked
                     ELSE /\ looked' = TRUE
                          /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                          /\ at' = at
               /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                               waiting, rung, seen, out, passes, told, pressed, 
                               marked, watched, target, armed >>

output_space == /\ pc[Output] = "output_space"
                /\ settled' = [settled EXCEPT ![at] = IF Least(come) < come[at] THEN Least(come) ELSE come[at]]
                /\ IF full[at] /\ promise[at] - settled'[at] < MaxPending
                      THEN /\ full' = [full EXCEPT ![at] = FALSE]
                      ELSE /\ TRUE
                           /\ full' = full
                /\ IF at < InputCount
                      THEN /\ at' = at + 1
                           /\ pc' = [pc EXCEPT ![Output] = "output_space"]
                           /\ UNCHANGED pressed
                      ELSE /\ at' = 1
                           /\ pressed' = FALSE
                           /\ pc' = [pc EXCEPT ![Output] = "output_pressed"]
                /\ UNCHANGED << slices, promise, edge, any, waiting, rung, 
                                seen, out, passes, told, come, marked, watched, 
                                target, armed, looked >>

output_pressed == /\ pc[Output] = "output_pressed"
                  /\ pressed' = (pressed \/ (full[at] /\ PressRule = "all"))
                  /\ IF at < InputCount
                        THEN /\ at' = at + 1
                             /\ pc' = [pc EXCEPT ![Output] = "output_pressed"]
                        ELSE /\ pc' = [pc EXCEPT ![Output] = "output_choose"]
                             /\ at' = at
                  /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                  waiting, rung, seen, out, passes, told, come, 
                                  marked, watched, target, armed, looked >>

output_choose == /\ pc[Output] = "output_choose"
                 /\ LET lagging == {i \in Inputs : /\ Edges(come[i]) <= seen[i]
                                                   /\ TargetRule = "lowest" => seen[i] = Least(seen)} IN
                      IF lagging = {}
                         THEN /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                              /\ UNCHANGED target
                         ELSE /\ \E i \in IF watched \in lagging THEN {watched} ELSE lagging:
                                   target' = i
                              /\ pc' = [pc EXCEPT ![Output] = "output_mark_off"]
                 /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                 waiting, rung, seen, out, passes, told, come, 
                                 at, pressed, marked, watched, armed, looked >>

output_mark_off == /\ pc[Output] = "output_mark_off"
                   /\ IF watched # target /\ watched # Nobody
                         THEN /\ edge' = [edge EXCEPT ![watched] = FALSE]
                         ELSE /\ TRUE
                              /\ edge' = edge
                   /\ at' = 1
                   /\ IF watched = target /\ pressed = marked
                         THEN /\ pc' = [pc EXCEPT ![Output] = "output_arm"]
                         ELSE /\ pc' = [pc EXCEPT ![Output] = "output_mark"]
                   /\ UNCHANGED << slices, promise, settled, full, any, 
                                   waiting, rung, seen, out, passes, told, 
                                   come, pressed, marked, watched, target, 
                                   armed, looked >>

output_mark == /\ pc[Output] = "output_mark"
               /\ edge' = [edge EXCEPT ![at] = (at = target)]
               /\ any' = [any EXCEPT ![at] = pressed]
               /\ IF at < InputCount
                     THEN /\ at' = at + 1
                          /\ pc' = [pc EXCEPT ![Output] = "output_mark"]
                          /\ UNCHANGED << marked, watched >>
                     ELSE /\ watched' = target
                          /\ marked' = pressed
                          /\ IF LookRule = "after"
                                THEN /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                                ELSE /\ pc' = [pc EXCEPT ![Output] = "output_arm"]
                          /\ at' = at
               /\ UNCHANGED << slices, promise, settled, full, waiting, rung, 
                               seen, out, passes, told, come, pressed, target, 
                               armed, looked >>

output_arm == /\ pc[Output] = "output_arm"
              /\ IF ~armed
                    THEN /\ waiting' = TRUE
                         /\ armed' = TRUE
                         /\ IF LookRule = "after"
                               THEN /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                               ELSE /\ pc' = [pc EXCEPT ![Output] = "output_sleep"]
                    ELSE /\ pc' = [pc EXCEPT ![Output] = "output_sleep"]
                         /\ UNCHANGED << waiting, armed >>
              /\ UNCHANGED << slices, promise, settled, full, edge, any, rung, 
                              seen, out, passes, told, come, at, pressed, 
                              marked, watched, target, looked >>

output_sleep == /\ pc[Output] = "output_sleep"
                /\ rung
                /\ rung' = FALSE
                /\ waiting' = FALSE
                /\ armed' = FALSE
                /\ pc' = [pc EXCEPT ![Output] = "output_read"]
                /\ UNCHANGED << slices, promise, settled, full, edge, any, 
                                seen, out, passes, told, come, at, pressed, 
                                marked, watched, target, looked >>

output == output_read \/ output_turn \/ output_look \/ output_space
             \/ output_pressed \/ output_choose \/ output_mark_off
             \/ output_mark \/ output_arm \/ output_sleep

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == output
           \/ (\E self \in Inputs: input(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION TLA-f521f6a65f160fdfaceaa0d4b2d85ca2

TypeOK ==
  /\ slices \in [Inputs -> 0..Edges(Tuples)] /\ promise \in [Inputs -> 0..Tuples]
  /\ settled \in [Inputs -> 0..Tuples] /\ out \in 0..Edges(Tuples)

Still == /\ \A i \in Inputs : pc[i] = "Done" \/ (pc[i] = "add_full_sleep" /\ full[i])
         /\ pc[Output] = "output_sleep" /\ ~rung

Delivered == Still => out = Least(slices)
Roomy     == Still => \A i \in Inputs : full[i] /\ pc[i] = "add_full_sleep" => promise[i] - Least(promise) >= MaxPending
InTime    == out <= Least(slices)
=============================================================================
