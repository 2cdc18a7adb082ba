/* pane_hive.c - see pane_hive.h. */
#include "slices/pane_hive.h"

#include "base/poison.h"
#include "slices/slice_firsts.h"
#include "slices/slice_unfolded.h"

/* Bytes. The first slab is small, for inputs that send little; the largest holds the slices of about a thousand tuples.
   In small builds: two nodes without keys, or one with a key; larger slabs are not reused. */
#define SLAB_FIRST ((size_t)SIZED(512, 160))
#define SLAB_MAX ((size_t)SIZED(64 * 1024, 160))

#define SPARES_MAX SIZED(32, 2)   /* slabs: 2 MB, about what a batch of 2^16 rows publishes */
#define UNFOLDED_MAX SIZED(15, 2) /* consecutive slices: folding one of 16, to count its keys, costs little */

struct pane_slab {
  pane_slab *next; /* in `returned` or `spare` */
  int64_t depth;   /* the reader's: in `returned`, number of slabs from this one on */
  size_t size, used;
  int64_t live; /* the reader's: nodes read and not released */
  bool left;    /* the reader's: has read a node of a later slab */
};

_Static_assert(sizeof(pane_slab) % 16 == 0, "partials hold 128-bit integers");

/* ---- nodes ---- */

/* The input takes all slabs that the reader has returned. */
static pane_slab *slabs_take(pane_input *in) {
  for (;;) {
    AT(insert_take_node);
    pane_slab *top = returned_read(&in->returned);
    if (!top) return NULL;
    AT(insert_take_node);
    if (returned_take(&in->returned, top)) return top;
  }
}

/* A slab with room for a node of this size: if possible a returned one, as its memory is mapped and cached. */
static pane_slab *slab_new(pane_input *in, size_t size) {
  size_t room = !in->slab ? SLAB_FIRST : in->slab->size * 2 < SLAB_MAX ? in->slab->size * 2 : SLAB_MAX;
  if (room == SLAB_MAX && size <= SLAB_MAX) {
    if (!in->spare) in->spare = slabs_take(in);
    pane_slab *slab = in->spare;
    if (slab) {
      READS(slab->next);
      in->spare = slab->next;
      return slab;
    }
  }
  if (room < size) room = size;
  pane_slab *slab = memory_resize(NULL, sizeof *slab + room);
  if (slab) slab->size = room;
  return slab;
}

/* Does not write `depth`: the reader may still read it, before its compare-and-swap fails. */
static void slab_begin(pane_slab *slab) {
  WRITES(slab->live);
  poison_unset(slab + 1, slab->size);
  slab->used = 0;
  slab->live = 0;
  slab->left = false;
}

/* The reader returns a slab to the input, or frees it if SPARES_MAX are there. */
static void slab_give(pane_input *in, pane_slab *slab) {
  poison_freed(slab + 1, slab->size);
  while (slab->size == SLAB_MAX) {
    AT(reclaim_free);
    pane_slab *top = returned_read(&in->returned);
    if (top) READS(top->depth);
    WRITES(slab->next);
    slab->next = top;
    slab->depth = top ? top->depth + 1 : 1; /* written by the reader only, also while the slab is in use */
    if (slab->depth > SPARES_MAX) break;
    AT(reclaim_free);
    if (returned_push(&in->returned, top, slab)) return;
  }
  memory_free(slab);
}

/* The input stops using its slab. Usually the reader frees it later; but it never sees a slab whose only node was
   undone. One of size SLAB_MAX must stay valid: the reader may still read its depth. */
static void slab_leave(pane_input *in) {
  pane_slab *slab = in->slab;
  if (!slab || slab->used > 0) return;
  if (slab->size != SLAB_MAX) {
    memory_free(slab);
    return;
  }
  WRITES(slab->next);
  slab->next = in->spare;
  in->spare = slab;
}

/* A node with `data` bytes of data, not linked. NULL: out of memory, nothing changed. */
static pane *pane_new(pane_input *in, size_t data) {
  size_t size = sizeof(pane) + flat_round(data);
  if (!in->slab || in->slab->size - in->slab->used < size) {
    pane_slab *slab = slab_new(in, size);
    if (!slab) return NULL;
    slab_begin(slab);
    slab_leave(in);
    in->slab = slab;
  }
  pane *p = (pane *)(void *)((uint8_t *)(in->slab + 1) + in->slab->used);
  in->slab->used += size;
  *p = (pane){.slab = in->slab};
  cell_init(&p->next, 0);
  return p;
}

