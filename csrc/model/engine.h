/* engine.h - what the parts of the model build share; callers see model.h only. */
#pragma once

#include "model/subject.h"

enum { THREADS = MODEL_THREADS_MAX };

/* ---- one execution (model.c) ---- */

/* A moment in every thread: what happens before is at or below it. */
typedef struct {
  uint32_t at[THREADS];
} moment;

static inline void moment_join(moment *m, const moment *other) {
  for (int t = 0; t < THREADS; t++)
    if (m->at[t] < other->at[t]) m->at[t] = other->at[t];
}

/* What one step touched, for the question which steps can change places. */
typedef struct {
  uintptr_t address; /* 0: nothing shared */
  uint8_t thread;
  bool writes;
  bool begins; /* the first step of a call */
  bool ends;   /* the last one */
} step;

/* Which thread runs, where it is, what it knows. */
typedef struct {
  moment knows;
  const char *label, *file;
  int32_t line;
  bool labelled;    /* since its last access */
  int32_t call;     /* index of the program's call under way, or -1 */
  bool fresh;       /* the call under way has not taken a step yet */
  bool over, dead;  /* has no more calls; has been killed */
  bool stalled;     /* runs only if nobody else can */
  uintptr_t wants;  /* the mutex that it is about to take; 0: none */
  uintptr_t sleeps; /* the condition variable that it sleeps on; 0: none */
  bool limited;     /* only for so long */
  bool late;        /* that was over before anybody woke it */
  int32_t last_step;
} thread;

extern struct execution {
  const model_program *program;
  thread threads[THREADS];
  int32_t running; /* thread */
  bool parallel;   /* the threads have started and not all ended */
  bool aborted;
  int32_t steps;
  int32_t time;         /* of invocations and returns */
  int32_t since_return; /* steps */
  int32_t stale_left, failures_left, kills_left;
  int32_t allocations; /* since the threads started */
  step step[MODEL_STEPS_MAX];
  model_answer *answer; /* one per call */
  model_outcome *outcome;
  bool tracing;
} execution;

static inline thread *running_thread(void) { return &execution.threads[execution.running]; }

/* Runs the program once; the driver below makes the decisions. */
void execution_run(const model_program *program, model_outcome *outcome);

/* The execution goes no further; control does not come back to the thread. Without a verdict it is given up only. */
_Noreturn void execution_fail(model_verdict verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void execution_abort(void);

/* Before an access of the running thread: who takes the next step? Comes back when it is this thread. */
void execution_step(uintptr_t address);
/* The step just taken changed what others can see there. */
void execution_wrote(void);
/* The access is over: what the thread does from here on comes after it. */
void execution_after(void);

/* Adds to the trace. */
void trace(const char *access, const char *accessor, int32_t order, int32_t back, uintptr_t address, uint64_t value);

/* "t_gate.c:12" of the running thread */
const char *here(void);

/* ---- decisions: by list (model.c) or by the explorer (explore.c) ---- */

typedef struct {
  /* The thread that takes the next step out of `candidates` (the first goes on by default), or -1 to give up. */
  int (*pick)(const int *candidates, int count);
  /* One of `options`, 0 by default, at this step (as model_decision.step). */
  int (*choose)(model_kind kind, int options, int32_t at);
} driver;

extern driver execution_driver;

/* The candidate of the set whose turn it is after thread `last`; -1 if there is none. */
int next_in_turn(unsigned set, int last, const int *candidates, int count);

/* Called at the end of every call while the threads run. */
extern void (*execution_on_return)(void);

/* Finds the program's subject; false if the program asks for what there is not. */
bool execution_fits(const model_program *program);

/* While executions run, signals such as a segmentation fault are verdicts. */
void signals_catch(void);
void signals_release(void);

/* ---- memory (cells.c, places.c, blocks.c) ---- */

typedef struct message {
  struct message *older;
  uint64_t value;
  moment released; /* what an acquiring reader learns */
  int32_t position;
  bool glued; /* comes of a read-modify-write: nothing may come between it and the older one */
} message;

typedef struct visit { /* of a cell by a thread */
  struct visit *next;
  const message *seen;
  uint32_t at;
  uint8_t thread;
} visit;

typedef struct {
  message *newest;
  visit *visits;
  const message *sc_newest; /* of the sequentially consistent stores; NULL if there is none */
} location;

typedef struct use { /* of plain bytes by a thread */
  struct use *next;
  const char *file;
  int32_t line;
  uint32_t at;
  uint8_t thread;
  uint8_t bytes; /* mask */
  bool writes;
} use;

/* What is known about eight bytes. */
typedef struct {
  location cell;
  bool is_cell;
  use *uses;
} place;

enum { REGION_BYTES = 1 << 20, ARENA_BYTES = THREADS * REGION_BYTES };
uintptr_t arena_start(void);

/* The place of an address in the arena (block_check). */
place *place_at(uintptr_t address);
/* Only if there is one. */
place *place_known(uintptr_t address);
void places_reset(void);
/* Memory for the bookkeeping of one execution. */
void *pool_new(size_t bytes);

/* An access to plain bytes: fails the execution if it races. */
void place_use(uintptr_t address, size_t bytes, bool writes, const char *file, int32_t line);
/* Before a block goes: everything that was done to the eight bytes must have happened before. */
void place_leave(const place *p, uintptr_t address);

void blocks_reset(void);
/* Fails the execution unless [address, address + bytes) is in a block that the running thread may use. */
void block_check(uintptr_t address, size_t bytes);
int32_t blocks_live(void);
/* "n2.3": the third block of thread 2; 0 when the address is in no block */
int block_describe(uintptr_t address, char *text, size_t room);

/* ---- locks (locks.c) ---- */

void locks_reset(void);
bool lock_is_free(uintptr_t address);
/* Whether threads have taken one since locks_forget. */
bool locks_used(void);
void locks_forget(void);

/* ---- histories (histories.c) ---- */

void histories_reset(int32_t calls);
/* Counts the history; true if it is new. */
bool histories_add(const model_answer *answer, const model_program *program, int32_t verdict);
/* The decisions that led to the history just added. */
void histories_explain(const model_decision *decision, int32_t decisions);
const model_history *histories_all(int64_t *count);
