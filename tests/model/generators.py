"""Whole programs for the state machines of hunt.py, one function per structure.

A program that finds bugs is small and crowded: two busy threads or more that meet in the same places, inserts that tie,
heartbeats at and around the latest timestamp, several readers. Something is there before the threads start, and
afterwards most inputs are closed and everything is read, so that what was lost shows.

The functions draw from a `random.Random` that Hypothesis gives (`st.randoms`): its own draws repeat themselves and
prefer what is simple, and a simple program finds nothing. What was found is made small by shrink.py, not by Hypothesis.
"""

from __future__ import annotations

from dataclasses import replace

from pystream.verify.scheduler import Program

FAR = 2**63 - 1


def memory(dice):
    """Nearly half of the programs run on sequentially consistent memory."""
    return dice.choice([{}, {}, {"weak": True, "talk": True}, {"weak": True, "talk": True}, {"weak": True}])


def often(dice):
    return dice.random() < 0.7


def seldom(dice):
    return dice.random() < 0.12


class Producers:
    """Writes the calls of inputs, or of updaters, whose timestamps never fall."""

    later = (0, 0, 0, 1, 1, 2)
    around = (-1, 0, 0, 1, 1, 2)

    def __init__(self, dice, count, first=0):
        self.dice = dice
        self.latest = [min(FAR, first + dice.choice([0, 0, 0, 2])) for _ in range(count)]  # some are ahead
        self.closed = [False] * count
        self.made = 0

    def calls(self, who, count, kinds):
        """So many calls of one of them; a close is the last."""
        return [self.call(who, self.dice.choice(kinds)) for _ in range(count) if not self.closed[who]]

    def call(self, who, kind):
        if kind == "close":
            self.closed[who] = True
            return ("close", who)
        if kind == "heartbeat":
            ts = min(FAR, max(0, self.latest[who] + self.dice.choice(self.around)))
            self.latest[who] = max(self.latest[who], ts)
            return ("heartbeat", who, ts)
        self.latest[who] = min(FAR, self.latest[who] + self.dice.choice(self.later))
        self.made += 1
        return self.adds(who, self.latest[who], self.made)

    def adds(self, who, ts, number):
        raise NotImplementedError

    def early(self, kinds, most):
        """What is there before the threads start: some calls of each, by turns."""
        if not often(self.dice):
            return []
        turns = [self.calls(who, self.dice.randint(0, most), kinds) for who in range(len(self.latest))]
        return [turn[i] for i in range(most) for turn in turns if i < len(turn)]

    def crowd(self, kinds):
        """The inputs' threads: each begins by adding something or by promising something."""
        threads = []
        for who in range(len(self.latest)):
            if who + 2 < len(self.latest) or (who == 0 < len(self.latest) - 1 and seldom(self.dice)):
                threads.append([])  # two of them and the readers are crowd enough; or one says nothing
                continue
            calls = self.calls(who, 1, kinds if seldom(self.dice) else [kind for kind in kinds if kind != "close"])
            threads.append(calls + self.calls(who, self.dice.choice([0, 0, 1, 1, 2]), kinds))
        return threads

    def closes(self):
        """Those that are not closed, in any order; often."""
        still = [who for who, closed in enumerate(self.closed) if not closed]
        self.dice.shuffle(still)
        return [("close", who) for who in still] if often(self.dice) else []


def reads(dice, *calls):
    """One to three reads of a thread."""
    return [dice.choice(calls) for _ in range(dice.choice([1, 1, 2, 2, 3]))]


# ---- the gates ----


class Tuples(Producers):
    def adds(self, who, ts, number):
        return ("insert", who, ts, 100 * (who + 1) + number)


#: levels, full_every, slab_bytes, spares: nodes go back to the system at once, or are used again, or share a slab.
LISTS = (
    *[(1, 1, 1, -1)] * 2,
    *[(1, 1, 1, 4)] * 2,
    *[(2, 2, 1, -1)] * 2,
    *[(2, 2, 0, -1)] * 2,
    (1, 1, 0, -1),
    (2, 1, 1, 4),
)


