"""Functions that attack the worker they run in, importable by worker processes."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from foretune.run.channel import HEADER, MARK


def attack(what):
    """Attack as told: (name, argument)."""
    name, *given = what if isinstance(what, tuple) else (what,)
    return globals()[name](*given)


def give(x):
    return x


def forked_child_returns(x):
    """Both come back, the child first."""
    child = os.fork()
    if not child:
        return "child"
    os.waitpid(child, 0)
    return x


def forked_child_raises(x):
    child = os.fork()
    if not child:
        raise ValueError("child")
    os.waitpid(child, 0)
    return x


def forked_child_answers_late(x):
    """The child comes back while a later trial may be running."""
    if not os.fork():
        time.sleep(0.2)
        return "child"
    return x


def thread_forks(x):
    def fork():
        if not os.fork():
            return

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    return x


def fork_unseen_by_python(x):
    """No hook of Python's runs in the child."""
    import ctypes

    child = ctypes.CDLL(None).fork()
    if not child:
        return "child"
    os.waitpid(child, 0)
    return x


def sockets():
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(int(name))
        except OSError:
            pass
    return found


def write_into_sockets(text):
    for each in sockets():
        os.write(each, text)
    return "wrote"


def write_and_hang(text):
    write_into_sockets(text)
    time.sleep(600)


def begin_an_answer():
    """A header that looks right, and nothing after it."""
    write_into_sockets(HEADER.pack(MARK, 1000, bytes(16)) + b"x")
    time.sleep(600)


def forge_an_answer(message):
    write_into_sockets(HEADER.pack(MARK, len(message), bytes(16)) + message)
    return "true"


def write_later(text):
    """A thread that writes after the answer has been given."""

    def write():
        time.sleep(0.3)
        write_into_sockets(text)

    threading.Thread(target=write).start()
    return "given"


def close_descriptors(first, last):
    os.closerange(first, last)
    return "closed"


def print_bytes(size):
    line = "x" * 99 + "\n"
    for _ in range(size // 100):
        sys.stdout.write(line)
    return "printed"


def write_bytes(size):
    block = b"y" * 2**16
    for _ in range(size // 2**16):
        os.write(2, block)
    return "written"


def command_prints(size):
    subprocess.run(["head", "-c", str(size), "/dev/zero"], check=True, stdout=sys.stderr.fileno())
    return "printed"


def say(text):
    print(text)
    return "said"


DAEMON = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def start_daemon(file, ending="return"):
    """A daemon as servers are: a session of its own, no parent, nothing of the environment."""
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.execve(sys.executable, [sys.executable, "-c", DAEMON, str(file)], {})
        os._exit(0)
    os.wait()
    while not Path(file).exists() or not Path(file).read_text():
        time.sleep(0.01)
    if ending == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if ending == "kill the group":
        os.killpg(0, signal.SIGKILL)
    if ending == "exit":
        os._exit(3)
    if ending == "hang":
        time.sleep(600)
    if ending == "burn":
        while True:
            pass
    return "daemon"


def leave_command(file):
    """Start a command and do not wait for it."""
    process = subprocess.Popen([sys.executable, "-c", DAEMON, str(file)])
    while not Path(file).exists() or not Path(file).read_text():
        time.sleep(0.01)
    return process.pid


POOL = []


def keep_a_pool(x):
    """A pool that serves one trial after the other."""
    if not POOL:
        POOL.append(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")))
    return POOL[0].submit(abs, x).result()


def large(size):
    return bytes(size)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def pid():
    return os.getpid()


def die():
    os._exit(9)


class SilentError(Exception):
    """Cannot say what it is."""

    def __str__(self):
        raise RuntimeError("no words")


def raise_silently():
    raise SilentError
