------------------------------- MODULE KeySweep -------------------------------
(***************************************************************************)
(* When the number of a key may be given to another key (ours; the sliced  *)
(* design).                                                                *)
(*                                                                         *)
(* The operator's table gives each key a number.  Numbers travel: an input *)
(* learns one under the table's lock and keeps it in a map of its own, it  *)
(* writes it into its private slice, the slice goes through a list to the  *)
(* output thread, and stays in the window until that has moved on.  A key  *)
(* that is in no window can still be in any of the other places.           *)
(*                                                                         *)
(* So keys leave in sweeps.  The output thread begins one by raising the   *)
(* table's sweep number, and then says so in a word that every input reads *)
(* once per batch.  An input that finds a new number there forgets its     *)
(* map; what it needs from then on it asks the table for, which stamps the *)
(* key with the sweep.  A slice carries the number that its input knows    *)
(* when it hands the slice over:                                           *)
(*                                                                         *)
(*   -> [0,2) sweep 0 -> [2,3) sweep 0 -> [3,6) sweep 1 -> [6,8) sweep 1   *)
(*                            the input forgets ^                          *)
(*                                                                         *)
(* When the output thread has read a slice of this sweep from every input, *)
(* all slices that can hold numbers from before have been in the window:   *)
(* [3,6) and those before it.  Then each key that is not in the window and *)
(* does not bear the sweep's stamp is freed, one after the other, while    *)
(* all go on.                                                              *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  Meant      a number in a batch at hand, a slice, a list or the    *)
(*                  window stands for the key it was learnt for            *)
(*   I2  MapsHold   so does a number in the map of an input                *)
(*   I3  OneNumber  a key has one number                                   *)
(* Guarantees                                                              *)
(*   G1  The table's number is raised before the word: who has read the    *)
(*       word and then asks the table gets the new stamp.  (In C: by the   *)
(*       table's lock.)                                                    *)
(*   G2  SweepsEnd: when all inputs are closed, a sweep ends.              *)
(*                                                                         *)
(* For an input that is not in a call the output thread does the same,     *)
(* having taken its turn; and if that has nothing in its private slice and *)
(* all else is read, no slice of it need be waited for.  So who is closed, *)
(* or far ahead and silent, holds nothing up.                              *)
(*                                                                         *)
(* In the designs whose windows hold keys by address, a slice is a batch,  *)
(* it is read when all of its tuples are in their windows (settled), and   *)
(* no slice is ever open.  They wait longer than output_free does: until   *)
(* all windows have left that were there when every input had swept.       *)
(*                                                                         *)
(* Nothing more is written by an input than without sweeps.  Stamps are    *)
(* counted modulo Stamps: a key that was stamped that many sweeps ago      *)
(* stays once more, which does no harm.                                    *)
(*                                                                         *)
(* Which C function a label stands for: README.md.                         *)
(* In the other designs add_publish is ledger_put, and output_next is      *)
(* key_forget_settled and has_left in key_forget.c.                        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  InputCount,
  KeyCount,
  Tuples,         \* of each input
  Slices,         \* that each input hands over before it closes
  Sweeps,         \* that are begun
  Stamps,
  (* The rules: the first value is ours, the others are seeded bugs. *)
  StampRule,      \* "asked": whoever asks for a key stamps it; "new": only new keys are stamped
  OrderRule,      \* "table_first": the table's number is raised before the word; "word_first"
  CarryRule,      \* "known": a slice carries the sweep for which its input has forgotten; "said": what the word says
  ForgetRule,     \* "all": the input forgets its map; "nothing"
  WaitRule,       \* "read": a slice of each input has been read; "known": each input knows of the sweep
  WindowRule,     \* "kept": keys in the window stay; "freed"
  SilentRule      \* "empty": who is silent and has no open slice is passed; "any": also with one; "none": nobody is

ASSUME /\ StampRule \in {"asked", "new"}
       /\ OrderRule \in {"table_first", "word_first"}
       /\ CarryRule \in {"known", "said"}
       /\ ForgetRule \in {"all", "nothing"}
       /\ WaitRule \in {"read", "known"}
       /\ WindowRule \in {"kept", "freed"}
       /\ SilentRule \in {"empty", "any", "none"}

Inputs == 1..InputCount
Output == InputCount + 1
Keys == 1..KeyCount
Numbers == 1..KeyCount              \* as many are always enough
None == 0
Never == Stamps
Least(s) == CHOOSE x \in s : \A y \in s : x <= y
Uses(number, key) == [number |-> number, key |-> key]

(* --algorithm key_sweep
variables
  table = [n \in Numbers |-> None],       \* the key of each number; this and the next two: behind the lock
  stamp = [n \in Numbers |-> Never],
  sweep = 0,
  word = 0,                               \* what is said of it
  list = [k \in Inputs |-> << >>],        \* slices handed over and not read
  known = [k \in Inputs |-> 0],           \* these three are behind the input's turn: the sweep that it knows of,
  map = [k \in Inputs |-> {}],            \* what it has learnt,
  open = [k \in Inputs |-> {}],           \* the private slice
  read = [k \in Inputs |-> 0];            \* the output thread's: the sweep of the slice that was read last

define
  Number(key) == {n \in Numbers : table[n] = key}
  Passed(k) == (IF WaitRule = "read" THEN read[k] ELSE known[k]) = sweep
  Unused == {n \in Numbers : table[n] = None}
end define;

process input \in Inputs
variables
  hand = {},                              \* of the batch at hand
  tuples = 0, slices = 0;
begin
add_sweep:
  if word # known[self] then
    known[self] := word;
    if ForgetRule = "all" then map[self] := {}; end if;
  end if;
  either await tuples < Tuples;
  or await slices < Slices; goto add_publish;
  or goto add_close;
  end either;
add_learn:
  with key \in Keys,
       mine = {use \in map[self] : use.key = key},
       n = IF mine # {} THEN (CHOOSE use \in mine : TRUE).number
           ELSE IF Number(key) # {} THEN Least(Number(key)) ELSE Least(Unused) do
    if mine = {} then
      if StampRule = "asked" \/ Number(key) = {} then stamp[n] := sweep % Stamps; end if;
      table[n] := key;
      map[self] := map[self] \cup {Uses(n, key)};
    end if;
    tuples := tuples + 1;
    either await tuples < Tuples; hand := hand \cup {Uses(n, key)}; goto add_learn;
    or await slices < Slices; hand := hand \cup {Uses(n, key)}; goto add_publish;
    or open[self] := open[self] \cup hand \cup {Uses(n, key)}; hand := {}; goto add_sweep;
    end either;
  end with;
add_publish:
  with before \in SUBSET hand do           \* of the batch at hand, what lies before the edge
    list[self] := Append(list[self], [uses |-> open[self] \cup before,
                                      sweep |-> IF CarryRule = "known" THEN known[self] ELSE word]);
    open[self] := hand \ before;
  end with;
  hand := {};
  slices := slices + 1;
  goto add_sweep;
add_close:
  list[self] := Append(list[self], [uses |-> open[self], sweep |-> known[self]]);
  open[self] := {};
end process;

process output = Output
variables
  window = << >>,                         \* the uses of each slice in it
  phase = "idle", at = 1;
begin
output_next:
  either
    with k \in {k \in Inputs : list[k] # << >>} do
      if Head(list[k]).uses # {} then window := Append(window, Head(list[k]).uses); end if;
      read[k] := Head(list[k]).sweep;
      list[k] := Tail(list[k]);
    end with;
    goto output_next;
  or
    await window # << >>;
    window := Tail(window);
    goto output_next;
  or                                      \* the turn of an input that is not in a call
    with k \in {k \in Inputs : SilentRule # "none" /\ phase = "wait" /\ read[k] # sweep /\ pc[k] \in {"add_sweep", "Done"}} do
      known[k] := sweep;
      if ForgetRule = "all" then map[k] := {}; end if;
      if list[k] = << >> /\ (open[k] = {} \/ SilentRule = "any") then read[k] := sweep; end if;
    end with;
    goto output_next;
  or
    await phase = "wait" /\ \A k \in Inputs : Passed(k);
    phase := "free";
    goto output_next;
  or await phase = "free"; goto output_free;
  or await phase = "idle" /\ sweep < Sweeps;
  end either;
output_begin:
  if OrderRule = "table_first" then sweep := sweep + 1; else word := sweep + 1; end if;
output_say:
  if OrderRule = "table_first" then word := sweep; else sweep := word; end if;
  phase := "wait";
  goto output_next;
output_free:
  if /\ table[at] # None
     /\ stamp[at] # sweep % Stamps
     /\ WindowRule = "kept" => \A i \in 1..Len(window) : \A use \in window[i] : use.number # at
  then
    table[at] := None;
  end if;
  if at < KeyCount then
    at := at + 1;
  else
    at := 1;
    phase := "idle";
  end if;
  goto output_next;
end process;
end algorithm; *)
\* BEGIN TRANSLATION PCal-275ff2eff0ed615dc2d7e7f4f0906e68
VARIABLES table, stamp, sweep, word, list, known, map, open, read, pc

(* define statement *)
Number(key) == {n \in Numbers : table[n] = key}
Passed(k) == (IF WaitRule = "read" THEN read[k] ELSE known[k]) = sweep
Unused == {n \in Numbers : table[n] = None}

VARIABLES hand, tuples, slices, window, phase, at

vars == << table, stamp, sweep, word, list, known, map, open, read, pc, hand, 
           tuples, slices, window, phase, at >>

ProcSet == (Inputs) \cup {Output}

Init == (* Global variables *)
        /\ table = [n \in Numbers |-> None]
        /\ stamp = [n \in Numbers |-> Never]
        /\ sweep = 0
        /\ word = 0
        /\ list = [k \in Inputs |-> << >>]
        /\ known = [k \in Inputs |-> 0]
        /\ map = [k \in Inputs |-> {}]
        /\ open = [k \in Inputs |-> {}]
        /\ read = [k \in Inputs |-> 0]
        (* Process input *)
        /\ hand = [self \in Inputs |-> {}]
        /\ tuples = [self \in Inputs |-> 0]
        /\ slices = [self \in Inputs |-> 0]
        (* Process output *)
        /\ window = << >>
        /\ phase = "idle"
        /\ at = 1
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "add_sweep"
                                        [] self = Output -> "output_next"]

add_sweep(self) == /\ pc[self] = "add_sweep"
                   /\ IF word # known[self]
                         THEN /\ known' = [known EXCEPT ![self] = word]
                              /\ IF ForgetRule = "all"
                                    THEN /\ map' = [map EXCEPT ![self] = {}]
                                    ELSE /\ TRUE
                                         /\ map' = map
                         ELSE /\ TRUE
                              /\ UNCHANGED << known, map >>
                   /\ \/ /\ tuples[self] < Tuples
                         /\ pc' = [pc EXCEPT ![self] = "add_learn"]
                      \/ /\ slices[self] < Slices
                         /\ pc' = [pc EXCEPT ![self] = "add_publish"]
                      \/ /\ pc' = [pc EXCEPT ![self] = "add_close"]
                   /\ UNCHANGED << table, stamp, sweep, word, list, open, read, 
                                   hand, tuples, slices, window, phase, at >>

add_learn(self) == /\ pc[self] = "add_learn"
                   /\ \E key \in Keys:
                        LET mine == {use \in map[self] : use.key = key} IN
                          LET n == IF mine # {} THEN (CHOOSE use \in mine : TRUE).number
                                   ELSE IF Number(key) # {} THEN Least(Number(key)) ELSE Least(Unused) IN
                            /\ IF mine = {}
                                  THEN /\ IF StampRule = "asked" \/ Number(key) = {}
                                             THEN /\ stamp' = [stamp EXCEPT ![n] = sweep % Stamps]
                                             ELSE /\ TRUE
                                                  /\ stamp' = stamp
                                       /\ table' = [table EXCEPT ![n] = key]
                                       /\ map' = [map EXCEPT ![self] = map[self] \cup {Uses(n, key)}]
                                  ELSE /\ TRUE
                                       /\ UNCHANGED << table, stamp, map >>
                            /\ tuples' = [tuples EXCEPT ![self] = tuples[self] + 1]
                            /\ \/ /\ tuples'[self] < Tuples
                                  /\ hand' = [hand EXCEPT ![self] = hand[self] \cup {Uses(n, key)}]
                                  /\ pc' = [pc EXCEPT ![self] = "add_learn"]
                                  /\ open' = open
                               \/ /\ slices[self] < Slices
                                  /\ hand' = [hand EXCEPT ![self] = hand[self] \cup {Uses(n, key)}]
                                  /\ pc' = [pc EXCEPT ![self] = "add_publish"]
                                  /\ open' = open
                               \/ /\ open' = [open EXCEPT ![self] = open[self] \cup hand[self] \cup {Uses(n, key)}]
                                  /\ hand' = [hand EXCEPT ![self] = {}]
                                  /\ pc' = [pc EXCEPT ![self] = "add_sweep"]
                   /\ UNCHANGED << sweep, word, list, known, read, slices, 
                                   window, phase, at >>

add_publish(self) == /\ pc[self] = "add_publish"
                     /\ \E before \in SUBSET hand[self]:
                          /\ list' = [list EXCEPT ![self] = Append(list[self], [uses |-> open[self] \cup before,
                                                                                sweep |-> IF CarryRule = "known" THEN known[self] ELSE word])]
                          /\ open' = [open EXCEPT ![self] = hand[self] \ before]
                     /\ hand' = [hand EXCEPT ![self] = {}]
                     /\ slices' = [slices EXCEPT ![self] = slices[self] + 1]
                     /\ pc' = [pc EXCEPT ![self] = "add_sweep"]
                     /\ UNCHANGED << table, stamp, sweep, word, known, map, 
                                     read, tuples, window, phase, at >>

add_close(self) == /\ pc[self] = "add_close"
                   /\ list' = [list EXCEPT ![self] = Append(list[self], [uses |-> open[self], sweep |-> known[self]])]
                   /\ open' = [open EXCEPT ![self] = {}]
                   /\ pc' = [pc EXCEPT ![self] = "Done"]
                   /\ UNCHANGED << table, stamp, sweep, word, known, map, read, 
                                   hand, tuples, slices, window, phase, at >>

input(self) == add_sweep(self) \/ add_learn(self) \/ add_publish(self)
                  \/ add_close(self)

output_next == /\ pc[Output] = "output_next"
               /\ \/ /\ \E k \in {k \in Inputs : list[k] # << >>}:
                          /\ IF Head(list[k]).uses # {}
                                THEN /\ window' = Append(window, Head(list[k]).uses)
                                ELSE /\ TRUE
                                     /\ UNCHANGED window
                          /\ read' = [read EXCEPT ![k] = Head(list[k]).sweep]
                          /\ list' = [list EXCEPT ![k] = Tail(list[k])]
                     /\ pc' = [pc EXCEPT ![Output] = "output_next"]
                     /\ UNCHANGED <<known, map, phase>>
                  \/ /\ window # << >>
                     /\ window' = Tail(window)
                     /\ pc' = [pc EXCEPT ![Output] = "output_next"]
                     /\ UNCHANGED <<list, known, map, read, phase>>
                  \/ /\ \E k \in {k \in Inputs : SilentRule # "none" /\ phase = "wait" /\ read[k] # sweep /\ pc[k] \in {"add_sweep", "Done"}}:
                          /\ known' = [known EXCEPT ![k] = sweep]
                          /\ IF ForgetRule = "all"
                                THEN /\ map' = [map EXCEPT ![k] = {}]
                                ELSE /\ TRUE
                                     /\ map' = map
                          /\ IF list[k] = << >> /\ (open[k] = {} \/ SilentRule = "any")
                                THEN /\ read' = [read EXCEPT ![k] = sweep]
                                ELSE /\ TRUE
                                     /\ read' = read
                     /\ pc' = [pc EXCEPT ![Output] = "output_next"]
                     /\ UNCHANGED <<list, window, phase>>
                  \/ /\ phase = "wait" /\ \A k \in Inputs : Passed(k)
                     /\ phase' = "free"
                     /\ pc' = [pc EXCEPT ![Output] = "output_next"]
                     /\ UNCHANGED <<list, known, map, read, window>>
                  \/ /\ phase = "free"
                     /\ pc' = [pc EXCEPT ![Output] = "output_free"]
                     /\ UNCHANGED <<list, known, map, read, window, phase>>
                  \/ /\ phase = "idle" /\ sweep < Sweeps
                     /\ pc' = [pc EXCEPT ![Output] = "output_begin"]
                     /\ UNCHANGED <<list, known, map, read, window, phase>>
               /\ UNCHANGED << table, stamp, sweep, word, open, hand, tuples, 
                               slices, at >>

output_begin == /\ pc[Output] = "output_begin"
                /\ IF OrderRule = "table_first"
                      THEN /\ sweep' = sweep + 1
                           /\ word' = word
                      ELSE /\ word' = sweep + 1
                           /\ sweep' = sweep
                /\ pc' = [pc EXCEPT ![Output] = "output_say"]
                /\ UNCHANGED << table, stamp, list, known, map, open, read, 
                                hand, tuples, slices, window, phase, at >>

output_say == /\ pc[Output] = "output_say"
              /\ IF OrderRule = "table_first"
                    THEN /\ word' = sweep
                         /\ sweep' = sweep
                    ELSE /\ sweep' = word
                         /\ word' = word
              /\ phase' = "wait"
              /\ pc' = [pc EXCEPT ![Output] = "output_next"]
              /\ UNCHANGED << table, stamp, list, known, map, open, read, hand, 
                              tuples, slices, window, at >>

output_free == /\ pc[Output] = "output_free"
               /\ IF /\ table[at] # None
                     /\ stamp[at] # sweep % Stamps
                     /\ WindowRule = "kept" => \A i \in 1..Len(window) : \A use \in window[i] : use.number # at
                     THEN /\ table' = [table EXCEPT ![at] = None]
                     ELSE /\ TRUE
                          /\ table' = table
               /\ IF at < KeyCount
                     THEN /\ at' = at + 1
                          /\ phase' = phase
                     ELSE /\ at' = 1
                          /\ phase' = "idle"
               /\ pc' = [pc EXCEPT ![Output] = "output_next"]
               /\ UNCHANGED << stamp, sweep, word, list, known, map, open, 
                               read, hand, tuples, slices, window >>

output == output_next \/ output_begin \/ output_say \/ output_free

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == output
           \/ (\E self \in Inputs: input(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION TLA-667e729b344c202942877b1f00dfbc20

Under == UNION {hand[k] \cup open[k] \cup UNION {list[k][i].uses : i \in 1..Len(list[k])} : k \in Inputs}
         \cup UNION {window[i] : i \in 1..Len(window)}

TypeOK ==
  /\ table \in [Numbers -> Keys \cup {None}] /\ stamp \in [Numbers -> 0..Never]
  /\ sweep \in 0..Sweeps /\ word \in 0..Sweeps /\ known \in [Inputs -> 0..Sweeps]

Meant == \A use \in Under : table[use.number] = use.key                                             \* I1
MapsHold == \A k \in Inputs : \A use \in map[k] : table[use.number] = use.key                         \* I2
OneNumber == \A m, n \in Numbers : table[m] = table[n] /\ table[m] # None => m = n                    \* I3

FairSpec == Spec /\ WF_vars(output)
SweepsEnd == (\A k \in Inputs : pc[k] = "Done") ~> (phase = "idle")                                  \* G2

NothingFreed == \A n \in Numbers : table[n] = None => stamp[n] = Never
=============================================================================
