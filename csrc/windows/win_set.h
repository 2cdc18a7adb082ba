/*
 * win_set.h - a winset: the windows of one start by key, in a lock-free hash table (section 5.2 of the paper, after
 * Michael 2002; spec/WinSet.tla).
 *
 *   bucket 0 -> k2 -> k4 -> k8        each window has a key, and holds its tuples in words that all threads add to, or in
 *   bucket 1 -> k1 -> k7              lanes, one per thread:  k4: | lane 0 | - | lane 2 | - |
 *
 * Each bucket is a list ordered by (hash, key). Windows are never removed singly, only with the whole winset: Michael's
 * marks and tags are not needed, and a window once found stays a valid place to continue a search from. The number of
 * buckets is fixed; a thread with many more keys than buckets keeps shortcuts of its own into the lists.
 *
 * Words (shared.h). All threads add to the same few words, one atomic step at a time. What a tuple costs does not depend
 * on how many threads there are. For functions that allow it (aggregates.words).
 *
 * Lanes. For the others: a tuple is added to the lane of the thread that brings it, so no state has two writers. A lane is
 * made when its thread first adds to the window; with many threads, most tuples make one. The reader combines the lanes.
 * Functions that depend on the order of tuples need one lane: then each key must belong to one thread (TuML_MC), whose
 * order is the window's.
 *
 * Memory. Windows and states are allocated from blocks that belong to one thread and one winset each and are freed with
 * the winset: no allocation per window, and states of different threads share no cache lines.
 *
 * Roles       updaters, each with a thread number of its own: find, find_or_insert, words, lane, state_new,
 *             state_return.
 *             One reader: output, each, is_empty, free; only when no updater adds any more (W-Hive: every thread has
 *             published a position past the winset).
 *
 *                 find  find_or_insert  words, lane, state_*  output  free
 *   updater        yes        yes              yes             no     no     yes: concurrently with all other updaters
 *   reader          -          -                -               1      1     1: alone
 *
 * Invariants  I1 each bucket is strictly ascending and holds only its own keys: one window per key;
 *             I2 a linked window stays linked;
 *             I3 a window's key and next are set before it is linked;
 *             I4 lane[i] and what it points to are written only by the thread of lane i, until the reader starts;
 *                words change in atomic steps only.
 * Guarantees  G1 linearizable to WindowMap: an insert takes effect with its successful swap, a call that finds its key
 *                when it reads the link to it, a find without result when it reads a link that leads past the key;
 *             G2 all callers get the same window for a key;
 *             G3 what updaters did happens before what the reader does (position_publish and position_read of W-Hive).
 * Progress    lock-free, except for the allocator: an insert repeats only because another one in its bucket succeeded,
 *             and continues from where it is. find is wait-free as long as insertions end.
 */
#pragma once

#include "aggregates/shared.h"
#include "base/atomics.h"
#include "base/base.h"
#include "keys/key.h"
#include "windows/window_rows.h"

typedef struct {
  cell next; /* in its bucket */
  const key *key;
  uint8_t *lane[]; /* states; NULL: nothing added; in words: these, instead */
} window;

/* What the winsets of a hive share. */
typedef struct {
  const aggregates *functions;
  int32_t threads;     /* updaters */
  int32_t lanes;       /* per window: `threads`, 1 if each key belongs to one thread, 0: windows are in words */
  ps_counter *windows; /* counts the windows of all winsets; NULL: not counted */
} win_set_shape;

typedef struct win_set win_set;

/* An empty winset with 2 ^ bucket_bits buckets. NULL: out of memory. */
win_set *win_set_new(const win_set_shape *shape, int64_t start, int32_t bucket_bits);
void win_set_free(win_set *set);

int64_t win_set_start(const win_set *set);

/* The window of the key; NULL: none. */
window *win_set_find(win_set *set, const key *k);

/* The window of the key, inserted if there is none. NULL: out of memory, the winset is unchanged. */
window *win_set_find_or_insert(win_set *set, int32_t thread, const key *k);

/* Number of windows that this thread has inserted. */
int64_t win_set_inserted(const win_set *set, int32_t thread);

/* In words: those of the window. */
static inline cell *win_set_words(window *w) { return (cell *)(void *)w->lane; }

/* In lanes: where the thread's state of the window is stored. */
static inline uint8_t **win_set_lane(const win_set_shape *shape, window *w, int32_t thread) {
  return &w->lane[shape->lanes == 1 ? 0 : thread];
}

/* An empty state for a lane of the thread; NULL: out of memory. Only the newest can be returned. */
uint8_t *win_set_state_new(win_set *set, int32_t thread);
void win_set_state_return(win_set *set, int32_t thread);

/* In lanes: the thread has set its lane of the window. */
void win_set_used(win_set *set, int32_t thread, window *w);

/* How many windows the thread may have to find here, about: those it has used, or in words all that there are. */
int64_t win_set_crowd(win_set *set, int32_t thread);

/* Whether it has no tuples: windows that nothing was added to do not count. */
bool win_set_is_empty(const win_set *set);

/* Calls visit for every window that has tuples, with its whole state, until visit returns false. Also false: out of
   memory. No updater may run meanwhile; they may continue afterwards. */
bool win_set_each(win_set *set, window_visit visit, void *context);

/* Appends a row per window in key order: start, key columns, aggregates. On failure *rows gets none of them, and the
   call may be repeated. */
ps_code win_set_output(win_set *set, int32_t keys, const ps_type *key_types, out_rows *rows, ps_fault *fault);
