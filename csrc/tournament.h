/*
 * tournament.h - which of n contestants has the lowest score, kept up to date in log n steps (a tree of losers).
 *
 * Equal scores go to the lower number. Only the winner's score changes, and it only grows: what happens to the input
 * that a reader stands at. For one thread.
 *
 *   loser[1]          each inner place holds who lost there; the winner of all is at loser[0]
 *   loser[2] loser[3]
 *   (contestants size, size + 1, ... are the leaves)
 */
#pragma once

#include "base.h"

typedef struct {
  int32_t size;    /* leaves: a power of two; those behind the last contestant never win */
  int32_t *loser;  /* size places */
  uint64_t *score; /* of each leaf */
} tournament;

static inline bool tournament_beats(const tournament *t, int32_t a, int32_t b) {
  return t->score[a] < t->score[b] || (t->score[a] == t->score[b] && a < b);
}

static inline void tournament_free(tournament *t) {
  memory_free(t->loser);
  memory_free(t->score);
  *t = (tournament){0};
}

/* All scores 0. False when out of memory. */
static inline bool tournament_init(tournament *t, int32_t n) {
  *t = (tournament){.size = 1};
  while (t->size < n) t->size *= 2;
  t->loser = memory_new((size_t)t->size * sizeof *t->loser);
  t->score = memory_new((size_t)t->size * sizeof *t->score);
  if (!t->loser || !t->score) {
    tournament_free(t);
    return false;
  }
  for (int32_t i = n; i < t->size; i++) t->score[i] = UINT64_MAX;
  for (int32_t i = 1; i < t->size;
       i++) { /* with equal scores the left side wins: the loser is the right one's lowest */
    int32_t right = 2 * i + 1;
    while (right < t->size) right *= 2;
    t->loser[i] = right - t->size;
  }
  return true;
}

static inline int32_t tournament_winner(const tournament *t) { return t->loser[0]; }
static inline uint64_t tournament_lowest(const tournament *t) { return t->score[t->loser[0]]; }

/* The winner has a new score. */
static inline void tournament_update(tournament *t, uint64_t score) {
  int32_t winner = t->loser[0];
  t->score[winner] = score;
  for (int32_t i = (winner + t->size) / 2; i > 0; i /= 2) {
    int32_t other = t->loser[i];
    bool lost = tournament_beats(t, other, winner);
    t->loser[i] = lost ? winner : other;
    winner = lost ? other : winner;
  }
  t->loser[0] = winner;
}

/* Who would win without the winner; -1 if there is nobody else. */
static inline int32_t tournament_second(const tournament *t) {
  int32_t best = -1;
  for (int32_t i = (t->loser[0] + t->size) / 2; i > 0; i /= 2) {
    if (best < 0 || tournament_beats(t, t->loser[i], best)) best = t->loser[i];
  }
  return best;
}
