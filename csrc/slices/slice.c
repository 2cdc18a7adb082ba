/* slice.c - see slice.h. */
#include "slices/slice.h"

#include "base/poison.h"

#define CAPACITY_FIRST SIZED(64, 1)          /* entries, and numbers of keys */
#define GENERATION_MAX SIZED(UINT32_MAX, 3u) /* then generations restart at 1 */

bool slice_init(slice *s, const aggregates *functions, int32_t input) {
  *s = (slice){.functions = functions, .input = PARTIAL_INPUT + (uint64_t)input, .generation = 1};
  s->columns = memory_new((size_t)functions->n * sizeof *s->columns);
  s->copies = memory_new((size_t)functions->n * sizeof *s->copies);
  if (s->columns && s->copies) return true;
  slice_free(s);
  return false;
}

void slice_free(slice *s) {
  for (int32_t a = 0; s->columns && a < s->functions->n; a++) {
    if (s->columns[a]) partial_drop(kernel_at(s->functions, a), s->columns[a], s->n);
    memory_free(s->columns[a]);
  }
  for (int32_t a = 0; s->copies && a < s->functions->n; a++) {
    for (int64_t i = 0; s->copies[a] && i < s->capacity; i++) memory_free(s->copies[a][i].data);
    memory_free(s->copies[a]);
  }
  memory_free(s->columns);
  memory_free(s->copies);
  memory_free(s->keys);
  memory_free(s->rows);
  memory_free(s->slot);
}

bool slice_expect(slice *s, uint32_t keys_max) {
  int64_t needed = (int64_t)keys_max + 1, capacity = s->slot_capacity ? s->slot_capacity : CAPACITY_FIRST;
  if (needed <= s->slot_capacity) return true;
  while (capacity < needed) capacity *= 2;
  if (!memory_extend((void **)&s->slot, s->slot_capacity, capacity, sizeof *s->slot)) return false;
  s->slot_capacity = capacity;
  return true;
}

/* Makes room for n entries. If it fails, some arrays are already larger than `capacity`, which is harmless. */
static bool reserve(slice *s, int64_t entries) {
  if (entries <= s->capacity) return true;
  int64_t capacity = s->capacity ? s->capacity : CAPACITY_FIRST;
  while (capacity < entries) capacity *= 2;
  bool ok = memory_extend((void **)&s->keys, s->capacity, capacity, sizeof *s->keys) &&
            memory_extend((void **)&s->rows, s->capacity, capacity, sizeof *s->rows);
  for (int32_t a = 0; ok && a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (kind->size) ok = memory_extend(&s->columns[a], s->capacity, capacity, kind->size);
    if (ok && kind->is_bytes) ok = memory_extend((void **)&s->copies[a], s->capacity, capacity, sizeof *s->copies[a]);
  }
  if (ok) s->capacity = capacity;
  return ok;
}

/* ---- entries ---- */

/* Clears the partials of the entries from `from` on. */
static void clear_entries(slice *s, int32_t a, int64_t from) {
  size_t size = kernel_at(s->functions, a)->size;
  if (size) memset((uint8_t *)s->columns[a] + (size_t)from * size, 0, (size_t)(s->n - from) * size);
}

/* Finds or makes the entry of each row, without a branch on whether the key is new: that is hard to predict. */
static void find_entries(slice *s, const uint32_t *numbers, row_block *k) {
  uint64_t *slot = s->slot, generation = (uint64_t)s->generation << 32;
  uint32_t *keys = s->keys, n = (uint32_t)s->n;
  int64_t *rows = s->rows;
  for (int64_t i = 0; i < k->rows; i++) {
    uint32_t number = numbers[i];
    uint64_t found = slot[number] ^ generation;
    uint32_t fresh = found >> 32 != 0, e = fresh ? n : (uint32_t)found;
    slot[number] = generation | e;
    keys[e] = number;
    rows[e] = (rows[e] & ((int64_t)fresh - 1)) + 1; /* a mask: 0 if fresh */
    n += fresh;
    k->all.entry[i] = e;
  }
  int64_t before = s->n;
  s->n = n;
  k->all.n = k->rows;
  k->fresh = before == 0;
  for (int32_t a = 0; a < s->functions->n; a++) clear_entries(s, a, before);
}

/* ---- merge ---- */

static void merge_entries(slice *s, const flat_slice *p, int64_t from, int64_t n, uint32_t *entry) {
  uint64_t *slot = s->slot, generation = (uint64_t)s->generation << 32;
  int64_t before = s->n;
  for (int64_t i = 0; i < n; i++) {
    uint32_t number = p->keys[from + i];
    uint64_t found = slot[number] ^ generation;
    bool fresh = found >> 32 != 0;
    uint32_t e = fresh ? (uint32_t)s->n : (uint32_t)found;
    if (fresh) {
      slot[number] = generation | e;
      s->keys[e] = number;
      s->rows[e] = 0;
      s->n++;
    }
    s->rows[e] += p->rows ? p->rows[from + i] : 1;
    entry[i] = e;
  }
  for (int32_t a = 0; a < s->functions->n; a++) clear_entries(s, a, before);
}

static bool merge_block(slice *s, const flat_slice *p, int64_t from, int64_t n) {
  uint32_t entry[ROW_BLOCK];
  merge_entries(s, p, from, n, entry);
  uint8_t *at = p->columns;
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    partial_list list = flat_next(p, s->functions, a, &at);
    if (kind->size == 0) continue;
    list.partials = (uint8_t *)list.partials + (size_t)from * (list.plain ? sizeof(int128) : kind->size);
    list.rows = list.rows ? list.rows + from : NULL;
    list.keys = entry;
    list.n = n;
    if (!kind->enter(&(partial_totals){.total = s->columns[a]}, &list)) return false;
  }
  return true;
}

