/*
 * slab.h - memory for the nodes of one input, which are freed in the order in which they were taken.
 *
 *   oldest                                        being filled
 *   | node | node | node (last) | -> ... -> | node | node |      |       spare: slabs that wait for their turn
 *
 * The input takes nodes from left to right. Because they are freed in the same order, only the last one of a slab
 * matters: when it goes, the slab goes. Freed slabs come back to the input through `returned`, up to `spares_max` of
 * them; more go back to the system, so that a burst does not keep its memory for ever.
 *
 * Roles       one taker (the input's thread), one giver (the thread that reclaims).
 * Invariants  I1  a slab is in one place: in the chain from `oldest` to the one being filled, in `spare` or in
 *                 `returned`.
 *             I2  `returned` is emptied as a whole by the taker and grown by the giver alone, so a swap that succeeds
 *                 met the very slab it expected (no ABA).
 *             I3  the giver frees a last node only when the input has a later node linked: the chain goes on behind it.
 * Guarantees  G1  what anybody did with a slab's nodes is over when the taker uses it again (returned_push releases,
 *                 returned_take acquires).
 * Progress    slab_take is wait-free. slab_reserve (but for the system's allocator) and slab_give are lock-free: one
 *             repeats a swap only because the other's succeeded.
 *
 * In spec/Reclaim.tla this is the allocator: insert_take_node and reclaim_free.
 */
#pragma once

#include "gates/skip_list.h"

typedef struct slab {
  struct slab *next;
  int64_t depth; /* in `returned`: how many slabs there are from here on; the giver's */
  uint8_t nodes[];
} slab;

typedef struct {
  cell returned; /* slabs linked by next, 0: none */
  slab *oldest;
  int64_t spares_max;
  uint8_t apart[64]; /* from the next input's */
} slab_giver;

typedef struct {
  uint8_t *free, *end; /* what is left of the slab being filled; less than the largest node: nothing */
  slab *filling;
  slab *spare;
  int64_t spares;
  size_t bytes;    /* of one slab's nodes */
  size_t node_max; /* of the largest node */
  slab_giver *giver;
} slab_taker;

/* Slabs of about `bytes`, each with room for at least one node of `levels`. False when out of memory. */
bool slab_init(slab_taker *taker, slab_giver *giver, int64_t bytes, int64_t spares_max, int levels);

/* Frees all slabs and with them every node. No other call may run. */
void slab_free_all(slab_taker *taker, slab_giver *giver);

/* Makes sure that `nodes` more nodes with the heights that the tower is going to draw can be taken. False when out of
   memory; then nothing has changed but the number of spares. */
bool slab_reserve(slab_taker *taker, skip_tower tower, int64_t nodes);

/* A node that was reserved, its height set. */
skip_node *slab_take(slab_taker *taker, int height);

/* The giver frees nodes in the order in which they were taken; here he says that one that is `last` has gone. */
void slab_give(slab_giver *giver);
