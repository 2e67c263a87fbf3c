"""SIGINT, SIGTERM or SIGHUP at random moments of `fit`, `collect` or `learn`, and a resume.

    python benchmarks/reliability/stops.py --command fit --signal SIGTERM --stops 25

Each life of the command begins with the same files (those of a whole search, so that `fit` goes
straight to what follows the last trial) and is asked once to stop. It must end within a minute
with exit code 130, or with 0 where it had done nearly all, without a traceback and without a file
that is not whole; the same command must then end well. A request that comes when the command has
said its last word may end it as the system does.
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from kills import ALL_IMPORT, COMMANDS, OUT, prepare

LONGEST_STOP = 60.0
LONGEST_LIFE = 600.0
STOPPED = 130
FIT = (*COMMANDS["fit"].words, "--trials", "8", "--jobs", "1")
WORDS = {
    "fit": ("fit", *FIT),
    "collect": (
        *("collect", "--space", "cash", "--only", "knn,gaussian_nb,logistic", "--folds", "2"),
        *("--datasets", "tables", "--evaluations", "12", "--jobs", "1", "-o", "collected.parquet"),
    ),
    "learn": (
        *("learn", "--space", "pipeline-classification", "--method", "gcp-prior", "--out", "known"),
        *("--experience", f"{OUT}/trials.parquet", "--metric", "log_loss", "--metric", "auc"),
    ),
}
LAST_WORD = {"fit": "\nReport  ", "collect": "\nSaved ", "learn": "\nSaved "}
UNFINISHED = (".tmp", ".alive")


def begin(folder: Path, words: tuple[str, ...]) -> int:
    """Start a life of the command and return its process."""
    pid = os.fork()
    if pid:
        return pid
    # Who runs this in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    said = os.open("said.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    from foretune.automl.pace import Pace
    from foretune.cli import main as foretune

    Pace.wants_crew = lambda *_: True  # as where the model takes long
    sys.argv = ["foretune", *words]
    foretune()
    sys.exit(0)


def ended(pid: int, seconds: float) -> int | None:
    """The exit code; None where it has not ended after so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None


def check_stopped(folder: Path, command: str, number: int, code: int | None) -> str:
    """What must hold of a life that was asked to stop; how it ended."""
    said = (folder / "said.log").read_text() if (folder / "said.log").exists() else ""
    where = f"see {folder}"
    assert code is not None, f"it hangs: {where}"
    assert "Traceback" not in said, where
    assert "Exception ignored" not in said, where
    left = [path for path in folder.rglob("*") if path.suffix in UNFINISHED]
    assert not left, f"{left}: {where}"
    assert not list(folder.glob(f"{OUT}/fitting-*")), where
    if code == -number:
        assert LAST_WORD[command] in said, where
        return "had said its last word"
    assert code in (0, STOPPED), f"{code}: {where}"
    return f"exit code {code}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", choices=list(WORDS), default="fit")
    parser.add_argument("--signal", choices=["SIGINT", "SIGTERM", "SIGHUP"], default="SIGTERM")
    parser.add_argument("--stops", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    number, words = getattr(signal, given.signal), WORDS[given.command]
    for name in (*ALL_IMPORT, *COMMANDS["fit"].imports, "skops.io"):
        import_module(name)
    root = Path(tempfile.mkdtemp(prefix="stops-"))
    begun = root / "begun"
    (begun / "tables").mkdir(parents=True)
    prepare(begun)
    shutil.copy(begun / "table.csv", begun / "tables")
    assert ended(begin(begun, ("fit", *FIT)), LONGEST_LIFE) == 0, f"see {begun}/said.log"
    (begun / "said.log").unlink()
    shutil.copytree(begun, root / "whole")
    start = time.monotonic()
    assert ended(begin(root / "whole", words), LONGEST_LIFE) == 0, f"see {root}/whole"
    seconds = time.monotonic() - start
    draw, ways = random.Random(given.seed), Counter[str]()
    while ways.total() < given.stops:
        folder = root / "stopped"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(begun, folder)
        pid = begin(folder, words)
        if ended(pid, draw.uniform(0.0, seconds)) is not None:
            continue  # It was quicker than the first one.
        os.kill(pid, number)
        ways[check_stopped(folder, given.command, number, ended(pid, LONGEST_STOP))] += 1
        assert ended(begin(folder, words), LONGEST_LIFE) == 0, f"see {folder}/said.log"
    told = ", ".join(f"{times} {how}" for how, times in sorted(ways.items()))
    print(f"{given.command}: {given.stops} times {given.signal} within {seconds:.1f} s: {told}")


if __name__ == "__main__":
    main()
