/* User code for tests/test_native_udf.py: what a user of ps.native_udf would write and compile himself. */
#include <stdint.h>
#include <string.h>

/* ---- a number in which every digit is one tuple: shows the order in which they came ---- */

int32_t digits_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts, (void)nulls;
  *(int64_t *)state = *(int64_t *)state * 10 + (int64_t)values[0];
  return 0;
}

int32_t digits_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)null;
  memcpy(result, state, sizeof *result);
  return 0;
}

/* ---- the largest rise from one reading to the next; null with less than two readings ---- */

typedef struct {
  double last, rise;
  int64_t n;
} rise;

int32_t rise_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  if (nulls[0]) return 0;
  rise *r = state;
  double value;
  memcpy(&value, &values[0], sizeof value);
  if (r->n == 1 || (r->n > 1 && value - r->last > r->rise)) r->rise = value - r->last;
  r->last = value;
  r->n++;
  return 0;
}

int32_t rise_produce(const void *state, uint64_t *result, uint8_t *null) {
  const rise *r = state;
  *null = r->n < 2;
  memcpy(result, &r->rise, sizeof *result);
  return 0;
}

/* ---- a checksum over all that the function is given: timestamp, every column, every null ---- */

int32_t mix_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  uint64_t *sum = state;
  if (((uintptr_t)state & 15) != 0) return 99;
  *sum = *sum * 31 + (uint64_t)ts;
  for (int i = 0; i < 6; i++) *sum = *sum * 31 + values[i] + nulls[i];
  return 0;
}

/* ---- failures: process fails at a value of 13, produce at a sum of 7 ---- */

int32_t picky_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts, (void)nulls;
  *(int64_t *)state += (int64_t)values[0];
  return values[0] == 13 ? -5 : 0;
}

int32_t picky_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)null;
  memcpy(result, state, sizeof *result);
  return *result == 7 ? 42 : 0;
}

/* ---- all bits of the state, which is as large as the test wants ---- */

int32_t large_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts, (void)nulls;
  uint8_t *bytes = state;
  for (uint64_t i = 0; i < values[0]; i++) bytes[i]++;
  return 0;
}

int32_t large_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)null;
  const uint8_t *bytes = state;
  for (int i = 0; i < 1000; i++) *result += bytes[i];
  return 0;
}

/* ---- no state, no columns ---- */

int32_t nothing_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)state, (void)ts, (void)values, (void)nulls;
  return 0;
}

int32_t one_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)state, (void)null;
  *result = 1;
  return 0;
}

int32_t null_produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)state, (void)result;
  *null = 1;
  return 0;
}

/* ---- strings: their bytes and lengths; states that combine ---- */

typedef struct {
  const uint8_t *data;
  int64_t length;
} string;

int32_t text_process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)ts;
  int64_t *sum = state;
  if (nulls[0]) {
    *sum += 1000000;
    return 0;
  }
  const string *text = (const string *)(uintptr_t)values[0];
  *sum += text->length;
  for (int64_t i = 0; i < text->length; i++) *sum += text->data[i];
  return 0;
}

int32_t sum_combine(void *state, const void *other) {
  *(int64_t *)state += *(const int64_t *)other;
  return *(int64_t *)state == 100 ? 77 : 0;
}
