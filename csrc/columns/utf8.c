/* utf8.c - see utf8.h. */
#include "columns/utf8.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* The number of ASCII bytes at the front. */
static int64_t ascii_prefix(const uint8_t *data, int64_t length) {
  int64_t at = 0;
  for (uint64_t word[8]; length - at >= (int64_t)sizeof word; at += (int64_t)sizeof word) {
    memcpy(word, data + at, sizeof word);
    uint64_t all = 0;
    for (int i = 0; i < 8; i++) all |= word[i];
    if (all & HIGH_BITS) break;
  }
  while (at < length && data[at] < 0x80) at++;
  return at;
}

/* The length of the character at the front, which is not ASCII; 0: malformed. The second byte rules out overlong forms,
   surrogates, and code points above U+10FFFF. */
static int64_t character(const uint8_t *at, int64_t left) {
  uint8_t lead = at[0], low = 0x80, high = 0xbf;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  int64_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length > left) return 0;
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  if (at[1] < low || at[1] > high) return 0;
  for (int64_t i = 2; i < length; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

bool utf8_is_valid(bytes x) {
  for (int64_t at = 0; at < x.length;) {
    at += ascii_prefix(x.data + at, x.length - at);
    if (at == x.length) break;
    int64_t length = character(x.data + at, x.length - at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool string_fits(bytes x, int32_t strings) {
  if (strings == PS_UTF8) return utf8_is_valid(x);
  return strings == PS_ANY_BYTES || x.length == strings;
}

/* ---- columns ---- */

static int64_t offset_at(const ps_strings *s, int64_t i) {
  return s->wide ? ((const int64_t *)s->offsets)[s->first + i] : ((const int32_t *)s->offsets)[s->first + i];
}

/* As wide as the offsets, so that the compiler can vectorize. */
#define FALLS(type)                                                   \
  do {                                                                \
    const type *o = (const type *)s->offsets + s->first;              \
    type any = 0;                                                     \
    for (int64_t i = 0, n = s->n; i < n; i++) any |= o[i] > o[i + 1]; \
    falls = any != 0;                                                 \
  } while (0)

/* Whether every string is inside the data: the first begins and the last ends there, and none ends before it begins. */
static bool within(const ps_strings *s) {
  bool falls;
  if (s->wide) {
    FALLS(int64_t);
  } else {
    FALLS(int32_t);
  }
  return !falls && offset_at(s, 0) >= 0 && offset_at(s, s->n) <= s->size;
}

/* Whether no string begins inside a character; the data is UTF-8 as a whole. */
static bool begin_with_characters(const ps_strings *s, int64_t to) {
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = offset_at(s, i);
    if (at < to && (s->data[at] & 0xc0) == 0x80) return false;
  }
  return true;
}

int32_t ps_strings_sound(const ps_strings *s) {
  if (s->n == 0) return 1;
  if (!within(s)) return 0;
  int64_t from = offset_at(s, 0), to = offset_at(s, s->n);
  if (!s->text || from == to || ascii_prefix(s->data + from, to - from) == to - from) return 1;
  return utf8_is_valid((bytes){s->data + from, to - from}) && begin_with_characters(s, to);
}
