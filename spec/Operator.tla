------------------------------ MODULE Operator ------------------------------
(***************************************************************************)
(* The five designs of the paper (Algorithms 2, 3 and 6) as threads that   *)
(* call structures.  The structures have specs of their own; here a call   *)
(* is one atomic step of the structure's abstract behaviour:               *)
(*                                                                         *)
(*   queue    one FIFO per input              MQ (one lock), MQ_LF         *)
(*   gate     T-Gate: what each input has     TuML_SC, TuML_MC             *)
(*            inserted; each reader has its                                *)
(*            own cursor in (ts, input) order                              *)
(*   windows  the window list of the output   MQ, MQ_LF, TuML_SC           *)
(*            thread, or the W-Hive with      TuML_MC, WiML                *)
(*            `written`, a position a thread                               *)
(*                                                                         *)
(* THREADS.  One per input (Add ...), UpdateCount update threads (TuML_MC  *)
(* only), one output thread.  Input k alone adds to input k; the output    *)
(* thread alone takes winsets and appends to `out`.                        *)
(*                                                                         *)
(* INVARIANTS (MCOperator checks them)                                     *)
(*  I1  `out` is a prefix of the result of the run (the aggregate of the   *)
(*      merged input), and every row in it is complete.                    *)
(*  I2  No window is open again after one of its rows has left.            *)
(*  I3  `written` of a thread never falls.                                 *)
(*  I4  All readers of the gate walk the same sequence.                    *)
(*  I5  At most MaxPending tuples of an input are held (MaxPending > 0).   *)
(*  I6  The lock of MQ has one holder.                                     *)
(* GUARANTEES                                                              *)
(*  G1  Each design refines MergedAggregate; hence all of them agree, and  *)
(*      a run has one output.                                              *)
(*  G2  A complete window leaves although inputs stay idle: heartbeats and *)
(*      tuples without a window of their own move time too.                *)
(*  G3  Once all inputs are closed, everything comes out and the output    *)
(*      thread ends.                                                       *)
(* PROGRESS.  Input threads of MQ_LF, TuML_* and WiML wait for nobody      *)
(* unless MaxPending is set.  In MQ a thread that dies with the lock stops *)
(* all.  In TuML_MC an update thread that dies keeps back every window at  *)
(* or past its position, whatever the key.  A sleeping output thread       *)
(* depends on the thread that owes it a ring; a polling one does not.      *)
(*                                                                         *)
(* A heartbeat below the input's latest timestamp says nothing new and is  *)
(* dropped before it reaches a structure, so an input's events never go    *)
(* back in time.                                                           *)
(*                                                                         *)
(* Which C function a label stands for: README.md.                         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  InputCount, UpdateCount,
  Script(_),        \* name of a script -> input -> sequence of events
  ScriptNames, Designs, Windows, Functions,     \* a run is drawn from these
  MaxPending,       \* tuples held per input before add blocks; 0 = no bound
  Batch,            \* tuples added between two rings
  Wait,             \* "poll", "doorbell", "timed"; bugs: "no_rescan", "ring_early"
  Bells,            \* "own": one a consumer; bug: "shared" by the update threads
  (* The rules: the first value is ours, the others are printed or seeded bugs. *)
  AdmitRule,        \* "checked": WiML refuses order-sensitive functions; "all"
  TieRule,          \* "input": equal ts by input; "none": any of them
  EmptyRule,        \* "holds": an input that has sent nothing holds back; "ignored"
  MarkerRule,       \* "outputs": heartbeats let windows leave; "skipped"
  GapRule,          \* "moves": a tuple without a window still moves time; "skipped"
  LeaveRule,        \* "below": windows below the position leave; "upto"
  CloseRule,        \* "all": the end is when all are closed; "any", "forgets"
  CloseAs,          \* "marker" in the queue; a flag read "flag_first" or "flag_last"
  PublishRule,      \* "every": position moves for each tuple read; "owned" (printed)
  OwnRule,          \* "key": hash to thread; "turn", "everyone"
  ReachedRule,      \* "cursor": the reader's own position; "merge_ts"
  HiveRule,         \* "min": below all of written; "in" (printed)
  FullRule,         \* "ring_first"; bugs: "sleep_first", "no_recheck"
  FeedRule          \* "threads": one a input; "one_by_one": one feeds all, in turn

ASSUME /\ AdmitRule \in {"checked", "all"}
       /\ TieRule \in {"input", "none"}
       /\ EmptyRule \in {"holds", "ignored"}
       /\ MarkerRule \in {"outputs", "skipped"}
       /\ GapRule \in {"moves", "skipped"}
       /\ LeaveRule \in {"below", "upto"}
       /\ CloseRule \in {"all", "any", "forgets"}
       /\ CloseAs \in {"marker", "flag_first", "flag_last"}
       /\ PublishRule \in {"every", "owned"}
       /\ OwnRule \in {"key", "turn", "everyone"}
       /\ ReachedRule \in {"cursor", "merge_ts"}
       /\ HiveRule \in {"min", "in"}
       /\ FullRule \in {"ring_first", "sleep_first", "no_recheck"}
       /\ FeedRule \in {"threads", "one_by_one"}
       /\ Wait \in {"poll", "doorbell", "timed", "no_rescan", "ring_early"}
       /\ Bells \in {"own", "shared"}

Inputs        == 0..(InputCount - 1)
UpdateThreads == InputCount..(InputCount + UpdateCount - 1)
OutputThread  == InputCount + UpdateCount
Readers       == UpdateThreads \cup {OutputThread}

Forever   == 99
Unstarted == -1
Free      == -1         \* nobody holds the lock
NoItem    == <<>>
NoHeads   == [k \in Inputs |-> 0]
NoWindows == <<>>       \* the function with no argument
Sleeping  == Wait # "poll"
Bell(c)   == IF Bells = "shared" /\ c \in UpdateThreads THEN InputCount ELSE c

OrderInsensitive(fn) == fn \in {"count", "sum", "first_tagged"}

Runs == {r \in [design : Designs, script : ScriptNames, window : Windows, fn : Functions] :
           AdmitRule = "checked" /\ r.design = "WiML" => OrderInsensitive(r.fn)}

Least(S) == CHOOSE x \in S : \A y \in S : x <= y

(* The({f(x) : x \in {e}}) is f(e) with e evaluated once: TLC would evaluate the LET
   again at each use while it looks for enabled steps. *)
The(S) == CHOOSE x \in S : TRUE

Sorted(S) ==            \* cells <<window start, key>> in output order
  [n \in 1..Cardinality(S) |->
     CHOOSE x \in S :
       Cardinality({y \in S : y[1] < x[1] \/ (y[1] = x[1] /\ y[2] < x[2])}) = n - 1]

(* --algorithm operator
variables
  run \in Runs,
  queue = [k \in Inputs |-> <<>>],          \* positions of events, oldest first
  shut = [k \in Inputs |-> FALSE],          \* close as a flag (CloseAs)
  lock = Free,
  gate = [k \in Inputs |-> 0],              \* events inserted by each input
  cursor = [r \in Readers |-> NoHeads],     \* events each reader has walked over
  windows = NoWindows,                      \* <<window start, key>> -> accumulator
  written = [t \in Inputs \cup UpdateThreads |-> Unstarted],
  waiting = [c \in Readers |-> FALSE],      \* doorbells of the consumers
  full = [k \in Inputs |-> FALSE],          \* doorbells of the inputs
  out = <<>>;

define
  Events(k)   == Script(run.script)[k]
  At(k, i)    == Events(k)[i]
  Size        == run.window[1]
  Advance     == run.window[2]

  (* getTargetWindowTSs: First is also right in a gap, where there is no target. *)
  First(ts)   == IF ts = Forever THEN Forever
                 ELSE IF ts < Size THEN 0 ELSE Advance * (((ts - Size) \div Advance) + 1)
  Targets(ts) == {w \in {n * Advance : n \in 0..ts} : First(ts) <= w /\ w <= ts}
  Moves(e)    == \/ e.kind = "close"
                 \/ e.kind = "beat" /\ MarkerRule = "outputs"
                 \/ e.kind = "tuple" /\ (GapRule = "moves" \/ Targets(e.ts) # {})

  (* The window functions: identity, add, finish. *)
  Identity == IF run.fn = "first_tagged" THEN <<Forever, 0, 0, 0>> ELSE 0
  Earlier(a, b) == IF \/ a[1] < b[1]
                      \/ a[1] = b[1] /\ a[2] < b[2]
                      \/ a[1] = b[1] /\ a[2] = b[2] /\ a[3] < b[3] THEN a ELSE b
  Add(acc, k, i) ==
    CASE run.fn = "count" -> acc + 1
      [] run.fn = "sum" -> acc + At(k, i).val
      [] run.fn = "first" -> IF acc = 0 THEN At(k, i).val ELSE acc
      [] run.fn = "first_tagged" -> Earlier(acc, <<At(k, i).ts, k, i, At(k, i).val>>)
  Finish(acc) == IF run.fn = "first_tagged" THEN acc[4] ELSE acc

  Limit(e)         == IF Moves(e) THEN First(e.ts) ELSE Unstarted
  Leaves(w, limit) == w < limit \/ (LeaveRule = "upto" /\ w = limit)
  Leaving(limit)   == {c \in DOMAIN windows : Leaves(c[1], limit)}
  RowsOf(cells)    == The({[n \in 1..Len(s) |-> <<s[n][1], s[n][2], Finish(windows[s[n]])>>] :
                             s \in {Sorted(c) : c \in {cells}}})
  Without(cells)   == [c \in DOMAIN windows \ cells |-> windows[c]]
  With(old, k, i)  == The({[c \in DOMAIN ws \cup new |->
                              IF c \notin new THEN ws[c]
                              ELSE Add(IF c \in DOMAIN ws THEN ws[c] ELSE Identity, k, i)] :
                             ws \in {old}, new \in {Targets(At(k, i).ts) \X {At(k, i).key}}})

  (* S-Merge: heads[k] is the position of the next event of input k, 0 if there is none. *)
  QueueHeads    == [k \in Inputs |-> IF queue[k] = <<>> THEN 0 ELSE Head(queue[k])]
  GateHeads(c)  == [k \in Inputs |-> IF c[k] < gate[k] THEN c[k] + 1 ELSE 0]
  Present(h)    == {k \in Inputs : h[k] # 0}
  Lowest(h)     == IF EmptyRule = "holds" /\ Present(h) # Inputs THEN {}
                   ELSE {k \in Present(h) :
                           \A j \in Present(h) : At(k, h[k]).ts <= At(j, h[j]).ts}
  Choice(h)     == IF TieRule = "none" \/ Lowest(h) = {} THEN Lowest(h) ELSE {Least(Lowest(h))}
  Ended(h)      == IF CloseRule = "any" THEN \E k \in Present(h) : At(k, h[k]).kind = "close"
                   ELSE Lowest(h) # {} /\ \A k \in Lowest(h) : At(k, h[k]).kind = "close"

  (* t_gate_get_next_ready_tuple: walk over markers to the next ready tuple.  item is
     NoItem for null; ts is how far the reader has come, the only news null carries. *)
  Reached(c) == The({t \in {0} \cup {At(k, c[k]).ts : k \in {j \in Inputs : c[j] > 0}} :
                       \A k \in Inputs : c[k] > 0 => At(k, c[k]).ts <= t})
  RECURSIVE Walk(_)
  WalkOn(c, h, low) ==
    IF Ended(h) THEN [cursor |-> c, item |-> NoItem, ts |-> Forever]
    ELSE IF low = {} THEN [cursor |-> c, item |-> NoItem, ts |-> Reached(c)]
    ELSE The({IF At(k, h[k]).kind = "tuple"
              THEN [cursor |-> [c EXCEPT ![k] = @ + 1], item |-> <<k, h[k]>>, ts |-> At(k, h[k]).ts]
              ELSE Walk([c EXCEPT ![k] = @ + 1]) : k \in {Least(low)}})
  Walk(from) == The({The({WalkOn(c, h, low) : h \in {GateHeads(c)}, low \in {Lowest(GateHeads(c))}})
                       : c \in {from}})
  MergeTs == Least({IF gate[k] = 0 THEN 0 ELSE At(k, gate[k]).ts : k \in Inputs})

  News(ts) == IF ts = Forever THEN Forever      \* what a null that brought a reader to ts tells
              ELSE IF MarkerRule = "skipped" \/ PublishRule = "owned" THEN 0
              ELSE IF ReachedRule = "merge_ts" THEN MergeTs ELSE ts

  (* hashToThread *)
  Turn(c)    == Cardinality(UNION {{<<k, i>> : i \in {j \in 1..c[k] : At(k, j).kind = "tuple"}}
                                     : k \in Inputs})
  Owner(key) == InputCount + (key % UpdateCount)
  Owns(u, x, c) == CASE OwnRule = "key" -> u = Owner(At(x[1], x[2]).key)
                     [] OwnRule = "turn" -> u = Owner(Turn(c))
                     [] OwnRule = "everyone" -> TRUE

  (* w_hive_get_next_winset *)
  Writers    == IF run.design = "WiML" THEN Inputs ELSE UpdateThreads
  Started    == {written[t] : t \in Writers} \ (IF EmptyRule = "holds" THEN {} ELSE {Unstarted})
  HiveEnded  == IF CloseRule = "any" THEN Forever \in Started ELSE Started = {Forever}
  FirstWinSet == Least({c[1] : c \in DOMAIN windows})
  WinSetReady == /\ windows # NoWindows
                 /\ \/ HiveEnded
                    \/ HiveRule = "min" /\ Started # {} /\ Leaves(FirstWinSet, Least(Started))
                    \/ HiveRule = "in" /\ Unstarted \notin Started /\ FirstWinSet \notin Started

  (* Back-pressure: tuples of input k that some consumer has still to pass. *)
  TuplesIn(k, from) == Cardinality({i \in (from + 1)..gate[k] : At(k, i).kind = "tuple"})
  Consumers  == IF run.design = "TuML_MC" THEN UpdateThreads ELSE {OutputThread}
  ToRing     == {Bell(c) : c \in Consumers}
  Pending(k) == IF run.design \in {"MQ", "MQ_LF"}
                THEN Cardinality({n \in DOMAIN queue[k] : At(k, queue[k][n]).kind = "tuple"})
                ELSE TuplesIn(k, Least({cursor[r][k] : r \in Consumers}))
end define;

(* ---- gotos that several labels share ---- *)

macro add_more() begin                      \* the event is in: ring now, later or never; go on
  if Wait = "ring_early" then
    goto add_next;
  elsif Sleeping /\ (\/ sent = Len(Events(self)) \/ sent % Batch = 0
                     \/ At(self, sent).kind # "tuple") then
    ringing := ToRing;
    unrung := FALSE;
    goto add_check;
  else
    unrung := Sleeping;
    if sent = Len(Events(self)) then
      goto Done;
    elsif MaxPending > 0 /\ run.design # "WiML" then
      goto add_room;
    elsif run.design = "MQ" then
      goto add_lock;
    elsif run.design = "MQ_LF" then
      goto add_enqueue;
    elsif run.design = "WiML" then
      goto add_update;
    else
      goto add_insert;
    end if;
  end if;
end macro;

macro update_next() begin
  if upto = Forever then
    goto Done;
  else
    item := NoItem;
    upto := 0;
    goto update_read;
  end if;
end macro;

macro update_done() begin                   \* the position has moved: ring whom it frees
  if Sleeping /\ MaxPending > 0 /\ item # NoItem then
    goto update_space;
  elsif Sleeping then
    goto update_check;
  else
    update_next();
  end if;
end macro;

macro output_wait() begin                   \* nothing to do: after a second look, sleep
  if output_armed then
    goto output_sleep;
  else
    goto output_arm;
  end if;
end macro;

macro absorb(k, i) begin                    \* upout: let windows leave, then update
  rows := RowsOf(Leaving(Limit(At(k, i))));
  windows := IF At(k, i).kind = "tuple"
             THEN With(Without(Leaving(Limit(At(k, i)))), k, i)
             ELSE Without(Leaving(Limit(At(k, i))));
  source := IF Sleeping /\ MaxPending > 0 /\ At(k, i).kind = "tuple" THEN <<k>> ELSE NoItem;
end macro;

macro end_all() begin
  rows := IF CloseRule = "forgets" THEN <<>> ELSE RowsOf(DOMAIN windows);
  windows := NoWindows;
  ended := TRUE;
  source := NoItem;
end macro;

macro output_took() begin
  output_armed := FALSE;
  if source # NoItem then
    goto output_space;
  else
    goto output_forward;
  end if;
end macro;

macro peek() begin
  if CloseAs = "flag_first" then
    goto output_peek_shut;
  else
    goto output_peek;
  end if;
end macro;

macro peek_next() begin
  if at = InputCount - 1 then
    at := 0;
    goto output_dequeue;
  else
    at := at + 1;
    peek();
  end if;
end macro;

macro peek_again() begin                    \* an empty queue: all peeks are void
  at := 0;
  heads := NoHeads;
  if Sleeping then
    output_wait();
  else
    peek();
  end if;
end macro;

(* ---- input threads ---- *)

fair process input \in Inputs
variables sent = 0, ringing = {}, unrung = FALSE, add_armed = FALSE, early = FALSE;
begin
add_next:
  await FeedRule = "threads" \/ \A k \in 0..(self - 1) : pc[k] = "Done";
  if sent = Len(Events(self)) then
    goto Done;
  elsif Wait = "ring_early" /\ ~early then
    early := TRUE;
    ringing := ToRing;
    goto add_check;
  else
    early := FALSE;
    if MaxPending > 0 /\ run.design # "WiML" then
      goto add_room;
    elsif run.design = "MQ" then
      goto add_lock;
    elsif run.design = "MQ_LF" then
      goto add_enqueue;
    elsif run.design = "WiML" then
      goto add_update;
    else
      goto add_insert;
    end if;
  end if;

add_room:                                   \* read: how much is pending
  if At(self, sent + 1).kind # "tuple" \/ Pending(self) < MaxPending then
    add_armed := FALSE;
    if run.design = "MQ" then
      goto add_lock;
    elsif run.design = "MQ_LF" then
      goto add_enqueue;
    else
      goto add_insert;
    end if;
  elsif ~Sleeping then
    goto add_room;
  elsif unrung /\ FullRule # "sleep_first" then
    ringing := ToRing;
    unrung := FALSE;
    goto add_check;
  elsif add_armed then
    goto add_full_sleep;
  else
    goto add_full_arm;
  end if;
add_full_arm:
  full[self] := TRUE;
  add_armed := TRUE;
  if FullRule = "no_recheck" then
    goto add_full_sleep;
  else
    goto add_room;
  end if;
add_full_sleep:
  await ~full[self];
  add_armed := FALSE;
  goto add_room;

add_lock:+                                  \* MQ: strongly fair, a poller frees the lock again and again
  await lock = Free;
  lock := self;
add_enqueue:                                \* MQ, MQ_LF
  if CloseAs # "marker" /\ At(self, sent + 1).kind = "close" then
    shut[self] := TRUE;
  else
    queue[self] := Append(queue[self], sent + 1);
  end if;
  sent := sent + 1;
  if run.design = "MQ" then
    goto add_unlock;
  else
    add_more();
  end if;
add_unlock:
  lock := Free;
  add_more();

add_insert:                                 \* TuML_SC, TuML_MC
  gate[self] := gate[self] + 1;
  sent := sent + 1;
  add_more();

add_update:                                 \* WiML
  if Moves(At(self, sent + 1)) then
    written[self] := First(At(self, sent + 1).ts);
  end if;
  if At(self, sent + 1).kind = "tuple" then
    windows := With(windows, self, sent + 1);
  end if;
  sent := sent + 1;
  add_more();

add_check:                                  \* read: does this consumer wait?
  if waiting[Least(ringing)] then
    goto add_ring;
  else
    ringing := ringing \ {Least(ringing)};
    if ringing # {} then
      goto add_check;
    else
      goto add_next;
    end if;
  end if;
add_ring:
  waiting[Least(ringing)] := FALSE;
  ringing := ringing \ {Least(ringing)};
  if ringing # {} then
    goto add_check;
  else
    goto add_next;
  end if;
end process;

(* ---- update threads, TuML_MC ---- *)

fair process update \in UpdateThreads
variables item = NoItem, upto = 0, update_armed = FALSE;
begin
update_read:
  await run.design = "TuML_MC";
  with got \in {Walk(cursor[self])} do
    cursor[self] := got.cursor;
    if got.item # NoItem then
      update_armed := FALSE;
      if Owns(self, got.item, got.cursor) then
        item := got.item;
        goto update_windows;
      elsif PublishRule = "every" then
        item := got.item;
        goto update_publish;
      else
        goto update_read;
      end if;
    elsif News(got.ts) > 0 /\ First(News(got.ts)) > written[self] then
      update_armed := FALSE;
      upto := News(got.ts);
      goto update_publish;
    elsif ~Sleeping then
      goto update_read;
    elsif update_armed then
      goto update_sleep;
    else
      goto update_arm;
    end if;
  end with;
update_windows:                             \* a tuple of its own
  if Moves(At(item[1], item[2])) then
    written[self] := First(At(item[1], item[2]).ts);
  end if;
  windows := With(windows, item[1], item[2]);
  update_done();
update_publish:                             \* a tuple of another thread, or time alone
  if item = NoItem then
    written[self] := First(News(upto));
  elsif Moves(At(item[1], item[2])) then
    written[self] := First(At(item[1], item[2]).ts);
  end if;
  update_done();
update_space:                               \* read: does the tuple's input wait for room?
  if full[item[1]] then
    goto update_space_ring;
  else
    goto update_check;
  end if;
update_space_ring:
  full[item[1]] := FALSE;
update_check:                               \* read: does the output thread wait?
  if waiting[OutputThread] then
    goto update_ring;
  else
    update_next();
  end if;
update_ring:
  waiting[OutputThread] := FALSE;
  update_next();
update_arm:
  waiting[Bell(self)] := TRUE;
  update_armed := TRUE;
  if Wait = "no_rescan" then
    goto update_sleep;
  else
    goto update_read;
  end if;
update_sleep:
  await ~waiting[Bell(self)] \/ Wait = "timed";
  update_armed := FALSE;
  goto update_read;
end process;

(* ---- the output thread ---- *)

fair process output = OutputThread
variables at = 0, heads = NoHeads, rows = <<>>, source = NoItem, ended = FALSE,
          found = FALSE, saw_shut = FALSE, output_armed = FALSE;
begin
output_next:
  if run.design = "MQ" then
    goto output_lock;
  elsif run.design = "MQ_LF" then
    peek();
  elsif run.design = "TuML_SC" then
    goto output_read;
  else
    goto output_winset;
  end if;

output_lock:                                \* MQ: peek all and take the lowest, one lock
  await lock = Free;
  lock := OutputThread;
output_take:
  with h \in {QueueHeads} do
    if Ended(h) then
      end_all();
      found := TRUE;
    elsif Choice(h) # {} then
      with k \in Choice(h) do
        absorb(k, h[k]);
        queue[k] := Tail(queue[k]);
      end with;
      found := TRUE;
    end if;
  end with;
output_unlock:
  lock := Free;
  with took = found do
    found := FALSE;
    if took then
      output_took();
    elsif Sleeping then
      output_wait();
    else
      goto output_lock;
    end if;
  end with;

output_peek:                                \* MQ_LF: one queue after the other, no lock
  if queue[at] # <<>> then
    heads[at] := Head(queue[at]);
    saw_shut := FALSE;
    peek_next();
  elsif saw_shut then
    heads[at] := Len(Events(at));
    saw_shut := FALSE;
    peek_next();
  elsif CloseAs = "flag_last" then
    goto output_peek_shut;
  elsif EmptyRule = "ignored" then
    peek_next();
  else
    peek_again();
  end if;
output_peek_shut:                           \* close as a flag: read before the queue, or after
  if CloseAs = "flag_first" then
    saw_shut := shut[at];
    goto output_peek;
  elsif shut[at] then
    heads[at] := Len(Events(at));
    peek_next();
  else
    peek_again();
  end if;
output_dequeue:
  with h \in {heads} do
    heads := NoHeads;
    if Ended(h) then
      end_all();
      output_took();
    elsif Choice(h) # {} then
      with k \in Choice(h) do
        absorb(k, h[k]);
        queue[k] := Tail(queue[k]);
      end with;
      output_took();
    elsif Sleeping then
      output_wait();
    else
      peek();
    end if;
  end with;

output_read:                                \* TuML_SC
  with got \in {Walk(cursor[OutputThread])} do
    cursor[OutputThread] := got.cursor;
    if got.item # NoItem then
      absorb(got.item[1], got.item[2]);
      output_took();
    elsif got.ts = Forever then
      end_all();
      output_took();
    elsif MarkerRule = "outputs" /\ Leaving(First(got.ts)) # {} then
      rows := RowsOf(Leaving(First(got.ts)));
      windows := Without(Leaving(First(got.ts)));
      output_took();
    elsif Sleeping then
      output_wait();
    else
      goto output_read;
    end if;
  end with;

output_winset:                              \* TuML_MC, WiML
  if HiveEnded /\ (windows = NoWindows \/ CloseRule = "forgets") then
    goto Done;
  elsif WinSetReady then
    rows := RowsOf({c \in DOMAIN windows : c[1] = FirstWinSet});
    windows := Without({c \in DOMAIN windows : c[1] = FirstWinSet});
    output_took();
  elsif Sleeping then
    output_wait();
  else
    goto output_winset;
  end if;

output_space:                               \* read: does the tuple's input wait for room?
  if full[source[1]] then
    goto output_space_ring;
  else
    source := NoItem;
    goto output_forward;
  end if;
output_space_ring:
  full[source[1]] := FALSE;
  source := NoItem;

output_forward:                             \* one row of the winsets that have left
  if rows # <<>> then
    out := Append(out, Head(rows));
    rows := Tail(rows);
    goto output_forward;
  elsif ended then
    goto Done;
  else
    goto output_next;
  end if;

output_arm:
  waiting[OutputThread] := TRUE;
  output_armed := TRUE;
  if Wait = "no_rescan" then
    goto output_sleep;
  else
    goto output_next;
  end if;
output_sleep:
  await ~waiting[OutputThread] \/ Wait = "timed";
  output_armed := FALSE;
  goto output_next;
end process;

end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-0fd6f7603b6e0f9ee3dc5b35b9e18a67
VARIABLES run, queue, shut, lock, gate, cursor, windows, written, waiting, 
          full, out, pc

(* define statement *)
Events(k)   == Script(run.script)[k]
At(k, i)    == Events(k)[i]
Size        == run.window[1]
Advance     == run.window[2]


First(ts)   == IF ts = Forever THEN Forever
               ELSE IF ts < Size THEN 0 ELSE Advance * (((ts - Size) \div Advance) + 1)
Targets(ts) == {w \in {n * Advance : n \in 0..ts} : First(ts) <= w /\ w <= ts}
Moves(e)    == \/ e.kind = "close"
               \/ e.kind = "beat" /\ MarkerRule = "outputs"
               \/ e.kind = "tuple" /\ (GapRule = "moves" \/ Targets(e.ts) # {})


Identity == IF run.fn = "first_tagged" THEN <<Forever, 0, 0, 0>> ELSE 0
Earlier(a, b) == IF \/ a[1] < b[1]
                    \/ a[1] = b[1] /\ a[2] < b[2]
                    \/ a[1] = b[1] /\ a[2] = b[2] /\ a[3] < b[3] THEN a ELSE b
Add(acc, k, i) ==
  CASE run.fn = "count" -> acc + 1
    [] run.fn = "sum" -> acc + At(k, i).val
    [] run.fn = "first" -> IF acc = 0 THEN At(k, i).val ELSE acc
    [] run.fn = "first_tagged" -> Earlier(acc, <<At(k, i).ts, k, i, At(k, i).val>>)
Finish(acc) == IF run.fn = "first_tagged" THEN acc[4] ELSE acc

Limit(e)         == IF Moves(e) THEN First(e.ts) ELSE Unstarted
Leaves(w, limit) == w < limit \/ (LeaveRule = "upto" /\ w = limit)
Leaving(limit)   == {c \in DOMAIN windows : Leaves(c[1], limit)}
RowsOf(cells)    == The({[n \in 1..Len(s) |-> <<s[n][1], s[n][2], Finish(windows[s[n]])>>] :
                           s \in {Sorted(c) : c \in {cells}}})
Without(cells)   == [c \in DOMAIN windows \ cells |-> windows[c]]
With(old, k, i)  == The({[c \in DOMAIN ws \cup new |->
                            IF c \notin new THEN ws[c]
                            ELSE Add(IF c \in DOMAIN ws THEN ws[c] ELSE Identity, k, i)] :
                           ws \in {old}, new \in {Targets(At(k, i).ts) \X {At(k, i).key}}})


QueueHeads    == [k \in Inputs |-> IF queue[k] = <<>> THEN 0 ELSE Head(queue[k])]
GateHeads(c)  == [k \in Inputs |-> IF c[k] < gate[k] THEN c[k] + 1 ELSE 0]
Present(h)    == {k \in Inputs : h[k] # 0}
Lowest(h)     == IF EmptyRule = "holds" /\ Present(h) # Inputs THEN {}
                 ELSE {k \in Present(h) :
                         \A j \in Present(h) : At(k, h[k]).ts <= At(j, h[j]).ts}
Choice(h)     == IF TieRule = "none" \/ Lowest(h) = {} THEN Lowest(h) ELSE {Least(Lowest(h))}
Ended(h)      == IF CloseRule = "any" THEN \E k \in Present(h) : At(k, h[k]).kind = "close"
                 ELSE Lowest(h) # {} /\ \A k \in Lowest(h) : At(k, h[k]).kind = "close"



Reached(c) == The({t \in {0} \cup {At(k, c[k]).ts : k \in {j \in Inputs : c[j] > 0}} :
                     \A k \in Inputs : c[k] > 0 => At(k, c[k]).ts <= t})
RECURSIVE Walk(_)
WalkOn(c, h, low) ==
  IF Ended(h) THEN [cursor |-> c, item |-> NoItem, ts |-> Forever]
  ELSE IF low = {} THEN [cursor |-> c, item |-> NoItem, ts |-> Reached(c)]
  ELSE The({IF At(k, h[k]).kind = "tuple"
            THEN [cursor |-> [c EXCEPT ![k] = @ + 1], item |-> <<k, h[k]>>, ts |-> At(k, h[k]).ts]
            ELSE Walk([c EXCEPT ![k] = @ + 1]) : k \in {Least(low)}})
Walk(from) == The({The({WalkOn(c, h, low) : h \in {GateHeads(c)}, low \in {Lowest(GateHeads(c))}})
                     : c \in {from}})
MergeTs == Least({IF gate[k] = 0 THEN 0 ELSE At(k, gate[k]).ts : k \in Inputs})

News(ts) == IF ts = Forever THEN Forever
            ELSE IF MarkerRule = "skipped" \/ PublishRule = "owned" THEN 0
            ELSE IF ReachedRule = "merge_ts" THEN MergeTs ELSE ts


Turn(c)    == Cardinality(UNION {{<<k, i>> : i \in {j \in 1..c[k] : At(k, j).kind = "tuple"}}
                                   : k \in Inputs})
Owner(key) == InputCount + (key % UpdateCount)
Owns(u, x, c) == CASE OwnRule = "key" -> u = Owner(At(x[1], x[2]).key)
                   [] OwnRule = "turn" -> u = Owner(Turn(c))
                   [] OwnRule = "everyone" -> TRUE


Writers    == IF run.design = "WiML" THEN Inputs ELSE UpdateThreads
Started    == {written[t] : t \in Writers} \ (IF EmptyRule = "holds" THEN {} ELSE {Unstarted})
HiveEnded  == IF CloseRule = "any" THEN Forever \in Started ELSE Started = {Forever}
FirstWinSet == Least({c[1] : c \in DOMAIN windows})
WinSetReady == /\ windows # NoWindows
               /\ \/ HiveEnded
                  \/ HiveRule = "min" /\ Started # {} /\ Leaves(FirstWinSet, Least(Started))
                  \/ HiveRule = "in" /\ Unstarted \notin Started /\ FirstWinSet \notin Started


TuplesIn(k, from) == Cardinality({i \in (from + 1)..gate[k] : At(k, i).kind = "tuple"})
Consumers  == IF run.design = "TuML_MC" THEN UpdateThreads ELSE {OutputThread}
ToRing     == {Bell(c) : c \in Consumers}
Pending(k) == IF run.design \in {"MQ", "MQ_LF"}
              THEN Cardinality({n \in DOMAIN queue[k] : At(k, queue[k][n]).kind = "tuple"})
              ELSE TuplesIn(k, Least({cursor[r][k] : r \in Consumers}))

VARIABLES sent, ringing, unrung, add_armed, early, item, upto, update_armed, 
          at, heads, rows, source, ended, found, saw_shut, output_armed

vars == << run, queue, shut, lock, gate, cursor, windows, written, waiting, 
           full, out, pc, sent, ringing, unrung, add_armed, early, item, upto, 
           update_armed, at, heads, rows, source, ended, found, saw_shut, 
           output_armed >>

ProcSet == (Inputs) \cup (UpdateThreads) \cup {OutputThread}

Init == (* Global variables *)
        /\ run \in Runs
        /\ queue = [k \in Inputs |-> <<>>]
        /\ shut = [k \in Inputs |-> FALSE]
        /\ lock = Free
        /\ gate = [k \in Inputs |-> 0]
        /\ cursor = [r \in Readers |-> NoHeads]
        /\ windows = NoWindows
        /\ written = [t \in Inputs \cup UpdateThreads |-> Unstarted]
        /\ waiting = [c \in Readers |-> FALSE]
        /\ full = [k \in Inputs |-> FALSE]
        /\ out = <<>>
        (* Process input *)
        /\ sent = [self \in Inputs |-> 0]
        /\ ringing = [self \in Inputs |-> {}]
        /\ unrung = [self \in Inputs |-> FALSE]
        /\ add_armed = [self \in Inputs |-> FALSE]
        /\ early = [self \in Inputs |-> FALSE]
        (* Process update *)
        /\ item = [self \in UpdateThreads |-> NoItem]
        /\ upto = [self \in UpdateThreads |-> 0]
        /\ update_armed = [self \in UpdateThreads |-> FALSE]
        (* Process output *)
        /\ at = 0
        /\ heads = NoHeads
        /\ rows = <<>>
        /\ source = NoItem
        /\ ended = FALSE
        /\ found = FALSE
        /\ saw_shut = FALSE
        /\ output_armed = FALSE
        /\ pc = [self \in ProcSet |-> CASE self \in Inputs -> "add_next"
                                        [] self \in UpdateThreads -> "update_read"
                                        [] self = OutputThread -> "output_next"]

add_next(self) == /\ pc[self] = "add_next"
                  /\ FeedRule = "threads" \/ \A k \in 0..(self - 1) : pc[k] = "Done"
                  /\ IF sent[self] = Len(Events(self))
                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                             /\ UNCHANGED << ringing, early >>
                        ELSE /\ IF Wait = "ring_early" /\ ~early[self]
                                   THEN /\ early' = [early EXCEPT ![self] = TRUE]
                                        /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                        /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                   ELSE /\ early' = [early EXCEPT ![self] = FALSE]
                                        /\ IF MaxPending > 0 /\ run.design # "WiML"
                                              THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                              ELSE /\ IF run.design = "MQ"
                                                         THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                                         ELSE /\ IF run.design = "MQ_LF"
                                                                    THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                                                    ELSE /\ IF run.design = "WiML"
                                                                               THEN /\ pc' = [pc EXCEPT ![self] = "add_update"]
                                                                               ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                                        /\ UNCHANGED ringing
                  /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                  windows, written, waiting, full, out, sent, 
                                  unrung, add_armed, item, upto, update_armed, 
                                  at, heads, rows, source, ended, found, 
                                  saw_shut, output_armed >>

add_room(self) == /\ pc[self] = "add_room"
                  /\ IF At(self, sent[self] + 1).kind # "tuple" \/ Pending(self) < MaxPending
                        THEN /\ add_armed' = [add_armed EXCEPT ![self] = FALSE]
                             /\ IF run.design = "MQ"
                                   THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                   ELSE /\ IF run.design = "MQ_LF"
                                              THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                              ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                             /\ UNCHANGED << ringing, unrung >>
                        ELSE /\ IF ~Sleeping
                                   THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                        /\ UNCHANGED << ringing, unrung >>
                                   ELSE /\ IF unrung[self] /\ FullRule # "sleep_first"
                                              THEN /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                                   /\ unrung' = [unrung EXCEPT ![self] = FALSE]
                                                   /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                              ELSE /\ IF add_armed[self]
                                                         THEN /\ pc' = [pc EXCEPT ![self] = "add_full_sleep"]
                                                         ELSE /\ pc' = [pc EXCEPT ![self] = "add_full_arm"]
                                                   /\ UNCHANGED << ringing, 
                                                                   unrung >>
                             /\ UNCHANGED add_armed
                  /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                  windows, written, waiting, full, out, sent, 
                                  early, item, upto, update_armed, at, heads, 
                                  rows, source, ended, found, saw_shut, 
                                  output_armed >>

add_full_arm(self) == /\ pc[self] = "add_full_arm"
                      /\ full' = [full EXCEPT ![self] = TRUE]
                      /\ add_armed' = [add_armed EXCEPT ![self] = TRUE]
                      /\ IF FullRule = "no_recheck"
                            THEN /\ pc' = [pc EXCEPT ![self] = "add_full_sleep"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "add_room"]
                      /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                      windows, written, waiting, out, sent, 
                                      ringing, unrung, early, item, upto, 
                                      update_armed, at, heads, rows, source, 
                                      ended, found, saw_shut, output_armed >>

add_full_sleep(self) == /\ pc[self] = "add_full_sleep"
                        /\ ~full[self]
                        /\ add_armed' = [add_armed EXCEPT ![self] = FALSE]
                        /\ pc' = [pc EXCEPT ![self] = "add_room"]
                        /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                        windows, written, waiting, full, out, 
                                        sent, ringing, unrung, early, item, 
                                        upto, update_armed, at, heads, rows, 
                                        source, ended, found, saw_shut, 
                                        output_armed >>

add_lock(self) == /\ pc[self] = "add_lock"
                  /\ lock = Free
                  /\ lock' = self
                  /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                  /\ UNCHANGED << run, queue, shut, gate, cursor, windows, 
                                  written, waiting, full, out, sent, ringing, 
                                  unrung, add_armed, early, item, upto, 
                                  update_armed, at, heads, rows, source, ended, 
                                  found, saw_shut, output_armed >>

add_enqueue(self) == /\ pc[self] = "add_enqueue"
                     /\ IF CloseAs # "marker" /\ At(self, sent[self] + 1).kind = "close"
                           THEN /\ shut' = [shut EXCEPT ![self] = TRUE]
                                /\ queue' = queue
                           ELSE /\ queue' = [queue EXCEPT ![self] = Append(queue[self], sent[self] + 1)]
                                /\ shut' = shut
                     /\ sent' = [sent EXCEPT ![self] = sent[self] + 1]
                     /\ IF run.design = "MQ"
                           THEN /\ pc' = [pc EXCEPT ![self] = "add_unlock"]
                                /\ UNCHANGED << ringing, unrung >>
                           ELSE /\ IF Wait = "ring_early"
                                      THEN /\ pc' = [pc EXCEPT ![self] = "add_next"]
                                           /\ UNCHANGED << ringing, unrung >>
                                      ELSE /\ IF Sleeping /\ (\/ sent'[self] = Len(Events(self)) \/ sent'[self] % Batch = 0
                                                              \/ At(self, sent'[self]).kind # "tuple")
                                                 THEN /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                                      /\ unrung' = [unrung EXCEPT ![self] = FALSE]
                                                      /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                                 ELSE /\ unrung' = [unrung EXCEPT ![self] = Sleeping]
                                                      /\ IF sent'[self] = Len(Events(self))
                                                            THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                            ELSE /\ IF MaxPending > 0 /\ run.design # "WiML"
                                                                       THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                                                       ELSE /\ IF run.design = "MQ"
                                                                                  THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                                                                  ELSE /\ IF run.design = "MQ_LF"
                                                                                             THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                                                                             ELSE /\ IF run.design = "WiML"
                                                                                                        THEN /\ pc' = [pc EXCEPT ![self] = "add_update"]
                                                                                                        ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                                                      /\ UNCHANGED ringing
                     /\ UNCHANGED << run, lock, gate, cursor, windows, written, 
                                     waiting, full, out, add_armed, early, 
                                     item, upto, update_armed, at, heads, rows, 
                                     source, ended, found, saw_shut, 
                                     output_armed >>

add_unlock(self) == /\ pc[self] = "add_unlock"
                    /\ lock' = Free
                    /\ IF Wait = "ring_early"
                          THEN /\ pc' = [pc EXCEPT ![self] = "add_next"]
                               /\ UNCHANGED << ringing, unrung >>
                          ELSE /\ IF Sleeping /\ (\/ sent[self] = Len(Events(self)) \/ sent[self] % Batch = 0
                                                  \/ At(self, sent[self]).kind # "tuple")
                                     THEN /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                          /\ unrung' = [unrung EXCEPT ![self] = FALSE]
                                          /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                     ELSE /\ unrung' = [unrung EXCEPT ![self] = Sleeping]
                                          /\ IF sent[self] = Len(Events(self))
                                                THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                ELSE /\ IF MaxPending > 0 /\ run.design # "WiML"
                                                           THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                                           ELSE /\ IF run.design = "MQ"
                                                                      THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                                                      ELSE /\ IF run.design = "MQ_LF"
                                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                                                                 ELSE /\ IF run.design = "WiML"
                                                                                            THEN /\ pc' = [pc EXCEPT ![self] = "add_update"]
                                                                                            ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                                          /\ UNCHANGED ringing
                    /\ UNCHANGED << run, queue, shut, gate, cursor, windows, 
                                    written, waiting, full, out, sent, 
                                    add_armed, early, item, upto, update_armed, 
                                    at, heads, rows, source, ended, found, 
                                    saw_shut, output_armed >>

add_insert(self) == /\ pc[self] = "add_insert"
                    /\ gate' = [gate EXCEPT ![self] = gate[self] + 1]
                    /\ sent' = [sent EXCEPT ![self] = sent[self] + 1]
                    /\ IF Wait = "ring_early"
                          THEN /\ pc' = [pc EXCEPT ![self] = "add_next"]
                               /\ UNCHANGED << ringing, unrung >>
                          ELSE /\ IF Sleeping /\ (\/ sent'[self] = Len(Events(self)) \/ sent'[self] % Batch = 0
                                                  \/ At(self, sent'[self]).kind # "tuple")
                                     THEN /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                          /\ unrung' = [unrung EXCEPT ![self] = FALSE]
                                          /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                     ELSE /\ unrung' = [unrung EXCEPT ![self] = Sleeping]
                                          /\ IF sent'[self] = Len(Events(self))
                                                THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                ELSE /\ IF MaxPending > 0 /\ run.design # "WiML"
                                                           THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                                           ELSE /\ IF run.design = "MQ"
                                                                      THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                                                      ELSE /\ IF run.design = "MQ_LF"
                                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                                                                 ELSE /\ IF run.design = "WiML"
                                                                                            THEN /\ pc' = [pc EXCEPT ![self] = "add_update"]
                                                                                            ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                                          /\ UNCHANGED ringing
                    /\ UNCHANGED << run, queue, shut, lock, cursor, windows, 
                                    written, waiting, full, out, add_armed, 
                                    early, item, upto, update_armed, at, heads, 
                                    rows, source, ended, found, saw_shut, 
                                    output_armed >>

add_update(self) == /\ pc[self] = "add_update"
                    /\ IF Moves(At(self, sent[self] + 1))
                          THEN /\ written' = [written EXCEPT ![self] = First(At(self, sent[self] + 1).ts)]
                          ELSE /\ TRUE
                               /\ UNCHANGED written
                    /\ IF At(self, sent[self] + 1).kind = "tuple"
                          THEN /\ windows' = With(windows, self, sent[self] + 1)
                          ELSE /\ TRUE
                               /\ UNCHANGED windows
                    /\ sent' = [sent EXCEPT ![self] = sent[self] + 1]
                    /\ IF Wait = "ring_early"
                          THEN /\ pc' = [pc EXCEPT ![self] = "add_next"]
                               /\ UNCHANGED << ringing, unrung >>
                          ELSE /\ IF Sleeping /\ (\/ sent'[self] = Len(Events(self)) \/ sent'[self] % Batch = 0
                                                  \/ At(self, sent'[self]).kind # "tuple")
                                     THEN /\ ringing' = [ringing EXCEPT ![self] = ToRing]
                                          /\ unrung' = [unrung EXCEPT ![self] = FALSE]
                                          /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                     ELSE /\ unrung' = [unrung EXCEPT ![self] = Sleeping]
                                          /\ IF sent'[self] = Len(Events(self))
                                                THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                ELSE /\ IF MaxPending > 0 /\ run.design # "WiML"
                                                           THEN /\ pc' = [pc EXCEPT ![self] = "add_room"]
                                                           ELSE /\ IF run.design = "MQ"
                                                                      THEN /\ pc' = [pc EXCEPT ![self] = "add_lock"]
                                                                      ELSE /\ IF run.design = "MQ_LF"
                                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "add_enqueue"]
                                                                                 ELSE /\ IF run.design = "WiML"
                                                                                            THEN /\ pc' = [pc EXCEPT ![self] = "add_update"]
                                                                                            ELSE /\ pc' = [pc EXCEPT ![self] = "add_insert"]
                                          /\ UNCHANGED ringing
                    /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                    waiting, full, out, add_armed, early, item, 
                                    upto, update_armed, at, heads, rows, 
                                    source, ended, found, saw_shut, 
                                    output_armed >>

add_check(self) == /\ pc[self] = "add_check"
                   /\ IF waiting[Least(ringing[self])]
                         THEN /\ pc' = [pc EXCEPT ![self] = "add_ring"]
                              /\ UNCHANGED ringing
                         ELSE /\ ringing' = [ringing EXCEPT ![self] = ringing[self] \ {Least(ringing[self])}]
                              /\ IF ringing'[self] # {}
                                    THEN /\ pc' = [pc EXCEPT ![self] = "add_check"]
                                    ELSE /\ pc' = [pc EXCEPT ![self] = "add_next"]
                   /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                   windows, written, waiting, full, out, sent, 
                                   unrung, add_armed, early, item, upto, 
                                   update_armed, at, heads, rows, source, 
                                   ended, found, saw_shut, output_armed >>

add_ring(self) == /\ pc[self] = "add_ring"
                  /\ waiting' = [waiting EXCEPT ![Least(ringing[self])] = FALSE]
                  /\ ringing' = [ringing EXCEPT ![self] = ringing[self] \ {Least(ringing[self])}]
                  /\ IF ringing'[self] # {}
                        THEN /\ pc' = [pc EXCEPT ![self] = "add_check"]
                        ELSE /\ pc' = [pc EXCEPT ![self] = "add_next"]
                  /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                  windows, written, full, out, sent, unrung, 
                                  add_armed, early, item, upto, update_armed, 
                                  at, heads, rows, source, ended, found, 
                                  saw_shut, output_armed >>

input(self) == add_next(self) \/ add_room(self) \/ add_full_arm(self)
                  \/ add_full_sleep(self) \/ add_lock(self)
                  \/ add_enqueue(self) \/ add_unlock(self)
                  \/ add_insert(self) \/ add_update(self)
                  \/ add_check(self) \/ add_ring(self)

update_read(self) == /\ pc[self] = "update_read"
                     /\ run.design = "TuML_MC"
                     /\ \E got \in {Walk(cursor[self])}:
                          /\ cursor' = [cursor EXCEPT ![self] = got.cursor]
                          /\ IF got.item # NoItem
                                THEN /\ update_armed' = [update_armed EXCEPT ![self] = FALSE]
                                     /\ IF Owns(self, got.item, got.cursor)
                                           THEN /\ item' = [item EXCEPT ![self] = got.item]
                                                /\ pc' = [pc EXCEPT ![self] = "update_windows"]
                                           ELSE /\ IF PublishRule = "every"
                                                      THEN /\ item' = [item EXCEPT ![self] = got.item]
                                                           /\ pc' = [pc EXCEPT ![self] = "update_publish"]
                                                      ELSE /\ pc' = [pc EXCEPT ![self] = "update_read"]
                                                           /\ item' = item
                                     /\ upto' = upto
                                ELSE /\ IF News(got.ts) > 0 /\ First(News(got.ts)) > written[self]
                                           THEN /\ update_armed' = [update_armed EXCEPT ![self] = FALSE]
                                                /\ upto' = [upto EXCEPT ![self] = News(got.ts)]
                                                /\ pc' = [pc EXCEPT ![self] = "update_publish"]
                                           ELSE /\ IF ~Sleeping
                                                      THEN /\ pc' = [pc EXCEPT ![self] = "update_read"]
                                                      ELSE /\ IF update_armed[self]
                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "update_sleep"]
                                                                 ELSE /\ pc' = [pc EXCEPT ![self] = "update_arm"]
                                                /\ UNCHANGED << upto, 
                                                                update_armed >>
                                     /\ item' = item
                     /\ UNCHANGED << run, queue, shut, lock, gate, windows, 
                                     written, waiting, full, out, sent, 
                                     ringing, unrung, add_armed, early, at, 
                                     heads, rows, source, ended, found, 
                                     saw_shut, output_armed >>

update_windows(self) == /\ pc[self] = "update_windows"
                        /\ IF Moves(At(item[self][1], item[self][2]))
                              THEN /\ written' = [written EXCEPT ![self] = First(At(item[self][1], item[self][2]).ts)]
                              ELSE /\ TRUE
                                   /\ UNCHANGED written
                        /\ windows' = With(windows, item[self][1], item[self][2])
                        /\ IF Sleeping /\ MaxPending > 0 /\ item[self] # NoItem
                              THEN /\ pc' = [pc EXCEPT ![self] = "update_space"]
                                   /\ UNCHANGED << item, upto >>
                              ELSE /\ IF Sleeping
                                         THEN /\ pc' = [pc EXCEPT ![self] = "update_check"]
                                              /\ UNCHANGED << item, upto >>
                                         ELSE /\ IF upto[self] = Forever
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                         /\ UNCHANGED << item, 
                                                                         upto >>
                                                    ELSE /\ item' = [item EXCEPT ![self] = NoItem]
                                                         /\ upto' = [upto EXCEPT ![self] = 0]
                                                         /\ pc' = [pc EXCEPT ![self] = "update_read"]
                        /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                        waiting, full, out, sent, ringing, 
                                        unrung, add_armed, early, update_armed, 
                                        at, heads, rows, source, ended, found, 
                                        saw_shut, output_armed >>

update_publish(self) == /\ pc[self] = "update_publish"
                        /\ IF item[self] = NoItem
                              THEN /\ written' = [written EXCEPT ![self] = First(News(upto[self]))]
                              ELSE /\ IF Moves(At(item[self][1], item[self][2]))
                                         THEN /\ written' = [written EXCEPT ![self] = First(At(item[self][1], item[self][2]).ts)]
                                         ELSE /\ TRUE
                                              /\ UNCHANGED written
                        /\ IF Sleeping /\ MaxPending > 0 /\ item[self] # NoItem
                              THEN /\ pc' = [pc EXCEPT ![self] = "update_space"]
                                   /\ UNCHANGED << item, upto >>
                              ELSE /\ IF Sleeping
                                         THEN /\ pc' = [pc EXCEPT ![self] = "update_check"]
                                              /\ UNCHANGED << item, upto >>
                                         ELSE /\ IF upto[self] = Forever
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                         /\ UNCHANGED << item, 
                                                                         upto >>
                                                    ELSE /\ item' = [item EXCEPT ![self] = NoItem]
                                                         /\ upto' = [upto EXCEPT ![self] = 0]
                                                         /\ pc' = [pc EXCEPT ![self] = "update_read"]
                        /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                        windows, waiting, full, out, sent, 
                                        ringing, unrung, add_armed, early, 
                                        update_armed, at, heads, rows, source, 
                                        ended, found, saw_shut, output_armed >>

update_space(self) == /\ pc[self] = "update_space"
                      /\ IF full[item[self][1]]
                            THEN /\ pc' = [pc EXCEPT ![self] = "update_space_ring"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "update_check"]
                      /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                      windows, written, waiting, full, out, 
                                      sent, ringing, unrung, add_armed, early, 
                                      item, upto, update_armed, at, heads, 
                                      rows, source, ended, found, saw_shut, 
                                      output_armed >>

update_space_ring(self) == /\ pc[self] = "update_space_ring"
                           /\ full' = [full EXCEPT ![item[self][1]] = FALSE]
                           /\ pc' = [pc EXCEPT ![self] = "update_check"]
                           /\ UNCHANGED << run, queue, shut, lock, gate, 
                                           cursor, windows, written, waiting, 
                                           out, sent, ringing, unrung, 
                                           add_armed, early, item, upto, 
                                           update_armed, at, heads, rows, 
                                           source, ended, found, saw_shut, 
                                           output_armed >>

update_check(self) == /\ pc[self] = "update_check"
                      /\ IF waiting[OutputThread]
                            THEN /\ pc' = [pc EXCEPT ![self] = "update_ring"]
                                 /\ UNCHANGED << item, upto >>
                            ELSE /\ IF upto[self] = Forever
                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                            /\ UNCHANGED << item, upto >>
                                       ELSE /\ item' = [item EXCEPT ![self] = NoItem]
                                            /\ upto' = [upto EXCEPT ![self] = 0]
                                            /\ pc' = [pc EXCEPT ![self] = "update_read"]
                      /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                      windows, written, waiting, full, out, 
                                      sent, ringing, unrung, add_armed, early, 
                                      update_armed, at, heads, rows, source, 
                                      ended, found, saw_shut, output_armed >>

update_ring(self) == /\ pc[self] = "update_ring"
                     /\ waiting' = [waiting EXCEPT ![OutputThread] = FALSE]
                     /\ IF upto[self] = Forever
                           THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                /\ UNCHANGED << item, upto >>
                           ELSE /\ item' = [item EXCEPT ![self] = NoItem]
                                /\ upto' = [upto EXCEPT ![self] = 0]
                                /\ pc' = [pc EXCEPT ![self] = "update_read"]
                     /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                     windows, written, full, out, sent, 
                                     ringing, unrung, add_armed, early, 
                                     update_armed, at, heads, rows, source, 
                                     ended, found, saw_shut, output_armed >>

update_arm(self) == /\ pc[self] = "update_arm"
                    /\ waiting' = [waiting EXCEPT ![Bell(self)] = TRUE]
                    /\ update_armed' = [update_armed EXCEPT ![self] = TRUE]
                    /\ IF Wait = "no_rescan"
                          THEN /\ pc' = [pc EXCEPT ![self] = "update_sleep"]
                          ELSE /\ pc' = [pc EXCEPT ![self] = "update_read"]
                    /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                    windows, written, full, out, sent, ringing, 
                                    unrung, add_armed, early, item, upto, at, 
                                    heads, rows, source, ended, found, 
                                    saw_shut, output_armed >>

update_sleep(self) == /\ pc[self] = "update_sleep"
                      /\ ~waiting[Bell(self)] \/ Wait = "timed"
                      /\ update_armed' = [update_armed EXCEPT ![self] = FALSE]
                      /\ pc' = [pc EXCEPT ![self] = "update_read"]
                      /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                      windows, written, waiting, full, out, 
                                      sent, ringing, unrung, add_armed, early, 
                                      item, upto, at, heads, rows, source, 
                                      ended, found, saw_shut, output_armed >>

update(self) == update_read(self) \/ update_windows(self)
                   \/ update_publish(self) \/ update_space(self)
                   \/ update_space_ring(self) \/ update_check(self)
                   \/ update_ring(self) \/ update_arm(self)
                   \/ update_sleep(self)

output_next == /\ pc[OutputThread] = "output_next"
               /\ IF run.design = "MQ"
                     THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_lock"]
                     ELSE /\ IF run.design = "MQ_LF"
                                THEN /\ IF CloseAs = "flag_first"
                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                ELSE /\ IF run.design = "TuML_SC"
                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_read"]
                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_winset"]
               /\ UNCHANGED << run, queue, shut, lock, gate, cursor, windows, 
                               written, waiting, full, out, sent, ringing, 
                               unrung, add_armed, early, item, upto, 
                               update_armed, at, heads, rows, source, ended, 
                               found, saw_shut, output_armed >>

output_lock == /\ pc[OutputThread] = "output_lock"
               /\ lock = Free
               /\ lock' = OutputThread
               /\ pc' = [pc EXCEPT ![OutputThread] = "output_take"]
               /\ UNCHANGED << run, queue, shut, gate, cursor, windows, 
                               written, waiting, full, out, sent, ringing, 
                               unrung, add_armed, early, item, upto, 
                               update_armed, at, heads, rows, source, ended, 
                               found, saw_shut, output_armed >>

output_take == /\ pc[OutputThread] = "output_take"
               /\ \E h \in {QueueHeads}:
                    IF Ended(h)
                       THEN /\ rows' = (IF CloseRule = "forgets" THEN <<>> ELSE RowsOf(DOMAIN windows))
                            /\ windows' = NoWindows
                            /\ ended' = TRUE
                            /\ source' = NoItem
                            /\ found' = TRUE
                            /\ queue' = queue
                       ELSE /\ IF Choice(h) # {}
                                  THEN /\ \E k \in Choice(h):
                                            /\ rows' = RowsOf(Leaving(Limit(At(k, (h[k])))))
                                            /\ windows' = (IF At(k, (h[k])).kind = "tuple"
                                                           THEN With(Without(Leaving(Limit(At(k, (h[k]))))), k, (h[k]))
                                                           ELSE Without(Leaving(Limit(At(k, (h[k]))))))
                                            /\ source' = (IF Sleeping /\ MaxPending > 0 /\ At(k, (h[k])).kind = "tuple" THEN <<k>> ELSE NoItem)
                                            /\ queue' = [queue EXCEPT ![k] = Tail(queue[k])]
                                       /\ found' = TRUE
                                  ELSE /\ TRUE
                                       /\ UNCHANGED << queue, windows, rows, 
                                                       source, found >>
                            /\ ended' = ended
               /\ pc' = [pc EXCEPT ![OutputThread] = "output_unlock"]
               /\ UNCHANGED << run, shut, lock, gate, cursor, written, waiting, 
                               full, out, sent, ringing, unrung, add_armed, 
                               early, item, upto, update_armed, at, heads, 
                               saw_shut, output_armed >>

output_unlock == /\ pc[OutputThread] = "output_unlock"
                 /\ lock' = Free
                 /\ LET took == found IN
                      /\ found' = FALSE
                      /\ IF took
                            THEN /\ output_armed' = FALSE
                                 /\ IF source # NoItem
                                       THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                       ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                            ELSE /\ IF Sleeping
                                       THEN /\ IF output_armed
                                                  THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                  ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                       ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_lock"]
                                 /\ UNCHANGED output_armed
                 /\ UNCHANGED << run, queue, shut, gate, cursor, windows, 
                                 written, waiting, full, out, sent, ringing, 
                                 unrung, add_armed, early, item, upto, 
                                 update_armed, at, heads, rows, source, ended, 
                                 saw_shut >>

output_peek == /\ pc[OutputThread] = "output_peek"
               /\ IF queue[at] # <<>>
                     THEN /\ heads' = [heads EXCEPT ![at] = Head(queue[at])]
                          /\ saw_shut' = FALSE
                          /\ IF at = InputCount - 1
                                THEN /\ at' = 0
                                     /\ pc' = [pc EXCEPT ![OutputThread] = "output_dequeue"]
                                ELSE /\ at' = at + 1
                                     /\ IF CloseAs = "flag_first"
                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                     ELSE /\ IF saw_shut
                                THEN /\ heads' = [heads EXCEPT ![at] = Len(Events(at))]
                                     /\ saw_shut' = FALSE
                                     /\ IF at = InputCount - 1
                                           THEN /\ at' = 0
                                                /\ pc' = [pc EXCEPT ![OutputThread] = "output_dequeue"]
                                           ELSE /\ at' = at + 1
                                                /\ IF CloseAs = "flag_first"
                                                      THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                      ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                ELSE /\ IF CloseAs = "flag_last"
                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                /\ UNCHANGED << at, heads >>
                                           ELSE /\ IF EmptyRule = "ignored"
                                                      THEN /\ IF at = InputCount - 1
                                                                 THEN /\ at' = 0
                                                                      /\ pc' = [pc EXCEPT ![OutputThread] = "output_dequeue"]
                                                                 ELSE /\ at' = at + 1
                                                                      /\ IF CloseAs = "flag_first"
                                                                            THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                                           /\ heads' = heads
                                                      ELSE /\ at' = 0
                                                           /\ heads' = NoHeads
                                                           /\ IF Sleeping
                                                                 THEN /\ IF output_armed
                                                                            THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                                                 ELSE /\ IF CloseAs = "flag_first"
                                                                            THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                     /\ UNCHANGED saw_shut
               /\ UNCHANGED << run, queue, shut, lock, gate, cursor, windows, 
                               written, waiting, full, out, sent, ringing, 
                               unrung, add_armed, early, item, upto, 
                               update_armed, rows, source, ended, found, 
                               output_armed >>

output_peek_shut == /\ pc[OutputThread] = "output_peek_shut"
                    /\ IF CloseAs = "flag_first"
                          THEN /\ saw_shut' = shut[at]
                               /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                               /\ UNCHANGED << at, heads >>
                          ELSE /\ IF shut[at]
                                     THEN /\ heads' = [heads EXCEPT ![at] = Len(Events(at))]
                                          /\ IF at = InputCount - 1
                                                THEN /\ at' = 0
                                                     /\ pc' = [pc EXCEPT ![OutputThread] = "output_dequeue"]
                                                ELSE /\ at' = at + 1
                                                     /\ IF CloseAs = "flag_first"
                                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                     ELSE /\ at' = 0
                                          /\ heads' = NoHeads
                                          /\ IF Sleeping
                                                THEN /\ IF output_armed
                                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                                ELSE /\ IF CloseAs = "flag_first"
                                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                               /\ UNCHANGED saw_shut
                    /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                    windows, written, waiting, full, out, sent, 
                                    ringing, unrung, add_armed, early, item, 
                                    upto, update_armed, rows, source, ended, 
                                    found, output_armed >>

output_dequeue == /\ pc[OutputThread] = "output_dequeue"
                  /\ \E h \in {heads}:
                       /\ heads' = NoHeads
                       /\ IF Ended(h)
                             THEN /\ rows' = (IF CloseRule = "forgets" THEN <<>> ELSE RowsOf(DOMAIN windows))
                                  /\ windows' = NoWindows
                                  /\ ended' = TRUE
                                  /\ source' = NoItem
                                  /\ output_armed' = FALSE
                                  /\ IF source' # NoItem
                                        THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                        ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                                  /\ queue' = queue
                             ELSE /\ IF Choice(h) # {}
                                        THEN /\ \E k \in Choice(h):
                                                  /\ rows' = RowsOf(Leaving(Limit(At(k, (h[k])))))
                                                  /\ windows' = (IF At(k, (h[k])).kind = "tuple"
                                                                 THEN With(Without(Leaving(Limit(At(k, (h[k]))))), k, (h[k]))
                                                                 ELSE Without(Leaving(Limit(At(k, (h[k]))))))
                                                  /\ source' = (IF Sleeping /\ MaxPending > 0 /\ At(k, (h[k])).kind = "tuple" THEN <<k>> ELSE NoItem)
                                                  /\ queue' = [queue EXCEPT ![k] = Tail(queue[k])]
                                             /\ output_armed' = FALSE
                                             /\ IF source' # NoItem
                                                   THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                                   ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                                        ELSE /\ IF Sleeping
                                                   THEN /\ IF output_armed
                                                              THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                              ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                                   ELSE /\ IF CloseAs = "flag_first"
                                                              THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek_shut"]
                                                              ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_peek"]
                                             /\ UNCHANGED << queue, windows, 
                                                             rows, source, 
                                                             output_armed >>
                                  /\ ended' = ended
                  /\ UNCHANGED << run, shut, lock, gate, cursor, written, 
                                  waiting, full, out, sent, ringing, unrung, 
                                  add_armed, early, item, upto, update_armed, 
                                  at, found, saw_shut >>

output_read == /\ pc[OutputThread] = "output_read"
               /\ \E got \in {Walk(cursor[OutputThread])}:
                    /\ cursor' = [cursor EXCEPT ![OutputThread] = got.cursor]
                    /\ IF got.item # NoItem
                          THEN /\ rows' = RowsOf(Leaving(Limit(At((got.item[1]), (got.item[2])))))
                               /\ windows' = (IF At((got.item[1]), (got.item[2])).kind = "tuple"
                                              THEN With(Without(Leaving(Limit(At((got.item[1]), (got.item[2]))))), (got.item[1]), (got.item[2]))
                                              ELSE Without(Leaving(Limit(At((got.item[1]), (got.item[2]))))))
                               /\ source' = (IF Sleeping /\ MaxPending > 0 /\ At((got.item[1]), (got.item[2])).kind = "tuple" THEN <<(got.item[1])>> ELSE NoItem)
                               /\ output_armed' = FALSE
                               /\ IF source' # NoItem
                                     THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                     ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                               /\ ended' = ended
                          ELSE /\ IF got.ts = Forever
                                     THEN /\ rows' = (IF CloseRule = "forgets" THEN <<>> ELSE RowsOf(DOMAIN windows))
                                          /\ windows' = NoWindows
                                          /\ ended' = TRUE
                                          /\ source' = NoItem
                                          /\ output_armed' = FALSE
                                          /\ IF source' # NoItem
                                                THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                                ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                                     ELSE /\ IF MarkerRule = "outputs" /\ Leaving(First(got.ts)) # {}
                                                THEN /\ rows' = RowsOf(Leaving(First(got.ts)))
                                                     /\ windows' = Without(Leaving(First(got.ts)))
                                                     /\ output_armed' = FALSE
                                                     /\ IF source # NoItem
                                                           THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                                                ELSE /\ IF Sleeping
                                                           THEN /\ IF output_armed
                                                                      THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                                      ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                                           ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_read"]
                                                     /\ UNCHANGED << windows, 
                                                                     rows, 
                                                                     output_armed >>
                                          /\ UNCHANGED << source, ended >>
               /\ UNCHANGED << run, queue, shut, lock, gate, written, waiting, 
                               full, out, sent, ringing, unrung, add_armed, 
                               early, item, upto, update_armed, at, heads, 
                               found, saw_shut >>

output_winset == /\ pc[OutputThread] = "output_winset"
                 /\ IF HiveEnded /\ (windows = NoWindows \/ CloseRule = "forgets")
                       THEN /\ pc' = [pc EXCEPT ![OutputThread] = "Done"]
                            /\ UNCHANGED << windows, rows, output_armed >>
                       ELSE /\ IF WinSetReady
                                  THEN /\ rows' = RowsOf({c \in DOMAIN windows : c[1] = FirstWinSet})
                                       /\ windows' = Without({c \in DOMAIN windows : c[1] = FirstWinSet})
                                       /\ output_armed' = FALSE
                                       /\ IF source # NoItem
                                             THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space"]
                                             ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                                  ELSE /\ IF Sleeping
                                             THEN /\ IF output_armed
                                                        THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                                                        ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_arm"]
                                             ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_winset"]
                                       /\ UNCHANGED << windows, rows, 
                                                       output_armed >>
                 /\ UNCHANGED << run, queue, shut, lock, gate, cursor, written, 
                                 waiting, full, out, sent, ringing, unrung, 
                                 add_armed, early, item, upto, update_armed, 
                                 at, heads, source, ended, found, saw_shut >>

output_space == /\ pc[OutputThread] = "output_space"
                /\ IF full[source[1]]
                      THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_space_ring"]
                           /\ UNCHANGED source
                      ELSE /\ source' = NoItem
                           /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                /\ UNCHANGED << run, queue, shut, lock, gate, cursor, windows, 
                                written, waiting, full, out, sent, ringing, 
                                unrung, add_armed, early, item, upto, 
                                update_armed, at, heads, rows, ended, found, 
                                saw_shut, output_armed >>

output_space_ring == /\ pc[OutputThread] = "output_space_ring"
                     /\ full' = [full EXCEPT ![source[1]] = FALSE]
                     /\ source' = NoItem
                     /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                     /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                     windows, written, waiting, out, sent, 
                                     ringing, unrung, add_armed, early, item, 
                                     upto, update_armed, at, heads, rows, 
                                     ended, found, saw_shut, output_armed >>

output_forward == /\ pc[OutputThread] = "output_forward"
                  /\ IF rows # <<>>
                        THEN /\ out' = Append(out, Head(rows))
                             /\ rows' = Tail(rows)
                             /\ pc' = [pc EXCEPT ![OutputThread] = "output_forward"]
                        ELSE /\ IF ended
                                   THEN /\ pc' = [pc EXCEPT ![OutputThread] = "Done"]
                                   ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_next"]
                             /\ UNCHANGED << out, rows >>
                  /\ UNCHANGED << run, queue, shut, lock, gate, cursor, 
                                  windows, written, waiting, full, sent, 
                                  ringing, unrung, add_armed, early, item, 
                                  upto, update_armed, at, heads, source, ended, 
                                  found, saw_shut, output_armed >>

output_arm == /\ pc[OutputThread] = "output_arm"
              /\ waiting' = [waiting EXCEPT ![OutputThread] = TRUE]
              /\ output_armed' = TRUE
              /\ IF Wait = "no_rescan"
                    THEN /\ pc' = [pc EXCEPT ![OutputThread] = "output_sleep"]
                    ELSE /\ pc' = [pc EXCEPT ![OutputThread] = "output_next"]
              /\ UNCHANGED << run, queue, shut, lock, gate, cursor, windows, 
                              written, full, out, sent, ringing, unrung, 
                              add_armed, early, item, upto, update_armed, at, 
                              heads, rows, source, ended, found, saw_shut >>

output_sleep == /\ pc[OutputThread] = "output_sleep"
                /\ ~waiting[OutputThread] \/ Wait = "timed"
                /\ output_armed' = FALSE
                /\ pc' = [pc EXCEPT ![OutputThread] = "output_next"]
                /\ UNCHANGED << run, queue, shut, lock, gate, cursor, windows, 
                                written, waiting, full, out, sent, ringing, 
                                unrung, add_armed, early, item, upto, 
                                update_armed, at, heads, rows, source, ended, 
                                found, saw_shut >>

output == output_next \/ output_lock \/ output_take \/ output_unlock
             \/ output_peek \/ output_peek_shut \/ output_dequeue
             \/ output_read \/ output_winset \/ output_space
             \/ output_space_ring \/ output_forward \/ output_arm
             \/ output_sleep

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == output
           \/ (\E self \in Inputs: input(self))
           \/ (\E self \in UpdateThreads: update(self))
           \/ Terminating

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Inputs : WF_vars(input(self)) /\ SF_vars(add_lock(self))
        /\ \A self \in UpdateThreads : WF_vars(update(self))
        /\ WF_vars(output)

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-f4a46136fca7e2a635ee68d0769215b1
================================================================================
