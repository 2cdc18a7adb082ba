/* run_gate.c - see run_gate.h. */
#include "gates/run_gate.h"

/* BLOCK_TUPLES: both buffers of a merge fit into the first two levels of any cache; EACH_MIN: with very many inputs, a
   block has at least this many tuples of each. A slice is as fast as a block if STRETCH_LONG or more tuples of one
   input follow each other, and faster if a block has fewer than EACH_PAYS tuples per input; that usually lasts, so the
   next REST calls return slices. */
enum {
  BLOCK_TUPLES = SIZED(4096, 2),
  EACH_MIN = SIZED(16, 2),
  STRETCH_LONG = SIZED(32, 3),
  EACH_PAYS = SIZED(4, 0),
  REST = SIZED(32, 1)
};

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
  r->share = memory_new((size_t)g->inputs * sizeof *r->share);
  if (!r->cursor || !r->share || !tournament_init(&r->position, g->inputs)) return false;
  int64_t each = BLOCK_TUPLES / g->inputs;
  if (!block_merge_init(&r->merge, g->inputs, each < EACH_MIN ? EACH_MIN : each)) return false;
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
  if (holders_leave(&r->holders) == 1) memory_free(r);
}

/* Frees the runs that no reader has left, from the slowest cursor on. All cursors of an input are in one list, and
   every run except the last has a next; leaving every run once per cursor frees each run once. */
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
      run_cursor *cursor = g->reader[k].cursor; /* NULL: run_gate_init failed, and the list is the dummy */
      free_from(cursor && cursor[i].at ? cursor[i].at : tail);
    }
  }
  for (int32_t k = 0; g->reader && k < g->readers; k++) {
    memory_free(g->reader[k].cursor);
    memory_free(g->reader[k].share);
    block_merge_free(&g->reader[k].merge);
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

/* Advances to the next run, if there is one. If not: linearization point of "nothing is ready". */
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

/* How many of the n timestamps have positions below `bound`; the first one has. */
static int64_t gallop(const int64_t *ts, int64_t n, uint64_t bound) {
  int64_t step = 1, low = 0;
  while (low + step < n && (uint64_t)ts[low + step] + 1 < bound) {
    low += step;
    step *= 2;
  }
  int64_t high = low + step < n ? low + step : n; /* ts[low] is below; high is n, or ts[high] is not below */
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

/* Positions of the winner below this are before all others'. */
static uint64_t bound_of_winner(const run_reader *r) {
  int32_t winner = tournament_winner(&r->position);
  tournament_rank second = tournament_second(&r->position);
  uint64_t bound = tournament_rank_score(second);
  if (winner < tournament_rank_number(second) && bound < RUN_FOREVER) bound++; /* of equal ones ours are first */
  return bound;
}

/* How many tuples from the winner's head on are below every other position. */
static int64_t stretch(const run_reader *r, const run_cursor *c) {
  uint64_t bound = bound_of_winner(r);
  return gallop(c->head, c->stop - c->head, bound);
}

/* How many tuples have the head's timestamp: they are ready, whatever the other inputs hold. */
static inline int64_t same(const run_cursor *c) {
  const int64_t *at = c->head + 1;
  while (at < c->stop && *at == *c->head) at++;
  return at - c->head;
}

static inline bool has_head(const run_reader *r) {
  const run_cursor *c = &r->cursor[tournament_winner(&r->position)];
  return c->head < c->stop;
}

/* The winner has no head: reads on until one has. PS_EMPTY or PS_END: there is none. */
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

/* An input that was not the winner last time returns only the tuples of one timestamp: when inputs interleave, looking
   for more does not pay. */
static inline void answer_slice(run_reader *r, run_slice *out) {
  int32_t winner = tournament_winner(&r->position);
  run_cursor *c = &r->cursor[winner];
  answer(r, c, winner, winner == r->before ? stretch(r, c) : same(c), out);
}

ps_code run_gate_get_next_ready_run(run_gate *g, int32_t reader, run_slice *out) {
  run_reader *r = &g->reader[reader];
  AT(next_choose);
  ps_code code = choose(r);
  if (code == PS_OK) answer_slice(r, out);
  return code;
}

ps_code run_gate_get_next_ready_tuple(run_gate *g, int32_t reader, run_slice *out) {
  run_reader *r = &g->reader[reader];
  AT(next_choose);
  ps_code code = choose(r);
  int32_t winner = tournament_winner(&r->position);
  if (code == PS_OK) answer(r, &r->cursor[winner], winner, 1, out);
  return code;
}

/* ---- blocks ---- */

/* The smallest promise, as a rank: of the runs at the cursors, or of the part of a run that fits into a block. */
static tournament_rank smallest_promise(const run_gate *g, const run_reader *r) {
  tournament_rank smallest = tournament_rank_of(RUN_FOREVER, -1);
  for (int32_t i = 0; i < g->inputs; i++) {
    const run_cursor *c = &r->cursor[i];
    bool cut = c->stop - c->head > r->merge.each;
    tournament_rank promise = tournament_rank_of(cut ? (uint64_t)c->head[r->merge.each - 1] + 1 : c->at->end, i);
    smallest = promise < smallest ? promise : smallest;
  }
  return smallest;
}

/* Whether the rest of the run at a cursor has two tuples or more per timestamp. */
static inline bool has_ties(const run_reader *r, int32_t input) {
  const run_cursor *c = &r->cursor[input];
  return c->at->end - r->position.score[input] < (uint64_t)(c->stop - c->head) / 2;
}

/* Takes the tuples of each input that are at or below the promise; the head is among them. Equal timestamps of the
   promising input may be left over by a cut: they are the next ones after the block. Returns the number of tuples. */
static int64_t take_block(const run_gate *g, run_reader *r, tournament_rank promise) {
  int64_t total = 0;
  block_merge_begin(&r->merge, (int64_t)(tournament_lowest(&r->position) - 1));
  for (int32_t i = 0; i < g->inputs; i++) {
    run_cursor *c = &r->cursor[i];
    if (tournament_rank_of(r->position.score[i], i) > promise) continue;
    uint64_t below = i <= tournament_rank_number(promise) ? 1 : 2; /* unsigned: the promise may be 2^63 */
    int64_t most = (int64_t)(tournament_rank_score(promise) - below);
    int64_t n = block_merge_add(&r->merge, i, c->head, c->stop - c->head, most, has_ties(r, i));
    r->share[i] = (run_slice){i, c->at->owner, c->at->ts, c->head - c->at->ts, n};
    c->head += n;
    r->position.score[i] = position_of(c);
    total += n;
  }
  tournament_replay(&r->position);
  return total;
}

/* False: keys cannot represent these timestamps. */
static bool answer_block(const run_gate *g, run_reader *r, run_block *out) {
  tournament_rank promise = smallest_promise(g, r);
  if (!block_merge_spans(&r->merge, tournament_rank_score(promise) - tournament_lowest(&r->position))) return false;
  if (take_block(g, r, promise) < (int64_t)EACH_PAYS * g->inputs) r->rest = REST;
  r->before = -1;
  block_list all = block_merge_all(&r->merge);
  out->n = all.n;
  out->key = all.first;
  return true;
}

/* Whether the winner's next tuples form a long stretch; then the slice has to cover all of it. */
static bool is_long(run_reader *r) {
  int32_t winner = tournament_winner(&r->position);
  const run_cursor *c = &r->cursor[winner];
  if (c->stop - c->head < STRETCH_LONG) return false;
  bool long_alone = (uint64_t)c->head[STRETCH_LONG - 1] + 1 < bound_of_winner(r);
  if (long_alone) r->before = winner;
  return long_alone;
}

static bool rests(run_reader *r) {
  bool rests = r->rest > 0;
  r->rest -= rests;
  return rests;
}

ps_code run_gate_get_next_ready_block(run_gate *g, int32_t reader, run_block *out) {
  run_reader *r = &g->reader[reader];
  AT(next_choose);
  ps_code code = choose(r);
  if (code != PS_OK) return code;
  *out = (run_block){.reader = r};
  if (rests(r) || is_long(r) || !answer_block(g, r, out)) answer_slice(r, &out->slice);
  return PS_OK;
}

int64_t run_gate_position(const run_gate *g, int32_t reader) {
  uint64_t lowest = tournament_lowest(&g->reader[reader].position);
  return lowest == RUN_FOREVER ? INT64_MAX : (int64_t)(lowest - 1);
}
