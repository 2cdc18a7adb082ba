/*
 * fold_parcels.c - packs entries into few bytes and reads these: sent from folds to combiners, saved as a combiner's
 * state.
 *
 * The entries of a shard, sorted by time, in blocks:
 *
 *   block    4 bytes: its length, these included;  4 bytes: number of entries;  8 bytes: begin of the first entry's
 *            slice;  the key of each entry, as words;  the columns of fold_export.c but the key columns
 *
 * Words and columns as in codec.h. Keys are sent separately: an entry has the place of its key among the keys of the
 * shard, which are sorted by key number. A receiver adds the blocks of many folds in the order of their begins, and
 * holds little more than the open windows.
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
  int64_t *from;   /* first entry of each shard in `order`, and the end */
  uint32_t *order; /* entries by shard and time */
  uint32_t *place; /* by key number: place among the keys of its shard */
  out_rows rows;
  codec_bytes bytes;
};

/* ---- packing ---- */

void ps_pack_free(ps_pack *p) {
  if (!p) return;
  out_rows_free(&p->rows);
  memory_free(p->bytes.data);
  memory_free(p->from);
  memory_free(p->order);
  memory_free(p->place);
  memory_free(p);
}

/* What a stable sort of entries compares: rank[i], or shard[i], or i, the entry's slice or key number. */
typedef struct {
  const uint32_t *rank;
  const uint16_t *shard;
  bool by_slice;
  int64_t end; /* above all of these numbers */
} sort_key;

static inline int64_t sort_number(const ps_fold *f, const sort_key *k, int64_t e) {
  uint64_t pair = f->entry[e].pair;
  uint32_t i = k->by_slice ? (uint32_t)(pair >> 32) : (uint32_t)pair;
  return k->rank ? k->rank[i] : k->shard ? k->shard[i] : i;
}

/* Whether the fold's entries are in that order already. */
static bool is_sorted(const ps_fold *f, const sort_key *k) {
  for (int64_t e = 1; e < f->n; e++) {
    if (sort_number(f, k, e) < sort_number(f, k, e - 1)) return false;
  }
  return true;
}

/* Counting sort of `before` (NULL: 0, 1, 2, ...) into `order`. `from`: k->end + 1 zeros; afterwards the first index of
   each number. */
static void sort_entries(const ps_fold *f, const sort_key *k, const uint32_t *before, int64_t *from, uint32_t *order) {
  for (int64_t e = 0; e < f->n; e++) from[sort_number(f, k, e) + 1]++;
  for (int64_t i = 0; i < k->end; i++) from[i + 1] += from[i];
  for (int64_t i = 0; i < f->n; i++) {
    uint32_t e = before ? before[i] : (uint32_t)i;
    order[from[sort_number(f, k, e)]++] = e;
  }
  memmove(from + 1, from, (size_t)k->end * sizeof *from); /* each has reached the first index of the next */
  from[0] = 0;
}

/* Sorts *order; NULL: the order of the fold's entries, which stays NULL if it is sorted. False: out of memory. */
static bool sort_again(const ps_fold *f, const sort_key *k, uint32_t **order) {
  if (!*order && is_sorted(f, k)) return true;
  int64_t *from = memory_new((size_t)(k->end + 1) * sizeof *from);
  uint32_t *sorted = memory_resize(NULL, (size_t)f->n * sizeof *sorted);
  bool ok = from && sorted;
  if (ok) {
    sort_entries(f, k, *order, from, sorted);
    memory_free(*order);
    *order = sorted;
  } else {
    memory_free(sorted);
  }
  memory_free(from);
  return ok;
}

/* By shard, then time, then key (`by_key`) or order of appearance. */
static bool order_entries(ps_pack *p, const uint16_t *shards, bool by_key) {
  const ps_fold *f = p->f;
  size_t slices = (size_t)f->slices + 1;
  uint32_t *sorted = memory_new(2 * slices * sizeof *sorted), *rank = memory_new(slices * sizeof *rank), *order = NULL;
  bool ok = sorted && rank;
  if (ok) {
    const uint32_t *by_time = fold_sort_slices(f, sorted);
    for (int64_t i = 0; i < f->slices; i++) rank[by_time[i]] = (uint32_t)i;
  }
  ok = ok && (!by_key || sort_again(f, &(sort_key){.end = f->keys_known}, &order)) &&
       sort_again(f, &(sort_key){.rank = rank, .by_slice = true, .end = f->slices}, &order);
  if (ok) sort_entries(f, &(sort_key){.shard = shards, .end = p->shards}, order, p->from, p->order);
  memory_free(sorted);
  memory_free(rank);
  memory_free(order);
  return ok;
}

void ps_fold_mark_keys(const ps_fold *f, uint16_t *unused) {
  for (int64_t i = 0; i < f->keys_known; i++) unused[i] = 1;
  for (int64_t e = 0; e < f->n; e++) unused[(uint32_t)f->entry[e].pair] = 0;
}

static bool place_keys(ps_pack *p, const uint16_t *shards) {
  uint32_t *count = memory_new((size_t)p->shards * sizeof *count);
  for (int64_t i = 0; count && i < p->f->keys_known; i++) p->place[i] = count[shards[i]]++;
  memory_free(count);
  return count != NULL;
}

ps_code ps_pack_new(ps_fold *f, const uint16_t *shards, int32_t count, int32_t by_key, ps_pack **out) {
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
      order_entries(p, shards, by_key != 0)) {
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

/* ---- reading ---- */

ps_code ps_fold_number_keys(ps_fold *f, const struct ArrowArray *keys, uint32_t *numbers) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(keys, 1 + f->keys, f->column_types);
  bool ok = b && fold_number_keys(f, b);
  if (ok) memcpy(numbers, f->numbers.numbers, (size_t)b->rows * sizeof *numbers);
  batch_free(b);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* The memory that blocks are read into. */
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

/* Values have 64 bits here, whatever their type. */
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

/* Takes the next block off `rest`; false: not a valid one. */
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

static ps_code join_blocks(ps_fold *f, const uint32_t *numbers, int64_t keys, bytes rest, bool held, reader *r,
                           ps_fault *fault) {
  while (rest.length > 0) {
    bytes block;
    *fault = (ps_fault){.aggregate = -1, .code = PS_BAD_PACK};
    if (!next_block(&rest, &block, &r->b->rows) || !unpack_block(f, numbers, keys, &block, r)) return PS_CORRUPT;
    ps_code code = fold_join(f, r->b, held, r->numbers, fault);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

ps_code ps_fold_add_packed(ps_fold *f, const uint32_t *numbers, int64_t keys, const uint8_t *data, int64_t length,
                           int32_t held, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  reader r = {0};
  ps_code code = init_reader(f, &r) ? PS_OK : PS_NO_MEMORY;
  if (code == PS_OK) code = join_blocks(f, numbers, keys, (bytes){data, length}, held != 0, &r, fault);
  f->broken = f->broken || code == PS_CORRUPT;
  free_reader(&r);
  return code;
}
