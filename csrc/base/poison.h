/*
 * poison.h - fills memory that must not be read with patterns, in a build for finding bugs (CMake:
 * -DPYSTREAM_POISON=ON).
 *
 * Freed memory is filled with one pattern, new memory that is not zeroed with another, so that reading either gives
 * wrong results instead of old values or zeros. That applies to blocks of the allocator and to what the structures
 * reuse without freeing: large blocks, nodes of slabs, keys, batches, slices, rings. Blocks of the allocator have a
 * guard after them, and stay in a ring for a while before they are returned to the system: a write past the end is
 * found when the block is freed, a write after free when the block leaves the ring.
 *
 * Without the option, all of this is the allocator itself and nothing else. Not poisoned: nodes of ms_queue, which are
 * cells that a delayed thread may read; and callers' buffers, which callers release (tests/poison.py).
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
size_t system_size(void *block); /* usable size, at least as much as requested */

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
