/* key.c - see key.h. */
#include "keys/key.h"

#include "columns/batch.h"
#include "base/hash.h"
#include "base/poison.h"

/* ---- the encoding ---- */

static uint8_t *put_bits(uint8_t *to, uint64_t bits) {
  for (int shift = 56; shift >= 0; shift -= 8) *to++ = (uint8_t)(bits >> shift);
  return to;
}

static uint8_t *put_bytes(uint8_t *to, bytes b) {
  for (int64_t i = 0; i < b.length; i++) {
    *to++ = b.data[i];
    if (b.data[i] == 0) *to++ = 0xff;
  }
  *to++ = 0;
  *to++ = 0;
  return to;
}

/* Upper bound of the bytes of the row's key. */
static int64_t encoded_bound(const batch *b, int32_t keys, int64_t row) {
  int64_t bound = 0;
  for (int32_t i = 1; i <= keys; i++) {
    const column *c = &b->columns[i];
    bound += type_is_bytes(c->type) ? 3 : 9;
    if (type_is_bytes(c->type) && !column_is_null(c, row)) bound += 2 * column_bytes(c, row).length;
  }
  return bound;
}

static int64_t encode(const batch *b, int32_t keys, int64_t row, uint8_t *start) {
  uint8_t *to = start;
  for (int32_t i = 1; i <= keys; i++) {
    const column *c = &b->columns[i];
    bool null = column_is_null(c, row);
    *to++ = null;
    if (null) continue;
    to = type_is_bytes(c->type) ? put_bytes(to, column_bytes(c, row))
                                : put_bits(to, value_key(column_bits(c, row), c->type));
  }
  return to - start;
}

const uint8_t *key_decode(const uint8_t *at, ps_type type, key_part *out) {
  *out = (key_part){.null = *at++ == 1};
  if (out->null) return at;
  if (!type_is_bytes(type)) {
    for (int i = 0; i < 8; i++) out->bits = out->bits << 8 | *at++;
    out->bits = value_unordered(out->bits, type);
    return at;
  }
  out->data = at;
  for (; at[0] != 0 || at[1] != 0; at++) {
    out->length++;
    if (at[0] == 0) at++;
  }
  out->escaped = at - out->data != out->length;
  return at + 2;
}

void key_unescape(const key_part *part, uint8_t *to) {
  const uint8_t *at = part->data;
  if (!part->escaped && part->length) memcpy(to, at, (size_t)part->length);
  for (int64_t i = 0; part->escaped && i < part->length; i++) {
    to[i] = *at++;
    if (to[i] == 0) at++;
  }
}

