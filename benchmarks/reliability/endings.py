"""`kill -9` of `foretune fit` at each operation on files that follows its last trial, and a resume.

    python benchmarks/reliability/endings.py

What comes after the trials (they become part of the user's memory, the model is fitted by
processes and saved, the report is written) is too quick for random moments to hit each of its
steps. So the operations of a life that has one trial to add are counted, and then there is one life
for each of them, killed before it or, in turns, after it. The same command must then end well, have
every trial once, in its folder and in the user's memory, a model that predicts, and leave no file
beside those of a life that nobody killed, but for unfinished ones (`.NAME.ID.tmp`).
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from lives import FIT, Tally, import_early, prepare

from stores import check_fit

TRIALS = 8
OPERATIONS = ("replace", "fsync", "unlink", "rename", "mkdir", "rmdir", "truncate")
NOBODY = -1


def life(folder: Path, trials: int, *, dies_at: int = NOBODY, after: bool = False) -> int:
    """Run the command in a process that dies at this operation; how it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.chdir(folder)
    os.environ["FORETUNE_HOME"] = str(folder / "home")
    said = os.open("said.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    _count_operations(dies_at, after)
    from foretune.automl.final_model.time_model import Pace
    from foretune.cli import main as foretune

    Pace.wants_crew = lambda *_: True  # as where the model takes long
    sys.argv = ["foretune", *FIT]
    sys.argv += ["--trials", str(trials), "--jobs", "1"]
    foretune()
    sys.exit(0)


def _count_operations(dies_at: int, after: bool) -> None:
    """Note every operation after the last trial in a file, and die at one of them."""
    from foretune.automl import trial_runs

    tune = trial_runs.tune

    def tuned(*given: object, **named: object) -> object:
        ending = tune(*given, **named)
        for name in OPERATIONS:
            setattr(os, name, watched(name, getattr(os, name)))
        return ending

    def watched(name: str, operation: Callable[..., object]) -> Callable[..., object]:
        def done(*given: object, **named: object) -> object:
            with Path("operations.log").open("a+") as log:
                log.seek(0)
                number = len(log.readlines())
                log.write(f"{name} {given[0]}\n")
            if number == dies_at and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return operation(*given, **named)
            finally:
                if number == dies_at:
                    os.kill(os.getpid(), signal.SIGKILL)

        return done

    trial_runs.tune = tuned


def files(folder: Path) -> set[str]:
    """All that is there, but for logs and what is unfinished."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.suffix not in (".log", ".tmp", ".npy")}


def main() -> None:
    import_early()
    root = Path(tempfile.mkdtemp(prefix="endings-"))
    begun, killed = root / "begun", root / "killed"
    begun.mkdir()
    prepare(begun)
    assert life(begun, TRIALS - 1) == 0, f"see {begun}/said.log"
    (begun / "operations.log").unlink()

    whole = root / "whole"
    shutil.copytree(begun, whole)
    assert life(whole, TRIALS) == 0, f"see {whole}/said.log"
    tally = Tally()
    operations = (whole / "operations.log").read_text().splitlines()
    for number, operation in enumerate(operations):
        shutil.rmtree(killed, ignore_errors=True)
        shutil.copytree(begun, killed)
        after = number % 2 == 1
        ended = life(killed, TRIALS, dies_at=number, after=after)
        assert ended == -signal.SIGKILL, f"{ended}: see {killed}/said.log"
        assert life(killed, TRIALS) == 0, f"see {killed}/said.log"
        assert files(killed) == files(whole), files(killed) ^ files(whole)
        os.environ["FORETUNE_HOME"] = str(killed / "home")
        assert check_fit(killed, TRIALS, tally) == TRIALS
        print("after" if after else "before", Path(operation).name, flush=True)
        tally.count += 1
    shutil.rmtree(root)
    tally.row("kill -9 at each file operation that follows the last trial of fit").print()


if __name__ == "__main__":
    main()
