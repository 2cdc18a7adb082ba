/*
 * w_hive.h - W-Hive (Alg. 5 of the paper): a lock-free skip list of winsets ordered by window start (spec/WHive.tla
 * with StartRule "anchor", ReclaimRule "anchors" and the first values of the other rules).
 *
 *    head -> 0 ------------> 6 ------------------> end      level 1
 *    head -> 0 ---> 3 -----> 6 ---> 9 -----------> end      level 0
 *            ^ anchor[1]     ^ anchor[0]   one node per window start, each with its winset (win_set.h)
 *                   ^ readhead
 *
 * written[t] is the start of the first window that may still get a tuple of thread t: the least n * advance with
 * n * advance + size > ts. It is 0 before the thread's first call and W_HIVE_END after its close. Hence
 *     the window of start s is complete  <=>  s < written[t] for every thread t.
 * It is stored only when it changes, and first in a call: the windows that the call updates are not before it.
 *
 * Each thread begins its searches at a node of its own, its anchor: the last node of full height not after the first
 * window of its latest call. The thread advances it itself, in heartbeats too. The reader frees the nodes that are
 * before all anchors and before readhead.
 *
 * Roles       updaters, each with a thread number of its own: update_windows, heartbeat, close; one at a time per
 *             thread, with timestamps that never decrease. One reader: get_next_winset. limit, windows: any thread.
 *
 *                    update  heartbeat  close  get_next  limit  free
 *   same updater        1        1        1       yes     yes    no     1: one at a time
 *   other updater      yes      yes      yes      yes     yes    no
 *   reader             yes      yes      yes       1      yes    no
 *
 * Invariants  I1 every level is strictly ascending and a sublist of the level below: one node per window start, none
 *                lost;
 *             I2 written[t] never decreases; the windows that t updates are not before it, and every window before it
 *                has all it gets from t;
 *             I3 everything up to readhead has been delivered, and a delivered winset never changes: the reader owns
 *                it;
 *             I4 an anchor is of full height, linked on all levels, and not past any window that its thread may still
 *                have to find or insert;
 *             I5 no thread follows a link that is not set yet;
 *             I6 no thread touches a freed node.
 * Guarantees  G1 linearizable to WindowOrder: an update takes effect when it is published, a winset is delivered when
 *                the reader reads `next`, and PS_EMPTY holds at the reader's first read of `written`;
 *             G2 each winset is delivered once, whole, in order; the output depends on the tuples alone;
 *             G3 exact: what is complete is delivered, without waiting for more.
 * Progress    lock-free, except for the allocator: an insert repeats only because another insert succeeded.
 *             get_next_winset is wait-free: one pass over `written`.
 * Memory      winsets that are not complete, those that the reader has not taken, and empty nodes (some 100 bytes each)
 *             from the slowest anchor to readhead: at most threads * full_every nodes more than necessary, since every
 *             thread links a node of full height at least once in full_every. An idle thread that sends no heartbeat
 *             delays output, as it must, and with it the release of what is not delivered; a closed one delays nothing.
 *
 * The step window_process of the spec, with window_carry and window_swap, is in shared.c for windows in words. A lane
 * belongs to one thread, so no cell is touched there. Adding runs for all windows at the end of the call, when no
 * allocation can fail any more (window_add.h).
 */
#pragma once

#include "windows/win_set.h"

#define W_HIVE_END UINT64_MAX /* above every window start: the thread has closed */

typedef struct w_hive w_hive;

/* What threads share of a window (win_set.h). */
typedef enum {
  W_HIVE_OWN_KEYS, /* nothing: each key is used by one thread only */
  W_HIVE_LANES,    /* the window, not its lanes; all functions must combine (functions->combines) */
  W_HIVE_WORDS,    /* everything; all functions must allow it (functions->words > 0) */
} w_hive_sharing;

/* What is best for windows whose keys are used by all threads. */
static inline w_hive_sharing w_hive_sharing_of(const aggregates *functions, int32_t threads) {
  return threads == 1 ? W_HIVE_OWN_KEYS : functions->words > 0 ? W_HIVE_WORDS : W_HIVE_LANES;
}

/* `functions` must outlive the hive. levels: 1 to SKIP_LEVELS_MAX; 0: chosen by size and advance. NULL: out of memory. */
w_hive *w_hive_new(int64_t size, int64_t advance, const aggregates *functions, int32_t threads, w_hive_sharing sharing,
                   int32_t levels);

/* When the flag is set, updates may stop early: the hive can then only be freed. */
void w_hive_stop_at(w_hive *hive, ps_flag *stop);

/* Frees everything except delivered winsets. No other call may run. NULL is allowed. */
void w_hive_free(w_hive *hive);

/* Adds a row of the batch to every window that covers `ts`; a tuple in a gap between windows acts as a heartbeat. With
   a journal (functions->udf >= 0) writes the steps of the user's objects to it, with window numbers that no other
   thread uses; the caller guards the journal. PS_NO_MEMORY, or PS_CLOSED if the stop flag is set: the tuple is in no
   window, the journal is unchanged, and the timestamp acts as a heartbeat. */
ps_code w_hive_update_windows(w_hive *hive, int32_t thread, int64_t ts, const key *k, const batch *b, int64_t row,
                              out_rows *journal);

/* Promises that the thread adds nothing below `ts` any more. A lower promise than before has no effect. */
void w_hive_heartbeat(w_hive *hive, int32_t thread, int64_t ts);

/* Promises that the thread adds nothing more. Closing twice is allowed. */
void w_hive_close(w_hive *hive, int32_t thread);

/* All windows that start before this are complete; W_HIVE_END: all threads have closed. */
uint64_t w_hive_limit(const w_hive *hive);

/* Reader: starts of the first and the last winset not taken; INT64_MAX and -1: there is none. */
int64_t w_hive_oldest(const w_hive *hive);
int64_t w_hive_newest(const w_hive *hive);

/* Number of windows in the hive and in winsets taken but not freed. */
int64_t w_hive_windows(w_hive *hive);

/* PS_OK: the next complete winset, which now belongs to the caller (win_set_output, then win_set_free); PS_EMPTY: none
   is complete; PS_END: all threads have closed and all winsets are delivered. */
ps_code w_hive_get_next_winset(w_hive *hive, win_set **out);

/* Snapshots, while no other call runs. each: as win_set_each, for all winsets not taken, in order of start. load: adds
   a window with this state, whose bytes then belong to the hive, for the thread; before any other call.
   PS_CORRUPT: the window exists. number: sets the number of the next udf window. */
bool w_hive_each(w_hive *hive, window_visit visit, void *context);
ps_code w_hive_load(w_hive *hive, int32_t thread, int64_t start, const key *k, const uint8_t *state);
void w_hive_number(w_hive *hive, int64_t next);
