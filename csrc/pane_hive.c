/* pane_hive.c - see pane_hive.h. */
#include "pane_hive.h"

#ifdef PYSTREAM_SMALL
#define SLAB_FIRST ((size_t)160) /* two nodes without keys, or one with a key; larger ones are not used again */
#define SLAB_MAX ((size_t)160)
#define SPARES_MAX 2
#else
#define SLAB_FIRST ((size_t)512)     /* bytes: an input that sends little takes little */
#define SLAB_MAX ((size_t)64 * 1024) /* then one slab serves about a thousand tuples */
#define SPARES_MAX 32                /* slabs: 2 MB, about what a batch of 2^16 rows publishes */
#endif

struct pane_slab {
  pane_slab *next; /* in `returned` or among the spares */
  int64_t depth;   /* the reader's: in `returned`, how many slabs there are from here on */
  size_t size, used;
  int64_t live; /* the reader's: nodes that it has come to and not released */
  bool left;    /* the reader's: it has come to a node of a later slab */
};

_Static_assert(sizeof(pane_slab) % 16 == 0 && sizeof(pane) % 16 == 0, "partials hold 128-bit integers");

/* ---- edges: starts and ends of windows; below 2^64, since timestamps, size and advance are below 2^63 ---- */

static uint64_t last_edge(pane_windows w, uint64_t ts) {
  uint64_t start = ts / w.advance * w.advance;
  uint64_t end = ts < w.size ? 0 : (ts - w.size) / w.advance * w.advance + w.size;
  return start > end ? start : end;
}

static uint64_t next_edge(pane_windows w, uint64_t edge) {
  uint64_t start = (edge / w.advance + 1) * w.advance;
  uint64_t end = edge < w.size ? w.size : ((edge - w.size) / w.advance + 1) * w.advance + w.size;
  return start < end ? start : end;
}

/* Whether tuples of the slice that begins here are in some window. */
static bool is_covered(pane_windows w, uint64_t begin) { return begin % w.advance < w.size; }

/* The start of the first window that covers a slice. */
static uint64_t first_start(pane_windows w, uint64_t begin) {
  return begin < w.size ? 0 : ((begin - w.size) / w.advance + 1) * w.advance;
}

/* ---- nodes ---- */

static packed pane_packed(pane *p) { return packed_view(p + 1, p->n, p->plain); }

/* All slabs that the reader has given back. */
static pane_slab *slabs_take(pane_input *in) {
  for (;;) {
    AT(insert_take_node);
    pane_slab *top = returned_read(&in->returned);
    if (!top) return NULL;
    AT(insert_take_node);
    if (returned_take(&in->returned, top)) return top;
  }
}

/* A slab with room for a node of this size: a used one if possible, whose memory is mapped and warm. */
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

/* `depth` stays: the reader may still look at it, to find in vain that the slab is not in `returned` any more. */
static void slab_begin(pane_slab *slab) {
  WRITES(slab->live);
  slab->used = 0;
  slab->live = 0;
  slab->left = false;
}

/* The reader is done with the slab: back to the input, unless that has plenty. */
static void slab_give(pane_input *in, pane_slab *slab) {
  while (slab->size == SLAB_MAX) {
    AT(reclaim_free);
    pane_slab *top = returned_read(&in->returned);
    if (top) READS(top->depth);
    WRITES(slab->next);
    slab->next = top;
    slab->depth = top ? top->depth + 1 : 1; /* only the reader writes it, in whatever use the slab is */
    if (slab->depth > SPARES_MAX) break;
    AT(reclaim_free);
    if (returned_push(&in->returned, top, slab)) return;
  }
  memory_free(slab);
}

/* A node with so many bytes of data, not linked. NULL when out of memory; nothing has changed. */
static pane *pane_new(pane_input *in, size_t data) {
  size_t size = sizeof(pane) + packed_round(data);
  if (!in->slab || in->slab->size - in->slab->used < size) {
    pane_slab *slab = slab_new(in, size);
    if (!slab) return NULL;
    slab_begin(slab);
    in->slab = slab;
  }
  pane *p = (pane *)(void *)((uint8_t *)(in->slab + 1) + in->slab->used);
  in->slab->used += size;
  *p = (pane){.slab = in->slab};
  cell_init(&p->next, 0);
  return p;
}

