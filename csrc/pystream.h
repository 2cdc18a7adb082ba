/*
 * pystream.h - the whole interface between C and its callers.
 *
 * Read twice: by the C compiler as a header, and by cffi as the list of what Python may call. So it has declarations
 * only; base.h includes the standard headers it needs before it.
 *
 * Every function that can fail returns a ps_code. On any code but PS_OK (and PS_EMPTY and PS_END of ps_operator_take)
 * the object is unchanged, unless documented otherwise.
 */
#pragma once

#define PS_LEVELS_MAX 8

/* Limit of the windows that one tuple may be in, where every window is kept by itself: all designs but PS_SLICED, and
   W-Hive. Each takes 0.7 to 1.3 KB and some microseconds to make, so such a tuple takes 1 GB and some seconds. */
#define PS_WINDOWS_MAX 1048576

#define PS_ABI 21 /* raised with every change of a declaration; pystream/_native refuses another number */

typedef enum {
  PS_OK = 0,
  PS_EMPTY,      /* take: nothing finished within the time given */
  PS_END,        /* take: every input is closed and every row was taken */
  PS_FULL,       /* add: the input holds as many tuples as it may */
  PS_NO_MEMORY,  /* an allocation failed */
  PS_NO_THREAD,  /* the system refused to start a thread */
  PS_DISORDER,   /* a timestamp below the input's latest, or negative; ps_fault: where */
  PS_CLOSED,     /* the input or the whole operator takes nothing more */
  PS_OVERFLOW,   /* a sum of integers left int64; ps_fault: window and aggregate */
  PS_UDF_FAILED, /* a native udf returned a code other than 0; ps_fault: code, window and aggregate */
  PS_CORRUPT,    /* load: not what save returns for this query */
  PS_TWICE,      /* two rows of a key have the same ts, stream and position, and the place of a row decides */
  PS_OVERLAP,    /* a tuple is in more than PS_WINDOWS_MAX windows; ps_fault: row and timestamp */
  PS_PAUSED      /* internal: a step gave way to a pause */
} ps_code;

/* Layout of a column's values in its Arrow buffers. */
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
  PS_TYPES    /* number of types */
} ps_type;

typedef enum {
  PS_COUNT,
  PS_SUM,
  PS_AVG,
  PS_MIN,
  PS_MAX,
  PS_FIRST,
  PS_LAST,
  PS_VAR,
  PS_STD,
  PS_ARG_MIN,
  PS_ARG_MAX,
  PS_COVAR,
  PS_SLOPE,
  PS_INTERCEPT,
  PS_CORR,
  PS_N_UNIQUE,
  PS_QUANTILE,
  PS_APPROX_QUANTILE,
  PS_TOP_K,
  PS_BOTTOM_K,
  PS_HISTOGRAM,
  PS_UDF,
  PS_NATIVE,
  PS_FUNCTIONS
} ps_function;

typedef enum { PS_MQ, PS_MQ_LF, PS_TUML_SC, PS_TUML_MC, PS_WIML, PS_SLICED, PS_RUNS, PS_DESIGNS } ps_design;

/* Native udfs: compiled functions of the user, called without Python's GIL by the threads that update and emit windows.
 *
 * process adds one tuple, in the order (ts, input, position):
 *   state   the window's own bytes, state_size of them, all zero at first, aligned to 16. They may be moved between two
 *           calls: no pointer to or into them stays valid, and memory they point to is never freed
 *   ts      the tuple's timestamp
 *   values  64 bits per column: int64_t, uint64_t (bool: 0 or 1) or double, whichever holds its type; a string is the
 *           address of a ps_native_string, which is valid during the call, and so are its bytes; 0 if null
 *   nulls   one byte per column: 1 if the value is null, else 0
 * produce sets the window's result, 64 bits in the form of `values` for the result type, or sets *null to 1 (both are 0
 *           before). It is called at most once per window, and does not change the state.
 * combine adds what is in another state of the same window, which it does not change. Its tuples may be before, after or
 *           between those of the first; a state of zero bytes has none. Who gives it says that the order of tuples does
 *           not matter: process may then get them in any order. NULL: it does matter.
 *
 * All return 0, or a code of their own, which fails the operator and is reported with the window and its key. Calls
 * for one window are made one after the other; calls for different windows may be made concurrently. */
