------------------------------ MODULE WindowMap ------------------------------
(*****************************************************************************)
(* What a winset is, without saying how: a map from keys to windows.  Each   *)
(* operation is one atomic step.                                             *)
(*                                                                           *)
(*   find_or_insert(t, key, window)  thread t wants the window of the key and *)
(*                                   offers a new one, taken if it has none  *)
(*   find(t, key)                    thread t wants it if there is one       *)
(*                                                                           *)
(*   I1  a key never loses its window and never changes it                   *)
(*   I2  all threads are told the same window for the same key               *)
(*****************************************************************************)
EXTENDS Integers, Sequences, TLC

CONSTANTS Threads,
          Offers,      \* Offers[t]: the <<key, window>> that thread t may bring
          AnswersMax   \* bound per thread

VARIABLES windows,     \* the map; its domain are the keys that have a window
          answers      \* answers[t]: what thread t has been told, in order, as <<key, window>>

vars == <<windows, answers>>

Null == <<0, 0>>       \* the answer of a find without result

Found(map, key) == IF key \in DOMAIN map THEN map[key] ELSE Null
Inserted(map, key, window) == IF key \in DOMAIN map THEN map ELSE map @@ (key :> window)

Init == windows = << >> /\ answers = [t \in Threads |-> << >>]

Tell(t, key, window) ==
  /\ Len(answers[t]) < AnswersMax
  /\ answers' = [answers EXCEPT ![t] = Append(@, <<key, window>>)]

Find(t, key) ==
  /\ Tell(t, key, Found(windows, key))
  /\ UNCHANGED windows

FindOrInsert(t, key, window) ==
  /\ windows' = Inserted(windows, key, window)
  /\ Tell(t, key, windows'[key])

Next == \E t \in Threads : \E offer \in Offers[t] : Find(t, offer[1]) \/ FindOrInsert(t, offer[1], offer[2])

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
NothingLeaves == [][\A key \in DOMAIN windows : key \in DOMAIN windows' /\ windows'[key] = windows[key]]_vars   \* I1
OneWindowPerKey ==                                                                                              \* I2
  \A t \in Threads : \A i \in DOMAIN answers[t] :
    LET told == answers[t][i] IN told[2] # Null => told[1] \in DOMAIN windows /\ windows[told[1]] = told[2]
==============================================================================
