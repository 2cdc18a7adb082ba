/*
 * tournament.h - the lowest of n scores, kept up to date in log n steps (a tree of losers). For one thread.
 *
 * Of equal scores the lower number wins: the rank of a contestant is its score followed by its number, and ranks are
 * compared as one integer. Usually only the winner's score changes, and only increases: the position of the input that
 * a reader advances. If many change at once, all matches are replayed.
 *
 *   loser[1]          each inner place holds the rank of the match's loser; loser[0] is the winner of all
 *   loser[2] loser[3]
 *   (contestants size, size + 1, ... are the leaves)
 *
 * The next winner is unpredictable, so the path to the root has no branch on it. Ranks are stored in the tree itself,
 * so that what is read on the path does not depend on the result below.
 */
#pragma once

#include "base/base.h"

typedef uint128 tournament_rank;

typedef struct {
  int32_t size;           /* leaves: a power of two; those after the last contestant never win */
  tournament_rank *loser; /* size places */
  uint64_t *score;        /* by leaf */
} tournament;

static inline tournament_rank tournament_rank_of(uint64_t score, int32_t number) {
  return (tournament_rank)score << 64 | (uint32_t)number;
}

static inline uint64_t tournament_rank_score(tournament_rank r) { return (uint64_t)(r >> 64); }
static inline int32_t tournament_rank_number(tournament_rank r) { return (int32_t)(uint32_t)r; }

static inline void tournament_free(tournament *t) {
  memory_free(t->loser);
  memory_free(t->score);
  *t = (tournament){0};
}

/* The rank at a place: the winner of the matches below it, during a replay, or a leaf. */
static inline tournament_rank tournament_stands(const tournament *t, int32_t place) {
  return place < t->size ? t->loser[place] : tournament_rank_of(t->score[place - t->size], place - t->size);
}

/* Any scores have changed. First winners move up; then, from the root, each place gets the loser of the two below. */
static inline void tournament_replay(tournament *t) {
  for (int32_t i = t->size - 1; i > 0; i--) {
    tournament_rank left = tournament_stands(t, 2 * i), right = tournament_stands(t, 2 * i + 1);
    t->loser[i] = right < left ? right : left;
  }
  t->loser[0] = tournament_stands(t, 1);
  for (int32_t i = 1; i < t->size; i++) {
    tournament_rank left = tournament_stands(t, 2 * i), right = tournament_stands(t, 2 * i + 1);
    t->loser[i] = right < left ? left : right;
  }
}

/* All scores are 0. False: out of memory. */
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
  tournament_replay(t);
  return true;
}

static inline int32_t tournament_winner(const tournament *t) { return tournament_rank_number(t->loser[0]); }
static inline uint64_t tournament_lowest(const tournament *t) { return tournament_rank_score(t->loser[0]); }

/* Sets the winner's score. */
static inline void tournament_update(tournament *t, uint64_t score) {
  int32_t winner = tournament_winner(t);
  tournament_rank rank = tournament_rank_of(score, winner);
  t->score[winner] = score;
  for (uint32_t i = (uint32_t)(winner + t->size) / 2; i > 0; i /= 2) {
    tournament_rank other = t->loser[i];
    bool lost = other < rank;
    t->loser[i] = lost ? rank : other;
    rank = lost ? other : rank;
  }
  t->loser[0] = rank;
}

/* The rank that would win without the winner; the highest possible rank if there is no other. */
static inline tournament_rank tournament_second(const tournament *t) {
  tournament_rank best = tournament_rank_of(UINT64_MAX, -1);
  for (uint32_t i = (uint32_t)(tournament_winner(t) + t->size) / 2; i > 0; i /= 2) {
    if (t->loser[i] < best) best = t->loser[i];
  }
  return best;
}
