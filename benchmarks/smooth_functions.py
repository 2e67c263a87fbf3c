"""Compares tuners without past tasks on functions that a good search refines to many digits.

    python -m benchmarks.smooth_functions --targets 8 --trials 100
    python -m benchmarks.smooth_functions --tuners gcp-smooth,optuna-tpe,hebo --environments DIR

Tuners are methods of the registry and, in environments of their own, those of `benchmarks.peers`.
The families are those of `benchmarks/peers/functions.py`. The number is the mean over targets of
the logarithm (base 10) of the value, without noise, of the best trial so far. With `--out FOLDER`,
every run is kept there, and the same command goes on where it was stopped.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.peers.functions import FAMILIES, FunctionProblem
from benchmarks.peers.install import python_of
from benchmarks.peers.objective import Parameter
from benchmarks.peers.play import ONE_THREAD, ROOT, play_tuner
from benchmarks.peers.run import OURS, Contestant

from foretune._base.arrays import Floats
from foretune.methods.contracts import Prior, Target
from foretune.search import METHODS, Method, Optimizer, Told
from foretune.space import Space

LOOKS = (15, 25, 50, 100)
LEAST = 1e-12


def space_of(parameters: tuple[Parameter, ...]) -> Space:
    """Return the same parameters as a space of Foretune."""
    return Space.of({parameter.name: _notation(parameter) for parameter in parameters})


def _notation(parameter: Parameter) -> object:
    if parameter.kind == "categorical":
        return [str(choice) for choice in range(parameter.choices)]
    number = float if parameter.kind == "float" else int
    return number(parameter.low), number(parameter.high)


class MethodTuner:
    """A method of the registry in the whole space of some parameters."""

    def __init__(
        self, method: Method, prior: Prior, parameters: tuple[Parameter, ...], seed: int
    ) -> None:
        self._names = [parameter.name for parameter in parameters]
        self._optimizer = Optimizer(Target(space_of(parameters)), method, prior, seed=seed)
        self._asked = -1

    def ask(self) -> Floats:
        suggestion = self._optimizer.ask()[0]
        self._asked = suggestion.id
        return np.array([float(suggestion.config[name]) for name in self._names])

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._optimizer.tell([Told((loss,), id=self._asked)])


def best_so_far(played: dict[str, Floats], problem: FunctionProblem) -> Floats:
    """Return the true value of the trial that looked best so far, after each trial."""
    values = np.array([problem.value(row) for row in played["rows"]])
    losses = played["losses"]
    best = [int(losses[: n + 1].argmin()) for n in range(len(losses))]
    worth: Floats = values[best]
    return worth


def run(tuner: Contestant, task: str, seed: int, given: argparse.Namespace, out: Path) -> None:
    """Play one run, unless it has been played before."""
    file = out / tuner.name / f"{task.replace(':', '-')}-{given.trials}.npz"
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    if tuner.environment == OURS:
        method, problem = METHODS[tuner.peer], FunctionProblem.called(task)
        ours = MethodTuner(method, method.learn(None, seed=0), problem.parameters, seed)
        played = play_tuner(ours, problem, given.trials)
        unfinished = file.with_suffix(".unfinished.npz")
        np.savez(unfinished, **played)  # type: ignore[arg-type]
        unfinished.rename(file)
        return
    command = [
        *(str(python_of(given.environments, tuner.environment)), "-m"),
        *("benchmarks.peers.play", task, tuner.module, tuner.peer),
        *(str(seed), str(given.trials), str(file.resolve())),
    ]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **ONE_THREAD}, check=True)


def report(tuner: str, given: argparse.Namespace, out: Path) -> str:
    """Return the mean logarithms of one tuner, with a row for each family."""
    looks = [n for n in LOOKS if n <= given.trials]
    rows = {}
    for family in given.families.split(","):
        logs, seconds = [], []
        for target in range(given.targets):
            problem = FunctionProblem.called(f"{family}:{target}")
            with np.load(out / tuner / f"{family}-{target}-{given.trials}.npz") as played:
                logs.append(np.log10(np.maximum(best_so_far(dict(played), problem), LEAST)))
                seconds.append(float(played["suggest_seconds"].mean()))
        means = np.mean(logs, axis=0)
        rows[family] = {f"after {n}": means[n - 1] for n in looks}
        rows[family] |= {"seconds": np.mean(seconds)}
    return f"{tuner}\n{pd.DataFrame(rows).T.round(2).to_string()}"


def main() -> None:
    """Play the missing runs, and print a table for each tuner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--tuners", default="auto,gp,gcp,gcp-smooth")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--environments", type=Path, help="made by benchmarks/peers/install.py")
    parser.add_argument("--out", type=Path, help="a folder that keeps what was played")
    given = parser.parse_args()
    tuners = [Contestant.called(name) for name in given.tuners.split(",")]
    if given.environments is None and any(tuner.environment != OURS for tuner in tuners):
        parser.error("peers are played in environments of their own: give --environments")
    with tempfile.TemporaryDirectory() as nowhere:
        out = given.out or Path(nowhere)
        for tuner in tuners:
            for family in given.families.split(","):
                for target in range(given.targets):
                    run(tuner, f"{family}:{target}", target, given, out)
                    print(".", end="", file=sys.stderr, flush=True)
            print(report(tuner.name, given, out), flush=True)


if __name__ == "__main__":
    main()
