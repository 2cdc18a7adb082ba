/* multiset.c - see multiset.h. */
#include "base/multiset.h"

/* ---- finding ---- */

/* The number of words below this one. */
static inline int32_t lower_bound(const counted_word *at, int32_t n, uint64_t word) {
  const counted_word *from = at;
  for (int32_t half = n / 2; n > 0; half = n / 2) { /* without a branch on the outcome, which is random */
    from += from[half].word < word ? n - half : 0;
    n = half;
  }
  return (int32_t)(from - at);
}

/* The block that a word is in, or would be: the last one that begins at or below it, or the first. */
static inline int32_t find_block(const multiset *m, uint64_t word) {
  int32_t from = 0, n = m->blocks;
  while (n > 1) {
    int32_t half = n / 2;
    if (m->block[from + half].first <= word) from += half;
    n -= half;
  }
  return from;
}

static inline bool is_at(const counted_word *at, int32_t n, int32_t i, uint64_t word) {
  return i < n && at[i].word == word;
}

/* ---- room ---- */

static counted_word *new_words(multiset *m, int32_t n) {
  counted_word *at = memory_resize(NULL, (size_t)n * sizeof *at);
  if (at) m->held += (int64_t)((size_t)n * sizeof *at);
  return at;
}

static void free_words(multiset *m, const multiset_block *b) {
  m->held -= (int64_t)((size_t)b->capacity * sizeof *b->at);
  memory_free(b->at);
}

void multiset_clear(multiset *m) {
  for (int32_t i = 0; i < m->blocks; i++) memory_free(m->block[i].at);
  if (m->blocks) memory_free(m->block);
  *m = (multiset){0};
}

/* Moves the set's own words to a block. */
static bool leave_own(multiset *m) {
  multiset_block *block = memory_resize(NULL, sizeof *block);
  counted_word *at = block ? new_words(m, MULTISET_FIRST) : NULL;
  if (!at) {
    memory_free(block);
    return false;
  }
  memcpy(at, m->own, sizeof m->own);
  *block = (multiset_block){at, m->values, at[0].word, (int32_t)m->distinct, MULTISET_FIRST};
  m->block = block;
  m->blocks = m->room = 1;
  m->held += (int64_t)sizeof *block;
  return true;
}

static bool grow_block(multiset *m, multiset_block *b) {
  int32_t capacity = 2 * b->capacity < MULTISET_BLOCK ? 2 * b->capacity : MULTISET_BLOCK;
  counted_word *bigger = memory_resize(b->at, (size_t)capacity * sizeof *bigger);
  if (!bigger) return false;
  m->held += (int64_t)((size_t)(capacity - b->capacity) * sizeof *bigger);
  b->at = bigger;
  b->capacity = capacity;
  return true;
}

static bool grow_blocks(multiset *m) {
  if (m->blocks < m->room) return true;
  int32_t room = 2 * m->room;
  multiset_block *bigger = memory_resize(m->block, (size_t)room * sizeof *bigger);
  if (!bigger) return false;
  m->held += (int64_t)((size_t)(room - m->room) * sizeof *bigger);
  m->block = bigger;
  m->room = room;
  return true;
}

static int64_t count_values(const counted_word *at, int32_t n) {
  int64_t values = 0;
  for (int32_t i = 0; i < n; i++) values += at[i].count;
  return values;
}

/* Splits block i, which is full: its words from `keep` on begin another one. */
static bool split_block(multiset *m, int32_t i, int32_t keep) {
  counted_word *at = grow_blocks(m) ? new_words(m, MULTISET_BLOCK) : NULL;
  if (!at) return false;
  multiset_block *b = &m->block[i];
  memmove(b + 2, b + 1, (size_t)(m->blocks - i - 1) * sizeof *b);
  int32_t moved = b->n - keep;
  memcpy(at, b->at + keep, (size_t)moved * sizeof *at);
  b[1] = (multiset_block){at, count_values(at, moved), at[0].word, moved, MULTISET_BLOCK};
  b->n = keep;
  b->values -= b[1].values;
  m->blocks++;
  return true;
}

