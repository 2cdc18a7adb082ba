/* designs.h - the tables of all designs; designs.c lists them by number. */
#pragma once

#include "operator/design.h"

extern const design mq_design, mq_lf_design, tuml_sc_design, tuml_mc_design, wiml_design; /* the paper's */
extern const design sliced_design, runs_design;                                           /* ours */