/* The reader is done with the node. */
static void pane_release(const pane_hive *h, pane *p) {
  if (p->owns) {
    packed data = pane_packed(p);
    uint8_t *at = data.columns;
    for (int32_t a = 0; a < h->functions->n; a++) {
      partial_list list = packed_next(&data, h->kinds[a], a, &at);
      if (!list.rows) partial_drop(h->kinds[a], list.partials, list.n);
    }
  }
  pane_slab *slab = p->slab;
  WRITES(slab->live);
  if (--slab->live == 0 && slab->left) slab_give(&h->input[p->input], slab);
}

/* ---- an input ---- */

/* Hands the private slice over, empty or not, and begins the next one at `position`. */
static bool pane_hive_publish(pane_input *in, pane_windows w, uint64_t position) {
  uint64_t plain;
  size_t size = slice_packed_size(&in->slice, &plain);
  pane *p = pane_new(in, size);
  if (!p) return false;
  p->begin = in->begin;
  p->position = position;
  p->through = in->tuples;
  p->n = in->slice.n;
  p->limit = in->slice.slot_capacity;
  p->input = (int32_t)in->slice.input;
  p->plain = plain;
  slice_pack(&in->slice, p + 1, plain, &p->owns);
  WRITES(*p);
  AT(publish);
  pane_link_publish(&in->last->next, p); /* linearization point of add, heartbeat and close */
  in->last = p;
  in->begin = position;
  in->end = position == PANE_FOREVER ? PANE_FOREVER : next_edge(w, position);
  return true;
}

/* The first row from `row` on that is not before the edge; most slices are short, so the steps begin small. */
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
  return slice_expect(&h->input[input].slice, (uint32_t)(limit > 0 ? limit - 1 : 0));
}

bool pane_hive_add(pane_hive *h, int32_t input, const batch *b, const uint32_t *numbers) {
  pane_input *in = &h->input[input];
  const int64_t *ts = (const int64_t *)b->columns[0].values + b->columns[0].first;
  for (int64_t row = 0; row < b->rows;) {
    uint64_t now = (uint64_t)ts[row];
    if (now >= in->end && !pane_hive_publish(in, h->windows, last_edge(h->windows, now))) return false;
    int64_t end = rows_before(ts, row, b->rows, in->end);
    bool counts = is_covered(h->windows, in->begin); /* tuples between windows are not kept */
    if (counts && !slice_fold(&in->slice, b, numbers, row, end, end == b->rows)) return false;
    in->tuples += end - row;
    row = end;
  }
  return true;
}

bool pane_hive_heartbeat(pane_hive *h, int32_t input, uint64_t ts) {
  pane_input *in = &h->input[input];
  return ts < in->end || pane_hive_publish(in, h->windows, last_edge(h->windows, ts));
}

bool pane_hive_close(pane_hive *h, int32_t input) {
  return pane_hive_publish(&h->input[input], h->windows, PANE_FOREVER);
}

/* ---- the reader: totals ---- */

static bool resize(void **array, int64_t from, int64_t to, size_t element) {
  uint8_t *bigger = memory_resize(*array, (size_t)to * element);
  if (!bigger) return false;
  memset(bigger + (size_t)from * element, 0, (size_t)(to - from) * element);
  *array = bigger;
  return true;
}

/* Room for key numbers below `limit`. */
static bool reserve_totals(pane_hive *h, int64_t limit) {
  pane_reader *r = &h->reader;
  if (limit <= r->capacity) return true;
  bool ok = roster_expect(&r->roster, limit) && resize((void **)&r->rows, r->capacity, limit, sizeof *r->rows);
  for (int32_t a = 0; ok && a < h->functions->n; a++) {
    size_t size = h->kinds[a]->size;
    if (size) ok = resize(&r->totals[a].total, r->capacity, limit, size);
    if (ok && h->kinds[a]->stacked) ok = resize(&r->totals[a].front, r->capacity, limit, size);
  }
  if (ok) r->capacity = limit;
  return ok;
}

static bool enter(pane_hive *h, pane *node) {
  pane_reader *r = &h->reader;
  packed p = pane_packed(node);
  if (!reserve_totals(h, node->limit) || !roster_list(&r->roster, p.keys, p.n)) return false;
  for (int64_t i = 0; i < p.n; i++) r->rows[p.keys[i]] += p.rows[i];
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < h->functions->n; a++) {
    partial_list list = packed_next(&p, h->kinds[a], a, &at);
    if (h->kinds[a]->size && !h->kinds[a]->enter(&r->totals[a], &list)) return false;
  }
  return true;
}

