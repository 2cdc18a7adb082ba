/*
 * aggregate.h - the window functions of a query, and the states of its windows.
 *
 * A window's state is one block of bytes: the states of all aggregates of the query, in order. Zero bytes are an empty
 * window. The code of each aggregate is looked up once, when the operator is made (kernel.h).
 */
#pragma once

#include "base/base.h"
#include "aggregates/kernel.h"

struct aggregate {
  const kernel *kernel;
  int32_t column;
  int32_t mask;
  int32_t by;         /* second column; 0: none */
  int32_t parameter;  /* see ps_aggregate */
  ps_type type;       /* of the column; PS_I64 where there is none */
  ps_type by_type;    /* of the second column */
  int64_t offset;     /* of this aggregate's state in the window's block */
  size_t size;        /* of that state */
  int32_t word;       /* the first of its words in a shared window (shared.h) */
  bool is_bytes;      /* its column is a string, and so is its output column */
  bool out_bytes;     /* its output column is a string, or a list (set_results.c) */
  int32_t strings;    /* of the column: see ps_query */
  native_udf *native; /* PS_NATIVE only; owned */
  ps_set *set;        /* functions over multisets only (sets.h); owned */
};

typedef struct {
  int32_t n;
  int32_t udf;        /* index of the PS_UDF aggregate, -1: none */
  int64_t state_size; /* a multiple of 16, for the 128-bit sums */
  bool combines;      /* all of them can combine: a window may be kept in lanes */
  bool reserves;      /* some of them allocate in add */
  int32_t words;      /* of a window that threads share (shared.h); 0: some function does not allow it */
  aggregate *each;
} aggregates;

static inline const kernel *kernel_at(const aggregates *all, int32_t i) { return all->each[i].kernel; }

bool aggregates_init(aggregates *all, const ps_query *query);
void aggregates_free(aggregates *all);

/* Whether the row counts for this aggregate. */
static inline bool aggregate_counts(const aggregate *a, const batch *b, int64_t row) {
  if (a->mask >= 0 && !column_bool(&b->columns[a->mask], row)) return false;
  if (a->by && column_is_null(&b->columns[a->by], row)) return false;
  return a->column < 0 || !column_is_null(&b->columns[a->column], row);
}

bool aggregates_add(const aggregates *all, uint8_t *state, const batch *b, int64_t row);
void aggregates_drop(const aggregates *all, uint8_t *state);

/* Allocates what adding the row needs, so that aggregates_add cannot fail. Results do not change. */
bool aggregates_reserve(const aggregates *all, uint8_t *state, const batch *b, int64_t row);

/* Moves `other` into `state`: exact, in any order and grouping. Requires all->combines. False: out of memory; some
   aggregates have moved, the next call continues with the others. */
bool aggregates_combine(const aggregates *all, uint8_t *state, uint8_t *other);

/* Writes the results to columns `to`, `to` + 1, ...; a failure names the aggregate in *fault. */
ps_code aggregates_finish(const aggregates *all, const uint8_t *state, out_rows *rows, int32_t to, ps_fault *fault);

/* The window number kept by PS_UDF. */
int64_t *aggregates_udf_window(const aggregates *all, uint8_t *state);
