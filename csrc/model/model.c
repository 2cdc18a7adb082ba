/*
 * model.c - the model build: runs the lock-free code of csrc/ at every interleaving, one execution per call.
 *
 * The same sources are compiled with PYSTREAM_MODEL, so that every access to a `cell` (atomics.h) and every allocation
 * (blocks.c) calls the model. Threads are fibers; a switch is possible before every access and nowhere else. model_run
 * runs a program (calls of a subject's operations, by thread) with a list of decisions, and returns what every call
 * returned, when, and the trace; model_explore runs all executions within bounds. Nothing depends on time, addresses of
 * the process or other threads: the same program and decisions always give the same execution.
 *
 * Modelled
 *   M1  Sequentially consistent interleavings, or weak memory: C11's relaxed, acquire, release, acquire-release and
 *       sequentially consistent accesses with stale loads and late stores (cells.c). A failed swap is a load.
 *   M2  Data races between plain accesses that the code declares with READS and WRITES, and use of a cell or block by a
 *       thread that does not know of its initialization: found in every execution in which nothing orders the two.
 *   M3  Use after free, freeing what another thread may still use, double free, leaks. Freed memory is not reused.
 *   M4  Allocations that fail, threads that are stalled or stop for ever at any step.
 *   M5  Every access to a cell has a label of its own (AT), so that a trace can be read beside the spec.
 *   M6  A call begins with its first access and returns with its last one. Of all histories that differ only in what
 *       threads do between accesses, this one has the strictest order: if it is linearizable, all of them are.
 *   M7  Mutexes and condition variables (locks.c): a waiting thread takes no step, and waiting for ever is a verdict.
 * Not modelled
 *   N1  Loads that see a store that is later in the execution (load buffering): forbidden here, allowed by C11 for
 *       relaxed accesses only, shown by no compiler and machine for code whose stores depend on its loads.
 *   N2  Fences (there is no primitive for them), consume (treated as acquire).
 *   N3  Sequentially consistent accesses take effect in the order of the execution. C11 allows a little more where they
 *       are mixed with relaxed accesses to the same cell.
 *   N4  Plain accesses that are not declared. Freed memory is overwritten, so a pointer read from it is invalid.
 *   N5  The same stale value may be read again and again; the explorer bounds how often (model_bounds.stale).
 */
#include "model/engine.h"

#include "model/fiber.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALONE_MAX = 4 * MODEL_STEPS_MAX };

struct execution execution;
driver execution_driver;
void (*execution_on_return)(void);

static fiber fibers[THREADS];
static bool starting; /* the threads run up to their first access */
static const subject *tested;
static void *object;
static vector_clock outside;               /* what ended calls knew */
static uint32_t ended_at[MODEL_CALLS_MAX]; /* per call, in its thread's count */
static sigjmp_buf end_of_execution;
static model_event *events;
static int32_t events_room;
static model_answer *answers;
static int32_t answers_room;

/* ---- how executions end early ---- */

_Noreturn void execution_abort(void) {
  execution.aborted = true;
  siglongjmp(end_of_execution, 1);
}

_Noreturn void execution_fail(model_verdict verdict, const char *format, ...) {
  va_list values;
  va_start(values, format);
  (void)vsnprintf(execution.outcome->text, MODEL_TEXT_MAX, format, values);
  va_end(values);
  execution.outcome->verdict = (int32_t)verdict;
  execution.outcome->step = execution.parallel ? execution.steps - 1 : execution.steps;
  siglongjmp(end_of_execution, 1);
}

_Noreturn void model_assertion(const char *claim, const char *file, int line) {
  execution_fail(MODEL_ASSERTION, "%s:%d: thread %d: %s does not hold", file, line, execution.running, claim);
}

const char *here(void) {
  static char text[120];
  const thread *self = running_thread();
  (void)snprintf(text, sizeof text, "%s:%d (%s)", self->file ? self->file : "-", self->line,
                 self->label ? self->label : "-");
  return text;
}

_Noreturn static void on_signal(int number) {
  execution_fail(MODEL_CRASH, "thread %d crashed with signal %d after %s", execution.running, number, here());
}

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { CAUGHT = sizeof caught / sizeof caught[0] };
static struct sigaction before[CAUGHT];
static stack_t stack_before;

void signals_catch(void) {
  static uint8_t room[64 * 1024];
  stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&stack, &stack_before);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal; /* NOLINT(clang-diagnostic-disabled-macro-expansion): glibc's own macro */
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &action, &before[i]);
}

