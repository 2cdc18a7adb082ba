/* base.h - included first by every source file: standard types, the public header, memory, small arithmetic. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pystream.h"

#ifdef PYSTREAM_MODEL /* a failed assertion is a verdict there, it does not end the process */
_Noreturn void model_assertion(const char *claim, const char *file, int line);
#undef assert
#define assert(claim) ((claim) ? (void)0 : model_assertion(#claim, __FILE__, __LINE__))

#include <pthread.h> /* the model provides threads and locks */
int model_lock(pthread_mutex_t *m, const char *file, int line);
int model_unlock(pthread_mutex_t *m);
int model_sleep(pthread_cond_t *c, pthread_mutex_t *m, bool limited, const char *file, int line);
int model_rouse(pthread_cond_t *c, bool all);
#define pthread_mutex_lock(m) model_lock(m, __FILE__, __LINE__)
#define pthread_mutex_unlock(m) model_unlock(m)
#define pthread_cond_wait(c, m) model_sleep(c, m, false, __FILE__, __LINE__)
#define pthread_cond_timedwait(c, m, at) ((void)(at), model_sleep(c, m, true, __FILE__, __LINE__))
#define pthread_cond_signal(c) model_rouse(c, false)
#define pthread_cond_broadcast(c) model_rouse(c, true)
#endif

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* A size, first value of a counter or width that results do not depend on: the usual value, and the smallest possible
   one for builds with PYSTREAM_SMALL, in which tests reach borders and wraps all the time. Every such constant is
   written this way (tests/test_builds.py). */
#ifdef PYSTREAM_SMALL
#define SIZED(usual, least) (least)
#else
#define SIZED(usual, least) (usual)
#endif

/* A loop whose flags are constants where it is called: inlined in all these places, which are more than compilers inline
   by themselves. Not in builds that count branches. */
#ifdef __OPTIMIZE__
#define INLINED __attribute__((always_inline)) static inline
#else
#define INLINED static inline
#endif

/* Memory. All allocations of csrc use these, so that tests can count live blocks and make any allocation fail. NULL on
   failure; a failed resize leaves the old block valid. */
void *memory_new(size_t bytes); /* zeroed */
void *memory_resize(void *block, size_t bytes);
void memory_free(void *block);

/* Makes room for `needed` elements in a growing array: doubles the capacity. False: out of memory, array unchanged. */
bool memory_grow(void **array, int64_t *capacity, int64_t needed, size_t element);

/* Resizes an array from `from` elements to `to`; the new ones are zero. False: out of memory, array unchanged. */
static inline bool memory_extend(void **array, int64_t from, int64_t to, size_t element) {
  uint8_t *bigger = memory_resize(*array, (size_t)to * element);
  if (!bigger) return false;
  memset(bigger + (size_t)from * element, 0, (size_t)(to - from) * element);
  *array = bigger;
  return true;
}

/* The same for arrays that are filled from the start and may be huge. Touching new memory costs more than filling it:
   arrays of MEMORY_LARGE_FROM bytes and more get large pages where the system has them, and memory freed before.
   `bytes` is the capacity. */
#define MEMORY_LARGE ((size_t)SIZED(2048, 64) << 10)            /* a large page; a multiple of any system's page */
#define MEMORY_LARGE_FROM SIZED(MEMORY_LARGE / 4, (size_t)1024) /* below it, mapping would dominate */
bool memory_grow_large(void **array, int64_t *capacity, int64_t needed, size_t element);
void memory_free_large(void *array, size_t bytes);

/* The finalizer of splitmix64 by Steele, Lea and Flood: every input bit affects every output bit. */
static inline uint64_t hash_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
