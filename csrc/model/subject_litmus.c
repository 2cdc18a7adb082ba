/*
 * subject_litmus.c - bare cells and plain words, for litmus tests; a counter; a stack.
 *
 * The counter and the stack have a correct version and wrong ones (by parameter), which the model must find.
 */
#include "model/subject.h"

/* ---- litmus: `parameter` cells, all 0 ---- */

typedef struct {
  cell *cells;
  int64_t *plain;
  int64_t count;
} litmus_object;

static const char *const litmus_operations[] = {"load(cell, order)",
                                                "store(cell, value, order)",
                                                "swap(cell, expected, value, order, failed)",
                                                "add(cell, n, order)",
                                                "read(word)",
                                                "write(word, value)",
                                                "allocate()",
                                                "free_shared()",
                                                "store_load(stored, value, loaded, order)",
                                                "load_add_load(first, added, last, order)",
                                                "leak()",
                                                "wild(address)",
                                                "unlabelled(cell)",
                                                NULL};

/* Numbered as in model_event. */
static memory_order order_from(int64_t number) {
  static const memory_order orders[] = {memory_order_relaxed, memory_order_acquire, memory_order_release,
                                        memory_order_acq_rel, memory_order_seq_cst};
  assert(number >= 0 && number <= 4);
  return orders[number];
}

static void *litmus_create(const int64_t *parameter) {
  litmus_object *o = memory_new(sizeof *o);
  o->count = parameter[0];
  o->cells = memory_new((size_t)o->count * sizeof(cell));
  o->plain = memory_new((size_t)o->count * sizeof *o->plain);
  for (int64_t i = 0; i < o->count; i++) cell_init(&o->cells[i], 0);
  return o;
}

static uint64_t litmus_load(const cell *c, int64_t order) {
  AT(litmus);
  return CELL_LOAD(c, order_from(order));
}

static void litmus_store(cell *c, uint64_t value, int64_t order) {
  AT(litmus);
  CELL_STORE(c, value, order_from(order));
}

static uint64_t litmus_add(cell *c, uint64_t n, int64_t order) {
  AT(litmus);
  return CELL_ADD(c, n, order_from(order));
}

static bool litmus_swap(cell *c, const int64_t *a) {
  AT(litmus);
  uint64_t expected = (uint64_t)a[1];
  return CELL_SWAP(c, &expected, (uint64_t)a[2], order_from(a[3]), order_from(a[4]));
}

static void litmus_plain(litmus_object *o, int32_t operation, const int64_t *a, model_answer *answer) {
  if (operation == 4) {
    READS(o->plain[a[0]]);
    answer_with(answer, o->plain[a[0]]);
  } else if (operation == 5) {
    WRITES(o->plain[a[0]]);
    o->plain[a[0]] = a[1];
  } else if (operation == 6) {
    void *block = memory_new(8);
    answer_with(answer, block != NULL);
    memory_free(block);
  } else if (operation == 7) {
    memory_free(o->plain);
  } else if (operation == 10) {
    answer_with(answer, memory_new(8) != NULL);
  } else if (operation == 11) {
    answer_with(answer, *(volatile int64_t *)(uintptr_t)a[0]);
  } else {
    answer_with(answer, (int64_t)CELL_LOAD(&o->cells[a[0]], order_from(0)));
  }
}

/* Several accesses in one call. */
static void litmus_several(litmus_object *o, int32_t operation, const int64_t *a, model_answer *answer) {
  if (operation == 8) {
    litmus_store(&o->cells[a[0]], (uint64_t)a[1], a[3]);
  } else {
    answer_with(answer, (int64_t)litmus_load(&o->cells[a[0]], a[3]));
    answer_with(answer, (int64_t)litmus_add(&o->cells[a[1]], 1, a[3]));
  }
  answer_with(answer, (int64_t)litmus_load(&o->cells[a[2]], a[3]));
}

static void litmus_call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  litmus_object *o = object;
  cell *c = &o->cells[operation < 4 ? a[0] : 0];
  if (operation == 8 || operation == 9) {
    litmus_several(o, operation, a, answer);
    return;
  }
  switch (operation) {
    case 0: answer_with(answer, (int64_t)litmus_load(c, a[1])); break;
    case 1: litmus_store(c, (uint64_t)a[1], a[2]); break;
    case 2: answer_with(answer, litmus_swap(c, a)); break;
    case 3: answer_with(answer, (int64_t)litmus_add(c, (uint64_t)a[1], a[2])); break;
    default: litmus_plain(o, operation, a, answer);
  }
}

static void litmus_destroy(void *object) {
  litmus_object *o = object;
  memory_free(o->cells);
  memory_free(o->plain);
  memory_free(o);
}

extern const subject litmus;
const subject litmus = {"litmus", litmus_operations, litmus_create, litmus_call, litmus_destroy};

/* ---- counter: parameter 0 correct, 1 lost updates, 2 guarded by a spin lock ---- */

typedef struct {
  cell value;
  cell lock;
  int64_t variant;
} counter_object;

static const char *const counter_operations[] = {"increment()", "get()", NULL};

