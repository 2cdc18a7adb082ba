/*
 * codec.h - columns of output.h in few bytes, for rows that travel.
 *
 * Ours, not in the paper. Where folding hardly makes fewer of rows, what costs most is to move the partials; most of
 * their bits say nothing, because the rows of a block are alike. Column by column, little-endian:
 *
 *   words     1 byte: how many each takes, 0, 1, 2, 4 or 8;  8 bytes: the least of them;  how far each is above it
 *   nulls     1 byte: whether there are any;  if so, their bitmap as Arrow has it
 *   numbers   strings of 16 bytes each that are 128-bit numbers, as sums are:  1 byte: how many zero bits all of them
 *             end in, which are left out;  the lower halves as words;  the upper halves as words
 *   strings   their lengths as words;  their bytes
 *
 *   a column  nulls;  words, or for strings 1 byte: whether they are numbers;  numbers or strings
 *
 * Bytes that come from elsewhere are not trusted: reading gives false where they are not what was written.
 */
#pragma once

#include "base/base.h"
#include "columns/output.h"

#define CODEC_ROWS \
  SIZED(1024, 2) /* of a block: its columns stay in the cache, and what each says of itself is 1 % of it */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are copied as they lie in memory");

typedef struct {
  uint8_t *data;
  int64_t length, capacity;
} codec_bytes;

/* Room for so many bytes more, which the caller writes; NULL when out of memory. */
uint8_t *codec_space(codec_bytes *to, int64_t length);

/* False when out of memory. `n` is at most CODEC_ROWS. */
bool codec_put_words(codec_bytes *to, const uint64_t *x, int64_t n);
bool codec_put_column(codec_bytes *to, const out_column *c, int64_t n);

/* A column that was read: it points into the bytes that it was read from and into itself. */
typedef struct {
  const uint8_t *validity; /* NULL: no nulls */
  uint64_t words[CODEC_ROWS];
  int64_t offsets[CODEC_ROWS + 1]; /* strings only */
  const uint8_t *data;
  uint8_t numbers[CODEC_ROWS * 16];
} codec_column;

/* From the front of the bytes, which then begin behind it. */
bool codec_get_words(bytes *from, uint64_t *x, int64_t n);
bool codec_get_column(bytes *from, bool is_bytes, int64_t n, codec_column *c);
