/* subject_w_hive.c - W-Hive and its winsets, under the model: the sum or the greatest of a column of integers, by integer
   keys. */
#include "model/subject.h"

#include "windows/w_hive.h"

enum { KEYS = 4, COLUMNS = 2, KEY_BYTES = 9, TRIES = 8 };

/* What hive and winsets need: functions, keys, and a batch of one row per thread. */
typedef struct {
  aggregates functions;
  key *keys[KEYS];
  batch *batches[MODEL_THREADS_MAX];
  int64_t *values[MODEL_THREADS_MAX];
} surroundings;

/* As key.h encodes an int64 that is not null. Keys 0 and 2 have the same hash, as have 1 and 3. */
static key *key_make(int64_t number) {
  key *k = memory_new(sizeof *k + KEY_BYTES);
  k->hash = (uint64_t)number % 2;
  k->length = KEY_BYTES;
  k->data[1] = 0x80;
  k->data[KEY_BYTES - 1] = (uint8_t)number;
  return k;
}

static void surroundings_init(surroundings *s, int64_t size, int64_t advance, ps_function function) {
  ps_type types[COLUMNS] = {PS_I64, PS_I64};
  ps_aggregate of_values = {.function = function, .column = 1, .mask = -1};
  ps_query query = {size, advance, COLUMNS, types, 0, 1, &of_values, NULL};
  aggregates_init(&s->functions, &query);
  for (int64_t i = 0; i < KEYS; i++) s->keys[i] = key_make(i);
  for (int t = 0; t < MODEL_THREADS_MAX; t++) {
    s->batches[t] = memory_new(sizeof(batch) + COLUMNS * sizeof(column));
    s->values[t] = memory_new(sizeof *s->values[t]);
    s->batches[t]->columns[1] = (column){.type = PS_I64, .values = s->values[t]};
  }
}

static void surroundings_free(surroundings *s) {
  aggregates_free(&s->functions);
  for (int i = 0; i < KEYS; i++) memory_free(s->keys[i]);
  for (int t = 0; t < MODEL_THREADS_MAX; t++) memory_free(s->batches[t]), memory_free(s->values[t]);
}

/* ---- hive ---- */

typedef struct {
  surroundings around;
  w_hive *hive;
} hive_object;

enum { UPDATE, HEARTBEAT, CLOSE, GET };

static const char *const hive_operations[] = {
    [UPDATE] = "update(thread, ts, key, value)",
    [HEARTBEAT] = "heartbeat(thread, ts)",
    [CLOSE] = "close(thread)",
    [GET] = "get_next_winset()",
    NULL,
};

/* Parameters: size, advance, threads, levels; windows in lanes (0) or in words (1); their sum (0) or max (1). */
static void *hive_create(const int64_t *parameter) {
  hive_object *o = memory_new(sizeof *o);
  surroundings_init(&o->around, parameter[0], parameter[1], parameter[5] ? PS_MAX : PS_SUM);
  o->hive = w_hive_new(parameter[0], parameter[1], &o->around.functions, (int32_t)parameter[2],
                       parameter[4] ? W_HIVE_WORDS : W_HIVE_LANES, (int32_t)parameter[3]);
  return o;
}

static ps_code hive_update(hive_object *o, const int64_t *a) {
  int32_t t = (int32_t)a[0];
  assert(a[2] >= 0 && a[2] < KEYS);
  *o->around.values[t] = a[3];
  return w_hive_update_windows(o->hive, t, a[1], o->around.keys[a[2]], o->around.batches[t], 0, NULL);
}

