----------------------------- MODULE ReadyOrder -----------------------------
(***************************************************************************)
(* What T-Gate is, without saying how: several timestamp-sorted inputs,    *)
(* merged into one order that every reader receives from its beginning.    *)
(* Each of the four operations is one atomic step.                         *)
(*                                                                         *)
(*   insert(k, ts)     a tuple arrives on input k; its ts never decreases  *)
(*   heartbeat(k, ts)  input k promises to send nothing below ts any more  *)
(*   close(k)          input k promises to send nothing any more           *)
(*   get(r)            reader r asks for its next tuple                    *)
(*                                                                         *)
(* A tuple is <<ts, input, position>>, and that is also its place in the   *)
(* order.  It is ready once no input can send anything before it:          *)
(*      (ts, j) <= min over k of (latest[k], k), lexicographically.        *)
(* `get` answers with the earliest ready tuple that the reader has not had *)
(* yet, and with null only when there is none.                             *)
(*                                                                         *)
(*   I1  what a reader has had is a prefix of the ready tuples in order    *)
(*   I2  the ready tuples in order only ever grow at their end             *)
(*   I3  once every input is closed, every tuple is ready                  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS Inputs,      \* a set of numbers; the smaller one goes first when timestamps are equal
          Readers,
          Times,       \* the timestamps that occur, all >= 0
          TuplesMax,   \* bounds per input and per reader, to keep the state space finite
          AsksMax

VARIABLES received,    \* received[k]: timestamps of the tuples of input k, in the order of arrival
          latest,      \* latest[k]: input k sends nothing below this any more
          delivered,   \* delivered[r]: the tuples that reader r has had
          asked        \* asked[r]: how many times it asked; a null shows as an answer that delivered nothing

vars == <<received, latest, delivered, asked>>

Never == -1            \* latest of an input from which nothing has come
Forever == 1000        \* latest of a closed input
Null == << >>

-----------------------------------------------------------------------------
\* The order and readiness, free of variables: the monitor of T-Gate uses them too.

Earlier(s, t) == \/ s[1] < t[1]
                 \/ s[1] = t[1] /\ s[2] < t[2]
                 \/ s[1] = t[1] /\ s[2] = t[2] /\ s[3] < t[3]

First(tuples) == CHOOSE t \in tuples : \A s \in tuples : ~Earlier(s, t)

RECURSIVE InOrder(_)
InOrder(tuples) == IF tuples = {} THEN << >> ELSE LET t == First(tuples) IN <<t>> \o InOrder(tuples \ {t})

TuplesOf(arrivals) == UNION {{<<arrivals[k][i], k, i>> : i \in DOMAIN arrivals[k]} : k \in DOMAIN arrivals}

IsReady(t, promises) == \A k \in DOMAIN promises : t[1] < promises[k] \/ (t[1] = promises[k] /\ t[2] <= k)

ReadyOf(arrivals, promises) == {t \in TuplesOf(arrivals) : IsReady(t, promises)}

NextFor(had, arrivals, promises) ==
  LET left == ReadyOf(arrivals, promises) \ {had[i] : i \in DOMAIN had}
  IN  IF left = {} THEN Null ELSE First(left)

-----------------------------------------------------------------------------
Init == /\ received = [k \in Inputs |-> << >>]
        /\ latest = [k \in Inputs |-> Never]
        /\ delivered = [r \in Readers |-> << >>]
        /\ asked = [r \in Readers |-> 0]

Insert(k, ts) ==
  /\ Len(received[k]) < TuplesMax
  /\ latest[k] <= ts
  /\ received' = [received EXCEPT ![k] = Append(@, ts)]
  /\ latest' = [latest EXCEPT ![k] = ts]
  /\ UNCHANGED <<delivered, asked>>

Heartbeat(k, ts) ==
  /\ latest[k] < ts        \* a promise that says nothing new changes nothing
  /\ latest' = [latest EXCEPT ![k] = ts]
  /\ UNCHANGED <<received, delivered, asked>>

Close(k) ==
  /\ latest' = [latest EXCEPT ![k] = Forever]
  /\ UNCHANGED <<received, delivered, asked>>

Get(r) ==
  /\ asked[r] < AsksMax
  /\ asked' = [asked EXCEPT ![r] = @ + 1]
  /\ LET t == NextFor(delivered[r], received, latest)
     IN  delivered' = IF t = Null THEN delivered ELSE [delivered EXCEPT ![r] = Append(@, t)]
  /\ UNCHANGED <<received, latest>>

Next == \/ \E k \in Inputs : (\E ts \in Times : Insert(k, ts) \/ Heartbeat(k, ts)) \/ Close(k)
        \/ \E r \in Readers : Get(r)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
StartsWith(seq, prefix) == Len(prefix) <= Len(seq) /\ \A i \in DOMAIN prefix : prefix[i] = seq[i]

ReadyInOrder == InOrder(ReadyOf(received, latest))

TypeOK == /\ received \in [Inputs -> Seq(Times)]
          /\ latest \in [Inputs -> Times \cup {Never, Forever}]
          /\ \A r \in Readers : \A i \in DOMAIN delivered[r] : delivered[r][i] \in TuplesOf(received)
          /\ asked \in [Readers -> 0 .. AsksMax]

DeliveredIsPrefix == \A r \in Readers : StartsWith(ReadyInOrder, delivered[r])                       \* I1
ReadyOnlyGrows == [][LET before == ReadyOf(received, latest)
                         after == ReadyOf(received, latest)'
                     IN  before \subseteq after /\ \A s \in before : \A t \in after \ before : Earlier(s, t)]_vars  \* I2
ClosedMeansAll == (\A k \in Inputs : latest[k] = Forever) => ReadyOf(received, latest) = TuplesOf(received)  \* I3
=============================================================================
