/* subjects.c - the structures that programs can be run on, and small ones that test the model itself. */
#include "model/subject.h"

extern const subject litmus, counter, stack;
extern const subject t_gate_subject, w_hive_subject, win_set_subject, ms_queue_subject;
extern const subject run_gate_subject, pane_hive_subject, queue_subject, doorbell_subject, ledger_subject;

const subject *const subjects[] = {&litmus,
                                   &counter,
                                   &stack,
                                   &t_gate_subject,
                                   &w_hive_subject,
                                   &win_set_subject,
                                   &ms_queue_subject,
                                   &run_gate_subject,
                                   &pane_hive_subject,
                                   &queue_subject,
                                   &doorbell_subject,
                                   &ledger_subject,
                                   NULL};
