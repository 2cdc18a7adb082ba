/*
 * window_list.h - the open winsets in order of start, for one thread (the paper's windowlist, Alg. 2).
 *
 * A winset maps keys to the states of their windows. It is made when the first tuple is added to it.
 */
#pragma once

#include "aggregates/aggregate.h"
#include "base/atomics.h"
#include "base/base.h"
#include "windows/edges.h"
#include "keys/key.h"
#include "windows/window_rows.h"

typedef struct {
  const key **slots; /* open addressing by the key's hash; keys are compared by address */
  int64_t *window;   /* slot -> index of the window */
  int64_t capacity;
} list_winset_index;

typedef struct list_winset {
  struct list_winset *next;
  int64_t start;
  list_winset_index index;
  int64_t windows, windows_capacity, states_capacity;
  const key **keys; /* by window */
  uint8_t *states;
} list_winset;

typedef struct {
  pane_windows shape;
  const aggregates *functions;
  list_winset *first;
  list_winset *loaded; /* the last one that window_list_load added to */
  ps_counter windows;  /* in all winsets; any thread may read it */
  ps_flag *stop;       /* when set, updates stop early */
  out_rows *journal;   /* steps of the user's objects; NULL: no udf */
  int64_t udf_window;  /* number of the next window with user objects */
} window_list;

/* A step of the user's objects: window number (-1: the batch is done), its start, batch number, row. */
#define JOURNAL_COLUMNS 4
bool journal_put(out_rows *journal, int64_t window, int64_t start, int64_t number, int64_t row);

void window_list_init(window_list *list, pane_windows shape, const aggregates *functions, out_rows *journal,
                      ps_flag *stop);
void window_list_free(window_list *list);

/* Adds the tuple to every window that covers its timestamp. PS_CLOSED: `stop` was set; the tuple is in some of its
   windows, which can only be freed. */
ps_code window_list_update(window_list *list, const batch *b, int64_t row);

/* The first winset if no tuple at or after `ts` can be in it, else NULL. */
list_winset *window_list_complete(const window_list *list, int64_t ts);

/* Removes the first winset. */
void window_list_pop(window_list *list);

/* Starts of the first and the last winset; INT64_MAX and -1: there is none. */
int64_t window_list_oldest(const window_list *list);
int64_t window_list_newest(const window_list *list);

/* Calls visit for every window, in order of start, until it returns false. */
bool window_list_each(const window_list *list, window_visit visit, void *context);

/* Adds a window whose state then belongs to the list; starts must not decrease. PS_CORRUPT: the window exists. */
ps_code window_list_load(window_list *list, int64_t start, const key *k, const uint8_t *state);

/* Appends the winset's rows in key order: start, key columns, aggregates. On failure *rows gets none of them, and
   *fault names the window. */
ps_code list_winset_output(list_winset *set, const aggregates *functions, int32_t keys, const ps_type *key_types,
                           out_rows *rows, ps_fault *fault);