def t_gate(dice):
    inputs, readers = dice.choice([(2, 1), (2, 1), (2, 1), (2, 2), (2, 2), (3, 1), (3, 1)])
    levels, full_every, slab_bytes, spares = dice.choice(LISTS)
    producers = Tuples(dice, inputs, FAR - 1 if seldom(dice) else 1)
    kinds = ["insert"] * 3 + ["heartbeat"] * 2
    before = producers.early(kinds, most=dice.randint(1, 3))
    before += [("get", 0)] if before and dice.random() < 0.3 else []
    threads = producers.crowd([*kinds, "close"]) + [reads(dice, ("get", r)) for r in range(readers)]
    last = [("get", r) for r in range(readers)] * 2
    parameters = (inputs, readers, levels, full_every, 1, slab_bytes, spares)  # 1: freed as soon as can be
    return Program("t_gate", threads, parameters, before, last + producers.closes() + last * 3, **memory(dice))


class Runs(Producers):
    around = (0, 0, 1, 1, 2)  # the operator drops those below

    def adds(self, who, ts, number):
        n, step = self.dice.choice([1, 1, 2, 3, 4]), self.dice.choice([0, 1, 1, 2])
        self.latest[who] = ts + step * (n - 1)
        return ("insert_run", who, ts, step, n, 100 * (who + 1) + 10 * number)


def run_gate(dice):
    inputs, readers = dice.choice([(2, 1), (2, 1), (2, 2), (2, 2), (3, 1)])
    producers = Runs(dice, inputs)
    kinds = ["insert"] * 3 + ["heartbeat"] * 2
    before = producers.early(kinds, most=2)
    threads = producers.crowd([*kinds, "close"])
    names = ["get", "get_run", "get_block"]
    threads += [reads(dice, *((name, r) for name in names)) for r in range(readers)]
    last = [(dice.choice(names), r) for r in range(readers)]
    after = last * 2 + producers.closes() + last * 5
    return Program("run_gate", threads, (inputs, readers), before, after, **memory(dice))


# ---- windows ----

GET = ("get_next_winset",)
SIZES = ((2, 2), (2, 2), (3, 2), (4, 2), (1, 2), (2, 1))


class Updates(Producers):
    """Of the second thread's value all high bits are set: with another one it carries from word to word."""

    base = -10
    later = (0, 0, 0, 1, 1, 2, 4)

    def adds(self, who, ts, number):
        value = -1 if self.base < 0 and seldom(self.dice) else self.base**who * (ts + 1)
        return ("update", who, ts, self.dice.choice([0, 0, 0, 2, 1]), value)


class Slices(Updates):
    base = 10
    around = (0, 0, 1, 1, 2)


def windows(subject, producers, *parameters):
    dice = producers.dice
    before = producers.early(["update", "update", "heartbeat"], most=dice.randint(1, 3))
    threads = [*producers.crowd(["update"] * 3 + ["heartbeat", "close"]), reads(dice, GET)]
    after = [GET] * 2 + producers.closes() + [GET] * 6
    return Program(subject, threads, parameters, before, after, **memory(dice))


def w_hive(dice):
    count, levels = dice.choice([2, 2, 2, 1, 1, 3]), dice.choice([1, 1, 1, 2])
    held = dice.choice([(0, 0), (0, 0), (1, 0), (1, 1)])
    return windows("w_hive", Updates(dice, count), *dice.choice(SIZES), count, levels, *held)


def pane_hive(dice):
    count = dice.choice([2, 2, 1, 1, 3])
    return windows("pane_hive", Slices(dice, count), *dice.choice(SIZES), count, dice.randint(0, 1))


def win_set(dice):
    """Keys 0 and 2 have the same hash, as have 1 and 3; each window has a name of its own."""
    keys = [0, 0, 2, 2, 1, 3]

    def call(thread, number):
        key = dice.choice(keys)
        if dice.random() < 0.25:
            return ("find", key)
        return ("find_or_insert", key, 10 * (thread + 1) + number, thread)

    before = [("find_or_insert", dice.choice(keys), 5, 2)] if often(dice) else []
    threads = [[call(t, number) for number in range(dice.randint(1, 3))] for t in range(dice.randint(2, 3))]
    parameters = (3, dice.choice([0, 0, 1]))
    return Program("win_set", threads, parameters, before, [("find", key) for key in range(4)], **memory(dice))


# ---- queues ----