void signals_release(void) {
  for (int i = 0; i < CAUGHT; i++) sigaction(caught[i], &before[i], NULL);
  sigaltstack(&stack_before, NULL);
}

/* ---- the trace ---- */

void trace(const char *access, const char *accessor, int32_t order, int32_t back, uintptr_t address, uint64_t value) {
  if (!execution.tracing) return;
  if (execution.outcome->events == events_room) {
    events_room = events_room ? events_room * 2 : 1024;
    model_event *more = realloc(events, (size_t)events_room * sizeof *more);
    if (!more) execution_fail(MODEL_MISUSE, "no memory for the trace");
    events = more;
    execution.outcome->event = events;
  }
  const thread *self = running_thread();
  bool is_access = accessor != NULL;
  events[execution.outcome->events++] = (model_event){
      .step = execution.parallel ? execution.steps - 1 : -1,
      .thread = execution.running,
      .call = self->call,
      .line = is_access ? self->line : 0,
      .file = is_access ? self->file : NULL,
      .label = is_access ? self->label : NULL,
      .accessor = accessor,
      .access = access,
      .order = order,
      .back = back,
      .address = address,
      .value = value,
  };
}

/* ---- steps ---- */

static bool can_step(const thread *t) {
  return !t->over && !t->dead && !t->sleeps && (!t->wants || lock_is_free(t->wants));
}

/* No thread can take a step: ends all sleeps with a time limit. False: there are none. */
static bool time_passes(void) {
  bool any = false;
  for (int i = 1; i <= execution.program->threads; i++) {
    thread *t = &execution.threads[i];
    if (t->dead || !t->sleeps || !t->limited) continue;
    t->sleeps = 0;
    t->late = any = true;
  }
  return any;
}

static int candidates_now(int *candidates) {
  int count = 0, stalled = 0, waiting[THREADS], threads = execution.program->threads;
  for (int i = 0; i < threads; i++) {
    int t = (execution.running - 1 + i + threads) % threads + 1; /* the running one first; after thread 0, thread 1 */
    if (execution.running == 0) t = i + 1;
    const thread *other = &execution.threads[t];
    if (!can_step(other)) continue;
    if (other->stalled) {
      waiting[stalled++] = t;
    } else {
      candidates[count++] = t;
    }
  }
  if (count > 0) return count;
  memcpy(candidates, waiting, (size_t)stalled * sizeof *waiting);
  return stalled;
}

/* Continues the thread that the driver picks, or ends the parallel part if there is none. */
static void pass_on(fiber *from) {
  int candidates[THREADS], count = candidates_now(candidates);
  if (count == 0 && time_passes()) count = candidates_now(candidates);
  for (int t = 1; count == 0 && t <= execution.program->threads; t++) {
    const thread *other = &execution.threads[t];
    if (!other->over && !other->dead)
      execution_fail(MODEL_ENDLESS, "%s:%d: thread %d waits, and nobody will wake it", other->file, other->line, t);
  }
  if (count == 0) {
    if (from != &fibers[0]) fiber_switch(from, &fibers[0]);
    return;
  }
  int next = execution_driver.pick(candidates, count);
  if (next < 0) execution_abort();
  if (from == &fibers[next]) return;
  execution.running = next;
  fiber_switch(from, &fibers[next]);
}

static void post(int me) {
  thread *self = &execution.threads[me];
  if (starting) {
    fiber_switch(&fibers[me], &fibers[0]);
    return;
  }
  if (execution.kills_left > 0 && execution_driver.choose(MODEL_KILL, 2, execution.steps)) {
    execution.kills_left--;
    self->dead = true;
  }
  if (execution_driver.choose(MODEL_STALL, 1, execution.steps)) self->stalled = true;
  pass_on(&fibers[me]);
}

static bool happened_before(int32_t call) {
  int32_t by = execution.program->call[call].thread;
  return running_thread()->knows.at[by] >= ended_at[call];
}

static void call_begin(model_answer *answer) {
  const model_program *program = execution.program;
  bool all = !program->weak || program->talk;
  if (program->talk) vector_clock_join(&running_thread()->knows, &outside);
  answer->invoked = execution.time++;
  for (int32_t i = 0; i < program->calls; i++)
    if (execution.answer[i].returned >= 0 && (all || happened_before(i))) answer->after |= (uint64_t)1 << i;
  trace("call", NULL, 0, 0, 0, 0);
}

