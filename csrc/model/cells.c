/*
 * cells.c - which values loads may return: C11's release and acquire, with a modification order per cell.
 *
 * A cell has messages, one per store, from oldest to newest in its modification order. A thread may read any message
 * that is not older than one it already knows: from its own accesses to the cell, and from those that happened before
 * (by its vector clock). A releasing store puts the thread's clock into the message; an acquiring load joins it to the
 * reader's. The message of a read-modify-write also carries what the message it read would have (release sequences, as
 * in C++20). Stores may be inserted before newer messages that the thread does not know, but never between a
 * read-modify-write and what it read. Sequentially consistent accesses take effect in the order of the execution: a
 * load sees nothing older than the newest such store to the cell. A failed swap is a load.
 */
#include "model/engine.h"

enum { ACCESSORS_MAX = 256, OPTIONS_MAX = 64 };
enum { RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST };

/* ---- accessors and their orders ---- */

static struct accessor {
  const char *name;
  const char *key; /* the same name may be at several addresses */
  int32_t strongest;
  int32_t at_most; /* weakened to this order */
} accessors[ACCESSORS_MAX];
static int32_t accessors_met;
static struct {
  const char *name;
  int32_t order;
} weakened[ACCESSORS_MAX];
static int32_t weakened_met;

static int32_t order_number(memory_order order) {
  switch (order) {
    case memory_order_relaxed: return RELAXED;
    case memory_order_consume:
    case memory_order_acquire: return ACQUIRE;
    case memory_order_release: return RELEASE;
    case memory_order_acq_rel: return ACQ_REL;
    case memory_order_seq_cst: return SEQ_CST;
  }
  return SEQ_CST;
}

static bool acquires(int32_t order) { return order == ACQUIRE || order >= ACQ_REL; }
static bool releases(int32_t order) { return order >= RELEASE; }

/* The weaker of two orders: the acquiring and releasing parts that both have. */
static int32_t order_meet(int32_t a, int32_t b) {
  if (a == SEQ_CST || b == SEQ_CST) return a == SEQ_CST ? b : a;
  bool acquire = acquires(a) && acquires(b), release = releases(a) && releases(b);
  return acquire && release ? ACQ_REL : acquire ? ACQUIRE : release ? RELEASE : RELAXED;
}

static int32_t order_limit(const char *name) {
  for (int32_t i = 0; i < weakened_met; i++)
    if (strcmp(weakened[i].name, name) == 0) return weakened[i].order;
  return SEQ_CST;
}

static struct accessor *accessor_of(const char *key) {
  for (int32_t i = 0; i < accessors_met; i++)
    if (accessors[i].key == key) return &accessors[i];
  if (accessors_met == ACCESSORS_MAX) execution_fail(MODEL_MISUSE, "more accessors than the model has room for");
  struct accessor *a = &accessors[accessors_met++];
  *a = (struct accessor){key, key, RELAXED, order_limit(key)};
  return a;
}

static int32_t order_of(const char *key, memory_order order) {
  struct accessor *a = accessor_of(key);
  int32_t asked = order_number(order);
  if (asked > a->strongest) a->strongest = asked;
  return order_meet(asked, a->at_most);
}

const char *model_accessor(int32_t index, int32_t *order) {
  if (index < 0 || index >= accessors_met) return NULL;
  *order = accessors[index].strongest;
  return accessors[index].name;
}

void model_weaken(const char *name, int32_t order) {
  static char names[ACCESSORS_MAX][64];
  if (!name) {
    weakened_met = 0;
  } else if (weakened_met < ACCESSORS_MAX) {
    strncpy(names[weakened_met], name, sizeof names[0] - 1);
    weakened[weakened_met].name = names[weakened_met];
    weakened[weakened_met++].order = order;
  }
  for (int32_t i = 0; i < accessors_met; i++) accessors[i].at_most = order_limit(accessors[i].name);
}

/* ---- messages ---- */

static void note_visit(location *l, const message *seen) {
  uint32_t now = running_thread()->knows.at[execution.running];
  for (visit *v = execution.program->weak ? NULL : l->visits; v; v = v->next) {
    if (v->thread == execution.running) {
      v->seen = seen;
      v->at = now;
      return;
    }
  }
  visit *v = pool_new(sizeof *v);
  *v = (visit){l->visits, seen, now, (uint8_t)execution.running};
  l->visits = v;
}

static message *message_behind(location *l, message *older, uint64_t value, bool glued) {
  message *m = pool_new(sizeof *m);
  *m = (message){.older = older, .value = value, .position = older ? older->position + 1 : 0, .glued = glued};
  message *newer = NULL;
  for (message *n = l->newest; n != older; n = n->older) {
    n->position++;
    newer = n;
  }
  if (newer) {
    newer->older = m;
  } else {
    l->newest = m;
  }
  return m;
}

/* The cell's messages. A cell not set by cell_init has the value in its memory, which must be initialized. */
static location *location_of(const cell *c) {
  block_check((uintptr_t)c, sizeof *c);
  place *p = place_at((uintptr_t)c);
  if (!p->is_cell) {
    p->is_cell = true;
    message_behind(&p->cell, NULL, atomic_load_explicit(&c->bits, memory_order_relaxed), false);
  }
  return &p->cell;
}

