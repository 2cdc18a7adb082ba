------------------------------- MODULE WinSet --------------------------------
(***************************************************************************)
(* The winset (section 5.2 of the paper): the windows of one window start  *)
(* by key, in a lock-free hash table after Michael (2002).  Each bucket is *)
(* a list in the order of keys.  Windows are never removed one by one, the *)
(* winset goes as a whole; so Michael's marks and tags are not needed, and *)
(* a node once found stays a good place to search on from.  It implements  *)
(* WindowMap; the theorem is WinSetRefinesWindowMap.                       *)
(*                                                                         *)
(* Who calls what.  Any number of threads call find_or_insert and find,    *)
(* together.  Walking over all windows (win_set_output) is for the         *)
(* reader to whom the winset was delivered, when no thread adds any more.  *)
(*                                                                         *)
(*    bucket 0 -> 2 -> 4 -> 8 -> end      each node carries key and window *)
(*    bucket 1 -> 1 -> 7 -> end                                            *)
(*                                                                         *)
(* Invariants                                                              *)
(*   I1  each bucket is strictly ascending and holds its own keys only:    *)
(*       one node per key                                                  *)
(*   I2  a node that is linked stays linked                                *)
(*   I3  a node's key and next are set before it is linked                 *)
(* Guarantees                                                              *)
(*   G1  linearizable to WindowMap.  An insert takes effect with its       *)
(*       successful CAS; a call that finds its key, when it reads the      *)
(*       pointer to it; a find without result, when it reads a pointer     *)
(*       that leads past the key                                           *)
(*   G2  all callers are told the same window for a key                    *)
(* Progress: lock-free.  A call repeats only because another insert in     *)
(*   its bucket succeeded; find never repeats.                             *)
(*                                                                         *)
(* One label per access to shared memory; which C function it stands for   *)
(* is in README.md.                                                        *)
(* The key and next of a new node are private until it is linked.          *)
(***************************************************************************)
\* Seeded labels: insert_front, insert_next
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Script,      \* Script[t]: the calls of thread t, in order: [kind |-> "insert" or "find", key |-> a number]
  Buckets,     \* how many
  \* The rules.  The first value of each is ours, "from_head" is Michael's; the others must fail.
  RetryRule,   \* after a CAS that failed: search on "from_prev", "from_head"; "no_search"; "keep_own"
  LinkRule,    \* "cas", "store", "next_late", "locked"
  OrderRule    \* "sorted", "front"

ASSUME /\ RetryRule \in {"from_prev", "from_head", "no_search", "keep_own"}
       /\ LinkRule \in {"cas", "locked", "next_late", "store"}
       /\ OrderRule \in {"sorted", "front"}

Threads == DOMAIN Script

\* Nodes: <<thread, call>> of the insert that allocated it; <<0, b>> is the head of bucket b.
BucketOf(key) == <<0, 1 + (key % Buckets)>>
Null == <<0, 0>>                                 \* the end of a list; no node
Heads == {<<0, b>> : b \in 1 .. Buckets}
Offered == UNION {{<<t, i>> : i \in {n \in DOMAIN Script[t] : Script[t][n].kind = "insert"}} : t \in Threads}
Nodes == Heads \cup Offered
KeyOf == [n \in Nodes |-> IF n \in Heads THEN -1 ELSE Script[n[1]][n[2]].key]

Wanted == [t \in Threads |-> [i \in DOMAIN Script[t] |-> Script[t][i].key]]
Inserts == [t \in Threads |-> [i \in DOMAIN Script[t] |-> Script[t][i].kind = "insert"]]

(* --algorithm WinSet
variables
  next = [n \in Nodes |-> Null];
  lock = 0;
  answers = [t \in Threads |-> << >>];   \* what each thread has been told, as <<key, node>>

macro end_call() begin
  lost := FALSE; nxt := Null;
  if turn = Len(Script[self]) then
    prev := Null; goto Done;
  else
    prev := BucketOf(Wanted[self][turn + 1]); turn := turn + 1; goto find_read;
  end if;
end macro;

macro tell(node) begin
  answers[self] := Append(@, <<Wanted[self][turn], node>>);
end macro;

process caller \in Threads
variables
  turn = 1;                              \* the number of the call
  prev = BucketOf(Wanted[self][1]);      \* where the search stands
  nxt = Null;
  lost = FALSE;                          \* a CAS has failed in this call
begin
find_read:
  with node = next[prev] do
    if node # Null /\ KeyOf[node] = Wanted[self][turn] then
      if RetryRule = "keep_own" /\ lost then tell(<<self, turn>>); else tell(node); end if;
      end_call();
    elsif node # Null /\ (KeyOf[node] < Wanted[self][turn] \/ OrderRule = "front") then
      prev := node; goto find_read;
    elsif ~Inserts[self][turn] then
      tell(Null); end_call();
    elsif OrderRule = "front" then
      prev := BucketOf(Wanted[self][turn]); goto insert_front;
    else
      nxt := node;
      if LinkRule # "next_late" then next[<<self, turn>>] := node; end if;   \* private: our node is not linked yet
      if LinkRule = "locked" then goto insert_lock; else goto insert_cas; end if;
    end if;
  end with;

insert_front:
  nxt := next[prev];
  next[<<self, turn>>] := next[prev];
  goto insert_cas;

insert_lock:
  await lock = 0;
  lock := self;

insert_cas:
  if next[prev] = nxt \/ LinkRule = "store" then
    next[prev] := <<self, turn>>;
    if LinkRule = "next_late" then goto insert_next;
    elsif LinkRule = "locked" then tell(<<self, turn>>); goto insert_unlock;
    else tell(<<self, turn>>); end_call();
    end if;
  elsif LinkRule = "locked" then
    goto insert_unlock;
  elsif RetryRule = "no_search" then
    goto insert_front;
  else
    nxt := Null; lost := RetryRule = "keep_own";
    if RetryRule = "from_head" then prev := BucketOf(Wanted[self][turn]); end if;
    goto find_read;
  end if;

insert_next:
  next[<<self, turn>>] := nxt;
  tell(<<self, turn>>); end_call();

insert_unlock:
  lock := 0;
  if Len(answers[self]) < turn then nxt := Null; goto find_read;
  else end_call();
  end if;
end process;
end algorithm *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-efc494a45fc38756574a5c8451abd5a2
VARIABLES next, lock, answers, pc, turn, prev, nxt, lost

vars == << next, lock, answers, pc, turn, prev, nxt, lost >>

ProcSet == (Threads)

Init == (* Global variables *)
        /\ next = [n \in Nodes |-> Null]
        /\ lock = 0
        /\ answers = [t \in Threads |-> << >>]
        (* Process caller *)
        /\ turn = [self \in Threads |-> 1]
        /\ prev = [self \in Threads |-> BucketOf(Wanted[self][1])]
        /\ nxt = [self \in Threads |-> Null]
        /\ lost = [self \in Threads |-> FALSE]
        /\ pc = [self \in ProcSet |-> "find_read"]

find_read(self) == /\ pc[self] = "find_read"
                   /\ LET node == next[prev[self]] IN
                        IF node # Null /\ KeyOf[node] = Wanted[self][turn[self]]
                           THEN /\ IF RetryRule = "keep_own" /\ lost[self]
                                      THEN /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], (<<self, turn[self]>>)>>)]
                                      ELSE /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], node>>)]
                                /\ lost' = [lost EXCEPT ![self] = FALSE]
                                /\ nxt' = [nxt EXCEPT ![self] = Null]
                                /\ IF turn[self] = Len(Script[self])
                                      THEN /\ prev' = [prev EXCEPT ![self] = Null]
                                           /\ pc' = [pc EXCEPT ![self] = "Done"]
                                           /\ turn' = turn
                                      ELSE /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self] + 1])]
                                           /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                           /\ pc' = [pc EXCEPT ![self] = "find_read"]
                                /\ next' = next
                           ELSE /\ IF node # Null /\ (KeyOf[node] < Wanted[self][turn[self]] \/ OrderRule = "front")
                                      THEN /\ prev' = [prev EXCEPT ![self] = node]
                                           /\ pc' = [pc EXCEPT ![self] = "find_read"]
                                           /\ UNCHANGED << next, answers, turn, 
                                                           nxt, lost >>
                                      ELSE /\ IF ~Inserts[self][turn[self]]
                                                 THEN /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], Null>>)]
                                                      /\ lost' = [lost EXCEPT ![self] = FALSE]
                                                      /\ nxt' = [nxt EXCEPT ![self] = Null]
                                                      /\ IF turn[self] = Len(Script[self])
                                                            THEN /\ prev' = [prev EXCEPT ![self] = Null]
                                                                 /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                 /\ turn' = turn
                                                            ELSE /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self] + 1])]
                                                                 /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                 /\ pc' = [pc EXCEPT ![self] = "find_read"]
                                                      /\ next' = next
                                                 ELSE /\ IF OrderRule = "front"
                                                            THEN /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self]])]
                                                                 /\ pc' = [pc EXCEPT ![self] = "insert_front"]
                                                                 /\ UNCHANGED << next, 
                                                                                 nxt >>
                                                            ELSE /\ nxt' = [nxt EXCEPT ![self] = node]
                                                                 /\ IF LinkRule # "next_late"
                                                                       THEN /\ next' = [next EXCEPT ![<<self, turn[self]>>] = node]
                                                                       ELSE /\ TRUE
                                                                            /\ next' = next
                                                                 /\ IF LinkRule = "locked"
                                                                       THEN /\ pc' = [pc EXCEPT ![self] = "insert_lock"]
                                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "insert_cas"]
                                                                 /\ prev' = prev
                                                      /\ UNCHANGED << answers, 
                                                                      turn, 
                                                                      lost >>
                   /\ lock' = lock

