"""Asynchronous successive halving (Li et al. 2020, "A System for Massively Parallel
Hyperparameter Tuning", algorithm 2) and successive halving in brackets, of which Hyperband
(Li et al. 2018) is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from foretune.experience.trial import Status
from foretune.methods.stopping.policy import (
    CONTINUE,
    Decision,
    StepDecision,
    StepRange,
    StoppingPolicy,
)
from foretune.methods.stopping.race import Race


def best_of(losses: dict[int, float], n: int) -> set[int]:
    """Return the `n` trials with the lowest losses; if equal, those that started first.

    A trial whose loss is not finite is never among them.
    """
    finite = [trial for trial, loss in losses.items() if math.isfinite(loss)]
    return set(sorted(finite, key=lambda trial: losses[trial])[: max(n, 0)])


def _level_before(levels: tuple[float, ...], step: float) -> int | None:
    """Return the index of the highest level that a step has reached."""
    reached = [index for index, level in enumerate(levels) if level <= step]
    return reached[-1] if reached else None


class LevelPolicy(StoppingPolicy):
    """A policy that compares trials only at the levels of a range of steps."""

    steps: StepRange

    def next_decision(self, race: Race, trial: int) -> float:
        """Return the next level that the trial reaches."""
        last = race[trial].last_step
        return next((level for level in self.steps.levels if level > last), math.inf)

    def _arrived_at(self, race: Race, trial: int) -> int | None:
        """Return the level that the last report has reached for the first time."""
        steps = race[trial].steps
        level = _level_before(self.steps.levels, steps[-1])
        before = _level_before(self.steps.levels, steps[-2]) if len(steps) > 1 else None
        return None if level == before else level


@dataclass(frozen=True)
class AsyncHalving(LevelPolicy):
    """ASHA: a trial that reaches a level waits there until it is among the best 1/eta of it.

    An idle worker continues the best such trial of the highest level, or starts a new one.
    """

    steps: StepRange
    pauses: bool = True
    """False: a trial stops where it would wait, unless it is the best of its level so far."""

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Pause at a level, unless the trial is the one that would be continued first."""
        level = self._arrived_at(race, trial)
        if level is None:
            return CONTINUE
        if trial in self._promotable(race, level):
            return StepDecision(Decision.CONTINUE, self._reason(race, trial, level, "among"))
        decision = Decision.PAUSE if self.pauses else Decision.STOP
        return StepDecision(decision, self._reason(race, trial, level, "not among"))

    def without_pauses(self) -> AsyncHalving:
        """Return the policy that stops a trial where it would wait."""
        return replace(self, pauses=False)

    def resume(self, race: Race) -> int | None:
        """The paused trial of the highest level that is among the best 1/eta of its level."""
        for level in reversed(range(len(self.steps.levels))):
            paused = [
                trial
                for trial in self._promotable(race, level)
                if race[trial].status is Status.PAUSED
                and _level_before(self.steps.levels, race[trial].last_step) == level
            ]
            if paused:
                losses = race.losses_at(self.steps.levels[level])
                return min(paused, key=lambda trial: (losses[trial], race[trial].number))
        return None

    def _promotable(self, race: Race, level: int) -> set[int]:
        losses = race.losses_at(self.steps.levels[level])
        return best_of(losses, self._places(len(losses)))

    def _places(self, reached: int) -> int:
        """Return how many of the trials that have reached a level may go on."""
        return max(int(reached / self.steps.eta), 0 if self.pauses else 1)

    def _reason(self, race: Race, trial: int, level: int, where: str) -> str:
        step = self.steps.levels[level]
        losses = race.losses_at(step)
        place = 1 + sum(loss < losses[trial] for loss in losses.values())
        kept = self._places(len(losses))
        return f"place {place} of {len(losses)} at step {step:g}, {where} the best {kept}"


@dataclass(frozen=True, slots=True)
class Bracket:
    """A group of trials that compete with each other."""

    first_level: int
    """The level at which they are compared for the first time."""
    size: int


