/*
 * pystream.h - the whole border between C and its callers.
 *
 * This file is read twice: by the C compiler as a header and by cffi as the list of what Python may call. It therefore
 * holds declarations only; base.h includes the standard headers it needs before it.
 *
 * Every function that can fail returns a ps_code. On anything but PS_OK (and the PS_EMPTY / PS_END answers of
 * ps_operator_take) the object is as it was before the call, unless the comment says otherwise.
 */
#pragma once

#define PS_LEVELS_MAX 8

/* Windows that one tuple may fall into where every window is kept by itself: all designs but PS_SLICED, and W-Hive.
   Each takes 0.7 to 1.3 KB and some microseconds to make, so such a tuple takes 1 GB and some seconds. */
#define PS_WINDOWS_MAX 1048576

#define PS_ABI 15 /* raised with every change of this file; _native.py refuses an extension with another number */

typedef enum {
  PS_OK = 0,
  PS_EMPTY,      /* take: nothing finished within the time given */
  PS_END,        /* take: every input is closed and every row has been taken */
  PS_FULL,       /* add: the input already holds as many tuples as it may */
  PS_NO_MEMORY,  /* an allocation failed */
  PS_NO_THREAD,  /* the system refused to start a thread */
  PS_DISORDER,   /* a timestamp below the input's latest, or negative: ps_fault says where */
  PS_CLOSED,     /* the input or the whole operator takes nothing more */
  PS_OVERFLOW,   /* a sum of integers left int64: ps_fault says in which window and aggregate */
  PS_UDF_FAILED, /* a native udf gave a code other than 0: ps_fault says which, and in which window and aggregate */
  PS_CORRUPT,    /* load: not what save gives for this query */
  PS_TWICE,      /* two rows of a key have the same ts, stream and position, and first or last must choose */
  PS_OVERLAP,    /* a tuple falls into more than PS_WINDOWS_MAX windows: ps_fault says which, and its timestamp */
  PS_PAUSED      /* never leaves the core: a step gave way to a pause */
} ps_code;

/* How a column's values lie in its Arrow buffers. */
typedef enum {
  PS_BOOL,
  PS_I8,
  PS_I16,
  PS_I32,
  PS_I64,
  PS_U8,
  PS_U16,
  PS_U32,
  PS_U64,
  PS_F32,
  PS_F64,
  PS_BYTES32, /* string or binary with 32-bit offsets */
  PS_BYTES64, /* large_string or large_binary */
  PS_TYPES    /* how many there are */
} ps_type;

typedef enum {
  PS_COUNT,
  PS_SUM,
  PS_AVG,
  PS_MIN,
  PS_MAX,
  PS_FIRST,
  PS_LAST,
  PS_UDF,
  PS_NATIVE,
  PS_FUNCTIONS
} ps_function;

typedef enum { PS_MQ, PS_MQ_LF, PS_TUML_SC, PS_TUML_MC, PS_WIML, PS_SLICED, PS_RUNS, PS_DESIGNS } ps_design;

/* Native udfs: compiled functions of the user, called without Python's GIL by the threads that update windows and put
 * them out.
 *
 * process takes one tuple, in the order (ts, input, position):
 *   state   the window's own bytes, as many as were asked for, all zero at first, aligned to 16. They may be copied to
 *           another place between two calls: no pointer to or into them holds, and nobody frees what they point to
 *   ts      the tuple's timestamp
 *   values  64 bits for each column asked for: int64_t, uint64_t (bool: 0 or 1) or double, whichever holds the column's
 *           type; 0 where null
 *   nulls   one byte for each column: 1 where the value is null, else 0
 * produce gives the window's result, 64 bits in the form of `values` for the type of the result, or sets *null to 1
 *           (both are 0 before). It is called at most once per window, and leaves the state alone.
 *
 * Both give 0, or a code of their own, which fails the operator and is reported with the window and its key. Calls for
 * one window come one after the other; calls for different windows may come at the same time from several threads. */
typedef int32_t (*ps_native_process)(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls);
typedef int32_t (*ps_native_produce)(const void *state, uint64_t *result, uint8_t *null);

#define PS_NATIVE_COLUMNS 64    /* most columns a native udf may ask for: they lie on the stack */
#define PS_NATIVE_STATE 1048576 /* most bytes of state it may ask for */

typedef struct {
  ps_native_process process;
  ps_native_produce produce;
  int64_t state_size;
  int32_t columns;
  const int32_t *column; /* their numbers; none may be a string */
} ps_native;

