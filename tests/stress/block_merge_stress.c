/*
 * block_merge_stress.c - the merge of short lists, without threads: reads lists of timestamps, prints them merged.
 *
 *   block_merge_stress LISTS EACH
 *
 * Each line of the input is a block: first the base, then for each list its number, how many timestamps, and these.
 * Each line of the output: ts:number ts:number ...; or "too far" if keys cannot hold the span.
 */
#include "gates/block_merge.h"

#include <stdio.h>
#include <stdlib.h>

static int64_t number(char **at) { return strtoll(*at, at, 10); }

static bool any_left(const char *at) { return at[strspn(at, " \n")] != '\0'; }

/* Adds the lists of a line; how many timestamps there are, or -1: too far. */
static int64_t add_lists(block_merge *m, char *line, int64_t *ts) {
  int64_t total = 0;
  char *at = line;
  int64_t base = number(&at);
  block_merge_begin(m, base);
  while (any_left(at)) {
    int32_t which = (int32_t)number(&at);
    int64_t n = number(&at);
    for (int64_t i = 0; i < n; i++) ts[i] = number(&at);
    if (!block_merge_spans(m, (uint64_t)ts[n - 1] - (uint64_t)base)) return -1;
    if (block_merge_add(m, which, ts, n, INT64_MAX, total % 2) != n) abort();
    total += n;
  }
  return total;
}

static void print_group(const block_merge *m, uint64_t key) {
  for (int64_t i = 0; i < block_merge_size(m, key); i++) {
    printf("%lld:%d ", (long long)block_merge_ts(m, key), block_merge_number(m, key));
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  block_merge m;
  int64_t each = atoll(argv[2]);
  if (!block_merge_init(&m, atoi(argv[1]), each)) return 1;
  int64_t *ts = calloc((size_t)each, sizeof *ts);
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    int64_t n = add_lists(&m, line, ts);
    block_list all = n > 0 ? block_merge_all(&m) : (block_list){0};
    for (int64_t i = 0; i < all.n; i++) print_group(&m, all.first[i]);
    printf(n < 0 ? "too far\n" : "\n");
  }
  free(line);
  free(ts);
  block_merge_free(&m);
  return ps_memory_live() == 0 ? 0 : 1;
}
