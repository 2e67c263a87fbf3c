"""What a worker sees of itself, importable by worker processes. Nothing of weight is imported."""

import os
import resource
import signal
import subprocess
import sys
import time

from tests.run.jobs import parent_of


def look(what):
    """Return what a worker sees of itself, as told: (name, argument)."""
    name, *given = what if isinstance(what, tuple) else (what,)
    return globals()[name](*given)


def server_of_worker():
    return parent_of(os.getppid())


def draw():
    import numpy as np

    return np.random.random(), os.urandom(8)


def surroundings(variable):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        os.environ.get(variable),
        os.getcwd(),
        limit,
        os.umask(0o77),
        len(os.sched_getaffinity(0)),
    )


def signals():
    watched = (signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE)
    own = os.getpid() == os.getsid(0) == os.getpgid(0)
    return [str(signal.getsignal(each)) for each in watched], own


def descriptors():
    return sorted(os.readlink(f"/proc/self/fd/{each}").partition(":")[0] for each in range(3, 30)
                  if os.path.exists(f"/proc/self/fd/{each}"))  # fmt: skip


def modules(name):
    return name in sys.modules


def kill_watching_process(file):
    """Leave a daemon behind, without the process that would end it."""
    command = f"setsid sleep 1000 & echo $! > {file}"
    subprocess.run(["sh", "-c", command], check=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10.0)


class WithLibraries:
    """A function that names what a server may import."""

    def __init__(self, *libraries):
        self.libraries = libraries

    def __call__(self, what):
        return look(what)
