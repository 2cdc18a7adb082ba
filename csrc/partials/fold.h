/*
 * fold.h - partial aggregates of rows in any order: one entry per (slice, key).
 *
 * Ours, not in the paper. If rows are spread over many machines, each folds its own rows into entries; only entries are
 * sent, and whoever receives all entries of a key combines them into windows. fold_rows.c adds rows, fold_find.c finds
 * their entries, fold_export.c writes entries as rows of Arrow columns ("partials"), fold_join.c adds these to another
 * fold, fold_parcels.c does both with packed bytes, combine.c emits the windows.
 *
 *   begin    slice number -> begin of the slice; slices are numbered 0, 1, 2, ... in order of appearance
 *   entry    [slice 0, key 17: 3 rows] [slice 0, key 4: 1 row] [slice 1, key 17: 2 rows] ...   in order of appearance
 *   column   one array of states per aggregate, parallel to `entry`
 *   recent   key number -> the key's latest entry, which answers most lookups. Rows of a fresh slice need nothing else:
 *            its entries are the last ones, so a key whose latest entry is not among them is new in the slice
 *   slot     hash table: (slice, key) -> entry, for all other rows. Filled at the next lookup: sorted rows never use it
 *   store    variable-size parts of states: strings, wide sums (kernel.h)
 *
 * An unfolded fold (ps_fold_keep_rows) makes one entry per row and looks up nothing, for rows that hardly share keys.
 *
 * Invariants
 *   I1  an entry holds exactly the added rows of its (slice, key) that are in some window
 *   I2  no two entries have the same (slice, key), no two numbers the same slice or key; unfolded: a number is a row
 *   I3  an entry does not depend on the order or the grouping of its rows: sums are exact, first and last carry
 *       (ts, stream, position)
 *   I4  windows that start before start_next are emitted; no entry is only in such windows
 *
 * A fold belongs to one thread at a time. If memory runs out within a batch, or a row appears twice, part of the batch
 * has been added: the fold is broken, and every later call but free returns PS_CLOSED.
 */
#pragma once

#include "windows/edges.h"
#include "base/hash.h"
#include "keys/key_numbers.h"
#include "columns/output.h"
#include "aggregates/partial.h"

#define FOLD_AHEAD SIZED(8, 1) /* rows between the prefetch of an entry and its use */

#define FOLD_NEAR SIZED(64, 2) /* cached slices: rows may alternate between n of them at little cost; a power of two */

/* More than any run has. Below it, counts, sums and results computed from them do not overflow. */
#define FOLD_ROWS_MAX (INT64_C(1) << 62)

typedef struct {
  uint64_t pair; /* slice number << 32 | key number */
  int64_t rows;
} fold_entry;

/* States of an aggregate, by entry; all bytes zero: no row counted (kernel.h). */
typedef struct {
  const aggregate *a;
  size_t size; /* of a state */
  void *states;
  int64_t capacity;
} fold_column;

/* A slice that was looked up. */
typedef struct {
  uint64_t begin, length; /* length 0: none */
  uint64_t high;          /* its number << 32 */
  bool covered;           /* by some window */
  bool fresh;             /* new, and no row of another slice was added since */
  int64_t first;          /* if fresh: its first entry; all later entries are of this slice */
} fold_slice;

typedef struct combine_pass combine_pass;

