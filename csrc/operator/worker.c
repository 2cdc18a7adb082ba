/* worker.c - see worker.h. */
#include "operator/worker.h"

#include "operator/design.h"
#include "base/memory.h"
#include "operator/promises.h"

/* ---- one worker ---- */

/* Whether a pause is requested. If so, everything done before it is visible (the mutex orders it). */
static bool pause_wanted(pause_state *p) {
  if (!ps_flag_get(&p->wanted)) return false;
  pthread_mutex_lock(&p->lock);
  bool wanted = ps_flag_get(&p->wanted);
  pthread_mutex_unlock(&p->lock);
  return wanted;
}

/* Returns when this pause is over. */
static void stand_still(ps_operator *op) {
  pause_state *p = &op->pause;
  pthread_mutex_lock(&p->lock);
  int64_t mine = p->pauses;
  if (ps_flag_get(&p->wanted)) {
    p->standing++;
    pthread_cond_broadcast(&p->changed);
  }
  while (ps_flag_get(&p->wanted) && p->pauses == mine && !ps_flag_get(&op->cancelled)) {
    pthread_cond_wait(&p->changed, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

static bool goes_on(ps_code code) { return code == PS_OK || code == PS_EMPTY || code == PS_PAUSED; }

/* After PS_EMPTY the worker prepares to sleep and takes one more step, and sleeps only if that gives PS_EMPTY too.
   (spec/Operator.tla: output_next or update_read, output_arm, once more, output_sleep.) */
static ps_code work(worker *w, ps_fault *fault) {
  ps_operator *op = w->op;
  bool armed = false, pausing = false;
  ps_code code = PS_OK;
  while (goes_on(code) && !ps_flag_get(&op->cancelled)) {
    bool dry = pausing && code == PS_EMPTY; /* that step began after the pause was seen */
    pausing = pause_wanted(&op->pause);
    if (pausing && (dry || w->number == 0)) {
      stand_still(op);
      pausing = false;
      if (ps_flag_get(&op->cancelled)) break; /* the pausing thread may still read the windows */
    }
    code = op->design->step(op, w->number, fault);
    if (code == PS_EMPTY && w->number == 0 && promises_tell(op)) code = PS_OK;
    if (code == PS_EMPTY && armed) {
      if (!pausing && !ps_flag_get(&op->cancelled)) doorbell_sleep(&w->doorbell);
      if (pausing) doorbell_skip(&w->doorbell);
      armed = false;
    } else if (code == PS_EMPTY) {
      if (w->number == 0) sink_post(&op->sink);
      doorbell_prepare(&w->doorbell);
      armed = true;
    } else if (armed) {
      doorbell_skip(&w->doorbell);
      armed = false;
    }
  }
  return goes_on(code) ? PS_CLOSED : code;
}

static void *worker_thread(void *argument) {
  worker *w = argument;
  memory_enter(&w->bytes);
  name_thread(w->number == 0 ? "pystream-output" : "pystream-update");
  ps_fault fault = {0};
  ps_code code = work(w, &fault);
  if (code != PS_END) {
    operator_fail(w->op, code, &fault);
  } else if (w->number == 0) {
    sink_end(&w->op->sink, PS_OK, &fault);
  }
  pause_state *p = &w->op->pause;
  pthread_mutex_lock(&p->lock);
  p->running--;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* ---- all of them ---- */

static bool pause_init(pause_state *p) {
  *p = (pause_state){.running = 0};
  if (pthread_mutex_init(&p->lock, NULL) != 0) return false;
  if (wait_init(&p->changed)) return true;
  pthread_mutex_destroy(&p->lock);
  return false;
}

bool workers_init(ps_operator *op, int32_t workers) {
  if (!pause_init(&op->pause)) return false;
  op->worker = memory_new((size_t)workers * sizeof *op->worker);
  for (; op->worker && op->workers < workers; op->workers++) {
    worker *w = &op->worker[op->workers];
    *w = (worker){.op = op, .number = op->workers};
    if (!doorbell_init(&w->doorbell)) break;
  }
  if (op->workers == workers) return true;
  workers_free(op);
  op->workers = 0;
  return false;
}

void workers_free(ps_operator *op) {
  for (int32_t i = 0; i < op->workers; i++) doorbell_free(&op->worker[i].doorbell);
  memory_free(op->worker);
  pthread_cond_destroy(&op->pause.changed);
  pthread_mutex_destroy(&op->pause.lock);
}

static void join(ps_operator *op, int32_t started) {
  for (int32_t i = 0; i < started; i++) pthread_join(op->worker[i].thread, NULL);
}

bool workers_start(ps_operator *op) {
  op->pause.running = op->workers;
  for (int32_t i = 0; i < op->workers; i++) {
    worker *w = &op->worker[i];
    if (pthread_create(&w->thread, NULL, worker_thread, w) == 0) continue;
    ps_operator_cancel(op);
    join(op, i);
    return false;
  }
  return true;
}

void workers_join(ps_operator *op) { join(op, op->workers); }

/* ---- pausing ---- */

static void want(ps_operator *op, bool wanted) {
  pause_state *p = &op->pause;
  pthread_mutex_lock(&p->lock);
  ps_flag_set(&p->wanted, wanted);
  p->held = wanted;
  p->holder = pthread_self();
  if (wanted) p->pauses++;
  p->standing = 0;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

void workers_pause(ps_operator *op) {
  want(op, true);
  sink_pause(&op->sink, true);
  for (int32_t i = 0; i < op->workers; i++) operator_ring(op, i);
}

bool workers_held(ps_operator *op) {
  pause_state *p = &op->pause;
  pthread_mutex_lock(&p->lock);
  bool held = p->held && pthread_equal(p->holder, pthread_self());
  pthread_mutex_unlock(&p->lock);
  return held;
}

ps_code workers_wait(ps_operator *op, int32_t ms) {
  pause_state *p = &op->pause;
  moment until = moment_in(ms);
  bool in_time = true;
  pthread_mutex_lock(&p->lock);
  while (p->standing < p->running && !ps_flag_get(&op->cancelled) && in_time) {
    in_time = wait_until(&p->changed, &p->lock, until);
  }
  bool still = p->standing >= p->running;
  pthread_mutex_unlock(&p->lock);
  if (ps_flag_get(&op->cancelled)) return PS_CLOSED;
  return still ? PS_OK : PS_EMPTY;
}

void workers_resume(ps_operator *op) {
  sink_pause(&op->sink, false);
  want(op, false);
}

void workers_cancel(ps_operator *op) {
  pthread_mutex_lock(&op->pause.lock);
  pthread_cond_broadcast(&op->pause.changed);
  pthread_mutex_unlock(&op->pause.lock);
  for (int32_t i = 0; i < op->workers; i++) operator_ring(op, i);
}
