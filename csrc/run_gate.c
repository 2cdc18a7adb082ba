/* run_gate.c - see run_gate.h. */
#include "run_gate.h"

/* ---- making and freeing ---- */

static run *run_new(int32_t readers) {
  run *r = memory_new(sizeof *r);
  if (!r) return NULL;
  cell_init(&r->next, 0);
  cell_init(&r->holders, (uint64_t)readers);
  return r;
}

static bool reader_init(run_gate *g, run_reader *r) {
  r->before = -1;
  r->cursor = memory_new((size_t)g->inputs * sizeof *r->cursor);
  if (!r->cursor || !tournament_init(&r->position, g->inputs)) return false;
  for (int32_t i = 0; i < g->inputs; i++) r->cursor[i].at = g->input[i].tail;
  return true;
}

bool run_gate_init(run_gate *g, int32_t inputs, int32_t readers) {
  *g = (run_gate){.inputs = inputs, .readers = readers};
  g->input = memory_new((size_t)inputs * sizeof *g->input);
  g->reader = memory_new((size_t)readers * sizeof *g->reader);
  bool ok = g->input && g->reader;
  for (int32_t i = 0; ok && i < inputs; i++) ok = (g->input[i].tail = run_new(readers)) != NULL;
  for (int32_t i = 0; ok && i < readers; i++) ok = reader_init(g, &g->reader[i]);
  if (!ok) run_gate_free(g);
  return ok;
}

static void run_gate_leave(run *r) {
  AT(next_leave);
  if (run_holders_leave(&r->holders) == 1) memory_free(r);
}

/* What no reader has left: from the cursor on that is farthest behind. All cursors of an input stand in one list, and
   every run before the last has a next; walking from each cursor and counting out frees each run once. */
static void free_from(run *r) {
  while (r) {
    run *next = link_last(&r->next);
    run_gate_leave(r);
    r = next;
  }
}

void run_gate_free(run_gate *g) {
  for (int32_t i = 0; g->input && g->reader && i < g->inputs; i++) {
    run *tail = g->input[i].tail;
    for (int32_t k = 0; tail && k < g->readers; k++) {
      run_cursor *cursor = g->reader[k].cursor; /* NULL: making the gate failed, and the list is the dummy */
      free_from(cursor && cursor[i].at ? cursor[i].at : tail);
    }
  }
  for (int32_t k = 0; g->reader && k < g->readers; k++) {
    memory_free(g->reader[k].cursor);
    tournament_free(&g->reader[k].position);
  }
  memory_free(g->reader);
  memory_free(g->input);
}

/* ---- inputs ---- */

run *run_gate_reserve(run_gate *g) { return run_new(g->readers); }

/* The run was private until now. Linearization point of insert, heartbeat and close. */
static void run_gate_publish(run_gate *g, int32_t input, run *r) {
  run_input *in = &g->input[input];
  assert(r->end >= in->tail->end);
  WRITES(*r);
  AT(insert_publish);
  run_link_publish(&in->tail->next, r);
  in->tail = r;
}

void run_gate_insert_run(run_gate *g, int32_t input, run *r, const int64_t *ts, int64_t n, void *owner) {
  assert(n > 0);
  r->ts = ts;
  r->n = n;
  r->owner = owner;
  r->end = (uint64_t)ts[n - 1] + 1;
  run_gate_publish(g, input, r);
}

void run_gate_heartbeat(run_gate *g, int32_t input, run *r, int64_t ts) {
  r->end = (uint64_t)ts + 1;
  run_gate_publish(g, input, r);
}

void run_gate_close(run_gate *g, int32_t input, run *r) {
  r->end = RUN_FOREVER;
  run_gate_publish(g, input, r);
}

/* ---- readers ---- */

static uint64_t position_of(const run_cursor *c) {
  if (c->head == c->stop) return c->at->end;
  READS(*c->head);
  return (uint64_t)*c->head + 1;
}

