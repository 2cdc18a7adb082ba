/* fiber.h - threads of the model: stacks that pass control to each other, one runs at a time. */
#pragma once

typedef struct {
  void *stack_pointer;
} fiber;

/* Makes stacks for `fibers` fibers; false: out of memory. They are never freed, and reused. */
int fiber_stacks(int fibers);

/* Fiber `number` will run `entry`, which must never return, when it is switched to. */
fiber fiber_new(int number, void (*entry)(void));

/* Saves the running fiber in `from` and continues `to`. */
void fiber_switch(fiber *from, const fiber *to);
