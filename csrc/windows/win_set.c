/* win_set.c - see win_set.h. */
#include "windows/win_set.h"

/* ---- items of one size for one thread ---- */

/* A thread's first block is small, since most winsets may have few keys. Blocks double, up to a size at which the
   allocator's overhead no longer counts. */
enum { ITEMS_FIRST = SIZED(4, 1), ITEMS_BYTES_MAX = SIZED(1 << 16, 1) };

typedef struct items {
  struct items *older;
  int64_t used, capacity;
  _Alignas(16) uint8_t data[]; /* states contain 128-bit integers */
} items;

/* What one thread has added to the winset, and its shortcuts; used only by that thread until the winset is complete. */
typedef struct {
  items *windows;
  items *states;
  window **shortcut;     /* [i]: a window whose hash begins with i - 1, in the same bucket; NULL: none known */
  int32_t shortcut_bits; /* bits of the hash that index shortcut; 0: no shortcuts */
  int64_t used;          /* windows that the thread has used first; in words: that it has inserted */
} nursery;

struct win_set {
  const win_set_shape *shape;
  int64_t start;
  int32_t bucket_bits; /* bits of the hash that index bucket */
  ps_counter windows;  /* inserted by all threads */
  nursery *nursery;    /* per thread; stored after the buckets */
  cell bucket[];
};

static bool items_grow(items **newest, size_t size) {
  int64_t capacity = *newest ? 2 * (*newest)->capacity : ITEMS_FIRST;
  if (*newest && (size_t)capacity * size > ITEMS_BYTES_MAX) capacity = (*newest)->capacity;
  items *more = memory_new(sizeof *more + (size_t)capacity * size);
  if (!more) return false;
  WRITES(more->capacity);
  more->older = *newest;
  more->capacity = capacity;
  WRITES(*newest);
  *newest = more;
  return true;
}

static void *item_new(items **newest, size_t size) {
  if ((!*newest || (*newest)->used == (*newest)->capacity) && !items_grow(newest, size)) return NULL;
  WRITES((*newest)->used);
  return (*newest)->data + (size_t)(*newest)->used++ * size;
}

/* Returns the newest item, zeroed as it was. */
static void item_return(items *newest, size_t size) {
  WRITES(newest->used);
  memset(newest->data + (size_t)--newest->used * size, 0, size);
}

static void items_free(items *newest) {
  while (newest) {
    items *older = newest->older;
    memory_free(newest);
    newest = older;
  }
}

/* ---- the winset ---- */

static bool in_words(const win_set *set) { return set->shape->lanes == 0; }

static size_t window_size(const win_set_shape *shape) {
  return sizeof(window) +
         (shape->lanes ? (size_t)shape->lanes * sizeof(uint8_t *) : (size_t)shape->functions->words * sizeof(cell));
}

static size_t state_size(const win_set_shape *shape) { return (size_t)shape->functions->state_size; }

win_set *win_set_new(const win_set_shape *shape, int64_t start, int32_t bucket_bits) {
  int64_t buckets = INT64_C(1) << bucket_bits;
  size_t table = (size_t)buckets * sizeof(cell);
  win_set *set = memory_new(sizeof *set + table + (size_t)shape->threads * sizeof(nursery));
  if (!set) return NULL;
  WRITES(*set);
  *set = (win_set){.shape = shape, .start = start, .bucket_bits = bucket_bits};
  set->nursery = (nursery *)(void *)&set->bucket[buckets];
  for (int64_t i = 0; i < buckets; i++) link_init(&set->bucket[i], NULL);
  return set;
}

int64_t win_set_inserted(const win_set *set, int32_t thread) {
  READS(set->nursery[thread]);
  int64_t windows = 0;
  for (const items *i = set->nursery[thread].windows; i; i = i->older) windows += i->used;
  return windows;
}

