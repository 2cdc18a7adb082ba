/* fiber.c - the switch: pushes the registers that a call must preserve and exchanges the stack pointer. */
#include "model/fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, FIBERS_MAX = 8 };

static uint8_t *stacks;

#define TEXT(x) #x
#define SYMBOL(prefix, name) TEXT(prefix) name
#define NAME(prefix) SYMBOL(prefix, "fiber_swap")

void fiber_swap(void **from, void *to);

#if defined(__x86_64__)

/* NOLINTBEGIN(portability-no-assembler): a switch of stacks cannot be written in C */

/* Six callee-saved registers, and the modes of floating-point arithmetic. */
enum { SAVED = 7 };
__asm__(".text\n.globl " NAME(__USER_LABEL_PREFIX__) "\n.p2align 4\n" NAME(__USER_LABEL_PREFIX__) ":\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  subq $8, %rsp\n  stmxcsr (%rsp)\n  fnstcw 4(%rsp)\n"
        "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
        "  ldmxcsr (%rsp)\n  fldcw 4(%rsp)\n  addq $8, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n  ret\n");

static void *first_frame(uint64_t *top, void (*entry)(void)) {
  uint64_t *frame = top - 2 - SAVED; /* the return address, and one word for the stack alignment of calls */
  for (int i = 0; i < SAVED; i++) frame[i] = 0;
  frame[0] = 0x037f00001f80u; /* the modes of a new thread */
  frame[SAVED] = (uint64_t)(uintptr_t)entry;
  frame[SAVED + 1] = 0;
  return frame;
}

#elif defined(__aarch64__)

enum { SAVED = 20 };
__asm__(".text\n.globl " NAME(__USER_LABEL_PREFIX__) "\n.p2align 4\n" NAME(__USER_LABEL_PREFIX__) ":\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
        "  ldp x19, x20, [sp]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n  ret\n");

static void *first_frame(uint64_t *top, void (*entry)(void)) {
  uint64_t *frame = top - SAVED;
  for (int i = 0; i < SAVED; i++) frame[i] = 0;
  frame[11] = (uint64_t)(uintptr_t)entry; /* x30, where the switch returns to */
  return frame;
}

/* NOLINTEND(portability-no-assembler) */

#else
#error "the model build switches stacks itself and knows x86-64 and aarch64; build with -DPYSTREAM_MODEL_BUILD=OFF"
#endif

int fiber_stacks(int fibers) {
  if (stacks) return 1;
  if (fibers > FIBERS_MAX) return 0;
  size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  void *all =
      mmap(NULL, FIBERS_MAX * (STACK_BYTES + guard), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return 0;
  stacks = all;
  for (size_t i = 0; i < FIBERS_MAX; i++) mprotect(stacks + i * (STACK_BYTES + guard), guard, PROT_NONE);
  return 1;
}

fiber fiber_new(int number, void (*entry)(void)) {
  size_t guard = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *top = stacks + ((size_t)number + 1) * (STACK_BYTES + guard);
  return (fiber){first_frame((uint64_t *)(void *)top, entry)};
}

void fiber_switch(fiber *from, const fiber *to) { fiber_swap(&from->stack_pointer, to->stack_pointer); }
