"""SIGINT, SIGTERM or SIGHUP at random moments of a command, and the same command again.

    python benchmarks/reliability/stops.py --command fit --signal SIGTERM --stops 25
    python benchmarks/reliability/stops.py --command tune learn collect bench import --stops 5

Each life of a command begins with the same files (`fit` at what follows its last trial, or with
`--command fit-search` in the middle of its search) and is asked once to stop. It must end within a
minute with exit code 130, or with 0 if it had done nearly all, without a traceback and without a
file that is not whole. The same command must then end well and leave the same files as a life that
nobody stopped; a study must hold all its trials, none changed or doubled. A request that comes when
the command has said its last word may end it as the system does.
"""

import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bowl import SECONDS
from commands import BENCH, COLLECT, FIT, IMPORT, IMPORT_RUNS, LEARN, OUT, TUNE, prepare
from lives import import_early, kill, run_life, start_life, wait_for
from parts import make_parser, run_parts
from tally import SAID, STOPPED, Ended, Tally, read

from stores import compare, compare_evaluations, read_sqlite, read_unfinished

LONGEST_STOP = 60.0
TRIALS = 8
UNFINISHED = (".tmp", ".alive")
COUNTED = ("--trials", str(TRIALS), "--jobs", "1")


@dataclass(frozen=True)
class Command:
    """What is stopped, and what it has said when all is done."""

    words: tuple[str, ...]
    last_word: str
    store: str = ""


COMMANDS = {
    "tune": Command(
        (*TUNE, *COUNTED, "--out", "tuned.parquet", "--report", "tuned.html"), "{", "study.db"
    ),
    "tune-search": Command((*TUNE, *COUNTED), "{", "study.db"),
    "fit": Command((*FIT, *COUNTED), "\nReport  ", f"{OUT}/study.db"),
    "fit-search": Command((*FIT, *COUNTED), "\nReport  ", f"{OUT}/study.db"),
    "learn": Command(LEARN, "\nSaved "),
    "collect": Command(COLLECT, "\nSaved "),
    "bench": Command(BENCH, " runs in "),
    "import": Command(IMPORT, "\nSaved "),
}
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
NEED_A_FIT = ("fit", "learn")


def files(folder: Path) -> set[str]:
    """All files of a folder but logs and locks."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.suffix not in (".log", ".lock")}


def check_stopped(folder: Path, command: Command, number: int, end: Ended, tally: Tally) -> str:
    """Check a life that was asked to stop, and say how it ended."""
    said = read(folder / SAID)
    left = [path for path in folder.rglob("*") if path.suffix in UNFINISHED]
    if left or list(folder.glob(f"{OUT}/fitting-*")):
        tally.blame("wrong", f"{left} are left in {folder}")
    if end.code == -number and command.last_word in said:
        tally.note(end)
        return "after its last word"
    tally.check_end(end, folder, 0, STOPPED)
    return f"exit code {end.code}"


def check_again(folder: Path, command: Command, whole: set[str], tally: Tally) -> None:
    """Run the stopped command again, and check all that it leaves."""
    store = folder / command.store
    before = read_unfinished(store, tally) if command.store else {}
    if not tally.check_end(run_life(folder, command.words), folder, 0):
        return
    if files(folder) != whole:
        tally.blame("wrong", f"other files than without a stop: {files(folder) ^ whole}: {folder}")
    if command.store:
        now, running = read_sqlite(store, tally)
        compare(before, now, running, 0, tally)
        if len(now) != TRIALS:
            tally.blame("lost", f"{len(now)} of {TRIALS} trials in {folder}")
        if command.store == "study.db":
            compare_evaluations(folder, now, tally, more=1)


def stop_many(name: str, signal_name: str, stops: int, seed: int, root: Path) -> tuple[Tally, str]:
    """Stop one command at random moments, each time from the same files."""
    command, number = COMMANDS[name], getattr(signal, signal_name)
    tally, ways, draw = Tally(), Counter[str](), random.Random(seed)
    begun, folder = root / "begun", root / f"stopped-{name}"
    prepare(begun)
    if name in NEED_A_FIT and not (begun / OUT).exists():
        tally.check_end(run_life(begun, COMMANDS["fit"].words), begun, 0)
    if name == "bench" and not (begun / "runs.parquet").exists():
        tally.check_end(run_life(begun, IMPORT_RUNS), begun, 0)
    if name == "fit-search":
        shutil.rmtree(begun / OUT, ignore_errors=True)
        shutil.rmtree(begun / "home", ignore_errors=True)
    (begun / SAID).unlink(missing_ok=True)
    shutil.copytree(begun, root / f"whole-{name}")
    end = run_life(root / f"whole-{name}", command.words)
    if not tally.check_end(end, root / f"whole-{name}", 0) or end is None:
        return tally, ""
    whole, seconds = files(root / f"whole-{name}"), end.seconds
    tally.longest_s = 0.0
    while ways.total() < stops and not tally.said:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(begun, folder)
        pid = start_life(folder, command.words)
        if wait_for(pid, draw.uniform(0.0, seconds)) is not None:
            seconds *= 0.9
            continue  # It was quicker than the first one.
        os.kill(pid, number)
        stopped = wait_for(pid, LONGEST_STOP)
        tally.count += 1
        if stopped is None:
            kill(pid)
            tally.blame("wrong", f"{name} hangs after {signal_name}: see {folder}")
            break
        ways[check_stopped(folder, command, number, stopped, tally)] += 1
        longest = tally.longest_s
        check_again(folder, command, whole, tally)
        tally.longest_s = longest  # of the stops alone
        tally.row(f"{signal_name} in {name}", "so far").print()
    return tally, ", ".join(f"{times} {how}" for how, times in sorted(ways.items()))


def main() -> None:
    parser = make_parser(__doc__, short="one SIGTERM of tune")
    parser.add_argument("--command", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--signal", nargs="+", choices=SIGNALS, default=["SIGTERM", "SIGINT"])
    parser.add_argument("--stops", type=int, default=10)
    given = parser.parse_args()
    if given.short:
        given.command, given.signal, given.stops = ["tune-search"], ["SIGTERM"], 1
    os.environ.setdefault(SECONDS, "0.1")
    import_early(only_tune=given.short)
    if not given.short:
        # As where the model takes long: it is fitted by processes, which must end as well.
        from foretune.automl.fit_time_model import FitTimeModel

        FitTimeModel.needs_workers = lambda *_: True
    root = Path(tempfile.mkdtemp(prefix="stops-"))
    parts = [
        Part(name, signal_name, given.stops, given.seed, root / f"{name}-{signal_name}")
        for name in given.command
        for signal_name in given.signal
    ]
    faults = 0
    for part, (tally, ways) in run_parts(stop_part, parts, given.jobs):
        row = tally.row(f"{part.signal} in {part.command}", ways)
        row.print()
        faults += row.faults
        if not row.faults:
            shutil.rmtree(part.root)
    if not faults:
        shutil.rmtree(root)


class Part(NamedTuple):
    """All stops of one command by one signal."""

    command: str
    signal: str
    stops: int
    seed: int
    root: Path


def stop_part(part: Part) -> tuple[Tally, str]:
    return stop_many(*part)


if __name__ == "__main__":
    main()