/* Emits the winset's rows; repeats after a failed allocation, since the winset was taken. */
static void hive_output(win_set *set, model_answer *answer) {
  const ps_type key_type = PS_I64;
  out_rows rows;
  ps_fault fault;
  bool made = false, put = false;
  for (int tries = 0; !put && tries < TRIES; tries++) {
    made = made || out_rows_init(&rows, 3, NULL);
    put = made && win_set_output(set, 1, &key_type, &rows, &fault) == PS_OK;
  }
  assert(put);
  answer_with(answer, win_set_start(set));
  for (int64_t i = 0; i < rows.rows; i++) {
    answer_with(answer, ((const int64_t *)rows.column[1].values)[i]);
    answer_with(answer, ((const int64_t *)rows.column[2].values)[i]);
  }
  out_rows_free(&rows);
}

static void hive_get(hive_object *o, model_answer *answer) {
  win_set *set;
  ps_code code = w_hive_get_next_winset(o->hive, &set);
  answer_with(answer, code);
  if (code != PS_OK) return;
  hive_output(set, answer);
  win_set_free(set);
}

static void hive_call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  hive_object *o = object;
  switch (operation) {
    case UPDATE: answer_with(answer, hive_update(o, a)); break;
    case HEARTBEAT:
      w_hive_heartbeat(o->hive, (int32_t)a[0], a[1]);
      answer_with(answer, PS_OK);
      break;
    case CLOSE:
      w_hive_close(o->hive, (int32_t)a[0]);
      answer_with(answer, PS_OK);
      break;
    default: hive_get(o, answer);
  }
}

static void hive_destroy(void *object) {
  hive_object *o = object;
  w_hive_free(o->hive);
  surroundings_free(&o->around);
  memory_free(o);
}

extern const subject w_hive_subject;
const subject w_hive_subject = {"w_hive", hive_operations, hive_create, hive_call, hive_destroy};

/* ---- one winset ---- */

enum { WINDOWS_MAX = 32 };

typedef struct {
  surroundings around;
  win_set_shape shape;
  win_set *set;
  struct {
    const window *at;
    int64_t name;
  } named[WINDOWS_MAX]; /* by the threads that inserted them, in the same step */
  int32_t named_count;
} set_object;

static const char *const set_operations[] = {"find_or_insert(key, window, thread)", "find(key)", NULL};

/* Parameters: threads, bucket_bits. */
static void *set_create(const int64_t *parameter) {
  set_object *o = memory_new(sizeof *o);
  surroundings_init(&o->around, 1, 1, PS_SUM);
  int32_t threads = (int32_t)parameter[0];
  o->shape = (win_set_shape){.functions = &o->around.functions, .threads = threads, .lanes = threads};
  o->set = win_set_new(&o->shape, 0, (int32_t)parameter[1]);
  return o;
}

static bool set_has(const set_object *o, const window *w) {
  for (int32_t i = 0; i < o->named_count; i++) {
    if (o->named[i].at == w) return true;
  }
  return false;
}

static void set_name(const set_object *o, const window *w, model_answer *answer) {
  for (int32_t i = 0; i < o->named_count; i++)
    if (o->named[i].at == w) answer_with(answer, o->named[i].name);
}

static void set_call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  set_object *o = object;
  const key *k = o->around.keys[a[0]];
  if (operation == 1) {
    const window *w = win_set_find(o->set, k);
    answer_with(answer, PS_OK);
    if (w) set_name(o, w, answer);
    return;
  }
  int32_t t = (int32_t)a[2];
  const window *w = win_set_find_or_insert(o->set, t, k);
  answer_with(answer, w ? PS_OK : PS_NO_MEMORY);
  if (w && !set_has(o, w)) { /* no other thread has inserted it */
    assert(o->named_count < WINDOWS_MAX);
    o->named[o->named_count].at = w;
    o->named[o->named_count++].name = a[1];
  }
  if (w) set_name(o, w, answer);
}

static void set_destroy(void *object) {
  set_object *o = object;
  win_set_free(o->set);
  surroundings_free(&o->around);
  memory_free(o);
}

extern const subject win_set_subject;
const subject win_set_subject = {"win_set", set_operations, set_create, set_call, set_destroy};