insert_front(self) == /\ pc[self] = "insert_front"
                      /\ nxt' = [nxt EXCEPT ![self] = next[prev[self]]]
                      /\ next' = [next EXCEPT ![<<self, turn[self]>>] = next[prev[self]]]
                      /\ pc' = [pc EXCEPT ![self] = "insert_cas"]
                      /\ UNCHANGED << lock, answers, turn, prev, lost >>

insert_lock(self) == /\ pc[self] = "insert_lock"
                     /\ lock = 0
                     /\ lock' = self
                     /\ pc' = [pc EXCEPT ![self] = "insert_cas"]
                     /\ UNCHANGED << next, answers, turn, prev, nxt, lost >>

insert_cas(self) == /\ pc[self] = "insert_cas"
                    /\ IF next[prev[self]] = nxt[self] \/ LinkRule = "store"
                          THEN /\ next' = [next EXCEPT ![prev[self]] = <<self, turn[self]>>]
                               /\ IF LinkRule = "next_late"
                                     THEN /\ pc' = [pc EXCEPT ![self] = "insert_next"]
                                          /\ UNCHANGED << answers, turn, prev, 
                                                          nxt, lost >>
                                     ELSE /\ IF LinkRule = "locked"
                                                THEN /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], (<<self, turn[self]>>)>>)]
                                                     /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                                     /\ UNCHANGED << turn, 
                                                                     prev, nxt, 
                                                                     lost >>
                                                ELSE /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], (<<self, turn[self]>>)>>)]
                                                     /\ lost' = [lost EXCEPT ![self] = FALSE]
                                                     /\ nxt' = [nxt EXCEPT ![self] = Null]
                                                     /\ IF turn[self] = Len(Script[self])
                                                           THEN /\ prev' = [prev EXCEPT ![self] = Null]
                                                                /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                                /\ turn' = turn
                                                           ELSE /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self] + 1])]
                                                                /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                                                /\ pc' = [pc EXCEPT ![self] = "find_read"]
                          ELSE /\ IF LinkRule = "locked"
                                     THEN /\ pc' = [pc EXCEPT ![self] = "insert_unlock"]
                                          /\ UNCHANGED << prev, nxt, lost >>
                                     ELSE /\ IF RetryRule = "no_search"
                                                THEN /\ pc' = [pc EXCEPT ![self] = "insert_front"]
                                                     /\ UNCHANGED << prev, nxt, 
                                                                     lost >>
                                                ELSE /\ nxt' = [nxt EXCEPT ![self] = Null]
                                                     /\ lost' = [lost EXCEPT ![self] = RetryRule = "keep_own"]
                                                     /\ IF RetryRule = "from_head"
                                                           THEN /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self]])]
                                                           ELSE /\ TRUE
                                                                /\ prev' = prev
                                                     /\ pc' = [pc EXCEPT ![self] = "find_read"]
                               /\ UNCHANGED << next, answers, turn >>
                    /\ lock' = lock

