/*
 * w_hive.h - W-Hive (Alg. 5 of the paper): a lock-free levelled list of winsets in the order of their window starts
 * (spec/WHive.tla with StartRule "anchor", ReclaimRule "anchors" and the first values of the other rules).
 *
 *    head -> 0 ------------> 6 ------------------> end      level 1
 *    head -> 0 ---> 3 -----> 6 ---> 9 -----------> end      level 0
 *            ^ anchor[1]     ^ anchor[0]   one node per window start, each with its winset (win_set.h)
 *                   ^ readhead
 *
 * written[t] is the start of the first window that may still get a tuple of thread t: the least n * advance with
 * n * advance + size > ts. It is 0 before the thread's first call and W_HIVE_END after its close. Hence
 *     the window of start s is complete  <=>  s < written[t] for every thread t.
 * It is stored only when it moves, and first in a call: the windows that the call works on are not before it.
 *
 * Each thread begins its searches at a node of its own, its anchor: the last node of full height not after the first
 * window of its latest call. The thread moves it forward itself, in heartbeats too. Whatever lies before all anchors
 * and before readhead is freed by the reader.
 *
 * Roles       updaters, each with a thread number of its own: update_windows, heartbeat, close; one at a time per
 *             thread, with timestamps that never fall. One reader: get_next_winset. limit, windows: any thread.
 *
 *                    update  heartbeat  close  get_next  limit  free
 *   same updater        1        1        1       yes     yes    no     1: one at a time
 *   other updater      yes      yes      yes      yes     yes    no
 *   reader             yes      yes      yes       1      yes    no
 *
 * Invariants  I1 every level is strictly ascending, a sublist of the level below: one node per window start, none lost;
 *             I2 written[t] never falls; the windows on which t works are not before it, and every window before it
 *             has all it gets from t;
 *             I3 whatever lies behind readhead has been delivered, and whatever is delivered never changes again: the
 *             reader owns its winset;
 *             I4 an anchor is of full height, linked on all levels, and not past any window that its thread may still
 *             have to find or insert;
 *             I5 nobody follows a link that is not set yet;
 *             I6 nobody touches a node that has been freed.
 * Guarantees  G1 linearizable to WindowOrder: an update takes effect when it is published, a winset comes out when the
 *             reader reads `next`, and PS_EMPTY holds at the reader's first read of `written`;
 *             G2 each winset once, whole, in order; the output depends on the tuples alone;
 *             G3 exact: what is complete is delivered, without waiting for more.
 * Progress    lock-free, but for the allocator: an insert repeats only because another insert succeeded.
 *             get_next_winset is wait-free: one pass over `written`.
 * Memory      winsets that are not complete, those that the reader has not taken, and empty nodes (some 100 bytes each)
 *             from the slowest anchor to readhead: at most threads * full_every nodes more than must be, since every
 *             thread links a node of full height at least once in full_every. A thread that is idle and sends no
 *             heartbeat holds back output, as it must, and with it what is not delivered; a closed one holds nothing.
 *
 * The step window_process of the spec is `add` here. It has no label: a lane belongs to one thread, so no cell is
 * touched. It runs for all windows at the end of the call, when no allocation can fail any more.
 */
#pragma once

#include "windows/win_set.h"

#define W_HIVE_END UINT64_MAX /* behind every window start: no thread will add anything */

typedef struct w_hive w_hive;

/* `functions` must outlive the hive. With own_keys each key must be brought by one thread only; without, all functions
   must combine (functions->combines). `levels` of the list: 1 to SKIP_LEVELS_MAX, or 0: as many as suit the windows.
   NULL when out of memory. */
w_hive *w_hive_new(int64_t size, int64_t advance, const aggregates *functions, int32_t threads, bool own_keys,
                   int32_t levels);

/* Once the flag is set, updates may give up: for hives that are then only freed. */
void w_hive_stop_at(w_hive *hive, ps_flag *stop);

/* Frees everything but winsets that have been delivered. No other call may run. NULL is allowed. */
void w_hive_free(w_hive *hive);

/* Adds a row of the batch to every window that covers `ts`; a tuple between two windows only moves time. With a journal
   (functions->udf >= 0) the steps of the user's objects are put there, with window numbers that no other thread uses;
   the caller sees to it that the journal is his during the call. PS_NO_MEMORY, or PS_CLOSED if the stop flag is set:
   the tuple is in no window and the journal as it was; its timestamp counts as a heartbeat. */
ps_code w_hive_update_windows(w_hive *hive, int32_t thread, int64_t ts, const key *k, const batch *b, int64_t row,
                              out_rows *journal);

/* Promises that the thread adds nothing below `ts` any more. A promise that says nothing new is allowed. */
void w_hive_heartbeat(w_hive *hive, int32_t thread, int64_t ts);

/* Promises that the thread adds nothing more. Closing twice is allowed. */
void w_hive_close(w_hive *hive, int32_t thread);

/* All windows that start before this are complete; W_HIVE_END: all threads have closed. */
uint64_t w_hive_limit(const w_hive *hive);

/* The reader: where the first and the last winset start that have not been taken; INT64_MAX and -1: there is none. */
int64_t w_hive_oldest(const w_hive *hive);
int64_t w_hive_newest(const w_hive *hive);

/* How many windows are in it, and in winsets that were taken and not freed. */
int64_t w_hive_windows(w_hive *hive);

/* PS_OK and the next complete winset, which now belongs to the caller (win_set_output, then win_set_free); PS_EMPTY if
   there is none yet; PS_END if all threads have closed and everything is out. */
ps_code w_hive_get_next_winset(w_hive *hive, win_set **out);

/* Snapshots, while nobody else calls anything. Each: as win_set_each, for all winsets that have not been taken, in
   order of their start. Load: adds a window with this state, whose bytes then belong to the hive, as if the thread had
   brought it; before anything else. PS_CORRUPT: the window is there already. Number: which udf window is the next. */
bool w_hive_each(w_hive *hive, window_visit visit, void *context);
ps_code w_hive_load(w_hive *hive, int32_t thread, int64_t start, const key *k, const uint8_t *state);
void w_hive_number(w_hive *hive, int64_t next);
