/* promises.c - see promises.h. */
#include "operator/promises.h"

#include "operator/design.h"

static void set_owes(ps_operator *op, input *in, bool owes) {
  if (promises_owes(in) == owes) return;
  ps_flag_set(&in->owes, owes);
  ps_counter_add(&op->owing, owes ? 1 : -1);
}

bool promises_kept(ps_operator *op, input *in, int64_t ts) {
  bool owed = promises_owes(in);
  ps_counter_set(&in->told, ts);
  set_owes(op, in, false);
  return owed;
}

void promises_note(ps_operator *op, int32_t which, int64_t ts) {
  input *in = &op->input[which];
  ps_counter_set(&in->latest, ts);
  if (op->design->piles && op->design->piles(op, which, ts)) {
    set_owes(op, in, true);
  } else {
    promises_kept(op, in, ts);
    op->design->heartbeat(op, which, ts);
  }
}

/* The input that blocks the output thread. One that has advanced since it was read has rung, or does not block it. */
static input *lowest(ps_operator *op, int32_t *which) {
  input *low = &op->input[0];
  *which = 0;
  for (int32_t i = 1; i < op->inputs; i++) {
    input *in = &op->input[i];
    if (ps_counter_get(&in->told) >= ps_counter_get(&low->told)) continue;
    low = in;
    *which = i;
  }
  return low;
}

bool promises_tell(ps_operator *op) {
  bool told = false;
  while (ps_counter_get(&op->owing) > 0) {
    int32_t which;
    input *in = lowest(op, &which);
    if (!promises_owes(in) || pthread_mutex_trylock(&in->lock) != 0) break;
    if (promises_owes(in)) {
      int64_t ts = ps_counter_get(&in->latest);
      promises_kept(op, in, ts);
      op->design->heartbeat(op, which, ts);
      told = true;
    }
    pthread_mutex_unlock(&in->lock);
  }
  return told;
}
