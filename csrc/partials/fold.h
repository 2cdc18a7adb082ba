/*
 * fold.h - partial aggregates of rows in any order: one entry per (slice, key).
 *
 * Ours, not in the paper. Where rows are spread over many machines, each folds its own rows into entries, only entries
 * are sent, and the receiver of all entries of a key combines them into windows. fold_rows.c adds rows, fold_find.c
 * finds their entries, fold_export.c writes entries as rows of Arrow columns ("partials"), fold_join.c adds these to
 * another fold, fold_parcels.c does both with packed bytes, and combine.c emits the windows.
 *
 *   begin    slice number -> where the slice begins; slices are numbered 0, 1, 2, ... in order of appearance
 *   entry    [slice 0, key 17: 3 rows] [slice 0, key 4: 1 row] [slice 1, key 17: 2 rows] ...   in order of appearance
 *   column   one array of states per aggregate, parallel to `entry`
 *   recent   key number -> the key's latest entry. It answers most lookups. Rows of a fresh slice need nothing else: its
 *            entries are the last ones, so a key whose latest entry is not among them is new in the slice
 *   slot     hash table: (slice, key) -> entry, for all other rows. Filled lazily, at a lookup, so sorted rows never
 *            touch it
 *   store    variable-size parts of states: strings, wide sums (kernel.h)
 *
 * An unfolded fold (ps_fold_keep_rows) makes one entry per row and looks up nothing, for rows that hardly share keys.
 *
 * Invariants
 *   I1  an entry holds exactly the rows of its pair that were added and are in some window
 *   I2  no two entries have the same pair, no two numbers the same slice or key; unfolded: a number is a row
 *   I3  an entry does not depend on the order or the grouping of its rows: sums are exact, first and last carry
 *       (ts, stream, position)
 *   I4  windows that start before start_next were emitted; no entry is in such windows alone
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

#define FOLD_NEAR SIZED(64, 2) /* cached slices: rows may alternate between so many at little cost; a power of two */

/* Beyond any run; counts, sums and results computed from them do not overflow below it. */
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

/* A slice that was looked up. */
typedef struct {
  uint64_t begin, length; /* length 0: none */
  uint64_t high;          /* its number << 32 */
  bool covered;           /* some window covers it */
  bool fresh;             /* new, and no row of another slice was added since */
  int64_t first;          /* fresh: its first entry; all later ones are its own */
} fold_slice;

typedef struct combine_pass combine_pass;

struct ps_fold {
  pane_windows windows;
  uint64_t reciprocal; /* 2^64 / advance: turns the division by advance into a multiplication and a correction */
  uint64_t behind;     /* size % advance */
  aggregates functions;
  int32_t keys, columns;
  ps_type *column_types;    /* of the rows */
  int32_t stream, position; /* their columns; -1: all rows are of stream 0, at position 0 */
  int32_t partial_columns;  /* of the partials */
  ps_type *partial_types;   /* the same */
  bool broken;
  bool unfolded; /* each row is an entry, and the row's number stands for its key (ps_fold_keep_rows) */
  int64_t total; /* rows in all entries */
  key_table table;
  key_cache cache;
  key_numbers numbers;
  int64_t keys_known, key_bytes; /* keys counted so far, and their memory; unfolded: rows, and 0 */
  fold_slice now;                /* of the latest row */
  fold_slice near[FOLD_NEAR];    /* cache of slices, by the advance that they are in */
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
  uint64_t start_next; /* the lowest start of a window that was not emitted */
  combine_pass *pass;  /* over the windows that are being emitted; NULL: none */
  out_rows rows;       /* emitted, not handed over yet */
};

/* Makes room for a block's entries and slices, so that fold_find cannot fail. False: out of memory, nothing changed. */
bool fold_reserve(ps_fold *f);

/* Numbers the keys of the batch, in its columns 1, 2, ... False: out of memory; some may be numbered. */
bool fold_number_keys(ps_fold *f, const batch *b);

/* Adds the rows of a batch block by block: `add` makes room and adds n rows from number `row` on. The fold is broken if
   it fails. */
typedef ps_code (*fold_add)(ps_fold *f, void *context, int64_t row, int64_t n, ps_fault *fault);
ps_code fold_blocks(ps_fold *f, int64_t rows, fold_add add, void *context, ps_fault *fault);

/* A block's rows. */
typedef struct {
  int64_t n;
  const int64_t *ts;
  const uint32_t *numbers; /* of their keys */
  const int64_t *weights;  /* rows that each one stands for; NULL: one */
} fold_sought;

/* Finds their entries and adds their rows there; skips rows in no window (fold_find.c). */
void fold_find(ps_fold *f, const fold_sought *in, row_entries *out);

/* Unfolded: makes an entry of each row that is in some window; the first row has this number. */
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

/* fold_init_output makes empty columns of partials; fold_put appends the entries of `o` to all but the key columns.
   False: out of memory. */
bool fold_init_output(const ps_fold *f, out_rows *rows);
bool fold_put(const ps_fold *f, kernel_output o);

/* Adds partials; `numbers` of their keys, NULL: they are in the key columns (fold_join.c). */
ps_code fold_join(ps_fold *f, const batch *b, bool held, const uint32_t *numbers, ps_fault *fault);

/* Slice numbers sorted by where the slices begin. `order` has room for twice as many; returns one of its halves
   (combine.c). */
uint32_t *fold_sort_slices(const ps_fold *f, uint32_t *order);

/* Ends the pass, because the fold is about to change: the next one gathers the entries again (combine.c). */
void combine_end(ps_fold *f);
