/*
 * snapshot.c - saves an operator's state to tables and loads it. pystream.h documents the functions, state_bytes.h the
 * bytes.
 *
 * While the operator is paused no other thread touches windows or ledgers: the locks of all inputs are held and the
 * workers stand still, ordered by the pause's mutex. Python (pystream/_engine/snapshot.py) makes one byte string of the
 * tables, checks it on restore, and adds the pending tuples again by ordinary calls. C has to read the windows, and
 * checks everything in them.
 */
#include "operator/design.h"
#include "base/memory.h"
#include "aggregates/state_bytes.h"
#include "columns/utf8.h"
#include "slices/pane_window.h"

/* ---- pause ---- */

ps_code ps_operator_pause(ps_operator *op, int32_t ms) {
  if (!workers_held(op)) {
    for (int32_t i = 0; i < op->inputs; i++) pthread_mutex_lock(&op->input[i].lock);
    workers_pause(op);
  }
  ps_code code = workers_wait(op, ms);
  if (code == PS_CLOSED) ps_operator_resume(op);
  return code;
}

void ps_operator_resume(ps_operator *op) {
  if (!workers_held(op)) return;
  workers_resume(op);
  for (int32_t i = op->inputs - 1; i >= 0; i--) pthread_mutex_unlock(&op->input[i].lock);
}

void ps_operator_limit(ps_operator *op, int64_t max_pending) {
  for (int32_t i = 0; i < op->inputs; i++) ledger_limit(&op->input[i].ledger, max_pending);
  sink_limit(&op->sink, max_pending);
}

void ps_operator_keep(ps_operator *op, int64_t rows) { sink_keep(&op->sink, rows); }

/* ---- save ---- */

/* Moves the rows to *out, or returns PS_NO_MEMORY. Frees the table in any case. */
static ps_code hand_over(out_rows *rows, bool ok, struct ArrowArray *out) {
  ok = ok && out_rows_shell(rows, out);
  if (ok) out_rows_move(rows, out);
  out_rows_free(rows);
  return ok ? PS_OK : PS_NO_MEMORY;
}

enum { START, KEY, STATE, NUMBER, WINDOW_COLUMNS };

typedef struct {
  const aggregates *functions;
  out_rows rows;
  byte_buffer buffer;
} window_saver;

static bool save_window(void *context, int64_t start, const key *k, const uint8_t *state) {
  window_saver *s = context;
  int64_t number = 0;
  if (s->functions->udf >= 0) memcpy(&number, state + s->functions->each[s->functions->udf].offset, sizeof number);
  bool ok = out_put_bits(&s->rows, START, (uint64_t)start) && out_put_bytes(&s->rows, KEY, k->data, k->length) &&
            state_save(s->functions, state, &s->buffer) &&
            out_put_bytes(&s->rows, STATE, s->buffer.data, s->buffer.length) &&
            out_put_bits(&s->rows, NUMBER, (uint64_t)number);
  if (ok) out_end_row(&s->rows);
  return ok;
}

typedef bool (*saving)(ps_operator *op, window_visit visit, void *context);

/* save is NULL: writes an empty table. */
static ps_code save_states(ps_operator *op, saving save, struct ArrowArray *out) {
  static const bool is_bytes[WINDOW_COLUMNS] = {[KEY] = true, [STATE] = true};
  window_saver s = {.functions = &op->functions};
  if (!out_rows_init(&s.rows, WINDOW_COLUMNS, is_bytes)) return PS_NO_MEMORY;
  bool ok = !save || save(op, save_window, &s);
  memory_free(s.buffer.data);
  return hand_over(&s.rows, ok, out);
}

ps_code ps_operator_save_windows(ps_operator *op, struct ArrowArray *out) {
  ps_counter *before = memory_enter(&op->bytes);
  ps_code code = save_states(op, op->design->save, out);
  memory_enter(before);
  return code;
}

ps_code ps_operator_save_slices(ps_operator *op, struct ArrowArray *out, int64_t *start_next) {
  uint64_t next = op->design->start_next ? op->design->start_next(op) : 0;
  uint64_t last = last_start(operator_windows(op), INT64_MAX);
  *start_next = (int64_t)(next < last ? next : last); /* after the last window there is none */
  ps_counter *before = memory_enter(&op->bytes);
  ps_code code = save_states(op, op->design->save_slices, out);
  memory_enter(before);
  return code;
}

static bool save_value(out_rows *rows, int32_t to, const column *c, int64_t row) {
  if (column_is_null(c, row)) return out_put_null(rows, to);
  if (!type_is_bytes(c->type)) return out_put_bits(rows, to, column_bits(c, row));
  bytes b = column_bytes(c, row);
  return out_put_bytes(rows, to, b.data, b.length);
}

