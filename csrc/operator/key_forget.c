/* key_forget.c - see key_forget.h. */
#include "operator/key_forget.h"

#include "operator/design.h"

void key_forget_keep_up(ps_operator *op, input *in) {
  uint32_t sweep = key_sweep_current(&op->forget.sweep);
  if (sweep == in->sweep) return;
  key_cache_forget(&in->keys);
  in->sweep = sweep;
}

void key_forget_settled(input *in, const batch *done) {
  for (; done; done = done->next) in->swept = done->sweep;
}

/* A sweep waits for all inputs, and an input without calls would delay it. Only tries the lock: a thread that pauses
   the operator holds all input locks and waits for this thread. */
static void keep_up_silent(ps_operator *op) {
  uint32_t sweep = op->forget.sweep.number;
  for (int32_t i = 0; i < op->inputs; i++) {
    input *in = &op->input[i];
    if (in->swept == sweep || pthread_mutex_trylock(&in->lock) != 0) continue;
    key_forget_keep_up(op, in);
    if (ledger_held(&in->ledger) == 0) in->swept = sweep;
    pthread_mutex_unlock(&in->lock);
  }
}

static bool all_swept(const ps_operator *op) {
  bool swept = true;
  for (int32_t i = 0; swept && i < op->inputs; i++) swept = op->input[i].swept == op->forget.sweep.number;
  return swept;
}

/* Whether no window refers to a key from before the sweep. */
static bool has_left(ps_operator *op) {
  key_forgetting *f = &op->forget;
  if (!f->all_swept) {
    keep_up_silent(op);
    f->all_swept = all_swept(op);
    if (f->all_swept) f->newest = op->design->newest(op);
  }
  return f->all_swept && op->design->oldest(op) > f->newest;
}

void key_forget_step(ps_operator *op) {
  key_forgetting *f = &op->forget;
  if (!op->design->oldest) return;
  bool awaited = key_sweep_awaited(&f->sweep) != 0;
  if (!awaited) f->all_swept = false;
  key_sweep_step(&f->sweep, NULL, awaited && has_left(op));
}
