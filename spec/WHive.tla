------------------------------- MODULE WHive --------------------------------
(***************************************************************************)
(* W-Hive (Algorithm 5 of the paper): a lock-free levelled list of winsets *)
(* in the order of their window starts.  It implements WindowOrder; the    *)
(* theorem is WHiveRefinesWindowOrder.                                     *)
(*                                                                         *)
(* Who calls what.  Each updater thread t has a number of its own and      *)
(* calls update_windows(t), heartbeat(t) and close(t), one at a time, with *)
(* timestamps that never fall.  One reader calls get_next_winset.  All of  *)
(* these run together.                                                     *)
(*                                                                         *)
(*    head -> 0 ------------> 6 ------------------> tail     level 1       *)
(*    head -> 0 ---> 3 -----> 6 ---> 9 -----------> tail     level 0       *)
(*                   ^ readhead      ^ one node per window start, each     *)
(*            ^ inserthead             with its winset: key -> sum         *)
(*                                                                         *)
(* written[t] is the start of the first window that may still get a tuple  *)
(* of thread t: the least n*Advance with n*Advance + Size > ts.  For a     *)
(* tuple that lies in windows this is the first of them, as in the paper.  *)
(* It is also right for a heartbeat, and for a ts between two windows when *)
(* Advance > Size.  Before the first call it is 0 (or anything below): no  *)
(* window start is less than 0.  After close it is Infinity.  With this,   *)
(*     window s is complete  <=>  s < written[t] for every thread t.       *)
(* It is stored only when it moves: not for most tuples, and never back.   *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  every level is strictly ascending, a sublist of the level below,  *)
(*       and ends at the tail: one node per window start, none lost        *)
(*   I2  written[t] never falls; while t works on windows, all of them are *)
(*       >= written[t], and every window below it has all it gets from t   *)
(*   I3  whatever lies behind readhead has been delivered, and whatever is *)
(*       delivered never changes again                                     *)
(*   I4  the nodes from which searches start (inserthead, anchor[t]) are   *)
(*       of full height, linked on all levels, and not past any window     *)
(*       that a thread may still have to find or insert                    *)
(*   I5  nobody follows a pointer that is not set yet                      *)
(*   I6  nobody touches a node that has been freed                         *)
(* Guarantees                                                              *)
(*   G1  linearizable to WindowOrder.  An update takes effect when it is   *)
(*       published (`publish`), a winset comes out when the reader reads   *)
(*       `next` (`next_read`), and a null holds at the reader's first read *)
(*       of `written`: what was complete then was already linked           *)
(*   G2  each winset once, whole, in order; the output depends on the      *)
(*       tuples alone                                                      *)
(*   G3  exact: what is complete is delivered, without waiting for more    *)
(* Progress: lock-free.  get_next_winset is wait-free (one pass over       *)
(*   `written`); an insert repeats only because another insert succeeded.  *)
(*                                                                         *)
(* Where searches start (StartRule) and when nodes may be freed            *)
(* (ReclaimRule).  "inserthead" is the paper's: the reader moves one       *)
(* shared head.  Moving it never disturbs a search that is under way:      *)
(* nodes keep their pointers, and the windows that the search is after lie *)
(* beyond every delivered one.  But a search that began at the old head    *)
(* still walks over nodes before the new one, so these must not be freed   *)
(* ("printed").  "anchors" frees them when no thread has announced a start *)
(* before them; announcing must be confirmed by reading inserthead again,  *)
(* and that store and load must not be reordered.  With "anchor" each      *)
(* thread starts from a node of its own, which it moves forward itself:    *)
(* no inserthead, nothing to confirm, and the slowest anchor is the bound. *)
(*                                                                         *)
(* How a tuple gets into a window that threads share (WindowRule).         *)
(* "atomic": the window is one word, to which a number is added in one     *)
(* step (count).  "words": a sum of two digits to the base Base, each a    *)
(* word that is added to in one step.  What the low word held at that very *)
(* step says whether it ran over; one more then goes into the high word.   *)
(* Nobody reads both before the window is complete, so that the two steps  *)
(* need not be one.  "swap": the greatest value; a smaller one is replaced *)
(* if it is still there, else all begins again.  That repeats only because *)
(* another thread's value went in.  Where threads own their keys, or what  *)
(* they add to, nothing is shared, and any of these will do.               *)
(*                                                                         *)
(* One label per access to shared memory; which C function it stands for   *)
(* is in README.md.                                                        *)
(* w_hive_update_windows is publish, then start, search, insert and window *)
(* for each window in turn; w_hive_heartbeat and w_hive_close are publish  *)
(* (and, with anchors of one's own, the walk of update_search on the top   *)
(* level).  A node's fields are private until it is linked, its next on a  *)
(* level until it is linked there: such stores have no label.              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC

CONSTANTS
  Scripts,       \* what may be run; Scripts[c][t]: what thread t calls, in order, once at least; threads are 1, 2, ...
  Size, Advance, \* the windows
  Levels,        \* of the list; the ground is level 0
  Heights,       \* the heights that a new node may draw, a subset of 1 .. Levels
  Polls,         \* how often the reader asks; 0: until all threads are closed and everything is out
  Unstarted,     \* written[t] before the first call of t
  \* The rules.  The first value of each is ours, and so is "anchor"; the others are harmless or must fail, as the models say.
  ReadRule,      \* "scan_first", "scan_read_read", "read_scan_read", "inclusive", "cached", "printed_once", "printed"
  PositionRule,  \* what is published: "first_open", "last_begun", "past"
  PublishRule,   \* and when: "first" or "last" in a call, if it moves; "always", even if it falls
  InsertRule,    \* "recheck", "no_recheck", "stuck", "blind", "locked"
  HeadRule,      \* inserthead moves to a delivered node of "full" height, of "any" height, or "ahead" of it
  WindowRule,    \* "atomic", "words", "swap"; "overwrite", "split", "words_stale", "swap_blind"
  StartRule,     \* "inserthead", "anchor", "anchor_far"
  ReclaimRule    \* "never", "anchors", "unconfirmed", "printed"

ASSUME /\ ReadRule \in {"scan_first", "scan_read_read", "read_scan_read", "printed", "printed_once", "cached", "inclusive"}
       /\ PositionRule \in {"first_open", "past", "last_begun"}
       /\ PublishRule \in {"first", "last", "always"}
       /\ InsertRule \in {"recheck", "locked", "stuck", "no_recheck", "blind"}
       /\ HeadRule \in {"full", "any", "ahead"}
       /\ WindowRule \in {"atomic", "words", "swap", "split", "overwrite", "words_stale", "swap_blind"}
       /\ StartRule \in {"inserthead", "anchor", "anchor_far"}
       /\ ReclaimRule \in {"never", "anchors", "printed", "unconfirmed"}

Threads == DOMAIN Scripts[1]     \* the same in all scripts
Reader == 0
Infinity == 1000
Base == 10             \* of the words of a sum

\* What the windows make of their tuples: WindowOrder asks.
Function == IF WindowRule \in {"swap", "swap_blind"} THEN "max" ELSE "sum"

\* Calls.
IsUpdate(call) == call.kind = "update"
IsClose(call) == call.kind = "close"

Least(set) == CHOOSE x \in set : \A y \in set : x <= y
Lesser(a, b) == IF a < b THEN a ELSE b

\* The starts of the windows that a tuple falls into.
TargetsOf(call) ==
  IF IsUpdate(call)
    THEN {s \in {n * Advance : n \in 0 .. call.ts \div Advance} : call.ts < s + Size}
    ELSE {}

\* The start of the first window that ends after ts.
FirstOpen(ts) == IF ts < Size THEN 0 ELSE ((ts - Size) \div Advance + 1) * Advance

PositionOf(call) ==
  IF IsClose(call) THEN Infinity
  ELSE CASE PositionRule = "first_open" -> FirstOpen(call.ts)
         [] PositionRule = "last_begun" -> Lesser(FirstOpen(call.ts), (call.ts \div Advance) * Advance)
         [] PositionRule = "past" -> FirstOpen(call.ts) + Advance

\* Nodes: <<thread, call, window start>>, so that each allocation has a name of its own.
HeadNode == <<0, 0, -1>>
TailNode == <<0, 0, Infinity>>
Unset == <<0, 1, Infinity>>      \* a pointer that nobody has written yet
Ts(node) == node[3]

\* The same for call i of thread t in script c, as constants.
ByCall(Of(_)) == [c \in DOMAIN Scripts |-> TLCEval([t \in Threads |-> TLCEval([i \in DOMAIN Scripts[c][t] |-> Of(Scripts[c][t][i])])])]
FirstOf(call) == IF IsClose(call) THEN Infinity ELSE FirstOpen(call.ts)
TargetsIn == TLCEval(ByCall(TargetsOf))
PositionIn == TLCEval(ByCall(PositionOf))
FirstIn == TLCEval(ByCall(FirstOf))

Nodes == {HeadNode} \cup UNION {UNION {UNION {{<<t, i, s>> : s \in TargetsIn[c][t][i]} :
           i \in DOMAIN Scripts[c][t]} : t \in Threads} : c \in DOMAIN Scripts}
LevelSet == 0 .. Levels - 1
NoPath == [l \in LevelSet |-> HeadNode]

\* A sum of two words, as one number: what adding to the low word makes of it, and whether that ran over.
Low(word) == word % Base
AddLow(held, value) == Base * (held \div Base) + Low(held + value)
Carry(held, value) == (Low(held) + Low(value)) \div Base

ReadsBeforeScan == ReadRule \in {"read_scan_read", "cached", "printed_once", "printed"}
OwnAnchors == StartRule \in {"anchor", "anchor_far"}
Announces == StartRule = "inserthead" /\ ReclaimRule \in {"anchors", "unconfirmed"}

(* --algorithm WHive
variables
  chosen \in DOMAIN Scripts;      \* never changes
  next = [n \in Nodes |-> [l \in LevelSet |-> IF n = HeadNode THEN TailNode ELSE Unset]];
  height = [n \in Nodes |-> IF n = HeadNode THEN Levels ELSE 0];
  winset = [n \in Nodes |-> << >>];
  written = [t \in Threads |-> Unstarted];
  inserthead = HeadNode;
  anchor = [t \in Threads |-> IF OwnAnchors THEN HeadNode ELSE TailNode];   \* TailNode: this thread holds nothing
  lock = 0;
  freed = {};
  delivered = << >>;

define
  Script == Scripts[chosen]
  Targets == TargetsIn[chosen]
  Position == PositionIn[chosen]
  First == FirstIn[chosen]
end define;

macro end_call() begin
  w := 0; level := 0; cur := HeadNode; nxt := TailNode; path := NoPath; sum := 0;
  if turn = Len(Script[self]) then goto Done; else turn := turn + 1; goto publish; end if;
end macro;

macro begin_window(start) begin
  w := start; level := Levels - 1; path := NoPath; nxt := TailNode;
  if OwnAnchors then cur := anchor[self]; goto update_search;   \* anchor[self] is written by self alone
  else cur := HeadNode; goto update_start;
  end if;
end macro;

\* One level of the search is done: go below, or on to the node that was found, or insert a new one.
macro below() begin
  if level > 0 then path[level] := cur; level := level - 1; goto update_search;
  elsif Ts(cur) = w then path := NoPath; goto window_find;
  else
    with h \in Heights do height[<<self, turn, w>>] := h; end with;
    if InsertRule = "locked" then goto insert_lock; else goto insert_read; end if;
  end if;
end macro;

macro end_window() begin
  if \E s \in Targets[self][turn] : s > w then
    sum := 0; begin_window(Least({s \in Targets[self][turn] : s > w}));
  elsif PublishRule = "last" then goto publish_last;
  elsif Announces then goto update_release;
  else end_call();
  end if;
end macro;

macro answer_null(lowest) begin
  low := Infinity; j := 1; cand := Unset;
  if Polls = 0 then
    if lowest = Infinity then goto Done; else goto next_scan; end if;
  else
    asked := asked + 1;
    if asked = Polls then goto Done; else goto next_scan; end if;
  end if;
end macro;

macro advance(node) begin
  readhead := node; cand := Unset; low := Infinity; j := 1;
  if StartRule = "inserthead" /\ (height[node] = Levels \/ HeadRule = "any") then goto next_head; else goto next_take; end if;
end macro;

macro end_delivery() begin
  limit := 0;
  if Polls = 0 then goto next_scan;
  else
    asked := asked + 1;
    if asked = Polls then goto Done; else goto next_scan; end if;
  end if;
end macro;

process updater \in Threads
variables
  turn = 1;          \* the number of the call
  w = 0;             \* the window start in work
  level = 0;
  cur = HeadNode;        \* where the search stands; the predecessor of the insert; the node that was found
  nxt = TailNode;
  path = NoPath;     \* path[l]: the last node before w on level l
  sum = 0;
begin
publish:
  if \/ Position[self][turn] > written[self] /\ (PublishRule # "last" \/ Targets[self][turn] = {})
     \/ PublishRule = "always"
  then
    written[self] := Position[self][turn];            \* only when it moves; written[self] is written by self alone
  end if;
  if OwnAnchors /\ ~IsClose(Script[self][turn]) then begin_window(First[self][turn]);
  elsif OwnAnchors then goto update_anchor;
  elsif Targets[self][turn] # {} then begin_window(Least(Targets[self][turn]));
  else end_call();
  end if;

update_start:
  cur := inserthead;
  if Announces then goto update_hold; else goto update_search; end if;

update_hold:
  anchor[self] := cur;
  if ReclaimRule = "unconfirmed" then goto update_search; end if;

update_confirm:
  if inserthead # cur then cur := inserthead; goto update_hold; end if;

update_search:
  if Ts(next[cur][level]) <= w then
    cur := next[cur][level]; goto update_search;
  elsif OwnAnchors /\ level = Levels - 1 /\ cur # anchor[self] /\ (w = First[self][turn] \/ StartRule = "anchor_far") then
    goto update_anchor;
  elsif Targets[self][turn] = {} then end_call();
  else below();
  end if;

update_anchor:
  anchor[self] := IF IsClose(Script[self][turn]) THEN TailNode ELSE cur;
  if Targets[self][turn] = {} then end_call();
  else below();
  end if;

insert_lock:
  await lock = 0;
  lock := self;

insert_read:
  with node = next[cur][level] do
    if level = 0 /\ Ts(node) = w /\ InsertRule # "no_recheck" then
      cur := node;                                    \* another thread was faster: its node is taken, ours dropped
      height[<<self, turn, w>>] := 0; next[<<self, turn, w>>] := [l \in LevelSet |-> Unset];
      path := NoPath; nxt := TailNode;
      if InsertRule = "locked" then goto insert_unlock; else goto window_find; end if;
    elsif Ts(node) > w then
      nxt := node; next[<<self, turn, w>>][level] := node;   \* private: our node is not linked on this level yet
    else
      if InsertRule # "stuck" then cur := node; end if;
      goto insert_read;
    end if;
  end with;

insert_cas:
  if next[cur][level] = nxt \/ InsertRule = "blind" then
    next[cur][level] := <<self, turn, w>>;
    if level + 1 < height[<<self, turn, w>>] then
      level := level + 1; cur := path[level]; goto insert_read;
    else
      cur := <<self, turn, w>>; level := 0; path := NoPath; nxt := TailNode;
      if InsertRule = "locked" then goto insert_unlock; else goto window_find; end if;
    end if;
  else
    goto insert_read;
  end if;

insert_unlock:
  lock := 0;

window_find:
  if Script[self][turn].key \in DOMAIN winset[cur] then goto window_process; end if;

window_insert:
  if WindowRule = "overwrite" \/ Script[self][turn].key \notin DOMAIN winset[cur] then
    winset[cur] := (Script[self][turn].key :> 0) @@ winset[cur];
  end if;

window_process:
  with held = winset[cur][Script[self][turn].key], value = Script[self][turn].value do
    if WindowRule \in {"split", "words_stale"} then
      sum := held; goto window_store;
    elsif WindowRule = "words" then
      winset[cur][Script[self][turn].key] := AddLow(held, value);
      sum := value \div Base + Carry(held, value); goto window_carry;
    elsif Function = "max" then
      if value > held then sum := held; goto window_swap; else end_window(); end if;
    else
      winset[cur][Script[self][turn].key] := held + value;
      end_window();
    end if;
  end with;

window_store:
  if WindowRule = "split" then
    winset[cur][Script[self][turn].key] := sum + Script[self][turn].value;
    end_window();
  else
    winset[cur][Script[self][turn].key] := AddLow(@, Script[self][turn].value);
    sum := Script[self][turn].value \div Base + Carry(sum, Script[self][turn].value);
  end if;

window_carry:                                         \* adding nothing is left out in C
  winset[cur][Script[self][turn].key] := @ + Base * sum;
  end_window();

window_swap:
  if winset[cur][Script[self][turn].key] = sum \/ WindowRule = "swap_blind" then
    winset[cur][Script[self][turn].key] := Script[self][turn].value;
    end_window();
  else
    goto window_process;
  end if;

publish_last:
  if Position[self][turn] > written[self] then written[self] := Position[self][turn]; end if;
  if Announces then goto update_release; else end_call(); end if;

update_release:
  anchor[self] := TailNode;
  end_call();
end process;

process reader = Reader
variables
  readhead = HeadNode;
  cand = Unset;      \* the node that was read
  low = Infinity;    \* the least of `written` so far
  j = 1;             \* the thread whose entry is read next
  asked = 0;
  limit = 0;         \* nodes that start before this may be freed
begin
next_scan:
  if ReadsBeforeScan /\ cand = Unset then
    goto next_peek;
  else
    with least = Lesser(low, written[j]) do
      if ReadRule \in {"printed_once", "printed"} /\ written[j] = Ts(cand) then answer_null(0);
      elsif j < Cardinality(Threads) then low := least; j := j + 1; goto next_scan;
      elsif ~ReadsBeforeScan then low := least; goto next_read;
      elsif ReadRule = "read_scan_read" then
        if cand = TailNode \/ Ts(cand) >= least then answer_null(least); else goto next_reread; end if;
      elsif ReadRule = "cached" then
        if cand = TailNode \/ Ts(cand) >= least then answer_null(least); else with node = cand do advance(node); end with; end if;
      elsif ReadRule = "printed" then goto next_reread;
      else with node = cand do advance(node); end with;
      end if;
    end with;
  end if;

next_peek:
  if next[readhead][0] = TailNode /\ ReadRule \in {"printed_once", "printed"} then answer_null(0);
  elsif ReadRule = "printed" then goto next_peek_ts;
  else cand := next[readhead][0]; goto next_scan;
  end if;

next_peek_ts:
  cand := next[readhead][0];
  goto next_scan;

next_read:
  with node = next[readhead][0], least = low do
    if node = TailNode \/ Ts(node) > least \/ (Ts(node) = least /\ ReadRule # "inclusive") then answer_null(least);
    elsif ReadRule = "scan_read_read" then goto next_reread;
    else advance(node);
    end if;
  end with;

next_reread:
  with node = next[readhead][0] do advance(node); end with;

next_head:
  inserthead := IF HeadRule = "ahead" /\ next[readhead][0] # TailNode THEN next[readhead][0] ELSE readhead;

next_take:
  delivered := Append(delivered, <<Ts(readhead), winset[readhead]>>);
  if ReclaimRule = "never" then end_delivery();
  else
    limit := IF StartRule = "inserthead" THEN Lesser(Ts(inserthead), Ts(readhead)) ELSE Ts(readhead);
    if ReclaimRule = "printed" then goto reclaim_free; end if;
  end if;

reclaim_scan:
  limit := Lesser(limit, Ts(anchor[j]));
  if j < Cardinality(Threads) then j := j + 1; goto reclaim_scan; else j := 1; end if;

reclaim_free:
  freed := freed \cup {n \in Nodes \ {HeadNode} : height[n] > 0 /\ Ts(n) < limit};
  end_delivery();
end process;
end algorithm *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-3918009c801f64d5b84d37f404c020a3
VARIABLES chosen, next, height, winset, written, inserthead, anchor, lock, 
          freed, delivered, pc

(* define statement *)
Script == Scripts[chosen]
Targets == TargetsIn[chosen]
Position == PositionIn[chosen]
First == FirstIn[chosen]

VARIABLES turn, w, level, cur, nxt, path, sum, readhead, cand, low, j, asked, 
          limit

vars == << chosen, next, height, winset, written, inserthead, anchor, lock, 
           freed, delivered, pc, turn, w, level, cur, nxt, path, sum, 
           readhead, cand, low, j, asked, limit >>

ProcSet == (Threads) \cup {Reader}

Init == (* Global variables *)
        /\ chosen \in DOMAIN Scripts
        /\ next = [n \in Nodes |-> [l \in LevelSet |-> IF n = HeadNode THEN TailNode ELSE Unset]]
        /\ height = [n \in Nodes |-> IF n = HeadNode THEN Levels ELSE 0]
        /\ winset = [n \in Nodes |-> << >>]
        /\ written = [t \in Threads |-> Unstarted]
        /\ inserthead = HeadNode
        /\ anchor = [t \in Threads |-> IF OwnAnchors THEN HeadNode ELSE TailNode]
        /\ lock = 0
        /\ freed = {}
        /\ delivered = << >>
        (* Process updater *)
        /\ turn = [self \in Threads |-> 1]
        /\ w = [self \in Threads |-> 0]
        /\ level = [self \in Threads |-> 0]
        /\ cur = [self \in Threads |-> HeadNode]
        /\ nxt = [self \in Threads |-> TailNode]
        /\ path = [self \in Threads |-> NoPath]
        /\ sum = [self \in Threads |-> 0]
        (* Process reader *)
        /\ readhead = HeadNode
        /\ cand = Unset
        /\ low = Infinity
        /\ j = 1
        /\ asked = 0
        /\ limit = 0
        /\ pc = [self \in ProcSet |-> CASE self \in Threads -> "publish"
                                        [] self = Reader -> "next_scan"]

publish(self) == /\ pc[self] = "publish"
                 /\ IF \/ Position[self][turn[self]] > written[self] /\ (PublishRule # "last" \/ Targets[self][turn[self]] = {})
                       \/ PublishRule = "always"
                       THEN /\ written' = [written EXCEPT ![self] = Position[self][turn[self]]]
                       ELSE /\ TRUE
                            /\ UNCHANGED written
                 /\ IF OwnAnchors /\ ~IsClose(Script[self][turn[self]])
                       THEN /\ w' = [w EXCEPT ![self] = First[self][turn[self]]]
                            /\ level' = [level EXCEPT ![self] = Levels - 1]
                            /\ path' = [path EXCEPT ![self] = NoPath]
                            /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                            /\ IF OwnAnchors
                                  THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                       /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                  ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                       /\ pc' = [pc EXCEPT ![self] = "update_start"]
                            /\ UNCHANGED << turn, sum >>
                       ELSE /\ IF OwnAnchors
                                  THEN /\ pc' = [pc EXCEPT ![self] = "update_anchor"]
                                       /\ UNCHANGED << turn, w, level, cur, 
                                                       nxt, path, sum >>
                                  ELSE /\ IF Targets[self][turn[self]] # {}
                                             THEN /\ w' = [w EXCEPT ![self] = Least(Targets[self][turn[self]])]
                                                  /\ level' = [level EXCEPT ![self] = Levels - 1]
                                                  /\ path' = [path EXCEPT ![self] = NoPath]
                                                  /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                  /\ IF OwnAnchors
                                                        THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                                             /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                        ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                             /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                                  /\ UNCHANGED << turn, sum >>
                                             ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                  /\ level' = [level EXCEPT ![self] = 0]
                                                  /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                  /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                  /\ path' = [path EXCEPT ![self] = NoPath]
                                                  /\ sum' = [sum EXCEPT ![self] = 0]
                                                  /\ IF turn[self] = Len(Script[self])
                                                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                             /\ turn' = turn
                                                        ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                             /\ pc' = [pc EXCEPT ![self] = "publish"]
                 /\ UNCHANGED << chosen, next, height, winset, inserthead, 
                                 anchor, lock, freed, delivered, readhead, 
                                 cand, low, j, asked, limit >>

update_start(self) == /\ pc[self] = "update_start"
                      /\ cur' = [cur EXCEPT ![self] = inserthead]
                      /\ IF Announces
                            THEN /\ pc' = [pc EXCEPT ![self] = "update_hold"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "update_search"]
                      /\ UNCHANGED << chosen, next, height, winset, written, 
                                      inserthead, anchor, lock, freed, 
                                      delivered, turn, w, level, nxt, path, 
                                      sum, readhead, cand, low, j, asked, 
                                      limit >>

update_hold(self) == /\ pc[self] = "update_hold"
                     /\ anchor' = [anchor EXCEPT ![self] = cur[self]]
                     /\ IF ReclaimRule = "unconfirmed"
                           THEN /\ pc' = [pc EXCEPT ![self] = "update_search"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "update_confirm"]
                     /\ UNCHANGED << chosen, next, height, winset, written, 
                                     inserthead, lock, freed, delivered, turn, 
                                     w, level, cur, nxt, path, sum, readhead, 
                                     cand, low, j, asked, limit >>

update_confirm(self) == /\ pc[self] = "update_confirm"
                        /\ IF inserthead # cur[self]
                              THEN /\ cur' = [cur EXCEPT ![self] = inserthead]
                                   /\ pc' = [pc EXCEPT ![self] = "update_hold"]
                              ELSE /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                   /\ cur' = cur
                        /\ UNCHANGED << chosen, next, height, winset, written, 
                                        inserthead, anchor, lock, freed, 
                                        delivered, turn, w, level, nxt, path, 
                                        sum, readhead, cand, low, j, asked, 
                                        limit >>

update_search(self) == /\ pc[self] = "update_search"
                       /\ IF Ts(next[cur[self]][level[self]]) <= w[self]
                             THEN /\ cur' = [cur EXCEPT ![self] = next[cur[self]][level[self]]]
                                  /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                  /\ UNCHANGED << height, turn, w, level, nxt, 
                                                  path, sum >>
                             ELSE /\ IF OwnAnchors /\ level[self] = Levels - 1 /\ cur[self] # anchor[self] /\ (w[self] = First[self][turn[self]] \/ StartRule = "anchor_far")
                                        THEN /\ pc' = [pc EXCEPT ![self] = "update_anchor"]
                                             /\ UNCHANGED << height, turn, w, 
                                                             level, cur, nxt, 
                                                             path, sum >>
                                        ELSE /\ IF Targets[self][turn[self]] = {}
                                                   THEN /\ w' = [w EXCEPT ![self] = 0]
                                                        /\ level' = [level EXCEPT ![self] = 0]
                                                        /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                        /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                        /\ path' = [path EXCEPT ![self] = NoPath]
                                                        /\ sum' = [sum EXCEPT ![self] = 0]
                                                        /\ IF turn[self] = Len(Script[self])
                                                              THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                   /\ turn' = turn
                                                              ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                   /\ pc' = [pc EXCEPT ![self] = "publish"]
                                                        /\ UNCHANGED height
                                                   ELSE /\ IF level[self] > 0
                                                              THEN /\ path' = [path EXCEPT ![self][level[self]] = cur[self]]
                                                                   /\ level' = [level EXCEPT ![self] = level[self] - 1]
                                                                   /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                                   /\ UNCHANGED height
                                                              ELSE /\ IF Ts(cur[self]) = w[self]
                                                                         THEN /\ path' = [path EXCEPT ![self] = NoPath]
                                                                              /\ pc' = [pc EXCEPT ![self] = "window_find"]
                                                                              /\ UNCHANGED height
                                                                         ELSE /\ \E h \in Heights:
                                                                                   height' = [height EXCEPT ![<<self, turn[self], w[self]>>] = h]
                                                                              /\ IF InsertRule = "locked"
                                                                                    THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                                                                    ELSE /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                                                                              /\ path' = path
                                                                   /\ level' = level
                                                        /\ UNCHANGED << turn, 
                                                                        w, cur, 
                                                                        nxt, 
                                                                        sum >>
                       /\ UNCHANGED << chosen, next, winset, written, 
                                       inserthead, anchor, lock, freed, 
                                       delivered, readhead, cand, low, j, 
                                       asked, limit >>

update_anchor(self) == /\ pc[self] = "update_anchor"
                       /\ anchor' = [anchor EXCEPT ![self] = IF IsClose(Script[self][turn[self]]) THEN TailNode ELSE cur[self]]
                       /\ IF Targets[self][turn[self]] = {}
                             THEN /\ w' = [w EXCEPT ![self] = 0]
                                  /\ level' = [level EXCEPT ![self] = 0]
                                  /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                  /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                  /\ path' = [path EXCEPT ![self] = NoPath]
                                  /\ sum' = [sum EXCEPT ![self] = 0]
                                  /\ IF turn[self] = Len(Script[self])
                                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                             /\ turn' = turn
                                        ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                             /\ pc' = [pc EXCEPT ![self] = "publish"]
                                  /\ UNCHANGED height
                             ELSE /\ IF level[self] > 0
                                        THEN /\ path' = [path EXCEPT ![self][level[self]] = cur[self]]
                                             /\ level' = [level EXCEPT ![self] = level[self] - 1]
                                             /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                             /\ UNCHANGED height
                                        ELSE /\ IF Ts(cur[self]) = w[self]
                                                   THEN /\ path' = [path EXCEPT ![self] = NoPath]
                                                        /\ pc' = [pc EXCEPT ![self] = "window_find"]
                                                        /\ UNCHANGED height
                                                   ELSE /\ \E h \in Heights:
                                                             height' = [height EXCEPT ![<<self, turn[self], w[self]>>] = h]
                                                        /\ IF InsertRule = "locked"
                                                              THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                                              ELSE /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                                                        /\ path' = path
                                             /\ level' = level
                                  /\ UNCHANGED << turn, w, cur, nxt, sum >>
                       /\ UNCHANGED << chosen, next, winset, written, 
                                       inserthead, lock, freed, delivered, 
                                       readhead, cand, low, j, asked, limit >>

insert_lock(self) == /\ pc[self] = "insert_lock"
                     /\ lock = 0
                     /\ lock' = self
                     /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                     /\ UNCHANGED << chosen, next, height, winset, written, 
                                     inserthead, anchor, freed, delivered, 
                                     turn, w, level, cur, nxt, path, sum, 
                                     readhead, cand, low, j, asked, limit >>

insert_read(self) == /\ pc[self] = "insert_read"
                     /\ LET node == next[cur[self]][level[self]] IN
                          IF level[self] = 0 /\ Ts(node) = w[self] /\ InsertRule # "no_recheck"
                             THEN /\ cur' = [cur EXCEPT ![self] = node]
                                  /\ height' = [height EXCEPT ![<<self, turn[self], w[self]>>] = 0]
                                  /\ next' = [next EXCEPT ![<<self, turn[self], w[self]>>] = [l \in LevelSet |-> Unset]]
                                  /\ path' = [path EXCEPT ![self] = NoPath]
                                  /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                  /\ IF InsertRule = "locked"
                                        THEN /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                        ELSE /\ pc' = [pc EXCEPT ![self] = "window_find"]
                             ELSE /\ IF Ts(node) > w[self]
                                        THEN /\ nxt' = [nxt EXCEPT ![self] = node]
                                             /\ next' = [next EXCEPT ![<<self, turn[self], w[self]>>][level[self]] = node]
                                             /\ pc' = [pc EXCEPT ![self] = "insert_cas"]
                                             /\ cur' = cur
                                        ELSE /\ IF InsertRule # "stuck"
                                                   THEN /\ cur' = [cur EXCEPT ![self] = node]
                                                   ELSE /\ TRUE
                                                        /\ cur' = cur
                                             /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                                             /\ UNCHANGED << next, nxt >>
                                  /\ UNCHANGED << height, path >>
                     /\ UNCHANGED << chosen, winset, written, inserthead, 
                                     anchor, lock, freed, delivered, turn, w, 
                                     level, sum, readhead, cand, low, j, asked, 
                                     limit >>

insert_cas(self) == /\ pc[self] = "insert_cas"
                    /\ IF next[cur[self]][level[self]] = nxt[self] \/ InsertRule = "blind"
                          THEN /\ next' = [next EXCEPT ![cur[self]][level[self]] = <<self, turn[self], w[self]>>]
                               /\ IF level[self] + 1 < height[<<self, turn[self], w[self]>>]
                                     THEN /\ level' = [level EXCEPT ![self] = level[self] + 1]
                                          /\ cur' = [cur EXCEPT ![self] = path[self][level'[self]]]
                                          /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                                          /\ UNCHANGED << nxt, path >>
                                     ELSE /\ cur' = [cur EXCEPT ![self] = <<self, turn[self], w[self]>>]
                                          /\ level' = [level EXCEPT ![self] = 0]
                                          /\ path' = [path EXCEPT ![self] = NoPath]
                                          /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                          /\ IF InsertRule = "locked"
                                                THEN /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                                ELSE /\ pc' = [pc EXCEPT ![self] = "window_find"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "insert_read"]
                               /\ UNCHANGED << next, level, cur, nxt, path >>
                    /\ UNCHANGED << chosen, height, winset, written, 
                                    inserthead, anchor, lock, freed, delivered, 
                                    turn, w, sum, readhead, cand, low, j, 
                                    asked, limit >>

insert_unlock(self) == /\ pc[self] = "insert_unlock"
                       /\ lock' = 0
                       /\ pc' = [pc EXCEPT ![self] = "window_find"]
                       /\ UNCHANGED << chosen, next, height, winset, written, 
                                       inserthead, anchor, freed, delivered, 
                                       turn, w, level, cur, nxt, path, sum, 
                                       readhead, cand, low, j, asked, limit >>

window_find(self) == /\ pc[self] = "window_find"
                     /\ IF Script[self][turn[self]].key \in DOMAIN winset[cur[self]]
                           THEN /\ pc' = [pc EXCEPT ![self] = "window_process"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "window_insert"]
                     /\ UNCHANGED << chosen, next, height, winset, written, 
                                     inserthead, anchor, lock, freed, 
                                     delivered, turn, w, level, cur, nxt, path, 
                                     sum, readhead, cand, low, j, asked, limit >>

window_insert(self) == /\ pc[self] = "window_insert"
                       /\ IF WindowRule = "overwrite" \/ Script[self][turn[self]].key \notin DOMAIN winset[cur[self]]
                             THEN /\ winset' = [winset EXCEPT ![cur[self]] = (Script[self][turn[self]].key :> 0) @@ winset[cur[self]]]
                             ELSE /\ TRUE
                                  /\ UNCHANGED winset
                       /\ pc' = [pc EXCEPT ![self] = "window_process"]
                       /\ UNCHANGED << chosen, next, height, written, 
                                       inserthead, anchor, lock, freed, 
                                       delivered, turn, w, level, cur, nxt, 
                                       path, sum, readhead, cand, low, j, 
                                       asked, limit >>

window_process(self) == /\ pc[self] = "window_process"
                        /\ LET held == winset[cur[self]][Script[self][turn[self]].key] IN
                             LET value == Script[self][turn[self]].value IN
                               IF WindowRule \in {"split", "words_stale"}
                                  THEN /\ sum' = [sum EXCEPT ![self] = held]
                                       /\ pc' = [pc EXCEPT ![self] = "window_store"]
                                       /\ UNCHANGED << winset, turn, w, level, 
                                                       cur, nxt, path >>
                                  ELSE /\ IF WindowRule = "words"
                                             THEN /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = AddLow(held, value)]
                                                  /\ sum' = [sum EXCEPT ![self] = value \div Base + Carry(held, value)]
                                                  /\ pc' = [pc EXCEPT ![self] = "window_carry"]
                                                  /\ UNCHANGED << turn, w, 
                                                                  level, cur, 
                                                                  nxt, path >>
                                             ELSE /\ IF Function = "max"
                                                        THEN /\ IF value > held
                                                                   THEN /\ sum' = [sum EXCEPT ![self] = held]
                                                                        /\ pc' = [pc EXCEPT ![self] = "window_swap"]
                                                                        /\ UNCHANGED << turn, 
                                                                                        w, 
                                                                                        level, 
                                                                                        cur, 
                                                                                        nxt, 
                                                                                        path >>
                                                                   ELSE /\ IF \E s \in Targets[self][turn[self]] : s > w[self]
                                                                              THEN /\ sum' = [sum EXCEPT ![self] = 0]
                                                                                   /\ w' = [w EXCEPT ![self] = Least({s \in Targets[self][turn[self]] : s > w[self]})]
                                                                                   /\ level' = [level EXCEPT ![self] = Levels - 1]
                                                                                   /\ path' = [path EXCEPT ![self] = NoPath]
                                                                                   /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                                   /\ IF OwnAnchors
                                                                                         THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                                                                              /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                                                         ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                                              /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                                                                   /\ turn' = turn
                                                                              ELSE /\ IF PublishRule = "last"
                                                                                         THEN /\ pc' = [pc EXCEPT ![self] = "publish_last"]
                                                                                              /\ UNCHANGED << turn, 
                                                                                                              w, 
                                                                                                              level, 
                                                                                                              cur, 
                                                                                                              nxt, 
                                                                                                              path, 
                                                                                                              sum >>
                                                                                         ELSE /\ IF Announces
                                                                                                    THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                                                                                         /\ UNCHANGED << turn, 
                                                                                                                         w, 
                                                                                                                         level, 
                                                                                                                         cur, 
                                                                                                                         nxt, 
                                                                                                                         path, 
                                                                                                                         sum >>
                                                                                                    ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                                                                         /\ level' = [level EXCEPT ![self] = 0]
                                                                                                         /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                                                         /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                                                         /\ path' = [path EXCEPT ![self] = NoPath]
                                                                                                         /\ sum' = [sum EXCEPT ![self] = 0]
                                                                                                         /\ IF turn[self] = Len(Script[self])
                                                                                                               THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                                                                    /\ turn' = turn
                                                                                                               ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                                                                    /\ pc' = [pc EXCEPT ![self] = "publish"]
                                                             /\ UNCHANGED winset
                                                        ELSE /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = held + value]
                                                             /\ IF \E s \in Targets[self][turn[self]] : s > w[self]
                                                                   THEN /\ sum' = [sum EXCEPT ![self] = 0]
                                                                        /\ w' = [w EXCEPT ![self] = Least({s \in Targets[self][turn[self]] : s > w[self]})]
                                                                        /\ level' = [level EXCEPT ![self] = Levels - 1]
                                                                        /\ path' = [path EXCEPT ![self] = NoPath]
                                                                        /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                        /\ IF OwnAnchors
                                                                              THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                                                                   /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                                              ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                                   /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                                                        /\ turn' = turn
                                                                   ELSE /\ IF PublishRule = "last"
                                                                              THEN /\ pc' = [pc EXCEPT ![self] = "publish_last"]
                                                                                   /\ UNCHANGED << turn, 
                                                                                                   w, 
                                                                                                   level, 
                                                                                                   cur, 
                                                                                                   nxt, 
                                                                                                   path, 
                                                                                                   sum >>
                                                                              ELSE /\ IF Announces
                                                                                         THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                                                                              /\ UNCHANGED << turn, 
                                                                                                              w, 
                                                                                                              level, 
                                                                                                              cur, 
                                                                                                              nxt, 
                                                                                                              path, 
                                                                                                              sum >>
                                                                                         ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                                                              /\ level' = [level EXCEPT ![self] = 0]
                                                                                              /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                                              /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                                              /\ path' = [path EXCEPT ![self] = NoPath]
                                                                                              /\ sum' = [sum EXCEPT ![self] = 0]
                                                                                              /\ IF turn[self] = Len(Script[self])
                                                                                                    THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                                                         /\ turn' = turn
                                                                                                    ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                                                         /\ pc' = [pc EXCEPT ![self] = "publish"]
                        /\ UNCHANGED << chosen, next, height, written, 
                                        inserthead, anchor, lock, freed, 
                                        delivered, readhead, cand, low, j, 
                                        asked, limit >>

window_store(self) == /\ pc[self] = "window_store"
                      /\ IF WindowRule = "split"
                            THEN /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = sum[self] + Script[self][turn[self]].value]
                                 /\ IF \E s \in Targets[self][turn[self]] : s > w[self]
                                       THEN /\ sum' = [sum EXCEPT ![self] = 0]
                                            /\ w' = [w EXCEPT ![self] = Least({s \in Targets[self][turn[self]] : s > w[self]})]
                                            /\ level' = [level EXCEPT ![self] = Levels - 1]
                                            /\ path' = [path EXCEPT ![self] = NoPath]
                                            /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                            /\ IF OwnAnchors
                                                  THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                                       /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                  ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                       /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                            /\ turn' = turn
                                       ELSE /\ IF PublishRule = "last"
                                                  THEN /\ pc' = [pc EXCEPT ![self] = "publish_last"]
                                                       /\ UNCHANGED << turn, w, 
                                                                       level, 
                                                                       cur, 
                                                                       nxt, 
                                                                       path, 
                                                                       sum >>
                                                  ELSE /\ IF Announces
                                                             THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                                                  /\ UNCHANGED << turn, 
                                                                                  w, 
                                                                                  level, 
                                                                                  cur, 
                                                                                  nxt, 
                                                                                  path, 
                                                                                  sum >>
                                                             ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                                  /\ level' = [level EXCEPT ![self] = 0]
                                                                  /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                  /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                  /\ path' = [path EXCEPT ![self] = NoPath]
                                                                  /\ sum' = [sum EXCEPT ![self] = 0]
                                                                  /\ IF turn[self] = Len(Script[self])
                                                                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                             /\ turn' = turn
                                                                        ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                             /\ pc' = [pc EXCEPT ![self] = "publish"]
                            ELSE /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = AddLow(@, Script[self][turn[self]].value)]
                                 /\ sum' = [sum EXCEPT ![self] = Script[self][turn[self]].value \div Base + Carry(sum[self], Script[self][turn[self]].value)]
                                 /\ pc' = [pc EXCEPT ![self] = "window_carry"]
                                 /\ UNCHANGED << turn, w, level, cur, nxt, 
                                                 path >>
                      /\ UNCHANGED << chosen, next, height, written, 
                                      inserthead, anchor, lock, freed, 
                                      delivered, readhead, cand, low, j, asked, 
                                      limit >>

window_carry(self) == /\ pc[self] = "window_carry"
                      /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = @ + Base * sum[self]]
                      /\ IF \E s \in Targets[self][turn[self]] : s > w[self]
                            THEN /\ sum' = [sum EXCEPT ![self] = 0]
                                 /\ w' = [w EXCEPT ![self] = Least({s \in Targets[self][turn[self]] : s > w[self]})]
                                 /\ level' = [level EXCEPT ![self] = Levels - 1]
                                 /\ path' = [path EXCEPT ![self] = NoPath]
                                 /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                 /\ IF OwnAnchors
                                       THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                            /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                       ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                            /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                 /\ turn' = turn
                            ELSE /\ IF PublishRule = "last"
                                       THEN /\ pc' = [pc EXCEPT ![self] = "publish_last"]
                                            /\ UNCHANGED << turn, w, level, 
                                                            cur, nxt, path, 
                                                            sum >>
                                       ELSE /\ IF Announces
                                                  THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                                       /\ UNCHANGED << turn, w, 
                                                                       level, 
                                                                       cur, 
                                                                       nxt, 
                                                                       path, 
                                                                       sum >>
                                                  ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                       /\ level' = [level EXCEPT ![self] = 0]
                                                       /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                       /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                       /\ path' = [path EXCEPT ![self] = NoPath]
                                                       /\ sum' = [sum EXCEPT ![self] = 0]
                                                       /\ IF turn[self] = Len(Script[self])
                                                             THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                  /\ turn' = turn
                                                             ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                  /\ pc' = [pc EXCEPT ![self] = "publish"]
                      /\ UNCHANGED << chosen, next, height, written, 
                                      inserthead, anchor, lock, freed, 
                                      delivered, readhead, cand, low, j, asked, 
                                      limit >>

window_swap(self) == /\ pc[self] = "window_swap"
                     /\ IF winset[cur[self]][Script[self][turn[self]].key] = sum[self] \/ WindowRule = "swap_blind"
                           THEN /\ winset' = [winset EXCEPT ![cur[self]][Script[self][turn[self]].key] = Script[self][turn[self]].value]
                                /\ IF \E s \in Targets[self][turn[self]] : s > w[self]
                                      THEN /\ sum' = [sum EXCEPT ![self] = 0]
                                           /\ w' = [w EXCEPT ![self] = Least({s \in Targets[self][turn[self]] : s > w[self]})]
                                           /\ level' = [level EXCEPT ![self] = Levels - 1]
                                           /\ path' = [path EXCEPT ![self] = NoPath]
                                           /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                           /\ IF OwnAnchors
                                                 THEN /\ cur' = [cur EXCEPT ![self] = anchor[self]]
                                                      /\ pc' = [pc EXCEPT ![self] = "update_search"]
                                                 ELSE /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                      /\ pc' = [pc EXCEPT ![self] = "update_start"]
                                           /\ turn' = turn
                                      ELSE /\ IF PublishRule = "last"
                                                 THEN /\ pc' = [pc EXCEPT ![self] = "publish_last"]
                                                      /\ UNCHANGED << turn, w, 
                                                                      level, 
                                                                      cur, nxt, 
                                                                      path, 
                                                                      sum >>
                                                 ELSE /\ IF Announces
                                                            THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                                                 /\ UNCHANGED << turn, 
                                                                                 w, 
                                                                                 level, 
                                                                                 cur, 
                                                                                 nxt, 
                                                                                 path, 
                                                                                 sum >>
                                                            ELSE /\ w' = [w EXCEPT ![self] = 0]
                                                                 /\ level' = [level EXCEPT ![self] = 0]
                                                                 /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                                                 /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                                                 /\ path' = [path EXCEPT ![self] = NoPath]
                                                                 /\ sum' = [sum EXCEPT ![self] = 0]
                                                                 /\ IF turn[self] = Len(Script[self])
                                                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                            /\ turn' = turn
                                                                       ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                            /\ pc' = [pc EXCEPT ![self] = "publish"]
                           ELSE /\ pc' = [pc EXCEPT ![self] = "window_process"]
                                /\ UNCHANGED << winset, turn, w, level, cur, 
                                                nxt, path, sum >>
                     /\ UNCHANGED << chosen, next, height, written, inserthead, 
                                     anchor, lock, freed, delivered, readhead, 
                                     cand, low, j, asked, limit >>

publish_last(self) == /\ pc[self] = "publish_last"
                      /\ IF Position[self][turn[self]] > written[self]
                            THEN /\ written' = [written EXCEPT ![self] = Position[self][turn[self]]]
                            ELSE /\ TRUE
                                 /\ UNCHANGED written
                      /\ IF Announces
                            THEN /\ pc' = [pc EXCEPT ![self] = "update_release"]
                                 /\ UNCHANGED << turn, w, level, cur, nxt, 
                                                 path, sum >>
                            ELSE /\ w' = [w EXCEPT ![self] = 0]
                                 /\ level' = [level EXCEPT ![self] = 0]
                                 /\ cur' = [cur EXCEPT ![self] = HeadNode]
                                 /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                                 /\ path' = [path EXCEPT ![self] = NoPath]
                                 /\ sum' = [sum EXCEPT ![self] = 0]
                                 /\ IF turn[self] = Len(Script[self])
                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                            /\ turn' = turn
                                       ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                            /\ pc' = [pc EXCEPT ![self] = "publish"]
                      /\ UNCHANGED << chosen, next, height, winset, inserthead, 
                                      anchor, lock, freed, delivered, readhead, 
                                      cand, low, j, asked, limit >>

update_release(self) == /\ pc[self] = "update_release"
                        /\ anchor' = [anchor EXCEPT ![self] = TailNode]
                        /\ w' = [w EXCEPT ![self] = 0]
                        /\ level' = [level EXCEPT ![self] = 0]
                        /\ cur' = [cur EXCEPT ![self] = HeadNode]
                        /\ nxt' = [nxt EXCEPT ![self] = TailNode]
                        /\ path' = [path EXCEPT ![self] = NoPath]
                        /\ sum' = [sum EXCEPT ![self] = 0]
                        /\ IF turn[self] = Len(Script[self])
                              THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                   /\ turn' = turn
                              ELSE /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                   /\ pc' = [pc EXCEPT ![self] = "publish"]
                        /\ UNCHANGED << chosen, next, height, winset, written, 
                                        inserthead, lock, freed, delivered, 
                                        readhead, cand, low, j, asked, limit >>

updater(self) == publish(self) \/ update_start(self) \/ update_hold(self)
                    \/ update_confirm(self) \/ update_search(self)
                    \/ update_anchor(self) \/ insert_lock(self)
                    \/ insert_read(self) \/ insert_cas(self)
                    \/ insert_unlock(self) \/ window_find(self)
                    \/ window_insert(self) \/ window_process(self)
                    \/ window_store(self) \/ window_carry(self)
                    \/ window_swap(self) \/ publish_last(self)
                    \/ update_release(self)

next_scan == /\ pc[Reader] = "next_scan"
             /\ IF ReadsBeforeScan /\ cand = Unset
                   THEN /\ pc' = [pc EXCEPT ![Reader] = "next_peek"]
                        /\ UNCHANGED << readhead, cand, low, j, asked >>
                   ELSE /\ LET least == Lesser(low, written[j]) IN
                             IF ReadRule \in {"printed_once", "printed"} /\ written[j] = Ts(cand)
                                THEN /\ low' = Infinity
                                     /\ j' = 1
                                     /\ cand' = Unset
                                     /\ IF Polls = 0
                                           THEN /\ IF 0 = Infinity
                                                      THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                      ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                /\ asked' = asked
                                           ELSE /\ asked' = asked + 1
                                                /\ IF asked' = Polls
                                                      THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                      ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                     /\ UNCHANGED readhead
                                ELSE /\ IF j < Cardinality(Threads)
                                           THEN /\ low' = least
                                                /\ j' = j + 1
                                                /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                /\ UNCHANGED << readhead, cand, 
                                                                asked >>
                                           ELSE /\ IF ~ReadsBeforeScan
                                                      THEN /\ low' = least
                                                           /\ pc' = [pc EXCEPT ![Reader] = "next_read"]
                                                           /\ UNCHANGED << readhead, 
                                                                           cand, 
                                                                           j, 
                                                                           asked >>
                                                      ELSE /\ IF ReadRule = "read_scan_read"
                                                                 THEN /\ IF cand = TailNode \/ Ts(cand) >= least
                                                                            THEN /\ low' = Infinity
                                                                                 /\ j' = 1
                                                                                 /\ cand' = Unset
                                                                                 /\ IF Polls = 0
                                                                                       THEN /\ IF least = Infinity
                                                                                                  THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                                                                  ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                                                            /\ asked' = asked
                                                                                       ELSE /\ asked' = asked + 1
                                                                                            /\ IF asked' = Polls
                                                                                                  THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                                                                  ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_reread"]
                                                                                 /\ UNCHANGED << cand, 
                                                                                                 low, 
                                                                                                 j, 
                                                                                                 asked >>
                                                                      /\ UNCHANGED readhead
                                                                 ELSE /\ IF ReadRule = "cached"
                                                                            THEN /\ IF cand = TailNode \/ Ts(cand) >= least
                                                                                       THEN /\ low' = Infinity
                                                                                            /\ j' = 1
                                                                                            /\ cand' = Unset
                                                                                            /\ IF Polls = 0
                                                                                                  THEN /\ IF least = Infinity
                                                                                                             THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                                                                             ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                                                                       /\ asked' = asked
                                                                                                  ELSE /\ asked' = asked + 1
                                                                                                       /\ IF asked' = Polls
                                                                                                             THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                                                                                             ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                                                                            /\ UNCHANGED readhead
                                                                                       ELSE /\ LET node == cand IN
                                                                                                 /\ readhead' = node
                                                                                                 /\ cand' = Unset
                                                                                                 /\ low' = Infinity
                                                                                                 /\ j' = 1
                                                                                                 /\ IF StartRule = "inserthead" /\ (height[node] = Levels \/ HeadRule = "any")
                                                                                                       THEN /\ pc' = [pc EXCEPT ![Reader] = "next_head"]
                                                                                                       ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_take"]
                                                                                            /\ asked' = asked
                                                                            ELSE /\ IF ReadRule = "printed"
                                                                                       THEN /\ pc' = [pc EXCEPT ![Reader] = "next_reread"]
                                                                                            /\ UNCHANGED << readhead, 
                                                                                                            cand, 
                                                                                                            low, 
                                                                                                            j >>
                                                                                       ELSE /\ LET node == cand IN
                                                                                                 /\ readhead' = node
                                                                                                 /\ cand' = Unset
                                                                                                 /\ low' = Infinity
                                                                                                 /\ j' = 1
                                                                                                 /\ IF StartRule = "inserthead" /\ (height[node] = Levels \/ HeadRule = "any")
                                                                                                       THEN /\ pc' = [pc EXCEPT ![Reader] = "next_head"]
                                                                                                       ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_take"]
                                                                                 /\ asked' = asked
             /\ UNCHANGED << chosen, next, height, winset, written, inserthead, 
                             anchor, lock, freed, delivered, turn, w, level, 
                             cur, nxt, path, sum, limit >>

next_peek == /\ pc[Reader] = "next_peek"
             /\ IF next[readhead][0] = TailNode /\ ReadRule \in {"printed_once", "printed"}
                   THEN /\ low' = Infinity
                        /\ j' = 1
                        /\ cand' = Unset
                        /\ IF Polls = 0
                              THEN /\ IF 0 = Infinity
                                         THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                         ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                   /\ asked' = asked
                              ELSE /\ asked' = asked + 1
                                   /\ IF asked' = Polls
                                         THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                         ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                   ELSE /\ IF ReadRule = "printed"
                              THEN /\ pc' = [pc EXCEPT ![Reader] = "next_peek_ts"]
                                   /\ cand' = cand
                              ELSE /\ cand' = next[readhead][0]
                                   /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                        /\ UNCHANGED << low, j, asked >>
             /\ UNCHANGED << chosen, next, height, winset, written, inserthead, 
                             anchor, lock, freed, delivered, turn, w, level, 
                             cur, nxt, path, sum, readhead, limit >>

next_peek_ts == /\ pc[Reader] = "next_peek_ts"
                /\ cand' = next[readhead][0]
                /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                /\ UNCHANGED << chosen, next, height, winset, written, 
                                inserthead, anchor, lock, freed, delivered, 
                                turn, w, level, cur, nxt, path, sum, readhead, 
                                low, j, asked, limit >>

next_read == /\ pc[Reader] = "next_read"
             /\ LET node == next[readhead][0] IN
                  LET least == low IN
                    IF node = TailNode \/ Ts(node) > least \/ (Ts(node) = least /\ ReadRule # "inclusive")
                       THEN /\ low' = Infinity
                            /\ j' = 1
                            /\ cand' = Unset
                            /\ IF Polls = 0
                                  THEN /\ IF least = Infinity
                                             THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                             ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                       /\ asked' = asked
                                  ELSE /\ asked' = asked + 1
                                       /\ IF asked' = Polls
                                             THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                             ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                            /\ UNCHANGED readhead
                       ELSE /\ IF ReadRule = "scan_read_read"
                                  THEN /\ pc' = [pc EXCEPT ![Reader] = "next_reread"]
                                       /\ UNCHANGED << readhead, cand, low, j >>
                                  ELSE /\ readhead' = node
                                       /\ cand' = Unset
                                       /\ low' = Infinity
                                       /\ j' = 1
                                       /\ IF StartRule = "inserthead" /\ (height[node] = Levels \/ HeadRule = "any")
                                             THEN /\ pc' = [pc EXCEPT ![Reader] = "next_head"]
                                             ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_take"]
                            /\ asked' = asked
             /\ UNCHANGED << chosen, next, height, winset, written, inserthead, 
                             anchor, lock, freed, delivered, turn, w, level, 
                             cur, nxt, path, sum, limit >>

next_reread == /\ pc[Reader] = "next_reread"
               /\ LET node == next[readhead][0] IN
                    /\ readhead' = node
                    /\ cand' = Unset
                    /\ low' = Infinity
                    /\ j' = 1
                    /\ IF StartRule = "inserthead" /\ (height[node] = Levels \/ HeadRule = "any")
                          THEN /\ pc' = [pc EXCEPT ![Reader] = "next_head"]
                          ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_take"]
               /\ UNCHANGED << chosen, next, height, winset, written, 
                               inserthead, anchor, lock, freed, delivered, 
                               turn, w, level, cur, nxt, path, sum, asked, 
                               limit >>

next_head == /\ pc[Reader] = "next_head"
             /\ inserthead' = (IF HeadRule = "ahead" /\ next[readhead][0] # TailNode THEN next[readhead][0] ELSE readhead)
             /\ pc' = [pc EXCEPT ![Reader] = "next_take"]
             /\ UNCHANGED << chosen, next, height, winset, written, anchor, 
                             lock, freed, delivered, turn, w, level, cur, nxt, 
                             path, sum, readhead, cand, low, j, asked, limit >>

next_take == /\ pc[Reader] = "next_take"
             /\ delivered' = Append(delivered, <<Ts(readhead), winset[readhead]>>)
             /\ IF ReclaimRule = "never"
                   THEN /\ limit' = 0
                        /\ IF Polls = 0
                              THEN /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                                   /\ asked' = asked
                              ELSE /\ asked' = asked + 1
                                   /\ IF asked' = Polls
                                         THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                         ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                   ELSE /\ limit' = (IF StartRule = "inserthead" THEN Lesser(Ts(inserthead), Ts(readhead)) ELSE Ts(readhead))
                        /\ IF ReclaimRule = "printed"
                              THEN /\ pc' = [pc EXCEPT ![Reader] = "reclaim_free"]
                              ELSE /\ pc' = [pc EXCEPT ![Reader] = "reclaim_scan"]
                        /\ asked' = asked
             /\ UNCHANGED << chosen, next, height, winset, written, inserthead, 
                             anchor, lock, freed, turn, w, level, cur, nxt, 
                             path, sum, readhead, cand, low, j >>

reclaim_scan == /\ pc[Reader] = "reclaim_scan"
                /\ limit' = Lesser(limit, Ts(anchor[j]))
                /\ IF j < Cardinality(Threads)
                      THEN /\ j' = j + 1
                           /\ pc' = [pc EXCEPT ![Reader] = "reclaim_scan"]
                      ELSE /\ j' = 1
                           /\ pc' = [pc EXCEPT ![Reader] = "reclaim_free"]
                /\ UNCHANGED << chosen, next, height, winset, written, 
                                inserthead, anchor, lock, freed, delivered, 
                                turn, w, level, cur, nxt, path, sum, readhead, 
                                cand, low, asked >>

reclaim_free == /\ pc[Reader] = "reclaim_free"
                /\ freed' = (freed \cup {n \in Nodes \ {HeadNode} : height[n] > 0 /\ Ts(n) < limit})
                /\ limit' = 0
                /\ IF Polls = 0
                      THEN /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                           /\ asked' = asked
                      ELSE /\ asked' = asked + 1
                           /\ IF asked' = Polls
                                 THEN /\ pc' = [pc EXCEPT ![Reader] = "Done"]
                                 ELSE /\ pc' = [pc EXCEPT ![Reader] = "next_scan"]
                /\ UNCHANGED << chosen, next, height, winset, written, 
                                inserthead, anchor, lock, delivered, turn, w, 
                                level, cur, nxt, path, sum, readhead, cand, 
                                low, j >>

reader == next_scan \/ next_peek \/ next_peek_ts \/ next_read
             \/ next_reread \/ next_head \/ next_take \/ reclaim_scan
             \/ reclaim_free

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == reader
           \/ (\E self \in Threads: updater(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-49ddcbe73da41a60b0c8a8cc62b6ca13
=============================================================================
