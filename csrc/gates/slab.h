/*
 * slab.h - memory for the nodes of one input, which are freed in the order in which they were taken.
 *
 *   oldest                                        filling
 *   | node | node | node (last) | -> ... -> | node | node |      |       spare: slabs to fill next
 *
 * The input takes nodes from left to right. Because they are freed in the same order, only the last one of a slab
 * matters: freeing it frees the slab. Freed slabs return to the input through `returned`, up to `spares_max` of them;
 * more are returned to the system, so that a burst does not keep its memory for ever.
 *
 * Roles       one taker (the input's thread), one giver (the thread that reclaims).
 * Invariants  I1  a slab is in one place: in the chain from `oldest` to `filling`, in `spare` or in `returned`.
 *             I2  only the taker empties `returned`, as a whole, and only the giver adds to it, so a swap that succeeds
 *                 found the very slab it expected (no ABA).
 *             I3  the giver frees a last node only when the input has linked a later node: the chain goes on.
 * Guarantees  G1  all uses of a slab's nodes happen before the taker reuses it (returned_push releases, returned_take
 *                 acquires).
 * Progress    slab_take is wait-free. slab_reserve (except for the system's allocator) and slab_return are lock-free: a
 *             swap is repeated only because the other thread's succeeded.
 *
 * In spec/Reclaim.tla this is the allocator: insert_take_node and reclaim_free.
 */
#pragma once

#include "gates/skip_list.h"

typedef struct slab {
  struct slab *next;
  int64_t depth; /* giver: number of slabs in `returned` from here on */
  uint8_t nodes[];
} slab;

typedef struct {
  cell returned; /* slabs linked by next; 0: none */
  slab *oldest;
  int64_t spares_max;
  uint8_t apart[64]; /* separates it from the next input's */
} slab_giver;

typedef struct {
  uint8_t *free, *end; /* the free part of `filling`; if smaller than node_max, the slab is full */
  slab *filling;
  slab *spare;
  int64_t spares;
  size_t bytes;    /* of the nodes of one slab */
  size_t node_max; /* of the largest node */
  slab_giver *giver;
} slab_taker;

/* Slabs of about `bytes`, each with room for at least one node of `levels`. False: out of memory. */
bool slab_init(slab_taker *taker, slab_giver *giver, int64_t bytes, int64_t spares_max, int levels);

/* Frees all slabs and with them every node. No other call may run. */
void slab_free_all(slab_taker *taker, slab_giver *giver);

/* Makes room for `nodes` more nodes with the heights that the tower will draw. False: out of memory; nothing has
   changed except the number of spares. */
bool slab_reserve(slab_taker *taker, skip_tower tower, int64_t nodes);

/* A node that was reserved, its height set. */
skip_node *slab_take(slab_taker *taker, int height);

/* Giver: the node that is `last` in the oldest slab is freed, so the slab is. Nodes are freed in the order taken. */
void slab_return(slab_giver *giver);
