/* fiber.h - threads of the model: stacks that hand control to each other, one at a time. */
#pragma once

typedef struct {
  void *stack_pointer;
} fiber;

/* Stacks for so many fibers; false when out of memory. They are kept for ever and used again. */
int fiber_stacks(int fibers);

/* Fiber `number` will run `entry`, which must never return, when it is switched to. */
fiber fiber_new(int number, void (*entry)(void));

/* Leave the running fiber, whose state goes to `from`, and go on with `to`. */
void fiber_switch(fiber *from, const fiber *to);
