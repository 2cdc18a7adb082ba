/* fold.c - making a fold, reserving and freeing entries: see fold.h. */
#include "partials/fold.h"

#include "columns/output.h"

/* ---- making and freeing ---- */

static bool copy_types(ps_fold *f, const ps_query *query) {
  size_t size = (size_t)query->columns * sizeof *f->column_types;
  f->column_types = memory_new(size);
  if (f->column_types) memcpy(f->column_types, query->column_types, size);
  return f->column_types != NULL;
}

static bool init_columns(ps_fold *f) {
  f->column = memory_new((size_t)f->functions.n * sizeof *f->column);
  for (int32_t i = 0; f->column && i < f->functions.n; i++) {
    const aggregate *a = &f->functions.each[i];
    assert(partial_exists(a) && "no user functions here");
    f->column[i] = (fold_column){.a = a, .size = a->kernel->entry_size};
  }
  return f->column != NULL;
}

/* The columns of windows: start, keys, results. */
static bool init_rows(ps_fold *f) {
  int32_t columns = 1 + f->keys + f->functions.n;
  bool *is_bytes = memory_new((size_t)columns * sizeof *is_bytes);
  if (!is_bytes) return false;
  for (int32_t i = 1; i <= f->keys; i++) is_bytes[i] = type_is_bytes(f->column_types[i]);
  for (int32_t i = 0; i < f->functions.n; i++) is_bytes[1 + f->keys + i] = f->functions.each[i].is_bytes;
  bool ok = out_rows_init(&f->rows, columns, is_bytes);
  memory_free(is_bytes);
  return ok;
}

static bool init_keys(ps_fold *f) {
  if (!key_table_init(&f->table)) return false;
  key_cache_init(&f->cache, &f->table);
  key_numbers_init(&f->numbers, &f->cache, f->keys);
  f->keys_known = f->key_bytes = 0;
  return true;
}

static void free_keys(ps_fold *f) {
  key_numbers_free(&f->numbers);
  key_cache_free(&f->cache);
  key_table_free(&f->table);
}

static void free_entries(ps_fold *f) {
  for (int32_t i = 0; f->column && i < f->functions.n; i++) {
    fold_column *c = &f->column[i];
    partial_drop(c->a->kernel, c->states, f->n);
    memory_free_large(c->states, (size_t)c->capacity * c->size);
    c->states = NULL;
    c->capacity = 0;
  }
  memory_free(f->begin);
  memory_free(f->slice_slot);
  memory_free_large(f->entry, (size_t)f->capacity * sizeof *f->entry);
  memory_free(f->slot);
  memory_free(f->recent);
  memory_free(f->store.strings);
}

ps_code ps_fold_new(const ps_query *query, int32_t stream, int32_t position, int64_t start, ps_fold **out) {
  ps_fold *f = memory_new(sizeof *f);
  if (!f) return PS_NO_MEMORY;
  f->windows = (pane_windows){(uint64_t)query->size, (uint64_t)query->advance};
  f->reciprocal = UINT64_MAX / f->windows.advance;
  f->behind = f->windows.size % f->windows.advance;
  f->keys = query->keys;
  f->columns = query->columns;
  f->stream = stream;
  f->position = position;
  f->start_next = (uint64_t)start;
  if (!init_keys(f)) {
    memory_free(f);
    return PS_NO_MEMORY;
  }
  if (copy_types(f, query) && aggregates_init(&f->functions, query) && init_columns(f) && init_rows(f) &&
      fold_init_partials(f)) {
    *out = f;
    return PS_OK;
  }
  ps_fold_free(f);
  return PS_NO_MEMORY;
}

void ps_fold_free(ps_fold *f) {
  if (!f) return;
  combine_end(f);
  free_entries(f);
  free_keys(f);
  out_rows_free(&f->rows);
  aggregates_free(&f->functions);
  memory_free(f->column);
  memory_free(f->column_types);
  memory_free(f->partial_types);
  memory_free(f);
}