/* Removes the node made last, which has `data` bytes and is not linked. */
static void pane_undo(pane_input *in, size_t data) { in->slab->used -= sizeof(pane) + flat_round(data); }

/* The reader releases a node. */
static void pane_release(const pane_hive *h, pane *p) {
  pane_drop(&h->plan, p);
  pane_slab *slab = p->slab;
  WRITES(slab->live);
  if (--slab->live == 0 && slab->left) slab_give(&h->input[p->input], slab);
}

/* ---- an input ---- */

/* Links the node, whose data is complete, and begins the next slice at `position`. */
static void hand_over(pane_input *in, pane_windows w, pane *p, uint64_t position) {
  p->begin = in->begin;
  p->position = position;
  p->through = in->tuples;
  p->limit = in->limit;
  p->input = (int32_t)(in->slice.input - PARTIAL_INPUT);
  p->sweep = in->sweep;
  WRITES(*p);
  AT(publish);
  pane_link_publish(&in->last->next, p); /* linearization point of add, heartbeat and close */
  in->last = p;
  in->begin = position;
  in->end = position == PANE_FOREVER ? PANE_FOREVER : next_edge(w, position);
}

/* Hands the private slice over, even if empty, and begins the next one at `position`. */
static bool pane_hive_publish(pane_input *in, pane_windows w, uint64_t position) {
  uint64_t plain;
  size_t size = slice_flat_size(&in->slice, &plain);
  pane *p = pane_new(in, size);
  if (!p) return false;
  p->n = in->keys = in->slice.n;
  p->plain = plain;
  in->unfolded = UNFOLDED_MAX;
  slice_flatten(&in->slice, p + 1, plain, &p->owns);
  hand_over(in, w, p, position);
  return true;
}

/* Rows [from, to) of a batch: a whole slice. */
typedef struct {
  const batch *b;
  const uint32_t *numbers;
  int64_t from, to;
} whole_slice;

/* Not if that takes much more memory than folding: more than twice as many tuples as the last slice had keys. */
static bool goes_unfolded(const pane_input *in, const pane_plan *plan, int64_t rows) {
  return plan->unfolded && in->unfolded > 0 && rows <= 2 * in->keys;
}

/* NULL: fold it instead; if memory ran out, folding will fail too. */
static pane *unfolded_pane(pane_input *in, const pane_plan *plan, const whole_slice *w) {
  uint64_t plain;
  size_t size = slice_unfolded_size(plan->functions, w->to - w->from, &plain);
  pane *p = pane_new(in, size);
  if (!p) return NULL;
  if (!slice_unfolded_flatten(plan->functions, w->b, w->numbers, w->from, w->to, p + 1)) {
    pane_undo(in, size);
    in->unfolded = 0;
    return NULL;
  }
  p->n = w->to - w->from;
  p->plain = plain;
  p->unfolded = true;
  in->unfolded--;
  return p;
}

/* The same for slice_firsts.h; gives memory that is not needed back to the slab. */
static pane *firsts_pane(pane_input *in, const pane_plan *plan, const whole_slice *w) {
  size_t size = flat_size(plan->functions, w->to - w->from, 0);
  pane *p = pane_new(in, size);
  if (!p) return NULL;
  p->n = slice_firsts_flatten(&in->slice, w->b, w->numbers, w->from, w->to, p + 1);
  if (p->n < 0) {
    pane_undo(in, size);
    return NULL;
  }
  in->slab->used -= flat_round(size) - flat_round(flat_size(plan->functions, p->n, 0));
  return p;
}

/* A node made without folding; NULL: fold. */
static pane *quick_pane(pane_input *in, const pane_plan *plan, const whole_slice *w) {
  if (in->slice.n > 0) return NULL;
  if (plan->firsts && w->to - w->from <= SLICE_FIRSTS_ROWS_MAX) return firsts_pane(in, plan, w);
  return goes_unfolded(in, plan, w->to - w->from) ? unfolded_pane(in, plan, w) : NULL;
}

