"""Freeze-thaw on recorded curves: ablations, misleading past tasks, calibration.

    python -m benchmarks.freeze_thaw lcbench-exp.parquet --variants past,permuted --out runs.jsonl
    python -m benchmarks.freeze_thaw lcbench-exp.parquet --calibration --out bands.jsonl

Each line of the output is a run (or, with --calibration, a prediction). Tasks are left out one at a
time: the past is all other tasks.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from foretune._base.progress import SILENT
from foretune.experience import Experience
from foretune.methods.contracts import Observations, Prior, Target
from foretune.methods.curve_contracts import SeenCurves
from foretune.methods.freeze_thaw.belief import WeightedPrior
from foretune.methods.freeze_thaw.model import FreezeThawSurrogate
from foretune.methods.freeze_thaw.variants import freeze_thaw, without_configs, without_curves
from foretune.methods.wrapped import WrappedPrior
from foretune.search import METHODS, Method, method
from foretune_lab.bench.curve_replay import CurveCosts, CurveTask, curve_task, regret_at
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.curve_stage import CurveStage
from foretune_lab.bench.entrants import Entrant
from foretune_lab.bench.plan import RunPlan

BUDGETS = (1, 2, 5, 10, 20)
BAND = 1.6448536269514722
"""A normal variable lies within so many standard deviations with a probability of 90%."""
SHARES = (1 / 27, 2 / 27, 4 / 27, 8 / 27, 16 / 27)


@dataclass(frozen=True, slots=True)
class OnlyBeliefs(WrappedPrior):
    """A prior of which only some beliefs are left."""

    inner: Prior
    names: tuple[str, ...]

    def surrogate(self, target: Target) -> FreezeThawSurrogate:
        whole = self.inner.surrogate(target)
        assert isinstance(whole, FreezeThawSurrogate)

        def keep(priors: tuple[WeightedPrior, ...]) -> tuple[WeightedPrior, ...]:
            return tuple(each for each in priors if each.name in self.names)

        return replace(whole, beliefs=tuple(map(keep, whole.beliefs)))


def permute(past: Experience, seed: int) -> Experience:
    """Give each curve of a task to another configuration."""
    rng = np.random.default_rng(seed)
    order = [rng.permutation(np.arange(len(past))[past.rows(task)]) for task in past.tasks]
    return replace(past, config_index=past.config_index[np.concatenate(order)])


def reverse(past: Experience, seed: int) -> Experience:
    """Turn all values around: what was good is bad, and curves rise instead of falling."""
    del seed
    curves = past.curves
    assert curves is not None
    return replace(past, values=-past.values, curves=replace(curves, values=-curves.values))


def few(count: int) -> Callable[[Experience, int], Experience]:
    """Keep a few past tasks, drawn at random."""

    def draw(past: Experience, seed: int) -> Experience:
        return past.only(np.random.default_rng(seed).permutation(past.tasks)[:count].tolist())

    return draw


def same(past: Experience, seed: int) -> Experience:
    del seed
    return past


@dataclass(frozen=True, slots=True)
class Variant:
    change: Callable[[Experience, int], Experience] | None = same
    """None: there are no past tasks."""
    learner: Callable[[], object] = freeze_thaw
    policy: str = "model"
    beliefs: tuple[str, ...] | None = None
    acquisition: str = "ei"
    method: str = "freeze-thaw"


VARIANTS = {
    "past": Variant(),
    "nothing": Variant(change=None),
    "permuted": Variant(change=permute),
    "reversed": Variant(change=reverse),
    "2-tasks": Variant(change=few(2)),
    "5-tasks": Variant(change=few(5)),
    "without-past-configs": Variant(learner=without_configs),
    "without-past-curves": Variant(learner=without_curves),
    "complete-runs": Variant(policy="none"),
    "with-asha": Variant(policy="asha"),
    "thompson": Variant(acquisition="thompson"),
    "one-belief": Variant(beliefs=("past",)),
    "asha": Variant(change=None, policy="asha", method="random"),
    "auto": Variant(method="auto"),
}


def play(
    experience: Experience, task: str, name: str, seed: int, settings: CurveSettings
) -> dict[str, object]:
    """Play one run, and return its row."""
    variant = VARIANTS[name]
    past = None if variant.change is None else variant.change(experience.without([task]), seed)
    chosen: Method = replace(method(variant.method), acquisition=variant.acquisition)
    if variant.method != "freeze-thaw":
        chosen = METHODS[variant.method]
        prior = chosen.learn(past, seed=seed)
    else:
        prior = variant.learner().learn(past, seed=seed, progress=SILENT)  # type: ignore[attr-defined]
    if variant.beliefs is not None:
        prior = OnlyBeliefs(prior, variant.beliefs)
    stage = CurveStage.of(experience, task, settings)
    run = stage.play(Entrant(name, chosen, variant.policy), prior, RunPlan(task, seed, None))
    thought = np.array(run.suggest_seconds)
    return {
        "task": task,
        "variant": name,
        "seed": seed,
        "regret": regret_at(run, BUDGETS).tolist(),
        "seconds": [float(np.median(thought)), float(np.quantile(thought, 0.95))],
    }


def predict(
    experience: Experience, task: CurveTask, prior: Prior, seed: int
) -> Iterator[dict[str, object]]:
    """Predict the ends of random trials that have come to random shares of their steps."""
    rng = np.random.default_rng(seed)
    surrogate = prior.surrogate(Target(experience.space, ("loss",)))
    assert isinstance(surrogate, FreezeThawSurrogate)
    nothing = Observations(experience.space.encode([]), np.empty((0, 1)), np.empty(0, dtype=bool))
    for trials in (5, 20, 40):
        members = rng.permutation(len(task.curves))[:trials]
        reached = rng.choice([*SHARES, 1.0], size=trials, p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.1])
        steps, losses = [], []
        for member, share in zip(members.tolist(), reached.tolist(), strict=True):
            curve = task.curves[member]
            seen = curve.steps <= max(share * task.last_step, curve.steps[0]) * (1 + 1e-9)
            steps.append(curve.steps[seen])
            losses.append(curve.losses[seen, None])
        configs = task.configs.take(members)
        goals = np.full(trials, np.nan)
        curves = SeenCurves(configs, steps, losses, goals, 1.0, task.last_step)
        posterior = surrogate.condition_on_curves(curves, nothing, seed=0)
        belief = posterior.belief  # type: ignore[attr-defined]
        found = posterior.predict_end(configs)
        for row, (member, share) in enumerate(zip(members.tolist(), reached.tolist(), strict=True)):
            end = float(task.curves[member].losses[-1])
            if share == 1.0 or not np.isfinite(end):
                continue
            low, high = belief.predict_band(configs.take([row]), 0.9)
            yield {
                "task": task.name,
                "trials": trials,
                "share": share,
                "z": float((end - found.mean[row]) / found.std[row]),
                "inside": bool(low[0] <= end <= high[0]),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience")
    parser.add_argument("--variants", default="past")
    parser.add_argument("--tasks", default=":", help="a slice of the tasks, such as 0:8:2")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--budget", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--calibration", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    parts = [int(part) if part else None for part in given.tasks.split(":")]
    settings = CurveSettings(CurveCosts(given.budget, workers=given.workers))
    for task in experience.tasks[slice(*parts)]:
        for seed in range(given.seeds):
            rows: list[dict[str, object]] = []
            if given.calibration:
                prior = freeze_thaw().learn(experience.without([task]), seed=seed, progress=SILENT)
                rows += predict(experience, curve_task(experience, task), prior, seed)
            else:
                for name in given.variants.split(","):
                    rows.append(play(experience, task, name, seed, settings))
            with given.out.open("a") as file:
                for row in rows:
                    file.write(json.dumps({"suite": Path(given.experience).stem, **row}) + "\n")


if __name__ == "__main__":
    main()