static bool save_tuple(out_rows *rows, int32_t columns, const batch *b, int64_t row) {
  bool ok = out_put_bits(rows, 0, (uint64_t)b->number) && out_put_bits(rows, 1, (uint64_t)row);
  for (int32_t i = 0; i < columns && ok; i++) ok = save_value(rows, 2 + i, &b->columns[i], row);
  if (ok) out_end_row(rows);
  return ok;
}

static bool save_tuples(ps_operator *op, int32_t which, out_rows *rows) {
  input *in = &op->input[which];
  int64_t skip = in->passed + (op->design->absorbed ? op->design->absorbed(op, which) : 0);
  for (const batch *b = in->ledger.first; b; b = b->next) {
    int64_t left = b->rows - b->passed, row = b->passed + (skip < left ? skip : left);
    skip -= skip < left ? skip : left;
    for (; row < b->rows; row++) {
      if (!save_tuple(rows, op->columns, b, row)) return false;
    }
  }
  return true;
}

ps_code ps_operator_save_pending(ps_operator *op, int32_t which, struct ArrowArray *out) {
  out_rows rows;
  if (!out_rows_init_types(&rows, 2, op->columns, op->column_types)) return PS_NO_MEMORY;
  return hand_over(&rows, save_tuples(op, which, &rows), out);
}

/* ---- load ---- */

/* Reads the string at *at. It ends with 00 00, and 00 FF is a zero byte; false: malformed. A zero byte is a character
   of its own, so text is UTF-8 if the pieces between zero bytes are. */
static bool key_string(const uint8_t **at, const uint8_t *end, int32_t strings) {
  const uint8_t *piece = *at;
  int64_t length = 0;
  while (end - *at >= 2) {
    bool zero = (*at)[0] == 0;
    uint8_t after = (*at)[1];
    if (zero && after != 0 && after != 0xff) return false;
    if (zero && strings == PS_UTF8 && !utf8_is_valid((bytes){piece, *at - piece})) return false;
    *at += zero ? 2 : 1;
    if (zero) piece = *at;
    if (zero && after == 0) return strings < 0 || length == strings;
    length++;
  }
  return false;
}

/* Reads one column of a key; false: malformed. */
static bool key_column(const uint8_t **at, const uint8_t *end, ps_type type, int32_t strings) {
  if (*at == end || **at > 1) return false;
  bool null = *(*at)++ == 1;
  if (null) return true;
  if (type_is_bytes(type)) return key_string(at, end, strings);
  if (end - *at < 8) return false;
  uint64_t bits = 0;
  for (int i = 0; i < 8; i++) bits = bits << 8 | *(*at)++;
  return value_in_range(value_unordered(bits, type), type);
}

static bool key_is_right(const ps_operator *op, bytes k) {
  const uint8_t *at = k.data, *end = k.data + k.length;
  for (int32_t i = 1; i <= op->keys; i++) {
    if (!key_column(&at, end, op->column_types[i], op->strings[i])) return false;
  }
  return at == end;
}

/* Where states are loaded: into the design, or into a pane_window that makes windows of slices for it. */
typedef struct {
  ps_operator *op;
  pane_window *window; /* NULL: into the design */
  bool slices;         /* states of slices, not windows */
  uint8_t *state;      /* room for one state */
  int64_t *tuples;
} target;

static ps_code take_state(const target *to, int64_t start, const key *k) {
  if (to->window) return pane_window_carry(to->window, to->slices, start, k, to->state);
  return (to->slices ? to->op->design->load_slice : to->op->design->load)(to->op, start, k, to->state);
}

static ps_code load_state(const target *to, int64_t start, bytes key_bytes, bytes saved, int64_t number) {
  ps_operator *op = to->op;
  if (start < 0 || !key_is_right(op, key_bytes)) return PS_CORRUPT;
  if (!to->slices && start % op->advance != 0) return PS_CORRUPT;
  const key *k = key_table_key(&op->key_table, key_bytes.data, key_bytes.length);
  if (!k) return PS_NO_MEMORY;
  memset(to->state, 0, (size_t)op->functions.state_size);
  ps_code code = state_load(&op->functions, saved, to->state, to->tuples);
  if (code != PS_OK) return code;
  if (op->functions.udf >= 0) *aggregates_udf_window(&op->functions, to->state) = number;
  code = take_state(to, start, k);
  if (code != PS_OK) aggregates_drop(&op->functions, to->state);
  return code;
}

