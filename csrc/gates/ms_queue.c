/* ms_queue.c - see ms_queue.h. */
#include "gates/ms_queue.h"

typedef uint64_t word; /* a counted word */

#define NIL 0u
#define TAG_FIRST SIZED(UINT64_C(0), (UINT64_MAX - 2) << 32) /* any value will do: tags wrap */

static uint32_t node_of(word w) { return (uint32_t)w; }

/* A word for the node, with a tag one above that of the word it replaces. */
static word word_after(word before, uint32_t node) { return ((before >> 32) + 1) << 32 | node; }

/* Node n of 1, 2, ...: chunk c begins with node MS_CHUNK_MIN * (2^c - 1) + 1. */
static ms_node *node_at(const ms_queue *q, uint32_t n) {
  uint64_t place = (uint64_t)n - 1 + MS_CHUNK_MIN;
  int c = 63 - __builtin_clzll(place / MS_CHUNK_MIN);
  READS(q->chunk[c]);
  return &q->chunk[c][place - ((uint64_t)MS_CHUNK_MIN << c)];
}

/* ---- the pool: a stack (Treiber) ---- */

/* Pops a node off the pool, NIL if there is none; *link is the word in its `next`. */
static uint32_t take_node(ms_queue *q, word *link) {
  for (;;) {
    AT(enqueue_read_top);
    word old = ms_top_read(&q->top);
    if (node_of(old) == NIL) return NIL;
    AT(enqueue_read_link);
    *link = ms_link_read(&node_at(q, node_of(old))->next);
    AT(enqueue_cas_top);
    if (ms_top_pop(&q->top, old, word_after(old, node_of(*link)))) return node_of(old);
  }
}

/* Pushes a node onto the pool; `link` is the word in its `next`. */
static void give_node(ms_queue *q, uint32_t n, word link) {
  for (;;) {
    AT(dequeue_read_top);
    word old = ms_top_peek(&q->top);
    AT(dequeue_write_link);
    ms_next_write(&node_at(q, n)->next, word_after(link, node_of(old)));
    AT(dequeue_cas_top);
    if (ms_top_push(&q->top, old, word_after(old, n))) return;
  }
}

/* ---- making ---- */

bool ms_queue_init(ms_queue *q) {
  *q = (ms_queue){.nodes = 0};
  q->chunk[0] = memory_new(MS_CHUNK_MIN * sizeof(ms_node));
  if (!q->chunk[0]) return false;
  for (uint32_t n = 1; n <= MS_CHUNK_MIN; n++) { /* node 1 is the dummy, the others are the pool */
    bool last = n == 1 || n == MS_CHUNK_MIN;
    cell_init(&q->chunk[0][n - 1].next, TAG_FIRST | (last ? NIL : n + 1));
    cell_init(&q->chunk[0][n - 1].value, 0);
  }
  cell_init(&q->head, TAG_FIRST | 1);
  cell_init(&q->tail, TAG_FIRST | 1);
  cell_init(&q->top, TAG_FIRST | 2);
  q->nodes = MS_CHUNK_MIN;
  return true;
}

void ms_queue_free(ms_queue *q) {
  for (int c = 0; c < MS_CHUNKS; c++) memory_free(q->chunk[c]);
}

static bool grow(ms_queue *q) {
  int c = 63 - __builtin_clzll((uint64_t)q->nodes / MS_CHUNK_MIN + 1);
  int64_t size = (int64_t)MS_CHUNK_MIN << c;
  if (c == MS_CHUNKS) return false;
  ms_node *chunk = memory_new((size_t)size * sizeof *chunk);
  if (!chunk) return false;
  for (int64_t i = 0; i < size; i++) {
    cell_init(&chunk[i].next, 0);
    cell_init(&chunk[i].value, 0);
  }
  WRITES(q->chunk[c]);
  q->chunk[c] = chunk;
  for (int64_t i = 1; i <= size; i++) give_node(q, (uint32_t)(q->nodes + i), 0);
  q->nodes += size;
  return true;
}

bool ms_queue_reserve(ms_queue *q, int64_t values) {
  while (q->nodes - 2 < values) { /* one is the dummy, one may be owned by a dequeuer */
    if (!grow(q)) return false;
  }
  return true;
}

/* ---- enqueue ---- */

bool ms_queue_enqueue(ms_queue *q, uint64_t value) {
  word link;
  uint32_t n = take_node(q, &link);
  if (n == NIL) return false;
  ms_node *node = node_at(q, n);
  AT(enqueue_write_value);
  ms_value_write(&node->value, value);
  AT(enqueue_write_next);
  ms_next_write(&node->next, word_after(link, NIL));
  for (;;) {
    AT(enqueue_read_tail);
    word last = ms_end_read(&q->tail);
    cell *next = &node_at(q, node_of(last))->next;
    AT(enqueue_read_next);
    link = ms_next_read(next);
    AT(enqueue_check_tail);
    if (ms_end_check(&q->tail) != last) continue;
    if (node_of(link) != NIL) {
      AT(enqueue_help_tail);
      ms_end_swing(&q->tail, last, word_after(last, node_of(link)));
      continue;
    }
    AT(enqueue_cas_next); /* linearization point, if it succeeds */
    if (!ms_next_link(next, link, word_after(link, n))) continue;
    AT(enqueue_swing_tail);
    ms_end_swing(&q->tail, last, word_after(last, n));
    return true;
  }
}

/* ---- dequeue ---- */

bool ms_queue_dequeue(ms_queue *q, uint64_t *value) {
  for (;;) {
    AT(dequeue_read_head);
    word first = ms_end_read(&q->head);
    AT(dequeue_read_tail);
    word last = ms_end_read(&q->tail);
    AT(dequeue_read_next); /* linearization point of "empty", if the check succeeds */
    word link = ms_next_read(&node_at(q, node_of(first))->next);
    AT(dequeue_check_head);
    if (ms_end_check(&q->head) != first) continue;
    if (node_of(link) == NIL) return false;
    if (node_of(first) == node_of(last)) {
      AT(dequeue_help_tail);
      ms_end_swing(&q->tail, last, word_after(last, node_of(link)));
      continue;
    }
    AT(dequeue_read_value);
    *value = ms_value_read(&node_at(q, node_of(link))->value);
    AT(dequeue_cas_head); /* linearization point, if it succeeds */
    if (!ms_end_swing(&q->head, first, word_after(first, node_of(link)))) continue;
    give_node(q, node_of(first), link);
    return true;
  }
}

/* ---- peek ---- */

bool ms_queue_peek(ms_queue *q, uint64_t *value) {
  for (;;) {
    AT(peek_read_head);
    word first = ms_end_read(&q->head);
    AT(peek_read_next); /* linearization point, if the check succeeds */
    word link = ms_next_read(&node_at(q, node_of(first))->next);
    uint64_t got = 0;
    if (node_of(link) != NIL) {
      AT(peek_read_value);
      got = ms_value_read(&node_at(q, node_of(link))->value);
    }
    AT(peek_check_head);
    if (ms_end_check(&q->head) != first) continue;
    *value = got;
    return node_of(link) != NIL;
  }
}

bool ms_queue_is_empty(ms_queue *q) {
  for (;;) {
    AT(peek_read_head);
    word first = ms_end_read(&q->head);
    AT(peek_read_next); /* linearization point, if the check succeeds */
    word link = ms_next_read(&node_at(q, node_of(first))->next);
    AT(peek_check_head);
    if (ms_end_check(&q->head) == first) return node_of(link) == NIL;
  }
}
