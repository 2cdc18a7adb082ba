/*
 * explore.c - runs every execution within bounds, depth first, each from its beginning.
 *
 * The stack has a node per decision of the execution: which thread takes a step, or one of several outcomes of a step
 * (the message that a load sees, an allocation that fails, a thread that stops). After an execution the deepest node
 * with something left to try advances, and the nodes below it are made anew.
 *
 * Reduction. Two steps of different threads are dependent if they access the same cell and one changes it, or if one
 * ends a call and the other begins one (their order is part of the history, unless the history has only what happened
 * before). Executions that differ only in the order of independent steps are equivalent; one per class is enough. This
 * is dynamic partial-order reduction with source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas 2014): a step
 * that races with an earlier one adds a thread that can go first to `todo` of the node before the earlier step; a
 * thread explored at a node sleeps in what follows until a step that depends on its own wakes it. Addresses do not
 * depend on the schedule (blocks.c), so they identify cells across executions.
 *
 * Stale loads and the like are tried at their step independently of the reduction; a load is dependent on the stores to
 * its cell even if it sees an older message. So the number of stale loads is constant within a class, and bounding it
 * is exact. A bound on preemptions would not be: with one there is no reduction. Nor is there any once two running
 * threads use locks: then which steps are possible, not only their results, depends on what others have done.
 */
#include "model/engine.h"

#include <stdlib.h>

enum { NODES_MAX = MODEL_STEPS_MAX * 3, PROBE_STEPS_MAX = 2000 };

typedef struct {
  bool picks;   /* a thread; otherwise one of `options` */
  uint8_t kind; /* of the options: model_kind */
  uint8_t options, chosen;
  uint8_t thread;                /* that takes the step now */
  uint8_t order[THREADS], count; /* threads that can take it, in default order */
  uint8_t todo, asleep;          /* sets of threads */
  bool running;                  /* the first of them took the step before */
  int16_t preemptions;           /* before this step */
  int32_t at;                    /* the decision's step */
  int32_t step;                  /* first step that changes with the decision */
  step known[THREADS];           /* the steps of sleeping threads */
} node;

static node nodes[NODES_MAX];
static int32_t depth;    /* of the stack */
static int32_t position; /* in the current execution */
static int32_t node_of_step[MODEL_STEPS_MAX];
static int32_t picked; /* last node that picked a thread; -1: none */
static int32_t fresh;  /* first step that differs from the previous execution */
static model_bounds bounds;
static bool calls_ordered; /* whether the order in which calls end and begin is observable */

static bool dependent(const step *a, const step *b) {
  if (a->thread == b->thread) return true;
  if (a->address && a->address == b->address && (a->writes || b->writes)) return true;
  return calls_ordered && ((a->ends && b->begins) || (a->begins && b->ends));
}

/* ---- decisions ---- */

static node *push(void) {
  if (depth == NODES_MAX) execution_fail(MODEL_ENDLESS, "more decisions than the explorer has room for");
  node *n = &nodes[depth++];
  position = depth;
  return n;
}

/* The step of the last pick is over: records what it accessed. */
static void settle(void) {
  if (picked < 0) return;
  node *n = &nodes[picked];
  const step *s = &execution.step[n->at];
  step *known = &n->known[n->thread];
  bool first = known->address != s->address || known->thread != s->thread;
  *known = (step){s->address, s->thread, s->writes || (!first && known->writes), s->begins,
                  s->ends || (!first && known->ends)};
}

static void inherit_sleep(node *child) {
  child->asleep = 0;
  if (picked < 0) return;
  const node *parent = &nodes[picked];
  const step *s = &execution.step[parent->at];
  for (unsigned t = 1; t < THREADS; t++) {
    if (!(parent->asleep >> t & 1) || dependent(&parent->known[t], s)) continue;
    child->asleep = (uint8_t)(child->asleep | 1u << t);
    child->known[t] = parent->known[t];
  }
}

static uint8_t set_of(const int *threads, int count) {
  unsigned set = 0;
  for (int i = 0; i < count; i++) set |= 1u << threads[i];
  return (uint8_t)set;
}

static void remember_order(node *n, const int *candidates, int count) {
  n->count = (uint8_t)count;
  for (int i = 0; i < count && i < THREADS; i++) n->order[i] = (uint8_t)candidates[i];
}

/* Preemptions including the step of the node. */
static int16_t preemptions_with(const node *n, int thread_number) {
  return (int16_t)(n->preemptions + (n->running && thread_number != n->order[0]));
}

