"""Play Foretune and its peers on recorded tables, each in its own environment.

    python -m benchmarks.peers.run xgboost.parquet --peers auto,optuna-tpe,smac \\
        --environments DIR --seeds 2 --trials 50 --out xgboost-peers.parquet

Every (peer, task, seed) is a process of its own. The same command goes on where it was stopped;
further peers, tasks and seeds extend the file. Other trials, another split or another experience
are refused there: they need a file of their own. A run that fails or takes too long leaves its last
lines beside the others and is not tried again unless `--retry` asks for it. The results are read
by `foretune bench report` and by `benchmarks.peers.summary`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.peers.install import describe_install, python_of
from benchmarks.peers.play import ONE_THREAD, ROOT
from benchmarks.peers.problems import problem_of

from foretune._base.files import replace_file
from foretune.errors import ForetuneError, UsageError
from foretune.experience import Experience, Split
from foretune.experience.fingerprints import fingerprint_of_evaluations
from foretune_lab.bench.plan import plan_held_out
from foretune_lab.bench.pools import facts_of, pool_of
from foretune_lab.bench.replay import fingerprint_of_notes
from foretune_lab.bench.results import ReplaySettings, Results, save
from foretune_lab.bench.run import MethodRun
from foretune_lab.bench.starts import Start, seed_on_task

OURS = "foretune"
START = Start.parse("none")
LAST_LINES = 2_000
"""The number of characters that are kept of the output of a failed run."""


@dataclass(frozen=True)
class Contestant:
    """A tuner, by its name in the results."""

    name: str
    environment: str

    @classmethod
    def called(cls, name: str) -> "Contestant":
        """Return the name of the method. `auto@TAG` is `auto` again, learnt by another Foretune."""
        plain = name.split("@", maxsplit=1)[0]
        for environment, content in describe_install().items():
            if plain in content["peers"]:
                return cls(name, environment)
        return cls(name, OURS)

    @property
    def peer(self) -> str:
        """The name that its adapter uses."""
        return self.name.split("@")[0]

    @property
    def module(self) -> str:
        """The module of its adapter."""
        return f"benchmarks.peers.adapters.{self.environment.replace('-', '_')}"


@dataclass(frozen=True)
class Played:
    """The folder of the runs so far, beside the results."""

    folder: Path

    @property
    def settings(self) -> Path:
        """The file of the settings that all runs share."""
        return self.folder / "settings.json"

    @property
    def runs(self) -> list[Path]:
        """The folder of the runs so far."""
        return sorted((self.folder / "runs").glob("*/*.npz"))

    def run(self, name: str, task: str, seed: int) -> Path:
        """Return the file of one run."""
        return self.folder / "runs" / name / f"{task}-{seed}.npz"

    def problem(self, task: str) -> Path:
        """Return the file of one task as a plain problem."""
        return self.folder / "problems" / f"{task}.npz"

    def priors(self, name: str) -> Path:
        """Return the folder in which Foretune keeps the prior of one name."""
        return self.folder / "priors" / name


def main() -> None:
    """Play what is missing, and write the results."""
    try:
        play_all(_arguments())
    except ForetuneError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def play_all(given: argparse.Namespace) -> None:
    """Read the arguments of the command."""
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    tasks = given.tasks.split(",") if given.tasks else None
    held = plan_held_out(experience, given.split, START, tasks, given.tasks_limit)
    played = Played(given.out.with_suffix(".played"))
    settings = _settings(experience, given)
    keep_settings(settings, played)
    contestants = [Contestant.called(name) for name in given.peers.split(",")]
    splits = [(split, task) for split in held.splits for task in split.test]
    for split, task in splits:
        if not played.problem(task).exists():
            _write_problem(experience, given.experience, split, task, played.problem(task))
    for contestant in contestants:
        for seed in range(given.seeds):
            for _, task in splits:
                _play(contestant, task, seed, given, played)
        _collect(experience, settings, played, given.out, held.tasks)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience", type=Path)
    parser.add_argument("--peers", required=True, metavar="A,B,C")
    parser.add_argument("--environments", type=Path, required=True, help="made by install.py")
    parser.add_argument("--tasks", metavar="A,B,C", help="only these")
    parser.add_argument("--tasks-limit", type=int, help="at most so many, drawn at random")
    parser.add_argument("--split", default="leave-one-out")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1800.0, help="that a run may take")
    parser.add_argument("--retry", action="store_true", help="try failed runs again")
    parser.add_argument("--suite", help="its name in reports")
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args()


def _settings(experience: Experience, given: argparse.Namespace) -> ReplaySettings:
    return ReplaySettings(
        suite=given.suite or f"{given.experience.stem}-nearest",
        trials=given.trials,
        split=given.split,
        objectives=(experience.metrics[0].name,),
        directions=(str(experience.metrics[0].direction),),
        experience=fingerprint_of_evaluations(experience),
        start=str(START),
        notes=fingerprint_of_notes(experience, given.split, START),
    )


def keep_settings(settings: ReplaySettings, played: Played) -> None:
    """Write the settings that all runs of a folder share, and refuse settings that differ.

    The name of the suite may change: it stands in the results alone, which are written anew.
    """
    if played.settings.exists():
        written = ReplaySettings.from_dict(json.loads(played.settings.read_text("utf-8")))
        difference = settings.difference(replace(written, suite=settings.suite))
    else:
        difference = "settings while those of its runs are not known" if played.runs else ""
    if difference:
        raise UsageError(
            f"runs in one file must be played under the same settings, but {played.folder} would "
            f"get {difference}: give another --out"
        )
    if played.settings.exists():
        return
    for unknown in (played.folder / "problems").glob("*.npz"):
        unknown.unlink()
    played.folder.mkdir(parents=True, exist_ok=True)
    _write_settings(settings, played.settings)


def _write_settings(settings: ReplaySettings, out: Path) -> None:
    def write(path: Path) -> None:
        path.write_text(json.dumps(asdict(settings)), "utf-8")

    replace_file(out, write)


def seed_of(task: str, seed: int) -> int:
    """Return the seed of a tuner. It has 31 bits, which all tuners accept."""
    return seed_on_task(seed, task) >> 1


def _write_problem(experience: Experience, file: Path, split: Split, task: str, out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    unfinished = out.with_suffix(".unfinished")
    problem_of(experience, file, split, task).save(unfinished)
    unfinished.rename(out)


def _play(
    contestant: Contestant,
    task: str,
    seed: int,
    given: argparse.Namespace,
    played: Played,
    run: Callable[..., object] = subprocess.run,
) -> None:
    """Play in a process of its own, unless the run has been played or has failed before.

    run: starts the process and waits for it.
    """
    out = played.run(contestant.name, task, seed)
    failure = out.with_suffix(".failed")
    if out.exists() or (failure.exists() and not given.retry):
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    ours = contestant.environment == OURS
    python = sys.executable if ours else python_of(given.environments, contestant.environment)
    command = [
        *(str(python), "-m", "benchmarks.peers.play", str(played.problem(task).resolve())),
        *(contestant.module, contestant.peer),
        *(str(seed_of(task, seed)), str(given.trials), str(out.resolve())),
    ]
    priors = {"PEERS_PRIORS": str(played.priors(contestant.name).resolve())}
    try:
        run(
            command,
            cwd=ROOT,
            env={**os.environ, **ONE_THREAD, **priors},
            timeout=given.seconds,
            check=True,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        failure.write_text(f"took more than {given.seconds:g} s\n", "utf-8")
    except subprocess.CalledProcessError as error:
        failure.write_text(str(error.stderr)[-LAST_LINES:], "utf-8")
    state = "failed" if not out.exists() else "played"
    print(f"{contestant.name} on {task}, seed {seed}: {state}", flush=True)


def _collect(
    experience: Experience, settings: ReplaySettings, played: Played, out: Path, tasks: int
) -> None:
    """Write all runs so far into one file."""
    runs = list(_runs(played.runs))
    if not runs:
        return
    rows = pa.concat_tables([run.rows(settings) for run in runs]).to_pandas()
    pools = {
        task: facts_of(pool_of(experience, task), settings.trials)
        for task in dict.fromkeys(run.task for run in runs)
    }
    save(Results(settings, pools, rows, tasks), out)


def _runs(files: Sequence[Path]) -> Iterator[MethodRun]:
    for file in files:
        task, _, seed = file.stem.rpartition("-")
        with np.load(file) as arrays:
            yield MethodRun(
                task=task,
                method=file.parent.name,
                seed=int(seed),
                losses=arrays["losses"][:, None],
                suggest_seconds=arrays["suggest_seconds"],
                learn_seconds=float(arrays["learn_seconds"]),
            )


if __name__ == "__main__":
    main()