static uint64_t counter_read(const cell *c) { return CELL_LOAD(c, memory_order_acquire); }
static void counter_set(cell *c, uint64_t value) { CELL_STORE(c, value, memory_order_release); }
static bool counter_swap(cell *c, uint64_t *found, uint64_t value) {
  return CELL_SWAP(c, found, value, memory_order_acq_rel, memory_order_acquire);
}

static void *counter_create(const int64_t *parameter) {
  counter_object *o = memory_new(sizeof *o);
  cell_init(&o->value, 0);
  cell_init(&o->lock, 0);
  o->variant = parameter[0];
  return o;
}

static uint64_t counter_increment(counter_object *o) {
  AT(increment_read);
  uint64_t found = counter_read(&o->value);
  if (o->variant == 0) {
    for (;;) {
      AT(increment_swap);
      if (counter_swap(&o->value, &found, found + 1)) return found;
    }
  }
  AT(increment_set);
  counter_set(&o->value, found + 1);
  return found;
}

static void counter_locked(counter_object *o, model_answer *answer) {
  for (uint64_t open = 0;; open = 0) {
    AT(lock);
    if (counter_swap(&o->lock, &open, 1)) break;
  }
  answer_with(answer, (int64_t)counter_increment(o));
  AT(unlock);
  counter_set(&o->lock, 0);
}

static void counter_call(void *object, int32_t operation, const int64_t *argument, model_answer *answer) {
  (void)argument;
  counter_object *o = object;
  if (operation == 1) {
    AT(get);
    answer_with(answer, (int64_t)counter_read(&o->value));
  } else if (o->variant == 2) {
    counter_locked(o, answer);
  } else {
    answer_with(answer, (int64_t)counter_increment(o));
  }
}

extern const subject counter;
const subject counter = {"counter", counter_operations, counter_create, counter_call, memory_free};

/* ---- stack: parameter 0 correct, 1 pops without waiting for others, and frees ---- */

typedef struct stack_node {
  int64_t value;
  struct stack_node *below;
  struct stack_node *kept; /* freed at the end */
} stack_node;

typedef struct {
  cell top;
  cell kept;
  int64_t variant;
} stack_object;

static const char *const stack_operations[] = {"push(value)", "pop()", NULL};

/* Acquire: the fields of the node that is popped. Partner: stack_swap. */
static stack_node *stack_read(const cell *c) { return (stack_node *)(uintptr_t)CELL_LOAD(c, memory_order_acquire); }
/* Release: the fields of the node. */
static bool stack_swap(cell *c, const stack_node *found, const stack_node *node) {
  uint64_t expected = (uintptr_t)found;
  return CELL_SWAP(c, &expected, (uintptr_t)node, memory_order_acq_rel, memory_order_relaxed);
}

static void *stack_create(const int64_t *parameter) {
  stack_object *o = memory_new(sizeof *o);
  cell_init(&o->top, 0);
  cell_init(&o->kept, 0);
  o->variant = parameter[0];
  return o;
}

/* NOLINTBEGIN(bugprone-sizeof-expression): READS and WRITES of a field that is a pointer mean the pointer */

static bool stack_push(stack_object *o, int64_t value) {
  stack_node *node = memory_new(sizeof *node);
  if (!node) return false;
  WRITES(node->value);
  node->value = value;
  for (;;) {
    AT(push_read);
    stack_node *found = stack_read(&o->top);
    WRITES(node->below);
    node->below = found;
    AT(push_swap);
    if (stack_swap(&o->top, found, node)) return true;
  }
}

/* Other threads may still read a popped node: keeps it until the end. */
static void stack_keep(stack_object *o, stack_node *node) {
  for (;;) {
    AT(keep_read);
    stack_node *found = stack_read(&o->kept);
    WRITES(node->kept);
    node->kept = found;
    AT(keep_swap);
    if (stack_swap(&o->kept, found, node)) return;
  }
}

static int64_t stack_pop(stack_object *o) {
  for (;;) {
    AT(pop_read);
    stack_node *found = stack_read(&o->top);
    if (!found) return -1;
    READS(found->below);
    stack_node *below = found->below;
    AT(pop_swap);
    if (!stack_swap(&o->top, found, below)) continue;
    READS(found->value);
    int64_t value = found->value;
    if (o->variant == 1) {
      memory_free(found);
    } else {
      stack_keep(o, found);
    }
    return value;
  }
}

/* NOLINTEND(bugprone-sizeof-expression) */

static void stack_call(void *object, int32_t operation, const int64_t *argument, model_answer *answer) {
  if (operation == 0) {
    answer_with(answer, stack_push(object, argument[0]));
  } else {
    answer_with(answer, stack_pop(object));
  }
}

static void stack_destroy(void *object) {
  stack_object *o = object;
  while (stack_pop(o) >= 0) continue;
  AT(destroy);
  for (stack_node *n = stack_read(&o->kept); n;) {
    stack_node *next = n->kept;
    memory_free(n);
    n = next;
  }
  memory_free(o);
}

extern const subject stack;
const subject stack = {"stack", stack_operations, stack_create, stack_call, stack_destroy};
