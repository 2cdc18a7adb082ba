/*
 * poison.h - memory that is nobody's says so, in a build for finding mistakes (CMake: -DPYSTREAM_POISON=ON).
 *
 * What has been freed is filled with one pattern, what is new and not zeroed with another, so that who reads either
 * gets neither what it was nor zeros, and results go wrong. That holds for blocks of the allocator and for what the
 * structures use again without giving it back: large blocks, nodes of slabs, keys, batches, slices, rings. Blocks of
 * the allocator have a guard behind them, and lie in a ring for a while before they go to the system: who has written
 * behind a block is found when it is freed, and who has written into a freed one when it leaves the ring.
 *
 * Without the option, all of this is the allocator itself and nothing else. Not poisoned: nodes of ms_queue, which are
 * cells that an overtaken thread may read; what callers gave, which is released by them (tests/poison.py).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __APPLE__
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

#ifdef PYSTREAM_POISON

enum { POISON_FREED = 0xdd, POISON_UNSET = 0xa5 };

void poison_fill(void *at, size_t size, uint8_t pattern);

void *system_new(size_t size); /* zeroed */
void *system_resize(void *block, size_t size);
void system_free(void *block);
size_t system_size(void *block); /* as much as it takes, not less than was asked for */

#define poison_freed(at, size) poison_fill(at, size, POISON_FREED)
#define poison_unset(at, size) poison_fill(at, size, POISON_UNSET)

#else

#define poison_freed(at, size) ((void)0)
#define poison_unset(at, size) ((void)0)

static inline void *system_new(size_t size) { return calloc(1, size); }
static inline void *system_resize(void *block, size_t size) { return realloc(block, size); }
static inline void system_free(void *block) { free(block); }

#ifdef __APPLE__
static inline size_t system_size(void *block) { return malloc_size(block); }
#else
static inline size_t system_size(void *block) { return malloc_usable_size(block); }
#endif

#endif
