/* t_gate.c - see t_gate.h. */
#include "gates/t_gate.h"

#include "base/poison.h"

enum {
  LEVELS = 3, /* as in the paper; more made searches slower here, even with 20 inputs */
  FULL_EVERY = SIZED(256, 2),
  COUNT_EVERY = SIZED(128, 1),
  SLAB_BYTES = SIZED(4096 - 32, 1), /* one page with its header and the allocator's */
  SLAB_SPARES = SIZED(16, 1),
  RUN = SIZED(64, 2), /* tuples linked per reclaim_enter: few, so that nodes are freed soon */
  POSITION_BITS = 47
};

enum { DUMMY, TUPLE, HEARTBEAT, CLOSE };

#define POSITION_MAX (((uint64_t)1 << POSITION_BITS) - 1)
#define CLOSE_BIT ((uint64_t)1 << 63)

_Static_assert(T_GATE_INPUTS_MAX == 1 << (63 - POSITION_BITS), "close, input and position fill the word");

static uint64_t order_of(int32_t input, uint64_t position) { return (uint64_t)input << POSITION_BITS | position; }

static int32_t input_of(const skip_node *n) {
  return (int32_t)(n->key.order >> POSITION_BITS & (T_GATE_INPUTS_MAX - 1));
}

/* ---- new, free ---- */

static int64_t option(int64_t value, int64_t usual) { return value ? value : usual; }

static t_gate_options filled(t_gate_options o) {
  o.levels = (int32_t)option(o.levels, LEVELS);
  o.full_every = (int32_t)option(o.full_every, FULL_EVERY);
  o.count_every = (int32_t)option(o.count_every, COUNT_EVERY);
  o.slab_bytes = option(o.slab_bytes, SLAB_BYTES);
  o.slab_spares = option(o.slab_spares, SLAB_SPARES);
  return o;
}

static bool init_input(t_gate *gate, int32_t k) {
  const t_gate_options *o = &gate->options;
  t_gate_input *in = &gate->input[k];
  if (!slab_init(&in->slabs, &gate->giver[k], o->slab_bytes, o->slab_spares, o->levels)) return false;
  in->tower = skip_tower_new(o->levels, o->full_every, (uint64_t)k);
  in->latest = -1;
  in->close = (void *)(gate->closes + (size_t)k * skip_node_bytes(1));
  *in->close = (skip_node){.key = {INT64_MAX, CLOSE_BIT | order_of(k, 0)}, .kind = CLOSE, .height = 1};
  skip_node *dummy = slab_take(&in->slabs, o->levels); /* a new slab has room for it */
  dummy->key = (skip_key){-1, order_of(k, 0)};
  dummy->kind = DUMMY;
  for (int l = 0; l < o->levels; l++) {
    in->hint[l] = skip_hint_at(dummy);
    link_init(&dummy->next[l], NULL);
    if (k > 0) link_init(&gate->input[k - 1].hint[l].node->next[l], dummy);
  }
  cell_init(&gate->written[k].word, (uintptr_t)dummy);
  return true;
}

static bool init_gate(t_gate *gate) {
  const t_gate_options *o = &gate->options;
  size_t inputs = (size_t)o->inputs, readers = (size_t)o->readers;
  gate->written = memory_new(inputs * sizeof *gate->written);
  gate->input = memory_new(inputs * sizeof *gate->input);
  gate->giver = memory_new(inputs * sizeof *gate->giver);
  gate->closes = memory_new(inputs * skip_node_bytes(1));
  gate->reader = memory_new(readers * sizeof *gate->reader);
  if (!gate->written || !gate->input || !gate->giver || !gate->closes || !gate->reader) return false;
  for (int32_t k = 0; k < o->inputs; k++) {
    if (!init_input(gate, k)) return false;
  }
  skip_node *first = gate->input[0].hint[0].node;
  for (int32_t r = 0; r < o->readers; r++) gate->reader[r].head = first;
  return reclaim_init(&gate->reclaim, o->inputs, o->readers, o->levels, first);
}

