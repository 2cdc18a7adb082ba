---------------------- MODULE PaneHiveRefinesWindowOrder ----------------------
(*****************************************************************************)
(* THEOREM  ForetoldSpec => []NullsHold /\ Abstract!Spec                     *)
(*                                                                           *)
(* Linearization points (G1): a call takes effect in the step that links its *)
(* node, or in its only step; a winset comes out when it is combined.        *)
(*                                                                           *)
(* A null, when the slowest input is read: in the step that finds nothing.   *)
(* A null, when all inputs are read in turn: when the reader begins.  That   *)
(* it will be a null is not known at that moment: `foretold` guesses it, as  *)
(* in WHiveRefinesWindowOrder.  A guess that turns out wrong ends that       *)
(* behaviour; where a null could not be foretold, because a window was       *)
(* complete when the reader began, NullsHold shows the mistake.              *)
(*****************************************************************************)
EXTENDS MCPaneHive

VARIABLE foretold     \* "nothing" between polls, "winset", "null", "only_winset", or "broken"

Foretells == ReadRule \in {"in_turn", "one_node_each"}

NothingComplete == Order!AnswerAfter(Order!LastOf(delivered), TuplesOf(Published), PromisesOf(Published)) = Order!Null

Guesses == IF foretold # "nothing" THEN {foretold} ELSE IF NothingComplete THEN {"winset", "null"} ELSE {"only_winset"}

ReaderStep ==
  /\ reader
  /\ LET returns == asked' # asked
         nulls == returns /\ pc[Reader] = "next_read"
         combines == pc[Reader] = "next_combine"
     IN  IF ~Foretells THEN UNCHANGED foretold
         ELSE \E guess \in Guesses :
                CASE nulls    -> guess # "winset" /\ foretold' = IF guess = "null" THEN "nothing" ELSE "broken"
                  [] returns  -> foretold' = "nothing"
                  [] combines -> guess # "null" /\ foretold' = guess
                  [] OTHER    -> foretold' = guess

ForetoldSpec ==
  /\ Init /\ foretold = "nothing"
  /\ [][ReaderStep \/ \E t \in Threads : updater(t) /\ UNCHANGED foretold]_<<vars, foretold>>

NullsHold == foretold # "broken"

-----------------------------------------------------------------------------
Calls == UNION {UNION {{s[t][i] : i \in DOMAIN s[t]} : t \in Threads} : s \in Scripts}
AllTuples == {TupleOf(c) : c \in {d \in Calls : IsUpdate(d)}}
AllTimes == {c.ts : c \in {d \in Calls : d.kind = "heartbeat"}}

Abstract == INSTANCE WindowOrder WITH
  Tuples <- AllTuples,
  Times <- AllTimes,
  Function <- "sum",
  TuplesMax <- 99,
  AsksMax <- Polls,
  received <- TuplesOf(Published),
  latest <- PromisesOf(Published),
  asked <- IF foretold = "null" \/ pc[Reader] = "next_drop" THEN asked + 1 ELSE asked

Refines == Abstract!Spec

\* The same, and quicker to check: TLC is told which call took effect, instead of trying all of them.
TookEffect(t) ==
  LET done == script[t][turn[t]]
  IN  /\ Published'[t] # Published[t]
      /\ CASE IsUpdate(done) -> Abstract!Update(t, TupleOf(done))
           [] IsClose(done) -> Abstract!Close(t)
           [] OTHER -> Abstract!Heartbeat(t, done.ts)

RefinesByName ==
  Abstract!Init /\ [][UNCHANGED Abstract!vars \/ Abstract!Ask \/ \E t \in Threads : TookEffect(t)]_<<vars, foretold>>
==============================================================================