struct ps_fold {
  pane_windows windows;
  uint64_t reciprocal; /* 2^64 / advance, rounded down: divides by advance (period_of) */
  uint64_t behind;     /* size % advance */
  aggregates functions;
  int32_t keys, columns;
  ps_type *column_types;    /* of the rows */
  int32_t stream, position; /* columns of the rows; -1: all rows have stream 0, position 0 */
  int32_t partial_columns;  /* number of columns of partials */
  ps_type *partial_types;   /* of partials */
  bool broken;
  bool unfolded; /* each row is an entry, with the row's number as key number (ps_fold_keep_rows) */
  int64_t total; /* rows in all entries */
  key_table table;
  key_cache cache;
  key_numbers numbers;
  int64_t keys_known, key_bytes; /* number of keys, and their memory; unfolded: rows, and 0 */
  fold_slice now;                /* of the latest row */
  fold_slice near[FOLD_NEAR];    /* cache of slices, by ts / advance */
  uint64_t *begin;
  int64_t slices, slices_capacity;
  uint32_t *slice_slot; /* hash table: slice number + 1; 0: empty */
  int64_t slice_slots;  /* a power of two, at least twice `slices` */
  fold_entry *entry;
  int64_t n, capacity;
  int64_t indexed; /* entries below this number are in the hash table */
  fold_column *column;
  uint32_t *slot;   /* entry + 1; 0: empty */
  int64_t slots;    /* a power of two, at least twice n */
  uint32_t *recent; /* entry + 1; 0: none */
  int64_t recent_capacity;
  kernel_store store;  /* strings and wide sums of all entries */
  uint64_t start_next; /* lowest start of a window not emitted */
  combine_pass *pass;  /* emits windows (combine.c); NULL: none is running */
  out_rows rows;       /* emitted, not handed to the caller yet */
};

/* Reserves a block's entries and slices, so that fold_find cannot fail. False: out of memory, nothing changed. */
bool fold_reserve(ps_fold *f);

/* Looks up the keys of the batch, in its columns 1, 2, ... False: out of memory; some keys may be added. */
bool fold_number_keys(ps_fold *f, const batch *b);

/* Adds the rows of a batch block by block: reserves, then `add` adds n rows from row `row` on. If it fails, the fold is
   broken. */
typedef ps_code (*fold_add)(ps_fold *f, void *context, int64_t row, int64_t n, ps_fault *fault);
ps_code fold_blocks(ps_fold *f, int64_t rows, fold_add add, void *context, ps_fault *fault);

/* A block's rows. */
typedef struct {
  int64_t n;
  const int64_t *ts;
  const uint32_t *numbers; /* key numbers */
  const int64_t *weights;  /* rows that each row counts for; NULL: 1 */
} fold_sought;

/* Finds or makes their entries and adds to the entries' rows; skips rows in no window (fold_find.c). */
void fold_find(ps_fold *f, const fold_sought *in, row_entries *out);

/* Unfolded: makes an entry of each row that is in some window; their key numbers begin with `first`. */
void fold_make(ps_fold *f, const fold_sought *in, uint32_t first, row_entries *out);

/* Inserts an entry into the hash table, which has room. */
static inline void fold_index(ps_fold *f, int64_t e) {
  uint64_t i = hash_word(f->entry[e].pair), mask = (uint64_t)f->slots - 1;
  while (f->slot[i & mask]) i++;
  f->slot[i & mask] = (uint32_t)e + 1;
}

/* Frees the entries of slices that begin before `begin`. False: out of memory, nothing changed. */
bool fold_drop_before(ps_fold *f, uint64_t begin);

/* Sets the number and types of the columns of partials (fold_export.c). False: out of memory. */
bool fold_init_partials(ps_fold *f);

/* fold_init_output makes empty columns of partials; fold_put appends the entries `o` to all but the key columns. False:
   out of memory. */
bool fold_init_output(const ps_fold *f, out_rows *rows);
bool fold_put(const ps_fold *f, kernel_output o);

/* Adds partials; `numbers`: their key numbers; NULL: keys are in the key columns (fold_join.c). */
ps_code fold_join(ps_fold *f, const batch *b, bool held, const uint32_t *numbers, ps_fault *fault);

/* Slice numbers, sorted by begin. `order` has room for 2 * f->slices; returns one of its halves (combine.c). */
uint32_t *fold_sort_slices(const ps_fold *f, uint32_t *order);

/* Frees the pass; to be called before the fold changes. The next pass gathers the entries again (combine.c). */
void combine_end(ps_fold *f);