typedef int32_t (*ps_native_process)(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls);
typedef int32_t (*ps_native_produce)(const void *state, uint64_t *result, uint8_t *null);
typedef int32_t (*ps_native_combine)(void *state, const void *other);

typedef struct {
  const uint8_t *data;
  int64_t length;
} ps_native_string;

#define PS_NATIVE_COLUMNS 64    /* most columns of a native udf: they are on the stack */
#define PS_NATIVE_STATE 1048576 /* most bytes of its state */

typedef struct {
  ps_native_process process;
  ps_native_produce produce;
  int64_t state_size;
  int32_t columns;
  const int32_t *column; /* column numbers */
  ps_native_combine combine;
} ps_native;

/* What a quantile is whose place q * (n - 1) is between two values. PS_MIDDLE: of median, their mean, rounded once. */
typedef enum { PS_LINEAR, PS_LOWER, PS_HIGHER, PS_NEAREST, PS_MIDPOINT, PS_MIDDLE } ps_choice;

/* What functions over multisets take besides the column (aggregates/sets.h). */
typedef struct {
  double q;             /* quantiles: from 0 to 1 */
  ps_choice choice;     /* PS_QUANTILE */
  int32_t bits;         /* PS_APPROX_QUANTILE: the buckets of a power of two are 2^bits, bits from 0 to 51 */
  int64_t k;            /* PS_TOP_K, PS_BOTTOM_K: values, at least 1 */
  int32_t bins;         /* PS_HISTOGRAM: above `edges` */
  int32_t edges;        /* those that values of the column reach */
  const uint64_t *edge; /* as words in the order of values (value.h), ascending */
} ps_set;

/* One aggregate of the query. Columns are numbered as in ps_query.column_types; -1: none. */
typedef struct {
  ps_function function;
  int32_t column;          /* the values */
  int32_t mask;            /* a PS_BOOL column without nulls: only rows where it is true count */
  const ps_native *native; /* PS_NATIVE only; column is 0 then */
  int32_t by;              /* a second column, of fixed width, for functions that take two; 0: none */
  int32_t parameter;       /* what else the function takes: var, std, covar: ddof */
  const ps_set *set;       /* functions over multisets only */
} ps_aggregate;

/* Column 0 of every batch is the timestamp (PS_I64, no nulls), columns 1..keys are the key, the others are values and
   masks. */
typedef struct {
  int64_t size;
  int64_t advance;
  int32_t columns;
  const ps_type *column_types;
  int32_t keys;
  int32_t aggregates;
  const ps_aggregate *aggregate;
  const int32_t *strings; /* by column: see below; NULL: any bytes. Checked in snapshots and partials */
} ps_query;

/* What the strings of a column are: any bytes, UTF-8, or, from 0 on, n bytes each. */
enum { PS_ANY_BYTES = -1, PS_UTF8 = -2 };

/* What went wrong, in numbers; Python makes the message. */
typedef struct {
  int64_t row;       /* PS_DISORDER, PS_OVERLAP: row of the batch */
  int64_t ts;        /* PS_DISORDER, PS_OVERLAP: its timestamp; PS_OVERFLOW, PS_UDF_FAILED: the window's start */
  int64_t latest;    /* PS_DISORDER: the lowest timestamp allowed */
  int32_t aggregate; /* PS_OVERFLOW, PS_UDF_FAILED: index of the aggregate */
  int32_t code;      /* PS_UDF_FAILED: what the user's function returned */
  const void *key;   /* PS_OVERFLOW, PS_UDF_FAILED: the window's key, for ps_operator_fault_key */
  int64_t stream;    /* PS_TWICE among partials: with `ts` and `position` the place that two rows share */
  int64_t position;
} ps_fault;

/* A column of n strings, with Arrow offsets from number `first` on, in `size` bytes of data. */
typedef struct {
  const void *offsets;
  int32_t wide; /* offsets have 64 bits */
  int32_t text; /* must be UTF-8 */
  int64_t first, n;
  const uint8_t *data;
  int64_t size;
} ps_strings;

