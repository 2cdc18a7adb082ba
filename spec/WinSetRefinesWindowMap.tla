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

\* Abstract!Spec, said so that TLC looks at the cheap parts first: most steps change nothing abstract, and every step of
\* WindowMap tells somebody something.
Refines == Abstract!Init /\ [][UNCHANGED <<next, answers>> \/ (answers' # answers /\ Abstract!Next)]_(Abstract!vars)
==============================================================================