void execution_step(uintptr_t address) {
  int me = execution.running;
  thread *self = &execution.threads[me];
  if (address && !self->labelled) {
    execution_fail(MODEL_ASSERTION, "thread %d: an access without a label of its own, after %s", me, here());
  }
  self->labelled = false;
  if (execution.parallel) {
    post(me);
    if (execution.steps == MODEL_STEPS_MAX)
      execution_fail(MODEL_ENDLESS, "%s: no end after %d steps", here(), execution.steps);
    execution.step[execution.steps] = (step){.address = address, .thread = (uint8_t)me, .begins = self->fresh};
    self->last_step = execution.steps++;
    execution.since_return++;
    if (self->fresh) {
      call_begin(&execution.answer[self->call]);
      self->fresh = false;
    }
  } else if (++execution.alone == ALONE_MAX) {
    execution_fail(MODEL_ENDLESS, "%s: no end after %d steps with no other thread", here(), ALONE_MAX);
  }
  self->knows.at[me]++;
}

void execution_wrote(void) {
  if (execution.parallel) execution.step[execution.steps - 1].writes = true;
}

void execution_after(void) { running_thread()->knows.at[execution.running]++; }

/* ---- calls ---- */

static void call_end(int me, model_answer *answer) {
  thread *self = &execution.threads[me];
  if (execution.parallel) {
    execution.step[self->last_step].ends = true;
    if (execution.since_return > execution.outcome->gap) execution.outcome->gap = execution.since_return;
    execution.since_return = 0;
  }
  answer->returned = execution.time++;
  ended_at[self->call] = self->knows.at[me];
  self->knows.at[me]++;
  vector_clock_join(&outside, &self->knows);
  trace("return", NULL, 0, 0, 0, 0);
  self->call = -1;
  if (execution.parallel && execution_on_return) execution_on_return();
}

static void call_make(int me, int32_t index) {
  thread *self = &execution.threads[me];
  const model_call *call = &execution.program->call[index];
  model_answer *answer = &execution.answer[index];
  self->call = index;
  self->fresh = execution.parallel;
  self->late = false;
  if (!execution.parallel) call_begin(answer);
  tested->call(object, call->operation, call->argument, answer);
  if (self->fresh) { /* accessed nothing shared: takes a step anyway, for its place in the order */
    execution_step(0);
    trace("local", NULL, 0, 0, 0, 0);
  }
  call_end(me, answer);
}

static void thread_main(void) {
  int me = execution.running;
  for (int32_t i = 0; i < execution.program->calls; i++)
    if (execution.program->call[i].thread == me) call_make(me, i);
  execution.threads[me].over = true;
  if (starting) fiber_switch(&fibers[me], &fibers[0]);
  pass_on(&fibers[me]);
}

/* ---- one execution ---- */

static void run_threads(void) {
  execution.parallel = true;
  starting = true;
  for (int t = 1; t <= execution.program->threads; t++) {
    thread *each = &execution.threads[t];
    each->knows = execution.threads[0].knows;
    each->knows.at[t] = 1;
    fibers[t] = fiber_new(t, thread_main);
    execution.running = t;
    fiber_switch(&fibers[0], &fibers[t]);
  }
  starting = false;
  execution.running = 0;
  execution.threads[0].knows.at[0]++;
  pass_on(&fibers[0]);
  execution.parallel = false;
  execution.running = 0;
  for (int t = 1; t <= execution.program->threads; t++) {
    execution.threads[t].knows.at[t]++;
    vector_clock_join(&execution.threads[0].knows, &execution.threads[t].knows);
  }
}

/* Calls of thread 0: those before the first call of another thread, or the others. */
static void run_alone(bool early) {
  bool alone = true;
  for (int32_t i = 0; i < execution.program->calls; i++) {
    if (execution.program->call[i].thread != 0) {
      alone = false;
    } else if (alone == early) {
      call_make(0, i);
    }
  }
}

static void run_all(void) {
  object = tested->create(execution.program->parameter);
  if (!object) execution_fail(MODEL_MISUSE, "%s cannot be made with these parameters", tested->name);
  run_alone(true);
  run_threads();
  run_alone(false);
  tested->destroy(object);
  bool killed = false;
  for (int t = 1; t <= execution.program->threads; t++) killed = killed || execution.threads[t].dead;
  if (blocks_live() > 0 && !killed) execution_fail(MODEL_LEAK, "%d blocks are left", blocks_live());
}

