"""Tests `auto` on functions of real numbers that a good search refines to many digits.

    python -m benchmarks.auto_smooth --targets 8 --trials 100

Recorded tables cannot show whether a search refines: they end at the nearest recorded
configuration. Here every task is a bowl with ripples in five dimensions. Its centre and widths are
drawn around common ones. The 20 past tasks have 100 random evaluations each. The report shows the
median over targets of the logarithm (base 10) of the best value so far; the minimum is 0. It
compares `auto`, `auto` with shuffled values of past tasks, Gaussian processes without experience
and, if it is installed, Optuna's TPE.
"""

import argparse
from importlib.util import find_spec

import numpy as np
import pandas as pd
from benchmarks.peers.functions import Function, FunctionProblem, add_ripples, numbers
from benchmarks.peers.play import play_tuner
from benchmarks.smooth_functions import MethodTuner, best_so_far

from foretune._base.arrays import Floats
from foretune.experience import Direction, Experience
from foretune.search import METHODS
from foretune.space import Space

DIMENSIONS = 5
CENTRE = np.array([0.7, 0.3, 0.6, 0.5, 0.5])
STEEPNESS = np.array([4.0, 2.0, 1.0, 1.0, 0.3])
PAST_TASKS, PAST_TRIALS = 20, 100
FIRST_TARGET = 500
LOOKS = (5, 10, 25, 50, 100, 200)
FROM_NOTHING = ("gcp-smooth", "gcp")


def function(seed: int) -> Function:
    rng = np.random.default_rng(seed)
    centre = np.clip(CENTRE + 0.15 * rng.standard_normal(DIMENSIONS), 0.02, 0.98)
    steepness = STEEPNESS * np.exp(0.5 * rng.standard_normal(DIMENSIONS))
    return add_ripples(centre, steepness)


NAMES = [f"x{number}" for number in range(DIMENSIONS)]
SPACE = Space.of(dict.fromkeys(NAMES, (0.0, 1.0)))


def past(*, shuffled: bool) -> Experience:
    rng = np.random.default_rng(0)
    rows = [
        {"task": f"past {task}", **dict(zip(NAMES, x, strict=True)), "value": function(task)(x)}
        for task in range(PAST_TASKS)
        for x in rng.random((PAST_TRIALS, DIMENSIONS))
    ]
    frame = pd.DataFrame(rows)
    if shuffled:
        frame["value"] = frame.groupby("task")["value"].transform(rng.permutation)
    return Experience.from_frame(SPACE, frame, task="task", metrics={"value": Direction.MIN})


def tpe(target: Function, trials: int, seed: int) -> Floats:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(
        lambda trial: target(np.array([trial.suggest_float(name, 0.0, 1.0) for name in NAMES])),
        n_trials=trials,
    )
    best: Floats = np.minimum.accumulate([trial.value for trial in study.trials])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--trials", type=int, default=100)
    given = parser.parse_args()
    auto = METHODS["auto"]
    methods = {
        "auto": (auto, auto.learn(past(shuffled=False), seed=0)),
        "auto, past shuffled": (auto, auto.learn(past(shuffled=True), seed=0)),
        **{name: (METHODS[name], METHODS[name].learn(None, seed=0)) for name in FROM_NOTHING},
    }
    rows = []
    for seed in range(given.targets):
        target = function(FIRST_TARGET + seed)
        problem = FunctionProblem.of(target, numbers(DIMENSIONS), seed=seed)
        runs = {
            name: best_so_far(
                play_tuner(
                    MethodTuner(method, prior, problem.parameters, seed), problem, given.trials
                ),
                problem,
            )
            for name, (method, prior) in methods.items()
        }
        if find_spec("optuna"):
            runs["Optuna TPE"] = tpe(target, given.trials, seed)
        for name, best_values in runs.items():
            best = np.log10(best_values)
            looks = {f"after {n}": best[n - 1] for n in LOOKS if n <= given.trials}
            rows.append({"method": name, **looks})
    print(pd.DataFrame(rows).groupby("method", sort=False).median().round(2).to_string())


if __name__ == "__main__":
    main()
