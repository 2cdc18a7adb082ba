------------------------------- MODULE MCWinSet ------------------------------
(*****************************************************************************)
(* The winset, bounded: what the threads call, what they must be told,       *)
(* threads that stop for ever, and who is scheduled fairly.                  *)
(*****************************************************************************)
EXTENDS WinSet, TLC

CONSTANT CrashesMax      \* how many threads may stop for ever

-----------------------------------------------------------------------------
\* Scripts.  I: find or insert, F: find.

I(key) == [kind |-> "insert", key |-> key]
F(key) == [kind |-> "find", key |-> key]

\* The race for one key, after a smaller or a larger one.
ScriptRace == << <<I(2), I(1)>>,
                 <<I(2), I(3)>> >>
\* A find runs while others insert around its key.
ScriptFind == << <<I(1), I(3), F(2)>>,
                 <<I(2), I(1)>>,
                 <<F(2), F(3)>> >>
\* After a find that walked far comes one for a smaller key.
ScriptFindBack == << <<I(1), I(2)>>,
                     <<F(3), F(2)>> >>
ScriptThree == << <<I(1), I(2)>>,
                  <<I(2), I(1)>>,
                  <<I(2), F(1)>> >>
\* Keys of two buckets, met in both orders.
ScriptBuckets == << <<I(1), I(2), I(4)>>,
                    <<I(4), I(3), I(1)>>,
                    <<I(2), F(3)>> >>
ScriptWide == << <<I(1), I(3), I(2), F(4)>>,
                 <<I(2), I(4), I(1), F(3)>>,
                 <<I(3), F(2), I(2), I(4)>> >>
ScriptDeep == << <<I(1), I(3), F(2)>>,
                 <<I(2), I(4), I(1)>>,
                 <<I(3), F(1), I(2)>>,
                 <<I(4), I(3), F(2)>> >>
ScriptDeepShort == << <<I(1), I(3)>>,
                      <<I(2), I(1)>>,
                      <<I(3), F(1)>>,
                      <<I(2), F(3)>> >>
\* One thread by itself.
ScriptAlone == << <<I(2), I(1), I(3), I(2), F(1)>> >>

-----------------------------------------------------------------------------
\* What callers are promised (G2)

AllTold == UNION {{answers[t][i] : i \in DOMAIN answers[t]} : t \in Threads}

OneWindowPerKey == \A a, b \in AllTold : a[1] = b[1] /\ a[2] # Null /\ b[2] # Null => a[2] = b[2]

\* An insert is always told a window of its key, a find never another one.
AnswersFit ==
  \A t \in Threads : \A i \in DOMAIN answers[t] :
    /\ answers[t][i][1] = Script[t][i].key
    /\ answers[t][i][2] # Null => KeyOf[answers[t][i][2]] = Script[t][i].key
    /\ Inserts[t][i] => answers[t][i][2] # Null

-----------------------------------------------------------------------------
\* The structure (I1 to I3)

TypeOK == /\ next \in [Nodes -> Offered \cup {Null}]
          /\ lock \in Threads \cup {0}
          /\ prev \in [Threads -> Nodes \cup {Null}] /\ nxt \in [Threads -> Offered \cup {Null}]

RECURSIVE WalkAtMost(_, _)
WalkAtMost(node, fuel) == IF node = Null \/ fuel = 0 THEN << >> ELSE <<node>> \o WalkAtMost(next[node], fuel - 1)

ListOf(bucket) == WalkAtMost(bucket, Cardinality(Nodes) + 1)
LinkedIn(bucket) == LET list == ListOf(bucket) IN {list[i] : i \in DOMAIN list} \ Heads
Linked == UNION {LinkedIn(bucket) : bucket \in Heads}

WellLinked ==                                                                                       \* I1, I3
  \A bucket \in Heads :
    LET list == ListOf(bucket)
    IN  /\ \A i \in 1 .. Len(list) - 1 : KeyOf[list[i]] < KeyOf[list[i + 1]]
        /\ \A n \in LinkedIn(bucket) : BucketOf(KeyOf[n]) = bucket

\* Whatever a caller was told is in its list.
ToldIsLinked == \A a \in AllTold : a[2] # Null => a[2] \in Linked                                   \* I2
NothingLeaves == [][Linked \subseteq Linked']_vars                                                  \* I2

AllDone == \A t \in Threads : pc[t] = "Done"

\* Every terminal state has the same keys: all that were inserted.
SameKeys == AllDone => {KeyOf[n] : n \in Linked} = {KeyOf[n] : n \in Offered}

-----------------------------------------------------------------------------
\* Any thread may stop for ever at any step; all that is promised is that some live thread runs.

Stopped(t) == pc[t] = "stopped"
Crash(t) == /\ pc[t] # "Done" /\ ~Stopped(t)
            /\ Cardinality({u \in Threads : Stopped(u)}) < CrashesMax
            /\ pc' = [pc EXCEPT ![t] = "stopped"]
            /\ UNCHANGED <<next, lock, answers, turn, prev, nxt, lost>>

CrashSpec == Init /\ [][Next \/ \E t \in Threads : Crash(t)]_vars /\ WF_vars(Next)

LockFree == <>(\A t \in Threads : pc[t] = "Done" \/ Stopped(t))
==============================================================================
