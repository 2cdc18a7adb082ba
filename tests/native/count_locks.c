/*
 * count_locks.c - counts the mutexes that pystream's core takes, by role of the thread: for tests/test_locks.py.
 *
 * Loaded before everything else (LD_PRELOAD), so that the core's calls of pthread_mutex_lock come here. Calls from other
 * libraries are not counted: the address that a call returns to must lie in the core.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { CALLERS, OUTPUT, UPDATE, ROLES };

typedef int (*lock_function)(pthread_mutex_t *);

static _Atomic uint64_t counts[ROLES];
static _Atomic uintptr_t core; /* where the core is loaded; 0: nothing is counted */

/* The name of the thread is given by the core before it takes the first mutex that is counted. */
static int role(void) {
  static _Thread_local int known = -1;
  if (known >= 0) return known;
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  known = strcmp(name, "pystream-output") == 0 ? OUTPUT : strcmp(name, "pystream-update") == 0 ? UPDATE : CALLERS;
  return known;
}

static void count(void *from) {
  Dl_info about;
  uintptr_t base = atomic_load(&core);
  if (base && dladdr(from, &about) && (uintptr_t)about.dli_fbase == base) atomic_fetch_add(&counts[role()], 1);
}

static lock_function real(_Atomic uintptr_t *kept, const char *name) {
  uintptr_t found = atomic_load(kept);
  if (!found) atomic_store(kept, found = (uintptr_t)dlsym(RTLD_NEXT, name));
  return (lock_function)found;
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static _Atomic uintptr_t kept;
  count(__builtin_return_address(0));
  return real(&kept, "pthread_mutex_lock")(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  static _Atomic uintptr_t kept;
  count(__builtin_return_address(0));
  return real(&kept, "pthread_mutex_trylock")(mutex);
}

/* `inside`: an address in the core. */
void locks_count_in(void *inside) {
  Dl_info about;
  atomic_store(&core, dladdr(inside, &about) ? (uintptr_t)about.dli_fbase : 0);
}

uint64_t locks_taken(int which) { return atomic_load(&counts[which]); }
