/*
 * places.c - what is known about every eight bytes of the model's memory: which threads used them as plain data, and
 * when.
 *
 * Two uses of the same bytes by different threads, one of them a write, race unless one happened before the other. A
 * use is stamped with its thread's own count; it happened before what another thread does if that thread's vector clock
 * has a count at or above it. So a race is found in every execution in which nothing orders the two, whichever is
 * first.
 */
#include "model/engine.h"

#include <stdlib.h>

enum { POOL_BYTES = 16 << 20 };

static uint8_t *pool;
static size_t pool_used;

/* One entry per eight bytes of the arena; valid if it is of this execution. */
static struct entry {
  uint32_t execution;
  uint32_t place; /* offset in the pool */
} *table;
static uint32_t execution_number;

void *pool_new(size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (pool_used + bytes > POOL_BYTES) execution_fail(MODEL_ENDLESS, "the execution is too long for the model's memory");
  void *room = pool + pool_used;
  pool_used += bytes;
  return room;
}

void places_reset(void) {
  if (!pool) pool = malloc(POOL_BYTES);
  if (!table || ++execution_number == 0) {
    free(table);
    table = calloc(ARENA_BYTES / 8, sizeof *table);
    execution_number = 1;
  }
  if (!pool || !table) execution_fail(MODEL_MISUSE, "no memory for the model");
  pool_used = 0;
}

static place *place_of(const struct entry *e) { return (void *)(pool + e->place); }

place *place_known(uintptr_t address) {
  const struct entry *e = &table[(address - arena_start()) / 8];
  return e->execution == execution_number ? place_of(e) : NULL;
}

place *place_at(uintptr_t address) {
  struct entry *e = &table[(address - arena_start()) / 8];
  if (e->execution == execution_number) return place_of(e);
  *e = (struct entry){execution_number, (uint32_t)pool_used};
  place *p = pool_new(sizeof *p);
  *p = (place){0};
  return p;
}

static void check_race(const place *p, uintptr_t address, uint8_t bytes, bool writes, const char *file, int32_t line) {
  const vector_clock *knows = &running_thread()->knows;
  for (const use *u = p->uses; u; u = u->next) {
    if (u->thread == execution.running || !(u->bytes & bytes) || !(writes || u->writes)) continue;
    if (u->at <= knows->at[u->thread]) continue;
    char name[40] = "memory";
    block_describe(address, name, sizeof name);
    execution_fail(MODEL_RACE, "%s:%d: thread %d %s %s, and thread %d %s it at %s:%d: nothing orders the two", file,
                   line, execution.running, writes ? "writes" : "reads", name, u->thread,
                   u->writes ? "writes" : "reads", u->file, u->line);
  }
}

static void note_use(place *p, uint8_t bytes, bool writes, const char *file, int32_t line) {
  uint32_t now = running_thread()->knows.at[execution.running];
  for (use *u = p->uses; u; u = u->next) {
    if (u->thread == execution.running && u->writes == writes && u->bytes == bytes) {
      u->at = now;
      u->file = file;
      u->line = line;
      return;
    }
  }
  use *u = pool_new(sizeof *u);
  *u = (use){p->uses, file, line, now, (uint8_t)execution.running, bytes, writes};
  p->uses = u;
}

void place_use(uintptr_t address, size_t bytes, bool writes, const char *file, int32_t line) {
  block_check(address, bytes);
  for (uintptr_t at = address & ~(uintptr_t)7; at < address + bytes; at += 8) {
    uint8_t mask = 0;
    for (unsigned b = 0; b < 8; b++)
      if (at + b >= address && at + b < address + bytes) mask = (uint8_t)(mask | 1u << b);
    place *p = place_at(at);
    check_race(p, address, mask, writes, file, line);
    note_use(p, mask, writes, file, line);
  }
}

void place_leave(const place *p, uintptr_t address) {
  const vector_clock *knows = &running_thread()->knows;
  const use *u = p->uses;
  while (u && u->at <= knows->at[u->thread]) u = u->next;
  const visit *v = p->cell.visits;
  while (v && v->at <= knows->at[v->thread]) v = v->next;
  if (!u && !v) return;
  char name[40] = "memory";
  block_describe(address, name, sizeof name);
  execution_fail(MODEL_FREED, "%s: thread %d frees %s, and nothing orders this after thread %d's use at %s:%d", here(),
                 execution.running, name, u ? u->thread : v->thread, u ? u->file : "a cell", u ? u->line : 0);
}

void model_reads(const void *memory, size_t bytes, const char *file, int line) {
  place_use((uintptr_t)memory, bytes, false, file, line);
}

void model_writes(const void *memory, size_t bytes, const char *file, int line) {
  place_use((uintptr_t)memory, bytes, true, file, line);
}
