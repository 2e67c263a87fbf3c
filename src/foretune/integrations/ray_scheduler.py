"""A scheduler for Ray Tune: Foretune's stopping policies."""

import math
from collections import Counter
from typing import Any

from foretune.errors import UsageError, explain_missing_extras
from foretune.experience import Status
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.methods.stopping.policies import make_policy
from foretune.methods.stopping.policy import Decision, StepRange, StoppingPolicy
from foretune.methods.stopping.race import Race

with explain_missing_extras("the scheduler for Ray Tune"):
    from ray.tune.schedulers import TrialScheduler

SIGNS = {"min": 1.0, "max": -1.0}


class ForetuneScheduler(TrialScheduler):  # type: ignore[misc]
    """Stops or pauses poor trials of Ray Tune with a stopping policy of Foretune.

    Arguments:
        policy: a name of `foretune tune --stop` (asha, halving, hyperband, median, none), or a
            `StoppingPolicy`.
        first_step: the first step at which a trial may be stopped.
        last_step: a trial that reaches this step is complete, and ends.
        eta: one of `eta` trials goes on from each level to the next.
        time_attr: the name of the steps in what trials report.
        metric, mode: as for Tune. Default: those of its TuneConfig.
        pause: True if trials keep checkpoints, so that a paused trial can go on. False: a trial
            stops where it would be paused, unless it is among the best so far.

    Example:
        >>> tuner = tune.Tuner(train, param_space=space, tune_config=tune.TuneConfig(
        ...     scheduler=ForetuneScheduler("asha", last_step=100), search_alg=ForetuneSearcher(),
        ...     metric="loss", mode="min", num_samples=50))
    """

    # Tune may hand over several reports at once, and then a pause would come too late.
    _supports_buffered_results = False

    def __init__(
        self,
        policy: str | StoppingPolicy = "asha",
        *,
        first_step: float = 1,
        last_step: float,
        eta: float = 3,
        time_attr: str = "training_iteration",
        metric: str | None = None,
        mode: str | None = None,
        pause: bool = False,
    ) -> None:
        super().__init__()
        if isinstance(policy, str):
            policy = make_policy(policy, StepRange(first_step, last_step, eta))
        if isinstance(policy, ModelSteps):
            raise UsageError(
                "a scheduler of Ray Tune sees reports, but 'model' needs the space as well: choose "
                "'asha', or tune with  foretune tune --executor ray --method freeze-thaw",
                rule="model-on-tune",
                field="policy",
                value="model",
            )
        self._policy = policy if pause else policy.without_pauses()
        self._last_step, self._time_attr = last_step, time_attr
        self._metric: str | None = metric
        self._mode: str | None = mode
        self._race = Race()
        self._numbers: dict[str, int] = {}
        """{Tune's id of a trial: its number in the race}"""
        self._stopped = set[int]()
        """Trials that the policy has stopped."""
        self._chosen = set[int]()
        """Paused trials that Tune was asked to resume."""
        self._runs_to_end = set[int]()
        """Trials about which no more is decided."""

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take over what Tune was told; False if something was given twice."""
        del spec
        if (self._metric and metric) or (self._mode and mode):
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode
        if not self._metric or self._mode not in SIGNS:
            raise UsageError(
                "a scheduler needs the name of its metric and a mode, 'min' or 'max', but got "
                f"metric={self._metric!r} and mode={self._mode!r}: give both to tune.TuneConfig or "
                "to the scheduler",
                rule="no-metric-and-mode",
                value=(self._metric, self._mode),
            )
        return True

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        """Let a trial take part in the race. One of a restored run has its last report."""
        del tune_controller
        number = self._numbers[trial.trial_id] = len(self._numbers)
        self._race.start(number)
        self._add_report(number, trial.last_result or {})
        status = {"PAUSED": Status.PAUSED, "TERMINATED": Status.DONE, "ERROR": Status.FAILED}
        self._race.move(number, status.get(trial.status, Status.RUNNING))

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        """Take in a report, and decide whether the trial goes on."""
        del tune_controller
        number = self._numbers[trial.trial_id]
        if not self._add_report(number, result):
            return str(TrialScheduler.CONTINUE)
        if self._race[number].last_step >= self._last_step:
            return str(TrialScheduler.STOP)
        if number in self._runs_to_end:
            return str(TrialScheduler.CONTINUE)
        decision = self._policy.decide(self._race, number).decision
        if decision is Decision.PAUSE:
            self._race.move(number, Status.PAUSED)
        elif decision is Decision.STOP:
            self._stopped.add(number)
        return str(getattr(TrialScheduler, decision.name))

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        """Record the end of a trial. One that the policy has stopped has not come to its end."""
        del tune_controller, result
        number = self._numbers[trial.trial_id]
        stopped = number in self._stopped
        self._race.move(number, Status.STOPPED if stopped else Status.DONE)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        """Record the failure of a trial."""
        del tune_controller
        self._race.move(self._numbers[trial.trial_id], Status.FAILED)

    def on_trial_remove(self, tune_controller: Any, trial: Any) -> None:
        """Record that a paused trial was stopped, or that one never ran."""
        del tune_controller
        self._race.move(self._numbers[trial.trial_id], Status.STOPPED)

    def choose_trial_to_run(self, tune_controller: Any) -> Any:
        """Return the paused trial that goes on, else a new one; stop those that never go on."""
        trials = {self._numbers[each.trial_id]: each for each in tune_controller.get_trials()}
        for number in [each for each in self._chosen if trials[each].status != "PAUSED"]:
            self._race.move(number, Status.RUNNING)
            self._chosen.remove(number)
        for number in self._policy.hopeless(self._race):
            self._stop_if_paused(tune_controller, trials[number])
        waiting = [each for each in trials.values() if each.status == "PENDING"]
        is_over = not waiting and not any(each.status == "RUNNING" for each in trials.values())
        resumed = self._policy.resume(self._race)
        if resumed is None and is_over:
            resumed = self._farthest(trials)
        if resumed is not None and trials[resumed].status == "PAUSED":
            self._chosen.add(resumed)
            return trials[resumed]
        if is_over:
            for trial in trials.values():
                self._stop_if_paused(tune_controller, trial)
        return waiting[0] if waiting else None

    def debug_string(self) -> str:
        """Return a line about the trials for Tune's display."""
        counts = Counter(entry.status for _, entry in self._race)
        known = ", ".join(f"{n} {status.name.lower()}" for status, n in sorted(counts.items()))
        return f"Foretune: {known or 'no trials'}"

    def _add_report(self, number: int, result: dict[str, Any]) -> bool:
        """Add a report to the race; False if it lacks a step or a value, or comes again."""
        step, value = result.get(self._time_attr), result.get(self._metric or "")
        entry = self._race[number]
        if step is None or value is None or (entry.steps and step <= entry.last_step):
            return False
        loss = SIGNS[self._mode or "min"] * float(value)
        self._race.report(number, float(step), loss if math.isfinite(loss) else math.inf)
        return True

    def _farthest(self, trials: dict[int, Any]) -> int | None:
        """Return the paused trial that came farthest, to run to its end; None if one is complete.

        Without it, a run with few trials would have no complete one.
        """
        if any(entry.status is Status.DONE for _, entry in self._race):
            return None
        paused = [number for number, trial in trials.items() if trial.status == "PAUSED"]
        if not paused:
            return None
        race = self._race
        farthest = min(paused, key=lambda each: (-race[each].last_step, race[each].losses[-1:]))
        self._runs_to_end.add(farthest)
        return farthest

    def _stop_if_paused(self, tune_controller: Any, trial: Any) -> None:
        if trial.status == "PAUSED":
            tune_controller.stop_trial(trial)
