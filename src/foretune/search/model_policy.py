"""The stopping policy that asks a method's model of curves which trial deserves the next steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretune.errors import ExhaustedError
from foretune.experience import Status
from foretune.methods.curve_contracts import CurvePosterior
from foretune.methods.stopping.model_steps import (
    GROWTH,
    ModelSteps,
    arrives_at_level,
    next_level,
)
from foretune.methods.stopping.policy import (
    CONTINUE,
    Decision,
    StepDecision,
    StepRange,
    StoppingPolicy,
)
from foretune.methods.stopping.race import Race
from foretune.search.config_choice import ConfigChooser, TrialsSoFar
from foretune.search.racing import Racing
from foretune.space import Encoded

CERTAINLY_LAST = 1.0 - 1e-9
HOPE = 2.0
"""When all trials have begun, a paused one goes on if it may be the best within this many standard
deviations."""


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The trials that wait, and a new configuration, by what is expected of them."""

    posterior: CurvePosterior
    best: int | None
    """The trial that is expected to improve most; None if a new configuration is."""


class ModelPolicy(StoppingPolicy):
    """Pauses a trial when another one, or a new configuration, is expected to improve more.

    Decisions come after the first step and then each time that the steps of a trial have doubled.
    """

    def __init__(
        self,
        settings: ModelSteps,
        chooser: ConfigChooser,
        racing: Callable[[], Racing],
        trials: Callable[[], TrialsSoFar],
    ) -> None:
        self._settings, self._chooser = settings, chooser
        self._racing, self._trials = racing, trials

    def steps(self, race: Race) -> StepRange | None:
        """Return the steps between which it decides; None while the last one is not known."""
        return self._settings.range_of(race, self._chooser.usual_last_step)

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Let a trial go on if nothing else is expected to improve more."""
        steps, entry = self.steps(race), race[trial]
        if entry.steps and not math.isfinite(entry.losses[-1]):
            return StepDecision(Decision.STOP, f"stopped: it diverged at step {entry.last_step:g}")
        if steps is None or entry.last_step >= steps.last * CERTAINLY_LAST:
            return CONTINUE
        if not arrives_at_level(entry, steps):
            return CONTINUE
        ranking = self._rank(race, steps, {trial})
        expected = self._expectation(race, trial, ranking.posterior)
        if ranking.best == trial:
            return StepDecision(Decision.CONTINUE, f"continued: {expected}")
        if not self._settings.pauses and self._is_promising(race, trial, ranking.posterior):
            return StepDecision(Decision.CONTINUE, f"continued: {expected}")
        decision, word = (
            (Decision.PAUSE, "paused") if self._settings.pauses else (Decision.STOP, "stopped")
        )
        return StepDecision(decision, f"{word} at step {entry.last_step:g}: {expected}")

    def resume(self, race: Race) -> int | None:
        """Return the paused trial that is expected to improve most, unless a new one is."""
        steps = self.steps(race)
        if steps is None or not any(entry.status is Status.PAUSED for _, entry in race):
            return None
        best = self._rank(race, steps, set()).best
        if best is None and self._has_begun_all(race):
            return self._best_hope(race, steps)
        return best

    def without_pauses(self) -> "ModelPolicy":
        """Return the policy that stops a trial where it would pause, but the better half."""
        settings = self._settings.without_pauses()
        return ModelPolicy(settings, self._chooser, self._racing, self._trials)

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the next step at which it compares the trial with others."""
        steps, last = self.steps(race), race[trial].last_step
        return last if steps is None else next_level(last, steps)

    def explain(self, trial: int) -> str:
        """Return what is expected of a trial, in words."""
        race = self._racing().race
        steps = self.steps(race)
        if steps is None:
            return ""
        return self._expectation(race, trial, self._rank(race, steps, {trial}).posterior)

    def goals(self, race: Race, waiting: set[int]) -> dict[int, float]:
        """Return the next step of decision of each trial that runs."""
        steps = self.steps(race)
        if steps is None:
            return {}
        return {
            trial: next_level(entry.last_step, steps)
            for trial, entry in race
            if entry.status is Status.RUNNING and trial not in waiting
        }

    def _rank(self, race: Race, steps: StepRange, waiting: set[int]) -> _Ranking:
        racing = self._racing()
        paused = [trial for trial, entry in race if entry.status is Status.PAUSED]
        waits = sorted(waiting.union(paused))
        curves = racing.seen_curves(self.goals(race, set(waits)), steps)
        assert curves is not None, "a trial that reports is in the race"
        trials = self._trials().with_curves(curves)
        posterior = self._chooser.curve_posterior(trials)
        scores = self._chooser.score(posterior, trials, [racing.config(each) for each in waits])
        found = dict(zip(waits, scores.tolist(), strict=True))
        best = max(waits, key=lambda each: (found[each], -each))
        new = self._score_new(posterior, trials)
        return _Ranking(posterior, best if found[best] >= new else None)

    def _score_new(self, posterior: CurvePosterior, trials: TrialsSoFar) -> float:
        try:
            choice = self._chooser.choose_best(trials)
        except ExhaustedError:
            return -math.inf
        return float(self._chooser.score(posterior, trials, [choice.config])[0])

    def _has_begun_all(self, race: Race) -> bool:
        return self._settings.trials is not None and len(race) >= self._settings.trials

    def _best_hope(self, race: Race, steps: StepRange) -> int | None:
        """Return the paused trial that may end best, if it may be the best of all."""
        paused = [trial for trial, entry in race if entry.status is Status.PAUSED]
        posterior = self._rank(race, steps, set()).posterior
        found = posterior.predict(Encoded.concat([self._racing().config(each) for each in paused]))
        hopes = found.mean - HOPE * found.std
        complete = [each for each, entry in race if entry.status is Status.DONE and entry.steps]
        if complete:
            ends = Encoded.concat([self._racing().config(each) for each in complete])
            if hopes.min() >= posterior.predict(ends).mean.min():
                return None
        return paused[int(np.argmin(hopes))]

    def _is_promising(self, race: Race, trial: int, posterior: CurvePosterior) -> bool:
        """Return whether a trial is among the best half, or the best one, by its expected end.

        A trial that is stopped cannot go on later, so it is compared with all others, as
        asynchronous halving does, and not with a new configuration that may never come.
        """
        rivals = [each for each, entry in race if entry.steps]
        configs = Encoded.concat([self._racing().config(each) for each in rivals])
        ends = posterior.predict(configs).mean
        own = posterior.predict(self._racing().config(trial))
        # One standard deviation of hope: what is hardly known is not given up.
        place = int(np.sum(ends < own.mean[0] - own.std[0]))
        return place < max(int(len(rivals) / GROWTH), 1)

    def _expectation(self, race: Race, trial: int, posterior: CurvePosterior) -> str:
        """Return, for example, "predicted to end at 0.91 ± 0.02, the best so far is 0.89"."""
        prediction = posterior.predict_end(self._racing().config(trial))
        mean, std = float(prediction.mean[0]), float(prediction.std[0])
        reported = [loss for _, entry in race for loss in entry.losses if math.isfinite(loss)]
        sign = self._settings.sign
        text = f"predicted to end at {_number(sign * mean, std)} ± {std:.2g}"
        if not reported:
            return text
        return f"{text}, the best so far is {_number(sign * min(reported), std)}"


def _number(value: float, std: float) -> str:
    """Return a number with two digits beyond the size of its standard deviation."""
    if not (std > 0 and math.isfinite(std) and math.isfinite(value)):
        return f"{value:.4g}"
    decimals = min(max(1 - math.floor(math.log10(std)), 0), 12)
    return f"{value:.{decimals}f}"
