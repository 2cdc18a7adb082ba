/*
 * window_list.h - the open winsets in order of their start, for one thread (the paper's windowlist, Alg. 2).
 *
 * A winset maps the keys that were met to the windows' states. Winsets exist only once a tuple fell into them.
 */
#pragma once

#include "aggregates/aggregate.h"
#include "base/atomics.h"
#include "base/base.h"
#include "windows/edges.h"
#include "keys/key.h"
#include "windows/window_rows.h"

typedef struct {
  const key **slots; /* open addressing by the key's hash; the key's address is its identity */
  int64_t *window;   /* slot -> index of the window */
  int64_t capacity;
} winset_index;

typedef struct winset {
  struct winset *next;
  int64_t start;
  winset_index index;
  int64_t windows, windows_capacity, states_capacity;
  const key **keys; /* of each window */
  uint8_t *states;
} winset;

typedef struct {
  pane_windows shape;
  const aggregates *functions;
  winset *first;
  winset *loaded;     /* the last one that window_list_load put a window into */
  ps_counter windows; /* in all winsets together; any thread may read it */
  ps_flag *stop;      /* set: nobody wants the windows any more */
  out_rows *journal;  /* the steps of the user's objects; NULL without udf */
  int64_t udf_window; /* number of the next window with user objects */
} window_list;

/* A step of the user's objects: window number (-1: the batch is done with), its start, batch number, row. */
#define JOURNAL_COLUMNS 4
bool journal_put(out_rows *journal, int64_t window, int64_t start, int64_t number, int64_t row);

void window_list_init(window_list *list, pane_windows shape, const aggregates *functions, out_rows *journal,
                      ps_flag *stop);
void window_list_free(window_list *list);

/* Adds the tuple to every window that covers its timestamp. PS_CLOSED: `stop` was set meanwhile; the tuple is in some
   of its windows, which are only good for being freed. */
ps_code window_list_update(window_list *list, const batch *b, int64_t row);

/* The first winset if no tuple at or after `ts` can fall into it, else NULL. */
winset *window_list_complete(const window_list *list, int64_t ts);

/* Removes the first winset. */
void window_list_pop(window_list *list);

/* Where the first and the last winset start; INT64_MAX and -1: there is none. */
int64_t window_list_oldest(const window_list *list);
int64_t window_list_newest(const window_list *list);

/* Calls visit for every window, in order of their start, until it gives false. */
bool window_list_each(const window_list *list, window_visit visit, void *context);

/* Adds a window whose state is then the list's, starts never decreasing. PS_CORRUPT: it is there already. */
ps_code window_list_load(window_list *list, int64_t start, const key *k, const uint8_t *state);

/* Puts the winset's rows in key order: start, key columns, aggregates. On failure *rows holds no row of it, and *fault
   says at which window. */
ps_code winset_output(winset *set, const aggregates *functions, int32_t keys, const ps_type *key_types, out_rows *rows,
                      ps_fault *fault);
