/* memory.c - counted allocation with a switch that makes it fail, for tests of every out-of-memory path; and large
   blocks, some of which are kept for reuse. */
#include "base/memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/poison.h"

static ps_counter live;
static ps_counter fail_from; /* number of the first allocation that fails; 0: none */
static ps_counter made;      /* allocations since fail_from was set */
static _Thread_local ps_counter *account;

/* ---- accounts ---- */

static int64_t size_of(const void *block) { return (int64_t)system_size((void *)(uintptr_t)block); }

ps_counter *memory_enter(ps_counter *next) {
  ps_counter *before = account;
  account = next;
  return before;
}

static void count_bytes(int64_t bytes) {
  if (account) ps_counter_add(account, bytes);
}

/* ---- blocks ---- */

static bool must_fail(void) {
  int64_t from = ps_counter_get(&fail_from);
  return from != 0 && ps_counter_add(&made, 1) >= from;
}

void *memory_new(size_t bytes) {
  void *block = must_fail() ? NULL : system_new(bytes ? bytes : 1);
  if (!block) return NULL;
  ps_counter_add(&live, 1);
  count_bytes(size_of(block));
  return block;
}

void *memory_resize(void *block, size_t bytes) {
  int64_t before = block ? size_of(block) : 0;
  void *bigger = must_fail() ? NULL : system_resize(block, bytes ? bytes : 1);
  if (bigger && !block) ps_counter_add(&live, 1);
  if (bigger) count_bytes(size_of(bigger) - before);
  return bigger;
}

void memory_free(void *block) {
  if (!block) return;
  ps_counter_add(&live, -1);
  count_bytes(-size_of(block));
  system_free(block);
}

#define GROWN_FIRST SIZED(16, 1) /* elements */

/* The capacity to grow to; 0: overflow. */
static int64_t grown(int64_t capacity, int64_t needed, size_t element) {
  int64_t wanted = capacity < GROWN_FIRST ? GROWN_FIRST : capacity;
  while (wanted < needed) {
    if (wanted > INT64_MAX / 2) return 0;
    wanted *= 2;
  }
  return (uint64_t)wanted > SIZE_MAX / element ? 0 : wanted;
}

bool memory_grow(void **array, int64_t *capacity, int64_t needed, size_t element) {
  if (needed <= *capacity) return true;
  int64_t wanted = grown(*capacity, needed, element);
  if (wanted == 0) return false;
  void *bigger = memory_resize(*array, (size_t)wanted * element);
  if (!bigger) return false;
  *array = bigger;
  *capacity = wanted;
  return true;
}

/* ---- large blocks ---- */

#define KEPT_MAX SIZED(32, 1)
#define KEPT_BYTES SIZED((size_t)64 << 20, MEMORY_LARGE)

/* Freed blocks for reuse: their pages are mapped and need no clearing. A thread that finds the lock taken does without,
   so that a fork meanwhile does no harm. */
static struct {
  pthread_mutex_t lock;
  size_t bytes;
  int32_t n;
  void *block[KEPT_MAX];
  size_t size[KEPT_MAX];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether an array of `bytes` bytes is a large block. No array is between MEMORY_LARGE_FROM and one large page, except
   by the rest of a page that elements do not fill. */
static bool is_large(size_t bytes) { return bytes >= MEMORY_LARGE_FROM; }

static size_t whole(size_t bytes) { return (bytes + MEMORY_LARGE - 1) / MEMORY_LARGE * MEMORY_LARGE; }

static void *kept_take(size_t size) {
  void *block = NULL;
  if (pthread_mutex_trylock(&kept.lock) != 0) return NULL;
  for (int32_t i = kept.n; i-- > 0 && !block;) {
    if (kept.size[i] != size) continue;
    block = kept.block[i];
    kept.n--;
    kept.bytes -= size;
    kept.block[i] = kept.block[kept.n];
    kept.size[i] = kept.size[kept.n];
  }
  pthread_mutex_unlock(&kept.lock);
  return block;
}

static bool kept_give(void *block, size_t size) {
  if (pthread_mutex_trylock(&kept.lock) != 0) return false;
  bool room = kept.n < KEPT_MAX && size <= KEPT_BYTES - kept.bytes;
  if (room) {
    kept.block[kept.n] = block;
    kept.size[kept.n++] = size;
    kept.bytes += size;
  }
  pthread_mutex_unlock(&kept.lock);
  return room;
}

/* Memory from the system, aligned to a large page. */
static void *map(size_t size) {
  uint8_t *block = mmap(NULL, size + MEMORY_LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return NULL;
  size_t before = whole((size_t)(uintptr_t)block) - (size_t)(uintptr_t)block;
  if (before) munmap(block, before);
  munmap(block + before + size, MEMORY_LARGE - before);
#ifdef MADV_HUGEPAGE
  madvise(block + before, size, MADV_HUGEPAGE); /* only advice: it may fail */
#endif
  return block + before;
}

static void *large_new(size_t bytes) {
  if (must_fail()) return NULL;
  void *block = kept_take(whole(bytes));
  if (!block) block = map(whole(bytes));
  if (!block) return NULL;
  ps_counter_add(&live, 1);
  count_bytes((int64_t)whole(bytes));
  poison_unset(block, whole(bytes));
  return block;
}

static void large_free(void *block, size_t bytes) {
  ps_counter_add(&live, -1);
  count_bytes(-(int64_t)whole(bytes));
  poison_freed(block, whole(bytes));
  if (!kept_give(block, whole(bytes))) munmap(block, whole(bytes));
}

bool memory_grow_large(void **array, int64_t *capacity, int64_t needed, size_t element) {
  if (needed <= *capacity) return true;
  int64_t wanted = grown(*capacity, needed, element);
  if (wanted == 0) return false;
  if (!is_large((size_t)wanted * element)) return memory_grow(array, capacity, needed, element);
  if ((size_t)wanted * element < MEMORY_LARGE) wanted = (int64_t)(MEMORY_LARGE / element); /* soon needed anyway */
  void *bigger = large_new((size_t)wanted * element);
  if (!bigger) return false;
  if (*array) memcpy(bigger, *array, (size_t)*capacity * element);
  memory_free_large(*array, (size_t)*capacity * element);
  *array = bigger;
  *capacity = wanted;
  return true;
}

void memory_free_large(void *block, size_t bytes) {
  if (is_large(bytes)) {
    large_free(block, bytes);
  } else {
    memory_free(block);
  }
}

void memory_leave(const void *block, size_t bytes) {
  if (block) count_bytes(-(is_large(bytes) ? (int64_t)whole(bytes) : size_of(block)));
}

int64_t ps_memory_live(void) { return ps_counter_get(&live); }

void ps_memory_fail_after(int64_t allocations) {
  ps_counter_set(&made, 0);
  ps_counter_set(&fail_from, allocations);
}
