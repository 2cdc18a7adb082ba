------------------------------ MODULE SkipList ------------------------------
(***************************************************************************)
(* What a levelled list is, for T-Gate and W-Hive alike (section 4.1 of    *)
(* the paper).  Pure operators: no variables, no constants.                *)
(*                                                                         *)
(* A list is a function `next`: next[n][l] is the node that follows n on   *)
(* level l.  Levels are numbered from 0, the ground.  Whatever is not in   *)
(* DOMAIN next (the tail, an unset pointer) ends a walk.                   *)
(*                                                                         *)
(*   S1  Sorted    each level is strictly ascending                        *)
(*   S2  Nested    each level is a sublist of the level below              *)
(*   S3  Grounded  each level ends at the tail, without a cycle            *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

RECURSIVE WalkAtMost(_, _, _, _)
WalkAtMost(next, level, from, fuel) ==
  IF fuel = 0 \/ from \notin DOMAIN next
    THEN << >>
    ELSE <<from>> \o WalkAtMost(next, level, next[from][level], fuel - 1)

\* The nodes met on `level` from node `from` on, itself included.  A cycle shows as a walk with more nodes than there are.
Walk(next, level, from) == WalkAtMost(next, level, from, Cardinality(DOMAIN next) + 1)

Range(seq) == {seq[i] : i \in DOMAIN seq}

\* The same as a set.
Members(next, level, from) == Range(Walk(next, level, from))

\* Less(a, b) is a strict total order on the nodes of `seq`.
IsAscending(seq, Less(_, _)) == \A i \in 1 .. Len(seq) - 1 : Less(seq[i], seq[i + 1])

IsPrefix(a, b) == Len(a) <= Len(b) /\ \A i \in DOMAIN a : a[i] = b[i]

\* What is left of `seq` when only the members of `set` are kept.
Keep(seq, set) == SelectSeq(seq, LAMBDA n : n \in set)

IsSublist(sub, seq) == Keep(seq, Range(sub)) = sub

Sorted(next, top, from, Less(_, _)) == \A l \in 0 .. top : IsAscending(Walk(next, l, from), Less)

Nested(next, top, from) == \A l \in 1 .. top : IsSublist(Walk(next, l, from), Walk(next, l - 1, from))

Grounded(next, top, from, tail) ==
  \A l \in 0 .. top :
    LET walk == Walk(next, l, from)
    IN  /\ Len(walk) <= Cardinality(DOMAIN next)
        /\ next[walk[Len(walk)]][l] = tail
=============================================================================
