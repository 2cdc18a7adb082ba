------------------------------- MODULE RunGate -------------------------------
(*****************************************************************************)
(* Run-Gate: timestamp-sorted inputs merged for any number of readers, like  *)
(* T-Gate, but handed over run by run (ours, no algorithm of the paper).     *)
(*                                                                           *)
(* Threads.  One per input: insert, heartbeat, close.  One per reader: get.  *)
(* Each reader receives every tuple.  All calls may run together, except two *)
(* calls of the same input or the same reader.                               *)
(*                                                                           *)
(* The lists.  One list of runs per input, which only grows, and only its    *)
(* input appends to it.  A run is an immutable sorted array of tuples and    *)
(* `last`, a promise: this input sends nothing below `last` any more.        *)
(*      dummy      no tuples, last = -1        each list starts with it      *)
(*      insert     tuples, last >= their timestamps                          *)
(*      heartbeat  no tuples, last = ts        makes a run only if it says   *)
(*                                             something new                 *)
(*      close      last = Forever              with or without tuples        *)
(* A run is published by one store: the `next` of the run before it.         *)
(*                                                                           *)
(*   input 1   dummy -> [3 3 5 | 5] -> [5 8 | 8]                             *)
(*                            ^ cursor: exhausted, position (5, 1)           *)
(*   input 2   dummy -> [4 5 9 | 9]                                          *)
(*                         ^ cursor: head, position (5, 2)                   *)
(*                                                                           *)
(* Positions.  A reader has a cursor (run, index) per input, all its own.    *)
(* The position of input k is (ts, k) of the tuple at the cursor, its head,  *)
(* or (last, k) once the run is exhausted: in either case nothing that the   *)
(* reader has yet to receive from k is below it.  Positions only move up     *)
(* (I4).  get looks at the lexicographically smallest position:              *)
(*      a head       it is the answer.  Every other input is at or past it   *)
(*                   and can send nothing before it: it is ready             *)
(*      exhausted    read `next` of that run, nothing else.  A run: step     *)
(*                   into it and look again.  None: the answer is null       *)
(* In the picture (5, 1) is smallest; reading `next` brings the second run,  *)
(* whose 5 goes before the 5 of input 2.                                     *)
(*                                                                           *)
(* Why null is right although the other inputs were read long before, or not *)
(* at all in this call: at the moment the read finds no `next`, input k has  *)
(* promised no more than (last, k), and the reader has had all its tuples.   *)
(* What it has not had of another input j, seen or unseen, is at or above    *)
(* the position of j, since positions only move up; that is above (last, k); *)
(* so input k holds it back.  Nothing is ready at that very moment, which is *)
(* the linearization point.  (Reading all exhausted inputs first, "eager",   *)
(* is right for the same reason; there the point lies in the middle of the   *)
(* call, at the read of the input that turns out smallest.  It reads more.)  *)
(*                                                                           *)
(* Gallop.  A call that takes many gets all tuples of the smallest head's    *)
(* run that are below the second smallest position: ready by the same        *)
(* argument, a slice of the run, nothing copied, no shared access.           *)
(*                                                                           *)
(* Block.  When inputs interleave, slices are short.  A call may take of all *)
(* inputs at once what is at or below the smallest promise, min over k of    *)
(* (last, k) of the run that cursor k stands in: every input j has promised  *)
(* that much, so a tuple <= (last, k) is ready, and all such tuples that the *)
(* reader has not had are in the runs at its cursors: a run that it has not  *)
(* seen follows one whose last is at or above the bound.  (Of input k itself *)
(* equal ones may follow in the next run; they come behind those taken.)     *)
(* The head is among them, since it is below all positions, and no promise   *)
(* is below its cursor's position.  A bound that is lower does as well: in   *)
(* a "short block" a run counts as if it ended after a few tuples, since a   *)
(* sorted run promises with each of them.  No shared access either.          *)
(*                                                                           *)
(* Reclamation.  holders[run] counts the readers that have not left the run, *)
(* from NumReaders down; who takes it to 0 frees the run.  A reader leaves   *)
(* only after it has read a `next`, and storing `next` was the last thing    *)
(* the input did with that run.  The answer of a get stays valid until the   *)
(* same reader's following get.  The last run of an input is never left.     *)
(*                                                                           *)
(* Invariants                                                                *)
(*   I1  Sorted    along a list, timestamps and promises never decrease      *)
(*   I2  Kept      from the dummy, the list is all that has been published,  *)
(*                 in order                                                  *)
(*   I3  Exact     of each input a reader has had all tuples before its      *)
(*                 cursor and none behind; nothing it has had is above any   *)
(*                 of its positions                                          *)
(*   I4  Rising    positions and promises never go down                      *)
(*   I5  Held      no run is freed while a cursor stands on it, or a reader  *)
(*                 is leaving it, or its input will still store its next     *)
(*   I6  Counted   holders[run] is the number of readers yet to leave; a run *)
(*                 that all have left is freed                               *)
(*   I7  Drained   smallest position at Forever: all inputs are closed and   *)
(*                 that reader has had everything                            *)
(* Guarantees                                                                *)
(*   G1  linearizable to ReadyOrder, a run being the insertion of its tuples *)
(*       and its promise at one point.  Points: insert, heartbeat and close  *)
(*       at insert_publish; get with tuples at next_choose; get with null at *)
(*       next_read_next                                                      *)
(*   G2  insert_publish (release) pairs with next_read_next (acquire): who   *)
(*       sees a run sees its tuples, its last and its holders; these are     *)
(*       written before the store                                            *)
(*   G3  next_leave is one fetch-and-subtract (acquire and release): all     *)
(*       that a reader did with a run comes before the other one frees it    *)
(* Progress.  insert, heartbeat and close are wait-free, without a loop.     *)
(* get is lock-free: it goes round only by stepping into a run that came     *)
(* since, at most once per input and once more per run without tuples;       *)
(* wait-free as long as nobody sends promises without end.  A reader that    *)
(* stops keeps the runs it has not left, and hinders nobody.                 *)
(*                                                                           *)
(* One label per access to shared memory, and next_choose, which has none.   *)
(* Which C function a label stands for: README.md.                           *)
(*****************************************************************************)
\* Seeded labels: insert_fill, next_read_tail
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Script,         \* Script[k]: what input k does, a sequence of [tuples, last]; inputs are 1, 2, ... (C counts from 0)
  NumReaders,
  Polls,          \* calls per reader, a slice of n tuples answers n; 0 = call again and again until the end of all inputs

  \* The rules; the first value of each is the algorithm, the others are variants and seeded mistakes.
  GetRule,        \* "one" | "gallop" | "block" | "short block", and too far: "whole run" | "past bounds" | "block ties" | "block far"
  RefreshRule,    \* "smallest" | "eager": which exhausted inputs to read; both are right
  TieRule,        \* "input" | "head first" | "bound first" | "largest": order of positions with equal timestamps
  StartRule,      \* "blocked" | "infinite": what an input promises before its first run
  DecideRule,     \* "fresh" | "older head": does the head of a run just read take part?
  BoundRule,      \* "own" | "stale" | "tail": whose `last` counts when a run is exhausted
  PublishRule,    \* "whole" | "tuples late" | "last late"
  PromiseRule,    \* "run" | "no close" | "no heartbeat" | "backward"
  FreeRule,       \* "last" | "first" | "exhausted" | "split" | "never"
  LockRule        \* "none" | "spin"

Blocks == {"block", "short block", "block ties", "block far"}

ASSUME /\ Polls \in Nat /\ NumReaders \in Nat
       /\ GetRule \in {"one", "gallop", "whole run", "past bounds"} \cup Blocks
       /\ RefreshRule \in {"smallest", "eager"}
       /\ TieRule \in {"input", "head first", "bound first", "largest"}
       /\ StartRule \in {"blocked", "infinite"}
       /\ DecideRule \in {"fresh", "older head"}
       /\ BoundRule \in {"own", "stale", "tail"}
       /\ PublishRule \in {"whole", "tuples late", "last late"}
       /\ PromiseRule \in {"run", "no close", "no heartbeat", "backward"}
       /\ FreeRule \in {"last", "first", "exhausted", "split", "never"}
       /\ LockRule \in {"none", "spin"}

Inputs == 1 .. Len(Script)
Readers == Len(Script) + 1 .. Len(Script) + NumReaders
Forever == 1000

\* A run's address is 100 * input + number of the call that made it; number 0 is the input's dummy.
Run(k, i) == 100 * k + i
Number(n) == n % 100
Input(n) == n \div 100
Dummy(k) == Run(k, 0)
None == 0          \* an unset pointer, no input, no holder of the lock
Unknown == -2      \* no timestamp

Runs == UNION {{Run(k, i) : i \in 0 .. Len(Script[k])} : k \in Inputs}

\* What a run holds never changes, so it is a constant of the script.  (TLCEval: work such a table out once.)
Times == TLCEval([n \in Runs |-> IF Number(n) = 0 THEN << >> ELSE Script[Input(n)][Number(n)].tuples])
Last == TLCEval([n \in Runs |->
  IF Number(n) > 0 THEN Script[Input(n)][Number(n)].last ELSE IF StartRule = "blocked" THEN -1 ELSE Forever])

\* A tuple is <<ts, input, position within the input>>, and that is its place in the order.
RECURSIVE TuplesBefore(_)
TuplesBefore(n) == IF Number(n) = 0 THEN 0 ELSE TuplesBefore(n - 1) + Len(Times[n - 1])
Offset == TLCEval([n \in Runs |-> TuplesBefore(n)])
Tuples == TLCEval([n \in Runs |-> [i \in DOMAIN Times[n] |-> <<Times[n][i], Input(n), Offset[n] + i>>]])

Before(s, t) == \/ s[1] < t[1]
                \/ s[1] = t[1] /\ s[2] < t[2]
                \/ s[1] = t[1] /\ s[2] = t[2] /\ s[3] < t[3]

FirstOf(tuples) == CHOOSE t \in tuples : \A s \in tuples : ~Before(s, t)

RECURSIVE Merge(_)
Merge(tuples) == IF tuples = {} THEN << >> ELSE LET t == FirstOf(tuples) IN <<t>> \o Merge(tuples \ {t})

\* Which calls make no run: an empty one that promises nothing new.
Skipped == TLCEval([n \in Runs |-> Times[n] = << >> /\ Number(n) > 0 /\
  \/ Last[n] = Forever /\ PromiseRule = "no close"
  \/ Last[n] # Forever /\ PromiseRule = "no heartbeat"
  \/ PromiseRule # "backward" /\ \E i \in 1 .. Number(n) - 1 : Script[Input(n)][i].last >= Last[n]])

Fields == {"tuples", "last"}

\* What is in a run when it is published; of the rest its reader sees zeros.
FilledFirst == CASE PublishRule = "whole"       -> Fields
                 [] PublishRule = "tuples late" -> {"last"}
                 [] OTHER                       -> {"tuples"}

Min(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m

(*****************************************************************************
--algorithm RunGate
variables
  next = [n \in Runs |-> None],
  filled = [n \in Runs |-> IF Number(n) = 0 THEN Fields ELSE FilledFirst],
  holders = [n \in Runs |-> NumReaders],
  freed = {},
  tail = [k \in Inputs |-> Dummy(k)],  \* the last run of input k; private to that input, only a seeded mistake reads it elsewhere
  locked = None,
  out = [r \in Readers |-> << >>],     \* ghost: what each reader has had
  asked = [r \in Readers |-> 0];       \* ghost: calls answered

define
  Size(n) == IF "tuples" \in filled[n] THEN Len(Tuples[n]) ELSE 0
  LastOf(n) == IF "last" \in filled[n] THEN Last[n] ELSE 0
  Bound(n) == IF BoundRule = "stale" /\ Number(n) > 0 THEN LastOf(n - 1) ELSE LastOf(n)

  IsExhausted(c) == c.index = Size(c.run)

  \* A cursor's position: its head's, or, when exhausted, that of the promise.
  Position(c) == IF IsExhausted(c)
                   THEN [ts |-> Bound(c.run), input |-> Input(c.run), head |-> FALSE]
                   ELSE [ts |-> Times[c.run][c.index + 1], input |-> Input(c.run), head |-> TRUE]

  \* The positions of all cursors.  Seeded: input k is taken to be at a promise, whatever its cursor shows.
  Positions(cursors, k, promise) ==
    [j \in Inputs |-> CASE j = k /\ promise # Unknown         -> [ts |-> promise, input |-> j, head |-> FALSE]
                        [] j = k /\ DecideRule = "older head" -> [ts |-> LastOf(cursors[j].run), input |-> j, head |-> FALSE]
                        [] OTHER                              -> Position(cursors[j])]

  Lower(p, q) == \/ p.ts < q.ts
                 \/ p.ts = q.ts /\ CASE TieRule = "head first" /\ p.head # q.head  -> p.head
                                     [] TieRule = "bound first" /\ p.head # q.head -> q.head
                                     [] TieRule = "largest"                        -> p.input > q.input
                                     [] OTHER                                      -> p.input < q.input

  \* In C, the winner of a tournament among the inputs.
  Smallest(positions) == CHOOSE k \in Inputs : \A j \in Inputs \ {k} : Lower(positions[k], positions[j])

  \* How many tuples from the head of input k on may be taken: those below every other position.
  Slice(cursors, positions, k) ==
    LET c == cursors[k]
        rivals == {j \in Inputs \ {k} : GetRule = "gallop" \/ positions[j].head}
        below == {i \in c.index + 1 .. Size(c.run) :
                    \A j \in rivals : Lower([positions[k] EXCEPT !.ts = Times[c.run][i]], positions[j])}
    IN  CASE GetRule = "one"       -> 1
          [] GetRule = "whole run" -> Size(c.run) - c.index
          [] OTHER                 -> Cardinality(below)

  \* What input k has promised by the end of the run at its cursor, or by its second tuple from there.
  Promise(c) == [ts |-> IF GetRule = "short block" /\ c.index + 2 < Size(c.run) THEN Times[c.run][c.index + 2] ELSE Bound(c.run),
                 input |-> Input(c.run), head |-> FALSE]

  \* How many tuples of input k a block takes: those at or below the smallest promise.
  Block(cursors, k) ==
    LET c == cursors[k]
        promises == [j \in Inputs |-> Promise(cursors[j])]
        bound == IF GetRule = "block far"
                   THEN promises[CHOOSE j \in Inputs : \A i \in Inputs \ {j} : Lower(promises[i], promises[j])]
                   ELSE promises[Smallest(promises)]
        stop == IF GetRule = "short block" THEN Min({c.index + 2, Size(c.run)}) ELSE Size(c.run)
    IN  Cardinality({i \in c.index + 1 .. stop :
          IF GetRule = "block ties"
            THEN Times[c.run][i] <= bound.ts
            ELSE ~Lower(bound, [ts |-> Times[c.run][i], input |-> k, head |-> FALSE])})

  \* How many tuples of each input a call takes that finds the head of input k smallest.
  Taken(cursors, positions, k) == [j \in Inputs |-> CASE GetRule \in Blocks -> Block(cursors, j)
                                                     [] j = k              -> Slice(cursors, positions, k)
                                                     [] OTHER              -> 0]

  TakenTuples(cursors, taken) == Merge(UNION {{Tuples[cursors[j].run][cursors[j].index + i] : i \in 1 .. taken[j]} : j \in Inputs})

  IsDrained(cursors) == \A k \in Inputs : IsExhausted(cursors[k]) /\ LastOf(cursors[k].run) = Forever
end define;

macro finish_insert() begin
  op := op + 1;
  goto insert_publish;
end macro;

macro count_answers(n) begin
  if Polls > 0 then
    asked[self] := asked[self] + n;
  end if;
end macro;

macro answer_null() begin
  count_answers(1);
  at := None;
  ahead := Unknown;
  goto next_choose;
end macro;

macro answer_tuples(taken) begin
  count_answers(Len(TakenTuples(cursor, taken)));
  out[self] := out[self] \o TakenTuples(cursor, taken);
  cursor := [j \in Inputs |-> [cursor[j] EXCEPT !.index = @ + taken[j]]];
  at := None;
  ahead := Unknown;
  goto next_choose;
end macro;

\* Behind the subtraction: `count` readers have yet to leave the run.
macro free_if_left(count) begin
  if count = 0 \/ (FreeRule = "first" /\ count = NumReaders - 1) then
    freed := freed \cup {leaving};
  end if;
  leaving := None;
  if FreeRule = "exhausted" then
    goto next_read_next;
  else
    at := IF RefreshRule = "eager" THEN at - 1 ELSE IF DecideRule = "fresh" THEN None ELSE at;
    goto next_choose;
  end if;
end macro;

process input \in Inputs
variables
  op = 1;                 \* number of the call
begin
\* Linearization point of insert, heartbeat and close.  The run was private until now.
insert_publish:
  while op <= Len(Script[self]) do
    if Skipped[Run(self, op)] then
      op := op + 1;
    elsif LockRule = "spin" /\ locked # self then
      goto insert_lock;
    else
      next[tail[self]] := Run(self, op);
      tail[self] := Run(self, op);
      if PublishRule # "whole" then
        goto insert_fill;
      elsif LockRule = "spin" then
        goto insert_unlock;
      else
        op := op + 1;
      end if;
    end if;
  end while;
  goto Done;

insert_fill:
  filled[tail[self]] := Fields;
  finish_insert();

insert_lock:
  if locked = None then
    locked := self;
    goto insert_publish;
  else
    goto insert_lock;
  end if;

insert_unlock:
  locked := None;
  finish_insert();
end process;

process reader \in Readers
variables
  cursor = [k \in Inputs |-> [run |-> Dummy(k), index |-> 0]],
  at = None,              \* the input whose next run is looked for
  leaving = None,         \* the run that the cursor was on until now
  ahead = Unknown,        \* seeded: a promise that was read elsewhere
  seen = 0;               \* seeded: a count that was read apart from being written
begin
\* Linearization point of a get that answers with tuples.
next_choose:
  while IF Polls = 0 THEN ~IsDrained(cursor) ELSE asked[self] < Polls do
    with positions = Positions(cursor, at, ahead),
         k = Smallest(positions),
         taken = Taken(cursor, positions, k),
         unread = {j \in Inputs : j > at /\ IsExhausted(cursor[j])} do
      if RefreshRule = "eager" /\ unread # {} then
        at := Min(unread);
        goto next_read_next;
      elsif positions[k].head then
        answer_tuples(taken);
      elsif RefreshRule = "eager" \/ ahead # Unknown then
        answer_null();
      elsif ~IsExhausted(cursor[k]) then      \* an older head that is not yet ready
        at := None;
      else
        at := k;
        if FreeRule = "exhausted" then
          leaving := cursor[k].run;
          goto next_leave;
        else
          goto next_read_next;
        end if;
      end if;
    end with;
  end while;
  goto Done;

\* Linearization point of a get that answers null.
next_read_next:
  with n = next[cursor[at].run] do
    if n = None then
      if RefreshRule = "eager" then
        goto next_choose;
      elsif BoundRule = "tail" then
        goto next_read_tail;
      else
        answer_null();
      end if;
    else
      if FreeRule = "exhausted" then
        at := None;
        cursor[Input(n)] := [run |-> n, index |-> 0];
        goto next_choose;
      else
        leaving := cursor[at].run;
        cursor[at] := [run |-> n, index |-> 0];
        goto next_leave;
      end if;
    end if;
  end with;

next_read_tail:
  ahead := LastOf(tail[at]);
  goto next_choose;

\* One fetch-and-subtract; who brings the count to 0 frees the run.
next_leave:
  if FreeRule = "split" then
    seen := holders[leaving];
  else
    if FreeRule # "never" then
      holders[leaving] := holders[leaving] - 1;
    end if;
    free_if_left(holders[leaving]);
  end if;

next_leave_store:
  holders[leaving] := seen - 1;
  seen := 0;
  free_if_left(holders[leaving]);
end process;
end algorithm
*****************************************************************************)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-1b59bcf36a87b8a5e988d26ab967be08
VARIABLES next, filled, holders, freed, tail, locked, out, asked, pc

(* define statement *)
Size(n) == IF "tuples" \in filled[n] THEN Len(Tuples[n]) ELSE 0
LastOf(n) == IF "last" \in filled[n] THEN Last[n] ELSE 0
Bound(n) == IF BoundRule = "stale" /\ Number(n) > 0 THEN LastOf(n - 1) ELSE LastOf(n)

IsExhausted(c) == c.index = Size(c.run)


Position(c) == IF IsExhausted(c)
                 THEN [ts |-> Bound(c.run), input |-> Input(c.run), head |-> FALSE]
                 ELSE [ts |-> Times[c.run][c.index + 1], input |-> Input(c.run), head |-> TRUE]


Positions(cursors, k, promise) ==
  [j \in Inputs |-> CASE j = k /\ promise # Unknown         -> [ts |-> promise, input |-> j, head |-> FALSE]
                      [] j = k /\ DecideRule = "older head" -> [ts |-> LastOf(cursors[j].run), input |-> j, head |-> FALSE]
                      [] OTHER                              -> Position(cursors[j])]

Lower(p, q) == \/ p.ts < q.ts
               \/ p.ts = q.ts /\ CASE TieRule = "head first" /\ p.head # q.head  -> p.head
                                   [] TieRule = "bound first" /\ p.head # q.head -> q.head
                                   [] TieRule = "largest"                        -> p.input > q.input
                                   [] OTHER                                      -> p.input < q.input


Smallest(positions) == CHOOSE k \in Inputs : \A j \in Inputs \ {k} : Lower(positions[k], positions[j])


Slice(cursors, positions, k) ==
  LET c == cursors[k]
      rivals == {j \in Inputs \ {k} : GetRule = "gallop" \/ positions[j].head}
      below == {i \in c.index + 1 .. Size(c.run) :
                  \A j \in rivals : Lower([positions[k] EXCEPT !.ts = Times[c.run][i]], positions[j])}
  IN  CASE GetRule = "one"       -> 1
        [] GetRule = "whole run" -> Size(c.run) - c.index
        [] OTHER                 -> Cardinality(below)


Promise(c) == [ts |-> IF GetRule = "short block" /\ c.index + 2 < Size(c.run) THEN Times[c.run][c.index + 2] ELSE Bound(c.run),
               input |-> Input(c.run), head |-> FALSE]


Block(cursors, k) ==
  LET c == cursors[k]
      promises == [j \in Inputs |-> Promise(cursors[j])]
      bound == IF GetRule = "block far"
                 THEN promises[CHOOSE j \in Inputs : \A i \in Inputs \ {j} : Lower(promises[i], promises[j])]
                 ELSE promises[Smallest(promises)]
      stop == IF GetRule = "short block" THEN Min({c.index + 2, Size(c.run)}) ELSE Size(c.run)
  IN  Cardinality({i \in c.index + 1 .. stop :
        IF GetRule = "block ties"
          THEN Times[c.run][i] <= bound.ts
          ELSE ~Lower(bound, [ts |-> Times[c.run][i], input |-> k, head |-> FALSE])})


Taken(cursors, positions, k) == [j \in Inputs |-> CASE GetRule \in Blocks -> Block(cursors, j)
                                                   [] j = k              -> Slice(cursors, positions, k)
                                                   [] OTHER              -> 0]

TakenTuples(cursors, taken) == Merge(UNION {{Tuples[cursors[j].run][cursors[j].index + i] : i \in 1 .. taken[j]} : j \in Inputs})

IsDrained(cursors) == \A k \in Inputs : IsExhausted(cursors[k]) /\ LastOf(cursors[k].run) = Forever

VARIABLES op, cursor, at, leaving, ahead, seen

vars == << next, filled, holders, freed, tail, locked, out, asked, pc, op, 
           cursor, at, leaving, ahead, seen >>

ProcSet == (Inputs) \cup (Readers)

Init == (* Global variables *)
        /\ next = [n \in Runs |-> None]
        /\ filled = [n \in Runs |-> IF Number(n) = 0 THEN Fields ELSE FilledFirst]
        /\ holders = [n \in Runs |-> NumReaders]
        /\ freed = {}
        /\ tail = [k \in Inputs |-> Dummy(k)]
        /\ locked = None
        /\ out = [r \in Readers |-> << >>]
        /\ asked = [r \in Readers |-> 0]
        (* Process input *)
        /\ op = [self \in Inputs |-> 1]
        (* Process reader *)
        /\ cursor = [self \in Readers |-> [k \in Inputs |-> [run |-> Dummy(k), index |-> 0]]]
        /\ at = [self \in Readers |-> None]
        /\ leaving = [self \in Readers |-> None]
        /\ ahead = [self \in Readers |-> Unknown]
        /\ seen = [self \in Readers |-> 0]
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "insert_publish"
                                        [] self \in Readers -> "next_choose"]

insert_publish(self) == /\ pc[self] = "insert_publish"
                        /\ IF op[self] <= Len(Script[self])
                              THEN /\ IF Skipped[Run(self, op[self])]
                                         THEN /\ op' = [op EXCEPT ![self] = op[self] + 1]
                                              /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                                              /\ UNCHANGED << next, tail >>
                                         ELSE /\ IF LockRule = "spin" /\ locked # self
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                                         /\ UNCHANGED << next, 
                                                                         tail, 
                                                                         op >>
                                                    ELSE /\ next' = [next EXCEPT ![tail[self]] = Run(self, op[self])]
                                                         /\ tail' = [tail EXCEPT ![self] = Run(self, op[self])]
                                                         /\ IF PublishRule # "whole"
                                                               THEN /\ pc' = [pc EXCEPT ![self] = "insert_fill"]
                                                                    /\ op' = op
                                                               ELSE /\ IF LockRule = "spin"
                                                                          THEN /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                                                               /\ op' = op
                                                                          ELSE /\ op' = [op EXCEPT ![self] = op[self] + 1]
                                                                               /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                              ELSE /\ pc' = [pc EXCEPT ![self] = "Done"]
                                   /\ UNCHANGED << next, tail, op >>
                        /\ UNCHANGED << filled, holders, freed, locked, out, 
                                        asked, cursor, at, leaving, ahead, 
                                        seen >>

insert_fill(self) == /\ pc[self] = "insert_fill"
                     /\ filled' = [filled EXCEPT ![tail[self]] = Fields]
                     /\ op' = [op EXCEPT ![self] = op[self] + 1]
                     /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                     /\ UNCHANGED << next, holders, freed, tail, locked, out, 
                                     asked, cursor, at, leaving, ahead, seen >>

insert_lock(self) == /\ pc[self] = "insert_lock"
                     /\ IF locked = None
                           THEN /\ locked' = self
                                /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                /\ UNCHANGED locked
                     /\ UNCHANGED << next, filled, holders, freed, tail, out, 
                                     asked, op, cursor, at, leaving, ahead, 
                                     seen >>

insert_unlock(self) == /\ pc[self] = "insert_unlock"
                       /\ locked' = None
                       /\ op' = [op EXCEPT ![self] = op[self] + 1]
                       /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                       /\ UNCHANGED << next, filled, holders, freed, tail, out, 
                                       asked, cursor, at, leaving, ahead, seen >>

input(self) == insert_publish(self) \/ insert_fill(self)
                  \/ insert_lock(self) \/ insert_unlock(self)

next_choose(self) == /\ pc[self] = "next_choose"
                     /\ IF IF Polls = 0 THEN ~IsDrained(cursor[self]) ELSE asked[self] < Polls
                           THEN /\ LET positions == Positions(cursor[self], at[self], ahead[self]) IN
                                     LET k == Smallest(positions) IN
                                       LET taken == Taken(cursor[self], positions, k) IN
                                         LET unread == {j \in Inputs : j > at[self] /\ IsExhausted(cursor[self][j])} IN
                                           IF RefreshRule = "eager" /\ unread # {}
                                              THEN /\ at' = [at EXCEPT ![self] = Min(unread)]
                                                   /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                                   /\ UNCHANGED << out, asked, 
                                                                   cursor, 
                                                                   leaving, 
                                                                   ahead >>
                                              ELSE /\ IF positions[k].head
                                                         THEN /\ IF Polls > 0
                                                                    THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + (Len(TakenTuples(cursor[self], taken)))]
                                                                    ELSE /\ TRUE
                                                                         /\ asked' = asked
                                                              /\ out' = [out EXCEPT ![self] = out[self] \o TakenTuples(cursor[self], taken)]
                                                              /\ cursor' = [cursor EXCEPT ![self] = [j \in Inputs |-> [cursor[self][j] EXCEPT !.index = @ + taken[j]]]]
                                                              /\ at' = [at EXCEPT ![self] = None]
                                                              /\ ahead' = [ahead EXCEPT ![self] = Unknown]
                                                              /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                                              /\ UNCHANGED leaving
                                                         ELSE /\ IF RefreshRule = "eager" \/ ahead[self] # Unknown
                                                                    THEN /\ IF Polls > 0
                                                                               THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                                               ELSE /\ TRUE
                                                                                    /\ asked' = asked
                                                                         /\ at' = [at EXCEPT ![self] = None]
                                                                         /\ ahead' = [ahead EXCEPT ![self] = Unknown]
                                                                         /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                                                         /\ UNCHANGED leaving
                                                                    ELSE /\ IF ~IsExhausted(cursor[self][k])
                                                                               THEN /\ at' = [at EXCEPT ![self] = None]
                                                                                    /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                                                                    /\ UNCHANGED leaving
                                                                               ELSE /\ at' = [at EXCEPT ![self] = k]
                                                                                    /\ IF FreeRule = "exhausted"
                                                                                          THEN /\ leaving' = [leaving EXCEPT ![self] = cursor[self][k].run]
                                                                                               /\ pc' = [pc EXCEPT ![self] = "next_leave"]
                                                                                          ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                                                                               /\ UNCHANGED leaving
                                                                         /\ UNCHANGED << asked, 
                                                                                         ahead >>
                                                              /\ UNCHANGED << out, 
                                                                              cursor >>
                           ELSE /\ pc' = [pc EXCEPT ![self] = "Done"]
                                /\ UNCHANGED << out, asked, cursor, at, 
                                                leaving, ahead >>
                     /\ UNCHANGED << next, filled, holders, freed, tail, 
                                     locked, op, seen >>

next_read_next(self) == /\ pc[self] = "next_read_next"
                        /\ LET n == next[cursor[self][at[self]].run] IN
                             IF n = None
                                THEN /\ IF RefreshRule = "eager"
                                           THEN /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                                /\ UNCHANGED << asked, at, 
                                                                ahead >>
                                           ELSE /\ IF BoundRule = "tail"
                                                      THEN /\ pc' = [pc EXCEPT ![self] = "next_read_tail"]
                                                           /\ UNCHANGED << asked, 
                                                                           at, 
                                                                           ahead >>
                                                      ELSE /\ IF Polls > 0
                                                                 THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                                 ELSE /\ TRUE
                                                                      /\ asked' = asked
                                                           /\ at' = [at EXCEPT ![self] = None]
                                                           /\ ahead' = [ahead EXCEPT ![self] = Unknown]
                                                           /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                     /\ UNCHANGED << cursor, leaving >>
                                ELSE /\ IF FreeRule = "exhausted"
                                           THEN /\ at' = [at EXCEPT ![self] = None]
                                                /\ cursor' = [cursor EXCEPT ![self][Input(n)] = [run |-> n, index |-> 0]]
                                                /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                                                /\ UNCHANGED leaving
                                           ELSE /\ leaving' = [leaving EXCEPT ![self] = cursor[self][at[self]].run]
                                                /\ cursor' = [cursor EXCEPT ![self][at[self]] = [run |-> n, index |-> 0]]
                                                /\ pc' = [pc EXCEPT ![self] = "next_leave"]
                                                /\ at' = at
                                     /\ UNCHANGED << asked, ahead >>
                        /\ UNCHANGED << next, filled, holders, freed, tail, 
                                        locked, out, op, seen >>

next_read_tail(self) == /\ pc[self] = "next_read_tail"
                        /\ ahead' = [ahead EXCEPT ![self] = LastOf(tail[at[self]])]
                        /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                        /\ UNCHANGED << next, filled, holders, freed, tail, 
                                        locked, out, asked, op, cursor, at, 
                                        leaving, seen >>

next_leave(self) == /\ pc[self] = "next_leave"
                    /\ IF FreeRule = "split"
                          THEN /\ seen' = [seen EXCEPT ![self] = holders[leaving[self]]]
                               /\ pc' = [pc EXCEPT ![self] = "next_leave_store"]
                               /\ UNCHANGED << holders, freed, at, leaving >>
                          ELSE /\ IF FreeRule # "never"
                                     THEN /\ holders' = [holders EXCEPT ![leaving[self]] = holders[leaving[self]] - 1]
                                     ELSE /\ TRUE
                                          /\ UNCHANGED holders
                               /\ IF (holders'[leaving[self]]) = 0 \/ (FreeRule = "first" /\ (holders'[leaving[self]]) = NumReaders - 1)
                                     THEN /\ freed' = (freed \cup {leaving[self]})
                                     ELSE /\ TRUE
                                          /\ freed' = freed
                               /\ leaving' = [leaving EXCEPT ![self] = None]
                               /\ IF FreeRule = "exhausted"
                                     THEN /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                          /\ at' = at
                                     ELSE /\ at' = [at EXCEPT ![self] = IF RefreshRule = "eager" THEN at[self] - 1 ELSE IF DecideRule = "fresh" THEN None ELSE at[self]]
                                          /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                               /\ seen' = seen
                    /\ UNCHANGED << next, filled, tail, locked, out, asked, op, 
                                    cursor, ahead >>

next_leave_store(self) == /\ pc[self] = "next_leave_store"
                          /\ holders' = [holders EXCEPT ![leaving[self]] = seen[self] - 1]
                          /\ seen' = [seen EXCEPT ![self] = 0]
                          /\ IF (holders'[leaving[self]]) = 0 \/ (FreeRule = "first" /\ (holders'[leaving[self]]) = NumReaders - 1)
                                THEN /\ freed' = (freed \cup {leaving[self]})
                                ELSE /\ TRUE
                                     /\ freed' = freed
                          /\ leaving' = [leaving EXCEPT ![self] = None]
                          /\ IF FreeRule = "exhausted"
                                THEN /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                     /\ at' = at
                                ELSE /\ at' = [at EXCEPT ![self] = IF RefreshRule = "eager" THEN at[self] - 1 ELSE IF DecideRule = "fresh" THEN None ELSE at[self]]
                                     /\ pc' = [pc EXCEPT ![self] = "next_choose"]
                          /\ UNCHANGED << next, filled, tail, locked, out, 
                                          asked, op, cursor, ahead >>

reader(self) == next_choose(self) \/ next_read_next(self)
                   \/ next_read_tail(self) \/ next_leave(self)
                   \/ next_leave_store(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Inputs: input(self))
           \/ (\E self \in Readers: reader(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-2c9a2fb89bbfbb44266f46140f7ba386

-----------------------------------------------------------------------------
\* Invariants (the structure; what readers are promised is in MCRunGate)

TypeOK ==
  /\ next \in [Runs -> Runs \cup {None}]
  /\ filled \in [Runs -> SUBSET Fields]
  /\ holders \in [Runs -> 0 .. NumReaders]
  /\ freed \subseteq Runs
  /\ locked \in Inputs \cup {None}
  /\ \A k \in Inputs : /\ op[k] \in 1 .. Len(Script[k]) + 1
                       /\ tail[k] \in Runs /\ Input(tail[k]) = k
  /\ \A r \in Readers : /\ \A k \in Inputs : /\ Input(cursor[r][k].run) = k
                                             /\ cursor[r][k].run \in Runs
                                             /\ cursor[r][k].index \in 0 .. Size(cursor[r][k].run)
                        /\ at[r] \in Inputs \cup {None}
                        /\ leaving[r] \in Runs \cup {None}
                        /\ ahead[r] \in Int
                        /\ seen[r] \in 0 .. NumReaders
                        /\ asked[r] \in Nat

RECURSIVE ListFrom(_)
ListFrom(n) == IF n = None THEN << >> ELSE <<n>> \o ListFrom(next[n])
List(k) == ListFrom(Dummy(k))

\* I1
SortedByKey ==
  \A n \in Runs :
    /\ \A i \in 1 .. Size(n) - 1 : Before(Tuples[n][i], Tuples[n][i + 1])
    /\ \A i \in 1 .. Size(n) : Times[n][i] <= Last[n]
    /\ next[n] # None => /\ Input(next[n]) = Input(n)
                         /\ n < next[n]
                         /\ LastOf(n) <= LastOf(next[n])
                         /\ \A i \in 1 .. Size(next[n]) : LastOf(n) <= Times[next[n]][i]

\* I2.  Calls up to op[k] - 1 are over; the run of the call under way may be in the list already.
RunsKept ==
  \A k \in Inputs :
    LET list == List(k)
    IN  /\ list[Len(list)] = tail[k]
        /\ \A i \in 1 .. op[k] - 1 : Skipped[Run(k, i)] \/ \E j \in DOMAIN list : list[j] = Run(k, i)
        /\ \A n \in Runs : Input(n) = k /\ Number(n) > op[k] => next[n] = None

\* I3
Had(r, k) == SelectSeq(out[r], LAMBDA t : t[2] = k)
CursorsExact ==
  \A r \in Readers : \A k \in Inputs :
    LET c == cursor[r][k]
        p == Position(c)
        had == Had(r, k)
    IN  /\ Len(had) = Offset[c.run] + c.index
        /\ \A i \in DOMAIN had : had[i][3] = i
        /\ \A i \in DOMAIN out[r] : LET t == out[r][i] IN t[1] < p.ts \/ (t[1] = p.ts /\ t[2] <= k)

\* I4
PositionsRise == [][\A r \in Readers : \A k \in Inputs : /\ Position(cursor[r][k]).ts <= Position(cursor[r][k])'.ts
                                                         /\ LastOf(tail[k]) <= LastOf(tail[k])']_vars

\* I5
NoneFreedInUse ==
  /\ \A r \in Readers : leaving[r] \notin freed /\ \A k \in Inputs : cursor[r][k].run \notin freed
  /\ \A k \in Inputs : tail[k] \notin freed

\* I6.  A reader has left a run once its cursor is past it and it has counted itself out.
HasLeft(r, n) == n < cursor[r][Input(n)].run /\ leaving[r] # n
Published(n) == n <= tail[Input(n)] /\ ~Skipped[n]
LeavesCounted ==
  \A n \in Runs : Published(n) =>
    LET staying == {r \in Readers : ~HasLeft(r, n)}
    IN  /\ holders[n] = Cardinality(staying)
        /\ n \in freed <=> staying = {}

\* I7
AllTuples == UNION {{Tuples[n][i] : i \in DOMAIN Tuples[n]} : n \in Runs}
EndIsKnown ==
  \A r \in Readers : IsDrained(cursor[r]) =>
    /\ \A k \in Inputs : LastOf(tail[k]) = Forever
    /\ \A t \in AllTuples : \E i \in DOMAIN out[r] : out[r][i] = t
==============================================================================