@dataclass(frozen=True)
class Halving(LevelPolicy):
    """Successive halving in brackets that come one after the other, again and again.

    The trials of a bracket wait at each level until all of the bracket that are still in the race
    have reached it; then the best 1/eta go on and the others stop. An idle worker continues a
    trial that may go on, or starts the next one of the current bracket or of the next bracket.
    """

    steps: StepRange
    brackets: tuple[Bracket, ...]
    pauses: bool = True
    """False: a trial stops unless it is among the best of its kind of bracket so far."""
    trials: int | None = None
    """How many trials the search has. The last bracket is complete with them."""

    def decide(self, race: Race, trial: int) -> StepDecision:
        """Pause at each level of the trial's bracket."""
        level = self._arrived_at(race, trial)
        bracket = self._bracket_of(race[trial].number)[0]
        if level is None or level < bracket.first_level:
            return CONTINUE
        step = self.steps.levels[level]
        if not self.pauses:
            return self._decide_at_once(race, trial, level)
        if trial in self._survivors(race, trial, level):
            return StepDecision(
                Decision.CONTINUE, f"among the best of its bracket at step {step:g}"
            )
        return StepDecision(Decision.PAUSE, f"waits at step {step:g} for the others of its bracket")

    def without_pauses(self) -> Halving:
        """Return the policy that never waits for the rest of a bracket."""
        return replace(self, pauses=False)

    def _decide_at_once(self, race: Race, trial: int, level: int) -> StepDecision:
        """Compare a trial with all others of brackets of its kind that have reached its level."""
        kind = self._bracket_of(race[trial].number)[0]
        rivals = {each for each, entry in race if self._bracket_of(entry.number)[0] == kind}
        step = self.steps.levels[level]
        losses = race.losses_at(step, rivals)
        kept = max(int(len(losses) / self.steps.eta), 1)
        goes_on = trial in best_of(losses, kept)
        where = "among" if goes_on else "not among"
        reason = f"{where} the best {kept} of {len(losses)} of its kind of bracket at step {step:g}"
        return StepDecision(Decision.CONTINUE if goes_on else Decision.STOP, reason)

    def resume(self, race: Race) -> int | None:
        """Return a paused trial among the best of its bracket, from the highest level."""
        found = []
        for trial, entry in race:
            if entry.status is not Status.PAUSED:
                continue
            level = _level_before(self.steps.levels, entry.last_step)
            if level is not None and trial in self._survivors(race, trial, level):
                found.append((-level, entry.number, trial))
        return min(found)[2] if found else None

    def hopeless(self, race: Race) -> set[int]:
        """Return the paused trials whose bracket went on without them."""
        found = set()
        for trial, entry in race:
            level = _level_before(self.steps.levels, entry.last_step)
            if entry.status is Status.PAUSED and level is not None:
                survivors = self._survivors_if_known(race, trial, level)
                if survivors is not None and trial not in survivors:
                    found.add(trial)
        return found

    def _survivors(self, race: Race, trial: int, level: int) -> set[int]:
        return self._survivors_if_known(race, trial, level) or set()

    def _survivors_if_known(self, race: Race, trial: int, level: int) -> set[int] | None:
        """Return the trials of a bracket that go on from a level; None until all reached it."""
        bracket, numbers = self._bracket_of(race[trial].number)
        group = {each for each, entry in race if entry.number in numbers}
        if len(group) < len(numbers):
            return None
        for reached in range(bracket.first_level, level + 1):
            losses = race.losses_at(self.steps.levels[reached], group)
            waiting = {each for each in group - losses.keys() if not race[each].status.is_final}
            if waiting:
                return None
            size = len(numbers) // self.steps.eta ** (reached + 1 - bracket.first_level)
            group = best_of(losses, max(int(size), 1))
        return group

    def _bracket_of(self, number: int) -> tuple[Bracket, range]:
        """Return the bracket of the `number`-th started trial, and the numbers in it."""
        turn = number // self._trials_a_turn
        begin = turn * self._trials_a_turn
        for bracket in self.brackets:
            numbers = range(begin, begin + bracket.size)
            if number in numbers:
                return bracket, self._that_exist(numbers)
            begin = numbers.stop
        raise AssertionError("a turn holds all its brackets")

    def _that_exist(self, numbers: range) -> range:
        """Return the numbers without those that the search does not reach."""
        if self.trials is None:
            return numbers
        return range(numbers.start, max(numbers.start, min(numbers.stop, self.trials)))

    @cached_property
    def _trials_a_turn(self) -> int:
        return sum(bracket.size for bracket in self.brackets)


def successive_halving(steps: StepRange, trials: int | None = None) -> Halving:
    """Return brackets of one kind, in which one trial reaches the last step."""
    rungs = len(steps.levels)
    return Halving(steps, (Bracket(0, max(1, math.floor(steps.eta**rungs + 1e-9))),), trials=trials)


def hyperband(steps: StepRange, trials: int | None = None) -> Halving:
    """Return Hyperband's brackets, from the one that stops most to the one that stops none.

    A bracket whose trials are compared s times has ceil((s_max + 1) / (s + 1) * eta^s) of them.
    """
    most = len(steps.levels)
    brackets = []
    for times in reversed(range(most + 1)):
        size = math.ceil((most + 1) / (times + 1) * steps.eta**times - 1e-9)
        brackets.append(Bracket(most - times, size))
    return Halving(steps, tuple(brackets), trials=trials)
