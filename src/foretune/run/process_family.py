"""The processes that a process has started, directly or not, and how to end them.

On Linux a process can ask to inherit orphans (`PR_SET_CHILD_SUBREAPER`). It then finds every
process below it, also daemons that have left their session and their parent. On other systems
daemons that leave both are not found.

Only small modules are imported here, because every worker imports this twice.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LONGEST_ENDING_SECONDS = 5.0
"""How long to wait for processes to disappear after SIGKILL."""
SHELLS = ("sh", "dash", "bash", "zsh", "ksh", "busybox")
SHORTEST_WAIT_SECONDS = 0.0005
LONGEST_WAIT_SECONDS = 0.05


def inherit_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def end_with(parent: int) -> None:
    """Be killed when this parent dies, or now if it is gone."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def has_children() -> bool:
    """Return True if this process has a child, even one that has ended and was not waited for."""
    if not hasattr(os, "waitid"):
        return bool(children(os.getpid()))
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def children(pid: int) -> list[int]:
    """Return the direct children of a process, including those that have ended."""
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as listed:
                found += map(int, listed.read().split())
    except OSError:
        return (
            [] if os.path.exists(f"/proc/self/task/{os.getpid()}/children") else _list_children(pid)
        )
    return found


def _list_children(pid: int) -> list[int]:
    """Do the same with `ps`, where the kernel has no such file."""
    import subprocess

    # Without subprocess.run: the process that lists must not be in the list.
    with subprocess.Popen(["ps", "-axo", "pid=,ppid="], stdout=subprocess.PIPE, text=True) as ps:
        said, _ = ps.communicate()
    rows = (line.split() for line in said.splitlines())
    return [int(row[0]) for row in rows if int(row[1]) == pid and int(row[0]) != ps.pid]


def family(pid: int) -> list[int]:
    """Return a process and all processes below it."""
    found = [pid]
    for each in found:
        found += children(each)
    return found


def shell_family(pid: int) -> list[int]:
    """Return a process; if it is a shell, also the programs that it runs, in shells within too."""
    found = [pid]
    for each in found:
        if _program(each) in SHELLS:
            found += children(each)
    return found


def _program(pid: int) -> str:
    """Return the file name of the program that a process runs: of a script, that of its shell.

    It is empty if the process is gone.
    """
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        if os.path.exists("/proc/self/exe"):
            return ""
    import subprocess

    command = ["ps", "-o", "comm=", "-p", str(pid)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return os.path.basename(said.strip()).lstrip("-")


def cpu_seconds_of(pids: Iterable[int]) -> float:
    """Return the CPU seconds of processes and of their ended children; 0 where nobody says."""
    ticks = 0
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
            ticks += sum(map(int, stat.read().rpartition(b")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def end_children(keep: Collection[int] = ()) -> bool:
    """Kill every process below this one and wait for it; return True if none is left.

    Direct children named in `keep` stay, with everything below them.
    """
    end, wait = time.monotonic() + LONGEST_ENDING_SECONDS, SHORTEST_WAIT_SECONDS
    while has_children():
        # Killed processes leave their own children to this one: they come up in the next round.
        mine = [pid for pid in children(os.getpid()) if pid not in keep]
        if not mine:
            return True
        for pid in mine:
            _kill_tree(pid)
        time.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)
        for pid in mine:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > end:
            return False
    return True


def _kill_tree(pid: int) -> None:
    for each in family(pid):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)
