------------------------------ MODULE Reclaim -------------------------------
(***************************************************************************)
(* When may a node be freed?  For the levelled lists of T-Gate and W-Hive, *)
(* whose nodes leave in the order of the list: prefix reclamation          *)
(* (departure 10; the paper only says when a node is garbage).             *)
(*                                                                         *)
(*  level 1   D =============> C ================> F ========> end         *)
(*  level 0   D -> a -> b ---> C -> d -> e -> f -> F -> g ---> end         *)
(*            ^oldest          ^front    ^head 2        ^head 1            *)
(*                                                                         *)
(* Everybody who searches begins at `front` or behind it.  `front` is a    *)
(* node of full height that every reader has reached, so all levels can be *)
(* entered there, and nothing will ever be inserted before it: an input    *)
(* inserts behind its own last node, and no reader passes that one.  All   *)
(* pointers go forward.  Hence whatever lies before `front` is unreachable *)
(* except for calls that had begun when `front` moved; once those have     *)
(* ended, it is freed.                                                     *)
(*                                                                         *)
(* Roles.  Each input's thread inserts (`insert`).  Each reader's thread   *)
(* walks (`next`) and counts the nodes it has left in `passed`.  Reader 1  *)
(* also frees (`reclaim`, after each `next`): `oldest`, `trail` and        *)
(* `waiting` are its own, so no lock is needed, and if it stops, its head  *)
(* holds the rest of the list anyway.                                      *)
(*                                                                         *)
(* An idle input holds nothing.  Its search hint (the last node it saw on  *)
(* the top level) may long have been freed; at the next call it enters,    *)
(* reads `front`, and drops a hint that is not behind it.  `active` counts *)
(* entries and exits: odd inside a call.  The reclaimer moves `front`      *)
(* first and reads `active` afterwards; the input enters first and reads   *)
(* `front` afterwards; so one of the two sees the other (G2).              *)
(*                                                                         *)
(*   I1  front, every reader's head, and every pointer that an input holds *)
(*       inside a call lead to unfreed nodes only                          *)
(*   I2  from front, each level is ascending and part of the level below   *)
(*   I3  nothing is inserted before a reader's head: the number of nodes   *)
(*       before it is what it counted                                      *)
(*   I4  front is of full height and linked on all levels                  *)
(*                                                                         *)
(*   G1  no access to a freed node, no node freed twice                    *)
(*   G2  store active / load front, and store front / load active, are     *)
(*       sequentially consistent; all else is release and acquire          *)
(*   G3  what lies before front is freed once the calls of that moment     *)
(*       have ended; a thread that stops inside a call keeps what became   *)
(*       garbage after it entered, one that stops outside keeps nothing    *)
(*                                                                         *)
(* Progress: `next` and `reclaim` are wait-free, `insert` is lock-free.    *)
(*                                                                         *)
(* One label per access to shared memory; which C function it stands for   *)
(* is in README.md.                                                        *)
(***************************************************************************)
EXTENDS Naturals, Integers, Sequences, FiniteSets

CONSTANTS
  Inputs,       \* numbers from 1 on
  Readers,      \* numbers from 1 on; reader 1 reclaims
  Script,       \* Script[k]: what input k inserts, a sequence of <<ts, height>>
  Levels,       \* full height
  Addresses,    \* places in memory; fewer than nodes means reuse
  PollsMax,     \* how often a reader asks; 0: until it has all there is
  GraceRule,    \* "wait" for the calls that had begun; "none"; "early": look at them before moving front;
                \* "block": stand and wait for them
  ReaderRule,   \* "all" readers count; "own": only the reclaimer's own position
  HintRule,     \* "order": a hint counts if it is behind front; "trusted": always;
                \* "pointer": if front is the pointer it was (ABA)
  EnterRule,    \* "first": enter, then read front; "last": read front, then enter
  LeaveRule,    \* "last"; "early": after level 0 is linked; "never": an input holds its hint while it is idle
  FrontRule,    \* "full": nodes of full height only; "any"
  FreeRule      \* "free"; "never"

ASSUME /\ GraceRule \in {"wait", "block", "none", "early"}
       /\ ReaderRule \in {"all", "own"}
       /\ HintRule \in {"order", "trusted", "pointer"}
       /\ EnterRule \in {"first", "last"}
       /\ LeaveRule \in {"last", "early", "never"}
       /\ FrontRule \in {"full", "any"}
       /\ FreeRule \in {"free", "never"}

EndOfList == 0
Nil == -1
Top == Levels - 1

\* A node is named by what it is: node 10 * k + i is the i-th of input k, 10 * k its dummy.  Its key and height never
\* change.  Where it lies in memory is `address`; two nodes may lie at the same place one after the other, and what
\* the machine compares is the place.
NodesOf(k) == {10 * k + i : i \in 0 .. Len(Script[k])}
Nodes == UNION {NodesOf(k) : k \in Inputs}
InputOf(n) == n \div 10
TsOf(n) == IF n % 10 = 0 THEN -1 ELSE Script[InputOf(n)][n % 10][1]
HeightOf(n) == IF n % 10 = 0 THEN Levels ELSE Script[InputOf(n)][n % 10][2]
Before(m, n) == \/ TsOf(m) < TsOf(n)                                 \* the order (ts, input, position)
                \/ TsOf(m) = TsOf(n) /\ InputOf(m) < InputOf(n)
                \/ TsOf(m) = TsOf(n) /\ InputOf(m) = InputOf(n) /\ m < n
LeastOf(set) == CHOOSE n \in set : \A m \in set : ~Before(m, n)

Dummy(k) == 10 * k
FirstDummy == LeastOf({Dummy(k) : k \in Inputs})
LastOf(k) == 10 * k + Len(Script[k])
Final == LeastOf({LastOf(k) : k \in Inputs})                         \* no reader ever gets past it
FrontAtEnd == CHOOSE n \in Nodes : /\ HeightOf(n) = Levels /\ ~Before(Final, n)
                                   /\ \A m \in Nodes : HeightOf(m) = Levels /\ ~Before(Final, m) => ~Before(n, m)
AfterDummy(k) == LET later == {Dummy(j) : j \in {j \in Inputs : j > k}}
                 IN  IF later = {} THEN EndOfList ELSE LeastOf(later)

(* --algorithm reclaim
variables
  next = [n \in Nodes |-> [l \in 0 .. Top |-> IF n % 10 = 0 THEN AfterDummy(InputOf(n)) ELSE Nil]],
  written = [k \in Inputs |-> Dummy(k)],
  front = FirstDummy,
  active = [k \in Inputs |-> 0],
  passed = [r \in Readers |-> 0],
  \* the allocator
  address = [n \in Nodes |-> IF n % 10 = 0 THEN InputOf(n) ELSE 0],
  freed = {},
  \* what must not happen
  stale = FALSE,                     \* an access to a freed node
  twice = FALSE,                     \* a node freed twice
  short = FALSE;                     \* a level that the node does not have

define
  Lives(n) == address[n] # 0 /\ n \notin freed
  Same(m, n) == m = n \/ (m \in Nodes /\ n \in Nodes /\ address[m] # 0 /\ address[m] = address[n])
  Places == 1 .. Addresses
  Room == Places \ {address[n] : n \in {n \in Nodes : Lives(n)}}
  RECURSIVE Walk(_, _, _)
  Walk(n, l, fuel) == IF n \notin Nodes \/ fuel = 0 THEN << >> ELSE <<n>> \o Walk(next[n][l], l, fuel - 1)
  Chain(n, l) == Walk(n, l, Cardinality(Nodes) + 1)
  Range(seq) == {seq[i] : i \in DOMAIN seq}
  Segment(m, n) == Range(Chain(m, 0)) \ Range(Chain(n, 0))          \* from m up to n, n not included
end define;

macro touch(set) begin
  if \E n \in set \cap Nodes : ~Lives(n) then stale := TRUE; end if;
end macro;

macro insert_return() begin          \* what the next call begins with
  hint := IF HeightOf(new) = Levels THEN new ELSE pred[Top];
  base := IF HintRule = "pointer" THEN found ELSE Nil;
  pred := [l \in 0 .. Top |-> Nil] || succ := [l \in 0 .. Top |-> Nil] || cur := Nil || found := Nil || level := 0;
  count := count + 1;
  goto insert_take_node;
end macro;

macro next_return() begin            \* what follows a call of next
  polls := IF PollsMax = 0 THEN 0 ELSE polls + 1;
  least := passed[self - 100];
  if self # 101 then
    if polls = PollsMax /\ (PollsMax > 0 \/ head = Final) then goto Done; else goto next_read_written; end if;
  elsif oldest # front then          \* only this thread writes front
    goto reclaim_read_active;        \* front has moved, the calls of that moment have not all ended
  elsif ReaderRule = "own" \/ Cardinality(Readers) = 1 then
    goto reclaim_read_next;
  else
    goto reclaim_read_passed;
  end if;
end macro;

macro reclaim_return() begin
  if (PollsMax > 0 /\ polls = PollsMax) \/ (PollsMax = 0 /\ head = Final /\ oldest = FrontAtEnd) then
    goto Done;
  else
    goto next_read_written;
  end if;
end macro;

process input \in Inputs
variables count = 0, new = Nil, hint = Nil, base = Nil, found = Nil, cur = Nil, level = 0,
          pred = [l \in 0 .. Top |-> Nil], succ = [l \in 0 .. Top |-> Nil];
begin
insert_take_node:                    \* from the allocator
  if count = Len(Script[self]) then
    goto Done;
  else
    await Room # {};
    new := 10 * self + count + 1;
    address[new] := CHOOSE a \in Room : \A b \in Room : a <= b;
    if EnterRule = "last" then goto insert_read_front; end if;
  end if;
insert_enter:
  active[self] := active[self] + (IF active[self] % 2 = 1 THEN 2 ELSE 1);
  if EnterRule = "last" then goto insert_search; end if;
insert_read_front:
  found := front;
  touch({front});
  cur := IF \/ hint = Nil
            \/ HintRule = "order" /\ ~Before(front, hint)
            \/ HintRule = "pointer" /\ ~Same(front, base)
         THEN front ELSE hint;
  level := Top;
  if EnterRule = "last" then goto insert_enter; end if;
insert_search:
  touch({cur, next[cur][level]});
  if level >= HeightOf(cur) then short := TRUE; end if;
  if next[cur][level] \in Nodes /\ Before(next[cur][level], new) then
    cur := next[cur][level];
    goto insert_search;
  else
    pred[level] := cur || succ[level] := next[cur][level];
    if level > 0 then
      level := level - 1;
      goto insert_search;
    end if;
  end if;
insert_set_next:
  touch({new});
  next[new][level] := succ[level];
insert_cas_next:
  touch({pred[level]});
  if ~Same(next[pred[level]][level], succ[level]) then
    goto insert_read_next;
  else
    next[pred[level]][level] := new;
    level := level + 1;
    if level = 1 /\ LeaveRule = "early" then goto insert_leave;
    elsif level < HeightOf(new) then goto insert_set_next;
    else goto insert_publish;
    end if;
  end if;
insert_read_next:
  touch({pred[level], next[pred[level]][level]});
  if next[pred[level]][level] \in Nodes /\ Before(next[pred[level]][level], new) then
    pred[level] := next[pred[level]][level];
    goto insert_read_next;
  else
    succ[level] := next[pred[level]][level];
    goto insert_set_next;
  end if;
insert_publish:
  written[self] := new;
  if LeaveRule = "early" then insert_return(); end if;
insert_leave:
  if LeaveRule # "never" then active[self] := active[self] + 1; end if;
  if LeaveRule # "early" then insert_return();
  elsif level < HeightOf(new) then goto insert_set_next;
  else goto insert_publish;
  end if;
end process;

process reader \in {100 + r : r \in Readers}
variables head = FirstDummy, polls = 0, least = 0, other = 2,
          oldest = FirstDummy, trail = FirstDummy, rank = 0, best = FirstDummy,
          waiting = [j \in Inputs |-> 0], which = 1;
begin
next_read_written:
  touch({head});
  if Same(written[InputOf(head)], head) then next_return(); end if;      \* nothing ready
next_read_next:
  touch({head, next[head][0]});
  head := next[head][0];
next_count:
  passed[self - 100] := passed[self - 100] + 1;
  next_return();
reclaim_read_passed:
  if passed[other] < least then least := passed[other]; end if;
  if other < Cardinality(Readers) then
    other := other + 1;
    goto reclaim_read_passed;
  else
    other := 2;
  end if;
reclaim_read_next:                   \* trail follows the slowest reader; best: the last node of full height on its way
  if rank < least then
    touch({trail, next[trail][0]});
    trail := next[trail][0];
    rank := rank + 1;
    if HeightOf(trail) = Levels \/ FrontRule = "any" then best := trail; end if;
    goto reclaim_read_next;
  elsif best = front then
    reclaim_return();
  else
    waiting := [j \in Inputs |-> Nil];
    if GraceRule = "early" then goto reclaim_read_active; end if;
  end if;
reclaim_set_front:
  front := best;
  if GraceRule \in {"none", "early"} then goto reclaim_free; end if;
reclaim_read_active:                 \* waiting[i]: the call of input i that was under way; 0: ended; Nil: not looked yet
  if waiting[which] = Nil then
    waiting[which] := IF active[which] % 2 = 1 THEN active[which] ELSE 0;
  elsif waiting[which] # active[which] then
    waiting[which] := 0;
  end if;
  if which < Cardinality(Inputs) then
    which := which + 1;
    goto reclaim_read_active;
  else
    which := 1;
    if \E j \in Inputs : waiting[j] # 0 then
      if GraceRule = "block" then goto reclaim_read_active; else reclaim_return(); end if;
    elsif GraceRule = "early" then goto reclaim_set_front;
    end if;
  end if;
reclaim_free:                        \* local: the nodes from oldest up to front are nobody else's any more
  if FreeRule = "free" then
    with gone = Segment(oldest, front) do
      if gone \cap freed # {} then twice := TRUE; end if;
      freed := freed \cup gone;
    end with;
    oldest := front;
  end if;
  reclaim_return();
end process;
end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-89ca7221501f9d74dad314959e8d5cd0
VARIABLES next, written, front, active, passed, address, freed, stale, twice, 
          short, pc

(* define statement *)
Lives(n) == address[n] # 0 /\ n \notin freed
Same(m, n) == m = n \/ (m \in Nodes /\ n \in Nodes /\ address[m] # 0 /\ address[m] = address[n])
Places == 1 .. Addresses
Room == Places \ {address[n] : n \in {n \in Nodes : Lives(n)}}
RECURSIVE Walk(_, _, _)
Walk(n, l, fuel) == IF n \notin Nodes \/ fuel = 0 THEN << >> ELSE <<n>> \o Walk(next[n][l], l, fuel - 1)
Chain(n, l) == Walk(n, l, Cardinality(Nodes) + 1)
Range(seq) == {seq[i] : i \in DOMAIN seq}
Segment(m, n) == Range(Chain(m, 0)) \ Range(Chain(n, 0))

VARIABLES count, new, hint, base, found, cur, level, pred, succ, head, polls, 
          least, other, oldest, trail, rank, best, waiting, which

vars == << next, written, front, active, passed, address, freed, stale, twice, 
           short, pc, count, new, hint, base, found, cur, level, pred, succ, 
           head, polls, least, other, oldest, trail, rank, best, waiting, 
           which >>

ProcSet == (Inputs) \cup ({100 + r : r \in Readers})

Init == (* Global variables *)
        /\ next = [n \in Nodes |-> [l \in 0 .. Top |-> IF n % 10 = 0 THEN AfterDummy(InputOf(n)) ELSE Nil]]
        /\ written = [k \in Inputs |-> Dummy(k)]
        /\ front = FirstDummy
        /\ active = [k \in Inputs |-> 0]
        /\ passed = [r \in Readers |-> 0]
        /\ address = [n \in Nodes |-> IF n % 10 = 0 THEN InputOf(n) ELSE 0]
        /\ freed = {}
        /\ stale = FALSE
        /\ twice = FALSE
        /\ short = FALSE
        (* Process input *)
        /\ count = [self \in Inputs |-> 0]
        /\ new = [self \in Inputs |-> Nil]
        /\ hint = [self \in Inputs |-> Nil]
        /\ base = [self \in Inputs |-> Nil]
        /\ found = [self \in Inputs |-> Nil]
        /\ cur = [self \in Inputs |-> Nil]
        /\ level = [self \in Inputs |-> 0]
        /\ pred = [self \in Inputs |-> [l \in 0 .. Top |-> Nil]]
        /\ succ = [self \in Inputs |-> [l \in 0 .. Top |-> Nil]]
        (* Process reader *)
        /\ head = [self \in {100 + r : r \in Readers} |-> FirstDummy]
        /\ polls = [self \in {100 + r : r \in Readers} |-> 0]
        /\ least = [self \in {100 + r : r \in Readers} |-> 0]
        /\ other = [self \in {100 + r : r \in Readers} |-> 2]
        /\ oldest = [self \in {100 + r : r \in Readers} |-> FirstDummy]
        /\ trail = [self \in {100 + r : r \in Readers} |-> FirstDummy]
        /\ rank = [self \in {100 + r : r \in Readers} |-> 0]
        /\ best = [self \in {100 + r : r \in Readers} |-> FirstDummy]
        /\ waiting = [self \in {100 + r : r \in Readers} |-> [j \in Inputs |-> 0]]
        /\ which = [self \in {100 + r : r \in Readers} |-> 1]
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "insert_take_node"
                                        [] self \in {100 + r : r \in Readers} -> "next_read_written"]

insert_take_node(self) == /\ pc[self] = "insert_take_node"
                          /\ IF count[self] = Len(Script[self])
                                THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                     /\ UNCHANGED << address, new >>
                                ELSE /\ Room # {}
                                     /\ new' = [new EXCEPT ![self] = 10 * self + count[self] + 1]
                                     /\ address' = [address EXCEPT ![new'[self]] = CHOOSE a \in Room : \A b \in Room : a <= b]
                                     /\ IF EnterRule = "last"
                                           THEN /\ pc' = [pc EXCEPT ![self] = "insert_read_front"]
                                           ELSE /\ pc' = [pc EXCEPT ![self] = "insert_enter"]
                          /\ UNCHANGED << next, written, front, active, passed, 
                                          freed, stale, twice, short, count, 
                                          hint, base, found, cur, level, pred, 
                                          succ, head, polls, least, other, 
                                          oldest, trail, rank, best, waiting, 
                                          which >>

insert_enter(self) == /\ pc[self] = "insert_enter"
                      /\ active' = [active EXCEPT ![self] = active[self] + (IF active[self] % 2 = 1 THEN 2 ELSE 1)]
                      /\ IF EnterRule = "last"
                            THEN /\ pc' = [pc EXCEPT ![self] = "insert_search"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "insert_read_front"]
                      /\ UNCHANGED << next, written, front, passed, address, 
                                      freed, stale, twice, short, count, new, 
                                      hint, base, found, cur, level, pred, 
                                      succ, head, polls, least, other, oldest, 
                                      trail, rank, best, waiting, which >>

insert_read_front(self) == /\ pc[self] = "insert_read_front"
                           /\ found' = [found EXCEPT ![self] = front]
                           /\ IF \E n \in ({front}) \cap Nodes : ~Lives(n)
                                 THEN /\ stale' = TRUE
                                 ELSE /\ TRUE
                                      /\ stale' = stale
                           /\ cur' = [cur EXCEPT ![self] = IF \/ hint[self] = Nil
                                                              \/ HintRule = "order" /\ ~Before(front, hint[self])
                                                              \/ HintRule = "pointer" /\ ~Same(front, base[self])
                                                           THEN front ELSE hint[self]]
                           /\ level' = [level EXCEPT ![self] = Top]
                           /\ IF EnterRule = "last"
                                 THEN /\ pc' = [pc EXCEPT ![self] = "insert_enter"]
                                 ELSE /\ pc' = [pc EXCEPT ![self] = "insert_search"]
                           /\ UNCHANGED << next, written, front, active, 
                                           passed, address, freed, twice, 
                                           short, count, new, hint, base, pred, 
                                           succ, head, polls, least, other, 
                                           oldest, trail, rank, best, waiting, 
                                           which >>

insert_search(self) == /\ pc[self] = "insert_search"
                       /\ IF \E n \in ({cur[self], next[cur[self]][level[self]]}) \cap Nodes : ~Lives(n)
                             THEN /\ stale' = TRUE
                             ELSE /\ TRUE
                                  /\ stale' = stale
                       /\ IF level[self] >= HeightOf(cur[self])
                             THEN /\ short' = TRUE
                             ELSE /\ TRUE
                                  /\ short' = short
                       /\ IF next[cur[self]][level[self]] \in Nodes /\ Before(next[cur[self]][level[self]], new[self])
                             THEN /\ cur' = [cur EXCEPT ![self] = next[cur[self]][level[self]]]
                                  /\ pc' = [pc EXCEPT ![self] = "insert_search"]
                                  /\ UNCHANGED << level, pred, succ >>
                             ELSE /\ /\ pred' = [pred EXCEPT ![self][level[self]] = cur[self]]
                                     /\ succ' = [succ EXCEPT ![self][level[self]] = next[cur[self]][level[self]]]
                                  /\ IF level[self] > 0
                                        THEN /\ level' = [level EXCEPT ![self] = level[self] - 1]
                                             /\ pc' = [pc EXCEPT ![self] = "insert_search"]
                                        ELSE /\ pc' = [pc EXCEPT ![self] = "insert_set_next"]
                                             /\ level' = level
                                  /\ cur' = cur
                       /\ UNCHANGED << next, written, front, active, passed, 
                                       address, freed, twice, count, new, hint, 
                                       base, found, head, polls, least, other, 
                                       oldest, trail, rank, best, waiting, 
                                       which >>

insert_set_next(self) == /\ pc[self] = "insert_set_next"
                         /\ IF \E n \in ({new[self]}) \cap Nodes : ~Lives(n)
                               THEN /\ stale' = TRUE
                               ELSE /\ TRUE
                                    /\ stale' = stale
                         /\ next' = [next EXCEPT ![new[self]][level[self]] = succ[self][level[self]]]
                         /\ pc' = [pc EXCEPT ![self] = "insert_cas_next"]
                         /\ UNCHANGED << written, front, active, passed, 
                                         address, freed, twice, short, count, 
                                         new, hint, base, found, cur, level, 
                                         pred, succ, head, polls, least, other, 
                                         oldest, trail, rank, best, waiting, 
                                         which >>

insert_cas_next(self) == /\ pc[self] = "insert_cas_next"
                         /\ IF \E n \in ({pred[self][level[self]]}) \cap Nodes : ~Lives(n)
                               THEN /\ stale' = TRUE
                               ELSE /\ TRUE
                                    /\ stale' = stale
                         /\ IF ~Same(next[pred[self][level[self]]][level[self]], succ[self][level[self]])
                               THEN /\ pc' = [pc EXCEPT ![self] = "insert_read_next"]
                                    /\ UNCHANGED << next, level >>
                               ELSE /\ next' = [next EXCEPT ![pred[self][level[self]]][level[self]] = new[self]]
                                    /\ level' = [level EXCEPT ![self] = level[self] + 1]
                                    /\ IF level'[self] = 1 /\ LeaveRule = "early"
                                          THEN /\ pc' = [pc EXCEPT ![self] = "insert_leave"]
                                          ELSE /\ IF level'[self] < HeightOf(new[self])
                                                     THEN /\ pc' = [pc EXCEPT ![self] = "insert_set_next"]
                                                     ELSE /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                         /\ UNCHANGED << written, front, active, passed, 
                                         address, freed, twice, short, count, 
                                         new, hint, base, found, cur, pred, 
                                         succ, head, polls, least, other, 
                                         oldest, trail, rank, best, waiting, 
                                         which >>

insert_read_next(self) == /\ pc[self] = "insert_read_next"
                          /\ IF \E n \in ({pred[self][level[self]], next[pred[self][level[self]]][level[self]]}) \cap Nodes : ~Lives(n)
                                THEN /\ stale' = TRUE
                                ELSE /\ TRUE
                                     /\ stale' = stale
                          /\ IF next[pred[self][level[self]]][level[self]] \in Nodes /\ Before(next[pred[self][level[self]]][level[self]], new[self])
                                THEN /\ pred' = [pred EXCEPT ![self][level[self]] = next[pred[self][level[self]]][level[self]]]
                                     /\ pc' = [pc EXCEPT ![self] = "insert_read_next"]
                                     /\ succ' = succ
                                ELSE /\ succ' = [succ EXCEPT ![self][level[self]] = next[pred[self][level[self]]][level[self]]]
                                     /\ pc' = [pc EXCEPT ![self] = "insert_set_next"]
                                     /\ pred' = pred
                          /\ UNCHANGED << next, written, front, active, passed, 
                                          address, freed, twice, short, count, 
                                          new, hint, base, found, cur, level, 
                                          head, polls, least, other, oldest, 
                                          trail, rank, best, waiting, which >>

insert_publish(self) == /\ pc[self] = "insert_publish"
                        /\ written' = [written EXCEPT ![self] = new[self]]
                        /\ IF LeaveRule = "early"
                              THEN /\ hint' = [hint EXCEPT ![self] = IF HeightOf(new[self]) = Levels THEN new[self] ELSE pred[self][Top]]
                                   /\ base' = [base EXCEPT ![self] = IF HintRule = "pointer" THEN found[self] ELSE Nil]
                                   /\ /\ cur' = [cur EXCEPT ![self] = Nil]
                                      /\ found' = [found EXCEPT ![self] = Nil]
                                      /\ level' = [level EXCEPT ![self] = 0]
                                      /\ pred' = [pred EXCEPT ![self] = [l \in 0 .. Top |-> Nil]]
                                      /\ succ' = [succ EXCEPT ![self] = [l \in 0 .. Top |-> Nil]]
                                   /\ count' = [count EXCEPT ![self] = count[self] + 1]
                                   /\ pc' = [pc EXCEPT ![self] = "insert_take_node"]
                              ELSE /\ pc' = [pc EXCEPT ![self] = "insert_leave"]
                                   /\ UNCHANGED << count, hint, base, found, 
                                                   cur, level, pred, succ >>
                        /\ UNCHANGED << next, front, active, passed, address, 
                                        freed, stale, twice, short, new, head, 
                                        polls, least, other, oldest, trail, 
                                        rank, best, waiting, which >>

insert_leave(self) == /\ pc[self] = "insert_leave"
                      /\ IF LeaveRule # "never"
                            THEN /\ active' = [active EXCEPT ![self] = active[self] + 1]
                            ELSE /\ TRUE
                                 /\ UNCHANGED active
                      /\ IF LeaveRule # "early"
                            THEN /\ hint' = [hint EXCEPT ![self] = IF HeightOf(new[self]) = Levels THEN new[self] ELSE pred[self][Top]]
                                 /\ base' = [base EXCEPT ![self] = IF HintRule = "pointer" THEN found[self] ELSE Nil]
                                 /\ /\ cur' = [cur EXCEPT ![self] = Nil]
                                    /\ found' = [found EXCEPT ![self] = Nil]
                                    /\ level' = [level EXCEPT ![self] = 0]
                                    /\ pred' = [pred EXCEPT ![self] = [l \in 0 .. Top |-> Nil]]
                                    /\ succ' = [succ EXCEPT ![self] = [l \in 0 .. Top |-> Nil]]
                                 /\ count' = [count EXCEPT ![self] = count[self] + 1]
                                 /\ pc' = [pc EXCEPT ![self] = "insert_take_node"]
                            ELSE /\ IF level[self] < HeightOf(new[self])
                                       THEN /\ pc' = [pc EXCEPT ![self] = "insert_set_next"]
                                       ELSE /\ pc' = [pc EXCEPT ![self] = "insert_publish"]
                                 /\ UNCHANGED << count, hint, base, found, cur, 
                                                 level, pred, succ >>
                      /\ UNCHANGED << next, written, front, passed, address, 
                                      freed, stale, twice, short, new, head, 
                                      polls, least, other, oldest, trail, rank, 
                                      best, waiting, which >>

input(self) == insert_take_node(self) \/ insert_enter(self)
                  \/ insert_read_front(self) \/ insert_search(self)
                  \/ insert_set_next(self) \/ insert_cas_next(self)
                  \/ insert_read_next(self) \/ insert_publish(self)
                  \/ insert_leave(self)

next_read_written(self) == /\ pc[self] = "next_read_written"
                           /\ IF \E n \in ({head[self]}) \cap Nodes : ~Lives(n)
                                 THEN /\ stale' = TRUE
                                 ELSE /\ TRUE
                                      /\ stale' = stale
                           /\ IF Same(written[InputOf(head[self])], head[self])
                                 THEN /\ polls' = [polls EXCEPT ![self] = IF PollsMax = 0 THEN 0 ELSE polls[self] + 1]
                                      /\ least' = [least EXCEPT ![self] = passed[self - 100]]
                                      /\ IF self # 101
                                            THEN /\ IF polls'[self] = PollsMax /\ (PollsMax > 0 \/ head[self] = Final)
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                            ELSE /\ IF oldest[self] # front
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                                                       ELSE /\ IF ReaderRule = "own" \/ Cardinality(Readers) = 1
                                                                  THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_next"]
                                                                  ELSE /\ pc' = [pc EXCEPT ![self] = "reclaim_read_passed"]
                                 ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_next"]
                                      /\ UNCHANGED << polls, least >>
                           /\ UNCHANGED << next, written, front, active, 
                                           passed, address, freed, twice, 
                                           short, count, new, hint, base, 
                                           found, cur, level, pred, succ, head, 
                                           other, oldest, trail, rank, best, 
                                           waiting, which >>

next_read_next(self) == /\ pc[self] = "next_read_next"
                        /\ IF \E n \in ({head[self], next[head[self]][0]}) \cap Nodes : ~Lives(n)
                              THEN /\ stale' = TRUE
                              ELSE /\ TRUE
                                   /\ stale' = stale
                        /\ head' = [head EXCEPT ![self] = next[head[self]][0]]
                        /\ pc' = [pc EXCEPT ![self] = "next_count"]
                        /\ UNCHANGED << next, written, front, active, passed, 
                                        address, freed, twice, short, count, 
                                        new, hint, base, found, cur, level, 
                                        pred, succ, polls, least, other, 
                                        oldest, trail, rank, best, waiting, 
                                        which >>

next_count(self) == /\ pc[self] = "next_count"
                    /\ passed' = [passed EXCEPT ![self - 100] = passed[self - 100] + 1]
                    /\ polls' = [polls EXCEPT ![self] = IF PollsMax = 0 THEN 0 ELSE polls[self] + 1]
                    /\ least' = [least EXCEPT ![self] = passed'[self - 100]]
                    /\ IF self # 101
                          THEN /\ IF polls'[self] = PollsMax /\ (PollsMax > 0 \/ head[self] = Final)
                                     THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                     ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                          ELSE /\ IF oldest[self] # front
                                     THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                                     ELSE /\ IF ReaderRule = "own" \/ Cardinality(Readers) = 1
                                                THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_next"]
                                                ELSE /\ pc' = [pc EXCEPT ![self] = "reclaim_read_passed"]
                    /\ UNCHANGED << next, written, front, active, address, 
                                    freed, stale, twice, short, count, new, 
                                    hint, base, found, cur, level, pred, succ, 
                                    head, other, oldest, trail, rank, best, 
                                    waiting, which >>

