"""The processes that a process has started."""

import subprocess
from contextlib import suppress
from pathlib import Path

__all__ = ["descendants"]


def descendants(pid: int) -> list[int]:
    """A process and all that it has started, directly or not, as far as they are still there."""
    children: dict[int, list[int]] = {}
    for child, parent in _parents():
        children.setdefault(parent, []).append(child)
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def _parents() -> list[tuple[int, int]]:
    """Every process with its parent."""
    if not Path("/proc/self/stat").exists():
        command = ["ps", "-axo", "pid=,ppid="]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return [(int(pid), int(parent)) for pid, parent in map(str.split, listed.splitlines())]
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
                found.append((int(folder.name), int(fields.rpartition(")")[2].split()[1])))
    return found
