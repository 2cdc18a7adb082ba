------------------------------ MODULE PaneHive ------------------------------
(***************************************************************************)
(* Pane-Hive (ours, not in the paper): W-Hive with one update per slice    *)
(* instead of one per window, and without a shared write per tuple.  It    *)
(* implements WindowOrder; the theorem is PaneHiveRefinesWindowOrder.      *)
(*                                                                         *)
(* Who calls what.  Each updater thread t feeds an input of its own and    *)
(* calls add(t), heartbeat(t) and close(t), one at a time, with timestamps *)
(* that never fall.  One reader calls get_next_winset.  All of these run   *)
(* together.                                                               *)
(*                                                                         *)
(*   Size 3, Advance 2      0   1   2   3   4   5   6   7                  *)
(*   window 0               [-----------)                                  *)
(*   window 2                       [-----------)                          *)
(*   window 4                               [-----------)                  *)
(*   slices                 |-------|---|---|---|---|---|---               *)
(*                                                                         *)
(*   input t:  o ---> [0,2) ---> [2,3) ---> [3,6) ---> null                *)
(*                       ^ cursor[t]           ^ last[t], the end          *)
(*                                                                         *)
(* Edges are the starts and the ends of windows, and nothing else.  No     *)
(* edge lies among the tuples of a slice, so all of them are in a window   *)
(* or none is, and `begin` alone tells which.  A thread folds its tuples   *)
(* into a private slice.  A call with which it comes to a later edge hands *)
(* that slice over, empty or not, in a node that also says the new         *)
(* position of the input: the largest edge <= its ts (Forever: closed).    *)
(* Its own tuple then begins the next slice.  The node is finished before  *)
(* one release store links it to the input's own list, and never changes   *)
(* afterwards.  A tuple that reaches no new edge costs no shared access.   *)
(* Since ends are edges,                                                   *)
(*     window s is complete  <=>  s + Size <= position of every input.     *)
(* The position before the first call is 0, which completes nothing.       *)
(*                                                                         *)
(* The reader has a cursor in each list.  It reads on where the position   *)
(* is least, for nothing else can complete a window; when nothing is there *)
(* and no window is complete, the answer is null.  To deliver a window, it *)
(* combines the slices that begin in it.  (It need not look at the end: a  *)
(* slice is read when all inputs have come to its begin, and whatever ends *)
(* there has been delivered by then.)  A slice is dropped with the last    *)
(* window that it is in; a node is freed when its slice is dropped and the *)
(* cursor has left it.  Only the reader frees.                             *)
(*                                                                         *)
(* A partial is what a window function knows of the tuples of a key in a   *)
(* slice: here their sum, and the first of them in the order (ts, input,   *)
(* position), so that a function for which order matters is seen as well.  *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  the slices of an input lie end to end, from 0 to its position     *)
(*   I2  a slice holds exactly its input's tuples between begin and end,   *)
(*       but for those in no window: every tuple is in one slice           *)
(*   I3  of the tuples of a slice, a window covers all or none             *)
(*   I4  a node never changes once it is linked                            *)
(*   I5  the reader holds the slices of windows that are not delivered     *)
(*       yet; besides these, one node per input is alive: memory bound     *)
(*   I6  nobody touches a node that has been freed                         *)
(* Guarantees                                                              *)
(*   G1  linearizable to WindowOrder.  A call takes effect when it links   *)
(*       its node, or anywhere if it links none.  A winset comes out at    *)
(*       `next_combine`.  A null holds at the read that found nothing:     *)
(*       that input was at the least position then, and what ends up to    *)
(*       there has been read.  (Reading all inputs in turn is right, too.  *)
(*       Then a null holds when the reader begins: what was complete at    *)
(*       that moment is found.  It need not hold any more at the end.)     *)
(*   G2  each winset once, whole, in order; the output depends on the      *)
(*       tuples alone, ties included                                       *)
(*   G3  exact: what is complete is delivered, without waiting for more    *)
(* Progress: add, heartbeat and close are wait-free, one store at most.    *)
(*   get_next_winset is lock-free: it reads on only past nodes that were   *)
(*   published, each of them once.  Nobody ever waits for anybody.         *)
(*                                                                         *)
(* One label per access to shared memory; which C function it stands for   *)
(* is in README.md.                                                        *)
(* In C, the calls add, heartbeat and close are publish, if there is an    *)
(* edge to cross, and the fold of the tuple; get_next_winset is three:     *)
(* pane_hive_next, which reads while that is of use, pane_hive_combine and *)
(* pane_hive_drop.  The fields of a node are private until it is linked,   *)
(* and constant afterwards: the one pair of release and acquire is publish *)
(* and next_read.                                                          *)
(***************************************************************************)
\* Seeded labels: publish_fill
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Scripts,       \* a set of scripts, one of which is run: script[t] is what thread t calls, in order
  InputsCount, CallsMax,  \* the threads, and how many calls one of them makes at most
  Size, Advance, \* the windows
  Polls,         \* how often the reader asks; 0: until all threads are closed and everything is out
  Unstarted,     \* the position of an input of which nothing has been read
  \* The rules.  The first value of each is ours, "in_turn" is right as well, and so is "from_start", but not both of them.
  \* The others must fail.
  EdgeRule,      \* edges of slices: "both", only "starts" or only "ends" of windows
  PositionRule,  \* the position: the last edge "at" or before ts, or "below" it
  PublishRule,   \* a node: "slice_first", "position_first", "kept" (the slice goes on as well), "locked"
  PromiseRule,   \* heartbeat and close "cross" edges; "heartbeat_ignored", "heartbeat_keeps_slice", "close_loses_slice"
  ReadRule,      \* "slowest", "in_turn", "one_node", "one_node_each"
  WaitRule,      \* for "all" inputs, or for the "started" ones
  DeliverRule,   \* when all positions are at the "end" of the window or later, or past its "start"
  CombineRule,   \* slices that begin "inside" the window, or anywhere "from_start" on
  FirstRule,     \* the first tuple "in_order", or that of the first input ("by_input")
  DropRule       \* a slice, after its "last_window", its "first_window", "never"; "cursor": the node the reader stands on, too

ASSUME /\ EdgeRule \in {"both", "starts", "ends"}
       /\ PositionRule \in {"at", "below"}
       /\ PublishRule \in {"slice_first", "locked", "position_first", "kept"}
       /\ PromiseRule \in {"cross", "heartbeat_ignored", "heartbeat_keeps_slice", "close_loses_slice"}
       /\ ReadRule \in {"slowest", "in_turn", "one_node", "one_node_each"}
       /\ WaitRule \in {"all", "started"}
       /\ DeliverRule \in {"end", "start"}
       /\ CombineRule \in {"inside", "from_start"}
       /\ FirstRule \in {"in_order", "by_input"}
       /\ DropRule \in {"last_window", "first_window", "never", "cursor"}

Threads == 1 .. InputsCount
Reader == 0
Forever == 1000

\* Calls.
IsUpdate(call) == call.kind = "update"
IsClose(call) == call.kind = "close"

Least(set) == CHOOSE x \in set : \A y \in set : x <= y
Greater(a, b) == IF a > b THEN a ELSE b

-----------------------------------------------------------------------------
\* Windows, edges, slices.

WindowsAt(ts) == {s \in {n * Advance : n \in 0 .. ts \div Advance} : ts < s + Size}

LastStart(ts) == (ts \div Advance) * Advance
LastEnd(ts) == IF ts < Size THEN 0 ELSE ((ts - Size) \div Advance) * Advance + Size
LastEdge(ts) == CASE EdgeRule = "both" -> Greater(LastStart(ts), LastEnd(ts))
                  [] EdgeRule = "starts" -> LastStart(ts)
                  [] EdgeRule = "ends" -> LastEnd(ts)

EdgeOf(call) == IF IsClose(call) THEN Forever
                ELSE IF PromiseRule = "heartbeat_ignored" /\ ~IsUpdate(call) THEN 0
                ELSE LastEdge(call.ts)

PositionOf(call) == IF PositionRule = "at" \/ IsClose(call) THEN EdgeOf(call)
                    ELSE LastEdge(Greater(call.ts - 1, 0))

NoPartials == << >>      \* partials: key -> [sum, first]

Precedes(a, b) ==        \* places of tuples: <<ts, thread, call>>
  LET p == IF FirstRule = "in_order" THEN a ELSE <<a[2], a[1], a[3]>>
      q == IF FirstRule = "in_order" THEN b ELSE <<b[2], b[1], b[3]>>
  IN  p[1] < q[1] \/ (p[1] = q[1] /\ (p[2] < q[2] \/ (p[2] = q[2] /\ p[3] < q[3])))

Join(a, b) == [sum |-> a.sum + b.sum, first |-> IF Precedes(a.first, b.first) THEN a.first ELSE b.first]

JoinAll(p, q) == [key \in DOMAIN p \cup DOMAIN q |->
                    IF key \notin DOMAIN q THEN p[key] ELSE IF key \notin DOMAIN p THEN q[key] ELSE Join(p[key], q[key])]

\* A tuple between windows is not kept.
Fold(partials, call, t, i) ==
  IF IsUpdate(call) /\ WindowsAt(call.ts) # {}
    THEN JoinAll(partials, call.key :> [sum |-> call.value, first |-> <<call.ts, t, i>>])
    ELSE partials

-----------------------------------------------------------------------------
\* Nodes: <<thread, call>>, so that each allocation has a name of its own; <<t, 0>> is there from the beginning.

Nodes == Threads \X (0 .. CallsMax)
Null == <<0, 0>>
Blank == [begin |-> 0, partials |-> NoPartials, position |-> Unstarted]

-----------------------------------------------------------------------------
\* What the reader makes of what it has read.

Waited(cursor) == IF WaitRule = "all" THEN Threads ELSE {t \in Threads : cursor[t] # <<t, 0>>}
Lowest(seen, cursor) == LET waited == Waited(cursor) IN IF waited = {} THEN 0 ELSE Least({seen[t] : t \in waited})

\* The windows of the slices at hand that may come out.
CompleteWindows(held, seen, cursor, passed, slice) ==
  LET low == Lowest(seen, cursor)
  IN  {s \in UNION {WindowsAt(slice[n].begin) : n \in held} :
         s > passed /\ IF DeliverRule = "end" THEN s + Size <= low ELSE s < low}

\* Which input to read first.
Turn(seen) == IF ReadRule \in {"slowest", "one_node"}
                THEN Least({t \in Threads : \A u \in Threads : seen[t] <= seen[u]})
                ELSE 1

InWindow(s, begin) == s <= begin /\ (begin < s + Size \/ CombineRule = "from_start")

RECURSIVE CombineSlices(_, _)
CombineSlices(nodes, slice) ==
  IF nodes = {} THEN NoPartials
  ELSE LET n == CHOOSE n \in nodes : TRUE IN JoinAll(slice[n].partials, CombineSlices(nodes \ {n}, slice))

\* No window after `passed` needs the slice.
NotNeeded(begin, passed) == CASE DropRule = "never" -> FALSE
                              [] DropRule = "first_window" -> Least(WindowsAt(begin)) <= passed
                              [] OTHER -> LastStart(begin) <= passed

(* --algorithm PaneHive
variables
  script \in Scripts;
  next = [n \in Nodes |-> Null];
  slice = [n \in Nodes |-> Blank];        \* what is in the node
  lock = 0;
  freed = {};
  delivered = << >>;                      \* <<start, key -> sum>>
  firsts = << >>;                         \* of each delivered window: key -> place of its first tuple

macro end_call() begin
  if turn = Len(script[self]) then goto Done;
  else
    turn := turn + 1; goto publish;
  end if;
end macro;

\* The answer is given.  What happens next depends on what the reader has read, not on anything shared.
macro end_poll(null_answer) begin
  j := Turn(seen);
  if Polls > 0 then asked := asked + 1; end if;
  if (Polls > 0 /\ asked = Polls) \/ (Polls = 0 /\ null_answer /\ Lowest(seen, cursor) = Forever) then goto Done;
  elsif CompleteWindows(held, seen, cursor, passed, slice) # {} then goto next_combine;
  else goto next_read;
  end if;
end macro;

macro deliver_or_null() begin
  if CompleteWindows(held, seen, cursor, passed, slice) # {} then goto next_combine; else end_poll(TRUE); end if;
end macro;

process updater \in Threads
variables
  turn = 1;                \* the number of the call
  begin_ts = 0;            \* of the private slice; the position that was published last
  partials = NoPartials;   \* of the private slice
  last = <<self, 0>>;      \* the end of the list
begin
publish:
  with todo = script[self][turn], node = <<self, turn>> do
    if PublishRule = "locked" /\ lock # self then goto publish_lock;
    elsif EdgeOf(todo) > begin_ts then
      slice[node] :=                                           \* private: the node is not linked yet
        [begin |-> begin_ts,
         partials |-> IF \/ PublishRule = "position_first"
                         \/ PromiseRule = "close_loses_slice" /\ IsClose(todo)
                         \/ PromiseRule = "heartbeat_keeps_slice" /\ todo.kind = "heartbeat"
                        THEN NoPartials ELSE partials,
         position |-> PositionOf(todo)];
      next[last] := node;                                      \* release; read at next_read
      last := node;
      begin_ts := EdgeOf(todo);
      if PublishRule = "position_first" then goto publish_fill;
      else
        partials := Fold(IF PublishRule = "kept" \/ (PromiseRule = "heartbeat_keeps_slice" /\ todo.kind = "heartbeat")
                           THEN partials ELSE NoPartials, todo, self, turn);
        if PublishRule = "locked" then goto publish_unlock; else end_call(); end if;
      end if;
    else
      partials := Fold(partials, todo, self, turn);
      if PublishRule = "locked" then goto publish_unlock; else end_call(); end if;
    end if;
  end with;

publish_fill:
  slice[last].partials := partials;
  partials := Fold(NoPartials, script[self][turn], self, turn);
  end_call();

publish_lock:
  await lock = 0;
  lock := self;
  goto publish;

publish_unlock:
  lock := 0;
  end_call();
end process;

process reader = Reader
variables
  cursor = [t \in Threads |-> <<t, 0>>];    \* the last node that was read of each input
  seen = [t \in Threads |-> Unstarted];     \* and its position
  held = {};                                \* the nodes whose slices are still needed
  passed = -1;                              \* the last window that came out
  j = Turn([t \in Threads |-> Unstarted]);  \* the input that is read next
  asked = 0;
begin
next_read:
  with node = next[cursor[j]] do                               \* acquire; linked at publish
    if node # Null then
      freed := freed \cup ({cursor[j]} \ held)
                     \cup IF DropRule = "cursor" /\ slice[node].partials = NoPartials THEN {node} ELSE {};
      held := held \cup IF slice[node].partials # NoPartials THEN {node} ELSE {};
      cursor[j] := node;
      seen[j] := slice[node].position;
      if ReadRule = "slowest" then
        j := Turn(seen);
        if CompleteWindows(held, seen, cursor, passed, slice) # {} then goto next_combine; else goto next_read; end if;
      elsif ReadRule = "in_turn" then goto next_read;
      elsif ReadRule = "one_node_each" /\ j < InputsCount then j := j + 1; goto next_read;
      else deliver_or_null();
      end if;
    elsif ReadRule \in {"in_turn", "one_node_each"} /\ j < InputsCount then j := j + 1; goto next_read;
    else deliver_or_null();
    end if;
  end with;

next_combine:
  with s = Least(CompleteWindows(held, seen, cursor, passed, slice)),
       whole = CombineSlices({n \in held : InWindow(s, slice[n].begin)}, slice) do
    delivered := Append(delivered, <<s, [key \in DOMAIN whole |-> whole[key].sum]>>);
    firsts := Append(firsts, [key \in DOMAIN whole |-> whole[key].first]);
    passed := s;
  end with;

next_drop:
  with dropped = {n \in held : NotNeeded(slice[n].begin, passed)} do
    freed := freed \cup {n \in dropped : DropRule = "cursor" \/ \A t \in Threads : cursor[t] # n};
    held := held \ dropped;
  end with;
  end_poll(FALSE);
end process;
end algorithm *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-ab3b9069eb00a77918130b69eb53bef8
VARIABLES script, next, slice, lock, freed, delivered, firsts, pc, turn, 
          begin_ts, partials, last, cursor, seen, held, passed, j, asked

vars == << script, next, slice, lock, freed, delivered, firsts, pc, turn, 
           begin_ts, partials, last, cursor, seen, held, passed, j, asked >>

ProcSet == (Threads) \cup {Reader}

Init == (* Global variables *)
        /\ script \in Scripts
        /\ next = [n \in Nodes |-> Null]
        /\ slice = [n \in Nodes |-> Blank]
        /\ lock = 0
        /\ freed = {}
        /\ delivered = << >>
        /\ firsts = << >>
        (* Process updater *)
        /\ turn = [self \in Threads |-> 1]
        /\ begin_ts = [self \in Threads |-> 0]
        /\ partials = [self \in Threads |-> NoPartials]
        /\ last = [self \in Threads |-> <<self, 0>>]
        (* Process reader *)
        /\ cursor = [t \in Threads |-> <<t, 0>>]
        /\ seen = [t \in Threads |-> Unstarted]
        /\ held = {}
        /\ passed = -1
        /\ j = Turn([t \in Threads |-> Unstarted])
        /\ asked = 0
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "publish"
                                        [] self = Reader -> "next_read"]

publish(self) == /\ pc[self] = "publish"
                 /\ LET todo == script[self][turn[self]] IN
                      LET node == <<self, turn[self]>> IN
                        IF PublishRule = "locked" /\ lock # self
                           THEN /\ pc' = [pc EXCEPT ![self] = "publish_lock"]
                                /\ UNCHANGED << next, slice, turn, begin_ts, 
                                                partials, last >>
                           ELSE /\ IF EdgeOf(todo) > begin_ts[self]
                                      THEN /\ slice' = [slice EXCEPT ![node] = [begin |-> begin_ts[self],
                                                                                partials |-> IF \/ PublishRule = "position_first"
                                                                                                \/ PromiseRule = "close_loses_slice" /\ IsClose(todo)
                                                                                                \/ PromiseRule = "heartbeat_keeps_slice" /\ todo.kind = "heartbeat"
                                                                                               THEN NoPartials ELSE partials[self],
                                                                                position |-> PositionOf(todo)]]
                                           /\ next' = [next EXCEPT ![last[self]] = node]
                                           /\ last' = [last EXCEPT ![self] = node]
                                           /\ begin_ts' = [begin_ts EXCEPT ![self] = EdgeOf(todo)]
                                           /\ IF PublishRule = "position_first"
                                                 THEN /\ pc' = [pc EXCEPT ![self] = "publish_fill"]
                                                      /\ UNCHANGED << turn, 
                                                                      partials >>
                                                 ELSE /\ partials' = [partials EXCEPT ![self] = Fold(IF PublishRule = "kept" \/ (PromiseRule = "heartbeat_keeps_slice" /\ todo.kind = "heartbeat")
                                                                                                       THEN partials[self] ELSE NoPartials, todo, self, turn[self])]
                                                      /\ IF PublishRule = "locked"
                                                            THEN /\ pc' = [pc EXCEPT ![self] = "publish_unlock"]
                                                                 /\ turn' = turn
                                                            ELSE /\ IF turn[self] = Len(script[self])
                                                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                            /\ turn' = turn
                                                                       ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                            /\ pc' = [pc EXCEPT ![self] = "publish"]
                                      ELSE /\ partials' = [partials EXCEPT ![self] = Fold(partials[self], todo, self, turn[self])]
                                           /\ IF PublishRule = "locked"
                                                 THEN /\ pc' = [pc EXCEPT ![self] = "publish_unlock"]
                                                      /\ turn' = turn
                                                 ELSE /\ IF turn[self] = Len(script[self])
                                                            THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                 /\ turn' = turn
                                                            ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                 /\ pc' = [pc EXCEPT ![self] = "publish"]
                                           /\ UNCHANGED << next, slice, 
                                                           begin_ts, last >>
                 /\ UNCHANGED << script, lock, freed, delivered, firsts, 
                                 cursor, seen, held, passed, j, asked >>

