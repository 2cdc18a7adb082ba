------------------------------ MODULE MCOperator ------------------------------
(***************************************************************************)
(* Scripts, windows and properties for the models of Operator, and crashes:*)
(* a thread of MayCrash may stop for ever before any of its steps, up to   *)
(* MaxCrashes of them.  Fairness is weak and per live thread; an input     *)
(* that must get the lock of MQ from a polling output thread needs strong  *)
(* fairness for it (FairToLock), from a sleeping one it does not.          *)
(***************************************************************************)
EXTENDS OperatorRefinesMergedAggregate, TLC

CONSTANTS MaxCrashes, MayCrash,     \* "inputs", "updates", "all"
          CrashWhere                \* "anywhere", "unlocked" (not while holding the lock)

VARIABLE dead                       \* the threads that have stopped for ever

mc_vars == <<vars, result, dead>>

--------------------------------------------------------------------------------
(* Scripts.  Values are powers of two where sums matter, and differ throughout. *)

T(ts, key, val) == [kind |-> "tuple", ts |-> ts, key |-> key, val |-> val]
B(ts)           == [kind |-> "beat", ts |-> ts, key |-> 0, val |-> 0]
C               == [kind |-> "close", ts |-> Forever, key |-> 0, val |-> 0]

Two(a, b)      == 0 :> a @@ 1 :> b
Three(a, b, c) == 0 :> a @@ 1 :> b @@ 2 :> c

Named ==
  [ Ties       |-> Two(<<T(1, 0, 1), T(1, 1, 2), T(2, 0, 4), C>>,       \* ties within and across
                       <<T(1, 0, 8), T(1, 0, 16), T(2, 1, 32), C>>),
    Tie        |-> Two(<<T(1, 0, 1), C>>, <<T(1, 0, 2), C>>),
    Solo       |-> Two(<<T(1, 0, 1), C>>, <<C>>),
    Spread     |-> Two(<<T(0, 0, 1), T(3, 1, 2), T(5, 0, 4), C>>,       \* several windows, gaps
                       <<T(2, 1, 8), T(5, 0, 16), T(8, 0, 32), C>>),
    Beats      |-> Two(<<T(0, 0, 1), T(2, 1, 2), T(7, 0, 4)>>,          \* input 1 lives on promises
                       <<B(1), B(3), B(6)>>),
    BeatsClose |-> Two(<<T(0, 0, 1), B(4), T(4, 0, 2), C>>,             \* both, with an end
                       <<B(2), T(4, 0, 4), B(7), C>>),
    Idle       |-> Two(<<T(0, 0, 1), T(1, 1, 2), T(5, 0, 4), C>>,       \* input 1: tuples, then idle
                       <<T(1, 0, 8), B(5)>>),
    Empty      |-> Two(<<T(0, 0, 1), T(2, 1, 2), T(4, 0, 4), C>>, <<C>>),
    Silent     |-> Two(<<T(0, 0, 1), T(4, 1, 2), C>>, <<>>),
    Gap        |-> Two(<<T(0, 0, 1), T(2, 0, 2)>>, <<T(1, 1, 4), T(2, 0, 8)>>),
    OneKey     |-> Two(<<T(0, 0, 1), T(3, 0, 2), T(5, 0, 4)>>, <<T(1, 0, 8), T(4, 0, 16)>>),
    Turns      |-> Two(<<T(0, 0, 1), T(1, 0, 2), C>>, <<T(1, 0, 4), C>>),
    Short      |-> Two(<<T(0, 0, 1), T(2, 0, 2), C>>, <<T(1, 1, 4), C>>),
    Jump       |-> Two(<<B(4), T(6, 0, 1), T(8, 0, 2), C>>,              \* promises past empty windows
                       <<B(4), T(6, 1, 4), T(8, 0, 8), C>>),
    Full       |-> Two(<<T(0, 0, 1), T(1, 1, 2), C>>, <<T(1, 0, 4), C>>),  \* against a bound of 1
    FullSolo   |-> Two(<<T(0, 0, 1), T(1, 0, 2), C>>, <<C>>),
    Long       |-> Two(<<T(0, 0, 1), T(1, 0, 2), T(2, 1, 4), T(3, 0, 8), C>>,
                       <<T(3, 1, 16), C>>),
    Three      |-> Three(<<T(0, 0, 1), T(2, 1, 2), C>>, <<T(0, 0, 4), B(3), C>>,
                         <<T(2, 1, 8), C>>),
    ThreeTies  |-> Three(<<T(1, 0, 1), T(1, 0, 2), C>>, <<T(1, 0, 4), T(3, 1, 8), C>>,
                         <<T(1, 0, 16), T(3, 2, 32), C>>),
    ThreeIdle  |-> Three(<<T(0, 0, 1), T(3, 2, 2), C>>, <<T(1, 1, 4), T(3, 0, 8), B(6)>>,
                         <<C>>) ]

ByName(name) == Named[name]

(* Every script of two inputs with up to Small tuples each, open or closed at its end. *)
Upto(n, times, keys) ==
  {s \in UNION {[1..m -> times \X keys] : m \in 0..n} :
     \A i \in 1..(Len(s) - 1) : s[i][1] <= s[i + 1][1]}
Streams(n, times, keys, base) ==
  LET tuples(s) == [i \in 1..Len(s) |-> T(s[i][1], s[i][2], base + i)]
      all == Upto(n, times, keys)
  IN  {tuples(s) : s \in all} \cup {Append(tuples(s), C) : s \in all}
