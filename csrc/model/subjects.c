/* subjects.c - what programs can be run on: the structures, and small ones on which the model itself is tested. */
#include "engine.h"

extern const subject litmus, counter, stack, t_gate_subject;

const subject *const subjects[] = {&litmus, &counter, &stack, &t_gate_subject, NULL};
