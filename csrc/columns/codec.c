/* codec.c - see codec.h. */
#include "columns/codec.h"

#define NUMBER_BYTES 16

/* ---- writing ---- */

uint8_t *codec_space(codec_bytes *to, int64_t length) {
  if (!memory_grow((void **)&to->data, &to->capacity, to->length + length, 1)) return NULL;
  uint8_t *space = to->data + to->length;
  to->length += length;
  return space;
}

static bool put_byte(codec_bytes *to, uint8_t byte) {
  uint8_t *space = codec_space(to, 1);
  if (space) *space = byte;
  return space != NULL;
}

static int64_t width_of(uint64_t range) {
  if (range == 0) return 0;
  return range <= UINT8_MAX ? 1 : range <= UINT16_MAX ? 2 : range <= UINT32_MAX ? 4 : 8;
}

#define NARROW(type)                                              \
  for (int64_t i = 0; i < n; i++) {                               \
    type above = (type)(x[i] - least);                            \
    memcpy(to + i * (int64_t)sizeof above, &above, sizeof above); \
  }

static void narrow(uint8_t *to, const uint64_t *x, int64_t n, uint64_t least, int64_t width) {
  switch (width) {
    case 1: NARROW(uint8_t) break;
    case 2: NARROW(uint16_t) break;
    case 4: NARROW(uint32_t) break;
    case 8: NARROW(uint64_t) break;
    default: break;
  }
}

/* Words with what they share: how wide they are above their minimum. */
typedef struct {
  const uint64_t *x;
  uint64_t least;
  int64_t width;
} words;

static words words_of(const uint64_t *x, int64_t n) {
  uint64_t least = UINT64_MAX, most = 0;
  for (int64_t i = 0; i < n; i++) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  return (words){x, least, width_of(most - least)};
}

/* The most negative number. Numbers of both signs are far apart as words; offset by it, they are not. */
#define SIGN (UINT64_C(1) << 63)

/* The first word has none before it: its step is that of the second one. */
static void steps_of(const uint64_t *x, int64_t n, uint64_t *steps) {
  for (int64_t i = 1; i < n; i++) steps[i] = x[i] - x[i - 1] + SIGN;
  steps[0] = steps[1];
}

bool codec_put_words(codec_bytes *to, const uint64_t *x, int64_t n) {
  words w = words_of(x, n);
  uint64_t steps[CODEC_ROWS], first = x[0];
  bool rising = false;
  if (w.width > 1 && n > 1) {
    steps_of(x, n, steps);
    words s = words_of(steps, n);
    rising = (w.width - s.width) * n > (int64_t)sizeof first;
    if (rising) w = s;
  }
  uint8_t *space = codec_space(to, 1 + (rising ? (int64_t)sizeof first : 0) + (int64_t)sizeof w.least + n * w.width);
  if (!space) return false;
  *space++ = (uint8_t)(w.width | (rising ? CODEC_STEPS : 0));
  if (rising) {
    memcpy(space, &first, sizeof first);
    space += sizeof first;
  }
  memcpy(space, &w.least, sizeof w.least);
  narrow(space + sizeof w.least, w.x, n, w.least, w.width);
  return true;
}

static bool pack_nulls(codec_bytes *to, const out_column *c, int64_t n) {
  int64_t known = c->validity ? c->covered < n ? c->covered : n : 0; /* the rows after them are not null */
  bool any = false;
  for (int64_t i = 0; i < known && !any; i++) any = !bitmap_get(c->validity, i);
  if (!put_byte(to, any)) return false;
  if (!any) return true;
  uint8_t *bitmap = codec_space(to, (n + 7) / 8);
  if (!bitmap) return false;
  memset(bitmap, 0, (size_t)((n + 7) / 8));
  for (int64_t i = 0; i < n; i++) {
    if (i >= known || bitmap_get(c->validity, i)) bitmap[i / 8] |= (uint8_t)(1u << (i & 7));
  }
  return true;
}

static bool pack_numbers(codec_bytes *to, const uint8_t *data, int64_t n) {
  uint64_t low[CODEC_ROWS], high[CODEC_ROWS];
  uint128 all = 0, x;
  for (int64_t i = 0; i < n; i++) {
    memcpy(&x, data + i * NUMBER_BYTES, sizeof x);
    all |= x;
  }
  int shift = (uint64_t)all ? __builtin_ctzll((uint64_t)all) : all ? 64 + __builtin_ctzll((uint64_t)(all >> 64)) : 0;
  for (int64_t i = 0; i < n; i++) {
    memcpy(&x, data + i * NUMBER_BYTES, sizeof x);
    x = (uint128)((int128)x >> shift);
    low[i] = (uint64_t)x;
    high[i] = (uint64_t)(x >> 64) ^ SIGN;
  }
  return put_byte(to, (uint8_t)shift) && codec_put_words(to, low, n) && codec_put_words(to, high, n);
}