static window *window_at(const win_set *set, const items *from, int64_t i) {
  return (window *)(void *)((uint8_t *)(uintptr_t)from->data + (size_t)i * window_size(set->shape));
}

static void drop_states(const win_set *set, const items *states) {
  size_t size = state_size(set->shape);
  for (; states; states = states->older) {
    for (int64_t i = 0; i < states->used; i++) {
      aggregates_drop(set->shape->functions, (uint8_t *)(uintptr_t)states->data + (size_t)i * size);
    }
  }
}

static void drop_words(const win_set *set, const items *windows) {
  for (; windows && in_words(set); windows = windows->older) {
    for (int64_t i = 0; i < windows->used; i++) {
      shared_drop(set->shape->functions, win_set_words(window_at(set, windows, i)));
    }
  }
}

void win_set_free(win_set *set) {
  if (!set) return;
  for (int32_t i = 0; i < set->shape->threads; i++) {
    READS(set->nursery[i]);
    if (set->shape->windows) ps_counter_add(set->shape->windows, -win_set_inserted(set, i));
    drop_states(set, set->nursery[i].states);
    drop_words(set, set->nursery[i].windows);
    items_free(set->nursery[i].states);
    items_free(set->nursery[i].windows);
    memory_free(set->nursery[i].shortcut);
  }
  memory_free(set);
}

int64_t win_set_start(const win_set *set) { return set->start; }

/* ---- finding and inserting ---- */

/* Keys of one operator are stored once, so most comparisons end at the address or the hash. */
static int order(const key *a, const key *b) {
  if (a == b) return 0;
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  return key_compare(a, b);
}

/* The first n bits of the hash: buckets and shortcuts have the order of the lists. */
static int64_t hash_prefix(uint64_t hash, int32_t n) { return n ? (int64_t)(hash >> (64 - n)) : 0; }

static cell *bucket_of(win_set *set, const key *k) { return &set->bucket[hash_prefix(k->hash, set->bucket_bits)]; }

/* Searches from *link on: the window of the key. If there is none, *link is its place and *next its successor. */
static window *search(cell **link, const key *k, window **next) {
  for (;;) {
    AT(find_read);
    window *w = link_read(*link);
    if (!w) break;
    READS(w->key);
    int at = order(w->key, k);
    if (at == 0) return w;
    *next = w;
    if (at > 0) return NULL;
    *link = &w->next;
  }
  *next = NULL;
  return NULL;
}

window *win_set_find(win_set *set, const key *k) {
  cell *link = bucket_of(set, k);
  window *next;
  return search(&link, k, &next);
}

static window *window_new(win_set *set, int32_t thread, const key *k) {
  window *w = item_new(&set->nursery[thread].windows, window_size(set->shape));
  if (!w) return NULL;
  WRITES(w->key);
  w->key = k;
  if (in_words(set)) shared_init(set->shape->functions, win_set_words(w));
  return w;
}

/* ---- shortcuts: keep a winset with many more keys than buckets fast for a thread that uses many of them ---- */

/* A search for any hash with the next prefix may begin at the window, if it is in the same bucket. */
static void shortcut_put(const win_set *set, nursery *n, window *w) {
  int32_t below = n->shortcut_bits - set->bucket_bits;
  int64_t next = hash_prefix(w->key->hash, n->shortcut_bits) + 1;
  if ((next & ((INT64_C(1) << below) - 1)) == 0) return;
  window *known = n->shortcut[next];
  if (!known || order(known->key, w->key) < 0) n->shortcut[next] = w;
}

