/*
 * snapshot.c - an operator's state to tables and back; the functions are told in pystream.h, the bytes in
 * state_bytes.h.
 *
 * While the operator is paused nobody else touches windows or ledgers: the turns of all inputs are held, the workers
 * stand still, and both are mutexes that have been passed. Python (pystream/snapshot.py) makes one string of bytes of
 * the tables, checks it when it comes back, and adds the pending tuples again by ordinary calls; what C has to take on
 * trust are the windows, and it trusts nothing in them.
 */
#include "design.h"
#include "state_bytes.h"

/* ---- pause ---- */

static void give_turns(ps_operator *op) {
  for (int32_t i = op->inputs - 1; i >= 0; i--) pthread_mutex_unlock(&op->input[i].turn);
}

ps_code ps_operator_pause(ps_operator *op) {
  if (!op->design->save || !op->design->load) return PS_REFUSED;
  for (int32_t i = 0; i < op->inputs; i++) pthread_mutex_lock(&op->input[i].turn);
  ps_code code = workers_pause(op);
  if (code != PS_OK) give_turns(op);
  return code;
}

void ps_operator_resume(ps_operator *op) {
  workers_resume(op);
  give_turns(op);
}

void ps_operator_limit(ps_operator *op, int64_t max_pending) {
  for (int32_t i = 0; i < op->inputs; i++) ledger_limit(&op->input[i].ledger, max_pending);
  sink_limit(&op->sink, max_pending);
}

void ps_operator_keep(ps_operator *op, int64_t rows) { sink_keep(&op->sink, rows); }

/* ---- save ---- */

/* Moves the rows out, or says that the memory ended. Frees the table in any case. */
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

ps_code ps_operator_save_windows(ps_operator *op, struct ArrowArray *out) {
  static const bool is_bytes[WINDOW_COLUMNS] = {[KEY] = true, [STATE] = true};
  window_saver s = {.functions = &op->functions};
  if (!out_rows_init(&s.rows, WINDOW_COLUMNS, is_bytes)) return PS_NO_MEMORY;
  bool ok = op->design->save(op, save_window, &s);
  memory_free(s.buffer.data);
  return hand_over(&s.rows, ok, out);
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
    int64_t row = b->rows - b->rows_left + (skip < b->rows_left ? skip : b->rows_left);
    skip -= skip < b->rows_left ? skip : b->rows_left;
    for (; row < b->rows; row++) {
      if (!save_tuple(rows, op->columns, b, row)) return false;
    }
  }
  return true;
}

ps_code ps_operator_save_pending(ps_operator *op, int32_t which, struct ArrowArray *out) {
  bool *is_bytes = memory_new((size_t)(2 + op->columns) * sizeof *is_bytes);
  if (!is_bytes) return PS_NO_MEMORY;
  for (int32_t i = 0; i < op->columns; i++) is_bytes[2 + i] = type_is_bytes(op->column_types[i]);
  out_rows rows;
  bool made = out_rows_init(&rows, 2 + op->columns, is_bytes);
  memory_free(is_bytes);
  return made ? hand_over(&rows, save_tuples(op, which, &rows), out) : PS_NO_MEMORY;
}

/* ---- load ---- */

/* The string that starts at *at, whose end is 00 00 and whose zero bytes are 00 FF; false if it is not one. */
static bool key_string(const uint8_t **at, const uint8_t *end) {
  while (end - *at >= 2) {
    bool zero = (*at)[0] == 0;
    uint8_t after = (*at)[1];
    if (zero && after != 0 && after != 0xff) return false;
    *at += zero ? 2 : 1;
    if (zero && after == 0) return true;
  }
  return false;
}

/* One column of a key; false if it is not one. */
static bool key_column(const uint8_t **at, const uint8_t *end, ps_type type) {
  if (*at == end || **at > 1) return false;
  bool null = *(*at)++ == 1;
  if (null) return true;
  if (type_is_bytes(type)) return key_string(at, end);
  if (end - *at < 8) return false;
  uint64_t bits = 0;
  for (int i = 0; i < 8; i++) bits = bits << 8 | *(*at)++;
  return value_in_range(value_unordered(bits, type), type);
}

static bool key_is_right(const ps_operator *op, bytes k) {
  const uint8_t *at = k.data, *end = k.data + k.length;
  for (int32_t i = 1; i <= op->keys; i++) {
    if (!key_column(&at, end, op->column_types[i])) return false;
  }
  return at == end;
}

static ps_code load_window(ps_operator *op, int64_t start, bytes key_bytes, bytes state_bytes, uint8_t *state,
                           int64_t number) {
  if (start < 0 || start % op->advance != 0 || !key_is_right(op, key_bytes)) return PS_CORRUPT;
  const key *k = key_table_key(&op->key_table, key_bytes.data, key_bytes.length);
  if (!k) return PS_NO_MEMORY;
  memset(state, 0, (size_t)op->functions.state_size);
  ps_code code = state_load(&op->functions, state_bytes, state);
  if (code != PS_OK) return code;
  if (op->functions.udf >= 0) *aggregates_udf_window(&op->functions, state) = number;
  code = op->design->load(op, start, k, state);
  if (code != PS_OK) aggregates_drop(&op->functions, state);
  return code;
}

ps_code ps_operator_load_windows(ps_operator *op, const struct ArrowArray *windows, ps_fault *fault) {
  static const ps_type types[] = {[START] = PS_I64, [KEY] = PS_BYTES64, [STATE] = PS_BYTES64};
  batch *b = batch_new(windows, NUMBER, types);
  uint8_t *state = memory_new((size_t)op->functions.state_size);
  ps_code code = b && state ? PS_OK : PS_NO_MEMORY;
  for (int64_t row = 0; code == PS_OK && row < b->rows; row++) {
    fault->row = row;
    code = load_window(op, batch_ts(b, row), column_bytes(&b->columns[KEY], row), column_bytes(&b->columns[STATE], row),
                       state, row);
  }
  if (code == PS_OK && op->design->number) op->design->number(op, b->rows);
  memory_free(state);
  batch_free(b); /* the buffers are still the caller's */
  return code;
}
