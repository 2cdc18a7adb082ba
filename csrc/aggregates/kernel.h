/*
 * kernel.h - a window function as one table of callbacks: for windows, slices, snapshots and folds.
 *
 *   who                            what it has of a key        part of the table
 *   windows (aggregate.h)          a state per window          add, combine, finish, and its bytes in snapshots
 *   slices (partial.h, slice.h)    a partial per slice         fold, enter, leave, push, pop, total, finish_many
 *   folds (fold.h)                 an entry per slice, which   fold_entries, export, check, import, gather
 *                                  travels
 *
 * Each family is one file: count.c, sums.c, moments.c (var, std), pairs.c (covar, slope, intercept, corr), extremes.c
 * (min, max), placed.c (first, last, arg_min, arg_max), strings.c (these six, of strings), sets.c (functions over
 * multisets), user_functions.c. It alone knows the layout of states, partials
 * and entries. Zero bytes are an empty one. A state begins with a partial, so a window is finished, combined and saved
 * as the total of a slice is. A callback runs once per block of rows or per slice, never per row; only `add` does.
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
typedef struct shared_kind shared_kind;   /* shared.h */
typedef struct byte_buffer byte_buffer;   /* state_bytes.h */
typedef struct state_reader state_reader; /* the same */

/* ---- slices ---- */

/* Origin of a partial, in the order of tuples of one timestamp: what a snapshot brought is before what inputs add. */
enum { PARTIAL_OF_WINDOW, PARTIAL_OF_SLICE, PARTIAL_INPUT };

/* A place in the order of tuples; partials of `placed` functions begin with it. */
typedef struct {
  uint64_t when;  /* ts + 1; 0: there is no tuple */
  uint64_t input; /* PARTIAL_INPUT + its number, or one of those before it */
} partial_place;

/* The totals of one aggregate, by key number. */
typedef struct {
  void *total; /* stacked: the back stack */
  void *front; /* stacked only */
} partial_totals;

/* The partials of one aggregate and their keys. Sums may be plain: every tuple counted and no sum is wide, so only the
   sum is stored, half the size. */
typedef struct {
  const uint32_t *keys; /* key numbers, each once; unfolded: once per tuple */
  void *partials;       /* plain: int128 each */
  int64_t n;
  bool plain;
  const int64_t *rows; /* plain: tuples of each; NULL: unfolded (slice_unfolded.h), one each */
  bool dense;          /* keys are 0, 1, 2, ...; partials of keys without tuples are zero (slice_sum.h) */
} partial_list;

/* Where the results of many keys are written: column `to` of the next rows. */
typedef struct {
  const aggregate *a;
  const partial_totals *t;
  const partial_list *keys;
  const int64_t *rows_of; /* tuples by key number */
  out_rows *rows;
  int32_t to;
  int64_t *failed; /* PS_OVERFLOW: the first row that failed */
} partial_results;

/* A copy of a string that a partial refers to, made when its batch is released. */
typedef struct {
  uint8_t *data;
  int64_t capacity;
} string_copy;

/* ---- folds ---- */

/* Memory of a fold's entries besides their fixed size. */
typedef struct {
  uint8_t *strings; /* entries refer to it by offset */
  int64_t length, capacity;
  int64_t in_use; /* bytes of `length` that entries refer to; the rest was abandoned for larger ones */
  int64_t wide;   /* bytes of wide sums and squares, which are allocated singly */
} kernel_store;

/* Where a block of rows, or of entries that come in, is folded. In slices the store is not used. */
typedef struct {
  const aggregate *a;
  void *states; /* by entry */
  kernel_store *store;
  ps_fault *fault; /* PS_TWICE: which row */
} kernel_target;

/* Where entries are written: columns `to`, `to` + 1, ... of the next rows. */
typedef struct {
  const aggregate *a;
  const void *states;
  const kernel_store *store;
  const uint32_t *order; /* the entries; NULL: from, from + 1, ... */
  int64_t from, n;
  out_rows *rows;
  int32_t to;
} kernel_output;

static inline int64_t output_entry(const kernel_output *o, int64_t i) { return o->order ? o->order[i] : o->from + i; }

/* Entries that come in: rows row to row + n of a batch, columns from, from + 1, ... */
typedef struct {
  const batch *b;
  int64_t row, n;
  int32_t from;
  const uint32_t *entry; /* import only: the entry of each */
  int32_t rows;          /* check only, as all below: the column with the number of rows in each entry */
  int32_t number;        /* of the aggregate */
  bool packed;           /* from a parcel: values have 64 bits, strings are bytes, whatever the type of their column */
  ps_fault *fault;
} kernel_input;

#define KERNEL_COLUMNS 5 /* of an entry that travels, at most */

/* ---- the table ---- */

