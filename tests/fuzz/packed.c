/* packed.c - fuzzes ps_fold_number_keys and ps_fold_add_packed: the parcel of some rows, changed in places. */
#include "fuzz.h"

#include "partials/fold.h"

#include <stdlib.h>

enum { BLOCK_HEAD = 16 }; /* of fold_parcels.c: length, rows, begin */

/* One shard's keys and blocks. */
typedef struct {
  table keys;
  uint8_t *data;
  int64_t length;
} parcel;

static void parcel_free(parcel *p) {
  table_free(&p->keys);
  free(p->data);
}

/* The key columns of rows, and one in front of them. */
static table keys_of(const table *rows, int32_t keys) {
  table t = table_new(rows->rows, 1 + keys);
  for (int64_t row = 0; row < t.rows; row++) {
    for (int32_t c = 0; c <= keys; c++) {
      field *to = table_at(&t, row, c), *from = table_at(rows, row, c);
      *to = (field){.null = from->null, .word = from->word};
      if (from->data) field_set(to, from->data, from->length);
    }
  }
  return t;
}

static table keys_known(const ps_fold *f) {
  table t = {0};
  struct ArrowArray keys = {0};
  CLAIM(ps_fold_get_keys(f, &keys) == PS_OK);
  table_take(&t, &keys);
  return t;
}

/* `rows`: what the fold has kept unfolded; NULL: it has folded them. */
static parcel pack(ps_fold *f, bool by_key, const table *rows) {
  parcel p = {0};
  if (ps_fold_keys(f) == 0) return p;
  p.keys = rows ? keys_of(rows, f->keys) : keys_known(f);
  uint16_t *shards = calloc((size_t)p.keys.rows, sizeof *shards);
  ps_pack *packed;
  const uint8_t *data;
  CLAIM(ps_pack_new(f, shards, 1, by_key, &packed) == PS_OK);
  CLAIM(ps_pack_get(packed, 0, &data, &p.length) == PS_OK);
  p.data = malloc((size_t)p.length + 1);
  CLAIM(shards && p.data);
  ps_fold_mark_keys(f, shards); /* every key is of some row, but rows may lie in no window */
  for (int64_t i = 0; i < p.keys.rows; i++) CLAIM(shards[i] <= 1);
  if (p.length) memcpy(p.data, data, (size_t)p.length);
  ps_pack_free(packed);
  free(shards);
  return p;
}

/* The copies end where they end, so that one read too far shows. */
static ps_code add(ps_fold *f, const parcel *p, int64_t slack) {
  struct ArrowArray keys = table_arrow(&p->keys, f->column_types, slack);
  uint32_t *numbers = malloc((size_t)p->keys.rows * sizeof *numbers);
  uint8_t *data = malloc((size_t)p->length);
  ps_fault fault;
  CLAIM(numbers && data);
  memcpy(data, p->data, (size_t)p->length);
  CLAIM(ps_fold_number_keys(f, &keys, numbers) == PS_OK);
  ps_code code = ps_fold_add_packed(f, numbers, p->keys.rows, data, p->length, 1, &fault);
  ps_arrow_release(&keys);
  free(numbers);
  free(data);
  return code;
}

/* Mostly in the head of the first block, in its first words, and in columns of bytes. */
static void edit(draw *d, parcel *p, const ps_type *types) {
  for (int64_t edits = draw_below(d, 6); edits > 0 && p->length > 0; edits--) {
    int64_t at = draw_byte(d);
    if (at >= 128) at = at << 8 | draw_byte(d);
    at %= p->length;
    switch (draw_below(d, 6)) {
      case 0: p->data[at] ^= (uint8_t)(1u << draw_below(d, 8)); break;
      case 1: p->data[at] = (uint8_t)(p->data[at] + draw_byte(d)); break;
      case 2: p->length = at; break;
      case 3: table_edit(d, &p->keys, types, 2); break;
      default:
        for (uint64_t i = 0, word = draw_word(d); i < 8 && at + (int64_t)i < p->length; i++) {
          p->data[at + (int64_t)i] = (uint8_t)(word >> (8 * i));
        }
    }
  }
  uint32_t length = (uint32_t)p->length; /* the length of a single block is right, so that more than it is looked at */
  if (p->length >= BLOCK_HEAD && draw_below(d, 4)) memcpy(p->data, &length, sizeof length);
}

/* What the fold holds means the same when it is packed and unpacked once more. Entries are packed in another order. */
static void check_round_trip(const shape *s, ps_fold *f) {
  table partials = {0}, again = {0}, windows = {0}, same = {0};
  ps_fold *g = shape_fold(s);
  parcel p = pack(f, true, NULL);
  if (p.length) {
    CLAIM(add(g, &p, 2) == PS_OK);
    CLAIM(fold_partials(f, &partials) == PS_OK && fold_partials(g, &again) == PS_OK);
    table_sort(&partials);
    table_sort(&again);
    CLAIM(table_equal(&partials, &again));
  }
  ps_code code = fold_windows(f, &windows);
  CLAIM(code == PS_OK || code == PS_OVERFLOW);
  CLAIM(fold_windows(g, &same) == code);
  CLAIM(table_equal(&windows, &same));
  parcel_free(&p);
  ps_fold_free(g);
  table_free(&partials);
  table_free(&again);
  table_free(&windows);
  table_free(&same);
}

static parcel draw_parcel(draw *d, const shape *s) {
  int64_t ts = 0, position = 0;
  ps_fault fault;
  ps_fold *f = shape_fold(s);
  int64_t how = draw_below(d, 48); /* the lower bits: how many rows */
  bool keeps = how / 12 & 1, by_key = how / 24;
  table rows = draw_rows(d, s, how % 12, 0, &ts, &position);
  if (keeps) ps_fold_keep_rows(f);
  struct ArrowArray batch = table_arrow(&rows, s->types, 0);
  CLAIM(ps_fold_add_rows(f, &batch, &fault) == PS_OK);
  parcel p = pack(f, by_key, keeps ? &rows : NULL);
  ps_arrow_release(&batch);
  table_free(&rows);
  ps_fold_free(f);
  return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  shape s;
  draw_shape(&d, &s);
  parcel p = draw_parcel(&d, &s);
  ps_fold *f = shape_fold(&s);
  if (p.length) {
    edit(&d, &p, s.types);
    if (p.length && p.keys.rows) {
      ps_code code = add(f, &p, draw_below(&d, 4));
      CLAIM(code == PS_OK || code == PS_CORRUPT || code == PS_TWICE);
      table none = {0};
      if (code != PS_OK) CLAIM(fold_windows(f, &none) == PS_CLOSED);
      if (code == PS_OK) check_round_trip(&s, f);
    }
  }
  ps_fold_free(f);
  parcel_free(&p);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
