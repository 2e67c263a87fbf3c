"""Measures how much memory a process holds, and how much is free."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def resident_bytes(pid: int) -> int | None:
    """Return the resident memory of a process; None if it is gone."""
    if Path("/proc/self/statm").exists():
        return _from_proc(pid)
    return _from_ps(pid)


def free_bytes(root: Path = Path("/")) -> int | None:
    """Return how much memory processes can still take; None if the system does not say.

    It is the free memory of the machine, or less if control groups (version 2) of containers and
    schedulers limit this process. root: the folder of /proc and /sys.
    """
    try:
        facts = _numbers(root / "proc/meminfo")
        return min([1024 * facts["MemAvailable:"], *_free_in_groups(root)])
    except (OSError, LookupError, ValueError):
        return None


def _free_in_groups(root: Path) -> Iterator[int]:
    """Yield the free memory of each limited group of this process, its own group first."""
    lines = (root / "proc/self/cgroup").read_text(encoding="ascii").splitlines()
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    if own is None:
        return
    groups = root / "sys/fs/cgroup"
    for group in (groups / own, *(groups / own).parents):
        if not group.is_relative_to(groups):
            return
        limit = group / "memory.max"  # the topmost group has none
        if limit.exists() and (most := limit.read_text(encoding="ascii").strip()) != "max":
            used = int((group / "memory.current").read_text(encoding="ascii"))
            facts = _numbers(group / "memory.stat")
            # Cached files are dropped before a process is ended.
            cached = facts["inactive_file"] + facts["active_file"]
            yield max(0, int(most) - used + cached)


def _numbers(path: Path) -> dict[str, int]:
    """Return the first number of each line by its first word."""
    lines = (line.split() for line in path.read_text(encoding="ascii").splitlines())
    return {words[0]: int(words[1]) for words in lines}


def size_text(size: float) -> str:
    """Return a size in MB, which are 2**20 bytes here."""
    return f"{size / 2**20:.0f} MB"


def _from_proc(pid: int) -> int | None:
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(pages[1]) * os.sysconf("SC_PAGE_SIZE")


def _from_ps(pid: int) -> int | None:
    command = ["ps", "-o", "rss=", "-p", str(pid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return int(said) * 1024 if said else None
