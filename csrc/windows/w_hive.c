/* w_hive.c - see w_hive.h. */
#include "windows/w_hive.h"

#include "windows/edges.h"
#include "gates/skip_list.h"
#include "windows/window_add.h"

/* A thread's first winset has 2 ^ BUCKET_BITS_MIN buckets. If it gets more keys, later ones get more buckets. */
enum { BUCKET_BITS_MIN = SIZED(4, 1), BUCKET_BITS_MAX = SIZED(20, 3) };

typedef struct {
  cell_alone written;
  cell_alone anchor_start; /* start of `anchor`; 0 for the head, since nothing starts before it */
  /* Used only by the thread itself from here on. */
  uint64_t position; /* the value of `written` */
  skip_node *anchor;
  skip_node *path[SKIP_LEVELS_MAX]; /* of the current search: on each level the last node not after the start */
  skip_tower tower;
  int32_t bucket_bits; /* of the next winset */
  adder by;
  target *targets;
  int64_t targets_capacity;
  uint8_t apart[64]; /* separates it from the next thread's */
} updater;

struct w_hive {
  pane_windows times;
  ps_flag *stop; /* NULL: none */
  win_set_shape shape;
  ps_counter windows; /* statistics */
  int32_t levels;
  updater *updater;
  skip_node *head;
  skip_node *readhead; /* reader: the node delivered last */
  skip_node *oldest;   /* reader: the first node not freed; NULL: nothing delivered yet */
};

/* ---- nodes ---- */

static win_set *winset_of(const skip_node *node) { return (win_set *)(uintptr_t)node->payload[0]; }

static skip_node *node_new(int64_t start, int height) {
  skip_node *node = memory_new(skip_node_bytes(height));
  if (!node) return NULL;
  WRITES(node->key);
  node->key = (skip_key){start, 0};
  WRITES(node->height);
  node->height = (uint8_t)height;
  return node;
}

static void node_free(skip_node *node) {
  win_set_free(winset_of(node));
  memory_free(node);
}

/* ---- making and freeing ---- */

/* From an anchor to the last window of a call there are about as many nodes as windows overlap, and as many again
   between two nodes of full height; heights are drawn in steps of 4. The distance between threads does not matter. */
static int32_t levels_for(int64_t size, int64_t advance) {
  int32_t levels = 2;
  for (int64_t open = size / advance / 4; open > 0 && levels < SKIP_LEVELS_MAX; open /= 4) levels++;
  return levels;
}

static void updater_init(w_hive *hive, int32_t thread) {
  updater *u = &hive->updater[thread];
  cell_init(&u->written.word, 0);
  cell_init(&u->anchor_start.word, 0);
  u->anchor = hive->head;
  u->tower = skip_tower_new(hive->levels, 2 << (2 * (hive->levels - 1)), (uint64_t)thread);
  u->bucket_bits = BUCKET_BITS_MIN;
  u->by = (adder){thread, thread};
}

static int32_t lanes_for(w_hive_sharing sharing, int32_t threads) {
  return sharing == W_HIVE_WORDS ? 0 : sharing == W_HIVE_OWN_KEYS ? 1 : threads;
}

w_hive *w_hive_new(int64_t size, int64_t advance, const aggregates *functions, int32_t threads, w_hive_sharing sharing,
                   int32_t levels) {
  assert(size > 0 && advance > 0 && threads > 0 && levels <= SKIP_LEVELS_MAX);
  assert(sharing != W_HIVE_LANES || functions->combines);
  assert(sharing != W_HIVE_WORDS || functions->words > 0);
  w_hive *hive = memory_new(sizeof *hive);
  if (!hive) return NULL;
  *hive = (w_hive){.times = {(uint64_t)size, (uint64_t)advance}};
  hive->shape = (win_set_shape){functions, threads, lanes_for(sharing, threads), &hive->windows};
  hive->levels = levels ? levels : levels_for(size, advance);
  hive->updater = memory_new((size_t)threads * sizeof *hive->updater);
  hive->head = node_new(-1, hive->levels);
  if (!hive->updater || !hive->head) {
    w_hive_free(hive);
    return NULL;
  }
  hive->readhead = hive->head;
  for (int32_t level = 0; level < hive->levels; level++) link_init(&hive->head->next[level], NULL);
  for (int32_t i = 0; i < threads; i++) updater_init(hive, i);
  return hive;
}

void w_hive_stop_at(w_hive *hive, ps_flag *stop) { hive->stop = stop; }

/* The nodes before `oldest` are freed already; the head is freed last. */
static void nodes_free(w_hive *hive) {
  if (!hive->head) return;
  skip_node *node = hive->oldest ? hive->oldest : link_last(&hive->head->next[0]);
  while (node) {
    skip_node *next = link_last(&node->next[0]);
    node_free(node);
    node = next;
  }
  node_free(hive->head);
}

