/* slice.c - see slice.h. */
#include "slices/slice.h"

#include "base/poison.h"

#define BLOCK SIZED(1024, 2)        /* rows: their entries and widened values, 12 KB, stay in the first-level cache */
#define CAPACITY_FIRST SIZED(64, 1) /* entries, and numbers of keys */
#define GENERATION_MAX SIZED(UINT32_MAX, 3u) /* then generations begin again */

bool slice_init(slice *s, const aggregates *functions, const partial_kind **kinds, int32_t input) {
  *s = (slice){.functions = functions, .kinds = kinds, .input = PARTIAL_INPUT + (uint64_t)input, .generation = 1};
  s->columns = memory_new((size_t)functions->n * sizeof *s->columns);
  s->copies = memory_new((size_t)functions->n * sizeof *s->copies);
  if (s->columns && s->copies) return true;
  slice_free(s);
  return false;
}

void slice_free(slice *s) {
  for (int32_t a = 0; s->columns && a < s->functions->n; a++) {
    if (s->columns[a]) partial_drop(s->kinds[a], s->columns[a], s->n);
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

static bool resize(void **array, int64_t from, int64_t to, size_t element) {
  uint8_t *bigger = memory_resize(*array, (size_t)to * element);
  if (!bigger) return false;
  memset(bigger + (size_t)from * element, 0, (size_t)(to - from) * element);
  *array = bigger;
  return true;
}

bool slice_expect(slice *s, uint32_t keys_max) {
  int64_t needed = (int64_t)keys_max + 1, capacity = s->slot_capacity ? s->slot_capacity : CAPACITY_FIRST;
  if (needed <= s->slot_capacity) return true;
  while (capacity < needed) capacity *= 2;
  if (!resize((void **)&s->slot, s->slot_capacity, capacity, sizeof *s->slot)) return false;
  s->slot_capacity = capacity;
  return true;
}

/* Room for so many entries. What has grown when memory runs out is larger than `capacity`, which does no harm. */
static bool reserve(slice *s, int64_t entries) {
  if (entries <= s->capacity) return true;
  int64_t capacity = s->capacity ? s->capacity : CAPACITY_FIRST;
  while (capacity < entries) capacity *= 2;
  bool ok = resize((void **)&s->keys, s->capacity, capacity, sizeof *s->keys) &&
            resize((void **)&s->rows, s->capacity, capacity, sizeof *s->rows);
  for (int32_t a = 0; ok && a < s->functions->n; a++) {
    if (s->kinds[a]->size) ok = resize(&s->columns[a], s->capacity, capacity, s->kinds[a]->size);
    if (ok && s->kinds[a]->is_bytes) ok = resize((void **)&s->copies[a], s->capacity, capacity, sizeof *s->copies[a]);
  }
  if (ok) s->capacity = capacity;
  return ok;
}

/* ---- fold ---- */

/* The rows of a block that count for an aggregate. */
typedef struct {
  int64_t n;
  const uint32_t *entry;
  const uint64_t *bits; /* their values: see value.h */
  const int64_t *ts;
  const uint16_t *offset; /* within the block; NULL: all rows, 0, 1, 2, ... */
} counted;

typedef struct {
  const batch *b;
  int64_t row, rows;       /* the block */
  bool fresh;              /* the slice was empty before it */
  uint32_t entry[BLOCK];   /* of each row */
  uint32_t counted[BLOCK]; /* entries of the rows that count */
  uint16_t offset[BLOCK];
  uint64_t bits[BLOCK];
  int64_t ts[BLOCK];
} block;

_Static_assert(BLOCK <= UINT16_MAX, "offsets within a block have 16 bits");

/* Makes the partials of the entries from `from` on empty. */
static void clear_entries(slice *s, int32_t a, int64_t from) {
  size_t size = s->kinds[a]->size;
  if (size) memset((uint8_t *)s->columns[a] + (size_t)from * size, 0, (size_t)(s->n - from) * size);
}

/* Finds or makes the entry of each row, without a branch on whether the key is new. */
static void find_entries(slice *s, const uint32_t *numbers, block *k) {
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
    k->entry[i] = e;
  }
  int64_t before = s->n;
  s->n = n;
  k->fresh = before == 0;
  for (int32_t a = 0; a < s->functions->n; a++) clear_entries(s, a, before);
}

/* ---- merge ---- */

static void merge_entries(slice *s, const packed *p, int64_t from, int64_t n, uint32_t *entry) {
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

static bool merge_block(slice *s, const packed *p, int64_t from, int64_t n) {
  uint32_t entry[BLOCK];
  merge_entries(s, p, from, n, entry);
  uint8_t *at = p->columns;
  for (int32_t a = 0; a < s->functions->n; a++) {
    const partial_kind *kind = s->kinds[a];
    partial_list list = packed_next(p, kind, a, &at);
    if (kind->size == 0) continue;
    list.partials = (uint8_t *)list.partials + (size_t)from * (list.plain ? sizeof(int128) : kind->size);
    list.rows = list.rows ? list.rows + from : NULL;
    list.keys = entry;
    list.n = n;
    if (!kind->enter(&(partial_totals){.total = s->columns[a]}, &list)) return false;
  }
  return true;
}

bool slice_merge(slice *s, const packed *p) {
  if (!reserve(s, s->n + p->n)) return false;
  for (int64_t from = 0; from < p->n; from += BLOCK) {
    if (!merge_block(s, p, from, p->n - from < BLOCK ? p->n - from : BLOCK)) return false;
  }
  return true;
}

/* ---- fold ---- */

/* Which rows of the block count, without a branch on it. */
static int64_t filter(const aggregate *a, block *k) {
  const column *mask = a->mask < 0 ? NULL : &k->b->columns[a->mask];
  const column *values = a->column < 0 ? NULL : &k->b->columns[a->column];
  int64_t n = 0;
  for (int64_t i = 0; i < k->rows; i++) {
    k->offset[n] = (uint16_t)i;
    bool counts = !mask || column_bool(mask, k->row + i);
    n += counts && !(values && column_is_null(values, k->row + i));
  }
  return n;
}

static void select_rows(const aggregate *a, block *k, counted *out) {
  const column *c = a->column < 0 ? NULL : &k->b->columns[a->column];
  const column *ts = &k->b->columns[0];
  *out = (counted){.n = k->rows, .entry = k->entry, .ts = (const int64_t *)ts->values + ts->first + k->row};
  if (c && !type_is_bytes(c->type)) out->bits = column_widen(c, k->row, k->rows, k->bits);
  if (a->mask < 0 && !(c && c->validity)) return;
  counted all = *out;
  *out = (counted){filter(a, k), k->counted, k->bits, k->ts, k->offset};
  for (int64_t i = 0; i < out->n; i++) {
    uint16_t from = k->offset[i]; /* at or behind i: in place is right */
    k->counted[i] = k->entry[from];
    k->ts[i] = all.ts[from];
    if (all.bits) k->bits[i] = all.bits[from];
  }
}

static void fold_count(void *partials, const counted *c) {
  int64_t *count = partials;
  for (int64_t i = 0; i < c->n; i++) count[c->entry[i]]++;
}

static void fold_integer(void *partials, const counted *c, bool is_unsigned) {
  integer_state *states = partials;
  for (int64_t i = 0; i < c->n; i++) {
    integer_state *s = &states[c->entry[i]];
    s->sum += is_unsigned ? (int128)c->bits[i] : (int128)(int64_t)c->bits[i];
    s->n++;
  }
}

static bool fold_float(void *partials, const counted *c) {
  float_state *states = partials;
  for (int64_t i = 0; i < c->n; i++) {
    float_state *s = &states[c->entry[i]];
    if (!exact_sum_add(s, bits_double(c->bits[i]))) return false;
    s->n++;
  }
  return true;
}

static void fold_least(void *partials, const counted *c, ps_type type, uint64_t flip) {
  least_partial *states = partials;
  for (int64_t i = 0; i < c->n; i++) {
    least_partial *s = &states[c->entry[i]];
    uint64_t word = value_ordered(value_canonical(c->bits[i], type), type) ^ flip;
    uint64_t least = s->present ? s->word : UINT64_MAX;
    s->word = word < least ? word : least;
    s->present = 1;
  }
}

/* In a fresh block entries are numbered as their keys are met: row by row, each entry is written until its key has
   come. No branch on that, which no processor could guess. */
static void fold_fresh_first(placed_partial *states, const counted *c, uint64_t input) {
  uint32_t next = 0;
  for (int64_t i = 0; i < c->n; i++) {
    states[next] = (placed_partial){(uint64_t)c->ts[i] + 1, input, c->bits[i]};
    next += c->entry[i] == next;
  }
}

static void fold_first(void *partials, const counted *c, uint64_t input, bool fresh) {
  placed_partial *states = partials;
  if (fresh && !c->offset) {
    fold_fresh_first(states, c, input);
    return;
  }
  for (int64_t i = 0; i < c->n; i++) {
    placed_partial *s = &states[c->entry[i]];
    if (!s->when) *s = (placed_partial){(uint64_t)c->ts[i] + 1, input, c->bits[i]};
  }
}

static void fold_last(void *partials, const counted *c, uint64_t input) {
  placed_partial *states = partials;
  for (int64_t i = 0; i < c->n; i++) {
    states[c->entry[i]] = (placed_partial){(uint64_t)c->ts[i] + 1, input, c->bits[i]};
  }
}

static int compare(bytes x, const bytes_partial *y) {
  int64_t shorter = x.length < y->length ? x.length : y->length;
  int order = shorter ? memcmp(x.data, y->data, (size_t)shorter) : 0;
  return order ? order : (x.length > y->length) - (x.length < y->length);
}

static bool replaces(ps_function function, bytes x, const bytes_partial *now) {
  if (!now->when || function == PS_LAST) return true;
  if (function == PS_FIRST) return false;
  return function == PS_MIN ? compare(x, now) < 0 : compare(x, now) > 0;
}

static void fold_bytes(void *partials, const counted *c, const aggregate *a, const block *k, uint64_t input) {
  bytes_partial *states = partials;
  assert(a->column >= 0);
  for (int64_t i = 0; i < c->n; i++) {
    bytes_partial *s = &states[c->entry[i]];
    bytes x = column_bytes(&k->b->columns[a->column], k->row + (c->offset ? c->offset[i] : i));
    if (replaces(a->function, x, s)) *s = (bytes_partial){(uint64_t)c->ts[i] + 1, input, x.data, x.length};
  }
}

/* Copies the strings that the block's entries refer to, unless they are copies already. */
static bool settle_bytes(void *partials, slice_copy *copies, const block *k) {
  bytes_partial *states = partials;
  for (int64_t i = 0; i < k->rows; i++) {
    bytes_partial *s = &states[k->entry[i]];
    slice_copy *copy = &copies[k->entry[i]];
    if (!s->when || (copy->data && s->data == copy->data)) continue;
    if (!memory_grow((void **)&copy->data, &copy->capacity, s->length + 1, 1)) return false;
    if (s->length) memcpy(copy->data, s->data, (size_t)s->length);
    s->data = copy->data;
  }
  return true;
}

static bool fold_aggregate(slice *s, int32_t which, block *k, bool settle) {
  const aggregate *a = &s->functions->each[which];
  void *partials = s->columns[which];
  counted c;
  select_rows(a, k, &c);
  if (s->kinds[which]->is_bytes) {
    fold_bytes(partials, &c, a, k, s->input);
    return !settle || settle_bytes(partials, s->copies[which], k);
  }
  if (a->function == PS_COUNT) {
    fold_count(partials, &c);
    return true;
  }
  assert(c.bits && "all other functions have a column");
  if (a->function == PS_SUM || a->function == PS_AVG) {
    if (type_is_float(a->type)) return fold_float(partials, &c);
    fold_integer(partials, &c, type_is_unsigned(a->type));
  } else if (a->function == PS_FIRST) {
    fold_first(partials, &c, s->input, k->fresh);
  } else if (a->function == PS_LAST) {
    fold_last(partials, &c, s->input);
  } else {
    fold_least(partials, &c, a->type, a->function == PS_MAX ? UINT64_MAX : 0);
  }
  return true;
}

bool slice_fold(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, bool settle) {
  block k; /* not cleared: most slices are far shorter than a block */
  k.b = b;
  for (k.row = from; k.row < to; k.row += k.rows) {
    k.rows = to - k.row < BLOCK ? to - k.row : BLOCK;
    if (!reserve(s, s->n + k.rows)) return false;
    find_entries(s, numbers + k.row, &k);
    for (int32_t a = 0; a < s->functions->n; a++) {
      if (s->kinds[a]->size && !fold_aggregate(s, a, &k, settle)) return false;
    }
  }
  return true;
}

/* Another slice begins. */
static void next_generation(slice *s) {
  if (s->generation++ < GENERATION_MAX) return;
  memset(s->slot, 0, (size_t)s->slot_capacity * sizeof *s->slot); /* the slots of long ago would be right again */
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

/* ---- pack ---- */

static int64_t bytes_total(const slice *s, int32_t a) {
  const bytes_partial *states = s->columns[a];
  int64_t total = 0;
  for (int64_t i = 0; i < s->n; i++) total += states[i].length;
  return total;
}

static bool any_wide(const float_state *states, int64_t n) {
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= states[i].wide != NULL;
  return any;
}

static bool is_plain(const slice *s, int32_t a) {
  if (!s->kinds[a]->sums || a >= PACKED_PLAIN_MAX) return false;
  bool plain = true;
  if (s->kinds[a]->owns) {
    const float_state *f = s->columns[a];
    for (int64_t i = 0; i < s->n; i++) plain &= (f[i].n == s->rows[i]) & (f[i].wide == NULL);
  } else {
    const integer_state *f = s->columns[a];
    for (int64_t i = 0; i < s->n; i++) plain &= f[i].n == s->rows[i];
  }
  return plain;
}

size_t packed_size(const aggregates *functions, const partial_kind *const *kinds, int64_t n, uint64_t plain) {
  size_t size = packed_round((size_t)n * sizeof(uint32_t)) + packed_round((size_t)n * sizeof(int64_t));
  for (int32_t a = 0; a < functions->n; a++) size += packed_column_size(kinds[a], n, packed_is_plain(plain, a));
  return size;
}

size_t slice_packed_size(const slice *s, uint64_t *plain) {
  size_t strings = 0;
  *plain = 0;
  for (int32_t a = 0; a < s->functions->n; a++) {
    if (is_plain(s, a)) *plain |= UINT64_C(1) << a;
    if (s->kinds[a]->is_bytes) strings += packed_round((size_t)bytes_total(s, a));
  }
  return packed_size(s->functions, s->kinds, s->n, *plain) + strings;
}

/* Copies the strings behind the columns. */
static uint8_t *pack_bytes(bytes_partial *states, int64_t n, uint8_t *to) {
  for (int64_t i = 0; i < n; i++) {
    if (states[i].length) memcpy(to, states[i].data, (size_t)states[i].length);
    states[i].data = to;
    to += states[i].length;
  }
  return to;
}

static void pack_plain(const slice *s, int32_t a, int128 *to) {
  const integer_state *integers = s->columns[a];
  const float_state *floats = s->columns[a];
  if (s->kinds[a]->owns) {
    for (int64_t i = 0; i < s->n; i++) to[i] = floats[i].narrow;
  } else {
    for (int64_t i = 0; i < s->n; i++) to[i] = integers[i].sum;
  }
}

void slice_pack_copy(const slice *s, void *place, uint64_t plain, bool *owns) {
  packed p = packed_view(place, s->n, plain, false);
  *owns = false;
  if (s->n == 0) return;
  memcpy(p.keys, s->keys, (size_t)s->n * sizeof *p.keys);
  memcpy(p.rows, s->rows, (size_t)s->n * sizeof *p.rows);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < s->functions->n; a++) {
    partial_list list = packed_next(&p, s->kinds[a], a, &at);
    if (list.plain) {
      pack_plain(s, a, list.partials);
    } else if (s->kinds[a]->size) {
      memcpy(list.partials, s->columns[a], (size_t)s->n * s->kinds[a]->size);
      if (s->kinds[a]->owns) *owns |= any_wide(list.partials, s->n);
    }
  }
  uint8_t *again = p.columns;
  for (int32_t a = 0; a < s->functions->n; a++) {
    partial_list list = packed_next(&p, s->kinds[a], a, &again);
    if (s->kinds[a]->is_bytes) at = pack_bytes(list.partials, s->n, at);
  }
}

/* What is in the entries now is read by nobody. */
static void entries_freed(slice *s) {
  poison_freed(s->keys, (size_t)s->n * sizeof *s->keys);
  poison_freed(s->rows, (size_t)s->n * sizeof *s->rows);
  for (int32_t a = 0; a < s->functions->n; a++) {
    if (s->kinds[a]->size) poison_freed(s->columns[a], (size_t)s->n * s->kinds[a]->size);
  }
}

void slice_pack(slice *s, void *place, uint64_t plain, bool *owns) {
  slice_pack_copy(s, place, plain, owns);
  entries_freed(s);
  s->n = 0;
  next_generation(s);
}