/* One aggregate of the query. Columns are numbered as in ps_query.column_types; -1 means none. */
typedef struct {
  ps_function function;
  int32_t column;          /* the values */
  int32_t mask;            /* a PS_BOOL column without nulls: only rows where it is true count */
  const ps_native *native; /* PS_NATIVE only; column is 0 then */
} ps_aggregate;

/* Column 0 of every batch is the timestamp (PS_I64, no nulls), columns 1..keys are the key, the others are values and
 * masks. */
typedef struct {
  int64_t size;
  int64_t advance;
  int32_t columns;
  const ps_type *column_types;
  int32_t keys;
  int32_t aggregates;
  const ps_aggregate *aggregate;
  const uint8_t *text; /* by column: whether its strings are UTF-8; NULL: none. What comes as bytes is held to it */
} ps_query;

/* What went wrong, in numbers; Python makes the sentence. */
typedef struct {
  int64_t row;       /* PS_DISORDER, PS_OVERLAP: row of the batch */
  int64_t ts;        /* PS_DISORDER, PS_OVERLAP: its timestamp; PS_OVERFLOW, PS_UDF_FAILED: the window's start */
  int64_t latest;    /* PS_DISORDER: the timestamp it had to reach */
  int32_t aggregate; /* PS_OVERFLOW, PS_UDF_FAILED: index of the aggregate */
  int32_t code;      /* PS_UDF_FAILED: what the user's function gave */
  const void *key;   /* PS_OVERFLOW, PS_UDF_FAILED: the window's key, for ps_operator_fault_key */
  int64_t stream;    /* PS_TWICE among partials: with `ts` and `position` the place that two rows have */
  int64_t position;
} ps_fault;

/* A column of strings: n of them, where Arrow's offsets from number `first` on say; the data has so many bytes. */
typedef struct {
  const void *offsets;
  int32_t wide; /* offsets have 64 bits */
  int32_t text; /* it has to be UTF-8 */
  int64_t first, n;
  const uint8_t *data;
  int64_t size;
} ps_strings;

/* 1: every string lies in the data, and is UTF-8 if it has to be. 0: some do not; or there are nulls whose bytes are
   not, for whoever looks closer. */
int32_t ps_strings_sound(const ps_strings *strings);

/* Arrow's C data interface, as published in its specification. */
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

typedef struct ps_operator ps_operator;

typedef struct {
  int64_t tuples_in; /* tuples accepted so far, over all inputs */
  int64_t pending;   /* tuples accepted and not yet merged, or merged and not yet counted: asking counts them soon */
  int64_t rows_out;  /* output rows finished so far, taken or not */
  int64_t windows;   /* windows open: one per window and key */
  int64_t bytes;     /* about how much memory is held, batches of the callers included */
  int64_t keys;      /* distinct keys that are known */
} ps_stats;

typedef struct {
  int64_t latest;    /* of its tuples and heartbeats; -1: nothing received yet */
  int64_t tuples_in; /* its share of ps_stats.tuples_in */
  int64_t pending;   /* its share of ps_stats.pending */
  int32_t closed;
} ps_input_stats;

/* Who holds back the others. */
typedef struct {
  int32_t input;   /* of the open inputs the one with the lowest (latest, number); -1: all are closed */
  int64_t latest;  /* its latest timestamp; -1: it has received nothing */
  int64_t next;    /* the lowest latest timestamp of the other open inputs; INT64_MAX: there are none */
  int64_t waiting; /* tuples that are not ready because of it */
  int64_t first;   /* the timestamp that it must reach for the first of them to be ready; INT64_MAX: none waits */
} ps_stall;

/* What waits for the reader. */
typedef struct {
  int64_t rows; /* finished and not taken; 0 once the operator is cancelled */
  int32_t full; /* the operator's threads wait until some are taken, or steps of PS_UDF if there are no rows */
  int32_t over; /* nothing more will be finished: every input is closed and every row is out, or it is cancelled */
} ps_unread;

/* Starts the operator's own threads: one for output and, in the designs that have them, `threads` for updates. The
   query is copied. `levels` is the height of the lists of T-Gate and W-Hive, 1 to PS_LEVELS_MAX; 0: what suits them. */
ps_code ps_operator_new(const ps_query *query, int32_t inputs, ps_design design, int32_t threads, int32_t levels,
                        int64_t max_pending, ps_operator **out);

/* Takes the batch whole and moves it out of *batch, or not at all (then *batch still belongs to the caller). The
   number names the batch in the udf journal. Calls may run together with every call but free. */
