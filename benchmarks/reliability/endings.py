"""`kill -9` of `foretune fit` at each operation on files that follows its last trial, and a resume.

    python benchmarks/reliability/endings.py --jobs 4

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
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from commands import FIT, prepare
from lives import import_early, print_to, run_and_end
from parts import make_parser, run_parts
from tally import SAID, Tally, read

from stores import check_fit

TRIALS = 8
OPERATIONS = ("replace", "fsync", "unlink", "rename", "mkdir", "rmdir", "truncate")
NOBODY = -1


def life(folder: Path, trials: int, *, dies_at: int = NOBODY, after: bool = False) -> int:
    """Run the command in a process that dies at this operation; how it ended."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def begin() -> None:
        os.environ["FORETUNE_HOME"] = str(folder / "home")
        os.chdir(folder)
        print_to(Path(SAID))
        _count_operations(dies_at, after)
        from foretune.automl.fit_time_model import FitTimeModel

        FitTimeModel.needs_workers = lambda *_: True  # as for a model that takes long

    return run_and_end(begin, (*FIT, "--trials", str(trials), "--jobs", "1"))


def _count_operations(dies_at: int, after: bool) -> None:
    """Note every operation after the last trial in a file, and die at one of them."""
    from foretune.automl import trial_search

    tune = trial_search.tune

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

    trial_search.tune = tuned


def files(folder: Path) -> set[str]:
    """All that is there, but for logs and what is unfinished."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.suffix not in (".log", ".tmp", ".npy")}


@dataclass(frozen=True)
class Kill:
    """One operation on a file, and the life that dies there."""

    root: Path
    number: int
    operation: str

    @property
    def is_after(self) -> bool:
        """Whether it dies after the operation and not before."""
        return self.number % 2 == 1


def kill_once(kill: Kill) -> Tally:
    """Run a life that dies, and then the same command, and check what it leaves."""
    tally, folder = Tally(), kill.root / f"killed-{kill.number}"
    shutil.copytree(kill.root / "begun", folder)
    began = time.monotonic()
    ended = life(folder, TRIALS, dies_at=kill.number, after=kill.is_after)
    tally.count, tally.longest_s = 1, time.monotonic() - began
    if ended != -signal.SIGKILL:
        tally.blame("wrong", f"exit code {ended} of a life that was to die in {folder}")
        return tally
    code, whole = life(folder, TRIALS), files(kill.root / "whole")
    if code or "Traceback" in read(folder / SAID):
        tally.blame("wrong", f"exit code {code} after the kill: see {folder}/{SAID}")
    elif files(folder) != whole:
        tally.blame("wrong", f"other files than without a kill: {files(folder) ^ whole}: {folder}")
    else:
        os.environ["FORETUNE_HOME"] = str(folder / "home")
        remembered = check_fit(folder, TRIALS, tally)
        if remembered != TRIALS:
            tally.blame("lost", f"{remembered} of {TRIALS} trials are remembered in {folder}")
    tally.remove_unless_faulty(folder)
    return tally


def main() -> None:
    given = make_parser(__doc__, short="two operations").parse_args()
    import_early()
    root = Path(tempfile.mkdtemp(prefix="endings-"))
    begun = root / "begun"
    begun.mkdir()
    prepare(begun)
    assert life(begun, TRIALS - 1) == 0, f"see {begun}/{SAID}"
    (begun / "operations.log").unlink()

    whole = root / "whole"
    shutil.copytree(begun, whole)
    assert life(whole, TRIALS) == 0, f"see {whole}/{SAID}"
    operations = (whole / "operations.log").read_text().splitlines()
    kills = [Kill(root, number, operation) for number, operation in enumerate(operations)]
    if given.short:
        kills = [kills[0], kills[-1]]
    tally = Tally()
    for kill, found in run_parts(kill_once, kills, given.jobs):
        tally.add(found)
        print("after" if kill.is_after else "before", Path(kill.operation).name, flush=True)
        note = f"of {len(operations)} operations"
        tally.row("kill -9 of fit at each file operation after its last trial", note).print()
    tally.remove_unless_faulty(root)


if __name__ == "__main__":
    main()
