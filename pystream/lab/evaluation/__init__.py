"""The paper's evaluation, as one command: `pystream bench`.

What is measured, as the paper does it. One operator; one injector thread per input, which adds tuples at a constant
rate; one thread that reads the rows. After a warm-up, which lasts until a window can be complete, comes the measuring
phase, and a cool-down in which injection goes on. Throughput: how fast the windows that come out in the measuring phase
advance, in tuples that begin before them. Latency: from the moment when the latest tuple that contributed to a row was
due to the moment when the row is in the reader's hands. The rate is raised until the design cannot keep up (its
throughput is below 95 % of the rate); the last rate that it sustained is its throughput under load.

- merge       S-Merge alone on EC: T-Gate against Java's ConcurrentSkipListMap (pystream/lab/merge), throughput, and the
              latency at half of what the slower one takes.
- saturated   injectors that never pause: the most that the operator takes. Designs take turns round by round, and the
              ratio to `mq` is that within a round; the median and the lowest and highest of the rounds are given. A
              ratio whose rounds lie on both sides of 1 is marked as not significant.
- sustained   the highest rate that was kept up, and the latency there; all rates that were tried, with their latency.
- durations   processor time per tuple of the input threads (in `add`), the update threads and the output thread, and
              what the busiest kind of thread would allow if each had a processor of its own: the paper's argument, and
              the only one that a machine with fewer processors than threads can make.
- latency     50th, 99th and 99.9th percentile at 10, 50 and 80 % of the highest rate that was sustained, for our
              designs and `mq`, with the most inputs, in batches as small as Python's injectors can keep up (finest_cut;
              if they cannot, of the usual size). What waiting for the other inputs' batches adds: see the limits.
              bench/bench_latency.py measures the same from C, with far smaller batches.
- threads     `tuml-mc` with more and more update threads: throughput, and latency at 80 % of it.
- levels      heights of the lists; the paper's is 3.

The paper's designs run f and F with the text search in Update, per tuple and window (text_search.py); ours as users
write them, with a filter. Data come from Spark (`--data`: generate -> prepare -> aggregate -> evaluate) or are made up.

Limits. What would make the numbers wrong:

- Tuples are added in batches of about BATCH_S seconds' worth, at least one tuple, through the public `add`, because a
  call from Python costs about 20 microseconds. A batch counts as arriving when its last tuple is due: filling it is not
  in the latency. But a window is complete only when every input has passed its end, so up to one such interval of
  waiting for the other inputs is. Larger batches: more of that, and less time in Python.
- Latency is counted from when a tuple was due, not from when `add` was called: injectors that fall behind because the
  operator pushes back do not hide it.
- Injectors, reader and operator share the processors, and Python's part of injectors and reader shares one lock. The
  paper had 24 logical cores, five minutes per run and ten runs: numbers here are for comparing designs within one run.
- The data sets are stand-ins of the published shape (data/sample.py), replayed in laps with their timestamps moved
  on. Rates are those of injection; event time runs faster or slower accordingly.
- Processor time, not elapsed time, is given for durations: with more threads than cores the latter measures the
  scheduler. It needs Linux; elsewhere the columns of the operator's own threads are empty. Waiting for a lock and
  moving cache lines between sockets, which the paper's machine does, is not in it.
- Other work on the machine: the load average at start and end is in the result.
- Inputs that run ahead of each other keep more windows open, which then miss the caches: what all inputs together may
  hold is bounded (MAX_PENDING_ALL), or more inputs would seem to cost more per tuple than they do.
"""
