/*
 * histories.c - distinct histories. Two executions have the same history if every call returned the same in both and
 * the same calls ended before it began; nothing else of their order is observable.
 */
#include "model/engine.h"

#include <stdlib.h>

static struct {
  model_history *history;
  uint64_t *hash;
  int64_t count, room;
  int64_t *slot; /* open addressing: index + 1 */
  int64_t slots;
  int32_t calls;
} all;

static void *room_for(void *array, int64_t elements, size_t bytes) {
  void *bigger = realloc(array, (size_t)elements * bytes);
  if (!bigger) abort();
  return bigger;
}

void histories_reset(int32_t calls) {
  for (int64_t i = 0; i < all.count; i++) {
    free((void *)(uintptr_t)all.history[i].answer);
    free((void *)(uintptr_t)all.history[i].decision);
  }
  all.count = 0;
  all.calls = calls;
  if (all.slots) memset(all.slot, 0, (size_t)all.slots * sizeof *all.slot);
}

static uint64_t hash_of(const model_answer *answer, const model_program *program, int32_t verdict) {
  uint64_t h = (uint64_t)verdict + 1;
  for (int32_t i = 0; i < program->calls; i++) {
    const model_answer *a = &answer[i];
    h = hash_mix(h + (a->invoked < 0 ? 1u : a->returned < 0 ? 2u : 3u));
    for (int32_t r = 0; a->returned >= 0 && r < a->results; r++) h = hash_mix(h ^ (uint64_t)a->result[r]) + 1;
    h = hash_mix(h ^ a->after);
  }
  return h;
}

static int64_t *slot_of(uint64_t hash) {
  int64_t mask = all.slots - 1, at = (int64_t)hash & mask;
  while (all.slot[at] && all.hash[all.slot[at] - 1] != hash) at = (at + 1) & mask;
  return &all.slot[at];
}

static void grow(void) {
  if (all.count < all.room) return;
  all.room = all.room ? all.room * 2 : 1024;
  all.history = room_for(all.history, all.room, sizeof *all.history);
  all.hash = room_for(all.hash, all.room, sizeof *all.hash);
  all.slots = all.room * 4;
  all.slot = room_for(all.slot, all.slots, sizeof *all.slot);
  memset(all.slot, 0, (size_t)all.slots * sizeof *all.slot);
  for (int64_t i = 0; i < all.count; i++) *slot_of(all.hash[i]) = i + 1;
}

bool histories_add(const model_answer *answer, const model_program *program, int32_t verdict) {
  grow();
  uint64_t hash = hash_of(answer, program, verdict);
  int64_t *slot = slot_of(hash);
  if (*slot) {
    all.history[*slot - 1].seen++;
    return false;
  }
  model_answer *copy = room_for(NULL, program->calls ? program->calls : 1, sizeof *copy);
  memcpy(copy, answer, (size_t)program->calls * sizeof *copy);
  all.hash[all.count] = hash;
  all.history[all.count] = (model_history){.answer = copy, .verdict = verdict, .seen = 1};
  *slot = ++all.count;
  return true;
}

void histories_explain(const model_decision *decision, int32_t decisions) {
  model_history *h = &all.history[all.count - 1];
  model_decision *copy = room_for(NULL, decisions ? decisions : 1, sizeof *copy);
  memcpy(copy, decision, (size_t)decisions * sizeof *copy);
  h->decision = copy;
  h->decisions = decisions;
}

const model_history *histories_all(int64_t *count) {
  *count = all.count;
  return all.history;
}