ps_code t_gate_new(const t_gate_options *options, t_gate **out) {
  t_gate *gate = memory_new(sizeof *gate);
  if (!gate) return PS_NO_MEMORY;
  gate->options = filled(*options);
  assert(gate->options.levels <= SKIP_LEVELS_MAX && gate->options.inputs <= T_GATE_INPUTS_MAX);
  if (!init_gate(gate)) {
    t_gate_free(gate);
    return PS_NO_MEMORY;
  }
  *out = gate;
  return PS_OK;
}

void t_gate_free(t_gate *gate) {
  if (!gate) return;
  for (int32_t k = 0; gate->input && gate->giver && k < gate->options.inputs; k++) {
    slab_free_all(&gate->input[k].slabs, &gate->giver[k]);
  }
  reclaim_end(&gate->reclaim);
  memory_free(gate->written);
  memory_free(gate->input);
  memory_free(gate->giver);
  memory_free(gate->closes);
  memory_free(gate->reader);
  memory_free(gate);
}

/* ---- inputs ---- */

static skip_node *new_node(t_gate_input *in, int32_t input, int kind, int64_t ts) {
  skip_node *node = slab_take(&in->slabs, skip_tower_draw(&in->tower));
  if (ts > in->latest) {
    in->position = 0;
  } else if (in->position < POSITION_MAX) {
    in->position++;
  }
  in->latest = ts;
  node->key = (skip_key){ts, order_of(input, in->position)};
  node->kind = (uint8_t)kind;
  return node;
}

/* Between reclaim_enter and reclaim_leave. */
static void t_gate_insert_node(t_gate *gate, int32_t input, skip_node *front, skip_node *node) {
  t_gate_input *in = &gate->input[input];
  skip_list_search(in->hint, gate->options.levels, front, node->key);
  skip_list_link(in->hint, node);
  AT(insert_publish); /* linearization point of insert, heartbeat and close */
  written_publish(&gate->written[input].word, node);
}

static void insert_marker(t_gate *gate, int32_t input, skip_node *node) {
  uint64_t entry;
  skip_node *front = reclaim_enter(&gate->reclaim, input, &entry);
  t_gate_insert_node(gate, input, front, node);
  reclaim_leave(&gate->reclaim, input, entry);
}

static void insert_run(t_gate *gate, int32_t input, int64_t n, const int64_t *ts, const uint64_t payload[2]) {
  t_gate_input *in = &gate->input[input];
  uint64_t entry;
  skip_node *front = reclaim_enter(&gate->reclaim, input, &entry);
  for (int64_t i = 0; i < n; i++) {
    skip_node *node = new_node(in, input, TUPLE, ts[i]);
    node->payload[0] = payload[0];
    node->payload[1] = payload[1] + (uint64_t)i;
    t_gate_insert_node(gate, input, front, node);
  }
  reclaim_leave(&gate->reclaim, input, entry);
}

static bool in_order(const t_gate_input *in, int64_t n, const int64_t *ts, ps_fault *fault) {
  int64_t latest = in->latest;
  for (int64_t i = 0; i < n; i++) {
    if (ts[i] < latest || ts[i] < 0) {
      *fault = (ps_fault){.row = i, .ts = ts[i], .latest = latest};
      return false;
    }
    latest = ts[i];
  }
  return true;
}

bool t_gate_reserve(t_gate *gate, int32_t input, int64_t n) {
  t_gate_input *in = &gate->input[input];
  return slab_reserve(&in->slabs, in->tower, n);
}

ps_code t_gate_insert_tuples(t_gate *gate, int32_t input, int64_t n, const int64_t *ts, const uint64_t payload[2],
                             ps_fault *fault) {
  t_gate_input *in = &gate->input[input];
  if (in->closed) return PS_CLOSED;
  if (!in_order(in, n, ts, fault)) return PS_DISORDER;
  if (!t_gate_reserve(gate, input, n)) return PS_NO_MEMORY;
  for (int64_t i = 0; i < n; i += RUN) {
    uint64_t from[2] = {payload[0], payload[1] + (uint64_t)i};
    insert_run(gate, input, n - i < RUN ? n - i : RUN, ts + i, from);
  }
  return PS_OK;
}

