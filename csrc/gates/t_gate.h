/*
 * t_gate.h - T-Gate (Alg. 4): timestamp-sorted inputs merged in one lock-free list, read from its front by any number
 * of readers, each of which receives every tuple (spec/TGate.tla; memory: spec/Reclaim.tla).
 *
 *   head                 written[1]             written[0]
 *    |                       |                      |
 *   dummy 0 -> dummy 1 -> (4, 1) -> (5, 0) -> (6, 0) -> tail
 *
 * Nodes are sorted by (ts, input, position within the input): the key's two words are ts and
 *   | close: 1 bit | input: 16 | position among the input's nodes of equal ts: 47, stops at its maximum |
 * Four kinds: a dummy (-1, k) per input from the start, tuples, heartbeats, and a close marker behind everything else.
 * All but tuples are markers: readers walk over them. written[k] is the last node of input k that stands in the list.
 *
 * A reader stands on `head`, the last node it has passed, and may leave once written[input of head] is another node.
 * Nobody leaves the latest node of an input, so at that moment the latest nodes of all inputs are ahead, nothing can
 * slip in before head's next node any more, and that node is ready. The test is exact, and one comparison.
 *
 * Roles       one thread per input: insert, heartbeat, close. One thread per reader: get, position, waits_for. Reader 0
 *             also frees what all readers have passed.
 * Invariants  I1 every level ascends in the key; I2 every level is a sublist of the one below; I3 a linked node stays
 *             linked until all readers have passed it; I4 no head is past written[k], for any k; I5 a reader that may
 *             leave finds a node, and the same one however long it waits; I6 hint[l] is of a node linked on level l,
 * not after what the input inserts next, and followed only if it is behind reclaim's front; I7 a head on a close
 *             marker: every input is closed and this reader has had everything.
 * Guarantees  G1 linearizable to spec/ReadyOrder.tla: insert, heartbeat and close at insert_publish, get with a tuple
 * at its last next_read_next, get with nothing at next_read_written. G2 who sees a node sees its fields (link_swap,
 * link_read). G3 `written` is stored after the links (written_publish) and loaded before next (written_read): who sees
 * it move finds the node. Progress    inserts are lock-free, gets are wait-free: two reads, and two more for each
 * marker on the way. Memory      no allocation per tuple (slab.h). What all readers have passed is freed, whatever idle
 * inputs do (reclaim.h); what a reader has not passed is held.
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

/* 0 stands for the default. The small values that tests use make rare paths common. */
typedef struct {
  int32_t inputs, readers; /* at least 1 */
  int32_t levels;          /* 1 .. SKIP_LEVELS_MAX */
  int32_t full_every;      /* a node of full height at least every so many nodes of an input: front can follow */
  int32_t count_every;     /* readers count, and reader 0 frees, every so many nodes; 1 is what Reclaim.tla has */
  int64_t slab_bytes;      /* 1: every node is an allocation of its own */
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
  skip_node *close;  /* the marker, made beforehand, so that close cannot fail */
  int64_t latest;    /* -1: nothing received yet */
  uint64_t position; /* of the last node among those with its ts */
  bool closed;
  uint8_t apart[64];
} t_gate_input;

typedef struct {
  skip_node *head;
  uint64_t passed;  /* nodes left behind */
  uint64_t counted; /* as far as reclaim knows */
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

/* The input's thread: makes sure that its next n inserts, heartbeats included, find memory. False when out of memory.
 */
bool t_gate_reserve(t_gate *gate, int32_t input, int64_t n);

/* The input's thread. PS_DISORDER (fault: row, ts, latest), PS_CLOSED or PS_NO_MEMORY: nothing has changed. */
ps_code t_gate_insert_tuple(t_gate *gate, int32_t input, int64_t ts, const uint64_t payload[2], ps_fault *fault);

/* All n tuples or none; tuple i carries {payload[0], payload[1] + i}. They come in one by one, not at a stroke. */
ps_code t_gate_insert_tuples(t_gate *gate, int32_t input, int64_t n, const int64_t *ts, const uint64_t payload[2],
                             ps_fault *fault);

/* Promises that nothing below ts follows; below or at the latest timestamp it says nothing new and does nothing. */
ps_code t_gate_heartbeat(t_gate *gate, int32_t input, int64_t ts, ps_fault *fault);

/* Promises that nothing follows. Closing again does nothing. */
void t_gate_close(t_gate *gate, int32_t input);

/* The reader's thread. PS_OK: a tuple; PS_EMPTY: nothing is ready; PS_END: all inputs are closed, all has been had. */
ps_code t_gate_get_next_ready_tuple(t_gate *gate, int32_t reader, t_gate_tuple *out);

/* Up to n of them at once; *got is 0 but for PS_OK. */
ps_code t_gate_get_ready_tuples(t_gate *gate, int32_t reader, int64_t n, t_gate_tuple *out, int64_t *got);

/* How far the reader has come, markers included: nothing below this timestamp will reach it any more. After PS_EMPTY it
   is the least timestamp that can still come, which is the least of the inputs' latest ones at that moment; after
   PS_END it is INT64_MAX. Windows that end at or before it are complete for this reader. */
int64_t t_gate_position(const t_gate *gate, int32_t reader);

/* Whether the reader has come to the end of all inputs: its next get answers PS_END (I7). */
bool t_gate_ended(const t_gate *gate, int32_t reader);

/* After PS_EMPTY: the input whose next tuple or promise the reader waits for. */
int32_t t_gate_waits_for(const t_gate *gate, int32_t reader);