static void prepare(const model_program *program, model_outcome *outcome) {
  execution.program = program;
  execution.outcome = outcome;
  execution.running = 0;
  execution.parallel = execution.aborted = false;
  execution.steps = execution.alone = execution.time = execution.since_return = execution.allocations = 0;
  memset(execution.threads, 0, sizeof execution.threads);
  outside = (vector_clock){{0}};
  for (int t = 0; t < THREADS; t++) execution.threads[t].call = -1;
  execution.threads[0].knows.at[0] = 1;
  if (answers_room < program->calls) {
    free(answers);
    answers_room = program->calls * 2;
    answers = malloc((size_t)answers_room * sizeof *answers);
  }
  for (int32_t i = 0; i < program->calls; i++) answers[i] = (model_answer){.invoked = -1, .returned = -1};
  execution.answer = answers;
  *outcome = (model_outcome){.step = -1, .event = events, .answer = answers};
}

bool execution_fits(const model_program *program) {
  tested = NULL;
  for (int i = 0; subjects[i]; i++)
    if (strcmp(subjects[i]->name, program->subject) == 0) tested = subjects[i];
  if (program->calls > MODEL_CALLS_MAX) return false;
  if (!tested || program->threads < 0 || program->threads >= THREADS || !fiber_stacks(THREADS)) return false;
  int32_t operations = 0;
  while (tested->operations[operations]) operations++;
  for (int32_t i = 0; i < program->calls; i++) {
    const model_call *c = &program->call[i];
    if (c->thread < 0 || c->thread > program->threads || c->operation < 0 || c->operation >= operations) return false;
  }
  return true;
}

void execution_run(const model_program *program, model_outcome *outcome) {
  prepare(program, outcome);
  if (sigsetjmp(end_of_execution, 0) == 0) {
    blocks_reset();
    places_reset();
    locks_reset();
    run_all();
  }
  execution.parallel = false;
  outcome->steps = execution.steps;
}

/* ---- decisions by list ---- */

static const model_decision *listed;
static int32_t listed_count;

/* The value that the list has for a step; 0: none. */
static int32_t decided(model_kind kind, int32_t at) {
  for (int32_t i = 0; i < listed_count; i++)
    if (listed[i].kind == (int32_t)kind && listed[i].step == at) return listed[i].value;
  return 0;
}

int next_in_turn(unsigned set, int last, const int *candidates, int count) {
  for (int i = 1; i <= THREADS; i++) {
    int t = (last + i) % THREADS;
    for (int k = 0; k < count; k++) {
      if (candidates[k] == t && (set >> t & 1)) return t;
    }
  }
  return -1;
}

static int list_pick(const int *candidates, int count) {
  for (int32_t i = 0; i < listed_count; i++) {
    if (listed[i].kind == MODEL_ONLY && listed[i].step <= execution.steps) {
      return next_in_turn((unsigned)listed[i].value, listed[i].step < execution.steps ? execution.running : 0,
                          candidates, count);
    }
  }
  int32_t other = decided(MODEL_SWITCH, execution.steps);
  return candidates[other > 0 ? other % count : 0];
}

static int list_choose(model_kind kind, int options, int32_t at) {
  int32_t value = decided(kind, at);
  if (kind != MODEL_STALE) return value != 0;
  return value < 0 ? 0 : value < options ? value : options - 1;
}

static const driver list_driver = {list_pick, list_choose};

void model_run(const model_program *program, const model_decision *decision, int32_t decisions,
               model_outcome *outcome) {
  *outcome = (model_outcome){.verdict = MODEL_MISUSE, .step = -1};
  if (!execution_fits(program)) return;
  listed = decision;
  listed_count = decisions;
  execution_driver = list_driver;
  execution_on_return = NULL;
  execution.tracing = true;
  execution.stale_left = execution.failures_left = execution.kills_left = INT32_MAX;
  signals_catch();
  execution_run(program, outcome);
  signals_release();
}

/* ---- subjects ---- */

const char *model_subject_name(int32_t number) {
  for (int32_t i = 0; i <= number; i++)
    if (!subjects[i]) return NULL;
  return number < 0 ? NULL : subjects[number]->name;
}

const char *model_operation_name(int32_t number, int32_t operation) {
  if (!model_subject_name(number) || operation < 0) return NULL;
  for (int32_t i = 0; i <= operation; i++)
    if (!subjects[number]->operations[i]) return NULL;
  return subjects[number]->operations[operation];
}