static bool reserve_in_blocks(multiset *m, uint64_t word) {
  int32_t i = find_block(m, word);
  multiset_block *b = &m->block[i];
  if (b->n < b->capacity) return true;
  int32_t at = lower_bound(b->at, b->n, word);
  if (is_at(b->at, b->n, at, word)) return true;
  if (b->capacity < MULTISET_BLOCK) return grow_block(m, b);
  return split_block(m, i, at == b->n && i == m->blocks - 1 ? b->n - 1 : b->n / 2);
}

bool multiset_reserve(multiset *m, uint64_t word) {
  if (m->blocks) return reserve_in_blocks(m, word);
  int32_t n = (int32_t)m->distinct;
  return n < MULTISET_OWN || is_at(m->own, n, lower_bound(m->own, n, word), word) || leave_own(m);
}

/* ---- changing ---- */

/* Adds to n words, of which there is room for one more; returns how many there are then. */
static inline int32_t put_word(counted_word *at, int32_t n, uint64_t word, int64_t count) {
  int32_t i = lower_bound(at, n, word);
  if (is_at(at, n, i, word)) {
    at[i].count += count;
    return n;
  }
  memmove(at + i + 1, at + i, (size_t)(n - i) * sizeof *at);
  /* NOLINTNEXTLINE(clang-analyzer-security.ArrayBound): without room, multiset_reserve has left `own` */
  at[i] = (counted_word){word, count};
  return n + 1;
}

bool multiset_insert(multiset *m, uint64_t word, int64_t count) {
  if (!multiset_reserve(m, word)) return false;
  m->values += count;
  if (m->blocks == 0) {
    m->distinct = put_word(m->own, (int32_t)m->distinct, word, count);
    return true;
  }
  multiset_block *b = &m->block[find_block(m, word)];
  int32_t n = put_word(b->at, b->n, word, count);
  m->distinct += n - b->n;
  b->n = n;
  b->values += count;
  b->first = b->at[0].word;
  return true;
}

/* Frees block i. */
static void drop_block(multiset *m, int32_t i) {
  multiset_block *b = &m->block[i];
  free_words(m, b);
  memmove(b, b + 1, (size_t)(m->blocks - i - 1) * sizeof *b);
  m->blocks--;
}

/* Moves the words of the block after i to block i, if both are sparse. */
static void join_blocks(multiset *m, int32_t i) {
  if (i < 0 || i + 1 >= m->blocks) return;
  multiset_block *b = &m->block[i];
  if (b->n + b[1].n > MULTISET_SPARSE) return;
  memcpy(b->at + b->n, b[1].at, (size_t)b[1].n * sizeof *b->at);
  b->n += b[1].n;
  b->values += b[1].values;
  drop_block(m, i + 1);
}

/* Subtracts from one of n words; returns how many there are then. */
static inline int32_t take_word(counted_word *at, int32_t n, uint64_t word, int64_t count) {
  int32_t i = lower_bound(at, n, word);
  assert(is_at(at, n, i, word) && at[i].count >= count);
  at[i].count -= count;
  if (at[i].count > 0) return n;
  memmove(at + i, at + i + 1, (size_t)(n - i - 1) * sizeof *at);
  return n - 1;
}

static void remove_from_blocks(multiset *m, uint64_t word, int64_t count) {
  int32_t i = find_block(m, word);
  multiset_block *b = &m->block[i];
  int32_t n = take_word(b->at, b->n, word, count);
  b->values -= count;
  if (n == b->n) return;
  b->n = n;
  m->distinct--;
  if (n == 0) {
    drop_block(m, i);
    return;
  }
  b->first = b->at[0].word;
  join_blocks(m, i);
  join_blocks(m, i - 1);
}

void multiset_remove(multiset *m, uint64_t word, int64_t count) {
  assert(m->values >= count);
  m->values -= count;
  if (m->values == 0) {
    multiset_clear(m);
  } else if (m->blocks) {
    remove_from_blocks(m, word, count);
  } else {
    m->distinct = take_word(m->own, (int32_t)m->distinct, word, count);
  }
}

/* ---- sets ---- */

static bool copy_blocks(multiset *to, const multiset *from) {
  for (; to->blocks < from->blocks; to->blocks++) {
    const multiset_block *b = &from->block[to->blocks];
    counted_word *at = new_words(to, b->capacity);
    if (!at) return false;
    memcpy(at, b->at, (size_t)b->n * sizeof *at);
    to->block[to->blocks] = *b;
    to->block[to->blocks].at = at;
  }
  return true;
}

