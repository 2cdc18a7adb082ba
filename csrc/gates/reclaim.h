/*
 * reclaim.h - when may a node be freed? Prefix reclamation for a list that is read from its front (spec/Reclaim.tla).
 *
 *   level 1   D =============> C ================> F ========> tail
 *   level 0   D -> a -> b ---> C -> d -> e -> f -> F -> g ---> tail
 *             ^oldest          ^front    ^head 1        ^head 0
 *
 * Every search begins at `front` or behind it. `front` is a node of full height that every reader has reached, so all
 * levels can be entered there, and nothing is ever inserted before it. What lies before it is out of reach but for
 * calls that had begun when it moved; once these have ended, it goes.
 *
 * Roles       each input's thread: reclaim_enter, reclaim_leave around its searches. Each reader's thread counts the
 *             nodes it has left: reclaim_count. Reader 0 also calls reclaim_advance.
 * Invariants  I1 front, every reader's head, and every pointer an input holds inside a call lead to nodes that are not
 *             freed; I2 from front on, each level is ascending and part of the level below; I3 nothing is inserted
 *             before a reader's head; I4 front is of full height and linked on all levels.
 * Guarantees  G1 no node is freed while anybody can reach it, and none twice. G2 active_enter / front_read and
 * front_move / active_read are sequentially consistent: one of the two sees the other. G3 what lies before front goes
 *             once the calls of that moment have ended: an input between two calls holds nothing, however long.
 * Progress    all calls are wait-free.
 *
 * May run together: everything, but for two calls of the same input or the same reader.
 */
#pragma once

#include "gates/skip_list.h"

/* What never changes, what all read and reader 0 writes, and what is reader 0's own are lines apart. */
typedef struct {
  cell_alone *active; /* per input: entries and exits, odd inside */
  cell_alone *passed; /* per reader: nodes left behind */
  int32_t inputs, readers, levels;
  uint8_t apart_front[64];
  cell front;
  uint8_t apart_own[64];
  skip_node *moved;  /* front */
  skip_node *oldest; /* the first node that is not freed */
  skip_node *trail;  /* follows the slowest reader */
  uint64_t rank;     /* of trail: how many nodes are before it */
  skip_node *best;   /* the last node of full height up to trail */
  uint64_t *waiting; /* per input: the call that was under way when front moved; 0: ended */
  uint8_t apart_end[64];
} reclaim;

/* `first` is the first node of the list, of full height. False when out of memory; reclaim_end is due even then. */
bool reclaim_init(reclaim *r, int32_t inputs, int32_t readers, int32_t levels, skip_node *first);
void reclaim_end(reclaim *r);

/* An input begins a call: gives front, and an entry to be handed to reclaim_leave when the call holds no node any
   more. */
skip_node *reclaim_enter(reclaim *r, int32_t input, uint64_t *entry);
void reclaim_leave(reclaim *r, int32_t input, uint64_t entry);

/* A reader says how many nodes it has left behind, in all. It may say so late. */
void reclaim_count(reclaim *r, int32_t reader, uint64_t nodes);

/* Reader 0, `nodes` its own count: moves front, or looks whether the calls of that moment have ended. True: the nodes
   from *first up to *end, which stays, are the caller's, linked by next[0]. */
bool reclaim_advance(reclaim *r, uint64_t nodes, skip_node **first, skip_node **end);
