------------------------------ MODULE MSQueue -------------------------------
(***************************************************************************)
(* The lock-free queue of Michael and Scott (1996), which MQ_LF puts in    *)
(* place of MQ's mutex queues (Algorithm 2 of the paper: Add enqueues,     *)
(* S-Merge asks isEmpty, peeks and dequeues).  Nodes come from a pool and  *)
(* are used again, so a pointer is a counted word {node, tag}: each write  *)
(* raises the tag, and a CAS that slept through a reuse fails.  The pool's *)
(* free list is a counted stack (Treiber) linked through the same `next`.  *)
(*                                                                         *)
(*    head ---> dummy ---> v1 ---> v2 ---> nil      the queue              *)
(*                          tail --^                tail may lag by one    *)
(*    top ----> free ---> free ---> nil             the pool               *)
(*                                                                         *)
(* Who may call: any thread, any operation, all at the same time.          *)
(*                                                                         *)
(*   I1  the list from head ends in nil and holds tail; tail is the last   *)
(*       node or the one before it                                         *)
(*   I2  every node is in exactly one place: in the queue, in the pool, or *)
(*       in the hands of one thread                                        *)
(*   I3  a CAS that succeeds changes what its thread has read: `next` of   *)
(*       the last node, tail to its successor, head to its successor, top  *)
(*                                                                         *)
(*   G1  linearizable: enqueue at enqueue_cas_next, dequeue at             *)
(*       dequeue_cas_head; an answer "empty" and a peek at the read of     *)
(*       `next`, when the later check finds head unmoved                   *)
(*   G2  "full" only if every node not in the queue is in some other       *)
(*       thread's hands                                                    *)
(*                                                                         *)
(* Progress: lock-free, whoever stops.  A stopped thread keeps at most one *)
(* node.                                                                   *)
(*                                                                         *)
(* Memory: nodes stay of the same type and are never given back while the  *)
(* queue lives; a thread may read `next` and `value` of a node that was    *)
(* reused under it, and finds out by its next check or CAS.  In C both are *)
(* atomic words; {node, tag} is one 64-bit word of a pool index and a tag  *)
(* of 32 bits each.                                                        *)
(*                                                                         *)
(* One label per access to shared memory; which C function it stands for   *)
(* is in README.md.                                                        *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
  Threads,      \* a set of thread numbers
  Script,       \* Script[t]: what thread t does, a sequence of <<operation, value>>
  Nodes,        \* size of the pool, the dummy included
  Counted,      \* TRUE; FALSE: pointers without tags (ABA)
  HelpTail,     \* TRUE; FALSE: nobody moves a lagging tail but the one who left it
  CheckTail,    \* TRUE; FALSE: dequeue does not compare head with tail, so head may overtake it
  RecheckTail,  \* TRUE; FALSE: enqueue trusts the next it read without looking at tail again
  RecheckHead,  \* TRUE; FALSE: dequeue and peek trust the next they read without looking at head again
  FreeRule,     \* "after": the old dummy, once head has left it; "before": before head leaves it;
                \* "successor": the node that has just become the dummy
  Locked        \* FALSE; TRUE: enqueue holds a spin lock

ASSUME /\ Counted \in BOOLEAN
       /\ HelpTail \in BOOLEAN
       /\ CheckTail \in BOOLEAN
       /\ RecheckTail \in BOOLEAN
       /\ RecheckHead \in BOOLEAN
       /\ FreeRule \in {"after", "before", "successor"}
       /\ Locked \in BOOLEAN

Nil == 0                     \* no node; also "no value"
Empty == 0                   \* answer of dequeue and peek
Full == 0                    \* answers of enqueue
Ok == 1
No == 0                      \* answers of is_empty
Yes == 1

Word(n, count) == [node |-> n, tag |-> IF Counted THEN count ELSE 0]
NoWord == Word(Nil, 0)

(* --algorithm ms_queue
variables
  head = Word(1, 0),
  tail = Word(1, 0),
  top = Word(IF Nodes > 1 THEN 2 ELSE Nil, 0),
  next = [n \in 1 .. Nodes |-> Word(IF n = 1 \/ n = Nodes THEN Nil ELSE n + 1, 0)],
  value = [n \in 1 .. Nodes |-> Nil],
  lock = Nil,
  answers = [t \in Threads |-> << >>];      \* what each operation of each thread returned

macro dispatch(done) begin
  if done = Len(Script[self]) then
    goto Done;
  elsif Script[self][done + 1][1] = "enqueue" then
    if Locked then goto enqueue_lock; else goto enqueue_read_top; end if;
  elsif Script[self][done + 1][1] = "dequeue" then
    goto dequeue_read_head;
  else
    goto peek_read_head;
  end if;
end macro;

macro answer(what) begin
  answers[self] := Append(answers[self], what);
  first := NoWord || last := NoWord || link := NoWord || old := NoWord || node := Nil || got := Nil;
  dispatch(Len(answers[self]));
end macro;

process thread \in Threads
variables first = NoWord, last = NoWord, link = NoWord, old = NoWord, node = Nil, got = Nil;
begin
start:
  dispatch(0);

\* ---- queue_enqueue: take a node from the pool ...
enqueue_lock:
  if lock = Nil then lock := self; else goto enqueue_lock; end if;
enqueue_read_top:
  if top.node = Nil then answer(Full); else old := top; end if;
enqueue_read_link:
  link := next[old.node];
enqueue_cas_top:
  if top = old then
    top := Word(link.node, old.tag + 1);
    node := old.node;
  else
    goto enqueue_read_top;
  end if;
enqueue_write_value:
  value[node] := Script[self][Len(answers[self]) + 1][2];
enqueue_write_next:
  next[node] := Word(Nil, link.tag + 1);
\* ---- ... and put it behind the last one
enqueue_read_tail:
  last := tail;
enqueue_read_next:
  link := next[last.node];
  if ~RecheckTail then
    if link.node = Nil then goto enqueue_cas_next; else goto enqueue_help_tail; end if;
  end if;
enqueue_check_tail:
  if tail # last then
    goto enqueue_read_tail;
  elsif link.node # Nil then
    goto enqueue_help_tail;
  end if;
enqueue_cas_next:                                   \* linearization point, if it succeeds
  if next[last.node] = link then
    next[last.node] := Word(node, link.tag + 1);
    goto enqueue_swing_tail;
  else
    goto enqueue_read_tail;
  end if;
enqueue_help_tail:
  if HelpTail /\ tail = last then tail := Word(link.node, last.tag + 1); end if;
  goto enqueue_read_tail;
enqueue_swing_tail:
  if tail = last then tail := Word(node, last.tag + 1); end if;
  if ~Locked then answer(Ok); end if;
enqueue_unlock:
  lock := Nil;
  answer(Ok);

\* ---- queue_dequeue
dequeue_read_head:
  first := head;
dequeue_read_tail:
  last := tail;
dequeue_read_next:                                  \* linearization point of "empty", if the check succeeds
  if RecheckHead then
    link := next[first.node];
  elsif next[first.node].node = Nil then
    answer(Empty);
  else
    link := next[first.node];
    if CheckTail /\ first.node = last.node then goto dequeue_help_tail; else goto dequeue_read_value; end if;
  end if;
dequeue_check_head:
  if head # first then
    goto dequeue_read_head;
  elsif link.node = Nil then
    answer(Empty);
  elsif CheckTail /\ first.node = last.node then
    goto dequeue_help_tail;
  else
    goto dequeue_read_value;
  end if;
dequeue_help_tail:
  if HelpTail /\ tail = last then tail := Word(link.node, last.tag + 1); end if;
  goto dequeue_read_head;
dequeue_read_value:
  got := value[link.node];
  if FreeRule = "before" then goto dequeue_read_top; end if;
dequeue_cas_head:                                   \* linearization point, if it succeeds
  if head = first then
    head := Word(link.node, first.tag + 1);
    if FreeRule = "before" then answer(got); end if;
  else
    goto dequeue_read_head;
  end if;
dequeue_read_top:
  old := top;
dequeue_write_link:
  if FreeRule = "successor" then
    next[link.node] := Word(old.node, next[link.node].tag + 1);
  else
    next[first.node] := Word(old.node, link.tag + 1);
  end if;
dequeue_cas_top:
  if top # old then
    goto dequeue_read_top;
  else
    top := Word(IF FreeRule = "successor" THEN link.node ELSE first.node, old.tag + 1);
    if FreeRule = "before" then goto dequeue_cas_head; else answer(got); end if;
  end if;

\* ---- queue_peek and queue_is_empty
peek_read_head:
  first := head;
peek_read_next:                                     \* linearization point, if the check succeeds
  if next[first.node].node # Nil then
    link := next[first.node];
    if Script[self][Len(answers[self]) + 1][1] = "is_empty" then goto peek_check_head; end if;
  elsif RecheckHead then
    goto peek_check_head;
  else
    answer(IF Script[self][Len(answers[self]) + 1][1] = "is_empty" THEN Yes ELSE Empty);
  end if;
peek_read_value:
  if RecheckHead then got := value[link.node]; else answer(value[link.node]); end if;
peek_check_head:
  if head # first then
    link := NoWord || got := Nil;
    goto peek_read_head;
  else
    answer(IF Script[self][Len(answers[self]) + 1][1] = "is_empty" THEN IF link.node = Nil THEN Yes ELSE No ELSE got);
  end if;
end process;
end algorithm; *)
\* BEGIN TRANSLATION - the hash of the PCal code: PCal-618134cb2bea4d47a1f7a15be8fc4bce
VARIABLES head, tail, top, next, value, lock, answers, pc, first, last, link, 
          old, node, got

vars == << head, tail, top, next, value, lock, answers, pc, first, last, link, 
           old, node, got >>

ProcSet == (Threads)

Init == (* Global variables *)
        /\ head = Word(1, 0)
        /\ tail = Word(1, 0)
        /\ top = Word(IF Nodes > 1 THEN 2 ELSE Nil, 0)
        /\ next = [n \in 1 .. Nodes |-> Word(IF n = 1 \/ n = Nodes THEN Nil ELSE n + 1, 0)]
        /\ value = [n \in 1 .. Nodes |-> Nil]
        /\ lock = Nil
        /\ answers = [t \in Threads |-> << >>]
        (* Process thread *)
        /\ first = [self \in Threads |-> NoWord]
        /\ last = [self \in Threads |-> NoWord]
        /\ link = [self \in Threads |-> NoWord]
        /\ old = [self \in Threads |-> NoWord]
        /\ node = [self \in Threads |-> Nil]
        /\ got = [self \in Threads |-> Nil]
        /\ pc = [self \in ProcSet |-> "start"]

start(self) == /\ pc[self] = "start"
               /\ IF 0 = Len(Script[self])
                     THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                     ELSE /\ IF Script[self][0 + 1][1] = "enqueue"
                                THEN /\ IF Locked
                                           THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                           ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                ELSE /\ IF Script[self][0 + 1][1] = "dequeue"
                                           THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                           ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
               /\ UNCHANGED << head, tail, top, next, value, lock, answers, 
                               first, last, link, old, node, got >>

enqueue_lock(self) == /\ pc[self] = "enqueue_lock"
                      /\ IF lock = Nil
                            THEN /\ lock' = self
                                 /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                            ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                 /\ lock' = lock
                      /\ UNCHANGED << head, tail, top, next, value, answers, 
                                      first, last, link, old, node, got >>

enqueue_read_top(self) == /\ pc[self] = "enqueue_read_top"
                          /\ IF top.node = Nil
                                THEN /\ answers' = [answers EXCEPT ![self] = Append(answers[self], Full)]
                                     /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                        /\ got' = [got EXCEPT ![self] = Nil]
                                        /\ last' = [last EXCEPT ![self] = NoWord]
                                        /\ link' = [link EXCEPT ![self] = NoWord]
                                        /\ node' = [node EXCEPT ![self] = Nil]
                                        /\ old' = [old EXCEPT ![self] = NoWord]
                                     /\ IF (Len(answers'[self])) = Len(Script[self])
                                           THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                           ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                      THEN /\ IF Locked
                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                 ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                      ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                 THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                 ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                ELSE /\ old' = [old EXCEPT ![self] = top]
                                     /\ pc' = [pc EXCEPT ![self] = "enqueue_read_link"]
                                     /\ UNCHANGED << answers, first, last, 
                                                     link, node, got >>
                          /\ UNCHANGED << head, tail, top, next, value, lock >>

enqueue_read_link(self) == /\ pc[self] = "enqueue_read_link"
                           /\ link' = [link EXCEPT ![self] = next[old[self].node]]
                           /\ pc' = [pc EXCEPT ![self] = "enqueue_cas_top"]
                           /\ UNCHANGED << head, tail, top, next, value, lock, 
                                           answers, first, last, old, node, 
                                           got >>

enqueue_cas_top(self) == /\ pc[self] = "enqueue_cas_top"
                         /\ IF top = old[self]
                               THEN /\ top' = Word(link[self].node, old[self].tag + 1)
                                    /\ node' = [node EXCEPT ![self] = old[self].node]
                                    /\ pc' = [pc EXCEPT ![self] = "enqueue_write_value"]
                               ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                    /\ UNCHANGED << top, node >>
                         /\ UNCHANGED << head, tail, next, value, lock, 
                                         answers, first, last, link, old, got >>

enqueue_write_value(self) == /\ pc[self] = "enqueue_write_value"
                             /\ value' = [value EXCEPT ![node[self]] = Script[self][Len(answers[self]) + 1][2]]
                             /\ pc' = [pc EXCEPT ![self] = "enqueue_write_next"]
                             /\ UNCHANGED << head, tail, top, next, lock, 
                                             answers, first, last, link, old, 
                                             node, got >>

enqueue_write_next(self) == /\ pc[self] = "enqueue_write_next"
                            /\ next' = [next EXCEPT ![node[self]] = Word(Nil, link[self].tag + 1)]
                            /\ pc' = [pc EXCEPT ![self] = "enqueue_read_tail"]
                            /\ UNCHANGED << head, tail, top, value, lock, 
                                            answers, first, last, link, old, 
                                            node, got >>

enqueue_read_tail(self) == /\ pc[self] = "enqueue_read_tail"
                           /\ last' = [last EXCEPT ![self] = tail]
                           /\ pc' = [pc EXCEPT ![self] = "enqueue_read_next"]
                           /\ UNCHANGED << head, tail, top, next, value, lock, 
                                           answers, first, link, old, node, 
                                           got >>

enqueue_read_next(self) == /\ pc[self] = "enqueue_read_next"
                           /\ link' = [link EXCEPT ![self] = next[last[self].node]]
                           /\ IF ~RecheckTail
                                 THEN /\ IF link'[self].node = Nil
                                            THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_cas_next"]
                                            ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_help_tail"]
                                 ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_check_tail"]
                           /\ UNCHANGED << head, tail, top, next, value, lock, 
                                           answers, first, last, old, node, 
                                           got >>

enqueue_check_tail(self) == /\ pc[self] = "enqueue_check_tail"
                            /\ IF tail # last[self]
                                  THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_read_tail"]
                                  ELSE /\ IF link[self].node # Nil
                                             THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_help_tail"]
                                             ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_cas_next"]
                            /\ UNCHANGED << head, tail, top, next, value, lock, 
                                            answers, first, last, link, old, 
                                            node, got >>

enqueue_cas_next(self) == /\ pc[self] = "enqueue_cas_next"
                          /\ IF next[last[self].node] = link[self]
                                THEN /\ next' = [next EXCEPT ![last[self].node] = Word(node[self], link[self].tag + 1)]
                                     /\ pc' = [pc EXCEPT ![self] = "enqueue_swing_tail"]
                                ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_tail"]
                                     /\ next' = next
                          /\ UNCHANGED << head, tail, top, value, lock, 
                                          answers, first, last, link, old, 
                                          node, got >>

enqueue_help_tail(self) == /\ pc[self] = "enqueue_help_tail"
                           /\ IF HelpTail /\ tail = last[self]
                                 THEN /\ tail' = Word(link[self].node, last[self].tag + 1)
                                 ELSE /\ TRUE
                                      /\ tail' = tail
                           /\ pc' = [pc EXCEPT ![self] = "enqueue_read_tail"]
                           /\ UNCHANGED << head, top, next, value, lock, 
                                           answers, first, last, link, old, 
                                           node, got >>

enqueue_swing_tail(self) == /\ pc[self] = "enqueue_swing_tail"
                            /\ IF tail = last[self]
                                  THEN /\ tail' = Word(node[self], last[self].tag + 1)
                                  ELSE /\ TRUE
                                       /\ tail' = tail
                            /\ IF ~Locked
                                  THEN /\ answers' = [answers EXCEPT ![self] = Append(answers[self], Ok)]
                                       /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                          /\ got' = [got EXCEPT ![self] = Nil]
                                          /\ last' = [last EXCEPT ![self] = NoWord]
                                          /\ link' = [link EXCEPT ![self] = NoWord]
                                          /\ node' = [node EXCEPT ![self] = Nil]
                                          /\ old' = [old EXCEPT ![self] = NoWord]
                                       /\ IF (Len(answers'[self])) = Len(Script[self])
                                             THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                             ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                        THEN /\ IF Locked
                                                                   THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                   ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                        ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                   THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                   ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                  ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_unlock"]
                                       /\ UNCHANGED << answers, first, last, 
                                                       link, old, node, got >>
                            /\ UNCHANGED << head, top, next, value, lock >>

enqueue_unlock(self) == /\ pc[self] = "enqueue_unlock"
                        /\ lock' = Nil
                        /\ answers' = [answers EXCEPT ![self] = Append(answers[self], Ok)]
                        /\ /\ first' = [first EXCEPT ![self] = NoWord]
                           /\ got' = [got EXCEPT ![self] = Nil]
                           /\ last' = [last EXCEPT ![self] = NoWord]
                           /\ link' = [link EXCEPT ![self] = NoWord]
                           /\ node' = [node EXCEPT ![self] = Nil]
                           /\ old' = [old EXCEPT ![self] = NoWord]
                        /\ IF (Len(answers'[self])) = Len(Script[self])
                              THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                              ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                         THEN /\ IF Locked
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                    ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                         ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                    ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                        /\ UNCHANGED << head, tail, top, next, value >>

dequeue_read_head(self) == /\ pc[self] = "dequeue_read_head"
                           /\ first' = [first EXCEPT ![self] = head]
                           /\ pc' = [pc EXCEPT ![self] = "dequeue_read_tail"]
                           /\ UNCHANGED << head, tail, top, next, value, lock, 
                                           answers, last, link, old, node, got >>

dequeue_read_tail(self) == /\ pc[self] = "dequeue_read_tail"
                           /\ last' = [last EXCEPT ![self] = tail]
                           /\ pc' = [pc EXCEPT ![self] = "dequeue_read_next"]
                           /\ UNCHANGED << head, tail, top, next, value, lock, 
                                           answers, first, link, old, node, 
                                           got >>

dequeue_read_next(self) == /\ pc[self] = "dequeue_read_next"
                           /\ IF RecheckHead
                                 THEN /\ link' = [link EXCEPT ![self] = next[first[self].node]]
                                      /\ pc' = [pc EXCEPT ![self] = "dequeue_check_head"]
                                      /\ UNCHANGED << answers, first, last, 
                                                      old, node, got >>
                                 ELSE /\ IF next[first[self].node].node = Nil
                                            THEN /\ answers' = [answers EXCEPT ![self] = Append(answers[self], Empty)]
                                                 /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                                    /\ got' = [got EXCEPT ![self] = Nil]
                                                    /\ last' = [last EXCEPT ![self] = NoWord]
                                                    /\ link' = [link EXCEPT ![self] = NoWord]
                                                    /\ node' = [node EXCEPT ![self] = Nil]
                                                    /\ old' = [old EXCEPT ![self] = NoWord]
                                                 /\ IF (Len(answers'[self])) = Len(Script[self])
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                       ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                                  THEN /\ IF Locked
                                                                             THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                             ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                                  ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                             THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                             ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                            ELSE /\ link' = [link EXCEPT ![self] = next[first[self].node]]
                                                 /\ IF CheckTail /\ first[self].node = last[self].node
                                                       THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_help_tail"]
                                                       ELSE /\ pc' = [pc EXCEPT ![self] = "dequeue_read_value"]
                                                 /\ UNCHANGED << answers, 
                                                                 first, last, 
                                                                 old, node, 
                                                                 got >>
                           /\ UNCHANGED << head, tail, top, next, value, lock >>

dequeue_check_head(self) == /\ pc[self] = "dequeue_check_head"
                            /\ IF head # first[self]
                                  THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                       /\ UNCHANGED << answers, first, last, 
                                                       link, old, node, got >>
                                  ELSE /\ IF link[self].node = Nil
                                             THEN /\ answers' = [answers EXCEPT ![self] = Append(answers[self], Empty)]
                                                  /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                                     /\ got' = [got EXCEPT ![self] = Nil]
                                                     /\ last' = [last EXCEPT ![self] = NoWord]
                                                     /\ link' = [link EXCEPT ![self] = NoWord]
                                                     /\ node' = [node EXCEPT ![self] = Nil]
                                                     /\ old' = [old EXCEPT ![self] = NoWord]
                                                  /\ IF (Len(answers'[self])) = Len(Script[self])
                                                        THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                        ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                                   THEN /\ IF Locked
                                                                              THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                              ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                                   ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                              THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                              ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                             ELSE /\ IF CheckTail /\ first[self].node = last[self].node
                                                        THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_help_tail"]
                                                        ELSE /\ pc' = [pc EXCEPT ![self] = "dequeue_read_value"]
                                                  /\ UNCHANGED << answers, 
                                                                  first, last, 
                                                                  link, old, 
                                                                  node, got >>
                            /\ UNCHANGED << head, tail, top, next, value, lock >>

dequeue_help_tail(self) == /\ pc[self] = "dequeue_help_tail"
                           /\ IF HelpTail /\ tail = last[self]
                                 THEN /\ tail' = Word(link[self].node, last[self].tag + 1)
                                 ELSE /\ TRUE
                                      /\ tail' = tail
                           /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                           /\ UNCHANGED << head, top, next, value, lock, 
                                           answers, first, last, link, old, 
                                           node, got >>

dequeue_read_value(self) == /\ pc[self] = "dequeue_read_value"
                            /\ got' = [got EXCEPT ![self] = value[link[self].node]]
                            /\ IF FreeRule = "before"
                                  THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_top"]
                                  ELSE /\ pc' = [pc EXCEPT ![self] = "dequeue_cas_head"]
                            /\ UNCHANGED << head, tail, top, next, value, lock, 
                                            answers, first, last, link, old, 
                                            node >>

dequeue_cas_head(self) == /\ pc[self] = "dequeue_cas_head"
                          /\ IF head = first[self]
                                THEN /\ head' = Word(link[self].node, first[self].tag + 1)
                                     /\ IF FreeRule = "before"
                                           THEN /\ answers' = [answers EXCEPT ![self] = Append(answers[self], got[self])]
                                                /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                                   /\ got' = [got EXCEPT ![self] = Nil]
                                                   /\ last' = [last EXCEPT ![self] = NoWord]
                                                   /\ link' = [link EXCEPT ![self] = NoWord]
                                                   /\ node' = [node EXCEPT ![self] = Nil]
                                                   /\ old' = [old EXCEPT ![self] = NoWord]
                                                /\ IF (Len(answers'[self])) = Len(Script[self])
                                                      THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                      ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                                 THEN /\ IF Locked
                                                                            THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                                 ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                            THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                            ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                           ELSE /\ pc' = [pc EXCEPT ![self] = "dequeue_read_top"]
                                                /\ UNCHANGED << answers, first, 
                                                                last, link, 
                                                                old, node, got >>
                                ELSE /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                     /\ UNCHANGED << head, answers, first, 
                                                     last, link, old, node, 
                                                     got >>
                          /\ UNCHANGED << tail, top, next, value, lock >>

dequeue_read_top(self) == /\ pc[self] = "dequeue_read_top"
                          /\ old' = [old EXCEPT ![self] = top]
                          /\ pc' = [pc EXCEPT ![self] = "dequeue_write_link"]
                          /\ UNCHANGED << head, tail, top, next, value, lock, 
                                          answers, first, last, link, node, 
                                          got >>

dequeue_write_link(self) == /\ pc[self] = "dequeue_write_link"
                            /\ IF FreeRule = "successor"
                                  THEN /\ next' = [next EXCEPT ![link[self].node] = Word(old[self].node, next[link[self].node].tag + 1)]
                                  ELSE /\ next' = [next EXCEPT ![first[self].node] = Word(old[self].node, link[self].tag + 1)]
                            /\ pc' = [pc EXCEPT ![self] = "dequeue_cas_top"]
                            /\ UNCHANGED << head, tail, top, value, lock, 
                                            answers, first, last, link, old, 
                                            node, got >>

dequeue_cas_top(self) == /\ pc[self] = "dequeue_cas_top"
                         /\ IF top # old[self]
                               THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_top"]
                                    /\ UNCHANGED << top, answers, first, last, 
                                                    link, old, node, got >>
                               ELSE /\ top' = Word(IF FreeRule = "successor" THEN link[self].node ELSE first[self].node, old[self].tag + 1)
                                    /\ IF FreeRule = "before"
                                          THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_cas_head"]
                                               /\ UNCHANGED << answers, first, 
                                                               last, link, old, 
                                                               node, got >>
                                          ELSE /\ answers' = [answers EXCEPT ![self] = Append(answers[self], got[self])]
                                               /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                                  /\ got' = [got EXCEPT ![self] = Nil]
                                                  /\ last' = [last EXCEPT ![self] = NoWord]
                                                  /\ link' = [link EXCEPT ![self] = NoWord]
                                                  /\ node' = [node EXCEPT ![self] = Nil]
                                                  /\ old' = [old EXCEPT ![self] = NoWord]
                                               /\ IF (Len(answers'[self])) = Len(Script[self])
                                                     THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                     ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                                THEN /\ IF Locked
                                                                           THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                           ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                                ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                           THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                           ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                         /\ UNCHANGED << head, tail, next, value, lock >>

peek_read_head(self) == /\ pc[self] = "peek_read_head"
                        /\ first' = [first EXCEPT ![self] = head]
                        /\ pc' = [pc EXCEPT ![self] = "peek_read_next"]
                        /\ UNCHANGED << head, tail, top, next, value, lock, 
                                        answers, last, link, old, node, got >>

peek_read_next(self) == /\ pc[self] = "peek_read_next"
                        /\ IF next[first[self].node].node # Nil
                              THEN /\ link' = [link EXCEPT ![self] = next[first[self].node]]
                                   /\ IF Script[self][Len(answers[self]) + 1][1] = "is_empty"
                                         THEN /\ pc' = [pc EXCEPT ![self] = "peek_check_head"]
                                         ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_value"]
                                   /\ UNCHANGED << answers, first, last, old, 
                                                   node, got >>
                              ELSE /\ IF RecheckHead
                                         THEN /\ pc' = [pc EXCEPT ![self] = "peek_check_head"]
                                              /\ UNCHANGED << answers, first, 
                                                              last, link, old, 
                                                              node, got >>
                                         ELSE /\ answers' = [answers EXCEPT ![self] = Append(answers[self], (IF Script[self][Len(answers[self]) + 1][1] = "is_empty" THEN Yes ELSE Empty))]
                                              /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                                 /\ got' = [got EXCEPT ![self] = Nil]
                                                 /\ last' = [last EXCEPT ![self] = NoWord]
                                                 /\ link' = [link EXCEPT ![self] = NoWord]
                                                 /\ node' = [node EXCEPT ![self] = Nil]
                                                 /\ old' = [old EXCEPT ![self] = NoWord]
                                              /\ IF (Len(answers'[self])) = Len(Script[self])
                                                    THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                                    ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                               THEN /\ IF Locked
                                                                          THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                          ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                               ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                          THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                          ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                        /\ UNCHANGED << head, tail, top, next, value, lock >>

peek_read_value(self) == /\ pc[self] = "peek_read_value"
                         /\ IF RecheckHead
                               THEN /\ got' = [got EXCEPT ![self] = value[link[self].node]]
                                    /\ pc' = [pc EXCEPT ![self] = "peek_check_head"]
                                    /\ UNCHANGED << answers, first, last, link, 
                                                    old, node >>
                               ELSE /\ answers' = [answers EXCEPT ![self] = Append(answers[self], (value[link[self].node]))]
                                    /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                       /\ got' = [got EXCEPT ![self] = Nil]
                                       /\ last' = [last EXCEPT ![self] = NoWord]
                                       /\ link' = [link EXCEPT ![self] = NoWord]
                                       /\ node' = [node EXCEPT ![self] = Nil]
                                       /\ old' = [old EXCEPT ![self] = NoWord]
                                    /\ IF (Len(answers'[self])) = Len(Script[self])
                                          THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                          ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                     THEN /\ IF Locked
                                                                THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                     ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                         /\ UNCHANGED << head, tail, top, next, value, lock >>

peek_check_head(self) == /\ pc[self] = "peek_check_head"
                         /\ IF head # first[self]
                               THEN /\ /\ got' = [got EXCEPT ![self] = Nil]
                                       /\ link' = [link EXCEPT ![self] = NoWord]
                                    /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                                    /\ UNCHANGED << answers, first, last, old, 
                                                    node >>
                               ELSE /\ answers' = [answers EXCEPT ![self] = Append(answers[self], (IF Script[self][Len(answers[self]) + 1][1] = "is_empty" THEN IF link[self].node = Nil THEN Yes ELSE No ELSE got[self]))]
                                    /\ /\ first' = [first EXCEPT ![self] = NoWord]
                                       /\ got' = [got EXCEPT ![self] = Nil]
                                       /\ last' = [last EXCEPT ![self] = NoWord]
                                       /\ link' = [link EXCEPT ![self] = NoWord]
                                       /\ node' = [node EXCEPT ![self] = Nil]
                                       /\ old' = [old EXCEPT ![self] = NoWord]
                                    /\ IF (Len(answers'[self])) = Len(Script[self])
                                          THEN /\ pc' = [pc EXCEPT ![self] = "Done"]
                                          ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "enqueue"
                                                     THEN /\ IF Locked
                                                                THEN /\ pc' = [pc EXCEPT ![self] = "enqueue_lock"]
                                                                ELSE /\ pc' = [pc EXCEPT ![self] = "enqueue_read_top"]
                                                     ELSE /\ IF Script[self][(Len(answers'[self])) + 1][1] = "dequeue"
                                                                THEN /\ pc' = [pc EXCEPT ![self] = "dequeue_read_head"]
                                                                ELSE /\ pc' = [pc EXCEPT ![self] = "peek_read_head"]
                         /\ UNCHANGED << head, tail, top, next, value, lock >>

thread(self) == start(self) \/ enqueue_lock(self) \/ enqueue_read_top(self)
                   \/ enqueue_read_link(self) \/ enqueue_cas_top(self)
                   \/ enqueue_write_value(self) \/ enqueue_write_next(self)
                   \/ enqueue_read_tail(self) \/ enqueue_read_next(self)
                   \/ enqueue_check_tail(self) \/ enqueue_cas_next(self)
                   \/ enqueue_help_tail(self) \/ enqueue_swing_tail(self)
                   \/ enqueue_unlock(self) \/ dequeue_read_head(self)
                   \/ dequeue_read_tail(self) \/ dequeue_read_next(self)
                   \/ dequeue_check_head(self) \/ dequeue_help_tail(self)
                   \/ dequeue_read_value(self) \/ dequeue_cas_head(self)
                   \/ dequeue_read_top(self) \/ dequeue_write_link(self)
                   \/ dequeue_cas_top(self) \/ peek_read_head(self)
                   \/ peek_read_next(self) \/ peek_read_value(self)
                   \/ peek_check_head(self)

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == (\E self \in Threads: thread(self))
           \/ Terminating

Spec == Init /\ [][Next]_vars

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION - the hash of the generated TLA code (remove to silence divergence warnings): TLA-a1b1ac8883ca24a7711a00edd4a70f5f

-----------------------------------------------------------------------------
RECURSIVE Chain(_, _)
Chain(n, fuel) == IF n = Nil \/ fuel = 0 THEN << >> ELSE <<n>> \o Chain(next[n].node, fuel - 1)

Range(seq) == {seq[i] : i \in DOMAIN seq}

QueueChain == Chain(head.node, Nodes + 1)                          \* the dummy first; longer than Nodes if it is a cycle
PoolChain == Chain(top.node, Nodes + 1)
Contents == [i \in 1 .. Len(QueueChain) - 1 |-> value[QueueChain[i + 1]]]   \* what the queue holds, oldest first

HasTaken == {"enqueue_write_value", "enqueue_write_next", "enqueue_read_tail", "enqueue_read_next",
             "enqueue_check_tail", "enqueue_cas_next", "enqueue_help_tail"}
HasRemoved == {"dequeue_read_top", "dequeue_write_link", "dequeue_cas_top"}
HasLinked == {"enqueue_swing_tail", "enqueue_unlock"}

Hand(t) == IF pc[t] \in HasTaken THEN node[t] ELSE IF pc[t] \in HasRemoved THEN first[t].node ELSE Nil
Hands == {Hand(t) : t \in Threads} \ {Nil}

Values == {Script[t][i][2] : <<t, i>> \in {<<t, i>> \in Threads \X (1 .. 9) : i <= Len(Script[t])}} \cup {Nil}
Words == [node : 0 .. Nodes, tag : Nat]

TypeOK ==
  /\ {head, tail, top} \subseteq Words /\ head.node # Nil /\ tail.node # Nil
  /\ next \in [1 .. Nodes -> Words]
  /\ value \in [1 .. Nodes -> Values]
  /\ lock \in Threads \cup {Nil}
  /\ \A t \in Threads : /\ {first[t], last[t], link[t], old[t]} \subseteq Words
                         /\ node[t] \in 0 .. Nodes /\ got[t] \in Values
                         /\ Len(answers[t]) <= Len(Script[t]) /\ Range(answers[t]) \subseteq Values \cup {0, 1}

TailInQueue ==                                                     \* I1
  /\ Len(QueueChain) \in 1 .. Nodes
  /\ \/ tail.node = QueueChain[Len(QueueChain)]
     \/ Len(QueueChain) > 1 /\ tail.node = QueueChain[Len(QueueChain) - 1]

EachNodeInOnePlace ==                                              \* I2
  /\ Len(PoolChain) <= Nodes
  /\ Range(QueueChain) \cap Range(PoolChain) = {}
  /\ (Range(QueueChain) \cup Range(PoolChain)) \cap Hands = {}
  /\ Cardinality(Hands) = Cardinality({t \in Threads : Hand(t) # Nil})
  /\ Range(QueueChain) \cup Range(PoolChain) \cup Hands = 1 .. Nodes

CasHitsOnlyWhatItMeant ==                                          \* I3
  \A t \in Threads :
    /\ pc[t] = "enqueue_cas_next" /\ next[last[t].node] = link[t] => last[t].node = QueueChain[Len(QueueChain)]
    /\ pc[t] = "enqueue_cas_top" /\ top = old[t] => link[t] = next[old[t].node]
    /\ pc[t] \in {"enqueue_help_tail", "dequeue_help_tail"} /\ tail = last[t] => link[t] = next[tail.node]
    /\ pc[t] = "enqueue_swing_tail" /\ tail = last[t] => node[t] = next[tail.node].node
    /\ pc[t] = "dequeue_cas_head" /\ head = first[t] => link[t] = next[head.node] /\ got[t] = value[link[t].node]
-----------------------------------------------------------------------------
\* Exactly once, nothing lost: what went in is what came out and what is still there.
Given(t, upto, kind) == {i \in 1 .. upto : Script[t][i][1] = kind}
Entered == UNION {{Script[t][i][2] : i \in {i \in Given(t, Len(answers[t]), "enqueue") : answers[t][i] = Ok}} :
                  t \in Threads}
           \cup {Script[t][Len(answers[t]) + 1][2] : t \in {t \in Threads : pc[t] \in HasLinked}}
LeftOf(t) == {answers[t][i] : i \in {i \in Given(t, Len(answers[t]), "dequeue") : answers[t][i] # Empty}}
             \cup (IF pc[t] \in HasRemoved THEN {got[t]} ELSE {})

ExactlyOnce ==                                                     \* the values of a script are all different
  /\ \A t, u \in Threads : t # u => LeftOf(t) \cap LeftOf(u) = {}
  /\ UNION {LeftOf(t) : t \in Threads} \cap Range(Contents) = {}
  /\ UNION {LeftOf(t) : t \in Threads} \cup Range(Contents) = Entered
  /\ Cardinality(Range(Contents)) = Len(Contents)
  /\ \A t \in Threads : \A i, j \in Given(t, Len(answers[t]), "dequeue") :
       i # j /\ answers[t][i] # Empty => answers[t][i] # answers[t][j]

\* G2: at the read that finds the pool empty, every node is in the queue or in the hands of others.
FullIsHonest ==
  \A t \in Threads : pc[t] = "enqueue_read_top" /\ top.node = Nil =>
    Len(Contents) + Cardinality({u \in Threads \ {t} : Hand(u) # Nil}) = Nodes - 1
=============================================================================