ps_code t_gate_insert_tuple(t_gate *gate, int32_t input, int64_t ts, const uint64_t payload[2], ps_fault *fault) {
  return t_gate_insert_tuples(gate, input, 1, &ts, payload, fault);
}

ps_code t_gate_heartbeat(t_gate *gate, int32_t input, int64_t ts, ps_fault *fault) {
  t_gate_input *in = &gate->input[input];
  if (in->closed) return PS_CLOSED;
  if (ts < 0) {
    *fault = (ps_fault){.ts = ts, .latest = in->latest};
    return PS_DISORDER;
  }
  if (ts <= in->latest) return PS_OK;
  if (!t_gate_reserve(gate, input, 1)) return PS_NO_MEMORY;
  insert_marker(gate, input, new_node(in, input, HEARTBEAT, ts));
  return PS_OK;
}

void t_gate_close(t_gate *gate, int32_t input) {
  t_gate_input *in = &gate->input[input];
  if (in->closed) return;
  in->closed = true;
  insert_marker(gate, input, in->close);
}

/* ---- readers ---- */

/* Advances to the next node if it is ready: PS_OK, PS_EMPTY or PS_END. */
static ps_code step(t_gate *gate, t_gate_reader *r) {
  skip_node *head = r->head;
  if (head->kind == CLOSE) return PS_END;
  AT(next_read_written); /* linearization point of a get with nothing */
  if (written_read(&gate->written[input_of(head)].word) == head) return PS_EMPTY;
  AT(next_read_next); /* linearization point of a get with a tuple */
  skip_node *next = link_read(&head->next[0]);
  assert(next); /* I5 */
  READS(*next);
  r->head = next;
  r->passed++;
  return PS_OK;
}

static void free_nodes(t_gate *gate, skip_node *first, const skip_node *end) {
  while (first != end) {
    READS(*first);
    skip_node *next = link_last(&first->next[0]);
    bool last = first->last;
    int32_t input = input_of(first);
    poison_freed(first, skip_node_bytes(first->height));
    if (last) slab_return(&gate->giver[input]);
    first = next;
  }
}

/* Reports the reader's progress to reclaim; reader 0 frees what all readers have passed. */
static void t_gate_reclaim(t_gate *gate, int32_t reader) {
  t_gate_reader *r = &gate->reader[reader];
  if (r->counted != r->passed) {
    r->counted = r->passed;
    reclaim_count(&gate->reclaim, reader, r->passed);
  }
  skip_node *first, *end;
  if (reader == 0 && reclaim_advance(&gate->reclaim, r->passed, &first, &end)) free_nodes(gate, first, end);
}

ps_code t_gate_get_ready_tuples(t_gate *gate, int32_t reader, int64_t n, t_gate_tuple *out, int64_t *got) {
  t_gate_reader *r = &gate->reader[reader];
  uint64_t count_every = (uint64_t)gate->options.count_every;
  ps_code code = PS_OK;
  int64_t i = 0;
  while (i < n && (code = step(gate, r)) == PS_OK) {
    const skip_node *head = r->head;
    if (head->kind == TUPLE) {
      out[i++] = (t_gate_tuple){head->key.ts, {head->payload[0], head->payload[1]}, input_of(head)};
    }
    if (r->passed - r->counted >= count_every) t_gate_reclaim(gate, reader);
  }
  if (code != PS_OK) t_gate_reclaim(gate, reader);
  *got = i;
  return i ? PS_OK : code;
}

ps_code t_gate_get_next_ready_tuple(t_gate *gate, int32_t reader, t_gate_tuple *out) {
  int64_t got;
  return t_gate_get_ready_tuples(gate, reader, 1, out, &got);
}

int64_t t_gate_position(const t_gate *gate, int32_t reader) {
  int64_t ts = gate->reader[reader].head->key.ts;
  return ts < 0 ? 0 : ts;
}

bool t_gate_ended(const t_gate *gate, int32_t reader) { return gate->reader[reader].head->kind == CLOSE; }

int32_t t_gate_waits_for(const t_gate *gate, int32_t reader) { return input_of(gate->reader[reader].head); }