publish_fill(self) == /\ pc[self] = "publish_fill"
                      /\ slice' = [slice EXCEPT ![last[self]].partials = partials[self]]
                      /\ partials' = [partials EXCEPT ![self] = Fold(NoPartials, script[self][turn[self]], self, turn[self])]
                      /\ IF turn[self] = Len(script[self])
                            THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                 /\ turn' = turn
                            ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                 /\ pc' = [pc EXCEPT ![self] = "publish"]
                      /\ UNCHANGED << script, next, lock, freed, delivered, 
                                      firsts, begin_ts, last, cursor, seen, 
                                      held, passed, j, asked >>

publish_lock(self) == /\ pc[self] = "publish_lock"
                      /\ lock = 0
                      /\ lock' = self
                      /\ pc' = [pc EXCEPT ![self] = "publish"]
                      /\ UNCHANGED << script, next, slice, freed, delivered, 
                                      firsts, turn, begin_ts, partials, last, 
                                      cursor, seen, held, passed, j, asked >>

publish_unlock(self) == /\ pc[self] = "publish_unlock"
                        /\ lock' = 0
                        /\ IF turn[self] = Len(script[self])
                              THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                   /\ turn' = turn
                              ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                   /\ pc' = [pc EXCEPT ![self] = "publish"]
                        /\ UNCHANGED << script, next, slice, freed, delivered, 
                                        firsts, begin_ts, partials, last, 
                                        cursor, seen, held, passed, j, asked >>

