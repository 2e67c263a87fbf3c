"""Functions that misbehave, importable by worker processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np


def square(x):
    return x * x


def parent_of(pid):
    """The process that started another one."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def parent_of_worker():
    """The process that wanted the worker: that of the fork server above this one's supervisor."""
    above = parent_of(os.getppid())
    is_server = b"fork_server" in Path(f"/proc/{above}/cmdline").read_bytes()
    return parent_of(above) if is_server else above


class Prepared:
    """Counts what was done before the first job."""

    def __init__(self):
        self.times = 0

    def prepare(self):
        self.times += 1

    def __call__(self, job):
        return self.times


def do(what):
    """Do as told: (name, argument)."""
    name, *given = what if isinstance(what, tuple) else (what,)
    return globals()[f"_{name}"](*given)


def _give(x):
    return x


def _raise(text):
    raise ValueError(text)


def _leave():
    sys.exit(3)


def _interrupt():
    raise KeyboardInterrupt


def _vanish():
    os._exit(7)


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


def _asked_to_stop():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
    return "alive"


def _stop_command():
    command = subprocess.Popen(["sleep", "600"])
    command.terminate()
    return command.wait()


def _stop_fork():
    fork = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    fork.start()
    fork.terminate()
    fork.join()
    return fork.exitcode


def _stop_fork_of_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(_stop_fork).result()


def _pool_of_forks():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, [2, 3])


def _hang():
    time.sleep(600)


def _burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return "burnt"


def _eat(megabytes):
    food = [np.ones(2**17) for _ in range(megabytes)]
    return len(food)


def _eat_and_hang(megabytes):
    food = [np.ones(2**17) for _ in range(megabytes)]
    time.sleep(600)
    return food


def _eat_at_once():
    np.empty(2**58, dtype=np.uint8)


def _pid():
    return os.getpid()


def _threads():
    return os.environ["OMP_NUM_THREADS"]


def _unsendable():
    return lambda: None


class PickyError(Exception):
    """Cannot be unpickled: its reason is not what it is made of."""

    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")


def _unopenable():
    return PickyError(1, "a")


class Unpackable:
    """Fails to be pickled in its own way."""

    def __reduce__(self):
        raise KeyError("no way")


def _unpackable():
    return Unpackable()


def _child():
    """Start a process and wait for it: the child must not outlive the worker."""
    subprocess.run(["sleep", "600"], check=True)


def _die_before_its_child(file):
    """The child is a copy, and so it holds the pipe of the worker."""
    child = os.fork()
    if not child:
        time.sleep(600)
    with open(file, "w") as stream:
        stream.write(str(child))
    _die()


class Unimportable:
    """Breaks in the worker, where it is unpickled."""

    def __reduce__(self):
        return _broken, ()

    def __call__(self, job):
        return job


class SlowToImport(Unimportable):
    """Takes its time in the worker, where it is unpickled."""

    def __reduce__(self):
        return time.sleep, (600,)


def _broken():
    raise ImportError("cannot be imported here")


class InterruptedOnce:
    """A storage where Ctrl-C is pressed during the first call of one method."""

    def __init__(self, storage, write):
        self._storage, self._write = storage, write

    def __getattr__(self, name):
        if name == self._write:
            self._write = ""
            raise KeyboardInterrupt
        return getattr(self._storage, name)