static bool copy(multiset *to, const multiset *from) {
  if (from->blocks == 0) {
    *to = *from;
    return true;
  }
  multiset m = {.values = from->values, .distinct = from->distinct, .room = from->blocks};
  m.block = memory_resize(NULL, (size_t)m.room * sizeof *m.block);
  if (!m.block) return false;
  m.held = (int64_t)((size_t)m.room * sizeof *m.block);
  if (copy_blocks(&m, from)) {
    *to = m;
    return true;
  }
  for (int32_t i = 0; i < m.blocks; i++) memory_free(m.block[i].at);
  memory_free(m.block);
  return false;
}

/* Subtracts the first n words of the set. */
static void remove_first(multiset *m, const multiset *other, int64_t n) {
  for (int32_t r = 0; n > 0; r++) {
    multiset_run run = multiset_run_at(other, r);
    for (int64_t i = 0; i < run.n && n > 0; i++, n--) multiset_remove(m, run.at[i].word, run.at[i].count);
  }
}

bool multiset_plus(multiset *m, const multiset *other) {
  if (m->values == 0) return copy(m, other);
  int64_t done = 0;
  for (int32_t r = 0, runs = multiset_runs(other); r < runs; r++) {
    multiset_run run = multiset_run_at(other, r);
    for (int64_t i = 0; i < run.n; i++, done++) {
      if (multiset_insert(m, run.at[i].word, run.at[i].count)) continue;
      remove_first(m, other, done);
      return false;
    }
  }
  return true;
}

void multiset_minus(multiset *m, const multiset *other) {
  if (m->values == other->values) {
    multiset_clear(m);
  } else {
    remove_first(m, other, other->distinct);
  }
}

/* ---- ranks ---- */

void multiset_select(const multiset *m, int64_t rank, uint64_t word[2]) {
  int32_t r = 0;
  multiset_run run = multiset_run_at(m, 0);
  while (rank >= run.values) {
    rank -= run.values;
    run = multiset_run_at(m, ++r);
  }
  int64_t i = run.values == run.n ? rank : 0; /* every count is 1 */
  if (run.values == run.n) rank = 0;
  while (rank >= run.at[i].count) rank -= run.at[i++].count;
  word[0] = word[1] = run.at[i].word;
  if (rank + 1 < run.at[i].count) return;
  if (i + 1 < run.n) {
    word[1] = run.at[i + 1].word;
  } else if (r + 1 < m->blocks) {
    word[1] = m->block[r + 1].first;
  }
}

/* ---- for tests ---- */

ps_multiset *ps_multiset_new(void) { return memory_new(sizeof(ps_multiset)); }

ps_code ps_multiset_add(ps_multiset *m, uint64_t word, int64_t count) {
  return multiset_insert(m, word, count) ? PS_OK : PS_NO_MEMORY;
}

void ps_multiset_remove(ps_multiset *m, uint64_t word, int64_t count) { multiset_remove(m, word, count); }

ps_code ps_multiset_plus(ps_multiset *m, const ps_multiset *other) {
  return multiset_plus(m, other) ? PS_OK : PS_NO_MEMORY;
}

void ps_multiset_minus(ps_multiset *m, const ps_multiset *other) { multiset_minus(m, other); }

void ps_multiset_select(const ps_multiset *m, int64_t rank, uint64_t *word) { multiset_select(m, rank, word); }

void ps_multiset_words(const ps_multiset *m, uint64_t *word, int64_t *count) {
  for (int32_t r = 0; r < multiset_runs(m); r++) {
    multiset_run run = multiset_run_at(m, r);
    for (int64_t i = 0; i < run.n; i++) {
      *word++ = run.at[i].word;
      *count++ = run.at[i].count;
    }
  }
}

int64_t ps_multiset_distinct(const ps_multiset *m) { return m->distinct; }

int64_t ps_multiset_held(const ps_multiset *m) { return m->held; }

void ps_multiset_free(ps_multiset *m) {
  if (m) multiset_clear(m);
  memory_free(m);
}
