/* arrow_batch.h - Arrow batches for the drivers: every buffer is an allocation of its own, freed with its batch. */
#pragma once

#include "base/base.h"

#include <stdlib.h>

static void release_column(struct ArrowArray *a) {
  for (int64_t b = 0; b < a->n_buffers; b++) free((void *)(uintptr_t)a->buffers[b]);
  free(a->buffers);
  a->release = NULL;
}

/* A column whose buffers are still to be filled in. */
static struct ArrowArray *column(int64_t rows, int64_t offset, int64_t buffers) {
  struct ArrowArray *a = calloc(1, sizeof *a);
  *a = (struct ArrowArray){.length = rows, .offset = offset, .n_buffers = buffers, .release = release_column};
  a->buffers = calloc((size_t)buffers, sizeof *a->buffers);
  return a;
}

/* Values of a fixed width, as many bytes as there are and not one more. */
static void *values_of(struct ArrowArray *a, size_t width) {
  void *values = calloc((size_t)(a->offset + a->length), width);
  a->buffers[1] = values;
  return values;
}

static void release_batch(struct ArrowArray *a) {
  for (int64_t i = 0; i < a->n_children; i++) {
    a->children[i]->release(a->children[i]);
    free(a->children[i]);
  }
  free(a->children);
  a->release = NULL;
}

/* A batch whose columns are still to be filled in. */
static struct ArrowArray batch_with(int64_t rows, int64_t columns) {
  struct ArrowArray a = {.length = rows, .n_children = columns, .release = release_batch};
  a.children = calloc((size_t)columns, sizeof *a.children);
  return a;
}