/* Makes twice as many shortcuts as windows that the thread has used. Out of memory: keeps those it has. */
static void shortcuts_grow(const win_set *set, nursery *n) {
  nursery old = *n;
  int32_t more = old.shortcut_bits ? old.shortcut_bits + 2 : set->bucket_bits + 4;
  window **shortcut = memory_new((size_t)(INT64_C(1) << more) * sizeof *shortcut);
  if (!shortcut) return;
  WRITES(n->shortcut);
  n->shortcut = shortcut;
  n->shortcut_bits = more;
  for (int64_t i = 0; old.shortcut && i < INT64_C(1) << old.shortcut_bits; i++) {
    if (old.shortcut[i]) shortcut_put(set, n, old.shortcut[i]);
  }
  for (const items *from = n->windows; from; from = from->older) {
    for (int64_t i = 0; i < from->used; i++) shortcut_put(set, n, window_at(set, from, i));
  }
  memory_free(old.shortcut);
}

/* Where a search may begin: a linked window stays linked, so a window before the key stays before it (I2). */
static cell *begin_of(win_set *set, int32_t thread, const key *k) {
  const nursery *n = &set->nursery[thread];
  if (!n->shortcut_bits) return bucket_of(set, k);
  int64_t first = hash_prefix(k->hash, set->bucket_bits) << (n->shortcut_bits - set->bucket_bits);
  for (int64_t i = hash_prefix(k->hash, n->shortcut_bits); i > first; i--) {
    if (n->shortcut[i]) return &n->shortcut[i]->next;
  }
  return bucket_of(set, k);
}

void win_set_used(win_set *set, int32_t thread, window *w) {
  nursery *n = &set->nursery[thread];
  n->used++;
  int32_t bits = n->shortcut_bits ? n->shortcut_bits : set->bucket_bits + 2;
  if (n->used > INT64_C(1) << bits) shortcuts_grow(set, n);
  if (n->shortcut_bits) shortcut_put(set, n, w);
}

static void note_inserted(win_set *set, int32_t thread, window *w) {
  ps_counter_add(&set->windows, 1);
  if (set->shape->windows) ps_counter_add(set->shape->windows, 1);
  if (in_words(set)) win_set_used(set, thread, w);
}

window *win_set_find_or_insert(win_set *set, int32_t thread, const key *k) {
  cell *link = begin_of(set, thread, k);
  window *fresh = NULL;
  for (;;) {
    window *next;
    window *found = search(&link, k, &next);
    if (found) {
      if (fresh) item_return(set->nursery[thread].windows, window_size(set->shape)); /* another thread linked first */
      return found;
    }
    if (!fresh) fresh = window_new(set, thread, k);
    if (!fresh) return NULL;
    link_init(&fresh->next, next);
    AT(insert_cas);
    if (!link_swap(link, next, fresh)) continue;
    note_inserted(set, thread, fresh);
    return fresh;
  }
}

int64_t win_set_crowd(win_set *set, int32_t thread) {
  return in_words(set) ? ps_counter_get(&set->windows) : set->nursery[thread].used;
}

uint8_t *win_set_state_new(win_set *set, int32_t thread) {
  return item_new(&set->nursery[thread].states, state_size(set->shape));
}

void win_set_state_return(win_set *set, int32_t thread) {
  items *newest = set->nursery[thread].states;
  size_t size = state_size(set->shape);
  aggregates_drop(set->shape->functions, newest->data + (size_t)(newest->used - 1) * size);
  item_return(newest, size);
}

/* ---- reader ---- */

static bool window_is_empty(const win_set *set, window *w) {
  if (in_words(set)) return shared_is_empty(win_set_words(w));
  for (int32_t i = 0; i < set->shape->lanes; i++) {
    READS(w->lane[i]);
    if (w->lane[i]) return false;
  }
  return true;
}

bool win_set_is_empty(const win_set *set) {
  for (int32_t t = 0; t < set->shape->threads; t++) {
    READS(set->nursery[t]);
    for (const items *from = set->nursery[t].windows; from; from = from->older) {
      READS(from->used);
      for (int64_t i = 0; i < from->used; i++) {
        if (!window_is_empty(set, window_at(set, from, i))) return false;
      }
    }
  }
  return true;
}