static int pick_new(const int *candidates, int count) {
  int32_t parent = picked;
  node *n = push();
  n->picks = true;
  n->at = n->step = execution.steps;
  remember_order(n, candidates, count);
  n->running = parent >= 0 && nodes[parent].thread == candidates[0];
  n->preemptions = parent < 0 ? (int16_t)0 : preemptions_with(&nodes[parent], nodes[parent].thread);
  memset(n->known, 0, sizeof n->known);
  inherit_sleep(n);
  if (bounds.reduce) {
    int first = -1;
    for (int i = count - 1; i >= 0; i--)
      if (!(n->asleep >> candidates[i] & 1)) first = candidates[i];
    if (first < 0) {
      depth--;
      return -1;
    }
    n->todo = (uint8_t)(1u << first);
    n->thread = (uint8_t)first;
  } else {
    n->asleep = 0;
    n->thread = (uint8_t)candidates[0];
    bool may_leave = bounds.preemptions < 0 || n->preemptions < bounds.preemptions ||
                     preemptions_with(n, candidates[count - 1]) == n->preemptions;
    n->todo = may_leave ? set_of(candidates, count) : (uint8_t)(1u << candidates[0]);
  }
  return n->thread;
}

static int explorer_pick(const int *candidates, int count) {
  settle();
  int next = position < depth ? nodes[position++].thread : pick_new(candidates, count);
  if (next >= 0) {
    picked = position - 1;
    node_of_step[execution.steps] = picked;
  }
  return next;
}

static int explorer_choose(model_kind kind, int options, int32_t at) {
  if (options < 2) return 0;
  if (position < depth) return nodes[position++].chosen;
  node *n = push();
  n->picks = false;
  n->kind = (uint8_t)kind;
  n->options = (uint8_t)options;
  n->chosen = 0;
  n->at = at;
  n->step = execution.steps > 0 ? execution.steps - 1 : 0;
  return 0;
}

static const driver explorer = {explorer_pick, explorer_choose};

/* Advances the deepest node that has something left. False: none has. */
static bool advance(void) {
  for (; depth > 0; depth--) {
    node *n = &nodes[depth - 1];
    fresh = n->step;
    if (!n->picks) {
      if (++n->chosen < n->options) return true;
      continue;
    }
    n->asleep = (uint8_t)(n->asleep | 1u << n->thread);
    unsigned left = n->todo & ~(unsigned)n->asleep;
    if (!left) continue;
    n->thread = (uint8_t)__builtin_ctz(left);
    return true;
  }
  return false;
}

/* ---- races ---- */

static vector_clock order_known[MODEL_STEPS_MAX]; /* per step: the steps it depends on, directly or not */
static uint32_t number_of[MODEL_STEPS_MAX];       /* of the step within its thread, from 1 */

/* Schedules the reverse order of the race between steps `early` and `late`. */
static void reverse(int32_t early, int32_t late) {
  uint32_t first[THREADS] = {0};
  unsigned initials = 0, seen = 0;
  const step *steps = execution.step;
  for (int32_t k = early + 1; k <= late; k++) {
    if (k != late && order_known[k].at[steps[early].thread] >= number_of[early]) continue;
    unsigned t = steps[k].thread;
    bool after = false;
    for (unsigned q = 1; q < THREADS; q++) after = after || ((seen >> q & 1) && order_known[k].at[q] >= first[q]);
    if (!(seen >> t & 1)) {
      first[t] = number_of[k];
      seen |= 1u << t;
      if (!after) initials |= 1u << t;
    }
  }
  node *n = &nodes[node_of_step[early]];
  if (initials & n->todo) return;
  unsigned last = steps[late].thread;
  unsigned chosen = initials >> last & 1 ? last : (unsigned)__builtin_ctz(initials);
  n->todo = (uint8_t)(n->todo | 1u << chosen);
}

static void find_races(void) {
  for (int32_t i = fresh; i < execution.steps; i++) {
    const step *s = &execution.step[i];
    vector_clock m = {{0}};
    int32_t j = i - 1;
    while (j >= 0 && execution.step[j].thread != s->thread) j--;
    if (j >= 0) m = order_known[j];
    number_of[i] = j >= 0 ? number_of[j] + 1 : 1;
    int32_t raced[THREADS], races = 0;
    for (j = i - 1; j >= 0; j--) {
      const step *other = &execution.step[j];
      if (m.at[other->thread] >= number_of[j] || !dependent(other, s)) continue;
      if (other->thread != s->thread) raced[races++] = j;
      vector_clock_join(&m, &order_known[j]);
    }
    m.at[s->thread] = number_of[i];
    order_known[i] = m;
    while (races > 0) reverse(raced[--races], i);
  }
}

/* ---- probes of progress ---- */

static struct {
  unsigned running; /* set of threads */
  int32_t from;     /* step */
  int32_t longest;
  int64_t count;
  int turn;
} probe;

static int probe_pick(const int *candidates, int count) {
  if (execution.steps < probe.from) return nodes[node_of_step[execution.steps]].thread;
  if (execution.steps - probe.from > PROBE_STEPS_MAX) {
    execution_fail(MODEL_ENDLESS, "%s: no call ends within %d steps while only threads %#x (a set) run", here(),
                   PROBE_STEPS_MAX, probe.running);
  }
  return probe.turn = next_in_turn(probe.running, probe.turn, candidates, count);
}

