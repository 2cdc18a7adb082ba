/*
 * fold_parcels.c - entries as few bytes and back: what is moved from those who fold to those who combine.
 *
 * Entries of the same shard go together, in the order of time, in blocks:
 *
 *   block    4 bytes: its length, these included;  4 bytes: how many entries;  8 bytes: where the first one's slice
 *            begins;  which key each entry is of, as words;  the columns of fold_export.c, without those of keys
 *
 * Words and columns are as in codec.h. Keys are told apart from the entries, once each: an entry's key is its place
 * among the keys of its shard in the order of their numbers. Whoever has the blocks of many folds takes them in by
 * where they begin, and needs to hold no more than the open windows.
 */
#include "partials/fold.h"
#include "columns/codec.h"

typedef struct {
  uint32_t length, rows;
  uint64_t begin;
} block_head;

_Static_assert(sizeof(block_head) == 16, "no padding");

struct ps_pack {
  const ps_fold *f;
  int32_t shards;
  int64_t *from;   /* where a shard's entries begin in `order`; one more for the end */
  uint32_t *order; /* entries by shard and time */
  uint32_t *place; /* by key number: its place among the keys of its shard */
  out_rows rows;
  codec_bytes bytes;
};

/* ---- out ---- */

void ps_pack_free(ps_pack *p) {
  if (!p) return;
  out_rows_free(&p->rows);
  memory_free(p->bytes.data);
  memory_free(p->from);
  memory_free(p->order);
  memory_free(p->place);
  memory_free(p);
}

/* Whether the entries lie in the order of time as it is, where slices have these ranks. */
static bool is_sorted(const ps_fold *f, const uint32_t *rank) {
  for (int64_t e = 1; e < f->n; e++) {
    if (rank[f->entry[e].pair >> 32] < rank[f->entry[e - 1].pair >> 32]) return false;
  }
  return true;
}

/* The entries in the order of time; `count` has room for the slices and one more. */
static void order_by_time(const ps_fold *f, const uint32_t *rank, int64_t *count, uint32_t *order) {
  memset(count, 0, (size_t)(f->slices + 1) * sizeof *count);
  for (int64_t e = 0; e < f->n; e++) count[rank[f->entry[e].pair >> 32] + 1]++;
  for (int64_t i = 0; i < f->slices; i++) count[i + 1] += count[i];
  for (int64_t e = 0; e < f->n; e++) order[count[rank[f->entry[e].pair >> 32]]++] = (uint32_t)e;
}

/* `timed` has the entries in the order of time, or is NULL: they lie so. */
static void order_by_shard(ps_pack *p, const uint16_t *shards, const uint32_t *timed) {
  const ps_fold *f = p->f;
  for (int64_t e = 0; e < f->n; e++) p->from[shards[(uint32_t)f->entry[e].pair] + 1]++;
  for (int32_t i = 0; i < p->shards; i++) p->from[i + 1] += p->from[i];
  for (int64_t i = 0; i < f->n; i++) {
    uint32_t e = timed ? timed[i] : (uint32_t)i;
    p->order[p->from[shards[(uint32_t)f->entry[e].pair]]++] = e;
  }
  memmove(p->from + 1, p->from, (size_t)p->shards * sizeof *p->from); /* each has come to where the next one began */
  p->from[0] = 0;
}

static bool order_entries(ps_pack *p, const uint16_t *shards) {
  const ps_fold *f = p->f;
  size_t slices = (size_t)f->slices + 1;
  uint32_t *sorted = memory_new(2 * slices * sizeof *sorted), *rank = memory_new(slices * sizeof *rank), *timed = NULL;
  int64_t *count = memory_new(slices * sizeof *count);
  bool ok = sorted && rank && count;
  if (ok) {
    const uint32_t *by_time = fold_sort_slices(f, sorted);
    for (int64_t i = 0; i < f->slices; i++) rank[by_time[i]] = (uint32_t)i;
    if (!is_sorted(f, rank)) {
      timed = memory_resize(NULL, (size_t)f->n * sizeof *timed);
      ok = timed != NULL;
      if (ok) order_by_time(f, rank, count, timed);
    }
  }
  if (ok) order_by_shard(p, shards, timed);
  memory_free(sorted);
  memory_free(rank);
  memory_free(timed);
  memory_free(count);
  return ok;
}

static bool place_keys(ps_pack *p, const uint16_t *shards) {
  uint32_t *count = memory_new((size_t)p->shards * sizeof *count);
  for (int64_t i = 0; count && i < p->f->keys_known; i++) p->place[i] = count[shards[i]]++;
  memory_free(count);
  return count != NULL;
}

ps_code ps_pack_new(ps_fold *f, const uint16_t *shards, int32_t count, ps_pack **out) {
  if (f->broken) return PS_CLOSED;
  combine_end(f);
  if (!fold_drop_before(f, f->start_next)) return PS_NO_MEMORY;
  ps_pack *p = memory_new(sizeof *p);
  if (!p) return PS_NO_MEMORY;
  p->f = f;
  p->shards = count;
  p->from = memory_new((size_t)(count + 1) * sizeof *p->from);
  p->order = memory_resize(NULL, (size_t)f->n * sizeof *p->order);
  p->place = memory_resize(NULL, (size_t)f->keys_known * sizeof *p->place);
  if (p->from && p->order && p->place && fold_init_output(f, &p->rows) && place_keys(p, shards) &&
      order_entries(p, shards)) {
    *out = p;
    return PS_OK;
  }
  ps_pack_free(p);
  return PS_NO_MEMORY;
}

