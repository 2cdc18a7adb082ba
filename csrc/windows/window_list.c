/* window_list.c - see window_list.h. */
#include "windows/window_list.h"

#include "windows/window_rows.h"

/* Windows between two reads of `stop`: some 0.1 ms. */
#define STOP_EVERY SIZED(1024, 1)

void window_list_init(window_list *list, pane_windows shape, const aggregates *functions, out_rows *journal,
                      ps_flag *stop) {
  *list = (window_list){.shape = shape, .functions = functions, .journal = journal, .stop = stop};
}

void window_list_free(window_list *list) {
  while (list->first) window_list_pop(list);
}

/* ---- one winset ---- */

static list_winset *list_winset_new(int64_t start, list_winset *next) {
  list_winset *set = memory_new(sizeof *set);
  if (!set) return NULL;
  set->start = start;
  set->next = next;
  return set;
}

static void list_winset_free(list_winset *set, const aggregates *functions) {
  for (int64_t i = 0; i < set->windows; i++) aggregates_drop(functions, set->states + i * functions->state_size);
  memory_free(set->index.slots);
  memory_free(set->index.window);
  memory_free(set->keys);
  memory_free(set->states);
  memory_free(set);
}

static int64_t index_slot(const list_winset_index *index, const key *k) {
  int64_t mask = index->capacity - 1, i = (int64_t)k->hash & mask;
  while (index->slots[i] && index->slots[i] != k) i = (i + 1) & mask;
  return i;
}

#define INDEX_FIRST SIZED(16, 2) /* slots */

static bool index_grow(list_winset *set) {
  list_winset_index bigger = {.capacity = set->index.capacity ? 2 * set->index.capacity : INDEX_FIRST};
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
static uint8_t *list_winset_insert(list_winset *set, const key *k, int64_t slot, int64_t state_size) {
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

static uint8_t *list_winset_find_or_insert(list_winset *set, const key *k, window_list *list) {
  if (2 * (set->windows + 1) > set->index.capacity && !index_grow(set)) return NULL;
  int64_t slot = index_slot(&set->index, k);
  if (set->index.slots[slot]) return set->states + set->index.window[slot] * list->functions->state_size;
  uint8_t *state = list_winset_insert(set, k, slot, list->functions->state_size);
  if (!state) return NULL;
  ps_counter_set(&list->windows, ps_counter_get(&list->windows) + 1);
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

/* The link to the winset of this start, made if it is missing. NULL: out of memory. */
static list_winset **list_winset_link(list_winset **from, int64_t start) {
  while (*from && (*from)->start < start) from = &(*from)->next;
  if (*from && (*from)->start == start) return from;
  list_winset *set = list_winset_new(start, *from);
  if (!set) return NULL;
  *from = set;
  return from;
}

/* Adds the tuple to its window in one winset. */
static bool update_window(window_list *list, list_winset *set, const batch *b, int64_t row) {
  uint8_t *state = list_winset_find_or_insert(set, b->keys[row], list);
  if (!state || !aggregates_add(list->functions, state, b, row)) return false;
  return !list->journal || journal_step(list, set->start, state, b, row);
}

ps_code window_list_update(window_list *list, const batch *b, int64_t row) {
  uint64_t ts = (uint64_t)batch_ts(b, row), last = last_start(list->shape, ts);
  list_winset **link = &list->first;
  int64_t steps = STOP_EVERY;
  for (uint64_t start = first_start(list->shape, ts); start <= last; start += list->shape.advance) {
    link = list_winset_link(link, (int64_t)start);
    if (!link || !update_window(list, *link, b, row)) return PS_NO_MEMORY;
    if (--steps > 0) continue;
    if (ps_flag_get(list->stop)) return PS_CLOSED;
    steps = STOP_EVERY;
  }
  return PS_OK;
}

/* ---- snapshots ---- */

bool window_list_each(const window_list *list, window_visit visit, void *context) {
  for (const list_winset *set = list->first; set; set = set->next) {
    for (int64_t i = 0; i < set->windows; i++) {
      if (!visit(context, set->start, set->keys[i], set->states + i * list->functions->state_size)) return false;
    }
  }
  return true;
}

ps_code window_list_load(window_list *list, int64_t start, const key *k, const uint8_t *state) {
  list_winset *last = list->loaded;
  assert(!last || start >= last->start);
  if (!last || start > last->start) {
    list_winset **link = list_winset_link(last ? &last->next : &list->first, start);
    if (!link) return PS_NO_MEMORY;
    last = list->loaded = *link;
  }
  int64_t before = last->windows;
  uint8_t *to = list_winset_find_or_insert(last, k, list);
  if (!to) return PS_NO_MEMORY;
  if (last->windows == before) return PS_CORRUPT;
  memcpy(to, state, (size_t)list->functions->state_size);
  return PS_OK;
}

/* ---- output ---- */

list_winset *window_list_complete(const window_list *list, int64_t ts) {
  list_winset *set = list->first;
  return set && is_complete(list->shape, (uint64_t)set->start, ts) ? set : NULL;
}

int64_t window_list_oldest(const window_list *list) { return list->first ? list->first->start : INT64_MAX; }

int64_t window_list_newest(const window_list *list) {
  int64_t start = -1;
  for (const list_winset *set = list->first; set; set = set->next) start = set->start;
  return start;
}

void window_list_pop(window_list *list) {
  list_winset *set = list->first;
  list->first = set->next;
  if (list->loaded == set) list->loaded = NULL;
  ps_counter_set(&list->windows, ps_counter_get(&list->windows) - set->windows);
  list_winset_free(set, list->functions);
}

ps_code list_winset_output(list_winset *set, const aggregates *functions, int32_t keys, const ps_type *key_types,
                           out_rows *rows, ps_fault *fault) {
  window_row *windows = memory_new((size_t)set->windows * sizeof *windows);
  if (!windows) return PS_NO_MEMORY;
  for (int64_t i = 0; i < set->windows; i++) {
    windows[i] = (window_row){set->keys[i], set->states + i * functions->state_size};
  }
  ps_code code = window_rows_put(windows, set->windows, set->start, functions, keys, key_types, rows, fault);
  memory_free(windows);
  return code;
}
