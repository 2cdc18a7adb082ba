/*
 * share.c - ps_arrow_share: one Arrow array, several references.
 *
 * The first call moves the array into a block with a count and leaves a reference in its place. A reference is a copy
 * of the struct whose release decrements the count. Any thread may release (the one that drops the last Python object
 * on the buffers). Copies point to the same children, which therefore belong to the block, not to a copy.
 */
#include "base/atomics.h"
#include "base/base.h"

typedef struct {
  struct ArrowArray whole;
  cell holders;
} shared;

static void leave(struct ArrowArray *reference) {
  shared *s = reference->private_data;
  reference->release = NULL;
  if (holders_leave(&s->holders) > 1) return;
  s->whole.release(&s->whole);
  memory_free(s);
}

static bool make_shared(struct ArrowArray *array) {
  shared *s = memory_new(sizeof *s);
  if (!s) return false;
  s->whole = *array;
  cell_init(&s->holders, 1);
  array->private_data = s;
  array->release = leave;
  return true;
}

ps_code ps_arrow_share(struct ArrowArray *array, struct ArrowArray *out) {
  assert(array->release);
  if (array->release != leave && !make_shared(array)) return PS_NO_MEMORY;
  holders_join(&((shared *)array->private_data)->holders);
  *out = *array;
  return PS_OK;
}
