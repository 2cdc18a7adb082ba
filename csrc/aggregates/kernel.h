/*
 * kernel.h - a window function: one table of callbacks, through which all who fold, slide, save and move go.
 *
 *   who                            what it has of a key        part of the table
 *   windows (aggregate.h)          a state per window          add, combine, finish, and its bytes in snapshots
 *   slices (partial.h, slice.h)    a partial per slice         fold, enter, leave, push, pop, finish_many, save, load
 *   folds (fold.h)                 an entry per slice, which   fold_entries, export, check, import, gather
 *                                  travels
 *
 * Each family is one file: count.c, sums.c, moments.c (var, std), extremes.c (min, max), arg_extremes.c, first_last.c,
 * strings.c (min, max, first, last and arg_* of strings), user_functions.c. The layout of states, partials and entries
 * is known there and nowhere else; all zero bytes is one that no tuple fell into. Where two of them are laid out alike,
 * they share their code. A callback runs once per block of rows or per slice, never per row, but for `add`.
 *
 * To add a function: its table in a family, or in a new file, an `extern` below, and a line in kernel.c.
 */
#pragma once

#include "base/base.h"
#include "base/bytes.h"
#include "columns/batch.h"
#include "columns/output.h"
#include "aggregates/row_block.h"

typedef struct native_udf native_udf;
typedef struct byte_buffer byte_buffer;   /* state_bytes.h */
typedef struct state_reader state_reader; /* the same */

/* ---- slices ---- */

/* Whose a partial is, in the order of tuples of one timestamp: what came with a snapshot is before what comes later. */
enum { PARTIAL_OF_WINDOW, PARTIAL_OF_SLICE, PARTIAL_INPUT };

/* A place in the order of tuples. */
typedef struct {
  uint64_t when;  /* ts + 1 */
  uint64_t input; /* PARTIAL_INPUT + its number, or one of those before it */
} partial_place;

/* The reader's side of one aggregate: its totals by key number. */
typedef struct {
  void *total; /* stacked: the back; the others: the total */
  void *front;
} partial_totals;

/* Which partials of an aggregate belong to which keys. Sums may be plain: every tuple counted and no sum is wide, so
   that the sum alone is kept, half as large. */
typedef struct {
  const uint32_t *keys; /* their numbers, each once; but unfolded: as often as it has tuples */
  void *partials;       /* plain: int128 each */
  int64_t n;
  bool plain;
  const int64_t *rows; /* plain: how many tuples each one has; NULL: unfolded (slice_unfolded.h), one each */
  bool dense;          /* keys are 0, 1, 2, ...; partials of keys without tuples are zero (slice_sum.h) */
} partial_list;

/* Results of many keys, as rows to come of column `to`. */
typedef struct {
  const aggregate *a;
  const partial_totals *t;
  const partial_list *keys;
  const int64_t *rows_of; /* tuples by key number */
  out_rows *rows;
  int32_t to;
  int64_t *failed; /* PS_OVERFLOW: the first row that failed */
} partial_results;

/* A copy of a string that a partial refers to, if its batch is not at hand any more. */
typedef struct {
  uint8_t *data;
  int64_t capacity;
} string_copy;

/* ---- folds ---- */

/* What the entries of a fold hold beside their fixed size. */
typedef struct {
  uint8_t *strings; /* entries refer to it by offset */
  int64_t length, capacity;
  int64_t in_use; /* bytes of `length` that entries have, the others were left for larger ones */
  int64_t wide;   /* bytes of float sums and squares that have a block of their own */
} kernel_store;

/* Where a block of rows, or of entries that travelled, goes. Slices have no store to speak of. */
typedef struct {
  const aggregate *a;
  void *states; /* by entry */
  kernel_store *store;
  ps_fault *fault; /* PS_TWICE: which row */
} kernel_target;

/* Entries as rows to come of columns `to`, `to` + 1, ... */
typedef struct {
  const aggregate *a;
  const void *states;
  const kernel_store *store;
  const uint32_t *order; /* the entries; NULL: those from number `from` on */
  int64_t from, n;
  out_rows *rows;
  int32_t to;
} kernel_output;

static inline int64_t output_entry(const kernel_output *o, int64_t i) { return o->order ? o->order[i] : o->from + i; }

/* Entries that come in: rows `row` to `row` + n of a batch, in the columns `from`, `from` + 1, ... */
typedef struct {
  const batch *b;
  int64_t row, n;
  int32_t from;
  const uint32_t *entry; /* where they go; import only */
  int32_t rows;          /* check only, as what follows: the column that says how many rows each one stands for */
  int32_t number;        /* of the aggregate */
  bool packed;           /* values have 64 bits, and strings are bytes, whatever the type of their column */
  ps_fault *fault;
} kernel_input;

#define KERNEL_COLUMNS 5 /* of an entry that travels, at most */

/* ---- the table ---- */