ps_code ps_operator_add(ps_operator *op, int32_t input, int64_t number, struct ArrowArray *batch, ps_fault *fault);

/* The same for a batch whose buffers have so many bytes, of which it may view only some. */
ps_code ps_operator_add_view(ps_operator *op, int32_t input, int64_t number, int64_t bytes, struct ArrowArray *batch,
                             ps_fault *fault);

/* A batch of an input that is taken in pieces. */
typedef struct {
  int32_t input;
  struct ArrowArray *batch; /* NULL: none at present */
  int64_t row;              /* the first that has not been taken; 0 for a new batch */
  void *keeper;             /* ps_operator_feed's own; NULL for a new feed */
} ps_feed;

/* Takes the batches of several inputs in pieces of at most `cut` rows, always of the input that has come least far in
   time, waiting for room. PS_OK: the batch of feeds[*which] has been taken whole and is NULL; the caller gives its next
   one, or closes the input, and calls again. Anything else: a piece of feeds[*which] was refused, those before it have
   been taken. Not with PS_UDF; each input in one feed only. At last ps_operator_feed_end: the buffers of batches of
   which pieces were taken go to the operator, all others stay the caller's. */
ps_code ps_operator_feed(ps_operator *op, int32_t n, ps_feed *feeds, int64_t cut, int32_t *which, ps_fault *fault);
void ps_operator_feed_end(ps_operator *op, int32_t n, ps_feed *feeds);

/* Waits until `rows` more tuples fit into the input: PS_OK, PS_FULL after `ms` milliseconds, or PS_CLOSED. */
ps_code ps_operator_wait_space(ps_operator *op, int32_t input, int64_t rows, int32_t ms);

/* Promises that the input sends nothing below `ts` any more. */
ps_code ps_operator_heartbeat(ps_operator *op, int32_t input, int64_t ts, ps_fault *fault);

/* Promises that the input sends nothing more; closing twice is allowed. */
ps_code ps_operator_close(ps_operator *op, int32_t input);

/* Moves all finished rows into *out: ts, keys, aggregates (PS_UDF as a window number). Waits up to `ms` for the first.
   With PS_UDF in the query, *journal gets the steps (window number, its start, batch number, row) the user's objects
   must take before those rows are read; window -1 says that the batch is done with. Rows of windows before a failure
   come first. */
ps_code ps_operator_take(ps_operator *op, int32_t ms, struct ArrowArray *out, struct ArrowArray *journal,
                         ps_fault *fault);

/* The reader is in no hurry: it is woken for so many rows at a time, and at the end. */
void ps_operator_bulk(ps_operator *op, int64_t rows);

/* The window that a take failed at, as one row: its start and the key columns. */
ps_code ps_operator_fault_key(ps_operator *op, const ps_fault *fault, struct ArrowArray *out);

/* Instead of waiting in take: one byte is written to the descriptor as soon as take has something to say, at once if it
   has now, and the descriptor is forgotten. PS_FULL when another descriptor is there already. Unwatch takes this one
   back, if it is there: nothing is written to it after that. In a forked child it does nothing, as free. */
ps_code ps_operator_watch(ps_operator *op, int32_t descriptor);
void ps_operator_unwatch(ps_operator *op, int32_t descriptor);

/* Makes every waiting or later call return PS_CLOSED and the operator's threads end soon. */
void ps_operator_cancel(ps_operator *op);

/* Cancels and joins the threads; the operator stays valid and answers PS_CLOSED. May be called again, and by any
 * thread.
 */
void ps_operator_end(ps_operator *op);

/* Ends the operator and frees everything. No other call may run. NULL is allowed. In a forked child, where the threads
   do not exist and locks may be held for ever, this and end do nothing. */
void ps_operator_free(ps_operator *op);

void ps_operator_stats(ps_operator *op, ps_stats *out);
void ps_operator_stall(ps_operator *op, ps_stall *out);
void ps_operator_input_stats(ps_operator *op, int32_t input, ps_input_stats *out);

/* Waits up to `ms` while there are no rows, there may be some soon, and no thread waits for the reader. */
void ps_operator_unread(ps_operator *op, int32_t ms, ps_unread *out);

/* Snapshots. Pause waits until no add, heartbeat or close is under way and the operator's threads stand still; until
   resume those calls wait. PS_EMPTY: the threads do not stand still after `ms` milliseconds; call again, those calls
   wait already. PS_CLOSED: the operator has ended, and is not paused. Resume undoes what pauses of the same thread have
   done, finished or not; without any it does nothing. */
