/* subject_pane_hive.c - Pane-Hive, under the model: W-Hive's operations. */
#include "model/subject.h"

#include "slices/pane_hive.h"

enum { KEYS = 4, COLUMNS = 3, KEY_BYTES = 9, TRIES = 8 };

enum { UPDATE, HEARTBEAT, CLOSE, GET };

static const char *const operations[] = {
    [UPDATE] = "update(input, ts, key, value)",
    [HEARTBEAT] = "heartbeat(input, ts)",
    [CLOSE] = "close(input)",
    [GET] = "get_next_winset()",
    NULL,
};

/* An input's batch of one row. */
typedef struct {
  batch *row;
  int64_t ts, value;
  bool lost; /* memory ran out during an update: the input takes nothing more (PS_CLOSED) */
} fed;

typedef struct {
  pane_hive hive;
  aggregates functions;
  key_table keys;
  fed input[MODEL_THREADS_MAX];
  bool lost; /* the same for the reader */
} object;

static const ps_type types[COLUMNS] = {PS_I64, PS_I64, PS_I64}; /* ts, key, value */

/* As key.h encodes an int64 that is not null. Key i gets number i. */
static void keys_init(key_table *table) {
  uint8_t data[KEY_BYTES] = {0, 0x80};
  key_table_init(table);
  for (int i = 0; i < KEYS; i++) {
    data[KEY_BYTES - 1] = (uint8_t)i;
    key_table_key(table, data, KEY_BYTES);
  }
}

static void fed_init(fed *f) {
  f->row = memory_new(sizeof *f->row + COLUMNS * sizeof *f->row->columns);
  f->row->rows = 1;
  f->row->columns[0] = (column){.type = PS_I64, .values = &f->ts};
  f->row->columns[2] = (column){.type = PS_I64, .values = &f->value};
}

/* Parameters: size, advance, inputs, function (0: sum, 1: first). */
static void *create(const int64_t *parameter) {
  object *o = memory_new(sizeof *o);
  ps_aggregate function = {.function = parameter[3] ? PS_FIRST : PS_SUM, .column = 2, .mask = -1};
  ps_query query = {parameter[0], parameter[1], COLUMNS, types, 1, 1, &function, NULL};
  pane_windows windows = {(uint64_t)query.size, (uint64_t)query.advance};
  slide_keys keys = {&o->keys, 1, types + 1};
  aggregates_init(&o->functions, &query);
  keys_init(&o->keys);
  for (int i = 0; i < MODEL_THREADS_MAX; i++) fed_init(&o->input[i]);
  return pane_hive_init(&o->hive, windows, &o->functions, &keys, (int32_t)parameter[2]) ? o : NULL;
}

static ps_code update(object *o, const int64_t *a) {
  int32_t i = (int32_t)a[0];
  fed *f = &o->input[i];
  uint32_t number = (uint32_t)a[2];
  assert(a[2] >= 0 && a[2] < KEYS);
  if (!pane_hive_expect(&o->hive, i, KEYS)) return PS_NO_MEMORY;
  f->ts = a[1];
  f->value = a[3];
  f->lost = !pane_hive_add(&o->hive, i, f->row, &number);
  return f->lost ? PS_CLOSED : PS_OK;
}

/* Emits the window's rows; repeats after a failed allocation, which is allowed. */
static void output(object *o, int64_t start, model_answer *answer) {
  out_rows rows;
  ps_fault fault;
  bool made = false, put = false;
  for (int tries = 0; !put && tries < TRIES; tries++) {
    made = made || out_rows_init(&rows, 3, NULL);
    put = made && pane_hive_combine(&o->hive, &rows, &fault) == PS_OK;
  }
  assert(put);
  answer_with(answer, start);
  for (int64_t i = 0; i < rows.rows; i++) {
    answer_with(answer, ((const int64_t *)rows.column[1].values)[i]);
    answer_with(answer, ((const int64_t *)rows.column[2].values)[i]);
  }
  out_rows_free(&rows);
}

static void get(object *o, model_answer *answer) {
  ps_code code = o->lost ? PS_NO_MEMORY : pane_hive_next(&o->hive);
  o->lost = code == PS_NO_MEMORY;
  answer_with(answer, code);
  if (code != PS_OK) return;
  output(o, pane_window_start(pane_hive_window(&o->hive)), answer);
  o->lost = pane_hive_drop(&o->hive) != PS_OK;
}

static void call(void *subject_object, int32_t operation, const int64_t *a, model_answer *answer) {
  object *o = subject_object;
  if (operation == GET) {
    get(o, answer);
  } else if (o->input[a[0]].lost) {
    answer_with(answer, PS_CLOSED);
  } else if (operation == UPDATE) {
    answer_with(answer, update(o, a));
  } else {
    bool ok = operation == CLOSE ? pane_hive_close(&o->hive, (int32_t)a[0])
                                 : pane_hive_heartbeat(&o->hive, (int32_t)a[0], (uint64_t)a[1]);
    answer_with(answer, ok ? PS_OK : PS_NO_MEMORY);
  }
}

static void destroy(void *subject_object) {
  object *o = subject_object;
  pane_hive_free(&o->hive);
  key_table_free(&o->keys);
  aggregates_free(&o->functions);
  for (int i = 0; i < MODEL_THREADS_MAX; i++) memory_free(o->input[i].row);
  memory_free(o);
}

extern const subject pane_hive_subject;
const subject pane_hive_subject = {"pane_hive", operations, create, call, destroy};
