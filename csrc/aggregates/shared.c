/* shared.c - see shared.h. */
#include "aggregates/shared.h"

#include "aggregates/rank.h"
#include "aggregates/shared_kinds.h"
#include "base/exact_sum.h"

/* ---- count ---- */

static void count_add(const aggregate *a, cell *words, const column *c, int64_t row) {
  (void)a, (void)c, (void)row;
  shared_add(&words[0], 1);
}

static bool count_take(const cell *words, void *state) {
  *(int64_t *)state = (int64_t)shared_read(&words[0]);
  return true;
}

static bool count_put(cell *words, const void *state) {
  cell_init(&words[0], *(const uint64_t *)state);
  return true;
}

const shared_kind shared_count = {.words = 1, .add = count_add, .take = count_take, .put = count_put};

/* ---- sums of integers ---- */

enum { LOW, HIGH, N, INTEGER_WORDS };

static void integer_add(const aggregate *a, cell *words, const column *c, int64_t row) {
  uint64_t bits = column_bits(c, row), sign = type_is_unsigned(a->type) ? 0 : 0 - (bits >> 63);
  shared_carry(&words[HIGH], sign, shared_add(&words[LOW], bits));
  shared_add(&words[N], 1);
}

static bool integer_take(const cell *words, void *state) {
  ps_exact_sum *s = state;
  s->narrow = (int128)((uint128)shared_read(&words[HIGH]) << 64 | shared_read(&words[LOW]));
  s->n = (int64_t)shared_read(&words[N]);
  return true;
}

static bool integer_put(cell *words, const void *state) {
  const ps_exact_sum *s = state;
  cell_init(&words[LOW], (uint64_t)s->narrow);
  cell_init(&words[HIGH], (uint64_t)((uint128)s->narrow >> 64));
  cell_init(&words[N], (uint64_t)s->n);
  return true;
}

const shared_kind shared_integers = {
    .words = INTEGER_WORDS, .add = integer_add, .take = integer_take, .put = integer_put};

/* ---- min and max: the complement of the rank, so that the greatest wins and zero is the least ---- */

enum { RANK, PRESENT, LEAST_WORDS };

static void mark(cell *word) {
  AT(window_process);
  if (word_read(word)) return;
  AT(window_process);
  word_mark(word);
}

static void least_add(const aggregate *a, cell *words, const column *c, int64_t row) {
  uint64_t word = ~rank_of(column_bits(c, row), a->type, rank_inversion(a));
  for (;;) {
    AT(window_process);
    uint64_t held = word_read(&words[RANK]);
    if (word <= held) break;
    AT(window_swap);
    if (word_swap(&words[RANK], held, word)) break;
  }
  mark(&words[PRESENT]);
}

static bool least_take(const cell *words, void *state) {
  if (shared_read(&words[PRESENT])) *(least *)state = (least){~shared_read(&words[RANK]), 1};
  return true;
}

static bool least_put(cell *words, const void *state) {
  const least *s = state;
  cell_init(&words[RANK], s->present ? ~s->word : 0);
  cell_init(&words[PRESENT], s->present != 0);
  return true;
}

const shared_kind shared_least = {.words = LEAST_WORDS, .add = least_add, .take = least_take, .put = least_put};

/* ---- all aggregates of a window ---- */

enum { USED }; /* the first word */

static cell *words_of(const aggregate *a, const cell *words) { return (cell *)(uintptr_t)words + a->word; }

void shared_init(const aggregates *all, cell *words) {
  for (int32_t i = 0; i < all->words; i++) cell_init(&words[i], 0);
}

bool shared_is_empty(const cell *words) { return shared_read(&words[USED]) == 0; }

static bool is_rare(const aggregate *a, const batch *b, int64_t row) {
  const shared_kind *kind = a->kernel->shared;
  if (!kind->is_rare || !aggregate_counts(a, b, row)) return false;
  assert(a->column >= 0); /* only sums have rare values */
  return kind->is_rare(&b->columns[a->column], row);
}

bool shared_is_rare(const aggregates *all, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    if (is_rare(&all->each[i], b, row)) return true;
  }
  return false;
}

bool shared_reserve(const aggregates *all, cell *words, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (is_rare(a, b, row) && !a->kernel->shared->reserve(words_of(a, words))) return false;
  }
  return true;
}

void shared_row(const aggregates *all, cell *words, const batch *b, int64_t row) {
  mark(&words[USED]);
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    const column *c = a->column < 0 ? NULL : &b->columns[a->column];
    if (aggregate_counts(a, b, row)) a->kernel->shared->add(a, words_of(a, words), c, row);
  }
}

bool shared_take(const aggregates *all, const cell *words, uint8_t *state) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->kernel->shared->take(words_of(a, words), state + a->offset)) return false;
  }
  return true;
}

bool shared_put(const aggregates *all, cell *words, const uint8_t *state) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->kernel->shared->put(words_of(a, words), state + a->offset)) return false;
  }
  cell_init(&words[USED], 1);
  return true;
}

void shared_drop(const aggregates *all, cell *words) {
  for (int32_t i = 0; i < all->n; i++) {
    const shared_kind *kind = all->each[i].kernel->shared;
    if (kind->drop) kind->drop(words_of(&all->each[i], words));
  }
}