ps_code ps_operator_pause(ps_operator *op, int32_t ms);
void ps_operator_resume(ps_operator *op);

/* While paused: the windows as columns start, key, state (bytes that mean the same on every machine) and number, which
   is that of PS_UDF, ordered by start. */
ps_code ps_operator_save_windows(ps_operator *op, struct ArrowArray *out);

/* While paused: slices in the same columns, of a design that keeps such. Start is where a slice begins; of the windows
   that start at *start_next or later it is in all that cover it. In the order of tuples slices come behind windows. */
ps_code ps_operator_save_slices(ps_operator *op, struct ArrowArray *out, int64_t *start_next);

/* While paused: the tuples of an input that are in no window yet, as columns batch number, row, and the query's
   columns, widened as in output. */
ps_code ps_operator_save_pending(ps_operator *op, int32_t input, struct ArrowArray *out);

/* While paused, into an operator that has been given nothing: the first three columns of save_windows and of
   save_slices, without nulls; a window's row becomes its number. PS_CORRUPT: the row is in fault, that of a slice
   counted on from the windows; then the operator must be freed. */
ps_code ps_operator_load_windows(ps_operator *op, const struct ArrowArray *windows, const struct ArrowArray *slices,
                                 int64_t start_next, ps_fault *fault);

/* Changes max_pending. */
void ps_operator_limit(ps_operator *op, int64_t max_pending);

/* So many rows that were taken lie with the caller and count as if they had not been taken: for max_pending. */
void ps_operator_keep(ps_operator *op, int64_t rows);

/* Exact sums of doubles, for tests and for merging partial results (exact_sum.h says how it works). */
typedef struct ps_exact_sum ps_exact_sum;
ps_exact_sum *ps_exact_sum_new(void);
ps_code ps_exact_sum_add_all(ps_exact_sum *sum, const double *values, int64_t n);
ps_code ps_exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other);
double ps_exact_sum_round(const ps_exact_sum *sum);
double ps_exact_sum_mean(const ps_exact_sum *sum, int64_t n); /* the nearest double to sum / n; n > 0 */
void ps_exact_sum_free(ps_exact_sum *sum);

/* For tests: allocations alive now, and a countdown after which the next ones fail (0: never). */
int64_t ps_memory_live(void);
void ps_memory_fail_after(int64_t allocations);

/* Drops an Arrow array that was exported and not moved; one that was moved is left alone. */
void ps_arrow_release(struct ArrowArray *array);

/* Makes *out another reference to the array, whose buffers live until both are released. For who moves the array out
   and may fail: the rows are then still here. Nobody may move single columns out of either. */
ps_code ps_arrow_share(struct ArrowArray *array, struct ArrowArray *out);

/* ---- T-Gate on its own (t_gate.h). Any thread may make any call: calls of the same input, or of the same reader, take
   turns. Inputs and readers are numbered from 0 and must be in range. ---- */
typedef struct ps_t_gate ps_t_gate;

typedef struct {
  int64_t ts;
  uint64_t token;
  int32_t input;
} ps_t_gate_tuple;

/* At most 65536 of either. */
ps_code ps_t_gate_new(int32_t inputs, int32_t readers, ps_t_gate **out);

/* No other call may run. NULL is allowed. */
void ps_t_gate_free(ps_t_gate *gate);

/* All n tuples or none of them; tuple i comes out with token + i. */
ps_code ps_t_gate_insert_tuples(ps_t_gate *gate, int32_t input, int64_t n, const int64_t *ts, uint64_t token,
                                ps_fault *fault);
ps_code ps_t_gate_heartbeat(ps_t_gate *gate, int32_t input, int64_t ts, ps_fault *fault);
void ps_t_gate_close(ps_t_gate *gate, int32_t input);

/* PS_OK and up to n ready tuples, or PS_EMPTY, or PS_END. */
ps_code ps_t_gate_get_ready_tuples(ps_t_gate *gate, int32_t reader, int64_t n, ps_t_gate_tuple *out, int64_t *got);

/* Nothing below this timestamp will reach the reader any more; after PS_EMPTY the least that still can. */
int64_t ps_t_gate_position(ps_t_gate *gate, int32_t reader);

/* Whether the reader's last get answered PS_END. */
int32_t ps_t_gate_ended(ps_t_gate *gate, int32_t reader);

/* ---- W-Hive on its own (w_hive.h). Any thread may make any call: calls of the same updater, and those of the reader,
   take turns. Updaters are numbered from 0 and must be in range. ---- */
