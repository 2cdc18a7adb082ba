/*
 * ms_queue.h - the lock-free queue of Michael and Scott (1996), of 64-bit values. Spec: spec/MSQueue.tla.
 *
 *    head ---> dummy ---> v1 ---> v2 ---> nil      the queue
 *                          tail --^                tail may lag by one
 *    top ----> free ---> free ---> nil             the pool
 *
 * Nodes are allocated from a pool and reused, so a pointer is a counted word: the node's number in the low 32 bits (0:
 * nil) and in the high 32 a tag that every write increments. A compare-and-swap whose thread slept through a reuse
 * fails. (It would not after exactly 2^32 writes of the word; the operator has one enqueuer and one dequeuer per queue,
 * where no tag is needed at all: model MSQueuePairUncounted.)
 *
 * Roles         enqueue, dequeue, peek, is_empty: any thread, all concurrently. reserve: one thread at a time,
 *               concurrently with all of those. init, free: no other call.
 * Invariants    I1 the list from head ends in nil and contains tail, which is the last node or the one before it;
 *               I2 every node is in one place: in the queue, in the pool, or owned by one thread;
 *               I3 a compare-and-swap that succeeds replaces the value that its thread has read.
 * Guarantees    G1 linearizable: enqueue at enqueue_cas_next, dequeue at dequeue_cas_head, "empty" and peek at the read
 *                  of `next` if the check that follows finds head unchanged;
 *               G2 "full" only if every node that is not in the queue is owned by another thread.
 * Progress      lock-free. A stopped thread keeps at most one node.
 * Memory        reserve adds chunks to the pool, which double and stay until free. So a node that is reused while a
 *               thread reads it is still a node, and the thread's next check or compare-and-swap fails.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

typedef struct {
  cell next; /* counted word: the next node, in the queue or in the pool */
  cell value;
} ms_node;

#define MS_CHUNK_MIN SIZED(64, 2) /* nodes of the first chunk; chunk c has MS_CHUNK_MIN << c */
#define MS_CHUNKS 26
/* All chunks together hold MS_CHUNK_MIN * (2^MS_CHUNKS - 1) nodes, numbered from 1: they must fit into 32 bits. */
_Static_assert(((UINT64_C(1) << MS_CHUNKS) - 1) * MS_CHUNK_MIN <= UINT32_MAX, "a node's number has 32 bits");

#define MS_LINE 64 /* cache line: enqueuers use tail, dequeuers head */

typedef struct {
  cell head;
  uint8_t after_head[MS_LINE - sizeof(cell)];
  cell tail;
  uint8_t after_tail[MS_LINE - sizeof(cell)];
  cell top;
  uint8_t after_top[MS_LINE - sizeof(cell)];
  int64_t nodes;             /* reserver: nodes made so far, including the dummy */
  ms_node *chunk[MS_CHUNKS]; /* each is set before the first of its nodes is in the pool */
} ms_queue;

bool ms_queue_init(ms_queue *q); /* false: out of memory */
void ms_queue_free(ms_queue *q);

/* Makes the pool large enough for `values` in the queue and one concurrent dequeue. False: out of memory. */
bool ms_queue_reserve(ms_queue *q, int64_t values);

bool ms_queue_enqueue(ms_queue *q, uint64_t value);  /* false: full */
bool ms_queue_dequeue(ms_queue *q, uint64_t *value); /* false: empty */
bool ms_queue_peek(ms_queue *q, uint64_t *value);    /* false: empty */
bool ms_queue_is_empty(ms_queue *q);
