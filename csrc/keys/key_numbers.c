/* key_numbers.c - see key_numbers.h. */
#include "keys/key_numbers.h"

#include "base/hash.h"

/* Values that the array may always span: 16 KB, which stay in the second-level cache with several inputs per core. */
#define DIRECT_MIN SIZED(4096, 4)
/* Values per key: the array is at most twice as large as the hash table would be. */
#define DIRECT_SPREAD SIZED(16, 2)
#define SLOTS_FIRST SIZED(64, 2)
#define DIRECT_FIRST SIZED(64, 1)

void key_numbers_init(key_numbers *n, key_cache *cache, int32_t keys) {
  *n = (key_numbers){.cache = cache, .keys = keys, .least = UINT64_MAX};
}

void key_numbers_free(key_numbers *n) {
  memory_free(n->direct);
  memory_free(n->slots);
  memory_free(n->numbers);
}

void key_numbers_forget(key_numbers *n) {
  memory_free(n->direct);
  memory_free(n->slots);
  n->direct = NULL;
  n->slots = NULL;
  n->direct_length = 0;
  n->capacity = n->used = 0;
  n->least = UINT64_MAX;
  n->most = 0;
  key_cache_forget(n->cache);
}

/* The general way. `once`: the caller stores it in a map here. NULL: out of memory. */
static const key *find_key(key_numbers *n, const batch *b, int64_t row, bool once) {
  const key *k = (once ? key_cache_past : key_cache_row)(n->cache, b, n->keys, row);
  if (k && n->limit <= k->number) n->limit = (int64_t)k->number + 1;
  return k;
}

/* ---- the hash table ---- */

static int64_t first_slot(const key_numbers *n, uint64_t word) { return (int64_t)hash_word(word) & (n->capacity - 1); }

static void slots_put(key_numbers *n, key_entry e) {
  int64_t i = first_slot(n, e.word);
  while (n->slots[i].known) i = (i + 1) & (n->capacity - 1);
  n->slots[i] = e;
}

static bool slots_grow(key_numbers *n) {
  key_numbers old = *n;
  n->capacity = old.capacity ? 2 * old.capacity : SLOTS_FIRST;
  n->slots = memory_new((size_t)n->capacity * sizeof *n->slots);
  if (!n->slots) {
    *n = old;
    return false;
  }
  for (int64_t i = 0; i < old.capacity; i++) {
    if (old.slots[i].known) slots_put(n, old.slots[i]);
  }
  memory_free(old.slots);
  return true;
}

/* ---- the array ---- */

static bool lie_close(const key_numbers *n, uint64_t least, uint64_t most) {
  uint64_t most_length = (uint64_t)(n->used + 1) * DIRECT_SPREAD;
  return most - least < (most_length < DIRECT_MIN ? DIRECT_MIN : most_length);
}

/* Makes room for all values from least to most, at least twice as much as before. */
static bool direct_extend(key_numbers *n, uint64_t least, uint64_t most) {
  uint64_t length = DIRECT_FIRST;
  while (length <= most - least) length *= 2;
  uint64_t lowest = least;
  if (n->direct && least < n->lowest) lowest = most >= length ? most - length + 1 : 0; /* extend downwards */
  uint32_t *direct = memory_new(length * sizeof *direct);
  if (!direct) return false;
  if (n->direct) {
    uint64_t from = n->least - n->lowest, count = n->most - n->least + 1;
    memcpy(direct + (n->least - lowest), n->direct + from, count * sizeof *direct);
  }
  memory_free(n->direct);
  n->direct = direct;
  n->direct_length = length;
  n->lowest = lowest;
  return true;
}

/* From the array to the hash table: the values are too far apart. */
static bool direct_to_slots(key_numbers *n, const key_table *table) {
  while (2 * (n->used + 1) > n->capacity) {
    if (!slots_grow(n)) return false;
  }
  for (uint64_t i = 0; i < n->direct_length; i++) {
    uint32_t number = n->direct[i];
    if (number) slots_put(n, (key_entry){n->lowest + i, key_table_at(table, number - 1), number - 1});
  }
  memory_free(n->direct);
  n->direct = NULL;
  n->direct_length = 0;
  return true;
}