typedef struct ps_w_hive ps_w_hive;

/* Rows of tuples. Each value is an integer (then `real` is the nearest double), a real or null, as the bitmaps say. */
typedef struct {
  int64_t rows;
  const int64_t *ts;
  const int64_t *key; /* numbers that the caller has given to its keys */
  const int64_t *integer;
  const double *real;
  const uint8_t *is_integer;
  const uint8_t *is_real;
  const uint8_t *is_value; /* not null */
} ps_w_hive_tuples;

/* One function: PS_COUNT, PS_SUM, PS_AVG, PS_MIN or PS_MAX. At most 65536 threads. */
ps_code ps_w_hive_new(int64_t size, int64_t advance, ps_function function, int32_t threads, ps_w_hive **out);

/* No other call may run. NULL is allowed. */
void ps_w_hive_free(ps_w_hive *hive);

/* PS_DISORDER and PS_CLOSED: no row has been taken. PS_NO_MEMORY: the rows before fault->row have; that row's timestamp
   counts as a heartbeat. */
ps_code ps_w_hive_update_windows(ps_w_hive *hive, int32_t thread, const ps_w_hive_tuples *tuples, ps_fault *fault);
ps_code ps_w_hive_heartbeat(ps_w_hive *hive, int32_t thread, int64_t ts, ps_fault *fault);
void ps_w_hive_close(ps_w_hive *hive, int32_t thread);

/* PS_OK and the rows of the next winset: its start, the number of the key, and PS_COUNT's count, or the function over
   integers, over all values as doubles, and how many were no integers. Or PS_EMPTY, or PS_END. After PS_NO_MEMORY the
   same winset comes again; after PS_OVERFLOW (fault->ts: its start) it does not. */
ps_code ps_w_hive_get_next_winset(ps_w_hive *hive, struct ArrowArray *out, ps_fault *fault);

/* All windows that start before this are complete; UINT64_MAX: all threads have closed. */
uint64_t ps_w_hive_limit(ps_w_hive *hive);

/* ---- Partial aggregates (fold.h): rows in any order become one entry per (slice, key), entries become rows of Arrow
   columns and are taken in again elsewhere, and whoever has all of them makes the windows. One thread at a time. ----
 */
typedef struct ps_fold ps_fold;

/* What is wrong with a partial: ps_fault.code, beside its row and aggregate (-1: none of them). */
typedef enum {
  PS_BAD_SLICE, /* no slice of a window begins there */
  PS_BAD_LATE,  /* the slice is in a window that has been put out */
  PS_BAD_ROWS,  /* below 1, or too many */
  PS_BAD_COUNT, /* below 0, or more than there are rows */
  PS_BAD_SUM,   /* not the bytes of a sum, or of none that so many values can have */
  PS_BAD_VALUE, /* no value of its column: out of range, or text that is not UTF-8 */
  PS_BAD_PLACE, /* a value without timestamp, stream and position, or a timestamp that is not in the slice */
  PS_BAD_PACK   /* not what packing gives, or of other keys */
} ps_partial_fault;

/* The query has no PS_UDF and no PS_NATIVE. `stream` and `position` are PS_I64 columns without nulls, or -1. Windows
   that start before `start` have been put out already. */
ps_code ps_fold_new(const ps_query *query, int32_t stream, int32_t position, int64_t start, ps_fold **out);
void ps_fold_free(ps_fold *fold);

/* The columns of `rows` are those of the query; the caller keeps them. PS_DISORDER: a negative timestamp, nothing has
   been taken. PS_TWICE, or PS_NO_MEMORY on the way: all later calls but free answer PS_CLOSED. */
ps_code ps_fold_add_rows(ps_fold *fold, const struct ArrowArray *rows, ps_fault *fault);

/* The same for partials, whose columns fold_export.c lists; PS_CORRUPT: nothing has been taken. `held`: they come
   from a fold that has put out the windows before the same start. */
ps_code ps_fold_add_partials(ps_fold *fold, const struct ArrowArray *partials, int32_t held, ps_fault *fault);

/* Up to `most` entries from number `from` on as partials; they stay. PS_END: there are no more. */
ps_code ps_fold_get_partials(ps_fold *fold, int64_t from, int64_t most, struct ArrowArray *out);

/* The keys met, of which there must be some, as rows: their numbers, 0, 1, 2, ..., and the key columns. */
ps_code ps_fold_get_keys(const ps_fold *fold, struct ArrowArray *out);