/* 1: every string is inside the data, and is UTF-8 if it must be. 0: some are not, or some nulls have bytes that are
   not: the caller has to look closer. */
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
  int64_t pending;   /* tuples accepted and not counted as merged; each call lets the operator count again */
  int64_t rows_out;  /* output rows finished so far, taken or not */
  int64_t windows;   /* open windows: one per window and key */
  int64_t bytes;     /* memory held, roughly, including callers' batches */
  int64_t keys;      /* distinct keys known */
} ps_stats;

typedef struct {
  int64_t latest;    /* of its tuples and heartbeats; -1: nothing received yet */
  int64_t tuples_in; /* its share of ps_stats.tuples_in */
  int64_t pending;   /* its share of ps_stats.pending */
  int32_t closed;
} ps_input_stats;

/* The input that blocks the others. */
typedef struct {
  int32_t input;   /* the open input with the lowest (latest, number); -1: all are closed */
  int64_t latest;  /* its latest timestamp; -1: it has received nothing */
  int64_t next;    /* the lowest latest timestamp of the other open inputs; INT64_MAX: none */
  int64_t waiting; /* tuples that are not ready because of it */
  int64_t first;   /* the timestamp that it must reach for the first of them to be ready; INT64_MAX: none */
} ps_stall;

/* What is ready for the reader. */
typedef struct {
  int64_t rows; /* finished and not taken; 0 once the operator is cancelled */
  int32_t full; /* the operator's threads wait until rows are taken, or steps of PS_UDF if there are no rows */
  int32_t over; /* no more rows: every input is closed and every row is finished, or the operator is cancelled */
} ps_unread;

/* Starts the operator's own threads: one for output and, in designs that have them, `threads` for updates. The query is
   copied. `levels`: height of the lists of T-Gate and W-Hive, 1 to PS_LEVELS_MAX; 0: default. */
ps_code ps_operator_new(const ps_query *query, int32_t inputs, ps_design design, int32_t threads, int32_t levels,
                        int64_t max_pending, ps_operator **out);

/* Takes the whole batch and moves it out of *batch, or nothing (then *batch still belongs to the caller). `number`
   names the batch in the udf journal. May run together with every call but free. */
ps_code ps_operator_add(ps_operator *op, int32_t input, int64_t number, struct ArrowArray *batch, ps_fault *fault);

/* The same for a batch that may view only part of its buffers; `bytes`: size of the buffers. */
ps_code ps_operator_add_view(ps_operator *op, int32_t input, int64_t number, int64_t bytes, struct ArrowArray *batch,
                             ps_fault *fault);

/* A batch of an input that is taken in pieces. */
typedef struct {
  int32_t input;
  struct ArrowArray *batch; /* NULL: none now */
  int64_t row;              /* the first row not taken; 0 for a new batch */
  void *keeper;             /* internal to ps_operator_feed; NULL for a new feed */
} ps_feed;

/* Takes the batches of several inputs in pieces of at most `cut` rows, always of the input with the lowest latest
   timestamp, and waits for room. PS_OK: the batch of feeds[*which] was taken completely and is NULL; the caller sets
   the next one, or closes the input, and calls again. Other codes: a piece of feeds[*which] was refused; earlier pieces
   were taken. Not with PS_UDF; each input in one feed only. Must be ended by ps_operator_feed_end: the operator keeps
   the buffers of batches of which pieces were taken, all others stay the caller's. */
ps_code ps_operator_feed(ps_operator *op, int32_t n, ps_feed *feeds, int64_t cut, int32_t *which, ps_fault *fault);
void ps_operator_feed_end(ps_operator *op, int32_t n, ps_feed *feeds);

/* Waits until `rows` more tuples fit into the input: PS_OK; PS_FULL: not within `ms` milliseconds; PS_CLOSED. */
ps_code ps_operator_wait_space(ps_operator *op, int32_t input, int64_t rows, int32_t ms);

/* Promises that the input adds nothing below `ts` any more. */
ps_code ps_operator_heartbeat(ps_operator *op, int32_t input, int64_t ts, ps_fault *fault);

/* Promises that the input adds nothing more; closing twice is allowed. */
ps_code ps_operator_close(ps_operator *op, int32_t input);

/* Moves all finished rows into *out: ts, keys, aggregates (PS_UDF as a window number). Waits up to `ms` for the first.
   With PS_UDF in the query, *journal gets the steps (window number, its start, batch number, row) that the user's
   objects must take before those rows are read; window -1: the batch is done. Rows of windows before a failure are
   returned first. */
