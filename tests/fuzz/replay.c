/*
 * replay.c - main for compilers without libFuzzer: the inputs given, and each of them with random changes.
 *
 *   replay [-runs=N] [-seed=N] [-OTHER=...] FOLDER_OR_FILE...       options that only libFuzzer knows are left alone
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE_MAX_INPUT = 4096 };

static uint64_t dice;

static uint64_t roll(uint64_t n) { return hash_mix(dice += UINT64_C(0x9e3779b97f4a7c15)) % n; }

/* Other bytes, fewer or more of them. */
static size_t change(uint8_t *data, size_t size) {
  for (uint64_t times = 1 + roll(4); times > 0; times--) {
    if (size < SIZE_MAX_INPUT && roll(3) == 0) data[size++] = (uint8_t)roll(256);
    if (size > 0) data[roll(size)] = (uint8_t)roll(256);
    if (size > 1 && roll(8) == 0) size -= roll(size);
  }
  return size;
}

static void run_file(const char *path, int64_t changed) {
  uint8_t data[SIZE_MAX_INPUT], copy[SIZE_MAX_INPUT];
  FILE *file = fopen(path, "rb");
  CLAIM(file);
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  for (int64_t i = 0; i <= changed; i++) {
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, i ? change(copy, size) : size);
  }
}

static int64_t run_folder(const char *path, int64_t changed) {
  DIR *folder = opendir(path);
  if (!folder) {
    run_file(path, changed);
    return 1;
  }
  int64_t files = 0;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    run_file(name, changed);
    files++;
  }
  closedir(folder);
  return files;
}

int main(int argc, char **argv) {
  int64_t changed = 0, files = 0;
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "-runs=", 6) == 0) changed = atoll(argv[i] + 6) / 100;
    if (strncmp(argv[i], "-seed=", 6) == 0) dice = (uint64_t)atoll(argv[i] + 6);
  }
  for (int i = 1; i < argc; i++) {
    if (argv[i][0] != '-') files += run_folder(argv[i], changed);
  }
  printf("Done: %lld files, each also with %lld changes\n", (long long)files, (long long)changed);
  return 0;
}