static bool leave(pane_hive *h, pane *node) {
  pane_reader *r = &h->reader;
  packed p = pane_packed(node);
  for (int64_t i = 0; i < p.n; i++) r->rows[p.keys[i]] -= p.rows[i];
  uint8_t *at = p.columns;
  bool ok = true;
  for (int32_t a = 0; a < h->functions->n; a++) {
    partial_list list = packed_next(&p, h->kinds[a], a, &at);
    if (h->kinds[a]->stacked) {
      h->kinds[a]->pop(&r->totals[a], &list);
    } else if (h->kinds[a]->size) {
      ok = h->kinds[a]->leave(&r->totals[a], &list) && ok;
    }
  }
  return ok;
}

static pane **held_at(const pane_reader *r, uint64_t i) { return &r->held[i & ((uint64_t)r->held_capacity - 1)]; }

/* The front stacks are empty: everything goes there, the newest slice first. */
static void turn(pane_hive *h) {
  pane_reader *r = &h->reader;
  for (uint64_t i = r->held_end; i-- > r->held_first;) {
    pane *node = *held_at(r, i);
    packed p = pane_packed(node);
    uint8_t *at = p.columns;
    for (int32_t a = 0; a < h->functions->n; a++) {
      partial_list list = packed_next(&p, h->kinds[a], a, &at);
      if (h->kinds[a]->stacked) h->kinds[a]->push(&r->totals[a], &list);
    }
  }
  r->held_turned = r->held_end;
}

/* ---- the reader: nodes ---- */

static bool hold(pane_reader *r, pane *node) {
  if ((int64_t)(r->held_end - r->held_first) == r->held_capacity) {
    int64_t capacity = r->held_capacity ? 2 * r->held_capacity : 64;
    pane **ring = memory_new((size_t)capacity * sizeof(pane *));
    if (!ring) return false;
    for (uint64_t i = r->held_first; i < r->held_end; i++) ring[i & ((uint64_t)capacity - 1)] = *held_at(r, i);
    memory_free(r->held);
    r->held = ring;
    r->held_capacity = capacity;
  }
  *held_at(r, r->held_end++) = node;
  node->held = true;
  r->partials += node->n;
  return true;
}

/* The first window that is not delivered and that a held slice is in. */
static void set_due(pane_hive *h) {
  pane_reader *r = &h->reader;
  r->due = PANE_FOREVER;
  if (r->held_first == r->held_end) return;
  uint64_t start = first_start(h->windows, (*held_at(r, r->held_first))->begin);
  if (start < r->start_next) start = r->start_next;
  r->due = start + h->windows.size;
}

/* Moves the cursor of the slowest input to its next node and takes the slice in. */
static bool step(pane_hive *h, int32_t input, pane *node) {
  pane_reader *r = &h->reader;
  pane *left = r->cursor[input];
  if (node->n > 0 && (!enter(h, node) || !hold(r, node))) return false;
  node->slab->live++;
  r->cursor[input] = node;
  left->slab->left = left->slab != node->slab;
  if (!left->held) pane_release(h, left);
  tournament_update(&r->seen, node->position);
  if (r->due == PANE_FOREVER) set_due(h);
  return true;
}

static pane *pane_hive_read(const pane *cursor) {
  AT(next_read);
  pane *node = pane_link_read(&cursor->next); /* nothing there: the linearization point of that answer */
  if (node) READS(*node);
  return node;
}

ps_code pane_hive_next(pane_hive *h, int64_t *start) {
  pane_reader *r = &h->reader;
  while (tournament_lowest(&r->seen) < r->due) {
    int32_t slowest = tournament_winner(&r->seen);
    pane *node = pane_hive_read(r->cursor[slowest]);
    if (!node) return PS_EMPTY;
    if (!step(h, slowest, node)) return PS_NO_MEMORY;
  }
  if (r->due == PANE_FOREVER) return PS_END;
  *start = (int64_t)(r->due - h->windows.size);
  return PS_OK;
}

/* Puts a row per key that has tuples in the window. All slices held are in it: those that begin behind its end have not
   been read, for its end is not behind the slowest input; those before its start have been dropped. */
