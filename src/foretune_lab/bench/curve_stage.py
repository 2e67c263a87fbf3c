"""Playing runs on the recorded curves of one task."""

from dataclasses import dataclass
from functools import partial

from foretune.experience import Experience
from foretune.methods import Prior, Target, make_policy
from foretune.search import Optimizer
from foretune_lab.baselines.step_tuner import StepTuner
from foretune_lab.bench.curve_replay import CurveRun, CurveTask, curve_task, play_on_curves
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.entrants import STEP_MODELS, Entrant
from foretune_lab.bench.plan import RunPlan
from foretune_lab.bench.starts import seed_on_task


@dataclass(frozen=True, slots=True)
class CurveStage:
    """A task with its curves, on which runs are played."""

    experience: Experience
    task: CurveTask
    settings: CurveSettings

    @classmethod
    def of(cls, experience: Experience, task: str, settings: CurveSettings) -> "CurveStage":
        """Read the curves of a task."""
        return cls(experience, curve_task(experience, task, settings.costs.unit), settings)

    def play(self, entrant: Entrant, prior: Prior, run: RunPlan) -> CurveRun:
        """Play one run."""
        task = self.task
        if entrant.step_model is not None:
            return play_on_curves(
                partial(
                    self._make_step_tuner, entrant.step_model, seed_on_task(run.seed, task.name)
                ),
                task,
                self.settings.costs,
                entrant.name,
                run.seed,
            )
        target = Target(
            self.experience.space,
            tuple(metric.name for metric in self.experience.metrics),
            task.configs,
            self.experience.meta_features.get(task.name, {}),
        )
        start = None
        if run.start is not None:
            wanted = self.experience.configs.take(list(run.start))
            start = wanted.take(wanted.isin(task.configs).nonzero()[0])
        make = partial(
            Optimizer,
            target,
            entrant.method,
            prior,
            seed=seed_on_task(run.seed, task.name),
            start=start,
            policy=make_policy(entrant.policy, self.settings.step_range(task)),
        )
        return play_on_curves(make, task, self.settings.costs, entrant.name, run.seed)

    def _make_step_tuner(self, model: str, seed: int) -> StepTuner:
        """Return a tuner that decides at the multiples of the first step of stopping policies."""
        levels = self.task.levels(self.settings.step_range(self.task).first)
        return StepTuner(self.task.configs, levels, STEP_MODELS[model](seed), seed=seed)