void w_hive_free(w_hive *hive) {
  if (!hive) return;
  nodes_free(hive);
  for (int32_t i = 0; hive->updater && i < hive->shape.threads; i++) memory_free(hive->updater[i].targets);
  memory_free(hive->updater);
  memory_free(hive);
}

/* ---- positions and anchors ---- */

/* The last node not after this start is the last one not after this key. */
static skip_key key_of(uint64_t start) { return (skip_key){start < INT64_MAX ? (int64_t)start : INT64_MAX, 0}; }

static void publish(updater *u, uint64_t position) {
  if (position <= u->position) return;
  u->position = position;
  AT(publish);
  position_publish(&u->written.word, position);
}

static void anchor_to(updater *u, skip_node *node) {
  if (node == u->anchor) return;
  u->anchor = node;
  AT(update_anchor);
  anchor_move(&u->anchor_start.word, (uint64_t)node->key.ts);
}

/* Walks on the top level to the last node not after `start`. For the first window of a call the anchor advances too:
   the thread never needs earlier windows again (I4). */
static skip_node *top_walk(const w_hive *hive, updater *u, uint64_t start, bool first) {
  skip_node *node = skip_list_walk(u->anchor, hive->levels - 1, key_of(start));
  if (first) anchor_to(u, node);
  return node;
}

void w_hive_heartbeat(w_hive *hive, int32_t thread, int64_t ts) {
  updater *u = &hive->updater[thread];
  uint64_t first = first_start(hive->times, (uint64_t)ts);
  publish(u, first);
  top_walk(hive, u, first, true);
}

void w_hive_close(w_hive *hive, int32_t thread) {
  updater *u = &hive->updater[thread];
  publish(u, W_HIVE_END);
  AT(update_anchor);
  anchor_move(&u->anchor_start.word, W_HIVE_END);
}

/* ---- update ---- */

/* Links a node for this start after the path that the search has set. Returns the node that now has the start, which
   may be another thread's. NULL: out of memory. */
static skip_node *node_insert(w_hive *hive, updater *u, uint64_t start) {
  skip_node *node = node_new((int64_t)start, skip_tower_draw(&u->tower));
  win_set *set = node ? win_set_new(&hive->shape, (int64_t)start, u->bucket_bits) : NULL;
  if (!set) {
    memory_free(node);
    return NULL;
  }
  WRITES(node->payload);
  node->payload[0] = (uintptr_t)set;
  skip_node *winner = skip_list_link_unique(u->path[0], node);
  if (winner != node) {
    node_free(node);
    return winner;
  }
  for (int level = 1; level < node->height; level++) skip_list_link_level(u->path[level], level, node);
  return node;
}

/* The winset of this start, made if it is missing. NULL: out of memory. */
static win_set *locate(w_hive *hive, updater *u, uint64_t start, bool first) {
  skip_node *node = u->path[hive->levels - 1] = top_walk(hive, u, start, first);
  for (int level = hive->levels - 2; level >= 0; level--) {
    u->path[level] = node = skip_list_walk(node, level, key_of(start));
  }
  READS(node->key);
  if (node->key.ts != (int64_t)start) node = node_insert(hive, u, start);
  if (!node) return NULL;
  READS(node->payload);
  return winset_of(node);
}

#define STOP_EVERY SIZED(1024, 1) /* windows between two reads of `stop` */

static bool is_stopped(const w_hive *hive, int64_t windows) {
  return windows % STOP_EVERY == 0 && hive->stop && ps_flag_get(hive->stop);
}