typedef struct {
  bool mean;     /* sums: avg, not sum */
  bool root;     /* moments: std, not var */
  bool greatest; /* of values or places the greatest wins, not the least: max, last */
  bool placed;   /* the place of a row decides, not its value: first, last, and of equals arg_min, arg_max; it travels
                    in the last three columns */

  /* A window's state: for one thread and one tuple at a time. */
  size_t state_size;
  bool (*add)(const aggregate *a, void *state, const column *c, int64_t row); /* false: out of memory */
  bool (*combine)(const aggregate *a, void *state, void *other); /* NULL: it depends on the order of tuples */
  bool (*reserve)(void *state, const column *c, int64_t row);    /* NULL: its add never allocates */
  void (*drop)(void *state);                                     /* frees what the state holds; NULL: nothing to free */
  ps_code (*finish)(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault);
  bool (*write)(const aggregate *a, const void *state, byte_buffer *to); /* false: out of memory; NULL: no bytes */
  void (*read)(const aggregate *a, void *state, state_reader *from);     /* checks; the state is zero before */

  /* Partials of slices; without finish_many no design has slices of it. */
  size_t size;   /* of a partial; 0: the rows of the key say it all */
  bool stacked;  /* min, max, arg_min, arg_max, first */
  bool sums;     /* sum, avg: may be plain */
  bool owns;     /* partials may hold memory of their own: float sums and moments */
  bool is_bytes; /* partials refer to bytes elsewhere */
  ps_code (*fold)(const kernel_target *t, const counted_rows *c);
  bool (*enter)(const partial_totals *t, const partial_list *list); /* false: out of memory */
  bool (*leave)(const partial_totals *t, const partial_list *list); /* not stacked; false: out of memory */
  void (*push)(const partial_totals *t, const partial_list *list);  /* stacked */
  void (*pop)(const partial_totals *t, const partial_list *list);   /* stacked */
  ps_code (*finish_many)(const partial_results *r);
  void (*save)(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until, void *state);
  void (*load)(const aggregate *a, const void *state, partial_place place, void *partial);
  /* save and load NULL: the state is laid out like the partial */

  /* Sums: whether all are plain, and their move; whether some partial holds memory; tuples as they are
     (slice_unfolded.h; false: some value does not fit). */
  bool (*is_plain)(const void *partials, const int64_t *rows, int64_t n);
  void (*pack_plain)(const void *partials, int64_t n, int128 *to);
  bool (*holds)(const void *partials, int64_t n);
  void (*drop_many)(void *partials, int64_t n);
  bool (*unfold)(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to);
  /* First: those of the rows `row` (slice_firsts.h). */
  void (*pick)(const uint16_t *row, int64_t n, const int64_t *ts, const uint64_t *bits, uint64_t input, void *partials);
  /* Strings: copies those that the entries of the block refer to, unless they are copies; how many bytes there are; and
     moves them to `to`, giving where they end. */
  bool (*settle)(void *partials, string_copy *copies, const row_entries *rows);
  int64_t (*length)(const void *partials, int64_t n);
  uint8_t *(*pack)(void *partials, int64_t n, uint8_t *to);

  /* Entries of folds, which travel as columns. */
  size_t entry_size;
  ps_code (*fold_entries)(const kernel_target *t, const counted_rows *c);
  int32_t columns;
  ps_type types[KERNEL_COLUMNS];          /* PS_TYPES: that of the aggregate's column, then that of its second one */
  bool (*export)(const kernel_output *o); /* false: out of memory */
  bool (*check)(const aggregate *a, const kernel_input *in); /* false: kernel_refuse has been called */
  ps_code (*import)(const kernel_target *t, const kernel_input *in);
  /* As partials; place[e] is where entry e goes, or stays if NULL. No gather: entries are laid out like partials. */
  void (*gather)(const kernel_store *store, const void *states, int64_t n, const uint32_t *place, void *partials);
  /* Entries are dropped, and others stay, whose strings move. NULL: nothing to do. */
  void (*entries_drop)(kernel_store *store, void *states, int64_t n);
  void (*entries_keep)(const kernel_store *from, kernel_store *to, void *states, int64_t n);
} kernel;

/* The only lookup by function; NULL: pystream/_engine/plan.py lets no such function and type through. */
const kernel *kernel_of(ps_function function, ps_type type, bool masked);

extern const kernel kernel_count, kernel_count_rows;
extern const kernel kernel_sum_integers, kernel_avg_integers, kernel_sum_floats, kernel_avg_floats;
extern const kernel kernel_var_integers, kernel_std_integers, kernel_var_floats, kernel_std_floats;
extern const kernel kernel_min, kernel_max;
extern const kernel kernel_arg_min, kernel_arg_max;
extern const kernel kernel_first, kernel_last;
extern const kernel kernel_min_bytes, kernel_max_bytes, kernel_first_bytes, kernel_last_bytes;
extern const kernel kernel_arg_min_bytes, kernel_arg_max_bytes;
extern const kernel kernel_udf, kernel_native;

/* ---- what families share ---- */

static inline ps_code kernel_put_bits(out_rows *rows, int32_t to, uint64_t bits) {
  return out_put_bits(rows, to, bits) ? PS_OK : PS_NO_MEMORY;
}

static inline ps_code kernel_put_null(out_rows *rows, int32_t to) {
  return out_put_null(rows, to) ? PS_OK : PS_NO_MEMORY;
}

static inline int64_t input_integer(const kernel_input *in, int32_t which, int64_t row) {
  return *column_integers(&in->b->columns[which], row);
}

/* Says what is wrong with which row; false. */
bool kernel_refuse(const kernel_input *in, int64_t row, ps_partial_fault what);

/* Whether the first column has no negative number and none above those of the rows; whether what was packed there is a
   value of the aggregate's column. */
bool kernel_check_counts(const aggregate *a, const kernel_input *in);
bool kernel_check_values(const aggregate *a, const kernel_input *in);