/* And back, when the values have become denser. */
static bool slots_to_direct(key_numbers *n) {
  if (!direct_extend(n, n->least, n->most)) return false;
  for (int64_t i = 0; i < n->capacity; i++) {
    if (n->slots[i].known) n->direct[n->slots[i].word - n->lowest] = n->slots[i].number + 1;
  }
  memory_free(n->slots);
  n->slots = NULL;
  n->capacity = 0;
  return true;
}

/* ---- one fixed-width column ---- */

/* Makes room for one more value, in the map that suits the values now. */
static bool reserve_value(key_numbers *n, uint64_t value) {
  uint64_t least = value < n->least ? value : n->least, most = value > n->most ? value : n->most;
  bool close = lie_close(n, least, most);
  if (n->direct && !close && !direct_to_slots(n, n->cache->table)) return false;
  if (n->used == 0 && close) return direct_extend(n, least, least);
  bool full = !n->direct && 2 * (n->used + 1) > n->capacity;
  if (full && close && !slots_to_direct(n)) return false;
  if (full && !close) return slots_grow(n);
  bool inside = !n->direct || (least >= n->lowest && most - n->lowest < n->direct_length);
  return inside || direct_extend(n, least, most);
}

/* A value that the input has not seen before. */
static bool meet_value(key_numbers *n, const batch *b, int64_t row, uint64_t value) {
  const key *k = find_key(n, b, row, true);
  if (!k || !reserve_value(n, value)) return false;
  if (n->direct) {
    n->direct[value - n->lowest] = k->number + 1;
  } else {
    slots_put(n, (key_entry){value, k, k->number});
  }
  n->used++;
  if (value < n->least) n->least = value;
  if (value > n->most) n->most = value;
  n->numbers[row] = k->number;
  return true;
}

static inline bool slots_find(const key_numbers *n, uint64_t value, uint32_t *number) {
  for (int64_t i = first_slot(n, value);; i = (i + 1) & (n->capacity - 1)) {
    if (!n->slots[i].known) return false;
    if (n->slots[i].word != value) continue;
    *number = n->slots[i].number;
    return true;
  }
}

/* Loops over the rows from `row` on whose values are known. Each returns the first row whose value is not. */
#define VALUE_LOOPS(name, type, sign)                                                              \
  static int64_t direct_##name(const key_numbers *n, const column *c, int64_t row, int64_t rows) { \
    const type *values = (const type *)c->values + c->first;                                       \
    for (; row < rows; row++) {                                                                    \
      uint64_t i = ((uint64_t)values[row] ^ (sign)) - n->lowest;                                   \
      if (i >= n->direct_length || !n->direct[i]) break;                                           \
      n->numbers[row] = n->direct[i] - 1;                                                          \
    }                                                                                              \
    return row;                                                                                    \
  }                                                                                                \
  static int64_t hashed_##name(const key_numbers *n, const column *c, int64_t row, int64_t rows) { \
    const type *values = (const type *)c->values + c->first;                                       \
    while (row < rows && slots_find(n, (uint64_t)values[row] ^ (sign), &n->numbers[row])) row++;   \
    return row;                                                                                    \
  }

VALUE_LOOPS(i8, int8_t, VALUE_SIGN)
VALUE_LOOPS(i16, int16_t, VALUE_SIGN)
VALUE_LOOPS(i32, int32_t, VALUE_SIGN)
VALUE_LOOPS(i64, int64_t, VALUE_SIGN)
VALUE_LOOPS(u8, uint8_t, 0)
VALUE_LOOPS(u16, uint16_t, 0)
VALUE_LOOPS(u32, uint32_t, 0)
VALUE_LOOPS(u64, uint64_t, 0)

static uint64_t value_at(const column *c, int64_t row) { return value_key(column_bits(c, row), c->type); }

static int64_t direct_any(const key_numbers *n, const column *c, int64_t row, int64_t rows) {
  for (; row < rows; row++) {
    uint64_t i = value_at(c, row) - n->lowest;
    if (i >= n->direct_length || !n->direct[i]) break;
    n->numbers[row] = n->direct[i] - 1;
  }
  return row;
}