/* Steps into the run behind, if there is one. If not: the linearization point of "nothing is ready". */
static bool run_gate_refresh(run_reader *r, run_cursor *c) {
  AT(next_read_next);
  run *next = run_link_read(&c->at->next);
  if (!next) return false;
  READS(*next);
  run *left = c->at;
  *c = (run_cursor){next, next->ts, next->ts + next->n};
  run_gate_leave(left);
  tournament_update(&r->position, position_of(c));
  return true;
}

/* How many of the n timestamps, the first of which is, are positions below `bound`. */
static int64_t gallop(const int64_t *ts, int64_t n, uint64_t bound) {
  int64_t step = 1, low = 0;
  while (low + step < n && (uint64_t)ts[low + step] + 1 < bound) {
    low += step;
    step *= 2;
  }
  int64_t high = low + step < n ? low + step : n; /* ts[low] is below; high is the end or not below */
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if ((uint64_t)ts[middle] + 1 < bound) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

/* How many tuples from the winner's head on are below every other position. */
static int64_t stretch(const run_reader *r, const run_cursor *c) {
  int32_t winner = tournament_winner(&r->position);
  tournament_rank second = tournament_second(&r->position);
  uint64_t bound = tournament_rank_score(second);
  if (winner < tournament_rank_number(second) && bound < RUN_FOREVER) bound++; /* of equal ones ours come first */
  return gallop(c->head, c->stop - c->head, bound);
}

/* How many there are with the head's timestamp: they are ready, whatever the others have. */
static inline int64_t same(const run_cursor *c) {
  const int64_t *at = c->head + 1;
  while (at < c->stop && *at == *c->head) at++;
  return at - c->head;
}

static inline bool has_head(const run_reader *r) {
  const run_cursor *c = &r->cursor[tournament_winner(&r->position)];
  return c->head < c->stop;
}

/* The winner has none: reads on until it has. PS_EMPTY or PS_END if there is none to be had. */
static ps_code read_on(run_reader *r) {
  do {
    run_cursor *c = &r->cursor[tournament_winner(&r->position)];
    if (c->at->end == RUN_FOREVER) return PS_END;
    if (!run_gate_refresh(r, c)) return PS_EMPTY;
  } while (!has_head(r));
  return PS_OK;
}

static inline ps_code choose(run_reader *r) { return has_head(r) ? PS_OK : read_on(r); }

static inline void answer(run_reader *r, run_cursor *c, int32_t winner, int64_t n, run_slice *out) {
  *out = (run_slice){winner, c->at->owner, c->at->ts, c->head - c->at->ts, n};
  c->head += n;
  r->before = winner;
  tournament_update(&r->position, position_of(c));
}

/* An input that wins for the first time after another gives what it has of one timestamp, since with interleaved ones
   there is no more to look for. */
ps_code run_gate_get_next_ready_run(run_gate *g, int32_t reader, run_slice *out) {
  run_reader *r = &g->reader[reader];
  AT(next_choose);
  ps_code code = choose(r);
  if (code != PS_OK) return code;
  int32_t winner = tournament_winner(&r->position);
  run_cursor *c = &r->cursor[winner];
  answer(r, c, winner, winner == r->before ? stretch(r, c) : same(c), out);
  return PS_OK;
}

ps_code run_gate_get_next_ready_tuple(run_gate *g, int32_t reader, run_slice *out) {
  run_reader *r = &g->reader[reader];
  AT(next_choose);
  ps_code code = choose(r);
  int32_t winner = tournament_winner(&r->position);
  if (code == PS_OK) answer(r, &r->cursor[winner], winner, 1, out);
  return code;
}

int64_t run_gate_position(const run_gate *g, int32_t reader) {
  uint64_t lowest = tournament_lowest(&g->reader[reader].position);
  return lowest == RUN_FOREVER ? INT64_MAX : (int64_t)(lowest - 1);
}
