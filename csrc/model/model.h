/*
 * model.h - the interface of the model build, the extension pystream._model.
 *
 * Read twice, like pystream.h: by the C compiler and by cffi, so declarations only. model.c documents what is modelled
 * and what is not. One call runs one execution or explores all; calls must not overlap.
 */
#pragma once

#define MODEL_THREADS_MAX 8 /* including thread 0, which runs before the others start and after they have ended */
#define MODEL_ARGUMENTS_MAX 6
#define MODEL_RESULTS_MAX 24
#define MODEL_PARAMETERS_MAX 8
#define MODEL_STEPS_MAX 4096
#define MODEL_CALLS_MAX 64 /* per program */
#define MODEL_TEXT_MAX 400

/* A call of an operation of the subject. Calls of thread 0 before the first call of another thread run before the
   threads start; its other calls run when all threads have ended. */
typedef struct {
  int32_t thread;
  int32_t operation;
  int64_t argument[MODEL_ARGUMENTS_MAX];
} model_call;

typedef struct {
  const char *subject;
  int64_t parameter[MODEL_PARAMETERS_MAX];
  int32_t threads; /* without thread 0 */
  int32_t calls;
  const model_call *call;
  int32_t weak; /* loads may be stale and stores late, as C11 allows; otherwise memory is sequentially consistent */
  int32_t talk; /* a thread that begins a call knows what all ended calls knew, as if they had communicated */
} model_program;

/* Departures from the default: the running thread continues, loads see the newest value, nothing fails. */
typedef enum {
  MODEL_SWITCH, /* before this step, switch to the value-th other runnable thread, cyclically from this one */
  MODEL_STALE,  /* the load or swap of this step sees the value-th message before the newest; a store goes there */
  MODEL_FAIL,   /* an allocation fails; `step` is its number among all since the threads started, from 1 */
  MODEL_KILL,   /* the thread that ran until this step never runs again */
  MODEL_STALL,  /* the thread that ran until this step waits until no other can run */
  MODEL_ONLY    /* from this step on only the threads of the set `value` run (bit t: thread t), in turn */
} model_kind;

typedef struct {
  int32_t step;
  int32_t kind;
  int32_t value;
} model_decision;

typedef enum {
  MODEL_FINE,
  MODEL_RACE,      /* two unordered plain accesses, one of them a write */
  MODEL_FREED,     /* memory used after it was freed, or freed while another thread may still use it */
  MODEL_TWICE,     /* memory freed twice, or never allocated */
  MODEL_LEAK,      /* memory left after the structure was destroyed */
  MODEL_ASSERTION, /* an assertion of the code or of the subject failed */
  MODEL_CRASH,     /* an access to an invalid address */
  MODEL_ENDLESS,   /* more steps than an execution may have, or threads that wait for ever */
  MODEL_MISUSE     /* the program uses something that the subject does not have, or too much */
} model_verdict;

/* One access of the trace, or the beginning or end of a call. */
typedef struct {
  int32_t step; /* -1: before the threads start or after they end */
  int32_t thread;
  int32_t call; /* index of the program's call */
  int32_t line;
  const char *file;
  const char *label;
  const char *accessor;
  const char *access; /* "load", "store", "swap", "failed swap", "add", "lock", "wake", "call", "return", "local" */
  int32_t order;      /* 0 relaxed, 1 acquire, 2 release, 3 acquire and release, 4 sequentially consistent */
  int32_t back;       /* number of messages before the newest */
  uint64_t address;
  uint64_t value;
} model_event;

/* The result of a call. `returned` is -1 for a call that did not return; `invoked` is -1 for one that did not begin. */
typedef struct {
  int32_t invoked;
  int32_t returned;
  uint64_t after; /* set of calls that ended before this one began; with weak memory and without `talk`, only those
                     whose end happened before */
  int32_t results;
  int64_t result[MODEL_RESULTS_MAX];
} model_answer;

typedef struct {
  int32_t verdict;
  int32_t steps;
  int32_t step; /* at which it failed */
  int32_t gap;  /* the longest run of steps in which no call ended */
  int32_t events;
  const model_event *event;   /* valid until the next call */
  const model_answer *answer; /* one per call of the program; valid until the next call */
  char text[MODEL_TEXT_MAX];
} model_outcome;

typedef struct {
  int64_t executions;
  int32_t reduce;      /* skip schedules that differ from an explored one only in the order of independent steps */
  int32_t preemptions; /* -1: any number; otherwise without reduction */
  int32_t stale;       /* stale loads and late stores per execution */
  int32_t failures;    /* failed allocations per execution */
  int32_t kills;       /* threads that stop for ever */
  int32_t probe;       /* from every state, for every set of stalled threads, run the others: see model_found.bound */
  int32_t keep_going;  /* continue after a bad verdict */
} model_bounds;

/* One distinct history: what every call returned and which calls ended before which began. */
typedef struct {
  const model_answer *answer;
  const model_decision *decision;
  int32_t decisions;
  int32_t verdict;
  int64_t seen; /* number of executions */
} model_history;

typedef struct {
  int64_t executions; /* run to their end */
  int64_t blocked;    /* given up because all continuations were explored */
  int64_t steps;
  int64_t bad;     /* executions with a bad verdict */
  int32_t whole;   /* 1: everything within the bounds was explored */
  int32_t longest; /* execution, in steps */
  int32_t gap;     /* the longest run of steps in which no call ended, over all executions */
  int32_t bound;   /* probes: the most steps that running threads, in turn, take until one of their calls ends */
  int64_t probes;
  int64_t histories;
  const model_history *history; /* valid until the next call */
} model_found;

/* The subjects and their operations, "name(argument, ...)"; NULL after the last one. */
const char *model_subject_name(int32_t subject);
const char *model_operation_name(int32_t subject, int32_t operation);

/* One execution. The same program and decisions always give the same outcome. */
void model_run(const model_program *program, const model_decision *decision, int32_t decisions, model_outcome *outcome);

/* All executions within the bounds, depth first. `outcome` is that of the first bad execution, without its trace. */
void model_explore(const model_program *program, const model_bounds *bounds, model_found *found,
                   model_outcome *outcome);

/* Accessors of atomics.h called so far, and the strongest order that each was called with; NULL after the last one. */
const char *model_accessor(int32_t index, int32_t *order);

/* Weakens an accessor to an order (numbered as in model_event); NULL resets all. */
void model_weaken(const char *accessor, int32_t order);

/* The name of the block that holds an address, in the last execution; 0: none. */
int32_t model_describe(uint64_t address, char *text, uint64_t room);