bool slice_merge(slice *s, const flat_slice *p) {
  if (!reserve(s, s->n + p->n)) return false;
  for (int64_t from = 0; from < p->n; from += ROW_BLOCK) {
    if (!merge_block(s, p, from, p->n - from < ROW_BLOCK ? p->n - from : ROW_BLOCK)) return false;
  }
  return true;
}

/* ---- fold ---- */

static bool fold_aggregate(slice *s, int32_t which, row_block *k, bool settle) {
  const aggregate *a = &s->functions->each[which];
  kernel_store none = {0}; /* strings stay in the batch; wide sums are not counted */
  counted_rows c = row_block_count(a, k);
  kernel_target to = {.a = a, .states = s->columns[which], .store = &none};
  if (a->kernel->fold(&to, &c) != PS_OK) return false;
  return !settle || !a->kernel->settle || a->kernel->settle(s->columns[which], s->copies[which], &k->all);
}

bool slice_fold(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, bool settle) {
  row_block k;
  k.b = b;
  k.input = s->input;
  for (k.row = from; k.row < to; k.row += k.rows) {
    k.rows = to - k.row < ROW_BLOCK ? to - k.row : ROW_BLOCK;
    k.ts = column_integers(&b->columns[0], k.row);
    if (!reserve(s, s->n + k.rows)) return false;
    find_entries(s, numbers + k.row, &k);
    for (int32_t a = 0; a < s->functions->n; a++) {
      if (kernel_at(s->functions, a)->size && !fold_aggregate(s, a, &k, settle)) return false;
    }
  }
  return true;
}

/* Empties all slots. */
static void next_generation(slice *s) {
  if (s->generation++ < GENERATION_MAX) return;
  memset(s->slot, 0, (size_t)s->slot_capacity * sizeof *s->slot); /* a reused number would make old slots valid */
  s->generation = 1;
}

int64_t slice_find_first(slice *s, const uint32_t *numbers, int64_t n, uint16_t *row) {
  if (!reserve(s, n)) return -1;
  uint64_t *slot = s->slot, generation = (uint64_t)s->generation << 32;
  uint32_t *keys = s->keys, met = 0;
  int64_t *rows = s->rows;
  for (int64_t i = 0; i < n; i++) { /* as in find_entries */
    uint32_t number = numbers[i];
    uint64_t found = slot[number] ^ generation;
    uint32_t fresh = found >> 32 != 0, e = fresh ? met : (uint32_t)found;
    slot[number] = generation | e;
    keys[e] = number;
    rows[e] = (rows[e] & ((int64_t)fresh - 1)) + 1;
    row[met] = (uint16_t)i;
    met += fresh;
  }
  next_generation(s);
  return met;
}

/* ---- flatten ---- */

static bool is_plain(const slice *s, int32_t a) {
  const kernel *kind = kernel_at(s->functions, a);
  return kind->sums && a < FLAT_PLAIN_MAX && kind->is_plain(s->columns[a], s->rows, s->n);
}

size_t flat_size(const aggregates *functions, int64_t n, uint64_t plain) {
  size_t size = flat_round((size_t)n * sizeof(uint32_t)) + flat_round((size_t)n * sizeof(int64_t));
  for (int32_t a = 0; a < functions->n; a++)
    size += flat_column_size(kernel_at(functions, a), n, flat_is_plain(plain, a));
  return size;
}

size_t slice_flat_size(const slice *s, uint64_t *plain) {
  size_t strings = 0;
  *plain = 0;
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (is_plain(s, a)) *plain |= UINT64_C(1) << a;
    if (kind->is_bytes) strings += flat_round((size_t)kind->length(s->columns[a], s->n));
  }
  return flat_size(s->functions, s->n, *plain) + strings;
}

void slice_flatten_copy(const slice *s, void *place, uint64_t plain, bool *owns) {
  flat_slice p = flat_view(place, s->n, plain, false);
  *owns = false;
  if (s->n == 0) return;
  memcpy(p.keys, s->keys, (size_t)s->n * sizeof *p.keys);
  memcpy(p.rows, s->rows, (size_t)s->n * sizeof *p.rows);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    partial_list list = flat_next(&p, s->functions, a, &at);
    if (list.plain) {
      kind->flatten_plain(s->columns[a], s->n, list.partials);
    } else if (kind->size) {
      memcpy(list.partials, s->columns[a], (size_t)s->n * kind->size);
      if (kind->owns) *owns |= kind->holds(list.partials, s->n);
    }
  }
  uint8_t *again = p.columns; /* strings follow the columns */
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    partial_list list = flat_next(&p, s->functions, a, &again);
    if (kind->is_bytes) at = kind->flatten(list.partials, s->n, at);
  }
}

/* Marks the entries as freed, for sanitizers. */
static void entries_freed(slice *s) {
  poison_freed(s->keys, (size_t)s->n * sizeof *s->keys);
  poison_freed(s->rows, (size_t)s->n * sizeof *s->rows);
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (kind->size) poison_freed(s->columns[a], (size_t)s->n * kind->size);
  }
}

void slice_flatten(slice *s, void *place, uint64_t plain, bool *owns) {
  slice_flatten_copy(s, place, plain, owns);
  entries_freed(s);
  s->n = 0;
  next_generation(s);
}