static bool pack_strings(codec_bytes *to, const out_column *c, int64_t n) {
  const int64_t *offsets = c->values;
  uint64_t lengths[CODEC_ROWS];
  bool numbers = true;
  for (int64_t i = 0; i < n; i++) {
    lengths[i] = (uint64_t)(offsets[i + 1] - offsets[i]);
    numbers &= lengths[i] == NUMBER_BYTES;
  }
  if (!put_byte(to, numbers)) return false;
  if (numbers) return pack_numbers(to, c->data, n);
  if (!codec_put_words(to, lengths, n)) return false;
  uint8_t *space = codec_space(to, offsets[n]);
  if (space && offsets[n]) memcpy(space, c->data, (size_t)offsets[n]);
  return space != NULL;
}

bool codec_put_column(codec_bytes *to, const out_column *c, int64_t n) {
  assert(n > 0 && n <= CODEC_ROWS);
  return pack_nulls(to, c, n) && (c->is_bytes ? pack_strings(to, c, n) : codec_put_words(to, c->values, n));
}

/* ---- reading ---- */

/* The next `length` bytes; NULL: there are fewer. */
static const uint8_t *take(bytes *from, int64_t length) {
  if (length > from->length) return NULL;
  const uint8_t *data = from->data;
  from->data += length;
  from->length -= length;
  return data;
}

#define WIDEN(type)                                               \
  for (int64_t i = 0; i < n; i++) {                               \
    type above;                                                   \
    memcpy(&above, at + i * (int64_t)sizeof above, sizeof above); \
    x[i] = least + above;                                         \
  }

static bool get_words(bytes *from, int64_t width, uint64_t *x, int64_t n) {
  uint64_t least;
  const uint8_t *at = take(from, (int64_t)sizeof least);
  if (!at || width > 8 || (width & (width - 1))) return false;
  memcpy(&least, at, sizeof least);
  at = take(from, n * width);
  if (!at) return false;
  switch (width) {
    case 1: WIDEN(uint8_t) break;
    case 2: WIDEN(uint16_t) break;
    case 4: WIDEN(uint32_t) break;
    case 8: WIDEN(uint64_t) break;
    default:
      for (int64_t i = 0; i < n; i++) x[i] = least;
  }
  return true;
}

bool codec_get_words(bytes *from, uint64_t *x, int64_t n) {
  uint64_t first;
  const uint8_t *form = take(from, 1), *at = NULL;
  bool rising = form && *form & CODEC_STEPS;
  if (rising) at = take(from, (int64_t)sizeof first);
  if (!form || (rising && !at) || !get_words(from, *form & ~CODEC_STEPS, x, n)) return false;
  if (!rising) return true;
  memcpy(&first, at, sizeof first);
  x[0] = first;
  for (int64_t i = 1; i < n; i++) x[i] += x[i - 1] - SIGN;
  return true;
}

static bool unpack_nulls(bytes *from, int64_t n, codec_column *c) {
  const uint8_t *any = take(from, 1);
  c->validity = NULL;
  if (!any || *any > 1) return false;
  if (*any) c->validity = take(from, (n + 7) / 8);
  return !*any || c->validity;
}

static bool unpack_numbers(bytes *from, int64_t n, codec_column *c) {
  uint64_t high[CODEC_ROWS];
  const uint8_t *shift = take(from, 1);
  if (!shift || *shift > 127 || !codec_get_words(from, c->words, n) || !codec_get_words(from, high, n)) return false;
  for (int64_t i = 0; i < n; i++) {
    uint128 x = ((uint128)(high[i] ^ SIGN) << 64 | c->words[i]) << *shift;
    memcpy(c->numbers + i * NUMBER_BYTES, &x, sizeof x);
    c->offsets[i] = i * NUMBER_BYTES;
  }
  c->offsets[n] = n * NUMBER_BYTES;
  c->data = c->numbers;
  return true;
}

static bool unpack_strings(bytes *from, int64_t n, codec_column *c) {
  if (!codec_get_words(from, c->words, n)) return false;
  c->offsets[0] = 0;
  for (int64_t i = 0; i < n; i++) {
    if (c->words[i] > (uint64_t)(from->length - c->offsets[i])) return false;
    c->offsets[i + 1] = c->offsets[i] + (int64_t)c->words[i];
  }
  c->data = take(from, c->offsets[n]);
  return c->data != NULL;
}

bool codec_get_column(bytes *from, bool is_bytes, int64_t n, codec_column *c) {
  assert(n > 0 && n <= CODEC_ROWS);
  if (!unpack_nulls(from, n, c)) return false;
  if (!is_bytes) return codec_get_words(from, c->words, n);
  const uint8_t *numbers = take(from, 1);
  if (!numbers || *numbers > 1) return false;
  return (*numbers ? unpack_numbers : unpack_strings)(from, n, c);
}
