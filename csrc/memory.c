/* memory.c - counted allocation with a switch that makes it fail, for tests of every out-of-memory path. */
#include "atomics.h"
#include "base.h"

#include <stdlib.h>

static ps_counter live;
static ps_counter countdown; /* 0: off; n: n-1 more succeed, then all fail */

static bool must_fail(void) {
  int64_t left = ps_counter_get(&countdown);
  if (left == 0) return false;
  if (left == 1) return true;
  ps_counter_add(&countdown, -1);
  return false;
}

void *memory_new(size_t bytes) {
  void *block = must_fail() ? NULL : calloc(1, bytes ? bytes : 1);
  if (block) ps_counter_add(&live, 1);
  return block;
}

void *memory_resize(void *block, size_t bytes) {
  void *bigger = must_fail() ? NULL : realloc(block, bytes ? bytes : 1);
  if (bigger && !block) ps_counter_add(&live, 1);
  return bigger;
}

void memory_free(void *block) {
  if (!block) return;
  ps_counter_add(&live, -1);
  free(block);
}

bool memory_grow(void **array, int64_t *capacity, int64_t needed, size_t element) {
  if (needed <= *capacity) return true;
  int64_t wanted = *capacity < 16 ? 16 : *capacity;
  while (wanted < needed) {
    if (wanted > INT64_MAX / 2) return false;
    wanted *= 2;
  }
  if ((uint64_t)wanted > SIZE_MAX / element) return false;
  void *bigger = memory_resize(*array, (size_t)wanted * element);
  if (!bigger) return false;
  *array = bigger;
  *capacity = wanted;
  return true;
}

int64_t ps_memory_live(void) { return ps_counter_get(&live); }

void ps_memory_fail_after(int64_t allocations) { ps_counter_set(&countdown, allocations); }
