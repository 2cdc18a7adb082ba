----------------------- MODULE WHiveRefinesWindowOrder ------------------------
(*****************************************************************************)
(* THEOREM  ForetoldSpec => []NullsHold /\ Abstract!Spec                     *)
(*                                                                           *)
(* Linearization points (G1): a call takes effect in the step that publishes *)
(* its position; a winset comes out in the step in which the reader passes   *)
(* its node; a null holds when the reader begins.  That it will be a null is *)
(* not known at that moment: `foretold` guesses it, the textbook's prophecy  *)
(* variable.  A guess that turns out wrong ends that behaviour, which loses  *)
(* nothing as long as the other guess was open too.  Where it was not,       *)
(* because a window was complete when the reader began, a null is a mistake  *)
(* of W-Hive, and NullsHold shows it.                                        *)
(*****************************************************************************)
EXTENDS MCWHive

VARIABLE foretold     \* "nothing" between polls, "winset", "null", "only_winset", or "broken"

Asking == pc[Reader] = "next_scan" /\ j = 1 /\ cand = Unset      \* the next step of the reader begins a poll

NothingComplete == Order!AnswerAfter(Order!LastOf(delivered), TuplesOf(Published), PromisesOf(Published)) = Order!Null

Guesses == IF ~Asking THEN {foretold} ELSE IF NothingComplete THEN {"winset", "null"} ELSE {"only_winset"}

ReaderStep ==
  /\ reader
  /\ LET passes == readhead' # readhead
         nulls == asked' # asked /\ pc[Reader] \in {"next_scan", "next_peek", "next_read"}
     IN  \E guess \in Guesses :
           CASE nulls  -> guess # "winset" /\ foretold' = IF guess = "null" THEN "nothing" ELSE "broken"
             [] passes -> guess # "null" /\ foretold' = "nothing"
             [] OTHER  -> foretold' = guess

ForetoldSpec ==
  /\ Init /\ foretold = "nothing"
  /\ [][ReaderStep \/ \E t \in Threads : updater(t) /\ UNCHANGED foretold]_<<vars, foretold>>

NullsHold == foretold # "broken"

-----------------------------------------------------------------------------
Calls == UNION {UNION {{Scripts[c][t][i] : i \in DOMAIN Scripts[c][t]} : t \in Threads} : c \in DOMAIN Scripts}

Abstract == INSTANCE WindowOrder WITH
  Tuples <- {TupleOf(c) : c \in {d \in Calls : IsUpdate(d)}},
  Times <- {c.ts : c \in {d \in Calls : d.kind = "heartbeat"}},
  TuplesMax <- 99,
  AsksMax <- Polls,
  received <- TuplesOf(Published),
  latest <- PromisesOf(Published),
  delivered <- IF Handing THEN Append(delivered, <<Ts(readhead), winset[readhead]>>) ELSE delivered,
  asked <- IF foretold = "null" \/ pc[Reader] \in {"next_head", "next_take", "reclaim_scan", "reclaim_free"}
             THEN asked + 1 ELSE asked

\* Abstract!Spec, written so that TLC passes quickly over the steps that change nothing abstract.
Refines == Abstract!Init /\ [][UNCHANGED Abstract!vars \/ Abstract!Next]_(Abstract!vars)
==============================================================================
