/*
 * codec.h - packs columns of output.h into few bytes, for rows that are sent.
 *
 * Ours, not in the paper. Where folding hardly reduces rows, moving the partials costs most; most of their bits are
 * redundant, because the rows of a block are alike. Column by column, little-endian:
 *
 *   words     1 byte: bytes per word, 0, 1, 2, 4 or 8;  8 bytes: the minimum;  each word minus the minimum
 *   or        1 byte: the same + CODEC_STEPS;  8 bytes: the first word;  as words: by how much each word is above the one
 *             before, + 2^63. Chosen where it takes fewer bytes: of numbers that rise, such as sorted keys
 *   nulls     1 byte: whether there are any;  if so, their bitmap as in Arrow
 *   numbers   strings of 16 bytes each that are 128-bit numbers, such as sums:  1 byte: number of zero bits that all of
 *             them end in, which are left out;  the lower halves as words;  the upper halves as words
 *   strings   their lengths as words;  their bytes
 *
 *   a column  nulls;  words, or for strings 1 byte: whether they are numbers;  numbers or strings
 *
 * Bytes from elsewhere are not trusted: reading returns false if they are malformed.
 */
#pragma once

#include "base/base.h"
#include "columns/output.h"

#define CODEC_ROWS SIZED(1024, 2) /* per block: its columns stay in the cache, and the headers are 1 % of it */

#define CODEC_STEPS 0x80

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are copied as they lie in memory");

typedef struct {
  uint8_t *data;
  int64_t length, capacity;
} codec_bytes;

/* Appends `length` bytes, which the caller writes; NULL: out of memory. */
uint8_t *codec_space(codec_bytes *to, int64_t length);

/* False: out of memory. n is at most CODEC_ROWS. */
bool codec_put_words(codec_bytes *to, const uint64_t *x, int64_t n);
bool codec_put_column(codec_bytes *to, const out_column *c, int64_t n);

/* A decoded column: points into the bytes it was read from, and into itself. */
typedef struct {
  const uint8_t *validity; /* NULL: no nulls */
  uint64_t words[CODEC_ROWS];
  int64_t offsets[CODEC_ROWS + 1]; /* strings only */
  const uint8_t *data;
  uint8_t numbers[CODEC_ROWS * 16];
} codec_column;

/* Reads from the front of the bytes and advances them. */
bool codec_get_words(bytes *from, uint64_t *x, int64_t n);
bool codec_get_column(bytes *from, bool is_bytes, int64_t n, codec_column *c);
