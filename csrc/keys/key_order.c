/* key_order.c - see key_order.h. */
#include "keys/key_order.h"

bool key_order_init(key_order *r, const key_table *table, int32_t keys, const ps_type *types) {
  *r = (key_order){.table = table, .columns = keys};
  r->column = memory_new((size_t)keys * sizeof *r->column);
  if (!r->column) return false;
  for (int32_t i = 0; i < keys; i++) r->column[i].type = types[i];
  return true;
}

void key_order_free(key_order *r) {
  for (int32_t i = 0; r->column && i < r->columns; i++) {
    memory_free(r->column[i].bits);
    memory_free(r->column[i].parts);
    memory_free(r->column[i].nulls);
  }
  memory_free(r->column);
  memory_free(r->entry);
  memory_free(r->order);
  memory_free(r->scratch);
  memory_free(r->live);
}

static bool column_expect(key_order_column *c, int64_t from, int64_t to) {
  if (type_is_bytes(c->type)) return memory_extend((void **)&c->parts, from, to, sizeof *c->parts);
  return memory_extend((void **)&c->bits, from, to, sizeof *c->bits) &&
         (!c->nulls || memory_extend((void **)&c->nulls, from, to, sizeof *c->nulls));
}

bool key_order_expect(key_order *r, int64_t limit) {
  if (limit <= r->capacity) return true;
  int64_t capacity = r->capacity ? r->capacity : SIZED(64, 1);
  while (capacity < limit) capacity *= 2;
  if (!memory_extend((void **)&r->entry, r->capacity, capacity, sizeof *r->entry)) return false;
  for (int32_t i = 0; i < r->columns; i++) {
    if (!column_expect(&r->column[i], r->capacity, capacity)) return false;
  }
  r->capacity = capacity;
  return true;
}

/* ---- listing ---- */

/* Nulls sort last; where prefixes are equal the whole keys decide. */
static uint64_t prefix_of(const key *k) {
  if (k->length == 0) return 0;
  if (k->data[0]) return UINT64_MAX;
  uint64_t prefix = 0;
  for (int64_t i = 1; i <= 8; i++) prefix = prefix << 8 | (i < k->length ? k->data[i] : 0);
  return prefix;
}

static bool load(key_order *r, uint32_t number) {
  const key *k = key_table_at(r->table, number);
  const uint8_t *at = k->data;
  for (int32_t i = 0; i < r->columns; i++) {
    key_order_column *c = &r->column[i];
    key_part part;
    at = key_decode(at, c->type, &part);
    if (type_is_bytes(c->type)) {
      c->parts[number] = part;
      continue;
    }
    c->bits[number] = part.bits;
    if (part.null && !c->nulls) c->nulls = memory_new((size_t)r->capacity);
    if (part.null && !c->nulls) return false;
    if (c->nulls) c->nulls[number] = part.null; /* the number may have been another key's */
  }
  r->entry[number].prefix = prefix_of(k);
  return true;
}

bool key_order_list(key_order *r, const uint32_t *keys, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    key_order_entry *e = &r->entry[keys[i]];
    if (__builtin_expect(e->listed, 1)) continue;
    if (!memory_grow((void **)&r->order, &r->order_capacity, r->length + 1, sizeof *r->order)) return false;
    if (!load(r, keys[i])) return false;
    e->listed = true;
    r->order[r->length++] = keys[i];
  }
  return true;
}

/* ---- order ---- */

static inline bool before(const key_order *r, uint32_t a, uint32_t b) {
  uint64_t x = r->entry[a].prefix, y = r->entry[b].prefix;
  if (x != y) return x < y;
  return key_compare(key_table_at(r->table, a), key_table_at(r->table, b)) < 0;
}

/* Merges from[a, b) and from[b, c) into to[a, c). */
static void merge(const key_order *r, const uint32_t *from, int64_t a, int64_t b, int64_t c, uint32_t *to) {
  int64_t i = a, j = b;
  for (int64_t k = a; k < c; k++) to[k] = j == c || (i < b && before(r, from[i], from[j])) ? from[i++] : from[j++];
}

/* Sorts order[from, length) by merging runs of 1, 2, 4, ... */
static void sort_new(key_order *r, int64_t from) {
  uint32_t *here = r->order, *there = r->scratch;
  for (int64_t run = 1; run < r->length - from; run *= 2) {
    for (int64_t a = from; a < r->length; a += 2 * run) {
      int64_t b = a + run < r->length ? a + run : r->length, c = b + run < r->length ? b + run : r->length;
      merge(r, here, a, b, c, there);
    }
    uint32_t *other = here;
    here = there;
    there = other;
  }
  if (here != r->order) memcpy(r->order + from, here + from, (size_t)(r->length - from) * sizeof *here);
}

static bool sort_in(key_order *r) {
  if (!memory_grow((void **)&r->scratch, &r->scratch_capacity, r->order_capacity, sizeof *r->scratch)) return false;
  sort_new(r, r->sorted);
  if (r->sorted && before(r, r->order[r->sorted], r->order[r->sorted - 1])) {
    merge(r, r->order, 0, r->sorted, r->length, r->scratch);
    memcpy(r->order, r->scratch, (size_t)r->length * sizeof *r->order);
  }
  r->sorted = r->length;
  return true;
}

/* Removes the keys without rows from the list. */
static void strike(key_order *r, int64_t live) {
  for (int64_t i = 0; i < r->length; i++) r->entry[r->order[i]].listed = false;
  for (int64_t i = 0; i < live; i++) r->entry[r->live[i]].listed = true;
  memcpy(r->order, r->live, (size_t)live * sizeof *r->order);
  r->sorted = r->length = live;
}

int64_t key_order_live(key_order *r, const int64_t *rows) {
  if (r->sorted < r->length && !sort_in(r)) return -1;
  if (!memory_grow((void **)&r->live, &r->live_capacity, r->order_capacity, sizeof *r->live)) return -1;
  int64_t n = 0;
  for (int64_t i = 0; i < r->length; i++) {
    r->live[n] = r->order[i];
    n += rows[r->order[i]] != 0;
  }
  if (n < r->length / 2) strike(r, n);
  return n;
}

/* ---- output ---- */

static bool put_values(const key_order *r, const key_order_column *c, int64_t live, bool again, out_rows *rows,
                       int32_t to) {
  uint64_t *out = out_reserve(rows, to, live);
  if (!out) return false;
  if (again) memcpy(out, out - live, (size_t)live * sizeof *out);
  for (int64_t i = 0; !again && i < live; i++) out[i] = c->bits[r->live[i]];
  for (int64_t i = 0; c->nulls && i < live; i++) {
    if (c->nulls[r->live[i]] && !out_put_null_at(rows, to, i)) return false;
  }
  return true;
}

static bool put_strings(const key_order *r, const key_order_column *c, int64_t live, out_rows *rows, int32_t to) {
  for (int64_t i = 0; i < live; i++) {
    const key_part *part = &c->parts[r->live[i]];
    uint8_t *space = out_put_space_at(rows, to, i, part->length);
    if (!space || (part->null && !out_put_null_at(rows, to, i))) return false;
    key_unescape(part, space);
  }
  return true;
}

bool key_order_put(const key_order *r, int64_t live, bool again, out_rows *rows) {
  for (int32_t i = 0; i < r->columns; i++) {
    const key_order_column *c = &r->column[i];
    bool ok =
        type_is_bytes(c->type) ? put_strings(r, c, live, rows, 1 + i) : put_values(r, c, live, again, rows, 1 + i);
    if (!ok) return false;
  }
  return true;
}