ps_code ps_operator_take(ps_operator *op, int32_t ms, struct ArrowArray *out, struct ArrowArray *journal,
                         ps_fault *fault);

/* Bulk mode: the reader is woken for `rows` rows at a time, and at the end. */
void ps_operator_bulk(ps_operator *op, int64_t rows);

/* The window at which a take failed, as one row: its start and the key columns. */
ps_code ps_operator_fault_key(ps_operator *op, const ps_fault *fault, struct ArrowArray *out);

/* Instead of waiting in take: one byte is written to the descriptor as soon as take would return something, at once if
   it would now, and the descriptor is unregistered. PS_FULL: another one is registered. unwatch unregisters this one,
   if registered: nothing is written to it after that. No effect in a forked child, like free. */
ps_code ps_operator_watch(ps_operator *op, int32_t descriptor);
void ps_operator_unwatch(ps_operator *op, int32_t descriptor);

/* Makes every waiting or later call return PS_CLOSED and the operator's threads end soon. */
void ps_operator_cancel(ps_operator *op);

/* Cancels and joins the threads; the operator stays valid and returns PS_CLOSED. Any thread may call it, also again. */
void ps_operator_end(ps_operator *op);

/* Ends the operator and frees everything. No other call may run. NULL is allowed. In a forked child, where the threads
   do not exist and locks may be held for ever, this and end have no effect. */
void ps_operator_free(ps_operator *op);

void ps_operator_stats(ps_operator *op, ps_stats *out);
void ps_operator_stall(ps_operator *op, ps_stall *out);
void ps_operator_input_stats(ps_operator *op, int32_t input, ps_input_stats *out);

/* Waits up to `ms` while there are no rows, some may follow soon, and no thread waits for the reader. */
void ps_operator_unread(ps_operator *op, int32_t ms, ps_unread *out);

/* Snapshots. pause waits until no add, heartbeat or close runs and the operator's threads stand still; until resume,
   those calls wait. PS_EMPTY: the threads do not stand still after `ms` milliseconds; call again, those calls wait
   already. PS_CLOSED: the operator has ended and is not paused. resume undoes pauses of the same thread, complete or
   not; without one it has no effect. */
ps_code ps_operator_pause(ps_operator *op, int32_t ms);
void ps_operator_resume(ps_operator *op);

/* While paused: the windows as columns start, key, state (bytes with the same meaning on every machine) and number (of
   PS_UDF), ordered by start. */
ps_code ps_operator_save_windows(ps_operator *op, struct ArrowArray *out);

/* While paused: slices in the same columns, of designs that keep slices. start is the begin of the slice; it is in all
   windows that cover it and start at *start_next or later. In the order of tuples, slices are after windows. */
ps_code ps_operator_save_slices(ps_operator *op, struct ArrowArray *out, int64_t *start_next);

/* While paused: the tuples of an input that are in no window yet, as columns batch number, row, and the query's
   columns, widened as in output. */
ps_code ps_operator_save_pending(ps_operator *op, int32_t input, struct ArrowArray *out);

/* While paused, into an operator without tuples: the first three columns of save_windows and of save_slices, without
   nulls; a window's row becomes its number. PS_CORRUPT: fault->row is the row, slices counted after the windows; the
   operator must then be freed. */
ps_code ps_operator_load_windows(ps_operator *op, const struct ArrowArray *windows, const struct ArrowArray *slices,
                                 int64_t start_next, ps_fault *fault);

/* Changes max_pending. */
void ps_operator_limit(ps_operator *op, int64_t max_pending);

/* Rows taken but kept by the caller, which still count against max_pending. */
void ps_operator_keep(ps_operator *op, int64_t rows);

/* Exact sums of doubles, for tests and for merging partial results (exact_sum.h). */
typedef struct ps_exact_sum ps_exact_sum;
ps_exact_sum *ps_exact_sum_new(void);
ps_code ps_exact_sum_add_all(ps_exact_sum *sum, const double *values, int64_t n);
ps_code ps_exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other);
double ps_exact_sum_round(const ps_exact_sum *sum);
double ps_exact_sum_mean(const ps_exact_sum *sum, int64_t n); /* the nearest double to sum / n; n > 0 */
void ps_exact_sum_free(ps_exact_sum *sum);

