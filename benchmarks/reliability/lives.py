"""Lives of a command: how it is prepared, started, and watched until it ends.

A life is a fork of a process that has its imports done, so that attacks hit work and not the start
of Python.
"""

import atexit
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from rows import Row

OUT = "fit"
SPACE = {"x": {"range": [0.0, 1.0]}, "kind": {"a": {"rate": {"range": [0.001, 1.0]}}, "b": {}}}
LONGEST_LIFE = 300.0
STOPPED = 130
MISTAKE = 2
SAID = "said.log"
"""All that a life prints."""

TUNE = ("tune", "bowl:bowl", "--space", "space.json", "--method", "random", "--store", "study.db")
FIT = (
    *("fit", "table.csv", "--target", "label", "--only", "knn,naive_bayes,lda"),
    *("--method", "random", "--no-transfer", "--out", OUT),
)
LEARN = (
    *("learn", "--space", "pipeline-classification", "--method", "gcp-prior", "--out", "known"),
    *("--experience", f"{OUT}/trials.parquet", "--metric", "log_loss", "--metric", "auc"),
)
COLLECT = (
    *("collect", "--space", "cash", "--only", "knn,gaussian_nb,logistic", "--folds", "2"),
    *("--datasets", "tables", "--evaluations", "12", "--jobs", "1", "-o", "collected.parquet"),
)
BENCH = (
    *("bench", "run", "--experience", "runs.parquet", "--methods", "random,rf"),
    *("--trials", "15", "--seeds", "2", "--out", "results.parquet"),
)
IMPORT = (
    *("import", "table", "runs.csv", "--task", "dataset", "--value", "error:min"),
    *("-o", "imported.parquet"),
)
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


def prepare(folder: Path, *, rows: int = 150) -> None:
    """Write what the commands read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "space.json").write_text(json.dumps(SPACE))
    draw = random.Random(0)
    table = ["a,b,label"]
    for _ in range(rows):
        a, b = draw.random(), draw.random()
        table.append(f"{a:.3f},{b:.3f},{'yes' if a + 0.3 * draw.random() > b else 'no'}")
    (folder / "table.csv").write_text("\n".join(table))
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "table.csv").write_text("\n".join(table))
    runs = ["dataset,lr,depth,error"]
    for number in range(240):
        lr, depth = 10 ** draw.uniform(-4, 0), draw.randint(1, 9)
        runs.append(f"task-{number % 4},{lr!r},{depth},{abs(lr - 0.01) + 0.1 * depth!r}")
    (folder / "runs.csv").write_text("\n".join(runs))


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


@dataclass
class Ended:
    """How a life ended."""

    code: int
    seconds: float
    peak_mb: float


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
    pid = start_life(folder, words, said=said)
    end = wait_for(pid)
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


@dataclass
class Tally:
    """Counts what attacks find, and says it at once."""

    count: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    refused: int = 0
    longest_s: float = 0.0
    peak_mb: float = 0.0
    said: list[str] = field(default_factory=list)

    def blame(self, kind: str, words: str) -> None:
        """Count a fault: `lost`, `doubled` or `wrong`."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.said.append(f"{kind}: {words}")
        print(f"{kind}: {words}", file=sys.stderr, flush=True)

    def note(self, end: Ended | None) -> None:
        """Take in how long a life took and what it needed."""
        if end is not None:
            self.longest_s = max(self.longest_s, end.seconds)
            self.peak_mb = max(self.peak_mb, end.peak_mb)

    def check_end(self, end: Ended | None, folder: Path, *allowed: int) -> bool:
        """Blame a life that hung, printed a traceback, or ended with another exit code."""
        self.note(end)
        text = read(folder / SAID)
        if end is None:
            self.blame("wrong", f"a command hung for {LONGEST_LIFE:.0f} s in {folder}")
        elif "Traceback" in text or "Exception ignored" in text:
            self.blame("wrong", f"a traceback: {_traceback_in(text)} in {folder}")
        elif end.code not in allowed:
            self.blame("wrong", f"exit code {end.code}: {_last_line(text)} in {folder}")
        else:
            return True
        return False

    def add(self, other: "Tally") -> None:
        """Take in what another series of attacks has found."""
        for name in ("count", "lost", "doubled", "wrong", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.longest_s = max(self.longest_s, other.longest_s)
        self.peak_mb = max(self.peak_mb, other.peak_mb)
        self.said += other.said

    def row(self, attack: str, note: str = "") -> Row:
        note = "; ".join([note, *self.said[:3]]) if self.said else note
        counts = (self.count, self.lost, self.doubled, self.wrong, self.refused)
        return Row(attack, *counts, round(self.longest_s, 1), round(self.peak_mb) or None, note)


def read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _traceback_in(text: str) -> str:
    """The first traceback of a text, in one line: where it was and what it said."""
    marks = [text.find(mark) for mark in ("Traceback", "Exception ignored")]
    start = min(mark for mark in marks if mark >= 0)
    return " | ".join(line.strip() for line in text[start:].splitlines()[:30])[-1500:]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["(it said nothing)"])[-1][:300]