def ms_queue(dice):
    """Every value is another one."""
    values = iter(range(1, 100))

    def call():
        name = dice.choice(["enqueue"] * 3 + ["dequeue"] * 3 + ["peek", "is_empty"])
        return (name, next(values)) if name == "enqueue" else (name,)

    before = [("enqueue", next(values)) for _ in range(dice.randint(0, 3))]
    threads = [[call() for _ in range(dice.randint(1, 3))] for _ in range(dice.choice([2, 2, 2, 3]))]
    if dice.random() < 0.4:  # one looks while the other uses the nodes again
        before += [("enqueue", next(values)) for _ in range(dice.choice([0, 1, 2]))]
        looks = (dice.choice(["peek", "peek", "is_empty", "dequeue", "dequeue"]),)
        turn = [("dequeue",), ("dequeue",), ("enqueue", next(values))]
        threads = [[looks], turn if often(dice) else [turn[0], turn[2], turn[1]]]
    return Program("ms_queue", threads, (), before, [("dequeue",)] * next(values), **memory(dice))


def queue(dice, parameters=()):
    """One producer, whose timestamps rise, and one consumer."""
    names = [dice.choice(["enqueue", "enqueue", "promise"]) for _ in range(dice.randint(1, 4))]
    made = [(name, ts) for ts, name in enumerate(names, 1)] + ([("close",)] if often(dice) else [])
    cut = dice.randrange(len(made))
    threads = [made[cut:], [("take",)] * dice.randint(1, 3)]
    return Program("queue", threads, parameters, made[:cut], [("take",)] * (len(made) + 1), **memory(dice))


def mutex_queue(dice):
    return queue(dice, (1,))


# ---- who waits for whom ----


def doorbell(dice):
    worker = reads(dice, ("take",), ("take",), ("wake",))
    threads = [[("put",)] * dice.randint(1, 2), worker] + ([[("ring",)]] if seldom(dice) else [])
    return Program("doorbell", threads, (), [], [("wake",), ("take",), ("wake",)], **memory(dice))


def ledger(dice):
    """The count may look too large to who has not heard of a pass, so memory is sequentially consistent here."""

    def rows():
        return dice.randint(1, 3)

    before = [("put", dice.choice([1, 2, 2, 3]))] if often(dice) else []
    adder = [(dice.choice(["put", "wait", "wait"]), rows()) for _ in range(dice.randint(1, 2))]
    passer = [(dice.choice(["pass", "pass", "ready"]), rows()) for _ in range(dice.randint(1, 2))]
    threads = [adder, passer] + ([[("wait", rows())]] if often(dice) else [])
    return Program("ledger", threads, (2,), before, [("held",), ("put", 1), ("held",)])


# ---- when something was found ----

#: Where the parameters say how many inputs and readers there are, and parameters that are as simple as can be.
WIDTHS = {"t_gate": (0, 1), "run_gate": (0, 1), "w_hive": (2,), "pane_hive": (2,)}
PLAIN = {
    "t_gate": {2: 1, 3: 1, 4: 1, 5: 1, 6: -1},
    "w_hive": {0: 2, 1: 2, 3: 1, 4: 0, 5: 0},
    "pane_hive": {0: 2, 1: 2, 3: 0},
}


def simpler(program):
    """The program without one of the inputs or readers and all its calls, or with plainer parameters."""
    parameters = program.parameters
    for place in WIDTHS.get(program.subject, ()):
        for who in range(parameters[place] if parameters[place] > 1 else 0):
            yield replace(
                without(program, who, reading=place == 1), parameters=put(parameters, place, parameters[place] - 1)
            )
    plain = PLAIN.get(program.subject, {})
    for place, value in plain.items():
        if parameters[place] != value:
            yield replace(program, parameters=put(parameters, place, value))


def put(parameters, place, value):
    return (*parameters[:place], value, *parameters[place + 1 :])


def without(program, who, *, reading):
    """No calls of this input, or of this reader; those behind it move up by one."""

    def kept(calls):
        mine = [(call, len(call) > 1 and call[0].startswith("get") == reading) for call in calls]
        return [
            (call[0], call[1] - (call[1] > who), *call[2:]) if numbered else call
            for call, numbered in mine
            if not numbered or call[1] != who
        ]

    threads = [kept(calls) for calls in program.threads]
    return replace(program, before=kept(program.before), threads=threads, after=kept(program.after))