static int probe_choose(model_kind kind, int options, int32_t at) {
  (void)kind;
  if (options < 2 || execution.steps > probe.from) return 0;
  for (int32_t i = 0; i < depth; i++)
    if (!nodes[i].picks && nodes[i].kind == (uint8_t)kind && nodes[i].at == at) return nodes[i].chosen;
  return 0;
}

static void probe_returned(void) {
  if (execution.steps <= probe.from) return;
  int32_t taken = execution.steps - probe.from;
  if (taken > probe.longest) probe.longest = taken;
  execution_abort();
}

static const driver prober = {probe_pick, probe_choose};

static void budgets(void) {
  execution.stale_left = bounds.stale;
  execution.failures_left = bounds.failures;
  execution.kills_left = bounds.kills;
}

/* ---- the search ---- */

/* The decisions of the last execution, as a list: those before step `end`. */
static int32_t decisions_made(model_decision *list, int32_t end) {
  int32_t count = 0;
  for (int32_t i = 0; i < depth; i++) {
    const node *n = &nodes[i];
    int32_t value = n->chosen, kind = n->kind;
    if (n->picks) {
      kind = MODEL_SWITCH;
      for (value = 0; n->order[value] != n->thread;) value++;
    }
    if (value && (n->at < end || !n->picks)) list[count++] = (model_decision){n->at, kind, value};
  }
  return count;
}

/* `probed`: the step from which a probe ran, or -1. */
static void record(const model_program *program, const model_outcome *outcome, int32_t probed) {
  static model_decision list[NODES_MAX + 1];
  if (!histories_add(execution.answer, program, outcome->verdict)) return;
  int32_t count = decisions_made(list, probed < 0 ? MODEL_STEPS_MAX : probed);
  if (probed >= 0) list[count++] = (model_decision){probed, MODEL_ONLY, (int32_t)probe.running};
  histories_explain(list, count);
}

/* From the state before each fresh step: every set of threads runs while the others are stalled. */
static bool probe_states(const model_program *program, int32_t steps, model_outcome *outcome) {
  execution_driver = prober;
  execution_on_return = probe_returned;
  bool fine = true;
  for (int32_t s = fresh; s < steps && fine; s++) {
    const node *n = &nodes[node_of_step[s]];
    unsigned able = 0;
    for (int i = 0; i < n->count; i++) able |= 1u << n->order[i];
    for (unsigned set = able; set && fine; set = (set - 1) & able) {
      probe.running = set;
      probe.from = s;
      probe.turn = 0;
      probe.count++;
      budgets();
      execution_run(program, outcome);
      fine = outcome->verdict == MODEL_FINE;
      if (!fine) record(program, outcome, s);
    }
  }
  execution_driver = explorer;
  execution_on_return = NULL;
  return fine;
}

static void run_next(const model_program *program, model_found *found, model_outcome *outcome) {
  position = 0;
  picked = -1;
  budgets();
  execution_run(program, outcome);
  settle();
  position = depth;
  found->steps += execution.steps;
  if (execution.aborted) {
    found->blocked++;
  } else {
    found->executions++;
    record(program, outcome, -1);
  }
  if (outcome->steps > found->longest) found->longest = outcome->steps;
  if (outcome->gap > found->gap) found->gap = outcome->gap;
  if (bounds.reduce) find_races();
}

/* Starts over: nothing explored yet. */
static void forget(const model_program *program, model_found *found) {
  *found = (model_found){0};
  depth = fresh = 0;
  probe.longest = 0;
  probe.count = 0;
  histories_reset(program->calls);
}

void model_explore(const model_program *program, const model_bounds *within, model_found *found,
                   model_outcome *outcome) {
  *found = (model_found){0};
  *outcome = (model_outcome){.verdict = MODEL_MISUSE, .step = -1};
  if (!execution_fits(program)) return;
  *outcome = (model_outcome){.step = -1};
  bounds = *within;
  bounds.reduce = bounds.reduce && bounds.preemptions < 0;
  calls_ordered = !program->weak || program->talk;
  forget(program, found);
  locks_forget();
  execution_driver = explorer;
  execution_on_return = NULL;
  execution.tracing = false;
  signals_catch();
  do {
    model_outcome last;
    run_next(program, found, &last);
    if (bounds.reduce && locks_used()) {
      bounds.reduce = false;
      forget(program, found);
      continue;
    }
    if (last.verdict == MODEL_FINE && bounds.probe) probe_states(program, execution.steps, &last);
    if (last.verdict != MODEL_FINE && found->bad++ == 0) *outcome = last;
    if (last.verdict != MODEL_FINE && !bounds.keep_going) break;
    found->whole = !advance();
  } while (!found->whole && found->executions + found->blocked < bounds.executions);
  signals_release();
  found->bound = probe.longest;
  found->probes = probe.count;
  found->history = histories_all(&found->histories);
  outcome->event = NULL;
  outcome->answer = NULL;
}
