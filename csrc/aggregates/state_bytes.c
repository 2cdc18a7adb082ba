/* state_bytes.c - see state_bytes.h. */
#include "aggregates/state_bytes.h"

#include "columns/utf8.h"

#define COUNT_MAX \
  (INT64_C(1) << 62) /* of all states together: no run gets there, and adding them does not overflow \
                      */

/* ---- writing ---- */

static bool put(byte_buffer *to, const void *data, int64_t length) {
  if (!memory_grow((void **)&to->data, &to->capacity, to->length + length, 1)) return false;
  if (length) memcpy(to->data + to->length, data, (size_t)length);
  to->length += length;
  return true;
}

static bool put_flag(byte_buffer *to, bool flag) { return put(to, &(uint8_t){flag}, 1); }

static bool put_word(byte_buffer *to, uint64_t word) {
  uint8_t le[8];
  for (int i = 0; i < 8; i++) le[i] = (uint8_t)(word >> (8 * i));
  return put(to, le, 8);
}

static bool put_wide(byte_buffer *to, int128 x) {
  return put_word(to, (uint64_t)(uint128)x) && put_word(to, (uint64_t)((uint128)x >> 64));
}

static bool save_float(byte_buffer *to, const float_state *s) {
  const exact_sum_wide *wide = s->wide;
  bool ok = put_wide(to, s->narrow) && put_word(to, (uint64_t)s->n) && put_flag(to, wide != NULL);
  for (int i = 0; ok && wide && i < EXACT_SUM_LIMBS; i++) ok = put_word(to, wide->limb[i]);
  if (!ok || !wide) return ok;
  return put_word(to, (uint64_t)wide->nan) && put_word(to, (uint64_t)wide->plus_inf) &&
         put_word(to, (uint64_t)wide->minus_inf);
}

static bool save_bytes(byte_buffer *to, const bytes_state *s) {
  if (!put_flag(to, s->any)) return false;
  if (!s->any) return true;
  return put_word(to, (uint64_t)s->length) && put(to, s->data, s->length);
}

static bool save_native(const native_udf *u, const void *state, byte_buffer *to) {
  bytes user = native_udf_bytes(u, state);
  return put_word(to, (uint64_t)(int64_t)native_udf_failed(state)) && put(to, user.data, user.length);
}

static bool save_one(const aggregate *a, const void *state, byte_buffer *to) {
  const integer_state *integer = state;
  const value_state *value = state;
  switch (a->function) {
    case PS_COUNT: return put_word(to, *(const uint64_t *)state);
    case PS_SUM:
    case PS_AVG:
      if (type_is_float(a->type)) return save_float(to, state);
      return put_wide(to, integer->sum) && put_word(to, (uint64_t)integer->n);
    case PS_MIN:
    case PS_MAX:
    case PS_FIRST:
    case PS_LAST:
      if (type_is_bytes(a->type)) return save_bytes(to, state);
      return put_word(to, value->bits) && put_word(to, (uint64_t)value->n);
    case PS_NATIVE: return save_native(a->native, state, to);
    case PS_UDF:
    case PS_FUNCTIONS: break;
  }
  return true;
}

bool state_save(const aggregates *all, const uint8_t *state, byte_buffer *to) {
  to->length = 0;
  for (int32_t i = 0; i < all->n; i++) {
    if (!save_one(&all->each[i], state + all->each[i].offset, to)) return false;
  }
  return true;
}

/* ---- reading ---- */

typedef struct {
  const uint8_t *at;
  int64_t left;
  int64_t tuples; /* the most that a function of this state has counted */
  ps_code code;   /* PS_OK until something is wrong */
} reader;

static bool get(reader *from, void *to, int64_t length) {
  if (from->code != PS_OK || length < 0 || length > from->left) {
    from->code = from->code != PS_OK ? from->code : PS_CORRUPT;
    return false;
  }
  if (length) memcpy(to, from->at, (size_t)length);
  from->at += length;
  from->left -= length;
  return true;
}

static void require(reader *from, bool right) {
  if (!right && from->code == PS_OK) from->code = PS_CORRUPT;
}

static bool get_flag(reader *from) {
  uint8_t flag = 0;
  get(from, &flag, 1);
  require(from, flag <= 1);
  return flag == 1;
}

static uint64_t get_word(reader *from) {
  uint8_t le[8] = {0};
  get(from, le, 8);
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | le[i];
  return word;
}

static int64_t get_count(reader *from) {
  uint64_t n = get_word(from);
  require(from, n <= COUNT_MAX);
  if (n > COUNT_MAX) return 0;
  if ((int64_t)n > from->tuples) from->tuples = (int64_t)n;
  return (int64_t)n;
}