reclaim_read_passed(self) == /\ pc[self] = "reclaim_read_passed"
                             /\ IF passed[other[self]] < least[self]
                                   THEN /\ least' = [least EXCEPT ![self] = passed[other[self]]]
                                   ELSE /\ TRUE
                                        /\ least' = least
                             /\ IF other[self] < Cardinality(Readers)
                                   THEN /\ other' = [other EXCEPT ![self] = other[self] + 1]
                                        /\ pc' = [pc EXCEPT ![self] = "reclaim_read_passed"]
                                   ELSE /\ other' = [other EXCEPT ![self] = 2]
                                        /\ pc' = [pc EXCEPT ![self] = "reclaim_read_next"]
                             /\ UNCHANGED << next, written, front, active, 
                                             passed, address, freed, stale, 
                                             twice, short, count, new, hint, 
                                             base, found, cur, level, pred, 
                                             succ, head, polls, oldest, trail, 
                                             rank, best, waiting, which >>

reclaim_read_next(self) == /\ pc[self] = "reclaim_read_next"
                           /\ IF rank[self] < least[self]
                                 THEN /\ IF \E n \in ({trail[self], next[trail[self]][0]}) \cap Nodes : ~Lives(n)
                                            THEN /\ stale' = TRUE
                                            ELSE /\ TRUE
                                                 /\ stale' = stale
                                      /\ trail' = [trail EXCEPT ![self] = next[trail[self]][0]]
                                      /\ rank' = [rank EXCEPT ![self] = rank[self] + 1]
                                      /\ IF HeightOf(trail'[self]) = Levels \/ FrontRule = "any"
                                            THEN /\ best' = [best EXCEPT ![self] = trail'[self]]
                                            ELSE /\ TRUE
                                                 /\ best' = best
                                      /\ pc' = [pc EXCEPT ![self] = "reclaim_read_next"]
                                      /\ UNCHANGED waiting
                                 ELSE /\ IF best[self] = front
                                            THEN /\ IF (PollsMax > 0 /\ polls[self] = PollsMax) \/ (PollsMax = 0 /\ head[self] = Final /\ oldest[self] = FrontAtEnd)
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                                 /\ UNCHANGED waiting
                                            ELSE /\ waiting' = [waiting EXCEPT ![self] = [j \in Inputs |-> Nil]]
                                                 /\ IF GraceRule = "early"
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "reclaim_set_front"]
                                      /\ UNCHANGED << stale, trail, rank, best >>
                           /\ UNCHANGED << next, written, front, active, 
                                           passed, address, freed, twice, 
                                           short, count, new, hint, base, 
                                           found, cur, level, pred, succ, head, 
                                           polls, least, other, oldest, which >>

