/*
 * coalesce.h - small batches of one input, copied behind each other into larger ones.
 *
 * For a few rows it costs more to keep the caller's buffers, hand them to the output thread and back, and release them
 * than to copy them. What was copied is a batch like others for the ledger and for snapshots; the design gets a view
 * of the rows that were just copied. Only for designs that keep no reference to a batch (design.h, folds), and for
 * values of fixed width without nulls.
 *
 *   open   [ . . . . . | + + |           ]     + copied, and seen through `view`; they count once they are held
 *            rows       view    room
 *
 * All calls are made under the input's lock. The open batch is the last one in the ledger, from its first rows on, and
 * the ledger lets nobody take it out while it has room (ledger.h, I3); until then it is private.
 */
#pragma once

#include "operator/ledger.h"

typedef struct {
  batch *open;   /* NULL: none */
  batch *view;   /* the rows that were copied last */
  int32_t *bits; /* of a row, by column */
  int32_t columns;
} coalescer;

/* What counts as small. */
#define COALESCE_ROWS SIZED(32, 2) /* rows */

bool coalesce_init(coalescer *g, int32_t columns, const ps_type *types); /* false: out of memory, nothing made */
void coalesce_free(coalescer *g);                                        /* the ledger's batches are freed by others */

/* Copies at most COALESCE_ROWS rows; g->view shows them. PS_EMPTY: there are nulls among them; PS_NO_MEMORY. They count
   once coalesce_hold is called; if it is not, nothing has happened. */
ps_code coalesce_copy(coalescer *g, const struct ArrowArray *arrow);
void coalesce_hold(coalescer *g, ledger *l);

/* Another batch will be put into the ledger. */
void coalesce_close(coalescer *g);