int64_t ps_fold_bytes(const ps_fold *f) {
  int64_t entries = f->capacity * (int64_t)sizeof(fold_entry);
  for (int32_t i = 0; i < f->functions.n; i++) entries += f->column[i].capacity * (int64_t)f->column[i].size;
  int64_t slots = f->slots + f->slice_slots + f->recent_capacity;
  return entries + slots * (int64_t)sizeof(uint32_t) + f->slices_capacity * (int64_t)sizeof(uint64_t) +
         f->store.capacity + f->store.wide + f->key_bytes;
}

int64_t ps_fold_entries(const ps_fold *f) { return f->n; }

int64_t ps_fold_rows(const ps_fold *f) { return f->total; }

int64_t ps_fold_keys(const ps_fold *f) { return f->keys_known; }

/* ---- room ---- */

#define SLOTS_FIRST SIZED(64, 2)

/* An empty hash table with at least `needed` slots. NULL: out of memory. */
static uint32_t *new_slots(int64_t needed, int64_t *slots) {
  int64_t wanted = *slots ? *slots : SLOTS_FIRST;
  while (wanted < needed) wanted *= 2;
  uint32_t *bigger = memory_new((size_t)wanted * sizeof *bigger);
  if (bigger) *slots = wanted;
  return bigger;
}

static void put_slice(ps_fold *f, int64_t number) {
  uint64_t i = hash_word(f->begin[number]), mask = (uint64_t)f->slice_slots - 1;
  while (f->slice_slot[i & mask]) i++;
  f->slice_slot[i & mask] = (uint32_t)number + 1;
}

static bool reserve_slices(ps_fold *f) {
  int64_t needed = f->slices + ROW_BLOCK;
  if (!memory_grow((void **)&f->begin, &f->slices_capacity, needed, sizeof *f->begin)) return false;
  if (2 * needed <= f->slice_slots) return true;
  uint32_t *bigger = new_slots(2 * needed, &f->slice_slots);
  if (!bigger) return false;
  memory_free(f->slice_slot);
  f->slice_slot = bigger;
  for (int64_t i = 0; i < f->slices; i++) put_slice(f, i);
  return true;
}

/* In large pages if there are many: entries and states are scanned often. */
static bool reserve_entries(ps_fold *f) {
  int64_t needed = f->n + ROW_BLOCK;
  bool ok = memory_grow_large((void **)&f->entry, &f->capacity, needed, sizeof *f->entry);
  for (int32_t i = 0; ok && i < f->functions.n; i++) {
    fold_column *c = &f->column[i];
    if (c->size) ok = memory_grow_large(&c->states, &c->capacity, needed, c->size);
  }
  if (!ok || f->unfolded || 2 * needed <= f->slots) return ok; /* unfolded: nothing is looked up */
  uint32_t *bigger = new_slots(2 * needed, &f->slots);
  if (!bigger) return false;
  memory_free(f->slot);
  f->slot = bigger;
  for (int64_t e = 0; e < f->indexed; e++) fold_index(f, e);
  return true;
}

/* Slice and entry numbers have 32 bits; hash tables hold them + 1. */
bool fold_reserve(ps_fold *f) {
  if (f->n > UINT32_MAX - 1 - ROW_BLOCK) return false;
  return reserve_slices(f) && reserve_entries(f);
}

/* Approximate memory of a key, in the table, its cache and the map of values. */
#define KEY_OVERHEAD ((int64_t)(sizeof(key) + 5 * sizeof(void *) + 2 * sizeof(key_entry)))

bool fold_number_keys(ps_fold *f, const batch *b) {
  if (!key_numbers_fill(&f->numbers, b)) return false;
  for (; f->keys_known < f->numbers.limit; f->keys_known++) {
    f->key_bytes += KEY_OVERHEAD + key_table_at(&f->table, (uint32_t)f->keys_known)->length;
  }
  int64_t before = f->recent_capacity;
  if (!memory_grow((void **)&f->recent, &f->recent_capacity, f->numbers.limit, sizeof *f->recent)) return false;
  if (f->recent_capacity > before) {
    memset(f->recent + before, 0, (size_t)(f->recent_capacity - before) * sizeof *f->recent);
  }
  return true;
}

ps_code fold_blocks(ps_fold *f, int64_t rows, fold_add add, void *context, ps_fault *fault) {
  ps_code code = PS_OK;
  for (int64_t row = 0, n; row < rows && code == PS_OK; row += n) {
    n = rows - row < ROW_BLOCK ? rows - row : ROW_BLOCK;
    code = fold_reserve(f) ? add(f, context, row, n, fault) : PS_NO_MEMORY;
    f->broken = code != PS_OK;
  }
  return code;
}