updater(self) == publish(self) \/ publish_fill(self) \/ publish_lock(self)
                    \/ publish_unlock(self)

next_read == /\ pc[Reader] = "next_read"
             /\ LET node == next[cursor[j]] IN
                  IF node # Null
                     THEN /\ freed' = (freed \cup ({cursor[j]} \ held)
                                             \cup IF DropRule = "cursor" /\ slice[node].partials = NoPartials THEN {node} ELSE {})
                          /\ held' = (held \cup IF slice[node].partials # NoPartials THEN {node} ELSE {})
                          /\ cursor' = [cursor EXCEPT ![j] = node]
                          /\ seen' = [seen EXCEPT ![j] = slice[node].position]
                          /\ IF ReadRule = "slowest"
                                THEN /\ j' = Turn(seen')
                                     /\ IF CompleteWindows(held', seen', cursor', passed, slice) # {}
                                           THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                                           ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                                     /\ asked' = asked
                                ELSE /\ IF ReadRule = "in_turn"
                                           THEN /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                                                /\ UNCHANGED << j, asked >>
                                           ELSE /\ IF ReadRule = "one_node_each" /\ j < InputsCount
                                                      THEN /\ j' = j + 1
                                                           /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                                                           /\ asked' = asked
                                                      ELSE /\ IF CompleteWindows(held', seen', cursor', passed, slice) # {}
                                                                 THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                                                                      /\ UNCHANGED << j, 
                                                                                      asked >>
                                                                 ELSE /\ j' = Turn(seen')
                                                                      /\ IF Polls > 0
                                                                            THEN /\ asked' = asked + 1
                                                                            ELSE /\ TRUE
                                                                                 /\ asked' = asked
                                                                      /\ IF (Polls > 0 /\ asked' = Polls) \/ (Polls = 0 /\ TRUE /\ Lowest(seen', cursor') = Forever)
                                                                            THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                                            ELSE /\ IF CompleteWindows(held', seen', cursor', passed, slice) # {}
                                                                                       THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                                                                                       ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                     ELSE /\ IF ReadRule \in {"in_turn", "one_node_each"} /\ j < InputsCount
                                THEN /\ j' = j + 1
                                     /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                                     /\ asked' = asked
                                ELSE /\ IF CompleteWindows(held, seen, cursor, passed, slice) # {}
                                           THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                                                /\ UNCHANGED << j, asked >>
                                           ELSE /\ j' = Turn(seen)
                                                /\ IF Polls > 0
                                                      THEN /\ asked' = asked + 1
                                                      ELSE /\ TRUE
                                                           /\ asked' = asked
                                                /\ IF (Polls > 0 /\ asked' = Polls) \/ (Polls = 0 /\ TRUE /\ Lowest(seen, cursor) = Forever)
                                                      THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                      ELSE /\ IF CompleteWindows(held, seen, cursor, passed, slice) # {}
                                                                 THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                                                                 ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                          /\ UNCHANGED << freed, cursor, seen, held >>
             /\ UNCHANGED << script, next, slice, lock, delivered, firsts, 
                             turn, begin_ts, partials, last, passed >>

next_combine == /\ pc[Reader] = "next_combine"
                /\ LET s == Least(CompleteWindows(held, seen, cursor, passed, slice)) IN
                     LET whole == CombineSlices({n \in held : InWindow(s, slice[n].begin)}, slice) IN
                       /\ delivered' = Append(delivered, <<s, [key \in DOMAIN whole |-> whole[key].sum]>>)
                       /\ firsts' = Append(firsts, [key \in DOMAIN whole |-> whole[key].first])
                       /\ passed' = s
                /\ pc' = [pc EXCEPT ![Reader] = "next_drop"]
                /\ UNCHANGED << script, next, slice, lock, freed, turn, 
                                begin_ts, partials, last, cursor, seen, held, 
                                j, asked >>

next_drop == /\ pc[Reader] = "next_drop"
             /\ LET dropped == {n \in held : NotNeeded(slice[n].begin, passed)} IN
                  /\ freed' = (freed \cup {n \in dropped : DropRule = "cursor" \/ \A t \in Threads : cursor[t] # n})
                  /\ held' = held \ dropped
             /\ j' = Turn(seen)
             /\ IF Polls > 0
                   THEN /\ asked' = asked + 1
                   ELSE /\ TRUE
                        /\ asked' = asked
             /\ IF (Polls > 0 /\ asked' = Polls) \/ (Polls = 0 /\ FALSE /\ Lowest(seen, cursor) = Forever)
                   THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                   ELSE /\ IF CompleteWindows(held', seen, cursor, passed, slice) # {}
                              THEN /\ pc' = [pc EXCEPT ![Reader] = "next_combine"]
                              ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
             /\ UNCHANGED << script, next, slice, lock, delivered, firsts, 
                             turn, begin_ts, partials, last, cursor, seen, 
                             passed >>

reader == next_read \/ next_combine \/ next_drop

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == reader
           \/ (\E self \in Threads: updater(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-36953b82f1b22a0e27f983158a20da3f
=============================================================================