/* Finds the windows of the tuple, from `first` on. *found counts them, also on failure. */
static ps_code prepare(w_hive *hive, updater *u, uint64_t first, int64_t windows, const key *k, int64_t *found) {
  if (!memory_grow((void **)&u->targets, &u->targets_capacity, windows, sizeof *u->targets)) return PS_NO_MEMORY;
  for (; *found < windows; ++*found) {
    if (is_stopped(hive, *found)) return PS_CLOSED;
    win_set *set = locate(hive, u, first + (uint64_t)*found * hive->times.advance, *found == 0);
    if (!set || !target_find(&hive->shape, &u->by, set, k, &u->targets[*found])) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static ps_code reserve(const w_hive *hive, const updater *u, int64_t windows, const added *what) {
  bool rare = target_is_rare(&hive->shape, what);
  for (int64_t i = 0; (rare || what->journal) && i < windows; i++) {
    if (is_stopped(hive, i)) return PS_CLOSED;
    if (!target_reserve(&hive->shape, &u->targets[i], what, rare)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

/* Later winsets get more buckets if the first of these, which has the most tuples, is crowded. */
static void add(const w_hive *hive, updater *u, int64_t windows, const added *what) {
  for (int64_t i = 0; i < windows; i++) target_add(&hive->shape, &u->by, &u->targets[i], what);
  bool many = win_set_crowd(u->targets[0].set, u->by.thread) > INT64_C(1) << u->bucket_bits;
  if (many && u->bucket_bits < BUCKET_BITS_MAX) u->bucket_bits++;
}

ps_code w_hive_update_windows(w_hive *hive, int32_t thread, int64_t ts, const key *k, const batch *b, int64_t row,
                              out_rows *journal) {
  updater *u = &hive->updater[thread];
  uint64_t first = first_start(hive->times, (uint64_t)ts), last = last_start(hive->times, (uint64_t)ts);
  publish(u, first);
  if (first > last) { /* between two windows */
    top_walk(hive, u, first, true);
    return PS_OK;
  }
  int64_t windows = (int64_t)((last - first) / hive->times.advance) + 1, found = 0, steps = journal ? journal->rows : 0;
  added what = {b, row, journal};
  ps_code code = prepare(hive, u, first, windows, k, &found);
  if (code == PS_OK) code = reserve(hive, u, windows, &what);
  if (code == PS_OK) {
    add(hive, u, windows, &what);
  } else {
    for (int64_t i = 0; i < found; i++) target_drop(&hive->shape, &u->by, &u->targets[i]);
    if (journal) journal->rows = steps;
  }
  return code;
}

/* ---- output ---- */

int64_t w_hive_windows(w_hive *hive) { return ps_counter_get(&hive->windows); }

int64_t w_hive_oldest(const w_hive *hive) {
  AT(next_read);
  const skip_node *node = link_read(&hive->readhead->next[0]);
  if (!node) return INT64_MAX;
  READS(node->key);
  return node->key.ts;
}

int64_t w_hive_newest(const w_hive *hive) {
  int64_t start = -1;
  AT(next_read);
  for (const skip_node *node = link_read(&hive->readhead->next[0]); node; node = link_read(&node->next[0])) {
    READS(node->key);
    start = node->key.ts;
    AT(next_read);
  }
  return start;
}

uint64_t w_hive_limit(const w_hive *hive) {
  uint64_t low = W_HIVE_END;
  for (int32_t i = 0; i < hive->shape.threads; i++) {
    AT(next_scan);
    uint64_t written = position_read(&hive->updater[i].written.word);
    if (written < low) low = written;
  }
  return low;
}

/* Frees the nodes before all anchors and before readhead: they are delivered, and no search begins there any more. */
static void reclaim(w_hive *hive) {
  uint64_t limit = (uint64_t)hive->readhead->key.ts;
  for (int32_t i = 0; i < hive->shape.threads; i++) {
    AT(reclaim_scan);
    uint64_t start = anchor_read(&hive->updater[i].anchor_start.word);
    if (start < limit) limit = start;
  }
  while ((uint64_t)hive->oldest->key.ts < limit) {
    skip_node *next = link_last(&hive->oldest->next[0]);
    node_free(hive->oldest);
    hive->oldest = next;
  }
}

/* `written` is read before `next`: a winset inserted later between readhead and the node read would need a thread whose
   `written` is not past it. */
static ps_code take(w_hive *hive, win_set **out) {
  uint64_t limit = w_hive_limit(hive);
  AT(next_read);
  skip_node *node = link_read(&hive->readhead->next[0]);
  if (!node) return limit == W_HIVE_END ? PS_END : PS_EMPTY;
  READS(node->key);
  if ((uint64_t)node->key.ts >= limit) return PS_EMPTY;
  hive->readhead = node;
  if (!hive->oldest) hive->oldest = node;
  READS(node->payload);
  *out = winset_of(node);
  WRITES(node->payload);
  node->payload[0] = 0; /* no other thread reads the winset of a delivered node (I3) */
  reclaim(hive);
  return PS_OK;
}

/* Skips winsets without tuples: calls that ran out of memory leave them. */
ps_code w_hive_get_next_winset(w_hive *hive, win_set **out) {
  ps_code code = take(hive, out);
  while (code == PS_OK && win_set_is_empty(*out)) {
    win_set_free(*out);
    code = take(hive, out);
  }
  return code;
}

/* ---- snapshots ---- */

bool w_hive_each(w_hive *hive, window_visit visit, void *context) {
  AT(next_read);
  for (const skip_node *node = link_read(&hive->readhead->next[0]); node; node = link_read(&node->next[0])) {
    if (!win_set_each(winset_of(node), visit, context)) return false;
    AT(next_read);
  }
  return true;
}

ps_code w_hive_load(w_hive *hive, int32_t thread, int64_t start, const key *k, const uint8_t *state) {
  updater *u = &hive->updater[thread];
  win_set *set = locate(hive, u, (uint64_t)start, false);
  target to;
  if (!set || !target_find(&hive->shape, &u->by, set, k, &to)) return PS_NO_MEMORY;
  return target_load(&hive->shape, &u->by, &to, state);
}

void w_hive_number(w_hive *hive, int64_t next) {
  for (int32_t i = 0; i < hive->shape.threads; i++) hive->updater[i].by.udf_window = next + i;
}