insert_next(self) == /\ pc[self] = "insert_next"
                     /\ next' = [next EXCEPT ![<<self, turn[self]>>] = nxt[self]]
                     /\ answers' = [answers EXCEPT ![self] = Append(@, <<Wanted[self][turn[self]], (<<self, turn[self]>>)>>)]
                     /\ lost' = [lost EXCEPT ![self] = FALSE]
                     /\ nxt' = [nxt EXCEPT ![self] = Null]
                     /\ IF turn[self] = Len(Script[self])
                           THEN /\ prev' = [prev EXCEPT ![self] = Null]
                                /\ pc' = [pc EXCEPT ![self] = "Done"]
                                /\ turn' = turn
                           ELSE /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self] + 1])]
                                /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                /\ pc' = [pc EXCEPT ![self] = "find_read"]
                     /\ lock' = lock

insert_unlock(self) == /\ pc[self] = "insert_unlock"
                       /\ lock' = 0
                       /\ IF Len(answers[self]) < turn[self]
                             THEN /\ nxt' = [nxt EXCEPT ![self] = Null]
                                  /\ pc' = [pc EXCEPT ![self] = "find_read"]
                                  /\ UNCHANGED << turn, prev, lost >>
                             ELSE /\ lost' = [lost EXCEPT ![self] = FALSE]
                                  /\ nxt' = [nxt EXCEPT ![self] = Null]
                                  /\ IF turn[self] = Len(Script[self])
                                        THEN /\ prev' = [prev EXCEPT ![self] = Null]
                                             /\ pc' = [pc EXCEPT ![self] = "Done"]
                                             /\ turn' = turn
                                        ELSE /\ prev' = [prev EXCEPT ![self] = BucketOf(Wanted[self][turn[self] + 1])]
                                             /\ turn' = [turn EXCEPT ![self] = turn[self] + 1]
                                             /\ pc' = [pc EXCEPT ![self] = "find_read"]
                       /\ UNCHANGED << next, answers >>

caller(self) == find_read(self) \/ insert_front(self) \/ insert_lock(self)
                   \/ insert_cas(self) \/ insert_next(self)
                   \/ insert_unlock(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Threads: caller(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-a87456384c0c381226228864fb3a17ee
==============================================================================
