/* coalesce.c - see coalesce.h. */
#include "operator/coalesce.h"

#define ROOM SIZED(512, 3) /* rows per allocation; also the most that an idle input keeps allocated */

_Static_assert(COALESCE_ROWS <= ROOM, "a small batch fits");

bool coalesce_init(coalescer *g, int32_t columns, const ps_type *types) {
  *g = (coalescer){.columns = columns};
  g->view = memory_new(sizeof *g->view + (size_t)columns * sizeof(column));
  g->bits = memory_new((size_t)columns * sizeof *g->bits);
  if (!g->view || !g->bits) {
    coalesce_free(g);
    return false;
  }
  for (int32_t i = 0; i < columns; i++) {
    g->view->columns[i].type = types[i];
    g->bits[i] = (int32_t)type_bits(types[i]);
  }
  return true;
}

void coalesce_free(coalescer *g) {
  if (g->open && g->open->rows == 0) memory_free(g->open);
  memory_free(g->view);
  memory_free(g->bits);
}

static size_t column_bytes_max(const coalescer *g, int32_t i) { return (size_t)(ROOM * g->bits[i] / 64 + 1) * 8; }

/* Allocates an empty batch and points the view at it. A previous one belongs to the ledger. */
static bool open_new(coalescer *g) {
  size_t size = sizeof(batch) + (size_t)g->columns * sizeof(column), at = size;
  for (int32_t i = 0; i < g->columns; i++) size += column_bytes_max(g, i);
  batch *b = memory_resize(NULL, size);
  if (!b) return false;
  *b = (batch){.room = ROOM};
  for (int32_t i = 0; i < g->columns; i++) {
    b->columns[i] = (column){.type = g->view->columns[i].type, .values = (uint8_t *)b + at};
    g->view->columns[i] = b->columns[i];
    at += column_bytes_max(g, i);
  }
  g->open = b;
  return true;
}

static void copy_bits(uint8_t *to, int64_t at, const uint8_t *from, int64_t first, int64_t rows) {
  for (int64_t i = 0; i < rows; i++, at++) {
    uint8_t bit = (uint8_t)(1u << (at & 7)), others = to[at >> 3] & (uint8_t)~bit;
    to[at >> 3] = bitmap_get(from, first + i) ? others | bit : others;
  }
}

/* Inlines the common case, a single value. */
static inline void copy_bytes(uint8_t *to, const uint8_t *from, int64_t size) {
  if (size == 8) {
    memcpy(to, from, 8);
  } else if (size == 4) {
    memcpy(to, from, 4);
  } else {
    memcpy(to, from, (size_t)size);
  }
}

ps_code coalesce_copy(coalescer *g, const struct ArrowArray *arrow) {
  int64_t rows = arrow->length;
  assert(rows <= COALESCE_ROWS);
  if ((!g->open || rows > g->open->room - g->open->rows) && !open_new(g)) return PS_NO_MEMORY;
  int64_t at = g->open->rows;
  for (int32_t i = 0; i < g->columns; i++) {
    const struct ArrowArray *a = arrow->children[i];
    int64_t first = arrow->offset + a->offset, width = g->bits[i] / 8;
    column *c = &g->view->columns[i];
    uint8_t *to = (uint8_t *)(uintptr_t)c->values; /* memory of the open batch, so writable */
    const uint8_t *from = a->buffers[1];
    if (a->null_count != 0 && a->buffers[0]) return PS_EMPTY;
    c->first = at;
    if (width == 0) {
      copy_bits(to, at, from, first, rows);
    } else {
      copy_bytes(to + at * width, from + first * width, rows * width);
    }
  }
  g->view->rows = rows;
  return PS_OK;
}

void coalesce_hold(coalescer *g, ledger *l) {
  batch *b = g->open;
  if (b->rows > 0) {
    ledger_extend(l, b, g->view->rows);
  } else {
    b->rows = g->view->rows;
    ledger_put(l, b);
  }
  if (b->rows == b->room) g->open = NULL; /* its rows are not folded yet, so the passer cannot have removed it */
}

void coalesce_close(coalescer *g) {
  if (g->open && g->open->rows > 0) g->open = NULL;
}