void model_init(cell *c, uint64_t value) {
  atomic_init(&c->bits, value);
  block_check((uintptr_t)c, sizeof *c);
  place *p = place_at((uintptr_t)c);
  const thread *self = running_thread();
  place_use((uintptr_t)c, sizeof *c, true, self->file, self->line);
  for (const visit *v = p->cell.visits; v; v = v->next) {
    if (v->at > self->knows.at[v->thread]) {
      execution_fail(MODEL_RACE, "%s: thread %d sets a cell up anew, and nothing orders this after thread %d's access",
                     here(), execution.running, v->thread);
    }
  }
  p->cell = (location){0};
  p->is_cell = true;
  note_visit(&p->cell, message_behind(&p->cell, NULL, value, false));
}

/* The oldest position that the running thread may still see. */
static int32_t floor_of(const location *l, int32_t order) {
  const vector_clock *knows = &running_thread()->knows;
  int32_t floor = order == SEQ_CST && l->sc_newest ? l->sc_newest->position : -1;
  for (const visit *v = l->visits; v; v = v->next)
    if (v->seen->position > floor && v->at <= knows->at[v->thread]) floor = v->seen->position;
  return floor;
}

/* How the access uses a message. */
typedef enum { READ, WRITE, SWAP } access;

static bool usable(const message *m, const message *newer, access a, uint64_t expected) {
  bool free = !newer || !newer->glued;
  return a == READ || (a == WRITE ? free : m->value != expected || free);
}

/* The message that the access reads or is inserted after; one decision if there are several. */
static message *choose_message(location *l, access a, uint64_t expected, int32_t order, int32_t *back) {
  *back = 0;
  if (!execution.program->weak || execution.stale_left <= 0 || !execution.parallel) return l->newest;
  message *option[OPTIONS_MAX];
  int options = 0;
  int32_t floor = floor_of(l, order);
  message *newer = NULL;
  for (message *m = l->newest; m && m->position >= floor && options < OPTIONS_MAX; newer = m, m = m->older)
    if (usable(m, newer, a, expected)) option[options++] = m;
  if (options < 2) return l->newest;
  *back = execution_driver.choose(MODEL_STALE, options, execution.steps - 1);
  if (*back) execution.stale_left--;
  return option[*back];
}

static void publish(location *l, message *m, int32_t order) {
  thread *self = running_thread();
  if (releases(order)) vector_clock_join(&m->released, &self->knows);
  if (m->glued) vector_clock_join(&m->released, &m->older->released);
  if (order == SEQ_CST) l->sc_newest = m; /* its floor put it after the one before */
  note_visit(l, m);
  execution_wrote();
}

/* A thread that reads a cell must know that it was initialized. */
static void check_set_up(const cell *c) {
  const thread *self = running_thread();
  place_use((uintptr_t)c, sizeof *c, false, self->file, self->line);
}

/* ---- the four primitives ---- */

uint64_t model_load(const cell *c, memory_order order, const char *accessor) {
  execution_step((uintptr_t)c);
  int32_t o = order_of(accessor, order), back;
  location *l = location_of(c);
  check_set_up(c);
  const message *m = choose_message(l, READ, 0, o, &back);
  if (acquires(o)) vector_clock_join(&running_thread()->knows, &m->released);
  note_visit(l, m);
  trace("load", accessor, o, back, (uintptr_t)c, m->value);
  execution_after();
  return m->value;
}

void model_store(cell *c, uint64_t value, memory_order order, const char *accessor) {
  execution_step((uintptr_t)c);
  int32_t o = order_of(accessor, order), back;
  location *l = location_of(c);
  check_set_up(c);
  message *older = choose_message(l, WRITE, 0, o, &back);
  publish(l, message_behind(l, older, value, false), o);
  atomic_init(&c->bits, l->newest->value);
  trace("store", accessor, o, back, (uintptr_t)c, value);
  execution_after();
}

bool model_swap(cell *c, uint64_t *expected, uint64_t value, memory_order order, memory_order failed,
                const char *accessor) {
  execution_step((uintptr_t)c);
  int32_t o = order_of(accessor, order), f = order_of(accessor, failed), back;
  location *l = location_of(c);
  check_set_up(c);
  message *m = choose_message(l, SWAP, *expected, o, &back);
  bool swaps = m->value == *expected;
  if (acquires(swaps ? o : f)) vector_clock_join(&running_thread()->knows, &m->released);
  if (swaps) {
    publish(l, message_behind(l, m, value, true), o);
    atomic_init(&c->bits, l->newest->value);
  } else {
    note_visit(l, m);
    *expected = m->value;
  }
  trace(swaps ? "swap" : "failed swap", accessor, swaps ? o : f, back, (uintptr_t)c, swaps ? value : m->value);
  execution_after();
  return swaps;
}

uint64_t model_add(cell *c, uint64_t n, memory_order order, const char *accessor) {
  execution_step((uintptr_t)c);
  int32_t o = order_of(accessor, order), back;
  location *l = location_of(c);
  check_set_up(c);
  message *m = choose_message(l, WRITE, 0, o, &back);
  if (acquires(o)) vector_clock_join(&running_thread()->knows, &m->released);
  uint64_t before = m->value;
  publish(l, message_behind(l, m, before + n, true), o);
  atomic_init(&c->bits, l->newest->value);
  trace("add", accessor, o, back, (uintptr_t)c, before + n);
  execution_after();
  return before;
}

void model_at(const char *label, const char *file, int line) {
  thread *self = running_thread();
  self->label = label;
  self->file = file;
  self->line = line;
  self->labelled = true;
}