typedef struct {
  bool mean;     /* sums: avg, not sum */
  bool root;     /* moments: std, not var */
  int result;    /* pairs: exact_pair_result */
  bool greatest; /* the greatest value or place wins, not the least: max, last, arg_max, top_k */
  bool placed;   /* the place of a row decides: first, last, and of equals arg_min, arg_max; entries have it in their
                    last three columns */
  bool lists;    /* results are lists: strings of bytes (set_results.c) */

  /* A window's state: used by one thread at a time. */
  size_t state_size;
  bool (*add)(const aggregate *a, void *state, const column *c, int64_t row); /* false: out of memory */
  bool (*combine)(const aggregate *a, void *state, void *other); /* kernel_combine; NULL: the order of tuples matters */
  bool (*reserve)(const aggregate *a, void *state, const column *c, int64_t row); /* NULL: its add never allocates */
  void (*drop)(void *state); /* frees what the state holds; NULL: nothing to free */
  ps_code (*finish)(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault);
  bool (*write)(const aggregate *a, const void *state, byte_buffer *to); /* false: out of memory; NULL: no bytes */
  void (*read)(const aggregate *a, void *state, state_reader *from);     /* into a zero state; checks the bytes */
  const shared_kind *shared; /* the same in words, for several threads at a time; NULL: only one may add */

  /* Partials of slices. Without finish_many no design has slices of the function. */
  size_t size;   /* of a partial; 0: the number of rows of the key is all that is needed */
  bool stacked;  /* min, max, arg_min, arg_max, first */
  bool sums;     /* sum, avg: may be plain */
  bool owns;     /* partials may own memory: float sums, moments, pairs and multisets */
  bool is_bytes; /* partials refer to strings */
  ps_code (*fold)(const kernel_target *t, const counted_rows *c);
  bool (*enter)(const partial_totals *t, const partial_list *list); /* false: out of memory */
  bool (*leave)(const partial_totals *t, const partial_list *list); /* not stacked; false: out of memory */
  void (*push)(const partial_totals *t, const partial_list *list);  /* stacked */
  void (*pop)(const partial_totals *t, const partial_list *list);   /* stacked */
  const void *(*total)(const partial_totals *t, uint32_t k);        /* stacked: the best of both stacks */
  ps_code (*finish_many)(const partial_results *r);

  /* Sums: whether all are plain; copy plain ones; whether some partial owns memory; free it; one plain sum per tuple
     (slice_unfolded.h; false: some value does not fit). */
  bool (*is_plain)(const void *partials, const int64_t *rows, int64_t n);
  void (*flatten_plain)(const void *partials, int64_t n, int128 *to);
  bool (*holds)(const void *partials, int64_t n);
  void (*drop_many)(void *partials, int64_t n);
  bool (*unfold)(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to);
  /* First: partials of the given rows (slice_firsts.h). */
  void (*pick)(const uint16_t *row, int64_t n, const int64_t *ts, const uint64_t *bits, uint64_t input, void *partials);
  /* Strings: copy those of the block's entries that are not copies yet; the bytes of n strings; move them to `to` and
     return their end. */
  bool (*settle)(void *partials, string_copy *copies, const row_entries *rows);
  int64_t (*length)(const void *partials, int64_t n);
  uint8_t *(*flatten)(void *partials, int64_t n, uint8_t *to);

  /* Entries of folds, which are exported and imported as columns. */
  size_t entry_size;
  ps_code (*fold_entries)(const kernel_target *t, const counted_rows *c);
  int32_t columns;
  ps_type types[KERNEL_COLUMNS];          /* PS_TYPES: of the aggregate's column, then of its second one */
  bool (*export)(const kernel_output *o); /* false: out of memory */
  bool (*check)(const aggregate *a, const kernel_input *in); /* false: kernel_refuse has been called */
  ps_code (*import)(const kernel_target *t, const kernel_input *in);
  /* The first n entries as partials; place[e] is where entry e goes, NULL: it stays. No gather: entries are partials. */
  void (*gather)(const kernel_output *from, const uint32_t *place, void *partials);
  /* Free what entries own; move the strings of entries that stay to another store. NULL: nothing to do. */
  void (*entries_drop)(kernel_store *store, void *states, int64_t n);
  void (*entries_keep)(const kernel_store *from, kernel_store *to, void *states, int64_t n);
} kernel;

/* The only lookup by function. NULL: pystream/_engine/plan.py refuses this function of this type. */
const kernel *kernel_of(ps_function function, ps_type type, bool masked);

extern const kernel kernel_count, kernel_count_rows;
extern const kernel kernel_sum_integers, kernel_avg_integers, kernel_sum_floats, kernel_avg_floats;
extern const kernel kernel_var_integers, kernel_std_integers, kernel_var_floats, kernel_std_floats;
extern const kernel kernel_covar, kernel_slope, kernel_intercept, kernel_corr;
extern const kernel kernel_min, kernel_max;
extern const kernel kernel_first, kernel_last, kernel_arg_min, kernel_arg_max;
extern const kernel kernel_min_bytes, kernel_max_bytes, kernel_first_bytes, kernel_last_bytes;
extern const kernel kernel_arg_min_bytes, kernel_arg_max_bytes;
extern const kernel kernel_n_unique, kernel_quantile, kernel_approx_quantile;
extern const kernel kernel_top_k, kernel_bottom_k, kernel_histogram;
extern const kernel kernel_udf, kernel_native;

/* ---- what families share ---- */

/* Combines and finishes a state as a total, by `enter` and `finish_many`. */
bool kernel_combine(const aggregate *a, void *state, void *other);
ps_code kernel_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault);

static inline int64_t input_integer(const kernel_input *in, int32_t which, int64_t row) {
  return *column_integers(&in->b->columns[which], row);
}

/* Records what is wrong with which row. Returns false. */
bool kernel_refuse(const kernel_input *in, int64_t row, ps_partial_fault what);

/* Checks that the first column holds counts, from 0 to the rows of the entry; that packed values are possible in the
   aggregate's column. */
bool kernel_check_counts(const aggregate *a, const kernel_input *in);
bool kernel_check_values(const aggregate *a, const kernel_input *in);
