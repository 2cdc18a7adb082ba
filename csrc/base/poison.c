/* poison.c - see poison.h. */
#include "base/poison.h"

#ifdef PYSTREAM_POISON

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { GUARD = 16, RING = 512, RING_BYTES_MAX = 1 << 16 };

/* Before each block; as large as the strictest alignment. */
typedef union {
  size_t bytes;
  max_align_t alignment;
} head;

/* Freed blocks, the oldest at `next`. A thread that finds the lock taken does without, so that a fork does no harm. */
static struct {
  pthread_mutex_t lock;
  size_t next;
  head *block[RING];
} ring = {.lock = PTHREAD_MUTEX_INITIALIZER};

void poison_fill(void *at, size_t bytes, uint8_t pattern) {
  if (bytes) memset(at, pattern, bytes);
}

static uint8_t *data_of(head *h) { return (uint8_t *)(h + 1); }

static void check(const uint8_t *at, size_t bytes, uint8_t pattern, const char *what) {
  for (size_t i = 0; i < bytes; i++) {
    if (at[i] == pattern) continue;
    fprintf(stderr, "pystream: memory at %p %s\n", (const void *)(at + i), what);
    abort();
  }
}

static void *block_new(size_t bytes, uint8_t filled) {
  head *h = bytes > SIZE_MAX - sizeof *h - GUARD ? NULL : malloc(sizeof *h + bytes + GUARD);
  if (!h) return NULL;
  h->bytes = bytes;
  poison_fill(data_of(h), bytes, filled);
  poison_freed(data_of(h) + bytes, GUARD);
  return data_of(h);
}

void *system_new(size_t bytes) { return block_new(bytes, 0); }

size_t system_size(void *block) { return ((const head *)block - 1)->bytes; }

/* Always moves the block, so that uses of the old address are found. */
void *system_resize(void *block, size_t bytes) {
  void *bigger = block_new(bytes, POISON_UNSET);
  if (!bigger || !block) return bigger;
  size_t before = ((const head *)block - 1)->bytes;
  memcpy(bigger, block, before < bytes ? before : bytes);
  system_free(block);
  return bigger;
}

/* Puts the block into the ring and returns the one to free instead: itself, if it is not kept. */
static head *exchange(head *h) {
  if (h->bytes > RING_BYTES_MAX || pthread_mutex_trylock(&ring.lock) != 0) return h;
  head *oldest = ring.block[ring.next];
  ring.block[ring.next] = h;
  ring.next = (ring.next + 1) % RING;
  pthread_mutex_unlock(&ring.lock);
  return oldest;
}

void system_free(void *block) {
  if (!block) return;
  head *h = (head *)block - 1;
  check(data_of(h) + h->bytes, GUARD, POISON_FREED, "was written to, behind the end of its block");
  poison_freed(block, h->bytes);
  h = exchange(h);
  if (!h) return;
  check(data_of(h), h->bytes, POISON_FREED, "was written to after it had been freed");
  free(h);
}

#endif