reclaim_set_front(self) == /\ pc[self] = "reclaim_set_front"
                           /\ front' = best[self]
                           /\ IF GraceRule \in {"none", "early"}
                                 THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_free"]
                                 ELSE /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                           /\ UNCHANGED << next, written, active, passed, 
                                           address, freed, stale, twice, short, 
                                           count, new, hint, base, found, cur, 
                                           level, pred, succ, head, polls, 
                                           least, other, oldest, trail, rank, 
                                           best, waiting, which >>

reclaim_read_active(self) == /\ pc[self] = "reclaim_read_active"
                             /\ IF waiting[self][which[self]] = Nil
                                   THEN /\ waiting' = [waiting EXCEPT ![self][which[self]] = IF active[which[self]] % 2 = 1 THEN active[which[self]] ELSE 0]
                                   ELSE /\ IF waiting[self][which[self]] # active[which[self]]
                                              THEN /\ waiting' = [waiting EXCEPT ![self][which[self]] = 0]
                                              ELSE /\ TRUE
                                                   /\ UNCHANGED waiting
                             /\ IF which[self] < Cardinality(Inputs)
                                   THEN /\ which' = [which EXCEPT ![self] = which[self] + 1]
                                        /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                                   ELSE /\ which' = [which EXCEPT ![self] = 1]
                                        /\ IF \E j \in Inputs : waiting'[self][j] # 0
                                              THEN /\ IF GraceRule = "block"
                                                         THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_read_active"]
                                                         ELSE /\ IF (PollsMax > 0 /\ polls[self] = PollsMax) \/ (PollsMax = 0 /\ head[self] = Final /\ oldest[self] = FrontAtEnd)
                                                                    THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                    ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                                              ELSE /\ IF GraceRule = "early"
                                                         THEN /\ pc' = [pc EXCEPT ![self] = "reclaim_set_front"]
                                                         ELSE /\ pc' = [pc EXCEPT ![self] = "reclaim_free"]
                             /\ UNCHANGED << next, written, front, active, 
                                             passed, address, freed, stale, 
                                             twice, short, count, new, hint, 
                                             base, found, cur, level, pred, 
                                             succ, head, polls, least, other, 
                                             oldest, trail, rank, best >>

