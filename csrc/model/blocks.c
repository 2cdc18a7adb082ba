/*
 * blocks.c - the model's memory. Every thread allocates from a region of its own, so that addresses do not depend on
 * the schedule, and no memory is reused within an execution, so that every use of freed memory is found.
 *
 * Replaces memory.c in the model build.
 */
#include "model/engine.h"
#include "base/memory.h"

#include <stdio.h>
#include <sys/mman.h>

enum { BLOCKS_MAX = 4096, ALIGNMENT = 64, POISON = 0xdd };

typedef struct {
  uintptr_t start;
  size_t bytes;
  uint32_t born; /* in its thread's count */
  bool freed;
  const char *freed_file;
  int32_t freed_line;
  uint8_t freed_by;
} block;

static uint8_t *arena;
static struct region {
  size_t used;
  int32_t blocks;
  block block[BLOCKS_MAX];
} regions[THREADS];

uintptr_t arena_start(void) { return (uintptr_t)arena; }

static uintptr_t region_start(int t) { return (uintptr_t)arena + (size_t)t * REGION_BYTES; }

/* The block that holds the address, and the thread of its region; NULL: none. */
static block *block_of(uintptr_t address, int *owner) {
  if (!arena || address < (uintptr_t)arena || address >= region_start(THREADS)) return NULL;
  *owner = (int)((address - (uintptr_t)arena) / REGION_BYTES);
  struct region *r = &regions[*owner];
  int32_t low = 0, high = r->blocks;
  while (low < high) {
    int32_t middle = (low + high) / 2;
    if (r->block[middle].start <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return NULL;
  block *b = &r->block[low - 1];
  return address < b->start + b->bytes ? b : NULL;
}

void blocks_reset(void) {
  if (!arena) {
    void *all = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) execution_fail(MODEL_MISUSE, "no memory for the model");
    arena = all;
  }
  for (int t = 0; t < THREADS; t++) {
    regions[t].used = 0;
    regions[t].blocks = 0;
  }
}

int32_t blocks_live(void) {
  int32_t live = 0;
  for (int t = 0; t < THREADS; t++)
    for (int32_t i = 0; i < regions[t].blocks; i++) live += !regions[t].block[i].freed;
  return live;
}

int block_describe(uintptr_t address, char *text, size_t room) {
  int owner = 0;
  const block *b = block_of(address, &owner);
  if (!b) return 0;
  int32_t number = (int32_t)(b - regions[owner].block) + 1;
  size_t offset = address - b->start;
  if (offset == 0) return snprintf(text, room, "n%d.%d", owner, number);
  return snprintf(text, room, "n%d.%d+%zu", owner, number, offset);
}

int32_t model_describe(uint64_t address, char *text, uint64_t room) { return block_describe(address, text, room); }

_Noreturn static void block_fail(const block *b, uintptr_t address, int owner) {
  char name[40];
  block_describe(address, name, sizeof name);
  if (b->freed) {
    execution_fail(MODEL_FREED, "%s: thread %d uses %s, which thread %d freed at %s:%d", here(), execution.running,
                   name, b->freed_by, b->freed_file, b->freed_line);
  }
  execution_fail(MODEL_RACE, "%s: thread %d uses %s, and nothing orders this after thread %d made it", here(),
                 execution.running, name, owner);
}

void block_check(uintptr_t address, size_t bytes) {
  int owner = 0;
  const block *b = block_of(address, &owner);
  if (!b || address + bytes > b->start + b->bytes)
    execution_fail(MODEL_CRASH, "%s: an access to %#jx, which is not allocated", here(), (uintmax_t)address);
  if (b->freed || running_thread()->knows.at[owner] < b->born) block_fail(b, address, owner);
}

void *memory_new(size_t bytes) {
  if (execution.parallel && execution.failures_left > 0) {
    int fails = execution_driver.choose(MODEL_FAIL, 2, ++execution.allocations);
    if (fails) {
      execution.failures_left--;
      return NULL;
    }
  }
  struct region *r = &regions[execution.running];
  size_t room = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* at least one byte after it is invalid */
  if (r->blocks == BLOCKS_MAX || r->used + room > REGION_BYTES)
    execution_fail(MODEL_MISUSE, "the program allocates more than the model has room for");
  block *b = &r->block[r->blocks++];
  *b = (block){.start = region_start(execution.running) + r->used,
               .bytes = bytes ? bytes : 1,
               .born = running_thread()->knows.at[execution.running]};
  r->used += room;
  void *memory = arena + (b->start - (uintptr_t)arena);
  return memset(memory, 0, b->bytes);
}

void memory_free(void *memory) {
  if (!memory) return;
  int owner = 0;
  uintptr_t address = (uintptr_t)memory;
  block *b = block_of(address, &owner);
  if (!b || b->start != address)
    execution_fail(MODEL_TWICE, "%s: thread %d frees %p, which is no block", here(), execution.running, memory);
  if (b->freed) {
    execution_fail(MODEL_TWICE, "%s: thread %d frees n%d.%d, which thread %d freed at %s:%d", here(), execution.running,
                   owner, (int)(b - regions[owner].block) + 1, b->freed_by, b->freed_file, b->freed_line);
  }
  block_check(address, b->bytes);
  for (uintptr_t at = address & ~(uintptr_t)7; at < address + b->bytes; at += 8) {
    place *p = place_known(at);
    if (p) place_leave(p, at);
  }
  const thread *self = running_thread();
  b->freed = true;
  b->freed_by = (uint8_t)execution.running;
  b->freed_file = self->file ? self->file : "-";
  b->freed_line = self->line;
  memset(memory, POISON, b->bytes);
}

void *memory_resize(void *memory, size_t bytes) {
  void *bigger = memory_new(bytes);
  if (!bigger || !memory) return bigger;
  int owner = 0;
  const block *b = block_of((uintptr_t)memory, &owner);
  if (!b) execution_fail(MODEL_TWICE, "%s: thread %d resizes %p, which is no block", here(), execution.running, memory);
  memcpy(bigger, memory, b->bytes < bytes ? b->bytes : bytes);
  memory_free(memory);
  return bigger;
}

bool memory_grow_large(void **array, int64_t *capacity, int64_t needed, size_t element) {
  return memory_grow(array, capacity, needed, element);
}

void memory_free_large(void *array, size_t bytes) {
  (void)bytes;
  memory_free(array);
}

bool memory_grow(void **array, int64_t *capacity, int64_t needed, size_t element) {
  if (needed <= *capacity) return true;
  int64_t wanted = *capacity < 16 ? 16 : *capacity;
  while (wanted < needed) wanted *= 2;
  void *bigger = memory_resize(*array, (size_t)wanted * element);
  if (!bigger) return false;
  *array = bigger;
  *capacity = wanted;
  return true;
}

/* Bytes are not counted here. */
ps_counter *memory_enter(ps_counter *account) {
  (void)account;
  return NULL;
}

void memory_leave(const void *left, size_t bytes) { (void)left, (void)bytes; }
