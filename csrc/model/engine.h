/* engine.h - what the parts of the model build share; callers include only model.h. */
#pragma once

#include "model/subject.h"

enum { THREADS = MODEL_THREADS_MAX };

/* ---- one execution (model.c) ---- */

/* A vector clock: events at or below it happened before. */
typedef struct {
  uint32_t at[THREADS];
} vector_clock;

static inline void vector_clock_join(vector_clock *m, const vector_clock *other) {
  for (int t = 0; t < THREADS; t++)
    if (m->at[t] < other->at[t]) m->at[t] = other->at[t];
}

/* What one step accessed, to decide which steps may be swapped. */
typedef struct {
  uintptr_t address; /* 0: nothing shared */
  uint8_t thread;
  bool writes;
  bool begins; /* the first step of a call */
  bool ends;   /* the last one */
} step;

/* State of a thread: where it is, what it knows. */
typedef struct {
  vector_clock knows;
  const char *label, *file;
  int32_t line;
  bool labelled;    /* since its last access */
  int32_t call;     /* index of the program's current call, or -1 */
  bool fresh;       /* the current call has not taken a step yet */
  bool over, dead;  /* has no more calls; was killed */
  bool stalled;     /* runs only if no other thread can */
  uintptr_t wants;  /* the mutex that it is about to take; 0: none */
  uintptr_t sleeps; /* the condition variable that it sleeps on; 0: none */
  bool limited;     /* the sleep has a time limit */
  bool late;        /* the limit passed before it was woken */
  int32_t last_step;
} thread;

extern struct execution {
  const model_program *program;
  thread threads[THREADS];
  int32_t running; /* thread */
  bool parallel;   /* the threads have started and not all ended */
  bool aborted;
  int32_t steps;
  int32_t alone;        /* steps before and after the threads */
  int32_t time;         /* number of invocations and returns */
  int32_t since_return; /* steps since the last return */
  int32_t stale_left, failures_left, kills_left;
  int32_t allocations; /* since the threads started */
  step step[MODEL_STEPS_MAX];
  model_answer *answer; /* one per call */
  model_outcome *outcome;
  bool tracing;
} execution;

static inline thread *running_thread(void) { return &execution.threads[execution.running]; }

/* Runs the program once; the driver below decides. */
void execution_run(const model_program *program, model_outcome *outcome);

/* Ends the execution; does not return to the thread. execution_abort gives it up without a verdict. */
_Noreturn void execution_fail(model_verdict verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void execution_abort(void);

/* Before an access of the running thread: lets the driver pick the next thread. Returns when it is this one. */
void execution_step(uintptr_t address);
/* The current step has changed what others can see at its address. */
void execution_wrote(void);
/* The access is done: what the thread does from here on is after it. */
void execution_after(void);

/* Appends to the trace. */
void trace(const char *access, const char *accessor, int32_t order, int32_t back, uintptr_t address, uint64_t value);

/* "t_gate.c:12" of the running thread */
const char *here(void);

/* ---- decisions: by list (model.c) or by the explorer (explore.c) ---- */

typedef struct {
  /* Returns the thread of `candidates` that takes the next step (by default the first), or -1 to give up. */
  int (*pick)(const int *candidates, int count);
  /* Returns one of `options`, 0 by default, at this step (as model_decision.step). */
  int (*choose)(model_kind kind, int options, int32_t at);
} driver;

extern driver execution_driver;

/* The candidate of the set that is next in turn after thread `last`; -1: none. */
int next_in_turn(unsigned set, int last, const int *candidates, int count);

/* Called at the end of every call while the threads run. */
extern void (*execution_on_return)(void);

/* Finds the program's subject; false: the program needs something that does not exist. */
bool execution_fits(const model_program *program);

/* While executions run, signals such as a segmentation fault are verdicts. */
void signals_catch(void);
void signals_release(void);

/* ---- memory (cells.c, places.c, blocks.c) ---- */

typedef struct message {
  struct message *older;
  uint64_t value;
  vector_clock released; /* what an acquiring reader learns */
  int32_t position;
  bool glued; /* written by a read-modify-write: nothing may be inserted between it and the older one */
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
  const message *sc_newest; /* of the sequentially consistent stores; NULL: none */
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
/* NULL: not used yet. */
place *place_known(uintptr_t address);
void places_reset(void);
/* Memory for the bookkeeping of one execution. */
void *pool_new(size_t bytes);

/* An access to plain bytes: fails the execution if it races. */
void place_use(uintptr_t address, size_t bytes, bool writes, const char *file, int32_t line);
/* Before a block is freed: all accesses to the eight bytes must have happened before. */
void place_leave(const place *p, uintptr_t address);

void blocks_reset(void);
/* Fails the execution unless [address, address + bytes) is in a block that the running thread may use. */
void block_check(uintptr_t address, size_t bytes);
int32_t blocks_live(void);
/* "n2.3": the third block of thread 2; returns 0 if the address is in no block */
int block_describe(uintptr_t address, char *text, size_t room);

/* ---- locks (locks.c) ---- */

void locks_reset(void);
bool lock_is_free(uintptr_t address);
/* Whether threads have taken a lock since locks_forget. */
bool locks_used(void);
void locks_forget(void);

/* ---- histories (histories.c) ---- */

void histories_reset(int32_t calls);
/* Counts the history; true if it is new. */
bool histories_add(const model_answer *answer, const model_program *program, int32_t verdict);
/* The decisions that led to the history just added. */
void histories_explain(const model_decision *decision, int32_t decisions);
const model_history *histories_all(int64_t *count);
