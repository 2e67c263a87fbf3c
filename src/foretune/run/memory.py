"""How much memory a process holds, measured from outside."""

import os
import subprocess
from pathlib import Path


def resident_bytes(pid: int) -> int | None:
    """The resident memory of a process; None when it is gone."""
    if Path("/proc/self/statm").exists():
        return _from_proc(pid)
    return _from_ps(pid)


def size_text(size: float) -> str:
    """A limit in the unit in which people give it: MB, here 2**20 bytes."""
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
