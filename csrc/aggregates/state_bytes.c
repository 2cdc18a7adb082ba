/* state_bytes.c - see state_bytes.h. */
#include "aggregates/state_bytes.h"

#define COUNT_MAX (INT64_C(1) << 62) /* of all states together: more than any run has, and sums do not overflow */

/* ---- writing ---- */

bool state_put(byte_buffer *to, const void *data, int64_t length) {
  if (!memory_grow((void **)&to->data, &to->capacity, to->length + length, 1)) return false;
  if (length) memcpy(to->data + to->length, data, (size_t)length);
  to->length += length;
  return true;
}

bool state_put_flag(byte_buffer *to, bool flag) { return state_put(to, &(uint8_t){flag}, 1); }

bool state_put_word(byte_buffer *to, uint64_t word) {
  uint8_t le[8];
  bytes_put_word(le, word);
  return state_put(to, le, sizeof le);
}

bool state_put_int128(byte_buffer *to, int128 x) {
  uint8_t le[16];
  bytes_put_int128(le, x);
  return state_put(to, le, sizeof le);
}

bool state_save(const aggregates *all, const uint8_t *state, byte_buffer *to) {
  to->length = 0;
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (a->kernel->write && !a->kernel->write(a, state + a->offset, to)) return false;
  }
  return true;
}

/* ---- reading ---- */

bool state_get(state_reader *from, void *to, int64_t length) {
  if (from->code != PS_OK || length < 0 || length > from->left) {
    from->code = from->code != PS_OK ? from->code : PS_CORRUPT;
    return false;
  }
  if (length) memcpy(to, from->at, (size_t)length);
  from->at += length;
  from->left -= length;
  return true;
}

void state_require(state_reader *from, bool right) {
  if (!right && from->code == PS_OK) from->code = PS_CORRUPT;
}

bool state_get_flag(state_reader *from) {
  uint8_t flag = 0;
  state_get(from, &flag, 1);
  state_require(from, flag <= 1);
  return flag == 1;
}

uint64_t state_get_word(state_reader *from) {
  uint8_t le[8] = {0};
  state_get(from, le, sizeof le);
  return bytes_word(le);
}

int128 state_get_int128(state_reader *from) {
  uint8_t le[16] = {0};
  state_get(from, le, sizeof le);
  return bytes_int128(le);
}

int64_t state_count(state_reader *from, uint64_t n) {
  state_require(from, n <= COUNT_MAX);
  if (n > COUNT_MAX) return 0;
  if ((int64_t)n > from->tuples) from->tuples = (int64_t)n;
  return (int64_t)n;
}

int64_t state_get_count(state_reader *from) { return state_count(from, state_get_word(from)); }

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

ps_code state_load(const aggregates *all, bytes from, uint8_t *state, int64_t *tuples) {
  state_reader r = {.at = from.data, .left = from.length, .code = PS_OK};
  for (int32_t i = 0; i < all->n && r.code == PS_OK; i++) {
    const aggregate *a = &all->each[i];
    if (a->kernel->read) a->kernel->read(a, state + a->offset, &r);
  }
  state_require(&r, r.left == 0 && r.tuples <= COUNT_MAX - *tuples);
  if (r.code == PS_OK) {
    *tuples += r.tuples;
    return PS_OK;
  }
  aggregates_drop(all, state);
  memset(state, 0, (size_t)all->state_size);
  return r.code;
}