/* For tests: live allocations, and a countdown after which allocations fail (0: never). */
int64_t ps_memory_live(void);
void ps_memory_fail_after(int64_t allocations);

/* Releases an Arrow array that was exported and not moved; no effect on one that was moved. */
void ps_arrow_release(struct ArrowArray *array);

/* Makes *out another reference to the array; the buffers live until both are released. For callers that move the array
   out and may fail: the rows are then still here. Single columns must not be moved out of either. */
ps_code ps_arrow_share(struct ArrowArray *array, struct ArrowArray *out);

/* ---- T-Gate on its own (t_gate.h). Any thread may make any call: calls of the same input, or of the same reader, run
   one after the other. Inputs and readers are numbered from 0 and must be in range. ---- */
typedef struct ps_t_gate ps_t_gate;

typedef struct {
  int64_t ts;
  uint64_t token;
  int32_t input;
} ps_t_gate_tuple;

/* At most 65536 of each. */
ps_code ps_t_gate_new(int32_t inputs, int32_t readers, ps_t_gate **out);

/* No other call may run. NULL is allowed. */
void ps_t_gate_free(ps_t_gate *gate);

/* All n tuples or none; tuple i gets token + i. */
ps_code ps_t_gate_insert_tuples(ps_t_gate *gate, int32_t input, int64_t n, const int64_t *ts, uint64_t token,
                                ps_fault *fault);
ps_code ps_t_gate_heartbeat(ps_t_gate *gate, int32_t input, int64_t ts, ps_fault *fault);
void ps_t_gate_close(ps_t_gate *gate, int32_t input);

/* PS_OK: up to n ready tuples; or PS_EMPTY, or PS_END. */
ps_code ps_t_gate_get_ready_tuples(ps_t_gate *gate, int32_t reader, int64_t n, ps_t_gate_tuple *out, int64_t *got);

/* The reader gets nothing below this timestamp any more; after PS_EMPTY it is the lowest that it can still get. */
int64_t ps_t_gate_position(ps_t_gate *gate, int32_t reader);

/* Whether the reader's last get returned PS_END. */
int32_t ps_t_gate_ended(ps_t_gate *gate, int32_t reader);

/* ---- W-Hive on its own (w_hive.h). Any thread may make any call: calls of the same updater, and those of the reader,
   run one after the other. Updaters are numbered from 0 and must be in range. ---- */
typedef struct ps_w_hive ps_w_hive;