/* ---- freeing entries ---- */

/* What is kept: entries of the slices that are kept. */
typedef struct {
  const uint32_t *slice; /* by old number: the new number + 1; 0: freed */
  int64_t first;         /* the first entry kept; if rows are sorted, all later ones are kept too */
} staying;

static inline bool stays(const ps_fold *f, const staying *s, int64_t e) { return s->slice[f->entry[e].pair >> 32]; }

static void drop_states(ps_fold *f, const fold_column *c, int64_t from, int64_t to) {
  const kernel *k = c->a->kernel;
  if (k->entries_drop) k->entries_drop(&f->store, (uint8_t *)c->states + (size_t)from * c->size, to - from);
}

/* Moves the states of the kept entries to the front, run by run, and their strings to another store. */
static void move_states(ps_fold *f, const fold_column *c, const staying *s, kernel_store *to) {
  const kernel *k = c->a->kernel;
  uint8_t *states = c->states;
  int64_t kept = 0;
  drop_states(f, c, 0, s->first);
  for (int64_t e = s->first, from; e < f->n;) {
    for (from = e; e < f->n && stays(f, s, e); e++) continue;
    uint8_t *run = states + (size_t)from * c->size;
    if (k->entries_keep) k->entries_keep(&f->store, to, run, e - from);
    memmove(states + (size_t)kept * c->size, run, (size_t)(e - from) * c->size);
    kept += e - from;
    for (from = e; e < f->n && !stays(f, s, e); e++) continue;
    drop_states(f, c, from, e);
  }
}

static void move_entries(ps_fold *f, const staying *s) {
  int64_t kept = 0;
  f->total = 0;
  for (int64_t e = s->first; e < f->n; e++) {
    if (!stays(f, s, e)) continue;
    uint64_t pair = f->entry[e].pair, number = s->slice[pair >> 32] - 1;
    f->entry[kept++] = (fold_entry){number << 32 | (uint32_t)pair, f->entry[e].rows};
    f->total += f->entry[kept - 1].rows;
  }
  f->n = kept;
  if (f->indexed) memset(f->slot, 0, (size_t)f->slots * sizeof *f->slot);
  f->indexed = 0;
  memset(f->recent, 0, (size_t)f->recent_capacity * sizeof *f->recent);
}

/* Clears the caches of slice numbers. */
static void forget_slices(ps_fold *f) {
  f->now = (fold_slice){0};
  memset(f->near, 0, sizeof f->near);
}

/* Renumbers the kept slices; writes staying.slice. */
static void move_slices(ps_fold *f, uint64_t begin, uint32_t *slice) {
  int64_t kept = 0;
  memset(f->slice_slot, 0, (size_t)f->slice_slots * sizeof *f->slice_slot);
  for (int64_t i = 0; i < f->slices; i++) {
    if (f->begin[i] < begin) continue;
    f->begin[kept] = f->begin[i];
    put_slice(f, kept++);
    slice[i] = (uint32_t)kept;
  }
  f->slices = kept;
  forget_slices(f);
}

bool fold_drop_before(ps_fold *f, uint64_t begin) {
  bool any = false;
  for (int64_t i = 0; i < f->slices && !any; i++) any = f->begin[i] < begin;
  if (!any) return true;
  kernel_store moved = {.capacity = f->store.in_use};
  uint32_t *slice = memory_new((size_t)f->slices * sizeof *slice);
  moved.strings = memory_resize(NULL, (size_t)moved.capacity);
  if (!slice || !moved.strings) {
    memory_free(slice);
    memory_free(moved.strings);
    return false;
  }
  move_slices(f, begin, slice);
  staying s = {.slice = slice};
  while (s.first < f->n && !stays(f, &s, s.first)) s.first++;
  for (int32_t i = 0; i < f->functions.n; i++) {
    if (f->column[i].size) move_states(f, &f->column[i], &s, &moved);
  }
  move_entries(f, &s);
  memory_free(slice);
  memory_free(f->store.strings);
  moved.wide = f->store.wide;
  f->store = moved;
  return true;
}
