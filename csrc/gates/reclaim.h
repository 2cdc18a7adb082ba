/*
 * reclaim.h - decides when a node may be freed: prefix reclamation for a list that is read from its front. Spec:
 * spec/Reclaim.tla.
 *
 *   level 1   D =============> C ================> F ========> tail
 *   level 0   D -> a -> b ---> C -> d -> e -> f -> F -> g ---> tail
 *             ^oldest          ^front    ^head 1        ^head 0
 *
 * Every search begins at `front` or after it. `front` is a node of full height that every reader has reached, so all
 * levels can be entered there, and nothing is ever inserted before it. The nodes before it are reachable only for calls
 * that began before it advanced; when these calls have ended, the nodes are freed.
 *
 * Roles       each input's thread: reclaim_enter and reclaim_leave around its searches. Each reader's thread:
 *             reclaim_count, the number of nodes it has passed. Reader 0 also calls reclaim_advance.
 * Invariants  I1 front, every reader's head, and every pointer that an input holds inside a call are nodes not freed;
 *             I2 from front on, each level is ascending and a sublist of the level below;
 *             I3 nothing is inserted before a reader's head;
 *             I4 front is of full height and linked on all levels.
 * Guarantees  G1 no node is freed while a thread can reach it, and none twice;
 *             G2 active_enter / front_read and front_move / active_read are sequentially consistent: one of the two
 *                threads sees the other's write;
 *             G3 the nodes before front are freed once the calls under way when it advanced have ended: an input
 *                between two calls delays nothing.
 * Progress    all calls are wait-free.
 *
 * May run together: all calls, except two of the same input or of the same reader.
 */
#pragma once

#include "gates/skip_list.h"

/* On separate cache lines: what never changes; what all read and reader 0 writes; what only reader 0 uses. */
typedef struct {
  cell_alone *active; /* per input: entries and exits; odd while in a call */
  cell_alone *passed; /* per reader: nodes passed */
  int32_t inputs, readers, levels;
  uint8_t apart_front[64];
  cell front;
  uint8_t apart_own[64];
  skip_node *moved;  /* the value of front */
  skip_node *oldest; /* the first node not freed */
  skip_node *trail;  /* follows the slowest reader */
  uint64_t rank;     /* number of nodes before trail */
  skip_node *best;   /* the last node of full height up to trail */
  uint64_t *waiting; /* per input: `active` at the first read after front advanced, if odd; 0: that call has ended */
  uint8_t apart_end[64];
} reclaim;

/* `first`: first node of the list, of full height. False: out of memory; reclaim_end must be called in any case. */
bool reclaim_init(reclaim *r, int32_t inputs, int32_t readers, int32_t levels, skip_node *first);
void reclaim_end(reclaim *r);

/* An input begins a call: returns front. *entry is for reclaim_leave, when the call holds no node any more. */
skip_node *reclaim_enter(reclaim *r, int32_t input, uint64_t *entry);
void reclaim_leave(reclaim *r, int32_t input, uint64_t entry);

/* A reader has passed `nodes` nodes in total. May be called late. */
void reclaim_count(reclaim *r, int32_t reader, uint64_t nodes);

/* Reader 0, with its own count: advances front, or tests whether the calls under way at that time have ended. True: the
   nodes from *first up to *end, exclusive, are the caller's to free, linked by next[0]. */
bool reclaim_advance(reclaim *r, uint64_t nodes, skip_node **first, skip_node **end);
