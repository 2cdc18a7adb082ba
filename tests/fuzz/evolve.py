"""Fuzzes for a time and keeps the inputs that reach new code: python tests/fuzz/evolve.py SECONDS [NAME...].

What is kept is the smallest set of inputs that takes all branches taken so far. Commit tests/fuzz/corpus afterwards.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from fuzz.build import FUZZ, Harnesses
from test_fuzz import LIMITS, RUNS
from tools import run


def evolve(program: Path, folder: Path, seconds: int) -> None:
    kept, work, fresh = FUZZ / "corpus" / program.name, folder / "work", folder / "fresh"
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copytree(kept, work)
    fresh.mkdir()
    run(program, *LIMITS, f"-max_total_time={seconds}", f"-artifact_prefix={folder}/", work)
    run(program, *LIMITS, "-set_cover_merge=1", "-use_counters=0", fresh, work)  # counters: how often, not whether
    shutil.rmtree(kept)
    shutil.copytree(fresh, kept)


def main() -> None:
    seconds, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        harnesses = Harnesses(Path(folder))
        for name in names or RUNS:
            (Path(folder) / "runs" / name).mkdir(parents=True)
            evolve(harnesses.build(name), Path(folder) / "runs" / name, int(seconds))


if __name__ == "__main__":
    main()