/* Rows of tuples. Each value is an integer (then `real` is the nearest double), a real or null, as in the bitmaps. */
typedef struct {
  int64_t rows;
  const int64_t *ts;
  const int64_t *key; /* numbers that the caller has assigned to its keys */
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

/* PS_DISORDER, PS_OVERLAP and PS_CLOSED: no row was taken. PS_NO_MEMORY: the rows before fault->row were; that row's
   timestamp acts as a heartbeat. */
ps_code ps_w_hive_update_windows(ps_w_hive *hive, int32_t thread, const ps_w_hive_tuples *tuples, ps_fault *fault);
ps_code ps_w_hive_heartbeat(ps_w_hive *hive, int32_t thread, int64_t ts, ps_fault *fault);
void ps_w_hive_close(ps_w_hive *hive, int32_t thread);

/* PS_OK: the rows of the next winset: its start, the number of the key, and PS_COUNT's count, or the function over
   integers, the function over all values as doubles, and the count of non-integers. Or PS_EMPTY, or PS_END. After
   PS_NO_MEMORY the next call returns the same winset; after PS_OVERFLOW (fault->ts: its start) the next one. */
ps_code ps_w_hive_get_next_winset(ps_w_hive *hive, struct ArrowArray *out, ps_fault *fault);

/* All windows that start before this are complete; UINT64_MAX: all threads have closed. */
uint64_t ps_w_hive_limit(ps_w_hive *hive);

/* ---- Partial aggregates (fold.h): rows in any order become one entry per (slice, key); entries become rows of Arrow
   columns, which another fold takes in; the fold that has all of them makes the windows. One thread at a time. ---- */
typedef struct ps_fold ps_fold;

/* What is wrong with a partial: ps_fault.code, with its row and aggregate (-1: none). */
typedef enum {
  PS_BAD_SLICE,   /* no slice of a window begins there */
  PS_BAD_LATE,    /* the slice is in a window that was emitted */
  PS_BAD_ROWS,    /* below 1, or too many */
  PS_BAD_COUNT,   /* below 0, or more than there are rows */
  PS_BAD_SUM,     /* not the bytes of a sum, or a sum impossible for its number of values */
  PS_BAD_VALUE,   /* no value of its column: out of range, not UTF-8, or of another length */
  PS_BAD_BY,      /* a value without one of the second column, or one out of its range */
  PS_BAD_PLACE,   /* a value without timestamp, stream and position, or a timestamp outside the slice */
  PS_BAD_PACK,    /* not what packing produces, or of other keys */
  PS_BAD_MOMENTS, /* var, std, covar, ...: not the bytes of moments, or impossible for their number of values */
  PS_BAD_SET      /* functions over multisets: not the bytes of a set of so many values of the column */
} ps_partial_fault;

/* The query has no PS_UDF and no PS_NATIVE. `stream` and `position` are PS_I64 columns without nulls, or -1. Windows
   that start before `start` were emitted already. */
ps_code ps_fold_new(const ps_query *query, int32_t stream, int32_t position, int64_t start, ps_fold **out);
void ps_fold_free(ps_fold *fold);

/* For a fold without rows: from now on each row becomes an entry, because folding would find hardly two of a key. Its
   number, counted from 0, stands for its key, which the caller keeps; ps_fold_keys returns how many there are. Rows can
   only be added to it, and packed. */
void ps_fold_keep_rows(ps_fold *fold);

/* `rows` has the columns of the query and stays the caller's. PS_DISORDER: a negative timestamp, nothing was taken.
   PS_TWICE, or PS_NO_MEMORY half-way: all later calls but free return PS_CLOSED. */
ps_code ps_fold_add_rows(ps_fold *fold, const struct ArrowArray *rows, ps_fault *fault);

/* The same for partials, whose columns fold_export.c lists; PS_CORRUPT: nothing was taken. `held`: they are from a fold
   that has emitted the windows before the same start. */
ps_code ps_fold_add_partials(ps_fold *fold, const struct ArrowArray *partials, int32_t held, ps_fault *fault);

/* Up to `most` entries from number `from` on, as partials; they stay in the fold. PS_END: there are no more. */
ps_code ps_fold_get_partials(ps_fold *fold, int64_t from, int64_t most, struct ArrowArray *out);

/* The keys known, at least one, as rows: their numbers, 0, 1, 2, ..., and the key columns. */
ps_code ps_fold_get_keys(const ps_fold *fold, struct ArrowArray *out);

/* Writes 0 for each key by number that some entry is of, 1 for the others. */
void ps_fold_mark_keys(const ps_fold *fold, uint16_t *unused);

/* All entries in few bytes, shard by shard (fold_parcels.c); `shards` is the shard of each key by number. Entries of a
   slice come in the order in which they were met or, `by_key`, of their keys' numbers: fewer bytes, and more time. The
   fold must not change meanwhile. get returns the bytes of a shard, valid until the next call; NULL: it has none. */
typedef struct ps_pack ps_pack;
ps_code ps_pack_new(ps_fold *fold, const uint16_t *shards, int32_t count, int32_t by_key, ps_pack **out);
void ps_pack_free(ps_pack *pack);
ps_code ps_pack_get(ps_pack *pack, int32_t shard, const uint8_t **data, int64_t *length);

/* The numbers of keys in this fold, assigned if they are new: rows as from ps_fold_get_keys, the first column is
   ignored. */
ps_code ps_fold_number_keys(ps_fold *fold, const struct ArrowArray *keys, uint32_t *numbers);

/* Takes in packed bytes: whole blocks, whose keys have these numbers here; `held` as for ps_fold_add_partials.
   PS_CORRUPT: the blocks before were taken, and all later calls but free return PS_CLOSED. */
ps_code ps_fold_add_packed(ps_fold *fold, const uint32_t *numbers, int64_t keys, const uint8_t *data, int64_t length,
                           int32_t held, ps_fault *fault);

/* The windows that end at or before `until` (UINT64_MAX: all), each once and in order: ts, keys, aggregates; whole
   windows until there are `most` rows. PS_END: there are no more, and entries that no later window needs are freed.
   PS_OVERFLOW: rows of the windows before are returned first. */
ps_code ps_fold_get_windows(ps_fold *fold, uint64_t until, int64_t most, struct ArrowArray *out, ps_fault *fault);
ps_code ps_fold_fault_key(const ps_fold *fold, const ps_fault *fault, struct ArrowArray *out);

/* The lowest start of a window that was not emitted. */
uint64_t ps_fold_start(const ps_fold *fold);

int64_t ps_fold_entries(const ps_fold *fold);
int64_t ps_fold_rows(const ps_fold *fold);  /* that all entries stand for */
int64_t ps_fold_keys(const ps_fold *fold);  /* all keys so far: they stay when entries are freed */
int64_t ps_fold_bytes(const ps_fold *fold); /* memory held, roughly */

/* ---- Exact variance and deviation, for tests (exact_moments.h). A state holds doubles or integers, never both;
   `integers` states which. PS_EMPTY: no more values than ddof. ---- */
typedef struct ps_exact_moments ps_exact_moments;
ps_exact_moments *ps_exact_moments_new(void);
ps_code ps_exact_moments_add_all(ps_exact_moments *m, const double *values, int64_t n);
void ps_exact_moments_add_integers(ps_exact_moments *m, const uint64_t *values, int64_t n, int32_t is_unsigned);
int32_t ps_exact_moments_reserve(ps_exact_moments *m, double x); /* 0: out of memory */
ps_code ps_exact_moments_combine(ps_exact_moments *m, const ps_exact_moments *other, int32_t subtract);
ps_code ps_exact_moments_result(const ps_exact_moments *m, int32_t integers, int64_t ddof, int32_t root, double *out);
void ps_exact_moments_free(ps_exact_moments *m);

/* Variances or deviations of n states with more values than ddof, in blocks (exact_deviations.h). */
void ps_exact_deviations(const ps_exact_moments *const *states, int64_t n, int32_t integers, int64_t ddof, int32_t root,
                         double *out);

/* The same for pairs (exact_pairs.h), whose values are widened as in columns of these types. `which`: PS_COVAR, PS_SLOPE,
   PS_INTERCEPT or PS_CORR. PS_EMPTY: there is no such result. */
typedef struct ps_exact_pairs ps_exact_pairs;
ps_exact_pairs *ps_exact_pairs_new(void);
ps_code ps_exact_pairs_add_all(ps_exact_pairs *p, ps_type u_type, ps_type v_type, const uint64_t *u, const uint64_t *v,
                               int64_t n);
ps_code ps_exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other, int32_t subtract);
ps_code ps_exact_pairs_result(const ps_exact_pairs *p, ps_type u, ps_type v, ps_function which, int64_t ddof,
                              double *out);
