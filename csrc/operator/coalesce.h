/*
 * coalesce.h - copies small batches of one input into a larger one.
 *
 * For a few rows, copying is cheaper than keeping the caller's buffers, handing them to the output thread and releasing
 * them afterwards. The copy is an ordinary batch for the ledger and for snapshots; the design gets a view of the rows
 * copied last. Only for designs that keep no reference to a batch (design.h, `folds`), and for columns of fixed width
 * without nulls.
 *
 *   open   [ . . . . . | + + |           ]     + rows copied last, visible through `view`; held after coalesce_hold
 *            rows       view    room
 *
 * All calls are guarded by the input's lock. The open batch is private until its first rows are held. From then on it
 * is the last batch of the ledger, which does not remove it while it has room (ledger.h, I3).
 */
#pragma once

#include "operator/ledger.h"

typedef struct {
  batch *open;   /* NULL: none */
  batch *view;   /* the rows copied last */
  int32_t *bits; /* bits per row, by column */
  int32_t columns;
} coalescer;

/* Largest batch that is copied. */
#define COALESCE_ROWS SIZED(32, 2) /* rows */

bool coalesce_init(coalescer *g, int32_t columns, const ps_type *types); /* false: out of memory, nothing made */
void coalesce_free(coalescer *g);                                        /* but not batches that the ledger holds */

/* Copies at most COALESCE_ROWS rows and points g->view at them. PS_EMPTY: some are null; PS_NO_MEMORY. Without a
   following coalesce_hold the call has no effect. */
ps_code coalesce_copy(coalescer *g, const struct ArrowArray *arrow);
void coalesce_hold(coalescer *g, ledger *l);

/* Ends the open batch: another batch is about to be put into the ledger. */
void coalesce_close(coalescer *g);