/* Combines all lanes into the first one. A combined lane is set to NULL, so that a retry counts nothing twice. */
static bool combine_lanes(const win_set *set, window *w, uint8_t **state) {
  *state = NULL;
  for (int32_t i = 0; i < set->shape->lanes; i++) {
    READS(w->lane[i]);
    if (!w->lane[i]) continue;
    READS(*w->lane[i]);
    if (!*state) {
      *state = w->lane[i];
      continue;
    }
    if (!aggregates_combine(set->shape->functions, *state, w->lane[i])) return false;
    w->lane[i] = NULL;
  }
  return true;
}

/* The whole state of a window, NULL if it has no tuples; in words: made in `room`, which is zero. */
static bool state_of(const win_set *set, window *w, uint8_t *room, uint8_t **state) {
  if (!in_words(set)) return combine_lanes(set, w, state);
  *state = shared_is_empty(win_set_words(w)) ? NULL : room;
  return !*state || shared_take(set->shape->functions, win_set_words(w), room);
}

/* The windows that have tuples, and their states. */
typedef struct {
  window_row *row;
  int64_t n, capacity;
  uint8_t *states; /* in words: so many; else NULL */
} gathered;

static void gathered_free(const win_set *set, gathered *g) {
  for (int64_t i = 0; g->states && i < g->capacity; i++) {
    aggregates_drop(set->shape->functions, g->states + (size_t)i * state_size(set->shape));
  }
  memory_free(g->states);
  memory_free(g->row);
}

static bool gather(const win_set *set, int32_t thread, gathered *to) {
  READS(set->nursery[thread]);
  for (const items *from = set->nursery[thread].windows; from; from = from->older) {
    READS(from->used);
    for (int64_t i = 0; i < from->used; i++) {
      window *w = window_at(set, from, i);
      uint8_t *state, *room = to->states ? to->states + (size_t)to->n * state_size(set->shape) : NULL;
      if (!state_of(set, w, room, &state)) return false;
      if (state) to->row[to->n++] = (window_row){w->key, state};
    }
  }
  return true;
}

/* The windows of all threads; false: out of memory. */
static bool gather_all(const win_set *set, gathered *to) {
  *to = (gathered){0};
  for (int32_t t = 0; t < set->shape->threads; t++) to->capacity += win_set_inserted(set, t);
  to->row = memory_new((size_t)to->capacity * sizeof *to->row);
  if (in_words(set)) to->states = memory_new((size_t)to->capacity * state_size(set->shape));
  bool ok = to->row && (to->states || !in_words(set));
  for (int32_t t = 0; ok && t < set->shape->threads; t++) ok = gather(set, t, to);
  return ok;
}

ps_code win_set_output(win_set *set, int32_t keys, const ps_type *key_types, out_rows *rows, ps_fault *fault) {
  gathered g;
  ps_code code = PS_NO_MEMORY;
  if (gather_all(set, &g)) {
    code = window_rows_put(g.row, g.n, set->start, set->shape->functions, keys, key_types, rows, fault);
  }
  gathered_free(set, &g);
  return code;
}

static bool visit_one(const win_set *set, window *w, uint8_t *room, window_visit visit, void *context) {
  uint8_t *state;
  bool ok = state_of(set, w, room, &state) && (!state || visit(context, set->start, w->key, state));
  if (!in_words(set)) return ok;
  aggregates_drop(set->shape->functions, room);
  memset(room, 0, state_size(set->shape));
  return ok;
}

bool win_set_each(win_set *set, window_visit visit, void *context) {
  uint8_t *room = memory_new(state_size(set->shape));
  bool ok = room != NULL;
  for (int32_t t = 0; t < set->shape->threads; t++) {
    for (const items *from = set->nursery[t].windows; ok && from; from = from->older) {
      for (int64_t i = 0; ok && i < from->used; i++) ok = visit_one(set, window_at(set, from, i), room, visit, context);
    }
  }
  memory_free(room);
  return ok;
}