static int64_t hashed_any(const key_numbers *n, const column *c, int64_t row, int64_t rows) {
  while (row < rows && slots_find(n, value_at(c, row), &n->numbers[row])) row++;
  return row;
}

typedef int64_t (*value_loop)(const key_numbers *, const column *, int64_t, int64_t);

static const value_loop direct_loops[PS_TYPES] = {[PS_BOOL] = direct_any, [PS_I8] = direct_i8,   [PS_I16] = direct_i16,
                                                  [PS_I32] = direct_i32,  [PS_I64] = direct_i64, [PS_U8] = direct_u8,
                                                  [PS_U16] = direct_u16,  [PS_U32] = direct_u32, [PS_U64] = direct_u64,
                                                  [PS_F32] = direct_any,  [PS_F64] = direct_any};

static const value_loop hashed_loops[PS_TYPES] = {[PS_BOOL] = hashed_any, [PS_I8] = hashed_i8,   [PS_I16] = hashed_i16,
                                                  [PS_I32] = hashed_i32,  [PS_I64] = hashed_i64, [PS_U8] = hashed_u8,
                                                  [PS_U16] = hashed_u16,  [PS_U32] = hashed_u32, [PS_U64] = hashed_u64,
                                                  [PS_F32] = hashed_any,  [PS_F64] = hashed_any};

static bool fill_values(key_numbers *n, const batch *b) {
  const column *c = &b->columns[1];
  int64_t row = 0;
  assert(c->type < PS_BYTES32);
  while (row < b->rows) {
    if (n->used) row = (n->direct ? direct_loops : hashed_loops)[c->type](n, c, row, b->rows);
    if (row == b->rows) break;
    if (!meet_value(n, b, row, value_at(c, row))) return false;
    row++;
  }
  return true;
}

/* ---- one string column ---- */

/* A key has one byte for "not null" and two at its end. A string with zero bytes is longer there: it does not match,
   and is looked up the general way each time. */
static bool is_key_of(const key *k, bytes s) {
  return k->length == s.length + 3 && (s.length == 0 || memcmp(k->data + 1, s.data, (size_t)s.length) == 0);
}

static bool number_string(key_numbers *n, const batch *b, int64_t row) {
  bytes s = column_bytes(&b->columns[1], row);
  uint64_t hash = hash_bytes(s.data, s.length);
  if (n->capacity) {
    for (int64_t i = first_slot(n, hash); n->slots[i].known; i = (i + 1) & (n->capacity - 1)) {
      if (n->slots[i].word != hash || !is_key_of(n->slots[i].known, s)) continue;
      n->numbers[row] = n->slots[i].number;
      return true;
    }
  }
  const key *k = find_key(n, b, row, s.length == 0 || !memchr(s.data, 0, (size_t)s.length));
  if (!k) return false;
  n->numbers[row] = k->number;
  if (!is_key_of(k, s)) return true;
  if (2 * (n->used + 1) > n->capacity && !slots_grow(n)) return false;
  slots_put(n, (key_entry){hash, k, k->number});
  n->used++;
  return true;
}

/* ---- any key ---- */

static bool fill_rows(key_numbers *n, const batch *b) {
  bool strings = n->keys == 1 && type_is_bytes(b->columns[1].type) && !b->columns[1].validity;
  for (int64_t row = 0; row < b->rows; row++) {
    if (strings) {
      if (!number_string(n, b, row)) return false;
    } else {
      const key *k = find_key(n, b, row, false);
      if (!k) return false;
      n->numbers[row] = k->number;
    }
  }
  return true;
}

static bool fill_one(key_numbers *n, const batch *b) {
  const key *k = find_key(n, b, 0, false);
  if (!k) return false;
  for (int64_t row = 0; row < b->rows; row++) n->numbers[row] = k->number;
  return true;
}

bool key_numbers_fill(key_numbers *n, const batch *b) {
  if (!memory_grow((void **)&n->numbers, &n->numbers_capacity, b->rows, sizeof *n->numbers)) return false;
  if (b->rows == 0) return true;
  if (n->keys == 0) return fill_one(n, b);
  bool values = n->keys == 1 && !type_is_bytes(b->columns[1].type) && !b->columns[1].validity;
  return values ? fill_values(n, b) : fill_rows(n, b);
}
