------------------------ MODULE WinSetRefinesWindowMap ------------------------
(*****************************************************************************)
(* THEOREM  Spec => Abstract!Spec, through the linearization points G1: the  *)
(* map is what is linked, and a call is answered in the step in which it     *)
(* takes effect.                                                             *)
(*****************************************************************************)
EXTENDS MCWinSet

Map == LET linked == Linked
       IN  [key \in {KeyOf[n] : n \in linked} |-> CHOOSE n \in linked : KeyOf[n] = key]

Abstract == INSTANCE WindowMap WITH
  Offers <- [t \in Threads |-> {<<Wanted[t][i], <<t, i>>>> : i \in DOMAIN Script[t]}],
  AnswersMax <- 99,
  windows <- Map

\* Abstract!Spec, and quicker to check: most steps change nothing abstract, and for the others TLC is told which call took
\* effect, instead of trying all of them.
TookEffect(t) ==
  LET call == Len(answers'[t])
  IN  /\ answers'[t] # answers[t]
      /\ \/ Abstract!Find(t, Wanted[t][call])
         \/ Abstract!FindOrInsert(t, Wanted[t][call], <<t, call>>)

Refines ==
  Abstract!Init /\ [][UNCHANGED <<next, answers>> \/ \E t \in Threads : TookEffect(t)]_(Abstract!vars)
==============================================================================
