"""What is injected: the batches of each input, when each is due, and which tuple an output row waited for last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pystream.data.sample import SCHEMAS, comments, smart_meters
from pystream.errors import PystreamError
from pystream.queries import KEYS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAKERS = {"EC": smart_meters, "SC": comments}

#: A batch holds the tuples of about so many seconds, within these bounds. See the limits in the package's text.
BATCH_S = 0.01

#: Where latency is looked at closely: as few as an input's share of the calls allows, since cutting and adding a batch
#: in Python takes about 50 microseconds under Python's lock, of which the injectors may have a quarter.
BATCH_S_MIN, BATCH_S_PER_INPUT = 0.001, 200e-6
BATCH_ROWS_MIN, BATCH_ROWS_MAX = 1, 4_096


def finest_cut(inputs: int) -> float:
    """The shortest interval between the batches of an input that Python threads can keep up, about, in seconds."""
    return max(BATCH_S_MIN, inputs * BATCH_S_PER_INPUT)


@dataclass(frozen=True)
class Schedule:
    """Which tuples make a batch, and when it is due; everybody computes the same moments from this.

    `rate` is in tuples per second over all inputs; None: as fast as the operator takes them.
    """

    start: float
    rate: float | None
    inputs: int
    lap_rows: int  # of one input
    batch_rows: int
    turns: int = 0  # input i comes together with i + turns, i + 2 * turns, ...; 0: each has a turn of its own

    def cut(self, number: int) -> tuple[int, int, int]:
        """The lap, the first row and the end of a batch; the last batch of a lap may be shorter."""
        per_lap = -(-self.lap_rows // self.batch_rows)
        lap, n = divmod(number, per_lap)
        return lap, n * self.batch_rows, min((n + 1) * self.batch_rows, self.lap_rows)

    def due(self, input: NDArray[np.int64], lap: NDArray[np.int64], row: NDArray[np.int64]) -> NDArray[np.float64]:
        """When the batches with these rows are due. Inputs are staggered, so that they do not all come at once."""
        end = np.minimum((row // self.batch_rows + 1) * self.batch_rows, self.lap_rows)
        per_input, turns = (self.rate or np.inf) / self.inputs, self.turns or self.inputs
        turn = self.batch_rows * (input % turns) / turns
        moments: NDArray[np.float64] = self.start + (lap * self.lap_rows + end + turn) / per_input
        return moments


def stored(folder: Path, dataset: str, inputs: int, tuples: int) -> list[pa.Table]:
    """A data set that `pystream generate` or `prepare` wrote, its first tuples dealt to as many inputs as asked for.

    Tuples are dealt in the order (ts, stream, position), so that each input is sorted; time begins at 0.
    """
    files = sorted(f for f in (folder / dataset).glob("*.parquet") if not f.name.startswith((".", "_")))
    if not files:
        hint = f"pystream generate {dataset} --streams 20 --out {folder / dataset}"
        raise PystreamError(f"{folder / dataset}: no parquet files; {hint}")
    names = SCHEMAS[dataset].names
    try:
        whole = pa.concat_tables([pq.read_table(f, columns=[*names, "stream", "position"]) for f in files])
        whole = whole.sort_by([(name, "ascending") for name in ("ts", "stream", "position")])
        whole = whole.select(names).cast(SCHEMAS[dataset]).slice(0, tuples).combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError, ValueError) as error:
        raise PystreamError(f"{folder / dataset} is no data set {dataset}: {error}") from error
    rows = len(whole) // inputs
    if not rows:
        raise PystreamError(f"{folder / dataset} has {len(whole)} tuples, too few for {inputs} inputs")
    whole = whole.set_column(0, "ts", pc.subtract(whole["ts"], whole["ts"][0]))
    return [whole.take(pa.array(np.arange(i, rows * inputs, inputs))) for i in range(inputs)]


class Workload:
    """A data set dealt to inputs, replayed in laps."""

    def __init__(self, dataset: str, inputs: int, tuples: int, folder: Path | None = None) -> None:
        self.dataset = dataset
        self.inputs = inputs
        rows = max(1, tuples // inputs)
        if folder is None:
            tables = MAKERS[dataset](inputs, rows * inputs, 1)
        else:
            tables = stored(folder, dataset, inputs, tuples)
        self.lap_rows = len(tables[0])
        self.schema = tables[0].schema
        self._parts = [t.combine_chunks().to_batches()[0] for t in tables]
        self.span = 1 + max(int(p.column("ts")[-1].as_py()) for p in self._parts)
        self._index(KEYS[dataset])

    def schedule(self, rate: float | None, start: float, batch_s: float = BATCH_S) -> Schedule:
        """Cut into batches for this rate, one every `batch_s` seconds."""
        rows = BATCH_ROWS_MAX if rate is None else round(rate / self.inputs * batch_s)
        rows = min(max(rows, BATCH_ROWS_MIN), BATCH_ROWS_MAX, self.lap_rows)
        return Schedule(start, rate, self.inputs, self.lap_rows, rows)

    def batch(self, input: int, schedule: Schedule, number: int) -> pa.RecordBatch:
        """One batch; in later laps the same tuples with later timestamps."""
        lap, first, end = schedule.cut(number)
        part = self._parts[input].slice(first, end - first)
        return part.set_column(0, "ts", pc.add(part.column(0), lap * self.span)) if lap else part

    def timestamps(self) -> NDArray[np.int64]:
        """Those of input 0, of input 1, ..."""
        return np.concatenate([p.column("ts").to_numpy() for p in self._parts])

    def tuples_before(self, ts: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many tuples come before these timestamps, whole laps included: right however uneven they are in time."""
        lap, second = np.divmod(ts, self.span)
        before: NDArray[np.float64] = lap * len(self._times) + np.searchsorted(self._times, second)
        return before

    def _index(self, key: str) -> None:
        """All tuples of a lap in the order (key, ts, input, position), for finding the last one of a window."""
        keys = np.concatenate([p.column(key).to_numpy() for p in self._parts]).astype(np.int64)
        ts = self.timestamps()
        self._times = np.sort(ts)
        input = np.repeat(np.arange(self.inputs), self.lap_rows)
        row = np.tile(np.arange(self.lap_rows), self.inputs)
        order = np.lexsort((row, input, ts, keys))
        self._keys, code = np.unique(keys[order], return_inverse=True)
        self._place = code.astype(np.int64) * self.span + ts[order]
        self._input, self._row = input[order], row[order]
        self._ends = np.searchsorted(code, np.arange(len(self._keys)), side="right")

    def latest_due(
        self, schedule: Schedule, start: NDArray[np.int64], key: NDArray[np.int64], size: int
    ) -> NDArray[np.float64]:
        """When the latest tuple of each window [start, start + size) and key was due."""
        code = np.searchsorted(self._keys, key)
        lap, second = np.divmod(start + size - 1, self.span)
        i = np.searchsorted(self._place, code * self.span + second, side="right") - 1
        earlier = (i < 0) | (self._place[i] < code * self.span)  # the key's last tuple is of the lap before
        i = np.where(earlier, self._ends[code] - 1, i)
        return schedule.due(self._input[i], lap - earlier, self._row[i])
