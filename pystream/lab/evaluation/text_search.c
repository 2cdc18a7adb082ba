/*
 * text_search.c - processTuple of the paper's queries f and F: does a comment contain a mail address, or an IPv4
 * address? For ps.native_udf; text_search.py compiles it.
 *
 * It is searched per tuple and window, by the thread that updates the window, position by position as a backtracking
 * matcher does. The two searches accept exactly what MAIL and IP of pystream/queries.py match; F runs both unless the
 * first finds something, so it costs more than f.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  const uint8_t *data;
  int64_t length;
} text;

typedef struct {
  int64_t found;
  uint64_t fingerprint;
} first;

/* ---- characters ---- */

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static bool is_letter(uint8_t c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }

static bool is_word(uint8_t c) { return is_letter(c) || is_digit(c) || c == '_'; }

static bool is_label(uint8_t c) { return is_letter(c) || is_digit(c) || c == '-'; }

static bool is_local(uint8_t c) { return is_word(c) || (c && strchr(".%+-", c)); }

static bool word_at(const text *t, int64_t i) { return i >= 0 && i < t->length && is_word(t->data[i]); }

static bool boundary(const text *t, int64_t i) { return word_at(t, i - 1) != word_at(t, i); }

static bool has(const text *t, int64_t i, uint8_t c) { return i < t->length && t->data[i] == c; }

/* Where the run of such characters that begins at i ends. */
static int64_t run(const text *t, int64_t i, bool (*accepts)(uint8_t)) {
  while (i < t->length && accepts(t->data[i])) i++;
  return i;
}

/* ---- addresses ---- */

static bool mail_at(const text *t, int64_t i) {
  int64_t end = run(t, i, is_local);
  if (end == i || !has(t, end, '@')) return false;
  for (int64_t label = end + 1;; label = end + 1) {
    end = run(t, label, is_label);
    if (end == label || !has(t, end, '.')) return false;
    int64_t top = run(t, end + 1, is_letter);
    if (top - end > 2 && !word_at(t, top)) return true;
  }
}

/* The end of the octet that begins at i; -1: there is none. */
static int64_t octet(const text *t, int64_t i) {
  int64_t end = run(t, i, is_digit);
  int value = 0;
  if (end == i || end - i > 3 || (end - i > 1 && t->data[i] == '0')) return -1;
  for (; i < end; i++) value = 10 * value + (t->data[i] - '0');
  return value <= 255 ? end : -1;
}

static bool ip_at(const text *t, int64_t i) {
  for (int n = 1; n <= 4; n++) {
    i = octet(t, i);
    if (i < 0) return false;
    if (n == 4) return !word_at(t, i);
    if (!has(t, i++, '.')) return false;
  }
  return false;
}

#ifdef COUNT_STEPS /* for a test: how many positions one thread has looked at */
int64_t steps;
#define STEP() (steps++)
#else
#define STEP() ((void)0)
#endif

static bool contains(const text *t, bool (*at)(const text *, int64_t)) {
  for (int64_t i = 0; i < t->length; i++) {
    STEP();
    if (boundary(t, i) && at(t, i)) return true;
  }
  return false;
}

static bool has_mail(const text *t) { return contains(t, mail_at); }

static bool has_mail_or_ip(const text *t) { return contains(t, mail_at) || contains(t, ip_at); }

/* ---- windows ---- */

static const text *text_of(const uint64_t *values) { return (const text *)(uintptr_t)values[0]; }

/* FNV-1a: stands for the comment, as results of native functions have 64 bits. */
static uint64_t fingerprint(const text *t) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int64_t i = 0; i < t->length; i++) hash = (hash ^ t->data[i]) * UINT64_C(0x100000001b3);
  return hash;
}

static int32_t count(int64_t *n, const uint64_t *values, const uint8_t *nulls, bool (*has_it)(const text *)) {
  if (!nulls[0] && has_it(text_of(values))) ++*n;
  return 0;
}

/* The search comes first: the paper's window looks at every tuple. */
static int32_t keep_first(first *f, const uint64_t *values, const uint8_t *nulls, bool (*has_it)(const text *)) {
  if (nulls[0] || !has_it(text_of(values)) || f->found) return 0;
  *f = (first){1, fingerprint(text_of(values))};
  return 0;
}

int32_t count_mail_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  return count(state, values, nulls, has_mail);
}

int32_t count_mail_or_ip_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  return count(state, values, nulls, has_mail_or_ip);
}

int32_t count_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)null;
  memcpy(result, state, sizeof *result);
  return 0;
}

int32_t count_combine(void *state, const void *other) {
  *(int64_t *)state += *(const int64_t *)other;
  return 0;
}

int32_t first_mail_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  return keep_first(state, values, nulls, has_mail);
}

int32_t first_mail_or_ip_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  return keep_first(state, values, nulls, has_mail_or_ip);
}

int32_t first_produce(const void *state, uint64_t *result, uint8_t *null) {
  const first *f = state;
  *null = !f->found;
  *result = f->fingerprint;
  return 0;
}
