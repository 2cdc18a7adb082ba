/* hash.c - see hash.h. */
#include "base/hash.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

hash_secrets hash_secret;

#ifdef PYSTREAM_MODEL
static uint64_t seed_of_process(void) { return 0; }
#else
/* A fixed seed from text. */
static uint64_t text_seed(const char *text) {
  uint64_t seed = 0;
  for (; *text; text++) seed = hash_mix(seed ^ (uint8_t)*text) + 1;
  return seed;
}

/* From the system; if that has none (only very old kernels), from what varies between processes. */
static uint64_t random_seed(void) {
  uint64_t seed[2] = {0};
  if (getentropy(seed, sizeof seed) == 0) return seed[0] ^ hash_mix(seed[1]);
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return hash_mix((uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 32) ^ hash_mix((uint64_t)getpid()) ^
         (uint64_t)(uintptr_t)&now;
}

static uint64_t seed_of_process(void) {
  const char *fixed = getenv("PYSTREAM_HASH_SEED"); /* NOLINT(concurrency-mt-unsafe): constant while loading */
  return fixed && *fixed ? text_seed(fixed) : random_seed();
}
#endif

/* Runs on load: any thread may make the first table. */
/* NOLINTNEXTLINE(clang-diagnostic-global-constructors) */
__attribute__((constructor)) static void choose_secrets(void) {
  uint64_t seed = seed_of_process(),
           *secret[] = {&hash_secret.begin, &hash_secret.factor, &hash_secret.middle, &hash_secret.last};
  for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
    seed += 0x9e3779b97f4a7c15u;
    *secret[i] = hash_mix(seed);
  }
  hash_secret.factor |= 1;
  hash_secret.last |= 1;
}

uint64_t hash_bytes(const uint8_t *data, int64_t length) {
  uint64_t h = hash_secret.begin ^ (uint64_t)length;
  for (; length >= 8; data += 8, length -= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    h = hash_fold(h ^ word, hash_secret.factor);
  }
  uint64_t tail = 0;
  if (length) memcpy(&tail, data, (size_t)length);
  h = hash_fold(h ^ tail, hash_secret.factor);
  return hash_fold(h ^ hash_secret.middle, hash_secret.last);
}