ps_code pane_hive_combine(pane_hive *h, int64_t start, out_rows *rows, ps_fault *fault) {
  pane_reader *r = &h->reader;
  AT(next_combine);
  int64_t n = roster_live(&r->roster, r->rows), failed_row = INT64_MAX;
  uint64_t *starts = n < 0 ? NULL : out_reserve(rows, 0, n);
  if (!starts || !roster_put(&r->roster, n, rows)) return PS_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) starts[i] = (uint64_t)start;
  partial_list keys = {.keys = r->roster.live, .n = n};
  for (int32_t a = 0; a < h->functions->n; a++) {
    int64_t row = 0;
    const aggregate *f = &h->functions->each[a];
    ps_code code = partial_finish(f, &r->totals[a], &keys, r->rows, rows, 1 + r->roster.columns + a, &row);
    if (code == PS_NO_MEMORY) return code;
    if (code != PS_OK && row < failed_row) { /* the first row that fails is named, in it the first aggregate */
      failed_row = row;
      *fault = (ps_fault){.ts = start, .aggregate = a, .key = key_table_at(r->roster.table, keys.keys[row])};
    }
  }
  if (failed_row < INT64_MAX) return PS_OVERFLOW;
  out_end_rows(rows, n);
  return PS_OK;
}

ps_code pane_hive_drop(pane_hive *h, int64_t start) {
  pane_reader *r = &h->reader;
  AT(next_drop);
  bool ok = true;
  r->start_next = (uint64_t)start + h->windows.advance;
  while (r->held_first < r->held_end && (*held_at(r, r->held_first))->begin < r->start_next) {
    if (h->stacked && r->held_first == r->held_turned) turn(h);
    pane *node = *held_at(r, r->held_first++);
    ok = leave(h, node) && ok;
    node->held = false;
    r->partials -= node->n;
    if (r->cursor[node->input] != node) pane_release(h, node);
  }
  set_due(h);
  return ok ? PS_OK : PS_NO_MEMORY;
}

int64_t pane_hive_through(const pane_hive *h, int32_t input) { return h->reader.cursor[input]->through; }

/* ---- making and freeing ---- */

static bool input_init(pane_hive *h, int32_t i) {
  pane_input *in = &h->input[i];
  if (!slice_init(&in->slice, h->functions, h->kinds, i)) return false;
  in->last = pane_new(in, 0);
  if (!in->last) {
    slice_free(&in->slice);
    return false;
  }
  in->last->slab->live = 1;
  in->last->input = i;
  in->end = next_edge(h->windows, 0);
  cell_init(&in->returned, 0);
  h->reader.cursor[i] = in->last;
  return true;
}

static bool kinds_init(pane_hive *h) {
  h->kinds = memory_new((size_t)h->functions->n * sizeof *h->kinds);
  h->reader.totals = memory_new((size_t)h->functions->n * sizeof *h->reader.totals);
  if (!h->kinds || !h->reader.totals) return false;
  for (int32_t a = 0; a < h->functions->n; a++) {
    h->kinds[a] = partial_kind_of(&h->functions->each[a]);
    assert(h->kinds[a] && "no user functions here");
    h->stacked |= h->kinds[a]->stacked;
  }
  return true;
}

bool pane_hive_init(pane_hive *h, pane_windows windows, const aggregates *functions, const pane_keys *keys,
                    int32_t inputs) {
  *h = (pane_hive){.windows = windows, .functions = functions};
  pane_reader *r = &h->reader;
  r->due = PANE_FOREVER;
  h->input = memory_new((size_t)inputs * sizeof *h->input);
  r->cursor = memory_new((size_t)inputs * sizeof *r->cursor);
  bool ok = kinds_init(h) && h->input && r->cursor && tournament_init(&r->seen, inputs) &&
            roster_init(&r->roster, keys->table, keys->columns, keys->types);
  for (; ok && h->inputs < inputs; h->inputs++) ok = input_init(h, h->inputs);
  if (ok) return true;
  if (h->inputs) h->inputs--; /* the last one was not made */
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

/* What is in the list behind the cursor, and the list's last node. */
static void input_free(pane_hive *h, int32_t i) {
  pane *p = h->reader.cursor[i];
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
  pane_reader *r = &h->reader;
  for (uint64_t i = r->held_first; i < r->held_end; i++) {
    pane *node = *held_at(r, i);
    if (r->cursor[node->input] != node) pane_release(h, node);
  }
  for (int32_t i = 0; i < h->inputs; i++) input_free(h, i);
  for (int32_t a = 0; r->totals && a < h->functions->n; a++) {
    if (r->totals[a].total) partial_drop(h->kinds[a], r->totals[a].total, r->capacity);
    memory_free(r->totals[a].total);
    memory_free(r->totals[a].front);
  }
  memory_free(r->totals);
  memory_free(r->rows);
  memory_free(r->held);
  memory_free(r->cursor);
  tournament_free(&r->seen);
  roster_free(&r->roster);
  memory_free(h->kinds);
  memory_free(h->input);
}
