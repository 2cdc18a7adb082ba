/* feed.c - ps_operator_feed: adds whole batches in pieces, for one input or for several from one thread. See
   pystream.h. */
#include "operator/operator.h"

#define PIECE_WAIT_MS 1000 /* then tries again; cancelling the operator ends the wait */

static bool is_begun(const ps_feed *f) { return f->batch && f->row > 0; }

/* The input with the lowest `latest`. It will get room, whatever the others hold: if it is the slowest input of the
   operator, its tuples are ready; if not, the feeder of the slowest input is adding. */
static int32_t slowest(ps_operator *op, int32_t n, const ps_feed *feeds) {
  int32_t best = -1;
  int64_t least = 0;
  for (int32_t i = 0; i < n; i++) {
    if (!feeds[i].batch) continue;
    int64_t latest = ps_counter_get(&op->input[feeds[i].input].latest);
    if (best >= 0 && latest >= least) continue;
    best = i;
    least = latest;
  }
  return best;
}

static ps_code add_waiting(ps_operator *op, int32_t which, struct ArrowArray *piece, bool whole, ps_fault *fault) {
  for (;;) {
    ps_code code = operator_add(op, which, 0, piece, whole ? 0 : PIECE, fault);
    if (code != PS_FULL) return code;
    if (ps_operator_wait_space(op, which, piece->length, PIECE_WAIT_MS) == PS_CLOSED) return PS_CLOSED;
  }
}

/* Adds one piece. The last piece owns the buffers, because the batches of an input are released in order. */
static ps_code feed_piece(ps_operator *op, ps_feed *f, int64_t cut, ps_fault *fault) {
  struct ArrowArray piece = *f->batch;
  int64_t left = piece.length - f->row;
  bool last = left <= cut;
  piece.offset += f->row;
  piece.length = last ? left : cut;
  if (!last) piece.release = NULL;
  ps_code code = add_waiting(op, f->input, &piece, last && f->row == 0, fault);
  if (code != PS_OK) {
    fault->row += f->row;
    return code;
  }
  f->row += last ? left : cut;
  if (last && left > 0) f->batch->release = NULL;
  return PS_OK;
}

ps_code ps_operator_feed(ps_operator *op, int32_t n, ps_feed *feeds, int64_t cut, int32_t *which, ps_fault *fault) {
  assert(cut > 0 && op->functions.udf < 0);
  for (;;) {
    int32_t i = *which = slowest(op, n, feeds);
    assert(i >= 0);
    if (!feeds[i].keeper) feeds[i].keeper = batch_new(feeds[i].batch, op->columns, op->column_types);
    if (!feeds[i].keeper) return PS_NO_MEMORY;
    ps_code code = feed_piece(op, &feeds[i], cut, fault);
    if (code != PS_OK) return code;
    if (feeds[i].row < feeds[i].batch->length) continue;
    feeds[i].batch = NULL;
    return PS_OK;
  }
}

/* Keeps the buffers alive: pieces refer to them, and no last piece will own them. */
static void keep_buffers(ps_operator *op, input *in, batch *keeper, struct ArrowArray *arrow) {
  batch_own(keeper, arrow);
  pthread_mutex_lock(&op->dead_lock);
  keeper->next = in->kept;
  in->kept = keeper;
  pthread_mutex_unlock(&op->dead_lock);
}

void ps_operator_feed_end(ps_operator *op, int32_t n, ps_feed *feeds) {
  for (int32_t i = 0; i < n; i++) {
    ps_feed *f = &feeds[i];
    if (is_begun(f)) {
      keep_buffers(op, &op->input[f->input], f->keeper, f->batch);
    } else if (f->keeper) {
      batch_free(f->keeper);
    }
    f->batch = NULL;
    f->keeper = NULL;
  }
}