int key_compare(const key *a, const key *b) {
  int64_t shorter = a->length < b->length ? a->length : b->length;
  int order = memcmp(a->data, b->data, (size_t)shorter);
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* ---- sets ---- */

/* The slot that holds the key, or the empty one where it belongs. */
static int64_t key_set_slot(const key_set *s, uint64_t hash, const uint8_t *data, int64_t length) {
  int64_t mask = s->capacity - 1, i = (int64_t)hash & mask;
  for (;; i = (i + 1) & mask) {
    const key *k = s->slots[i];
    if (!k) return i;
    if (k->hash != hash || k->length != length) continue;
    if (length == 0 || memcmp(k->data, data, (size_t)length) == 0) return i; /* the empty key has no bytes at all */
  }
}

#define SET_FIRST SIZED(64, 2) /* slots */

/* Makes room for one more. */
static bool key_set_reserve(key_set *s) {
  if (2 * (s->used + 1) <= s->capacity) return true;
  key_set bigger = {.capacity = s->capacity ? 2 * s->capacity : SET_FIRST};
  bigger.slots = memory_new((size_t)bigger.capacity * sizeof *bigger.slots);
  if (!bigger.slots) return false;
  for (int64_t i = 0; i < s->capacity; i++) {
    key *k = s->slots[i];
    if (k) bigger.slots[key_set_slot(&bigger, k->hash, k->data, k->length)] = k;
  }
  bigger.used = s->used;
  memory_free(s->slots);
  *s = bigger;
  return true;
}

/* Removes the key in this slot; moves up later keys that it had displaced. */
static void key_set_remove(key_set *s, int64_t slot) {
  int64_t mask = s->capacity - 1, hole = slot;
  for (int64_t i = (hole + 1) & mask; s->slots[i]; i = (i + 1) & mask) {
    int64_t home = (int64_t)s->slots[i]->hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue; /* its home is after the hole */
    s->slots[hole] = s->slots[i];
    hole = i;
  }
  s->slots[hole] = NULL;
  s->used--;
}

/* ---- storage of keys ---- */

#define STAMP_MAX SIZED(UINT8_MAX, 1)
#define SHELF_FIRST ((size_t)SIZED(512, KEY_WORDS_MAX * KEY_WORD))
#define SHELF_MAX ((size_t)SIZED(1 << 20, KEY_WORDS_MAX * KEY_WORD))

_Static_assert(SHELF_FIRST >= KEY_WORDS_MAX * KEY_WORD, "what is not a block of its own fits on any shelf");
_Static_assert(sizeof(key) >= sizeof(key_hole), "every key leaves room for a hole");

/* Makes room on the shelf for a key of `taken` bytes. */
static bool key_shelf_reserve(key_table *t, size_t taken) {
  size_t size = !t->shelf ? SHELF_FIRST : t->shelf->size < SHELF_MAX ? 2 * t->shelf->size : SHELF_MAX;
  if (t->shelf && t->shelf->size - t->shelf->used >= taken) return true;
  key_shelf *shelf = memory_resize(NULL, sizeof *shelf + size);
  if (!shelf) return false;
  *shelf = (key_shelf){.next = t->shelf, .size = size};
  t->shelf = shelf;
  return true;
}

static size_t key_words(int64_t length) { return (sizeof(key) + (size_t)length + KEY_WORD - 1) / KEY_WORD; }

/* Space for a key of `words` words: a hole, the end of the shelf, or an allocation of its own. NULL: out of memory. */
static void *key_place(key_table *t, size_t words) {
  if (words > KEY_WORDS_MAX) return memory_resize(NULL, words * KEY_WORD);
  key_hole *hole = t->hole[words];
  if (hole) {
    t->hole[words] = hole->next;
    poison_unset(hole, words * KEY_WORD);
    return hole;
  }
  if (!key_shelf_reserve(t, words * KEY_WORD)) return NULL;
  void *place = &t->shelf->room[t->shelf->used / KEY_WORD];
  t->shelf->used += words * KEY_WORD;
  return place;
}

static void key_leave(key_table *t, key *k) {
  size_t words = key_words(k->length);
  if (words > KEY_WORDS_MAX) {
    memory_free(k);
    return;
  }
  key_hole *hole = (key_hole *)(void *)k;
  poison_freed(k, words * KEY_WORD);
  hole->next = t->hole[words];
  t->hole[words] = hole;
}

/* ---- the operator's table and an input's cache ---- */

bool key_table_init(key_table *t) {
  *t = (key_table){0};
  return pthread_mutex_init(&t->lock, NULL) == 0;
}

/* Where the table stores the key of this number. */
static key **number_place(const key_table *t, int64_t number) {
  uint64_t n = (uint64_t)number + KEY_BLOCK_FIRST;
  int top = 63 - __builtin_clzll(n);
  return &t->block[top - __builtin_ctz(KEY_BLOCK_FIRST)][n - (UINT64_C(1) << top)];
}

void key_table_free(key_table *t) {
  for (int64_t i = 0; i < t->numbers; i++) {
    key *k = *number_place(t, i);
    if (k && key_words(k->length) > KEY_WORDS_MAX) memory_free(k);
  }
  for (key_shelf *shelf = t->shelf, *next; shelf; shelf = next) {
    next = shelf->next;
    memory_free(shelf);
  }
  for (int i = 0; i < KEY_BLOCKS; i++) memory_free(t->block[i]);
  memory_free(t->set.slots);
  memory_free(t->spare);
  pthread_mutex_destroy(&t->lock);
}

/* Makes room for the next number, if none is free. False: out of memory, or out of numbers. */
static bool number_reserve(key_table *t) {
  if (t->spares) return true;
  if (t->numbers >= KEY_NUMBERS_MAX) return false;
  int top = 63 - __builtin_clzll((uint64_t)t->numbers + KEY_BLOCK_FIRST), i = top - __builtin_ctz(KEY_BLOCK_FIRST);
  if (!t->block[i]) t->block[i] = memory_new(sizeof(key *) << top);
  return t->block[i] != NULL;
}

/* A key that is not in the set. NULL: out of memory. */
static key *key_new(key_table *t, uint64_t hash, const uint8_t *data, int64_t length) {
  key *k = number_reserve(t) ? key_place(t, key_words(length)) : NULL;
  if (!k) return NULL;
  k->hash = hash;
  k->length = length;
  k->number = t->spares ? t->spare[--t->spares] : (uint32_t)t->numbers++;
  if (length) memcpy(k->data, data, (size_t)length);
  *number_place(t, k->number) = k;
  ps_counter_set(&t->known, ++t->set.used);
  return k;
}

/* Stamp of the current sweep. A stamp repeats after STAMP_MAX + 1 sweeps; then a key lives one sweep longer. */
static uint8_t sweep_stamp(const key_table *t) { return (uint8_t)(t->sweep & STAMP_MAX); }

static key *key_table_intern(key_table *t, uint64_t hash, const uint8_t *data, int64_t length) {
  key *k = NULL;
  pthread_mutex_lock(&t->lock);
  if (key_set_reserve(&t->set)) {
    int64_t slot = key_set_slot(&t->set, hash, data, length);
    if (!t->set.slots[slot]) t->set.slots[slot] = key_new(t, hash, data, length);
    k = t->set.slots[slot];
    if (k) k->sweep = sweep_stamp(t);
  }
  pthread_mutex_unlock(&t->lock);
  return k;
}

const key *key_table_key(key_table *t, const uint8_t *data, int64_t length) {
  return key_table_intern(t, hash_bytes(data, length), data, length);
}

int64_t key_table_begin_sweep(key_table *t) {
  pthread_mutex_lock(&t->lock);
  t->sweep++;
  int64_t end = t->numbers;
  pthread_mutex_unlock(&t->lock);
  return end;
}

/* False: out of memory, the key stays. */
static bool key_free(key_table *t, key *k) {
  if (!memory_grow((void **)&t->spare, &t->spare_capacity, t->spares + 1, sizeof *t->spare)) return false;
  t->spare[t->spares++] = k->number;
  *number_place(t, k->number) = NULL;
  key_set_remove(&t->set, key_set_slot(&t->set, k->hash, k->data, k->length));
  key_leave(t, k);
  return true;
}

int64_t key_table_free_unmet(key_table *t, const uint32_t *numbers, int64_t n) {
  pthread_mutex_lock(&t->lock);
  int64_t before = t->set.used;
  for (int64_t i = 0; i < n; i++) {
    key *k = *number_place(t, numbers[i]);
    if (k && k->sweep != sweep_stamp(t) && !key_free(t, k)) break;
  }
  int64_t went = before - t->set.used;
  ps_counter_set(&t->known, t->set.used);
  pthread_mutex_unlock(&t->lock);
  return went;
}

void key_cache_init(key_cache *c, key_table *t) { *c = (key_cache){.table = t}; }

void key_cache_free(key_cache *c) {
  memory_free(c->set.slots);
  memory_free(c->scratch);
}

void key_cache_forget(key_cache *c) {
  memory_free(c->set.slots);
  c->set = (key_set){0};
}

static const key *key_cache_find(key_cache *c, const uint8_t *data, int64_t length) {
  if (!key_set_reserve(&c->set)) return NULL;
  uint64_t hash = hash_bytes(data, length);
  int64_t slot = key_set_slot(&c->set, hash, data, length);
  if (!c->set.slots[slot]) {
    key *k = key_table_intern(c->table, hash, data, length);
    if (!k) return NULL;
    c->set.slots[slot] = k;
    c->set.used++;
  }
  return c->set.slots[slot];
}

/* Encodes the row's key into the scratch space and returns its length. -1: out of memory. */
static int64_t encode_row(key_cache *c, const batch *b, int32_t keys, int64_t row) {
  int64_t bound = encoded_bound(b, keys, row);
  if (!memory_grow((void **)&c->scratch, &c->scratch_capacity, bound, 1)) return -1;
  return encode(b, keys, row, c->scratch);
}

const key *key_cache_row(key_cache *c, const batch *b, int32_t keys, int64_t row) {
  int64_t length = encode_row(c, b, keys, row);
  return length < 0 ? NULL : key_cache_find(c, c->scratch, length);
}

const key *key_cache_past(key_cache *c, const batch *b, int32_t keys, int64_t row) {
  int64_t length = encode_row(c, b, keys, row);
  return length < 0 ? NULL : key_table_key(c->table, c->scratch, length);
}

bool key_cache_fill(key_cache *c, batch *b, int32_t keys) {
  if (!b->keys) {
    b->keys = memory_new((size_t)b->rows * sizeof *b->keys);
    if (!b->keys) return false;
  }
  for (int64_t row = 0; row < b->rows; row++) {
    b->keys[row] = key_cache_row(c, b, keys, row);
    if (!b->keys[row]) return false;
  }
  return true;
}