/* The first row from `row` on that is not before the edge. Gallops, as most slices are short. */
static int64_t rows_before(const int64_t *ts, int64_t row, int64_t rows, uint64_t edge) {
  int64_t step = 1, low = row;
  while (low + step < rows && (uint64_t)ts[low + step] < edge) {
    low += step;
    step *= 2;
  }
  int64_t high = low + step < rows ? low + step : rows; /* ts[low] < edge; high is the end or not before the edge */
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if ((uint64_t)ts[middle] < edge) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

bool pane_hive_expect(pane_hive *h, int32_t input, int64_t limit) {
  pane_input *in = &h->input[input];
  if (limit <= in->limit) return true;
  if (!slice_expect(&in->slice, (uint32_t)(limit - 1))) return false;
  in->limit = limit;
  return true;
}

bool pane_hive_add(pane_hive *h, int32_t input, const batch *b, const uint32_t *numbers) {
  pane_input *in = &h->input[input];
  const int64_t *ts = (const int64_t *)b->columns[0].values + b->columns[0].first;
  for (int64_t row = 0; row < b->rows;) {
    uint64_t now = (uint64_t)ts[row];
    if (now >= in->end && !pane_hive_publish(in, h->plan.windows, last_edge(h->plan.windows, now))) return false;
    int64_t end = rows_before(ts, row, b->rows, in->end);
    bool counts = is_covered(h->plan.windows, in->begin),
         whole = end < b->rows; /* tuples between windows are not kept */
    pane *p = NULL;
    if (counts && whole) p = quick_pane(in, &h->plan, &(whole_slice){b, numbers, row, end});
    if (counts && !p && !slice_fold(&in->slice, b, numbers, row, end, !whole)) return false;
    in->tuples += end - row;
    if (p) hand_over(in, h->plan.windows, p, last_edge(h->plan.windows, (uint64_t)ts[end]));
    row = end;
  }
  return true;
}

bool pane_hive_heartbeat(pane_hive *h, int32_t input, uint64_t ts) {
  pane_input *in = &h->input[input];
  return ts < in->end || pane_hive_publish(in, h->plan.windows, last_edge(h->plan.windows, ts));
}

bool pane_hive_close(pane_hive *h, int32_t input) {
  return pane_hive_publish(&h->input[input], h->plan.windows, PANE_FOREVER);
}

/* ---- the reader ---- */

/* Advances the input's cursor to its next node and takes the slice. */
static bool step(pane_hive *h, int32_t input, pane *node) {
  pane *left = h->cursor[input];
  node->slab->live++;
  h->cursor[input] = node;
  left->slab->left = left->slab != node->slab;
  if (!left->held) pane_release(h, left);
  tournament_update(&h->seen, node->position);
  return node->n == 0 || pane_window_take(&h->window, node);
}

static pane *pane_hive_read(const pane *cursor) {
  AT(next_read);
  pane *node = pane_link_read(&cursor->next); /* NULL: the linearization point of PS_EMPTY */
  if (node) READS(*node);
  return node;
}

ps_code pane_hive_next(pane_hive *h) {
  for (;;) {
    ps_code code = pane_window_next(&h->window, tournament_lowest(&h->seen));
    if (code != PS_EMPTY) return code;
    int32_t slowest = tournament_winner(&h->seen);
    pane *node = pane_hive_read(h->cursor[slowest]);
    if (!node) return PS_EMPTY;
    if (!step(h, slowest, node)) return PS_NO_MEMORY;
  }
}

/* All slices held are in the window: none that begins at its end or later was read, because the slowest input has not
   passed it, and those before its start have left. */
ps_code pane_hive_combine(pane_hive *h, out_rows *rows, ps_fault *fault) {
  AT(next_combine);
  return pane_window_emit(&h->window, rows, fault);
}

/* Releases a node that the window gives back. */
static void take_back(void *hive, pane *node) {
  const pane_hive *h = hive;
  if (h->cursor[node->input] != node) pane_release(h, node);
}

ps_code pane_hive_drop(pane_hive *h) {
  AT(next_drop);
  return pane_window_advance(&h->window, (pane_owner){take_back, h}) ? PS_OK : PS_NO_MEMORY;
}

void pane_hive_skip(pane_hive *h, int32_t input) {
  const pane_input *in = &h->input[input];
  if (in->last == h->cursor[input] && in->slice.n == 0) h->cursor[input]->sweep = in->sweep;
}

bool pane_hive_has_swept(const pane_hive *h, uint32_t sweep) {
  bool swept = true;
  for (int32_t i = 0; swept && i < h->inputs; i++) swept = pane_hive_has_seen(h, i, sweep);
  return swept;
}

int64_t pane_hive_through(const pane_hive *h, int32_t input) { return h->cursor[input]->through; }

/* Slices published and not read, then the private slice. */
static bool visit_input(pane_hive *h, int32_t i, pane_visit visit, void *context) {
  pane_input *in = &h->input[i];
  bool ok = true;
  for (pane *node = pane_link_read(&h->cursor[i]->next); ok && node; node = pane_link_read(&node->next)) {
    if (node->n) ok = visit(context, node, PANE_LENT);
  }
  return ok && (in->slice.n == 0 || visit(context, pane_of_slice(&in->slice, in->begin, false), PANE_COPIED));
}

bool pane_hive_visit_slices(pane_hive *h, pane_visit visit, void *context) {
  bool ok = pane_window_visit_slices(&h->window, visit, context);
  for (int32_t i = 0; ok && i < h->inputs; i++) ok = visit_input(h, i, visit, context);
  return ok;
}

/* ---- making and freeing ---- */

static bool input_init(pane_hive *h, int32_t i) {
  pane_input *in = &h->input[i];
  if (!slice_init(&in->slice, h->plan.functions, i)) return false;
  in->last = pane_hive_expect(h, i, 1) ? pane_new(in, 0) : NULL;
  if (!in->last) {
    slice_free(&in->slice);
    return false;
  }
  in->last->slab->live = 1;
  in->last->input = i;
  in->end = next_edge(h->plan.windows, 0);
  cell_init(&in->returned, 0);
  h->cursor[i] = in->last;
  return true;
}

/* All but the inputs. */
static bool frame_init(pane_hive *h, const slide_keys *keys, int32_t inputs) {
  if (!pane_window_init(&h->window, &h->plan, keys)) return false;
  h->input = memory_new((size_t)inputs * sizeof *h->input);
  h->cursor = memory_new((size_t)inputs * sizeof *h->cursor);
  if (h->input && h->cursor && tournament_init(&h->seen, inputs)) return true;
  memory_free(h->input);
  memory_free(h->cursor);
  pane_window_free(&h->window, (pane_owner){0});
  return false;
}

bool pane_hive_init(pane_hive *h, pane_windows windows, const aggregates *functions, const slide_keys *keys,
                    int32_t inputs) {
  *h = (pane_hive){.plan = pane_plan_of(windows, functions)};
  if (!frame_init(h, keys, inputs)) return false;
  while (h->inputs < inputs && input_init(h, h->inputs)) h->inputs++;
  if (h->inputs == inputs) return true;
  pane_hive_free(h);
  return false;
}

static void slabs_free(pane_slab *s) {
  while (s) {
    pane_slab *next = s->next;
    memory_free(s);
    s = next;
  }
}

/* Frees the input's slabs and its private slice. */
static void input_free(pane_hive *h, int32_t i) {
  pane *p = h->cursor[i];
  slab_leave(&h->input[i]);
  for (pane *next = link_last(&p->next); next; next = link_last(&next->next)) {
    next->slab->live++;
    p->slab->left = p->slab != next->slab;
    pane_release(h, p);
    p = next;
  }
  p->slab->left = true;
  pane_release(h, p);
  slabs_free(h->input[i].spare);
  slabs_free(link_last(&h->input[i].returned));
  slice_free(&h->input[i].slice);
}

void pane_hive_free(pane_hive *h) {
  pane_window_free(&h->window, (pane_owner){take_back, h});
  for (int32_t i = 0; i < h->inputs; i++) input_free(h, i);
  tournament_free(&h->seen);
  memory_free(h->cursor);
  memory_free(h->input);
}
