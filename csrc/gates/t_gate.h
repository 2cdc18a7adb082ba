/*
 * t_gate.h - T-Gate (Alg. 4): merges timestamp-sorted inputs in one lock-free list, read from its front by any number
 * of readers, each of which gets every tuple. Spec: spec/TGate.tla; memory: spec/Reclaim.tla.
 *
 *   head                 written[1]             written[0]
 *    |                       |                      |
 *   dummy 0 -> dummy 1 -> (4, 1) -> (5, 0) -> (6, 0) -> tail
 *
 * Nodes are sorted by (ts, input, position within the input): the key's two words are ts and
 *   | close: 1 bit | input: 16 | position among the input's nodes of equal ts: 47, stops at its maximum |
 * Four kinds: one dummy (-1, k) per input from the start, tuples, heartbeats, and a close marker after everything else.
 * All but tuples are markers: readers skip them. written[k] is the last linked node of input k.
 *
 * `head` of a reader is the last node it has passed. The reader may advance when written[input of head] is another
 * node. No reader passes the latest node of an input, so at that time the latest nodes of all inputs are ahead, nothing
 * can be inserted before head's next node any more, and that node is ready. The test is exact, and one comparison.
 *
 * Roles       one thread per input: insert, heartbeat, close. One thread per reader: get, position, waits_for. Reader 0
 *             also frees what all readers have passed.
 * Invariants  I1 every level ascends in the key;
 *             I2 every level is a sublist of the one below;
 *             I3 a linked node stays linked until all readers have passed it;
 *             I4 no head is past written[k], for any k;
 *             I5 a reader that may advance finds a node, and the same one however long it waits;
 *             I6 hint[l] is of a node linked on level l and not after what the input inserts next; it is followed only
 *                if it is after reclaim's front;
 *             I7 if head is a close marker, every input is closed and this reader has got everything.
 * Guarantees  G1 linearizable to spec/ReadyOrder.tla: insert, heartbeat and close at insert_publish, get with a tuple
 *                at its last next_read_next, get with nothing at next_read_written;
 *             G2 a thread that sees a node sees its fields (link_swap, link_read);
 *             G3 `written` is stored after the links (written_publish) and loaded before next (written_read): a reader
 *                that sees it change finds the node.
 * Progress    inserts are lock-free, gets are wait-free: two reads, and two more for each marker on the way.
 * Memory      no allocation per tuple (slab.h). Nodes that all readers have passed are freed, even if inputs are idle
 *             (reclaim.h); nodes that a reader has not passed are held.
 *
 * May run together:        insert/heartbeat/close   get/position/waits_for   free
 *   insert, same input               no                       yes             no
 *   insert, other input              yes                      yes             no
 *   get, same reader                 yes                      no              no
 *   get, other reader                yes                      yes             no
 */
#pragma once

#include "gates/reclaim.h"
#include "gates/slab.h"

enum {
  T_GATE_INPUTS_MAX = 1 << 16, /* 16 bits of the key */
  T_GATE_READERS_MAX = 1 << 16
};

/* 0: the default. Tests use small values to make rare paths common. */
typedef struct {
  int32_t inputs, readers; /* at least 1 */
  int32_t levels;          /* 1 .. SKIP_LEVELS_MAX */
  int32_t full_every;      /* at least one of n nodes of an input has full height, so that front can advance */
  int32_t count_every;     /* readers count, and reader 0 frees, every n nodes; 1 in Reclaim.tla */
  int64_t slab_bytes;      /* 1: one allocation per node */
  int64_t slab_spares;     /* freed slabs kept per input; -1: none */
} t_gate_options;

typedef struct {
  int64_t ts;
  uint64_t payload[2];
  int32_t input;
} t_gate_tuple;

typedef struct {
  slab_taker slabs;
  skip_tower tower;
  skip_hint hint[SKIP_LEVELS_MAX];
  skip_node *close;  /* the marker, allocated in advance, so that close cannot fail */
  int64_t latest;    /* -1: nothing inserted yet */
  uint64_t position; /* of the last node among those with its ts */
  bool closed;
  uint8_t apart[64];
} t_gate_input;

typedef struct {
  skip_node *head;
  uint64_t passed;  /* nodes passed */
  uint64_t counted; /* as reported to reclaim */
  uint8_t apart[64];
} t_gate_reader;

typedef struct t_gate {
  t_gate_options options;
  reclaim reclaim;
  cell_alone *written;
  t_gate_input *input;
  slab_giver *giver; /* per input */
  t_gate_reader *reader;
  uint8_t *closes; /* memory of the close markers */
} t_gate;

/* PS_OK or PS_NO_MEMORY. */
ps_code t_gate_new(const t_gate_options *options, t_gate **out);
void t_gate_free(t_gate *gate);

/* Input's thread: reserves memory for its next n inserts and heartbeats. False: out of memory. */
bool t_gate_reserve(t_gate *gate, int32_t input, int64_t n);

/* Input's thread. PS_DISORDER (fault: row, ts, latest), PS_CLOSED or PS_NO_MEMORY: nothing has changed. */
ps_code t_gate_insert_tuple(t_gate *gate, int32_t input, int64_t ts, const uint64_t payload[2], ps_fault *fault);

/* All n tuples or none; tuple i has the payload {payload[0], payload[1] + i}. Not atomic: inserted one by one. */
ps_code t_gate_insert_tuples(t_gate *gate, int32_t input, int64_t n, const int64_t *ts, const uint64_t payload[2],
                             ps_fault *fault);

/* Promises that nothing below ts follows. At or below the latest timestamp it has no effect. */
ps_code t_gate_heartbeat(t_gate *gate, int32_t input, int64_t ts, ps_fault *fault);

/* Promises that nothing follows. Closing again has no effect. */
void t_gate_close(t_gate *gate, int32_t input);

/* Reader's thread. PS_OK: a tuple; PS_EMPTY: nothing is ready; PS_END: all inputs are closed, all was returned. */
ps_code t_gate_get_next_ready_tuple(t_gate *gate, int32_t reader, t_gate_tuple *out);

/* Returns up to n tuples; *got is 0 unless PS_OK. */
ps_code t_gate_get_ready_tuples(t_gate *gate, int32_t reader, int64_t n, t_gate_tuple *out, int64_t *got);

/* The reader's position, markers included: it will get nothing below this timestamp. After PS_EMPTY it is the lowest
   timestamp that can still be inserted, the minimum of the inputs' latest ones at that time; after PS_END it is
   INT64_MAX. Windows that end at or before it are complete for this reader. */
int64_t t_gate_position(const t_gate *gate, int32_t reader);

/* Whether the reader is at the end of all inputs: its next get returns PS_END (I7). */
bool t_gate_ended(const t_gate *gate, int32_t reader);

/* After PS_EMPTY: the input whose next tuple or promise the reader waits for. */
int32_t t_gate_waits_for(const t_gate *gate, int32_t reader);
