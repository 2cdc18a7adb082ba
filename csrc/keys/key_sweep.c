/* key_sweep.c - see key_sweep.h. */
#include "keys/key_sweep.h"

#define SWEEP_LEAST SIZED(1024, 1) /* keys: some 100 KB in all tables; fewer are not worth a sweep */
#define SWEEP_STEP SIZED(1024, 1)  /* numbers: a few us, about the cost of a small window */
#define SWEEP_CHUNK SIZED(256, 1)  /* numbers: bounds how long inputs wait for the table's lock to some us */

void key_sweep_init(key_sweep *s, key_table *table) {
  *s = (key_sweep){.table = table};
  cell_init(&s->word, 0);
}

/* Whether the table has grown enough since the last sweep to pay for the next one, and most keys are unlisted. */
static bool is_time(const key_sweep *s, int64_t listed) {
  int64_t needed = s->kept > listed ? s->kept : listed;
  return ps_counter_get(&s->table->known) > 2 * needed + SWEEP_LEAST;
}

static void begin(key_sweep *s) {
  s->number++;
  s->end = key_table_begin_sweep(s->table);
  s->next = 0;
  s->under_way = true;
  s->kept = ps_counter_get(&s->table->known);
  AT(output_say);
  sweep_publish(&s->word, s->number);
}

/* Visits the numbers below `to`. */
static void free_to(key_sweep *s, const key_order *r, int64_t to) {
  uint32_t unlisted[SWEEP_CHUNK];
  while (s->next < to) {
    int64_t n = 0;
    for (; s->next < to && n < SWEEP_CHUNK; s->next++) {
      if (!r || !key_order_lists(r, s->next)) unlisted[n++] = (uint32_t)s->next;
    }
    s->kept -= key_table_free_unmet(s->table, unlisted, n);
  }
}

void key_sweep_step(key_sweep *s, const key_order *listed, bool swept) {
  int64_t length = listed ? listed->length : 0;
  if (!s->under_way) {
    if (is_time(s, length)) begin(s);
    return;
  }
  if (key_sweep_awaited(s) && !swept) return;
  int64_t share = s->next + SWEEP_STEP + 4 * length; /* faster than windows can add keys */
  free_to(s, listed, share < s->end ? share : s->end);
  s->under_way = s->next < s->end;
}
