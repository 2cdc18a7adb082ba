/*
 * probes.c - how far keys lie from their slots: what looking them up costs, counted and not timed.
 *
 *   probes values | strings   reads keys of 8 bytes from its input, as int64 or as strings, looks them up as an input
 *                             does, and prints for the operator's table, the input's map and the buckets of a winset
 *                             how many slots, or windows, all lookups together pass
 *   probes find N             prints N keys that meet in a few slots of the input's map under the seed of this process
 */
#include "keys/key_numbers.c" /* its slots are private */

#include <stdio.h>
#include <stdlib.h>

enum { FIND_BITS = 8, FIND_ROOM = 8 };

static int64_t steps_of_table(const key_set *s) {
  int64_t steps = 0;
  for (int64_t i = 0; i < s->capacity; i++) {
    if (s->slots[i]) steps += (i - (int64_t)s->slots[i]->hash) & (s->capacity - 1);
  }
  return steps;
}

static int64_t steps_of_map(const key_numbers *n) {
  int64_t steps = 0;
  for (int64_t i = 0; i < n->capacity; i++) {
    if (n->slots[i].known) steps += (i - first_slot(n, n->slots[i].word)) & (n->capacity - 1);
  }
  return steps;
}

/* Buckets of a winset are chosen by the first bits of the hash; as many as keys. */
static int64_t steps_of_buckets(const key_table *t, int64_t keys) {
  int bits = 64 - __builtin_clzll((uint64_t)keys);
  int64_t *in = calloc((size_t)1 << bits, sizeof *in), steps = 0;
  for (int64_t i = 0; i < keys; i++) steps += in[key_table_at(t, (uint32_t)i)->hash >> (64 - bits)]++;
  free(in);
  return steps;
}

static int64_t read_words(uint64_t **words) {
  int64_t n = 0, capacity = 0;
  while (memory_grow((void **)words, &capacity, n + 1, sizeof **words) && fread(*words + n, 8, 1, stdin) == 1) n++;
  return n;
}

static void find(int64_t n) {
  for (uint64_t x = 1; n > 0; x++) {
    if ((hash_word(x ^ VALUE_SIGN) & ((UINT64_C(1) << (FIND_BITS + FIND_ROOM)) - 1)) >> FIND_ROOM) continue;
    fwrite(&x, sizeof x, 1, stdout);
    n--;
  }
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "find") == 0) {
    find(atoll(argv[2]));
    return 0;
  }
  bool strings = argc == 2 && strcmp(argv[1], "strings") == 0;
  uint64_t *words = NULL;
  int64_t rows = read_words(&words), *offsets = calloc((size_t)rows + 1, sizeof *offsets);
  for (int64_t i = 0; i <= rows; i++) offsets[i] = 8 * i;
  batch *b = calloc(1, sizeof *b + 2 * sizeof(column));
  b->rows = rows;
  b->columns[1] = (column){.type = strings ? PS_BYTES64 : PS_I64, .values = words, .offsets = offsets};
  key_table table;
  key_cache cache;
  key_numbers numbers;
  if (!key_table_init(&table)) return 1;
  key_cache_init(&cache, &table);
  key_numbers_init(&numbers, &cache, 1);
  if (!key_numbers_fill(&numbers, b)) return 1;
  printf("%lld %lld %lld\n", (long long)steps_of_table(&table.set), (long long)steps_of_map(&numbers),
         (long long)steps_of_buckets(&table, ps_counter_get(&table.known)));
  key_numbers_free(&numbers);
  key_cache_free(&cache);
  key_table_free(&table);
  free(b);
  free(offsets);
  memory_free(words);
  return 0;
}
