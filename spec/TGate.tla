-------------------------------- MODULE TGate --------------------------------
(*****************************************************************************)
(* T-Gate: timestamp-sorted inputs merged in one lock-free levelled list,    *)
(* read from its front by any number of readers (Algorithm 4 of the paper).  *)
(*                                                                           *)
(* Threads.  One per input: insert, heartbeat, close.  One per reader: get.  *)
(* Each reader has a head of its own and receives every tuple.  All calls    *)
(* may run together, except two calls of the same input or the same reader.  *)
(*                                                                           *)
(* The list.  Nodes are sorted by (ts, input); equal ones come from the same *)
(* input and stand in the order of their insertion.  Four kinds of node:     *)
(*      dummy      (-1, k)        one per input, in the list from the start  *)
(*      tuple      (ts, k)                                                   *)
(*      heartbeat  (ts, k)        a promise: from here on nothing below ts   *)
(*      close      (Forever, k)   a promise: nothing more at all             *)
(* All but tuples are markers: readers walk over them, never return them.    *)
(* written[k] is the last node of input k that has been put in place.        *)
(*                                                                           *)
(*   head                 written[2]             written[1]                  *)
(*    |                       |                      |                       *)
(*   dummy 1 -> dummy 2 -> (4, 2) -> (5, 1) -> (6, 1) -> tail                *)
(*                                                                           *)
(* Readiness.  A reader stands on `head`, the last node it has passed.  It   *)
(* may leave once written[head.input] is another node.  Nobody ever leaves   *)
(* the latest node of an input (I4), so at that moment the latest nodes of   *)
(* all inputs are ahead; inputs insert only after their latest node, so      *)
(* nothing can slip in between head and head.next any more (I5), and         *)
(* head.next is at or before every latest node: it is ready.  Conversely, if *)
(* written[head.input] = head, anything ahead may still be preceded by what  *)
(* this input sends next: nothing is ready.  The test is exact, and one      *)
(* comparison.  In the picture the reader may not return (5, 1): it will     *)
(* stop on (4, 2), where input 2 may still send another (4, 2).              *)
(*                                                                           *)
(* Invariants                                                                *)
(*   I1  SortedByKey     every level ascends in (ts, input, position)        *)
(*   I2  LevelsNested    every level is a sublist of the one below and ends  *)
(*                       at the tail                                         *)
(*   I3  NodesKept       a node once linked stays linked, on all its levels  *)
(*   I4  HeadsBehind     no head is past written[k], for any k               *)
(*   I5  MayLeaveFindsNode, NextIsSettled                                    *)
(*                       a reader that may leave finds a node, and the same  *)
(*                       one however long it waits                           *)
(*   I6  HintsUsable     hint[k][l] is linked on level l, not after what k   *)
(*                       inserts next; between calls hint[k][Top] is the     *)
(*                       oldest node that k can still reach (reclamation     *)
(*                       relies on it)                                       *)
(*   I7  EndIsKnown      head on a close marker: every input is closed and   *)
(*                       this reader has had everything (how it learns of    *)
(*                       the end)                                            *)
(* Guarantees                                                                *)
(*   G1  Linearizable to ReadyOrder.  Points: insert, heartbeat and close at *)
(*       insert_publish; get with a tuple at its last next_read_next, get    *)
(*       with null at next_read_written.                                     *)
(*   G2  insert_link_cas (release) pairs with every read of next (acquire):  *)
(*       who sees a node sees its fields and its own next.                   *)
(*   G3  insert_publish (release) pairs with next_read_written (acquire):    *)
(*       who sees written[k] move sees the new node linked.  Past the        *)
(*       dummies a reader has left a node of every input, so it has acquired *)
(*       the link of every input's first node ahead, and its read of next    *)
(*       finds the earliest of them.  `written` must be stored after the     *)
(*       ground link and loaded before next.                                 *)
(* Progress.  Inserts are lock-free: a compare-and-swap fails only because   *)
(* another one succeeded.  A get takes two reads, and two more for each      *)
(* marker that it walks over; readers write nothing shared.                  *)
(*                                                                           *)
(* One label per access to shared memory; which C function it stands for     *)
(* is in README.md.                                                          *)
(*****************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC, SkipList

CONSTANTS
  Scripts,        \* what may be run; Scripts[s][k]: what input k does, a sequence of [kind, ts]; inputs are 1, 2, ...
  NumReaders,
  Polls,          \* calls per reader; 0 = call again and again until the end of all inputs
  Levels,
  CountReads,     \* count the reads of one insertion (departure 9)

  \* The rules; the first value of each is the algorithm, the others are printed rules and seeded mistakes.
  ReadRule,       \* "exact" | "printed" | "literal" | "next first"
  MarkerRule,     \* "walk" | "return" | "null"
  StartRule,      \* "dummies" | "missing" | "infinite" | "last dummy"
  TieRule,        \* "input" | "arrival"
  SearchRule,     \* "past" | "before": does the search pass equal nodes?
  LinkRule,       \* "past" | "before" | "stuck": does the link?
  HintRule,       \* "own" | "prior": after linking, remember the new node or the one before it
  LinkOrder,      \* "up" | "down"
  CasRule,        \* "swap" | "blind" | "stale" | "retry"
  PublishRule,    \* "linked" | "ground" | "unlinked"
  PromiseRule,    \* "marker" | "no close" | "no heartbeat" | "unlinked" | "stale"
  LockRule        \* "none" | "spin"

ASSUME /\ Levels \in 1 .. 9 /\ Polls \in Nat /\ NumReaders \in Nat /\ CountReads \in BOOLEAN
       /\ ReadRule \in {"exact", "printed", "literal", "next first"}
       /\ MarkerRule \in {"walk", "return", "null"}
       /\ StartRule \in {"dummies", "missing", "infinite", "last dummy"}
       /\ TieRule \in {"input", "arrival"}
       /\ SearchRule \in {"past", "before"}
       /\ LinkRule \in {"past", "before", "stuck"}
       /\ HintRule \in {"own", "prior"}
       /\ LinkOrder \in {"up", "down"}
       /\ CasRule \in {"swap", "blind", "stale", "retry"}
       /\ PublishRule \in {"linked", "ground", "unlinked"}
       /\ PromiseRule \in {"marker", "no close", "no heartbeat", "unlinked", "stale"}
       /\ LockRule \in {"none", "spin"}

Width == Len(Scripts[1])      \* the same in all scripts; C counts inputs from 0
Inputs == 1 .. Width
Readers == Width + 1 .. Width + NumReaders
Top == Levels - 1
Forever == 1000

\* A node's address is 100 * input + number of the call that made it; number 0 is the input's dummy.
Node(k, i) == 100 * k + i
Number(n) == n % 100
Dummy(k) == Node(k, 0)
None == 0          \* an unset pointer
Origin == 1        \* the paper's temporary head, in front of the dummies: only printed and seeded rules start there
TailNode == 999

\* Those of the longest script of each input; a node that the chosen script does not make is of kind "none".
CallsMax == [k \in Inputs |-> CHOOSE n \in 0 .. 99 : /\ \E s \in DOMAIN Scripts : Len(Scripts[s][k]) = n
                                                    /\ \A s \in DOMAIN Scripts : Len(Scripts[s][k]) <= n]
Nodes == {Origin} \cup UNION {{Node(k, i) : i \in 0 .. CallsMax[k]} : k \in Inputs}

\* What a node holds never changes: tables, by script.  (TLCEval: work it out once.)
Input(n) == n \div 100
Call(s, n) == Scripts[s][Input(n)][Number(n)]
KindOf == TLCEval([s \in DOMAIN Scripts |-> TLCEval([n \in Nodes |->
  CASE n = Origin -> "origin" [] Number(n) = 0 -> "dummy" [] Number(n) > Len(Scripts[s][Input(n)]) -> "none"
    [] OTHER -> Call(s, n).kind])])
TsOf == TLCEval([s \in DOMAIN Scripts |-> TLCEval([n \in Nodes |->
  CASE n = Origin -> -2 [] Number(n) = 0 -> -1 [] KindOf[s][n] = "none" -> Forever [] OTHER -> Call(s, n).ts])])

\* Which calls make no node: a heartbeat that promises nothing new.
SkippedOf == TLCEval([s \in DOMAIN Scripts |-> TLCEval([n \in Nodes |->
  \/ KindOf[s][n] = "close" /\ PromiseRule = "no close"
  \/ KindOf[s][n] = "heartbeat" /\ PromiseRule = "no heartbeat"
  \/ KindOf[s][n] = "heartbeat" /\ PromiseRule # "stale"
       /\ \E i \in 1 .. Number(n) - 1 : TsOf[s][Node(Input(n), i)] >= TsOf[s][n]])])

HasDummies == StartRule # "missing"
FirstHint(k) == IF HasDummies THEN Dummy(k) ELSE Origin
FirstHead == CASE ReadRule \in {"printed", "literal"} \/ ~HasDummies -> Origin
               [] StartRule = "last dummy"                            -> Dummy(Width)
               [] OTHER                                               -> Dummy(1)
FirstNext(n) == CASE n = Origin                     -> IF HasDummies THEN Dummy(1) ELSE TailNode
                  [] Number(n) = 0 /\ HasDummies    -> IF Input(n) < Width THEN Dummy(Input(n) + 1) ELSE TailNode
                  [] OTHER                          -> None

(*****************************************************************************
--algorithm TGate
variables
  chosen \in DOMAIN Scripts,           \* never changes
  next = [n \in Nodes |-> [l \in 0 .. Top |-> FirstNext(n)]],
  written = [k \in Inputs |-> IF HasDummies THEN Dummy(k) ELSE None],
  locked = FALSE,
  out = [r \in Readers |-> << >>],     \* ghost: what each reader has had
  asked = [r \in Readers |-> 0];       \* ghost: calls answered

define
  Script == Scripts[chosen]
  Kind == KindOf[chosen]
  Ts == TsOf[chosen]
  Skipped == SkippedOf[chosen]
  IsTuple(n) == Kind[n] = "tuple"

  \* The order of the list as the rules have it ...
  KeyLess(a, b) == Ts[a] < Ts[b] \/ (Ts[a] = Ts[b] /\ TieRule = "input" /\ Input(a) < Input(b))
  \* ... and as the contract has it, down to the position within the input.
  Before(a, b) == \/ Ts[a] < Ts[b]
                  \/ Ts[a] = Ts[b] /\ Input(a) < Input(b)
                  \/ Ts[a] = Ts[b] /\ Input(a) = Input(b) /\ a < b

  \* Must whoever brings in node `me` step over node n?
  Passes(rule, n, me) == n # TailNode /\ IF rule = "before" THEN KeyLess(n, me) ELSE ~KeyLess(me, n)

  \* Seeded: `written` moves to a node that is not in the list (yet, or ever).
  Unlinked(n) == PublishRule = "unlinked" \/ (PromiseRule = "unlinked" /\ ~IsTuple(n))

  \* Where the search goes on one level down: from the node it has come to, or from the hint if that is further on.
  Descend(at, hinted) == IF HintRule = "own" /\ ~KeyLess(hinted, at) THEN hinted ELSE at

  \* Is n the latest node of its input?
  IsLatest(n) == /\ n # Origin
                 /\ written[Input(n)] = n
                 /\ ~(StartRule = "infinite" /\ Kind[n] = "dummy")
end define;

\* The call is over; the next search starts from the topmost hint.
macro finish_insert() begin
  op := op + 1;
  level := Top;
  cur := hint[Top];
  found := None;
  height := 0;
  reads := 0;
  goto insert_search_next;
end macro;

macro count_read() begin
  if CountReads then
    reads := reads + 1;
  end if;
end macro;

macro answer_null() begin
  if Polls > 0 then
    asked[self] := asked[self] + 1;
  end if;
  goto next_read_written;
end macro;

\* The head moves to node n: a tuple is the answer, a marker is walked over.
macro pass(n) begin
  head := n;
  if IsTuple(n) \/ MarkerRule = "return" then
    out[self] := Append(out[self], n);
    if Polls > 0 then
      asked[self] := asked[self] + 1;
    end if;
  elsif MarkerRule = "null" /\ Polls > 0 then
    asked[self] := asked[self] + 1;
  end if;
  goto next_read_written;
end macro;

process input \in Inputs
variables
  op = 1,                                         \* number of the call
  level = Top,
  cur = FirstHint(self),
  found = None,
  height = 0,
  hint = [l \in 0 .. Top |-> FirstHint(self)],    \* the paper's update
  reads = 0;
begin
\* From the topmost hint down: on each level, the last node that is not after the new one.
insert_search_next:
  while op <= Len(Script[self]) do
    if Skipped[Node(self, op)] then
      op := op + 1;
    else
      with n = next[cur][level] do
        count_read();
        if Passes(SearchRule, n, Node(self, op)) then
          cur := n;
        else
          hint[level] := cur;
          if level > 0 then
            level := level - 1;
            cur := Descend(cur, hint[level]);
          else
            with h \in 1 .. Levels do
              height := h;
              level := IF LinkOrder = "up" THEN 0 ELSE h - 1;
            end with;
            cur := hint[level];
            if LockRule = "spin" then
              goto insert_lock;
            elsif Unlinked(Node(self, op)) then
              goto insert_publish;
            else
              goto insert_link_next;
            end if;
          end if;
        end if;
      end with;
    end if;
  end while;
  goto Done;

insert_lock:
  if locked then
    goto insert_lock;
  else
    locked := TRUE;
    goto insert_link_next;
  end if;

\* Others may have linked nodes here since the search: step over them.  The new node's next is still private.
insert_link_next:
  with n = next[cur][level] do
    count_read();
    if Passes(LinkRule, n, Node(self, op)) then
      if LinkRule # "stuck" then
        cur := n;
      end if;
      goto insert_link_next;
    else
      found := n;
      if CasRule # "stale" \/ next[Node(self, op)][level] = None then
        next[Node(self, op)][level] := n;
      end if;
    end if;
  end with;

insert_link_cas:
  if next[cur][level] = found \/ CasRule = "blind" then
    next[cur][level] := Node(self, op);
    if HintRule = "own" then
      hint[level] := Node(self, op);
    end if;
    if level # (IF LinkOrder = "up" THEN height - 1 ELSE 0) then
      level := IF LinkOrder = "up" THEN level + 1 ELSE level - 1;
      cur := hint[level];
      if PublishRule = "ground" /\ level = 1 then
        goto insert_publish;
      else
        goto insert_link_next;
      end if;
    elsif PublishRule = "unlinked" \/ (PublishRule = "ground" /\ height > 1) then
      finish_insert();
    end if;
  elsif CasRule = "retry" then
    goto insert_link_cas;
  else
    goto insert_link_next;
  end if;

\* Linearization point of insert, heartbeat and close.
insert_publish:
  written[self] := Node(self, op);
  if PublishRule = "unlinked" \/ (PublishRule = "ground" /\ height > 1) then
    goto insert_link_next;
  elsif LockRule = "none" then
    finish_insert();
  end if;

insert_unlock:
  locked := FALSE;
  finish_insert();
end process;

process reader \in Readers
variables
  head = FirstHead,
  peek = None;
begin
\* Linearization point of a get that answers null.
next_read_written:
  while IF Polls = 0 THEN Kind[head] # "close" ELSE asked[self] < Polls do
    if ReadRule # "exact" then
      goto next_peek_next;
    elsif IsLatest(head) then
      answer_null();
    else
      goto next_read_next;
    end if;
  end while;
  goto Done;

\* Linearization point of a get that answers with a tuple.  TailNode is met under seeded rules only (I5).
next_read_next:
  with n = next[head][0] do
    if n = TailNode then
      answer_null();
    else
      pass(n);
    end if;
  end with;

next_peek_next:
  peek := next[head][0];
  if peek = TailNode then
    answer_null();
  end if;

next_peek_written:
  with n = peek do
    peek := None;
    if ReadRule # "literal" /\ IsLatest(IF ReadRule = "printed" THEN n ELSE head) then
      answer_null();
    else
      pass(n);
    end if;
  end with;
end process;
end algorithm;
******************************************************************************)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-27467cb53a3bb59a54092b612dbc04e6
VARIABLES chosen, next, written, locked, out, asked, pc

(* define statement *)
Script == Scripts[chosen]
Kind == KindOf[chosen]
Ts == TsOf[chosen]
Skipped == SkippedOf[chosen]
IsTuple(n) == Kind[n] = "tuple"


KeyLess(a, b) == Ts[a] < Ts[b] \/ (Ts[a] = Ts[b] /\ TieRule = "input" /\ Input(a) < Input(b))

Before(a, b) == \/ Ts[a] < Ts[b]
                \/ Ts[a] = Ts[b] /\ Input(a) < Input(b)
                \/ Ts[a] = Ts[b] /\ Input(a) = Input(b) /\ a < b


Passes(rule, n, me) == n # TailNode /\ IF rule = "before" THEN KeyLess(n, me) ELSE ~KeyLess(me, n)


Unlinked(n) == PublishRule = "unlinked" \/ (PromiseRule = "unlinked" /\ ~IsTuple(n))


Descend(at, hinted) == IF HintRule = "own" /\ ~KeyLess(hinted, at) THEN hinted ELSE at


IsLatest(n) == /\ n # Origin
               /\ written[Input(n)] = n
               /\ ~(StartRule = "infinite" /\ Kind[n] = "dummy")

VARIABLES op, level, cur, found, height, hint, reads, head, peek

vars == << chosen, next, written, locked, out, asked, pc, op, level, cur, 
           found, height, hint, reads, head, peek >>

ProcSet == (Inputs) \cup (Readers)

Init == (* Global variables *)
        /\ chosen \in DOMAIN Scripts
        /\ next = [n \in Nodes |-> [l \in 0 .. Top |-> FirstNext(n)]]
        /\ written = [k \in Inputs |-> IF HasDummies THEN Dummy(k) ELSE None]
        /\ locked = FALSE
        /\ out = [r \in Readers |-> << >>]
        /\ asked = [r \in Readers |-> 0]
        (* Process input *)
        /\ op = [self \in Inputs |-> 1]
        /\ level = [self \in Inputs |-> Top]
        /\ cur = [self \in Inputs |-> FirstHint(self)]
        /\ found = [self \in Inputs |-> None]
        /\ height = [self \in Inputs |-> 0]
        /\ hint = [self \in Inputs |-> [l \in 0 .. Top |-> FirstHint(self)]]
        /\ reads = [self \in Inputs |-> 0]
        (* Process reader *)
        /\ head = [self \in Readers |-> FirstHead]
        /\ peek = [self \in Readers |-> None]
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "insert_search_next"
                                        [] self \in Readers -> "next_read_written"]

insert_search_next(self) == /\ pc[self] = "insert_search_next"
                            /\ IF op[self] <= Len(Script[self])
                                  THEN /\ IF Skipped[Node(self, op[self])]
                                             THEN /\ op' = [op EXCEPT ![self] = op[self] + 1]
                                                  /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                                                  /\ UNCHANGED << level, cur, 
                                                                  height, hint, 
                                                                  reads >>
                                             ELSE /\ LET n == next[cur[self]][level[self]] IN
                                                       /\ IF CountReads
                                                             THEN /\ reads' = [reads EXCEPT ![self] = reads[self] + 1]
                                                             ELSE /\ TRUE
                                                                  /\ reads' = reads
                                                       /\ IF Passes(SearchRule, n, Node(self, op[self]))
                                                             THEN /\ cur' = [cur EXCEPT ![self] = n]
                                                                  /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                                                                  /\ UNCHANGED << level, 
                                                                                  height, 
                                                                                  hint >>
                                                             ELSE /\ hint' = [hint EXCEPT ![self][level[self]] = cur[self]]
                                                                  /\ IF level[self] > 0
                                                                        THEN /\ level' = [level EXCEPT ![self] = level[self] - 1]
                                                                             /\ cur' = [cur EXCEPT ![self] = Descend(cur[self], hint'[self][level'[self]])]
                                                                             /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                                                                             /\ UNCHANGED height
                                                                        ELSE /\ \E h \in 1 .. Levels:
                                                                                  /\ height' = [height EXCEPT ![self] = h]
                                                                                  /\ level' = [level EXCEPT ![self] = IF LinkOrder = "up" THEN 0 ELSE h - 1]
                                                                             /\ cur' = [cur EXCEPT ![self] = hint'[self][level'[self]]]
                                                                             /\ IF LockRule = "spin"
                                                                                   THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                                                                   ELSE /\ IF Unlinked(Node(self, op[self]))
                                                                                              THEN /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                                                                                              ELSE /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                                                  /\ op' = op
                                  ELSE /\ pc' = [pc EXCEPT ![self] = "Done"]
                                       /\ UNCHANGED << op, level, cur, height, 
                                                       hint, reads >>
                            /\ UNCHANGED << chosen, next, written, locked, out, 
                                            asked, found, head, peek >>

insert_lock(self) == /\ pc[self] = "insert_lock"
                     /\ IF locked
                           THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                /\ UNCHANGED locked
                           ELSE /\ locked' = TRUE
                                /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                     /\ UNCHANGED << chosen, next, written, out, asked, op, 
                                     level, cur, found, height, hint, reads, 
                                     head, peek >>

insert_link_next(self) == /\ pc[self] = "insert_link_next"
                          /\ LET n == next[cur[self]][level[self]] IN
                               /\ IF CountReads
                                     THEN /\ reads' = [reads EXCEPT ![self] = reads[self] + 1]
                                     ELSE /\ TRUE
                                          /\ reads' = reads
                               /\ IF Passes(LinkRule, n, Node(self, op[self]))
                                     THEN /\ IF LinkRule # "stuck"
                                                THEN /\ cur' = [cur EXCEPT ![self] = n]
                                                ELSE /\ TRUE
                                                     /\ cur' = cur
                                          /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                                          /\ UNCHANGED << next, found >>
                                     ELSE /\ found' = [found EXCEPT ![self] = n]
                                          /\ IF CasRule # "stale" \/ next[Node(self, op[self])][level[self]] = None
                                                THEN /\ next' = [next EXCEPT ![Node(self, op[self])][level[self]] = n]
                                                ELSE /\ TRUE
                                                     /\ next' = next
                                          /\ pc' = [pc EXCEPT ![self] = "insert_link_cas"]
                                          /\ cur' = cur
                          /\ UNCHANGED << chosen, written, locked, out, asked, 
                                          op, level, height, hint, head, peek >>

insert_link_cas(self) == /\ pc[self] = "insert_link_cas"
                         /\ IF next[cur[self]][level[self]] = found[self] \/ CasRule = "blind"
                               THEN /\ next' = [next EXCEPT ![cur[self]][level[self]] = Node(self, op[self])]
                                    /\ IF HintRule = "own"
                                          THEN /\ hint' = [hint EXCEPT ![self][level[self]] = Node(self, op[self])]
                                          ELSE /\ TRUE
                                               /\ hint' = hint
                                    /\ IF level[self] # (IF LinkOrder = "up" THEN height[self] - 1 ELSE 0)
                                          THEN /\ level' = [level EXCEPT ![self] = IF LinkOrder = "up" THEN level[self] + 1 ELSE level[self] - 1]
                                               /\ cur' = [cur EXCEPT ![self] = hint'[self][level'[self]]]
                                               /\ IF PublishRule = "ground" /\ level'[self] = 1
                                                     THEN /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                                                     ELSE /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                                               /\ UNCHANGED << op, found, 
                                                               height, reads >>
                                          ELSE /\ IF PublishRule = "unlinked" \/ (PublishRule = "ground" /\ height[self] > 1)
                                                     THEN /\ op' = [op EXCEPT ![self] = op[self] + 1]
                                                          /\ level' = [level EXCEPT ![self] = Top]
                                                          /\ cur' = [cur EXCEPT ![self] = hint'[self][Top]]
                                                          /\ found' = [found EXCEPT ![self] = None]
                                                          /\ height' = [height EXCEPT ![self] = 0]
                                                          /\ reads' = [reads EXCEPT ![self] = 0]
                                                          /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                                                     ELSE /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                                                          /\ UNCHANGED << op, 
                                                                          level, 
                                                                          cur, 
                                                                          found, 
                                                                          height, 
                                                                          reads >>
                               ELSE /\ IF CasRule = "retry"
                                          THEN /\ pc' = [pc EXCEPT ![self] = "insert_link_cas"]
                                          ELSE /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                                    /\ UNCHANGED << next, op, level, cur, 
                                                    found, height, hint, reads >>
                         /\ UNCHANGED << chosen, written, locked, out, asked, 
                                         head, peek >>

insert_publish(self) == /\ pc[self] = "insert_publish"
                        /\ written' = [written EXCEPT ![self] = Node(self, op[self])]
                        /\ IF PublishRule = "unlinked" \/ (PublishRule = "ground" /\ height[self] > 1)
                              THEN /\ pc' = [pc EXCEPT ![self] = "insert_link_next"]
                                   /\ UNCHANGED << op, level, cur, found, 
                                                   height, reads >>
                              ELSE /\ IF LockRule = "none"
                                         THEN /\ op' = [op EXCEPT ![self] = op[self] + 1]
                                              /\ level' = [level EXCEPT ![self] = Top]
                                              /\ cur' = [cur EXCEPT ![self] = hint[self][Top]]
                                              /\ found' = [found EXCEPT ![self] = None]
                                              /\ height' = [height EXCEPT ![self] = 0]
                                              /\ reads' = [reads EXCEPT ![self] = 0]
                                              /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                                         ELSE /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                              /\ UNCHANGED << op, level, cur, 
                                                              found, height, 
                                                              reads >>
                        /\ UNCHANGED << chosen, next, locked, out, asked, hint, 
                                        head, peek >>

insert_unlock(self) == /\ pc[self] = "insert_unlock"
                       /\ locked' = FALSE
                       /\ op' = [op EXCEPT ![self] = op[self] + 1]
                       /\ level' = [level EXCEPT ![self] = Top]
                       /\ cur' = [cur EXCEPT ![self] = hint[self][Top]]
                       /\ found' = [found EXCEPT ![self] = None]
                       /\ height' = [height EXCEPT ![self] = 0]
                       /\ reads' = [reads EXCEPT ![self] = 0]
                       /\ pc' = [pc EXCEPT ![self] = "insert_search_next"]
                       /\ UNCHANGED << chosen, next, written, out, asked, hint, 
                                       head, peek >>

input(self) == insert_search_next(self) \/ insert_lock(self)
                  \/ insert_link_next(self) \/ insert_link_cas(self)
                  \/ insert_publish(self) \/ insert_unlock(self)

next_read_written(self) == /\ pc[self] = "next_read_written"
                           /\ IF IF Polls = 0 THEN Kind[head[self]] # "close" ELSE asked[self] < Polls
                                 THEN /\ IF ReadRule # "exact"
                                            THEN /\ pc' = [pc EXCEPT ![self] = "next_peek_next"]
                                                 /\ asked' = asked
                                            ELSE /\ IF IsLatest(head[self])
                                                       THEN /\ IF Polls > 0
                                                                  THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                                  ELSE /\ TRUE
                                                                       /\ asked' = asked
                                                            /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                                            /\ asked' = asked
                                 ELSE /\ pc' = [pc EXCEPT ![self] = "Done"]
                                      /\ asked' = asked
                           /\ UNCHANGED << chosen, next, written, locked, out, 
                                           op, level, cur, found, height, hint, 
                                           reads, head, peek >>

next_read_next(self) == /\ pc[self] = "next_read_next"
                        /\ LET n == next[head[self]][0] IN
                             IF n = TailNode
                                THEN /\ IF Polls > 0
                                           THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                           ELSE /\ TRUE
                                                /\ asked' = asked
                                     /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                     /\ UNCHANGED << out, head >>
                                ELSE /\ head' = [head EXCEPT ![self] = n]
                                     /\ IF IsTuple(n) \/ MarkerRule = "return"
                                           THEN /\ out' = [out EXCEPT ![self] = Append(out[self], n)]
                                                /\ IF Polls > 0
                                                      THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                      ELSE /\ TRUE
                                                           /\ asked' = asked
                                           ELSE /\ IF MarkerRule = "null" /\ Polls > 0
                                                      THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                      ELSE /\ TRUE
                                                           /\ asked' = asked
                                                /\ out' = out
                                     /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                        /\ UNCHANGED << chosen, next, written, locked, op, 
                                        level, cur, found, height, hint, reads, 
                                        peek >>

next_peek_next(self) == /\ pc[self] = "next_peek_next"
                        /\ peek' = [peek EXCEPT ![self] = next[head[self]][0]]
                        /\ IF peek'[self] = TailNode
                              THEN /\ IF Polls > 0
                                         THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                         ELSE /\ TRUE
                                              /\ asked' = asked
                                   /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                              ELSE /\ pc' = [pc EXCEPT ![self] = "next_peek_written"]
                                   /\ asked' = asked
                        /\ UNCHANGED << chosen, next, written, locked, out, op, 
                                        level, cur, found, height, hint, reads, 
                                        head >>

next_peek_written(self) == /\ pc[self] = "next_peek_written"
                           /\ LET n == peek[self] IN
                                /\ peek' = [peek EXCEPT ![self] = None]
                                /\ IF ReadRule # "literal" /\ IsLatest(IF ReadRule = "printed" THEN n ELSE head[self])
                                      THEN /\ IF Polls > 0
                                                 THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                 ELSE /\ TRUE
                                                      /\ asked' = asked
                                           /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                           /\ UNCHANGED << out, head >>
                                      ELSE /\ head' = [head EXCEPT ![self] = n]
                                           /\ IF IsTuple(n) \/ MarkerRule = "return"
                                                 THEN /\ out' = [out EXCEPT ![self] = Append(out[self], n)]
                                                      /\ IF Polls > 0
                                                            THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                            ELSE /\ TRUE
                                                                 /\ asked' = asked
                                                 ELSE /\ IF MarkerRule = "null" /\ Polls > 0
                                                            THEN /\ asked' = [asked EXCEPT ![self] = asked[self] + 1]
                                                            ELSE /\ TRUE
                                                                 /\ asked' = asked
                                                      /\ out' = out
                                           /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                           /\ UNCHANGED << chosen, next, written, locked, op, 
                                           level, cur, found, height, hint, 
                                           reads >>

reader(self) == next_read_written(self) \/ next_read_next(self)
                   \/ next_peek_next(self) \/ next_peek_written(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Inputs: input(self))
           \/ (\E self \in Readers: reader(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-3d9f191221638a22486aba4ae0e89c19

-----------------------------------------------------------------------------
\* Invariants (the structure; what readers are promised is in MCTGate)

First == IF HasDummies THEN Dummy(1) ELSE Origin
Me(k) == Node(k, op[k])

TypeOK ==
  /\ next \in [Nodes -> [0 .. Top -> Nodes \cup {TailNode, None}]]
  /\ written \in [Inputs -> Nodes \cup {None}]
  /\ locked \in BOOLEAN
  /\ \A r \in Readers : \A i \in DOMAIN out[r] : out[r][i] \in Nodes
  /\ \A k \in Inputs : /\ op[k] \in 1 .. Len(Script[k]) + 1
                       /\ level[k] \in 0 .. Top
                       /\ cur[k] \in Nodes
                       /\ found[k] \in Nodes \cup {TailNode, None}
                       /\ height[k] \in 0 .. Levels
                       /\ hint[k] \in [0 .. Top -> Nodes]
  /\ \A r \in Readers : /\ asked[r] \in 0 .. Polls
                        /\ head[r] \in Nodes
                        /\ peek[r] \in Nodes \cup {TailNode, None}

\* I1, pointer by pointer; it holds before a node is linked, too
SortedByKey == \A n \in Nodes : \A l \in 0 .. Top : next[n][l] \in Nodes => Before(n, next[n][l])

\* I2
LevelsNested == LET walk == [l \in 0 .. Top |-> Walk(next, l, First)]
                IN  /\ \A l \in 1 .. Top : IsSublist(walk[l], walk[l - 1])
                    /\ \A l \in 0 .. Top : next[walk[l][Len(walk[l])]][l] = TailNode

\* I3.  A node's pointer on a level is set just before the node is linked there.
HasLinked(k, l) == CASE pc[k] \in {"insert_link_next", "insert_link_cas"} -> l < level[k]
                     [] pc[k] \in {"insert_publish", "insert_unlock"}     -> l < height[k]
                     [] OTHER                                             -> FALSE
NodesKept ==
  \A l \in 0 .. Top :
    LET members == Members(next, l, First)
    IN  \A k \in Inputs :
          /\ HasLinked(k, l) => Me(k) \in members
          /\ \A i \in 0 .. op[k] - 1 : next[Node(k, i)][l] # None => Node(k, i) \in members
          /\ l = 0 => \A i \in 1 .. op[k] - 1 : next[Node(k, i)][0] # None \/ Skipped[Node(k, i)]

\* I4
HeadsBehind == \A r \in Readers : \A k \in Inputs : ~Before(written[k], head[r])

\* I5, first half
MayLeaveFindsNode == \A r \in Readers : pc[r] = "next_read_next" => next[head[r]][0] \in Nodes

\* I5, second half
NextIsSettled == [][\A r \in Readers : pc[r] = "next_read_next" => next'[head[r]][0] = next[head[r]][0]]_vars

\* I6
BetweenCalls(k) == pc[k] \in {"insert_search_next", "Done"} /\ level[k] = Top /\ cur[k] = hint[k][Top]
HintsUsable ==
  \A k \in Inputs : \A l \in 0 .. Top :
    /\ next[hint[k][l]][l] # None
    /\ op[k] <= Len(Script[k]) => Skipped[Me(k)] \/ ~KeyLess(Me(k), hint[k][l])
    /\ BetweenCalls(k) => ~Before(hint[k][l], hint[k][Top])
    /\ pc[k] \in {"insert_search_next", "insert_link_next", "insert_link_cas"} => ~Before(cur[k], hint[k][Top])

\* I7
EndIsKnown ==
  \A r \in Readers : Kind[head[r]] = "close" =>
    /\ \A k \in Inputs : Kind[written[k]] = "close"
    /\ \A n \in Nodes : IsTuple(n) => n \in Range(out[r])
=============================================================================