/* All entries in few bytes, shard by shard (fold_parcels.c); `shards` has the shard of each key by number. The fold must
   not change meanwhile. Get gives the bytes of a shard, until the next call; NULL: it has none. */
typedef struct ps_pack ps_pack;
ps_code ps_pack_new(ps_fold *fold, const uint16_t *shards, int32_t count, ps_pack **out);
void ps_pack_free(ps_pack *pack);
ps_code ps_pack_get(ps_pack *pack, int32_t shard, const uint8_t **data, int64_t *length);

/* The numbers that keys have in this fold, from now on: rows as ps_fold_get_keys gives them, their first column does
   not count. */
ps_code ps_fold_number_keys(ps_fold *fold, const struct ArrowArray *keys, uint32_t *numbers);

/* Takes in what was packed: whole blocks, whose keys have these numbers here. PS_CORRUPT: what comes before has been
   taken, and all later calls but free answer PS_CLOSED. */
ps_code ps_fold_add_packed(ps_fold *fold, const uint32_t *numbers, int64_t keys, const uint8_t *data, int64_t length,
                           ps_fault *fault);

/* The windows that end at `until` (UINT64_MAX: all) or before, each once and in order: ts, keys, aggregates; whole
   windows until there are `most` rows. PS_END: there are no more, and entries that no later window needs are dropped.
   PS_OVERFLOW: rows of the windows before come first. */
ps_code ps_fold_get_windows(ps_fold *fold, uint64_t until, int64_t most, struct ArrowArray *out, ps_fault *fault);
ps_code ps_fold_fault_key(const ps_fold *fold, const ps_fault *fault, struct ArrowArray *out);

/* The lowest start of a window that has not been put out. */
uint64_t ps_fold_start(const ps_fold *fold);

int64_t ps_fold_entries(const ps_fold *fold);
int64_t ps_fold_keys(
    const ps_fold *fold); /* keys met since it was made or cleared: they are not dropped with entries */
int64_t ps_fold_bytes(const ps_fold *fold); /* about how much memory it holds */

/* ---- Exact variance, deviation and covariance, for tests (exact_moments.h). A state holds doubles or
   integers, never both; `integers` states which. PS_EMPTY: no more values than ddof. ---- */
typedef struct ps_exact_moments ps_exact_moments;
ps_exact_moments *ps_exact_moments_new(void);
ps_code ps_exact_moments_add_all(ps_exact_moments *m, const double *values, int64_t n);
void ps_exact_moments_add_i64(ps_exact_moments *m, const int64_t *values, int64_t n);
void ps_exact_moments_add_u64(ps_exact_moments *m, const uint64_t *values, int64_t n);
int32_t ps_exact_moments_reserve(ps_exact_moments *m, double x); /* 0: out of memory */
ps_code ps_exact_moments_combine(ps_exact_moments *m, const ps_exact_moments *other);
ps_code ps_exact_moments_subtract(ps_exact_moments *m, const ps_exact_moments *other);
ps_code ps_exact_moments_var(const ps_exact_moments *m, int32_t integers, int64_t ddof, double *out);
ps_code ps_exact_moments_std(const ps_exact_moments *m, int32_t integers, int64_t ddof, double *out);
void ps_exact_moments_free(ps_exact_moments *m);

/* Variances or deviations of n states with more values than ddof, in blocks (exact_deviations.h). */
void ps_exact_deviations(const ps_exact_moments *const *states, int64_t n, int32_t integers, int64_t ddof,
                         int32_t of_root, double *out);

typedef struct ps_exact_pairs ps_exact_pairs;
ps_exact_pairs *ps_exact_pairs_new(void);
ps_code ps_exact_pairs_add_all(ps_exact_pairs *p, const double *x, const double *y, int64_t n);
void ps_exact_pairs_add_i64(ps_exact_pairs *p, const int64_t *x, const int64_t *y, int64_t n);
ps_code ps_exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other);
ps_code ps_exact_pairs_subtract(ps_exact_pairs *p, const ps_exact_pairs *other);
ps_code ps_exact_pairs_covar(const ps_exact_pairs *p, int32_t integers, int64_t ddof, double *out);
void ps_exact_pairs_free(ps_exact_pairs *p);

/* The double nearest to a / d * 2^exponent, or to its square root (exact_ratio.h); a and d as limbs, lowest first. */
double ps_exact_ratio(const uint64_t *a, int32_t n, const uint64_t d[2], int32_t exponent, int32_t root);