reclaim_free(self) == /\ pc[self] = "reclaim_free"
                      /\ IF FreeRule = "free"
                            THEN /\ LET gone == Segment(oldest[self], front) IN
                                      /\ IF gone \cap freed # {}
                                            THEN /\ twice' = TRUE
                                            ELSE /\ TRUE
                                                 /\ twice' = twice
                                      /\ freed' = (freed \cup gone)
                                 /\ oldest' = [oldest EXCEPT ![self] = front]
                            ELSE /\ TRUE
                                 /\ UNCHANGED << freed, twice, oldest >>
                      /\ IF (PollsMax > 0 /\ polls[self] = PollsMax) \/ (PollsMax = 0 /\ head[self] = Final /\ oldest'[self] = FrontAtEnd)
                            THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "next_read_written"]
                      /\ UNCHANGED << next, written, front, active, passed, 
                                      address, stale, short, count, new, hint, 
                                      base, found, cur, level, pred, succ, 
                                      head, polls, least, other, trail, rank, 
                                      best, waiting, which >>

reader(self) == next_read_written(self) \/ next_read_next(self)
                   \/ next_count(self) \/ reclaim_read_passed(self)
                   \/ reclaim_read_next(self) \/ reclaim_set_front(self)
                   \/ reclaim_read_active(self) \/ reclaim_free(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Inputs: input(self))
           \/ (\E self \in {100 + r : r \in Readers}: reader(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-69069e3cdb4eeeb6a028bf8fb3d1021f

-----------------------------------------------------------------------------
Threads == Inputs \cup {100 + r : r \in Readers}
Inside(k) == active[k] % 2 = 1

TypeOK ==
  /\ next \in [Nodes -> [0 .. Top -> Nodes \cup {EndOfList, Nil}]]
  /\ written \in [Inputs -> Nodes] /\ front \in Nodes
  /\ active \in [Inputs -> Nat] /\ passed \in [Readers -> Nat]
  /\ address \in [Nodes -> 0 .. Addresses] /\ freed \subseteq Nodes

NoUseAfterFree == ~stale                                             \* G1
NoDoubleFree == ~twice
NoMissingLevel == ~short                                             \* I4

OnePlaceEach == \A m, n \in Nodes : m # n /\ Lives(m) /\ Lives(n) => address[m] # address[n]

\* I1: whatever a thread can follow leads to unfreed nodes only.
Roots == {front} \cup {head[100 + r] : r \in Readers}
         \cup UNION {({cur[k], found[k]} \cup Range(pred[k]) \cup Range(succ[k])) \cap Nodes :
                     k \in {k \in Inputs : Inside(k)}}
ReachableIsUnfreed == \A n \in Roots : \A l \in 0 .. Top : l < HeightOf(n) => Range(Chain(n, l)) \cap freed = {}

Ascending(seq) == \A i \in 1 .. Len(seq) - 1 : Before(seq[i], seq[i + 1])
Nested == \A l \in 0 .. Top : /\ Ascending(Chain(front, l))         \* I2
                             /\ l > 0 => Range(Chain(front, l)) \subseteq Range(Chain(front, l - 1))

\* The nodes linked on level 0, freed ones included.
Linked == Range(Chain(oldest[101], 0)) \cup freed
NothingBehindReaders ==                                              \* I3
  \A r \in Readers :
    Cardinality({n \in Linked : Before(n, head[100 + r])}) = passed[r] + (IF pc[100 + r] = "next_count" THEN 1 ELSE 0)

NoLostNode == \A k \in Inputs : \A n \in NodesOf(k) : n <= written[k] => n \in Linked

FrontIsReached == \A r \in Readers : ~Before(head[100 + r], front) /\ HeightOf(front) = Levels   \* I4
FrontIsLinked == \A l \in 0 .. Top : next[front][l] # Nil

Garbage == {n \in Linked \ freed : Before(n, front)}
=============================================================================
