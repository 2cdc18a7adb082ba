/*
 * fold.h - partial aggregates of rows that come in any order: one entry per (slice, key).
 *
 * Ours, not in the paper. Where rows lie on many machines, each folds its own into entries, only the entries travel,
 * and whoever has all entries of a key combines them into its windows: fold_rows.c takes rows in, fold_find.c finds
 * their entries, fold_export.c puts entries out as rows of Arrow columns ("partials"), fold_join.c takes them in
 * again, fold_parcels.c does both with bytes, and combine.c makes the windows.
 *
 *   begin    slice number -> where the slice begins; slices are numbered 0, 1, 2, ... as they are met
 *   entry    [slice 0, key 17: 3 rows] [slice 0, key 4: 1 row] [slice 1, key 17: 2 rows] ...   as they are met
 *   column   one array of states per aggregate, beside `entry`
 *   recent   key number -> the entry that the key was last met in: right if that is the pair looked for. Rows of a
 *            slice that is new and has not been left since need nothing else: its entries are the last ones, and a key
 *            whose recent entry is not among them has not been met
 *   slot     hash table: (slice, key) -> entry, for all other rows. It lags behind: entries are put into it when it
 *            is next asked, so sorted rows never touch it
 *   store    what states have beside their fixed size: strings, wide sums (kernel.h)
 *
 * Invariants
 *   I1  an entry holds exactly the rows of its pair that were taken in and are in some window
 *   I2  no two entries have the same pair, no two numbers stand for the same slice or key
 *   I3  what an entry holds does not depend on the order or the grouping in which its rows came: sums are exact, first
 *       and last carry (ts, stream, position)
 *   I4  windows that start before start_next have been put out; no entry is in such windows alone
 *
 * A fold belongs to one thread at a time. When memory runs out on the way through a batch, or a row turns up twice,
 * some of the batch is in and some is not: the fold is broken then, and every call but free answers PS_CLOSED.
 */
#pragma once

#include "windows/edges.h"
#include "base/hash.h"
#include "keys/key_numbers.h"
#include "columns/output.h"
#include "aggregates/partial.h"

#define FOLD_AHEAD SIZED(8, 1) /* rows whose entries are asked for before their turn */

#define FOLD_NEAR SIZED(64, 2) /* slices between which rows may go to and fro at little cost: a power of two */

/* No run gets there, and counts, sums and what is computed from them do not overflow below it. */
#define FOLD_ROWS_MAX (INT64_C(1) << 62)

typedef struct {
  uint64_t pair; /* slice number << 32 | key number */
  int64_t rows;
} fold_entry;

/* The states of an aggregate, by entry; all zero bytes: no row counted (kernel.h). */
typedef struct {
  const aggregate *a;
  size_t size; /* of a state */
  void *states;
  int64_t capacity;
} fold_column;

/* The slice that was looked at last. */
typedef struct {
  uint64_t begin, length; /* length 0: none */
  uint64_t high;          /* its number << 32 */
  bool covered;           /* some window covers it */
  bool fresh;             /* it was met for the first time, and no row of another slice has come since */
  int64_t first;          /* fresh: its entries are those from this one on */
} fold_slice;

typedef struct combine_pass combine_pass;

struct ps_fold {
  pane_windows windows;
  uint64_t reciprocal; /* 2^64 / advance: dividing by it is a multiplication and a correction */
  uint64_t behind;     /* size % advance */
  aggregates functions;
  int32_t keys, columns;
  ps_type *column_types;    /* of the rows */
  int32_t stream, position; /* their columns; -1: all rows are of stream 0, at position 0 */
  int32_t partial_columns;  /* of the partials */
  ps_type *partial_types;   /* the same */
  bool broken;
  int64_t total; /* rows in all entries */
  key_table table;
  key_cache cache;
  key_numbers numbers;
  int64_t keys_known, key_bytes; /* as far as they were counted */
  fold_slice now;
  fold_slice near[FOLD_NEAR]; /* slices looked at before, by the advance that they lie in */
  uint64_t *begin;
  int64_t slices, slices_capacity;
  uint32_t *slice_slot; /* hash table: slice number + 1; 0: empty */
  int64_t slice_slots;  /* a power of two, at least twice `slices` */
  fold_entry *entry;
  int64_t n, capacity;
  int64_t indexed; /* entries that are in the hash table: those before this one */
  fold_column *column;
  uint32_t *slot;   /* entry + 1; 0: empty */
  int64_t slots;    /* a power of two, at least twice n */
  uint32_t *recent; /* entry + 1; 0: none */
  int64_t recent_capacity;
  kernel_store store;  /* strings and wide sums of all entries */
  uint64_t start_next; /* the lowest start of a window that has not been put out */
  combine_pass *pass;  /* the windows that are being put out; NULL: none */
  out_rows rows;       /* of windows, not handed over yet */
};

/* Room for a block's entries and slices, so that fold_find cannot fail. False when out of memory; nothing has changed.
 */
bool fold_reserve(ps_fold *f);

/* Numbers the keys of the batch, which has them in columns 1, 2, ... The same. */
bool fold_number_keys(ps_fold *f, const batch *b);

/* A block's rows. */
typedef struct {
  int64_t n;
  const int64_t *ts;
  const uint32_t *numbers; /* of their keys */
  const int64_t *weights;  /* how many rows each one stands for; NULL: for itself */
} fold_sought;

/* Finds their entries and counts them there; rows in no window are left out (fold_find.c). */
void fold_find(ps_fold *f, const fold_sought *in, row_entries *out);

/* Puts an entry into the hash table, which has room. */
static inline void fold_index(ps_fold *f, int64_t e) {
  uint64_t i = hash_word(f->entry[e].pair), mask = (uint64_t)f->slots - 1;
  while (f->slot[i & mask]) i++;
  f->slot[i & mask] = (uint32_t)e + 1;
}

/* Drops the entries of slices that begin before `begin`, and what they hold. False when out of memory: nothing has
   changed. */
bool fold_drop_before(ps_fold *f, uint64_t begin);

/* Partials (fold_export.c): all columns of the query, by number and type. False when out of memory. */
bool fold_init_partials(ps_fold *f);

/* The columns of partials, and entries as rows of them, without the key columns; `o` says which entries, and where to.
   False when out of memory. */
bool fold_init_output(const ps_fold *f, out_rows *rows);
bool fold_put(const ps_fold *f, kernel_output o);

/* Takes partials in, whose columns are those; `numbers` are those of their keys, or NULL: the key columns say it
   (fold_join.c). */
ps_code fold_join(ps_fold *f, const batch *b, bool held, const uint32_t *numbers, ps_fault *fault);

/* The numbers of the slices by where they begin, in `order` or behind it: it has room for twice as many (combine.c). */
uint32_t *fold_sort_slices(const ps_fold *f, uint32_t *order);

/* The fold changes: the windows that were being put out have to be gathered again (combine.c). */
void combine_end(ps_fold *f);