/* fault->row counts the rows loaded, over all calls. */
static ps_code load_states(const target *to, const struct ArrowArray *saved, ps_fault *fault) {
  static const ps_type types[] = {[START] = PS_I64, [KEY] = PS_BYTES64, [STATE] = PS_BYTES64};
  batch *b = batch_new(saved, NUMBER, types);
  ps_code code = b ? PS_OK : PS_NO_MEMORY;
  for (int64_t row = 0; code == PS_OK && row < b->rows; row++) {
    bool falls = row > 0 && batch_ts(b, row) < batch_ts(b, row - 1);
    const column *keys = &b->columns[KEY], *states = &b->columns[STATE];
    code =
        falls ? PS_CORRUPT : load_state(to, batch_ts(b, row), column_bytes(keys, row), column_bytes(states, row), row);
    if (code == PS_OK) fault->row++;
  }
  if (b) batch_free(b); /* the buffers are still the caller's */
  return code;
}

/* ---- slices for a design that keeps none: loaded as the windows they make ---- */

typedef struct {
  const target *to;
  uint8_t *state;
  byte_buffer buffer;
  ps_code code;
} window_maker;

/* One window of a key. */
static bool make_window(void *maker, int64_t start, const key *k, const uint8_t *state) {
  window_maker *m = maker;
  if (!state_save(&m->to->op->functions, state, &m->buffer)) return false;
  m->code = load_state(m->to, start, (bytes){k->data, k->length}, (bytes){m->buffer.data, m->buffer.length}, 0);
  return m->code == PS_OK;
}

static ps_code make_windows(window_maker *m, pane_window *w) {
  bool ok = pane_window_carry_end(w);
  ps_code code = PS_OK;
  while (ok && code == PS_OK) {
    code = pane_window_next(w, PANE_FOREVER);
    ok = code != PS_OK || (pane_window_visit(w, m->state, make_window, m) && pane_window_advance(w, (pane_owner){0}));
  }
  if (m->code != PS_OK) return m->code;
  return ok && code == PS_END ? PS_OK : PS_NO_MEMORY;
}

typedef struct {
  const struct ArrowArray *windows, *slices;
  int64_t start_next;
} saved;

static ps_code load_both(const target *to, saved from, ps_fault *fault) {
  target slices = *to;
  slices.slices = true;
  ps_code code = load_states(to, from.windows, fault);
  return code == PS_OK ? load_states(&slices, from.slices, fault) : code;
}

static ps_code carry(const target *to, pane_window *w, saved from, ps_fault *fault) {
  target window = *to;
  window.window = w;
  return pane_window_carry_begin(w, from.start_next) ? load_both(&window, from, fault) : PS_CORRUPT;
}

/* Whether a tuple of the slices would be in more windows than the design takes. Slices are sorted by begin. */
static ps_code check_overlap(const ps_operator *op, const pane_window *w, ps_fault *fault) {
  int64_t last = pane_window_carried_last(w);
  if (last <= op->ts_max) return PS_OK;
  *fault = (ps_fault){.ts = last, .latest = op->ts_max};
  return PS_OVERLAP;
}

static ps_code load_expanded(const target *to, saved from, ps_fault *fault) {
  ps_operator *op = to->op;
  for (int32_t a = 0; a < op->functions.n; a++) {
    if (!partial_exists(&op->functions.each[a])) return PS_CORRUPT; /* no design has slices of it */
  }
  pane_plan plan = pane_plan_of(operator_windows(op), &op->functions);
  pane_window w;
  slide_keys keys = {&op->key_table, op->keys, op->column_types + 1};
  bool made = pane_window_init(&w, &plan, &keys);
  window_maker m = {to, memory_new((size_t)op->functions.state_size), {0}, PS_OK};
  ps_code code = made && m.state ? carry(to, &w, from, fault) : PS_NO_MEMORY;
  if (code == PS_OK) code = check_overlap(op, &w, fault);
  if (code == PS_OK) code = make_windows(&m, &w);
  if (made) pane_window_free(&w, (pane_owner){0});
  memory_free(m.state);
  memory_free(m.buffer.data);
  return code;
}

static ps_code load(const target *to, saved from, ps_fault *fault) {
  const design *d = to->op->design;
  if (!d->load_slice && from.slices->length > 0) return load_expanded(to, from, fault);
  if (!d->load_slice) return load_states(to, from.windows, fault);
  if (!d->load_begin(to->op, from.start_next)) return PS_CORRUPT;
  ps_code code = load_both(to, from, fault);
  return code == PS_OK && !d->load_end(to->op) ? PS_NO_MEMORY : code;
}

ps_code ps_operator_load_windows(ps_operator *op, const struct ArrowArray *windows, const struct ArrowArray *slices,
                                 int64_t start_next, ps_fault *fault) {
  ps_counter *before = memory_enter(&op->bytes);
  int64_t tuples = 0;
  target to = {.op = op, .state = memory_new((size_t)op->functions.state_size), .tuples = &tuples};
  ps_code code = to.state ? load(&to, (saved){windows, slices, start_next}, fault) : PS_NO_MEMORY;
  if (code == PS_OK && op->design->number) op->design->number(op, windows->length);
  memory_free(to.state);
  memory_enter(before);
  return code;
}