/* Without a filter every tuple counts, and a window is there because of a tuple. */
static int64_t load_count(reader *from, const aggregate *a) {
  int64_t n = get_count(from);
  require(from, n > 0 || a->mask >= 0);
  return n;
}

static int128 get_wide(reader *from) {
  uint128 low = get_word(from), high = get_word(from);
  return (int128)(high << 64 | low);
}

static void load_integer(reader *from, integer_state *s) {
  s->sum = get_wide(from);
  s->n = get_count(from);
  int128 most = (int128)s->n << 64; /* every value is below 2^64 */
  require(from, -most <= s->sum && s->sum <= most);
}

static void load_float(reader *from, float_state *s) {
  s->narrow = get_wide(from);
  s->n = get_count(from);
  require(from, s->n > 0 || s->narrow == 0);
  if (!get_flag(from) || from->code != PS_OK) return;
  exact_sum_wide *wide = s->wide = memory_new(sizeof *wide);
  if (!wide) {
    from->code = PS_NO_MEMORY;
    return;
  }
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) wide->limb[i] = get_word(from);
  wide->nan = get_count(from);
  wide->plus_inf = get_count(from);
  wide->minus_inf = get_count(from);
}

bool value_in_range(uint64_t bits, ps_type type) {
  int64_t x = (int64_t)bits;
  switch (type) {
    case PS_BOOL: return bits <= 1;
    case PS_I8: return x >= INT8_MIN && x <= INT8_MAX;
    case PS_I16: return x >= INT16_MIN && x <= INT16_MAX;
    case PS_I32: return x >= INT32_MIN && x <= INT32_MAX;
    case PS_U8: return bits <= UINT8_MAX;
    case PS_U16: return bits <= UINT16_MAX;
    case PS_U32: return bits <= UINT32_MAX;
    case PS_I64:
    case PS_U64:
    case PS_F32:
    case PS_F64:
    case PS_BYTES32:
    case PS_BYTES64:
    case PS_TYPES: break;
  }
  return true;
}

static void load_value(reader *from, const aggregate *a, value_state *s) {
  s->bits = get_word(from);
  s->n = get_count(from);
  require(from, value_in_range(s->bits, a->type) && (s->n > 0 || s->bits == 0));
}

static void load_bytes(reader *from, const aggregate *a, bytes_state *s) {
  if (!get_flag(from)) return;
  uint64_t length = get_word(from);
  require(from, length <= (uint64_t)from->left);
  if (from->code != PS_OK) return;
  if (!memory_grow((void **)&s->data, &s->capacity, (int64_t)length + 1, 1)) {
    from->code = PS_NO_MEMORY;
    return;
  }
  s->any = true;
  s->length = (int64_t)length;
  get(from, s->data, s->length);
  require(from, string_fits((bytes){s->data, s->length}, a->strings));
}

static void load_native(reader *from, const native_udf *u, void *state) {
  int64_t failed = (int64_t)get_word(from);
  require(from, failed >= INT32_MIN && failed <= INT32_MAX);
  if (from->code != PS_OK) return;
  get(from, native_udf_load(state, (int32_t)failed), native_udf_bytes(u, state).length);
}

static void load_one(const aggregate *a, reader *from, void *state) {
  switch (a->function) {
    case PS_COUNT: *(int64_t *)state = load_count(from, a); break;
    case PS_SUM:
    case PS_AVG:
      if (type_is_float(a->type)) {
        load_float(from, state);
      } else {
        load_integer(from, state);
      }
      break;
    case PS_MIN:
    case PS_MAX:
    case PS_FIRST:
    case PS_LAST:
      if (type_is_bytes(a->type)) {
        load_bytes(from, a, state);
      } else {
        load_value(from, a, state);
      }
      break;
    case PS_NATIVE: load_native(from, a->native, state); break;
    case PS_UDF:
    case PS_FUNCTIONS: break;
  }
}

ps_code state_load(const aggregates *all, bytes from, uint8_t *state, int64_t *tuples) {
  reader r = {.at = from.data, .left = from.length, .code = PS_OK};
  for (int32_t i = 0; i < all->n && r.code == PS_OK; i++) load_one(&all->each[i], &r, state + all->each[i].offset);
  require(&r, r.left == 0 && r.tuples <= COUNT_MAX - *tuples);
  if (r.code == PS_OK) {
    *tuples += r.tuples;
    return PS_OK;
  }
  aggregates_drop(all, state);
  memset(state, 0, (size_t)all->state_size);
  return r.code;
}