void ps_exact_pairs_free(ps_exact_pairs *p);

/* The double nearest to a / d * 2^exponent, or to its square root (exact_ratio.h); a and d as limbs, lowest first, of
   which d has two at least. */
double ps_exact_ratio(const uint64_t *a, int32_t n, const uint64_t *d, int32_t m, int32_t exponent, int32_t root);

/* Words with counts, for tests (multiset.h). A count that is removed, or a set that is subtracted, is in the set; ranks are
   below the sum of all counts. words writes all of them in ascending order. */
typedef struct ps_multiset ps_multiset;
ps_multiset *ps_multiset_new(void);
ps_code ps_multiset_add(ps_multiset *m, uint64_t word, int64_t count);
void ps_multiset_remove(ps_multiset *m, uint64_t word, int64_t count);
ps_code ps_multiset_plus(ps_multiset *m, const ps_multiset *other);
void ps_multiset_minus(ps_multiset *m, const ps_multiset *other);
void ps_multiset_select(const ps_multiset *m, int64_t rank, uint64_t *word);
void ps_multiset_words(const ps_multiset *m, uint64_t *word, int64_t *count);
int64_t ps_multiset_distinct(const ps_multiset *m);
int64_t ps_multiset_held(const ps_multiset *m);
void ps_multiset_free(ps_multiset *m);
