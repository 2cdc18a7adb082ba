"""How many models fit side by side: the cores and the memory there are, containers respected."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1 << 20
# TLC starts with less, but then spends its time collecting garbage.
HEAP_MIN_MB = 512
# Ten million states fit; more heap only makes collections longer.
HEAP_MAX_MB = 6144
# What a JVM needs beside its heap: code, threads, TLC's 64 MB off the heap.
BESIDE_HEAP_MB = 300
# The part of the free memory that we take: others live here too.
SHARE = 0.75


@dataclass(frozen=True)
class Plan:
    """How many processes run at once, and the heap of each."""

    slots: int
    heap_mb: int


def plan(tasks: int, jobs: int | None = None, root: Path = Path("/")) -> Plan:
    """Share cores and memory out; `jobs` overrides the number of cores."""
    usable_mb = int(available_memory(root) * SHARE) // MEGABYTE
    fitting = usable_mb // (HEAP_MIN_MB + BESIDE_HEAP_MB)
    slots = max(1, min(jobs or usable_cores(root), fitting, tasks))
    heap_mb = usable_mb // slots - BESIDE_HEAP_MB
    return Plan(slots, max(HEAP_MIN_MB, min(HEAP_MAX_MB, heap_mb)))


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: affinity and cgroup quotas count."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _cgroups(root, "cpu"):
        quota, period = _quota(folder)
        if quota > 0 and period > 0:
            cores = min(cores, max(1, quota // period))
    return cores


def _quota(folder: Path) -> tuple[int, int]:
    words = _read(folder / "cpu.max").split()
    if words:
        return _number(words[0]), _number(words[-1])
    return _number(_read(folder / "cpu.cfs_quota_us")), _number(_read(folder / "cpu.cfs_period_us"))


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that can still be taken: of the machine, and of every cgroup we are in."""
    free = [_machine_memory(root)]
    for folder in _cgroups(root, "memory"):
        limit = _number(_read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes"))
        used = _number(_read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes"))
        if limit > 0:
            free.append(max(0, limit - max(0, used - _page_cache(folder))))
    return min(free)


def _machine_memory(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return _number(line.split()[1]) * 1024
    # No /proc: not Linux. Half of what is built in is a guess that hurts nobody.
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def _page_cache(folder: Path) -> int:
    """Return the bytes charged to a cgroup that the kernel gives back when asked."""
    for line in _read(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return _number(value)
    return 0


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Yield our cgroup and those around it, version 2 and version 1; a limit on any of them binds."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / (controller if controllers else "")
        ours = top / name.strip("/")
        yield from (folder for folder in (ours, *ours.parents) if folder == top or top in folder.parents)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _number(text: str) -> int:
    """Return the number a kernel file holds; 0 for none, for 'max' and for -1."""
    return int(text) if text.isdigit() else 0
