/*
 * places.c - what is known about every eight bytes of the model's memory: who used them as plain data and when.
 *
 * Two uses of the same bytes by different threads, one of them a write, race unless one happened before the other.
 * "Happened before" is told by moments: a use is stamped with its thread's own count, and whoever has a count at or above
 * it in its moment has learnt of it. So a race is found in every execution in which nothing orders the two, whichever
 * came first.
 */
#include "engine.h"

#include <stdlib.h>

enum { POOL_BYTES = 16 << 20, PLACES_LOG = 15, PLACES = 1 << PLACES_LOG };

static uint8_t *pool;
static size_t pool_used;

/* By address, open addressing; an entry counts if it is of this execution. */
static struct entry {
  uintptr_t address;
  uint64_t execution;
  place *place;
} *table;
static uint64_t execution_number;
static int32_t table_used;

void *pool_new(size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  if (pool_used + bytes > POOL_BYTES) execution_fail(MODEL_ENDLESS, "the execution is too long for the model's memory");
  void *room = pool + pool_used;
  pool_used += bytes;
  return room;
}

void places_reset(void) {
  if (!pool) pool = malloc(POOL_BYTES);
  if (!table) table = calloc(PLACES, sizeof *table);
  if (!pool || !table) execution_fail(MODEL_MISUSE, "no memory for the model");
  pool_used = 0;
  table_used = 0;
  execution_number++;
}

static struct entry *entry_of(uintptr_t address) {
  uint64_t slot = hash_mix(address >> 3) & (PLACES - 1);
  while (table[slot].execution == execution_number && table[slot].address != address) slot = (slot + 1) & (PLACES - 1);
  return &table[slot];
}

place *place_known(uintptr_t address) {
  const struct entry *e = entry_of(address & ~(uintptr_t)7);
  return e->execution == execution_number ? e->place : NULL;
}

place *place_at(uintptr_t address) {
  address &= ~(uintptr_t)7;
  struct entry *e = entry_of(address);
  if (e->execution == execution_number) return e->place;
  if (++table_used > PLACES / 2) execution_fail(MODEL_ENDLESS, "the execution uses too much memory for the model");
  *e = (struct entry){address, execution_number, pool_new(sizeof(place))};
  *e->place = (place){0};
  return e->place;
}

static void check_race(const place *p, uintptr_t address, uint8_t bytes, bool writes, const char *file, int32_t line) {
  const moment *knows = &running_thread()->knows;
  for (const use *u = p->uses; u; u = u->next) {
    if (u->thread == execution.running || !(u->bytes & bytes) || !(writes || u->writes)) continue;
    if (u->at <= knows->at[u->thread]) continue;
    char name[40] = "memory";
    block_describe(address, name, sizeof name);
    execution_fail(MODEL_RACE, "%s:%d: thread %d %s %s, and thread %d %s it at %s:%d: nothing orders the two", file, line,
                   execution.running, writes ? "writes" : "reads", name, u->thread, u->writes ? "writes" : "reads",
                   u->file, u->line);
  }
}

static void note_use(place *p, uint8_t bytes, bool writes, const char *file, int32_t line) {
  uint32_t now = running_thread()->knows.at[execution.running];
  for (use *u = p->uses; u; u = u->next)
    if (u->thread == execution.running && u->writes == writes && u->bytes == bytes) {
      u->at = now, u->file = file, u->line = line;
      return;
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

void place_leave(place *p, uintptr_t address) {
  const moment *knows = &running_thread()->knows;
  char name[40] = "memory";
  block_describe(address, name, sizeof name);
  for (const use *u = p->uses; u; u = u->next)
    if (u->at > knows->at[u->thread])
      execution_fail(MODEL_FREED, "%s: thread %d frees %s, and nothing orders this after thread %d's use at %s:%d", here(),
                     execution.running, name, u->thread, u->file, u->line);
  for (const visit *v = p->cell.visits; v; v = v->next)
    if (v->at > knows->at[v->thread])
      execution_fail(MODEL_FREED, "%s: thread %d frees %s, and nothing orders this after thread %d's access", here(),
                     execution.running, name, v->thread);
}

void model_reads(const void *memory, size_t bytes, const char *file, int line) {
  place_use((uintptr_t)memory, bytes, false, file, line);
}

void model_writes(const void *memory, size_t bytes, const char *file, int line) {
  place_use((uintptr_t)memory, bytes, true, file, line);
}