Itself(script) == script
EveryScript ==
  {Two(a, b) : a \in Streams(2, {0, 1, 2}, {0}, 0), b \in Streams(1, {0, 1, 2}, {0, 1}, 4)}
EveryLongScript ==
  {Two(a, b) : a \in Streams(2, {0, 1, 3}, {0, 1}, 0), b \in Streams(2, {0, 1, 3}, {0}, 4)}

(* Windows <<size, advance>>. *)
Tumbling   == {<<2, 2>>}
Overlap    == {<<4, 2>>}
Ragged     == {<<3, 2>>}            \* overlapping, size no multiple of advance
Gaps       == {<<2, 3>>}            \* advance larger than size
Mixed      == Ragged \cup Gaps
AllWindows == Tumbling \cup Overlap \cup Ragged \cup Gaps

--------------------------------------------------------------------------------
(* Steps, crashes and fairness. *)

Threads == Inputs \cup Readers
Step(p) == (p \in Inputs /\ input(p)) \/ (p \in UpdateThreads /\ update(p))
             \/ (p = OutputThread /\ output)

LiveStep(p) == p \notin dead /\ Step(p) /\ UNCHANGED <<result, dead>>

Crashable(p) == /\ MayCrash = "inputs" => p \in Inputs
                /\ MayCrash = "updates" => p \in UpdateThreads
                /\ CrashWhere = "unlocked" => lock # p
Crash(p) == /\ Cardinality(dead) < MaxCrashes
            /\ p \notin dead /\ pc[p] # "Done" /\ Crashable(p)
            /\ dead' = dead \cup {p}
            /\ UNCHANGED <<vars, result>>

MCInit == RefinementInit /\ dead = {}
MCNext == \/ \E p \in Threads : LiveStep(p) \/ Crash(p)
          \/ Finished /\ UNCHANGED mc_vars       \* so that a deadlock is a stall

Takes(k) == k \notin dead /\ add_lock(k) /\ UNCHANGED <<result, dead>>

Safe       == MCInit /\ [][MCNext]_mc_vars
Fair       == Safe /\ \A p \in Threads : WF_mc_vars(LiveStep(p))
FairToLock == Fair /\ \A k \in Inputs : SF_mc_vars(Takes(k))

--------------------------------------------------------------------------------
(* Invariants of Operator's header. *)

TypeOK ==
  /\ run \in Runs
  /\ \A k \in Inputs : /\ \A n \in DOMAIN queue[k] : queue[k][n] \in 1..Len(Events(k))
                       /\ gate[k] \in 0..Len(Events(k))
                       /\ sent[k] \in 0..Len(Events(k))
                       /\ ringing[k] \subseteq Readers
  /\ lock \in {Free} \cup Threads
  /\ \A r \in Readers, k \in Inputs : cursor[r][k] \in 0..gate[k]
  /\ shut \in [Inputs -> BOOLEAN] /\ full \in [Inputs -> BOOLEAN]
  /\ waiting \in [Readers -> BOOLEAN]

NotReopened ==                                                                     \* I2
  \A n \in DOMAIN out : \A c \in DOMAIN windows : out[n][1] < c[1]

PositionsRise == [][\A t \in DOMAIN written : written'[t] >= written[t]]_mc_vars   \* I3

OneSequence ==                                                                     \* I4
  \A r, s \in UpdateThreads : \/ \A k \in Inputs : cursor[r][k] <= cursor[s][k]
                              \/ \A k \in Inputs : cursor[s][k] <= cursor[r][k]

Bounded == MaxPending > 0 /\ run.design # "WiML"                                   \* I5
             => \A k \in Inputs : Pending(k) <= MaxPending

LockHeld ==                                                                        \* I6
  \A p \in Threads : pc[p] \in {"add_unlock", "output_take", "output_unlock"} => lock = p

(* No design's own structures are used by another: what is not part of a design stays empty. *)
Apart == /\ run.design \notin {"MQ", "MQ_LF"} => \A k \in Inputs : queue[k] = <<>>
         /\ run.design \notin {"TuML_SC", "TuML_MC"} => \A k \in Inputs : gate[k] = 0
         /\ run.design \notin {"TuML_MC", "WiML"} => \A t \in DOMAIN written : written[t] = Unstarted

--------------------------------------------------------------------------------
(* What a crash may keep back. *)

Withheld(w) == run.design = "TuML_MC" /\ \E u \in dead \cap UpdateThreads : written[u] <= w

ReleasedDespiteCrash ==     \* all that is complete, save windows at or past a dead updater's position
  <>[](OutputThread \in dead \/
       Len(out) = Cardinality({n \in DOMAIN result : /\ Merged!Complete(result[n][1])
                                                     /\ ~Withheld(result[n][1])}))

InputsFinish ==             \* live inputs hand over all they have, whoever else is dead
  <>[](\A k \in Inputs \ dead : pc[k] = "Done")

UpdatersFinish ==           \* live updaters come as far as the inputs have promised
  <>[](\A u \in UpdateThreads \ dead : First(MergeTs) > 0 => written[u] >= First(MergeTs))

OwnDataOnly ==              \* too much to ask: a dead updater keeps back rows of its own keys only
  <>[](OutputThread \in dead \/
       \A n \in DOMAIN result :
         Merged!Complete(result[n][1]) /\ Owner(result[n][2]) \notin dead
           => \E m \in DOMAIN out : out[m] = result[n])
================================================================================
