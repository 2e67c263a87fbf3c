"""Compares losses to assume for pruned trials, by replay of recorded curves in Optuna.

    python -m benchmarks.optuna_pruned_trials --experience lcbench-exp.parquet --out runs.jsonl

Each study prunes with `ForetunePruner("asha")` and may use as many steps as five complete runs.
The sampler's method is told one of these losses for a pruned trial:

- `worst`: the worst complete loss so far;
- `value`: the last value that the trial reported;
- `shifted`: that value, plus the median change from its step to the end in complete trials.

A regret of 0 is the best recorded value of a task, 1 the median one. The same command goes on with
the runs that are missing in --out.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from benchmarks.optuna_sampler import KeptRuns, as_distribution, ask, bootstrap_interval
from optuna.trial import FrozenTrial

from foretune.experience import Experience
from foretune.integrations.optuna import ForetunePruner, ForetuneSampler, sampler
from foretune.integrations.optuna.pruned_losses import PrunedLosses
from foretune.integrations.optuna.study_search import StudySearch

AT = (1, 2, 5)
"""The numbers of complete runs after which regret is reported."""


@dataclass
class Value(PrunedLosses):
    """Believes the last value that a pruned trial reported."""

    def estimate(self, trial: FrozenTrial) -> tuple[float, ...]:
        value = self.signs[0] * trial.intermediate_values[trial.last_step]
        return (value,) if np.isfinite(value) else super().estimate(trial)


@dataclass
class Shifted(Value):
    """Believes that a pruned trial would have changed as complete ones did from its step on."""

    complete: list[tuple[dict[int, float], float]] = field(default_factory=list)

    def learn(self, trial: FrozenTrial, losses: np.ndarray) -> None:
        super().learn(trial, losses)
        self.complete.append((trial.intermediate_values, float(losses[0])))

    def estimate(self, trial: FrozenTrial) -> tuple[float, ...]:
        step = trial.last_step
        changes = [
            last - self.signs[0] * values[step] for values, last in self.complete if step in values
        ]
        if not np.isfinite(trial.intermediate_values[step]):
            return super().estimate(trial)
        return (super().estimate(trial)[0] + float(np.median(changes)),)


BELIEFS = {"worst": PrunedLosses, "value": Value, "shifted": Shifted}


class CurveTask:
    """One task of recorded curves; a configuration has the curve of the nearest recorded one."""

    def __init__(self, experience: Experience, name: str) -> None:
        part = experience.only([name])
        self.space, self.configs = experience.space, part.configs.take(part.config_index)
        self.sign = part.metrics[0].sign
        curves = [part.curves.at_steps(row, 0) for row in range(len(part))]
        self.steps = curves[0][0]
        self.losses = np.array([self.sign * values for _, values in curves])
        last = np.where(np.isfinite(self.losses[:, -1]), self.losses[:, -1], np.inf)
        self.best, self.middle = float(last.min()), float(np.median(last))
        self.asked = {each.name: as_distribution(each) for each in self.space.parameters}

    def curve_of(self, config: dict[str, Any]) -> np.ndarray:
        columns = {name: [value] for name, value in config.items()}
        x = self.space.from_columns(columns, 1, drop_inactive=True).x
        return self.losses[np.square(self.configs.x - x).sum(axis=1).argmin()]

    def run(self, study: optuna.Study, budget: float) -> list[float]:
        """Return the best regret so far after each of `AT` complete runs."""
        spent, best, found, total = 0, np.inf, [], len(self.steps)
        while spent < budget * total:
            trial = study.ask()
            config = {name: ask(trial, name, each) for name, each in self.asked.items()}
            for step, loss in zip(self.steps, self.curve_of(config), strict=True):
                spent += 1
                trial.report(float(loss), int(step))
                if step < self.steps[-1] and trial.should_prune():
                    study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                    break
            else:
                failed = not np.isfinite(loss)
                state = optuna.trial.TrialState.FAIL if failed else None
                study.tell(trial, None if failed else float(loss), state=state)
                best = best if failed else min(best, float(loss))
            found += [(spent / total, best)]
        regret = [
            min([value for cost, value in found if cost <= limit], default=np.inf) for limit in AT
        ]
        shares = (np.minimum(regret, self.middle) - self.best) / (self.middle - self.best)
        return shares.tolist()


def run_one(task: CurveTask, belief: str, method: str, seed: int, budget: float) -> list[float]:
    sampler.StudySearch = partial(StudySearch, make_pruned=BELIEFS[belief])
    pruner = ForetunePruner("asha", first_step=float(task.steps[0]), last_step=len(task.steps))
    own = ForetuneSampler(method, seed=seed, past_studies=False)
    return task.run(optuna.create_study(sampler=own, pruner=pruner), budget)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="results of single runs (JSON)")
    parser.add_argument("--method", default="gp")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=8)
    given = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    experience, kept = Experience.open(given.experience), KeptRuns(given.out)
    tasks = [CurveTask(experience, name) for name in experience.tasks[: given.tasks]]
    regrets = {belief: np.empty((len(tasks), given.seeds, len(AT))) for belief in BELIEFS}
    for number, task in enumerate(tasks):
        for seed in range(given.seeds):
            for belief, found in regrets.items():
                found[number, seed] = kept.get_or_run(
                    f"{given.experience.stem}, {given.method}, {belief}, task {number}, {seed}",
                    partial(run_one, task, belief, given.method, seed, AT[-1]),
                )
    for belief, found in regrets.items():
        means = found.mean(axis=1)
        low, high = bootstrap_interval(means)
        line = {"told": belief, "after": AT, "regret": means.mean(axis=0).round(3).tolist()}
        print(json.dumps(line | {"low": low.round(3).tolist(), "high": high.round(3).tolist()}))


if __name__ == "__main__":
    main()
