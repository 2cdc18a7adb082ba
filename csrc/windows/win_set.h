/*
 * win_set.h - a winset: the windows of one window start by key, in a lock-free hash table (section 5.2 of the paper,
 * after Michael 2002; spec/WinSet.tla).
 *
 *   bucket 0 -> k2 -> k4 -> k8        each window has a key and lanes: states that one thread each adds to
 *   bucket 1 -> k1 -> k7                 k4: | lane 0 | - | lane 2 | - |
 *
 * Each bucket is a list in the order of (hash, key). Windows are never removed one by one, the winset goes as a whole:
 * Michael's marks and tags are not needed, and a window once found stays a good place to search on from. The number of
 * buckets is fixed; a thread that meets many more keys than there are buckets keeps shortcuts of its own into the
 * lists.
 *
 * Lanes. A tuple is added to the lane of the thread that brings it, so no state is written by two threads and nothing
 * is shared on the way but pointers that hardly ever change. A lane is made when its thread first adds to the window.
 * Whoever puts the winset out combines the lanes, which is why functions that depend on the order of tuples want one
 * lane: then each key must belong to one thread (TuML_MC), and that thread's order is the window's.
 *
 * Memory. Windows and states come from blocks that belong to one thread and one winset each and go with the winset:
 * no allocation per window, and states of different threads do not share cache lines.
 *
 * Roles       updaters, each with a thread number of its own: find, find_or_insert, lane, state_new, state_return, all
 * of these together. One reader: output, count, is_empty, free; only when no updater adds any more (W-Hive says when:
 * every thread has published a position behind the winset).
 *
 *                 find  find_or_insert  lane, state_*  output  free
 *   updater        yes        yes           yes          no     no     yes: runs together with all other updaters
 *   reader          -          -             -            1      1     1: alone
 *
 * Invariants  I1 each bucket is strictly ascending and holds its own keys only: one window per key;
 *             I2 a window that is linked stays linked;
 *             I3 a window's key and next are set before it is linked;
 *             I4 lane[i] and what it points to are written by the one thread that has lane i, until the reader comes.
 * Guarantees  G1 linearizable to WindowMap: an insert takes effect with its successful swap, a call that finds its key
 *             when it reads the link to it, a find without result when it reads a link that leads past the key;
 *             G2 all callers are told the same window for a key;
 *             G3 what updaters did happens before what the reader does (position_publish and position_read of W-Hive).
 * Progress    lock-free, but for the allocator: an insert repeats only because another one in its bucket succeeded, and
 *             then goes on from where it stands. find is wait-free as long as insertions end.
 */
#pragma once

#include "aggregates/aggregate.h"
#include "base/atomics.h"
#include "base/base.h"
#include "keys/key.h"
#include "windows/window_rows.h"

typedef struct {
  cell next; /* in its bucket */
  const key *key;
  uint8_t *lane[]; /* states; NULL: nothing has been added there */
} window;

/* What the winsets of a hive have in common. */
typedef struct {
  const aggregates *functions;
  int32_t threads;     /* updaters */
  int32_t lanes;       /* of a window: `threads`, or 1 where each key belongs to one thread */
  ps_counter *windows; /* how many there are in all winsets; NULL: nobody wants to know */
} win_set_shape;

typedef struct win_set win_set;

/* An empty winset with 2 ^ bucket_bits buckets. NULL when out of memory. */
win_set *win_set_new(const win_set_shape *shape, int64_t start, int32_t bucket_bits);
void win_set_free(win_set *set);

int64_t win_set_start(const win_set *set);

/* The window of the key; NULL: there is none. */
window *win_set_find(win_set *set, const key *k);

/* The window of the key, a new one if there is none. NULL when out of memory; the winset is as it was. */
window *win_set_find_or_insert(win_set *set, int32_t thread, const key *k);

/* How many windows this thread has inserted. */
int64_t win_set_inserted(const win_set *set, int32_t thread);

/* Where the thread's state in the window is kept. */
static inline uint8_t **win_set_lane(const win_set_shape *shape, window *w, int32_t thread) {
  return &w->lane[shape->lanes == 1 ? 0 : thread];
}

/* An empty state, to become the thread's lane of a window; NULL when out of memory. The one taken last can be returned.
 */
uint8_t *win_set_state_new(win_set *set, int32_t thread);
void win_set_state_return(win_set *set, int32_t thread);

/* The thread has made the window's lane its own; how often it has done so in this winset. */
void win_set_lane_made(win_set *set, int32_t thread, window *w);
int64_t win_set_lanes_made(const win_set *set, int32_t thread);

/* Whether no tuple is in it: windows without a lane do not count. */
bool win_set_is_empty(const win_set *set);

/* Calls visit for every window that has tuples, its lanes combined, until it gives false; also false when out of
   memory. No updater may run; they may go on afterwards. */
bool win_set_each(win_set *set, window_visit visit, void *context);

/* Puts a row per window in key order: start, key columns, aggregates. On failure *rows holds none of them; calling
   again is allowed. */
ps_code win_set_output(win_set *set, int32_t keys, const ps_type *key_types, out_rows *rows, ps_fault *fault);