static bool pack_block(ps_pack *p, const uint32_t *order, int64_t n) {
  const ps_fold *f = p->f;
  int64_t at = p->bytes.length;
  uint64_t keys[CODEC_ROWS];
  kernel_output o = {.order = order, .n = n, .rows = &p->rows};
  if (!codec_space(&p->bytes, sizeof(block_head)) || !fold_put(f, o)) return false;
  for (int64_t i = 0; i < n; i++) keys[i] = p->place[(uint32_t)f->entry[order[i]].pair];
  bool ok = codec_put_words(&p->bytes, keys, n);
  for (int32_t c = 0; ok && c < f->partial_columns; c++) {
    if (c == 0 || c > f->keys) ok = codec_put_column(&p->bytes, &p->rows.column[c], n);
  }
  block_head head = {(uint32_t)(p->bytes.length - at), (uint32_t)n, f->begin[f->entry[order[0]].pair >> 32]};
  if (ok) memcpy(p->bytes.data + at, &head, sizeof head);
  return ok && p->bytes.length - at <= UINT32_MAX;
}

ps_code ps_pack_get(ps_pack *p, int32_t shard, const uint8_t **data, int64_t *length) {
  p->bytes.length = 0;
  int64_t end = p->from[shard + 1];
  for (int64_t i = p->from[shard]; i < end; i += CODEC_ROWS) {
    if (!pack_block(p, p->order + i, end - i < CODEC_ROWS ? end - i : CODEC_ROWS)) return PS_NO_MEMORY;
  }
  *data = p->bytes.length ? p->bytes.data : NULL;
  *length = p->bytes.length;
  return PS_OK;
}

/* ---- in ---- */

ps_code ps_fold_number_keys(ps_fold *f, const struct ArrowArray *keys, uint32_t *numbers) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(keys, 1 + f->keys, f->column_types);
  bool ok = b && fold_number_keys(f, b);
  if (ok) memcpy(numbers, f->numbers.numbers, (size_t)b->rows * sizeof *numbers);
  batch_free(b);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* What a block is read into. */
typedef struct {
  batch *b;
  codec_column *column;
  uint64_t places[CODEC_ROWS];
  uint32_t numbers[CODEC_ROWS];
} reader;

static bool init_reader(const ps_fold *f, reader *r) {
  size_t columns = (size_t)f->partial_columns;
  r->b = memory_new(sizeof *r->b + columns * sizeof(column));
  r->column = memory_resize(NULL, columns * sizeof *r->column);
  return r->b && r->column;
}

static void free_reader(reader *r) {
  memory_free(r->b);
  memory_free(r->column);
}

/* Values have 64 bits here, whatever their type was. */
static column column_of(const codec_column *c, bool is_bytes) {
  if (!is_bytes) return (column){.type = PS_I64, .validity = c->validity, .values = c->words};
  return (column){.type = PS_BYTES64, .validity = c->validity, .values = c->data, .offsets = c->offsets};
}

static bool unpack_block(const ps_fold *f, const uint32_t *numbers, int64_t keys, bytes *from, reader *r) {
  int64_t n = r->b->rows;
  if (!codec_get_words(from, r->places, n)) return false;
  for (int64_t i = 0; i < n; i++) {
    if (r->places[i] >= (uint64_t)keys) return false;
    r->numbers[i] = numbers[r->places[i]];
  }
  for (int32_t c = 0; c < f->partial_columns; c++) {
    if (c > 0 && c <= f->keys) continue;
    bool is_bytes = type_is_bytes(f->partial_types[c]);
    if (!codec_get_column(from, is_bytes, n, &r->column[c])) return false;
    r->b->columns[c] = column_of(&r->column[c], is_bytes);
  }
  return from->length == 0;
}

/* The next block; false: there is none, as it should be. */
static bool next_block(bytes *rest, bytes *block, int64_t *rows) {
  block_head head;
  if (rest->length < (int64_t)sizeof head) return false;
  memcpy(&head, rest->data, sizeof head);
  if (head.length < sizeof head || head.length > rest->length || head.rows < 1 || head.rows > CODEC_ROWS) return false;
  *block = (bytes){rest->data + sizeof head, head.length - (int64_t)sizeof head};
  *rows = head.rows;
  rest->data += head.length;
  rest->length -= head.length;
  return true;
}

static ps_code join_blocks(ps_fold *f, const uint32_t *numbers, int64_t keys, bytes rest, reader *r, ps_fault *fault) {
  while (rest.length > 0) {
    bytes block;
    *fault = (ps_fault){.aggregate = -1, .code = PS_BAD_PACK};
    if (!next_block(&rest, &block, &r->b->rows) || !unpack_block(f, numbers, keys, &block, r)) return PS_CORRUPT;
    ps_code code = fold_join(f, r->b, false, r->numbers, fault);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

ps_code ps_fold_add_packed(ps_fold *f, const uint32_t *numbers, int64_t keys, const uint8_t *data, int64_t length,
                           ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  reader r = {0};
  ps_code code = init_reader(f, &r) ? PS_OK : PS_NO_MEMORY;
  if (code == PS_OK) code = join_blocks(f, numbers, keys, (bytes){data, length}, &r, fault);
  f->broken = f->broken || code == PS_CORRUPT;
  free_reader(&r);
  return code;
}
