/* designs.c - the designs by number. See design.h. */
#include "designs/designs.h"

static const design *const designs[PS_DESIGNS] = {
    [PS_MQ] = &mq_design,           [PS_MQ_LF] = &mq_lf_design, [PS_TUML_SC] = &tuml_sc_design,
    [PS_TUML_MC] = &tuml_mc_design, [PS_WIML] = &wiml_design,   [PS_SLICED] = &sliced_design,
    [PS_RUNS] = &runs_design,
};

const design *design_of(ps_design which) { return designs[which]; }
