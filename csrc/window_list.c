/* window_list.c - see window_list.h. */
#include "window_list.h"

#include <stdlib.h>

void window_list_init(window_list *list, int64_t size, int64_t advance, const aggregates *functions,
                      out_rows *journal) {
  *list = (window_list){.size = size, .advance = advance, .functions = functions, .journal = journal};
}

void window_list_free(window_list *list) {
  while (list->first) window_list_pop(list);
}

/* ---- one winset ---- */

static winset *winset_new(int64_t start, winset *next) {
  winset *set = memory_new(sizeof *set);
  if (!set) return NULL;
  set->start = start;
  set->next = next;
  return set;
}

static void winset_free(winset *set, const aggregates *functions) {
  for (int64_t i = 0; i < set->windows; i++) aggregates_drop(functions, set->states + i * functions->state_size);
  memory_free(set->index.slots);
  memory_free(set->index.window);
  memory_free(set->keys);
  memory_free(set->states);
  memory_free(set);
}

static int64_t index_slot(const winset_index *index, const key *k) {
  int64_t mask = index->capacity - 1, i = (int64_t)k->hash & mask;
  while (index->slots[i] && index->slots[i] != k) i = (i + 1) & mask;
  return i;
}

static bool index_grow(winset *set) {
  winset_index bigger = {.capacity = set->index.capacity ? 2 * set->index.capacity : 16};
  bigger.slots = memory_new((size_t)bigger.capacity * sizeof *bigger.slots);
  bigger.window = memory_new((size_t)bigger.capacity * sizeof *bigger.window);
  if (!bigger.slots || !bigger.window) {
    memory_free(bigger.slots);
    memory_free(bigger.window);
    return false;
  }
  for (int64_t w = 0; w < set->windows; w++) {
    int64_t slot = index_slot(&bigger, set->keys[w]);
    bigger.slots[slot] = set->keys[w];
    bigger.window[slot] = w;
  }
  memory_free(set->index.slots);
  memory_free(set->index.window);
  set->index = bigger;
  return true;
}

/* Appends an empty window for the key. */
static uint8_t *winset_insert(winset *set, const key *k, int64_t slot, int64_t state_size) {
  int64_t w = set->windows;
  if (!memory_grow((void **)&set->keys, &set->windows_capacity, w + 1, sizeof *set->keys)) return NULL;
  if (!memory_grow((void **)&set->states, &set->states_capacity, w + 1, (size_t)state_size)) return NULL;
  uint8_t *state = set->states + w * state_size;
  memset(state, 0, (size_t)state_size);
  set->keys[w] = k;
  set->index.slots[slot] = k;
  set->index.window[slot] = w;
  set->windows++;
  return state;
}

static uint8_t *winset_find_or_insert(winset *set, const key *k, window_list *list) {
  if (2 * (set->windows + 1) > set->index.capacity && !index_grow(set)) return NULL;
  int64_t slot = index_slot(&set->index, k);
  if (set->index.slots[slot]) return set->states + set->index.window[slot] * list->functions->state_size;
  uint8_t *state = winset_insert(set, k, slot, list->functions->state_size);
  if (!state) return NULL;
  list->windows++;
  if (list->journal) *aggregates_udf_window(list->functions, state) = list->udf_window++;
  return state;
}

/* ---- update ---- */

bool journal_put(out_rows *journal, int64_t window, int64_t start, int64_t number, int64_t row) {
  const int64_t step[JOURNAL_COLUMNS] = {window, start, number, row};
  for (int32_t i = 0; i < JOURNAL_COLUMNS; i++) {
    if (!out_put_bits(journal, i, (uint64_t)step[i])) return false;
  }
  out_end_row(journal);
  return true;
}

static bool journal_step(window_list *list, int64_t start, uint8_t *state, const batch *b, int64_t row) {
  return journal_put(list->journal, *aggregates_udf_window(list->functions, state), start, b->number, row);
}

/* The link that leads to the winset of this start, which is created if it is missing. NULL when out of memory. */
static winset **winset_link(winset **from, int64_t start) {
  while (*from && (*from)->start < start) from = &(*from)->next;
  if (*from && (*from)->start == start) return from;
  winset *set = winset_new(start, *from);
  if (!set) return NULL;
  *from = set;
  return from;
}

bool window_list_update(window_list *list, const batch *b, int64_t row) {
  int64_t ts = batch_ts(b, row);
  int64_t first = ts < list->size ? 0 : (ts - list->size) / list->advance + 1;
  int64_t last = ts / list->advance;
  winset **link = &list->first;
  for (int64_t n = first; n <= last; n++) {
    link = winset_link(link, n * list->advance);
    if (!link) return false;
    uint8_t *state = winset_find_or_insert(*link, b->keys[row], list);
    if (!state || !aggregates_add(list->functions, state, b, row)) return false;
    if (list->journal && !journal_step(list, (*link)->start, state, b, row)) return false;
  }
  return true;
}

/* ---- output ---- */

winset *window_list_complete(const window_list *list, int64_t ts) {
  winset *set = list->first;
  return set && set->start <= ts - list->size ? set : NULL; /* start + size could overflow; ts - size cannot */
}

void window_list_pop(window_list *list) {
  winset *set = list->first;
  list->first = set->next;
  list->windows -= set->windows;
  winset_free(set, list->functions);
}

static bool put_key(const key *k, int32_t keys, const ps_type *types, out_rows *rows) {
  const uint8_t *at = k->data;
  for (int32_t i = 0; i < keys; i++) {
    key_part part;
    at = key_decode(at, types[i], &part);
    int32_t to = 1 + i;
    if (part.null) {
      if (!out_put_null(rows, to)) return false;
    } else if (type_is_bytes(types[i])) {
      uint8_t *space = out_put_space(rows, to, part.length);
      if (!space) return false;
      key_unescape(&part, space);
    } else if (!out_put_bits(rows, to, part.bits)) {
      return false;
    }
  }
  return true;
}

typedef struct {
  const key *key;
  int64_t window;
} sort_entry;

static int by_key(const void *a, const void *b) {
  return key_compare(((const sort_entry *)a)->key, ((const sort_entry *)b)->key);
}

/* The windows in key order. NULL when out of memory; the caller frees it. */
static sort_entry *sorted_windows(const winset *set) {
  sort_entry *order = memory_new((size_t)set->windows * sizeof *order);
  if (!order) return NULL;
  for (int64_t i = 0; i < set->windows; i++) order[i] = (sort_entry){set->keys[i], i};
  qsort(order, (size_t)set->windows, sizeof *order, by_key);
  return order;
}

ps_code winset_output(winset *set, const aggregates *functions, int32_t keys, const ps_type *key_types, out_rows *rows,
                      ps_fault *fault) {
  sort_entry *order = sorted_windows(set);
  if (!order) return PS_NO_MEMORY;
  int64_t rows_before = rows->rows;
  ps_code code = PS_OK;
  for (int64_t i = 0; i < set->windows && code == PS_OK; i++) {
    const uint8_t *state = set->states + order[i].window * functions->state_size;
    bool ok = out_put_bits(rows, 0, (uint64_t)set->start) && put_key(order[i].key, keys, key_types, rows);
    code = ok ? aggregates_finish(functions, state, rows, 1 + keys, &fault->aggregate) : PS_NO_MEMORY;
    if (code == PS_OK) out_end_row(rows);
  }
  memory_free(order);
  if (code != PS_OK) {
    rows->rows = rows_before;
    fault->ts = set->start;
  }
  return code;
}
