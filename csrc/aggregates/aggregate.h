/*
 * aggregate.h - the window functions of a query, and the states of its windows.
 *
 * A window's state is one block of bytes: the state of each aggregate of the query, one behind the other. All zero
 * bytes is a window that nothing fell into. Which code runs for an aggregate is looked up once (kernel.h).
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
  bool is_bytes;      /* its output column is a string */
  int32_t strings;    /* of the column: see ps_query */
  native_udf *native; /* PS_NATIVE only; owned */
};

typedef struct {
  int32_t n;
  int32_t udf;        /* index of the PS_UDF aggregate, -1: none */
  int64_t state_size; /* a multiple of 16, for the 128-bit sums */
  bool combines;      /* all of them do: windows may be kept in parts, in any order */
  bool reserves;      /* some of them allocate in add */
  aggregate *each;
} aggregates;

bool aggregates_init(aggregates *all, const ps_query *query);
void aggregates_free(aggregates *all);

bool aggregates_add(const aggregates *all, uint8_t *state, const batch *b, int64_t row);
void aggregates_drop(const aggregates *all, uint8_t *state);

/* Allocates what adding the row would need, so that the same aggregates_add cannot fail; the results stay. */
bool aggregates_reserve(const aggregates *all, uint8_t *state, const batch *b, int64_t row);

/* Moves what `other` has taken in over to `state`: exact, in any order and grouping. False when out of memory: then
   some aggregates have moved and the others have not; calling again goes on from there. Wants all->combines. */
bool aggregates_combine(const aggregates *all, uint8_t *state, uint8_t *other);

/* Writes the results as columns `to`, `to` + 1, ...; on failure says at which aggregate, and with which code. */
ps_code aggregates_finish(const aggregates *all, const uint8_t *state, out_rows *rows, int32_t to, ps_fault *fault);

/* The window number kept by PS_UDF. */
int64_t *aggregates_udf_window(const aggregates *all, uint8_t *state);
