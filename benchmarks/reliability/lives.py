"""Lives of a command: how it is started, and watched until it ends.

A life is a fork of a process that has its imports done, so that attacks hit work and not the start
of Python.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from tally import SAID, STOPPED, Ended

LONGEST_LIFE = 120.0
"""Seconds after which a life counts as hung, and is killed."""
TUNE_IMPORTS = (
    *("alembic.command", "optuna.storages._rdb.models", "sqlalchemy.orm"),
    *("foretune.cli", "foretune.cli.display", "foretune.stores.optuna.study", "foretune.run.pool"),
    *("foretune.run.tuning_loop", "foretune.run.study_story", "foretune.search.optimizer"),
)
OTHER_IMPORTS = (
    *("sklearn.ensemble", "skops.io", "foretune.automl.job", "foretune.automl.fit_story"),
    *("foretune_lab.collect.collect", "foretune_lab.bench.replay"),
    *("foretune.stores",),
)


def import_early(*, only_tune: bool = False) -> None:
    """Import what each life would import anew, with one numeric thread as in the command line."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    for name in TUNE_IMPORTS if only_tune else (*TUNE_IMPORTS, *OTHER_IMPORTS):
        import_module(name)


def environment(folder: Path) -> dict[str, str]:
    """The environment of a life: its own memory, and the modules in this folder."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "FORETUNE_HOME": os.environ.get("ATTACKED_HOME") or str(folder / "home"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "COLUMNS": "200",
    }


def start_life(folder: Path, words: tuple[str, ...], *, said: Path | None = None) -> int:
    """Start a command in a folder and return its process."""
    pid = os.fork()
    if pid:
        return pid

    def begin() -> None:
        # A shell that starts this in the background has made the parent ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.environ.update(environment(folder))
        print_to(said or folder / SAID)

    return run_and_end(begin, words)


def run_and_end(begin: Callable[[], None], words: tuple[str, ...]) -> NoReturn:
    """Run a command in this process, which is a fork, and end the process as Python ends."""
    code = STOPPED
    # A signal that comes before the command listens is a matter of this fork, not of the command.
    with suppress(KeyboardInterrupt):
        begin()
        from foretune.cli import main as foretune
        from foretune.run import stopping

        stopping.listen()
        sys.argv = ["foretune", *words]
        code = 1
    if code == STOPPED:
        end_process(code)
    try:
        foretune()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        end_process(code)


def end_process(code: int) -> NoReturn:
    """End a fork as Python ends, but for the frames that it has from its parent."""
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:  # a signal that came when all was done
        code = STOPPED
    finally:
        os._exit(code)


def print_to(path: Path) -> None:
    """Let all that this process prints go to the end of a file."""
    said = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)


def wait_for(pid: int, seconds: float = LONGEST_LIFE) -> Ended | None:
    """Wait until a life ends; None if it has not after so many seconds."""
    began = time.monotonic()
    while time.monotonic() < began + seconds:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return Ended(code, time.monotonic() - began, used.ru_maxrss / 1024)
        time.sleep(0.005)
    return None


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def run_life(folder: Path, words: tuple[str, ...], *, said: Path | None = None) -> Ended | None:
    """Run a command to its end; None, and it is killed, if it hangs."""
    return wait_or_kill(start_life(folder, words, said=said))


def wait_or_kill(pid: int, seconds: float = LONGEST_LIFE) -> Ended | None:
    """Wait until a life ends; None, and it is killed, if it hangs."""
    end = wait_for(pid, seconds)
    if end is None:
        kill(pid)
    return end


def run_fresh(folder: Path, words: tuple[str, ...], **variables: str) -> subprocess.Popen:
    """Start a command in a Python of its own, which reads these environment variables."""
    code = "from foretune.cli import main; main()"
    with (folder / SAID).open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env={**environment(folder), **variables},
            stdout=said,
            stderr=said,
        )
