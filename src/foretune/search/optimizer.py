"""Ask and tell: one optimiser for all methods, spaces and recorded pools.

`ask` changes nothing that was learnt. Its answer depends on the seed, the told trials and the
pending ones only. Therefore a study can be rebuilt from its trials, and goes on as if it had never
stopped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from foretune._base.progress import Progress, report_every_second
from foretune.errors import ExhaustedError, MethodError, UsageError
from foretune.experience import Experience, Status, status_of
from foretune.methods.contracts import (
    Observations,
    Prior,
    Target,
    check_encoding,
)
from foretune.methods.stopping.model_steps import ModelSteps
from foretune.methods.stopping.policy import StepDecision, StoppingPolicy
from foretune.numerics.objectives import pareto_front
from foretune.search.arguments import (
    all_losses_told,
    check_meta_features,
    check_parts,
    load_experience,
    outcomes_of,
    resolve_space,
    suggestions_of,
)
from foretune.search.candidates import Pool
from foretune.search.config_choice import ConfigChooser, TrialsSoFar
from foretune.search.method_entry import Method, StepsBy
from foretune.search.model_policy import ModelPolicy
from foretune.search.prior_cache import default_progress, prior_of
from foretune.search.racing import Racing
from foretune.search.registry import method as registered
from foretune.search.suggestions import Suggestion, Told
from foretune.search.trials import Pending, ToldTrials
from foretune.space import Encoded


class Optimizer:
    """Suggests configurations for one target task.

    Arguments:
        target: the task: its space, its objectives, and its pool if it is a recorded table.
        method: an entry of the registry.
        prior: what the method has learnt; `method.learn` or `method.load` returns it.
        seed: decides all randomness.
        start: configurations to try before anything else, in order. They replace the opening of
            the prior and a design of a fixed number of trials. Default: the method's own start.
        policy: decides which trials go on, from their reports. Default: all go on.

    `Optimizer.of` makes one in a single call.

    Example:
        >>> optimizer = Optimizer(Target(space), method("gp"), method("gp").learn(None, seed=0))
        >>> suggestion = optimizer.ask()[0]
        >>> optimizer.tell([Told((loss_of(suggestion.config),), id=suggestion.id)])
    """

    def __init__(
        self,
        target: Target,
        method: Method,
        prior: Prior,
        *,
        seed: int = 0,
        start: Encoded | None = None,
        policy: StoppingPolicy | None = None,
    ) -> None:
        self.target = target
        self.method = method
        self.seed = seed
        check_parts(method)
        check_meta_features(method, target)
        if start is not None:
            check_encoding(start, target.space, "start")
        self._chooser = ConfigChooser(target, method, prior, seed=seed, start=start)
        self._trials = ToldTrials(target.space, len(target.objectives))
        self._told = self._trials.observations()
        self._pending = Pending(target.space)
        self.use_policy(policy or StoppingPolicy())

    @classmethod
    def of(  # noqa: PLR0913 - one argument a choice of the user
        cls,
        space: Any = None,
        experience: Experience | str | Path | None = None,
        *,
        method: str | Method = "auto",
        objectives: tuple[str, ...] | None = None,
        pool: Encoded | None = None,
        meta_features: Mapping[str, float] | None = None,
        policy: StoppingPolicy | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "Optimizer":
        """Make an optimiser whose method has learnt from the experience, if one is given.

        The user's cache keeps what the methods of the registry learn, so each learns only once from
        the same experience. With more than a hundred past tasks learning takes minutes, and `auto`
        makes its first suggestions before it learns. It learns when a later suggestion needs it, or
        when `finish_learning` is called.

        Arguments:
            space: what may be tried, as `Space.of` takes it. Default: the experience's space.
            experience: past tasks, or the path of their file. If the space has changed since, a
                warning says which part of them is used; see `Experience.in_space`.
            method: the name of an entry of the registry.
            objectives: the names of the losses that are told for each trial. With experience these
                are metrics of it (default: the first). Tell a value that should grow with a minus
                sign.
            pool: all configurations that can be chosen, if they are a recorded list.
            meta_features: numbers that describe the task, by name.
            policy: decides which trials go on, from their reports, such as
                `make_policy("asha", StepRange(1, 50))`.
            seed: decides all randomness, that of learning too.
            progress: receives how far learning is. Default: a bar on a terminal, else lines in the
                logger `foretune`.

        Example:
            >>> optimizer = Optimizer.of({"lr": (1e-4, 1e-1, "log")}, "runs.parquet")
            >>> suggestion = optimizer.ask()[0]
            >>> optimizer.tell([Told(loss_of(suggestion.config), id=suggestion.id)])
        """
        chosen = method if isinstance(method, Method) else registered(method)
        shown = default_progress() if progress is None else progress
        with report_every_second(shown, "reading past tasks", mostly_quick=True):
            given = load_experience(experience)
        space, past = resolve_space(space, given)
        if objectives is None:
            objectives = ("loss",) if past is None else (past.metrics[0].name,)
        target = Target(space, objectives, pool, meta_features or {})
        known = None if past is None else past.with_metrics(target.objectives)
        prior = prior_of(chosen, known, seed=seed, progress=shown)
        return cls(target, chosen, prior, seed=seed, policy=policy)

    def finish_learning(self) -> None:
        """Learn now what the model needs, instead of when the first suggestion needs it.

        With many past tasks the first suggestions are made before everything is learnt. Call this
        while the first trials run.
        """
        self._chooser.finish_learning()

    @property
    def must_learn(self) -> bool:
        """Whether the next suggestion waits until everything is learnt, which may take minutes."""
        return self._chooser.must_learn(self._trials_so_far())

    @property
    def told(self) -> Observations:
        """All trials told so far, in order; the losses of failed ones are NaN."""
        return self._told

    @property
    def pending(self) -> Mapping[int, dict[str, Any]]:
        """The suggestions that were made and not told yet, by id."""
        return self._pending.dicts()

    @property
    def best(self) -> Told:
        """The told trial with the lowest loss, the first of equals: its `config` and `losses`."""
        if len(self.target.objectives) > 1:
            raise UsageError(
                "only a search with one objective has a best trial, but this one has "
                f"{len(self.target.objectives)}: choose among the trials of `front`",
                rule="best-of-one-objective",
                field="objectives",
                value=self.target.objectives,
            )
        front = self.front
        if not front:
            raise UsageError(
                "the best trial must have succeeded, but none of the "
                f"{len(self._told)} told so far has: tell others first",
                rule="no-success",
                field="told",
                value=len(self._told),
            )
        return front[0]

    @property
    def front(self) -> list[Told]:
        """The told trials that no other trial beats in all objectives, in the order they were told.

        With one objective these are the trials with the lowest loss.
        """
        rows = np.flatnonzero(pareto_front(self._told.losses)).tolist()
        configs = self._told.configs.take(rows).dicts()
        losses = self._told.losses[rows].tolist()
        return [Told(tuple(of), config=config) for of, config in zip(losses, configs, strict=True)]

    def ask(
        self, n: int = 1, *, among: Encoded | None = None, may_resume: bool = True
    ) -> list[Suggestion]:
        """Suggest `n` different configurations that were neither told nor are pending.

        If there are fewer than `n`, an error is raised and nothing becomes pending.

        among: choose only from these, for example if a part of the configuration is decided.
        may_resume: whether a suggestion may be a paused trial that goes on.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise UsageError(
                f"ask(n) needs a whole number n >= 1, but got n={n!r}: ask for at least one "
                "suggestion",
                rule="number-of-suggestions",
                field="n",
                value=n,
            )
        if among is not None:
            check_encoding(among, self.target.space, "among")
        chosen_among = None if among is None else Pool(among)
        suggestions: list[Suggestion] = []
        try:
            # Tiny numbers may become 0 here, even if the caller makes NumPy raise then.
            with np.errstate(under="ignore"):
                for _ in range(n):
                    suggestions.append(self._ask_one(chosen_among, may_resume=may_resume))
        except BaseException as error:
            for suggestion in reversed(suggestions):
                self._take_back(suggestion)
            if isinstance(error, ExhaustedError) and suggestions:
                raise ExhaustedError(
                    f"ask(n) needs n untried configurations, but got n={n} and only "
                    f"{len(suggestions)} could be found: ask for {len(suggestions)}",
                    rule="enough-untried-configs",
                    field="n",
                    value=n,
                ) from error
            raise
        return suggestions

    def tell(self, outcomes: Iterable[Told]) -> None:
        """Take in outcomes of suggestions (by id) or of configurations tried elsewhere.

        A suggestion may also be told by its configuration. It is no longer pending then.
        """
        outcomes = outcomes_of(outcomes)
        configs = self._pending.configs_of(outcomes)
        losses = all_losses_told(outcomes, self.target.objectives)
        if not outcomes:
            return
        self._racing.end({o.id: status_of(o.status) for o in outcomes if o.id is not None})
        self._pending.settle(outcomes, configs)
        self._trials.add(configs, losses)
        self._told = self._trials.observations()

    def tell_step(self, id_: int, step: float, losses: tuple[float, ...] | float) -> StepDecision:
        """Take in what a running trial reported at a step, and decide whether it goes on.

        `ask` may suggest a paused trial again, under its id and with `resumed_from`. Tell a stopped
        trial as any other, with `Status.STOPPED` and its last losses.

        Example:
            >>> decided = optimizer.tell_step(suggestion.id, epoch, loss)
            >>> if decided.decision is Decision.STOP:
            ...     optimizer.tell([Told(loss, id=suggestion.id, status=Status.STOPPED)])
        """
        return self._racing.report(id_, step, losses)

    def resume(self) -> Suggestion | None:
        """Suggest the paused trial that goes on now, if there is one."""
        resumed = self._racing.resume()
        if resumed is None:
            return None
        config = self._pending.config(resumed)
        policy, reason = self._racing.policy, "resumed"
        if isinstance(policy, ModelPolicy):
            reason = f"resumed: {policy.explain(resumed)}"
        return Suggestion(resumed, config, reason, None, self._racing.last_step(resumed))

    def should_stop(self, id_: int) -> bool:
        """Return whether a trial must end now because the policy has paused or stopped it."""
        return self._racing.should_stop(id_)

    def hopeless(self) -> set[int]:
        """Return the paused trials that will never be resumed: their checkpoints can be deleted."""
        return self._racing.hopeless()

    @property
    def racing(self) -> Racing:
        """The race of the trials, for loops that fill it again from a study."""
        return self._racing

    def use_policy(self, policy: StoppingPolicy) -> None:
        """Let this policy decide which trials go on. Call it before the first trial."""
        if isinstance(policy, ModelSteps):
            self._check_reads_curves()
            policy = ModelPolicy(policy, self._chooser, lambda: self._racing, self._all_trials)
        self._racing = Racing(policy, len(self.target.objectives))

    def explain(self) -> str:
        """Return a sentence about what the method relied on; it may be empty."""
        with np.errstate(under="ignore"):
            return self._chooser.explain(self._told)

    def assume_pending(self, suggestions: Iterable[Suggestion]) -> None:
        """Take in suggestions that another process, or this one before a restart, still runs.

        An id stands for one configuration. Each optimiser counts from 0, so give the suggestions of
        other optimisers new ids, such as negative ones.
        """
        taken = suggestions_of(suggestions)
        self._pending.assume(taken)
        waiting = self._pending.encoded()
        self._racing.start_all({each.id: waiting[each.id] for each in taken})

    def strike_start(self, configs: Iterable[Mapping[str, Any]]) -> None:
        """Take configurations off the start list because others were tried instead.

        Told ones stay on the list, so that no design counts them as its own.
        """
        unwanted = self.target.space.encode([dict(config) for config in configs])
        if len(unwanted):
            untold = np.flatnonzero(~unwanted.isin(self._told.configs))
            self._chooser.strike_start(unwanted.take(untold))

    def withdraw(self, ids: Iterable[int]) -> None:
        """Forget pending suggestions that nobody will tell about."""
        unwanted = list(ids)
        self._pending.withdraw(unwanted)
        self._racing.forget(sorted(unwanted, reverse=True))

    def _take_back(self, suggestion: Suggestion) -> None:
        """Undo a suggestion that was not returned."""
        if suggestion.resumed_from is None:
            self.withdraw([suggestion.id])
        else:
            self._racing.move(suggestion.id, Status.PAUSED)

    def _ask_one(self, among: Pool | None, *, may_resume: bool) -> Suggestion:
        resumed = self.resume() if among is None and may_resume else None
        if resumed is not None:
            return resumed
        choice, reason = self._chooser.choose(self._trials_so_far(), among)
        id_ = self._pending.add(choice.config)
        self._racing.start(id_, choice.config)
        return Suggestion(id_, choice.config.dicts()[0], reason, pool_index=choice.pool_index)

    def _check_reads_curves(self) -> None:
        if self.method.steps is StepsBy.POLICY:
            raise MethodError(
                f"'model' lets the method decide which trials go on, but '{self.method.name}' has "
                "no model of curves: choose the method 'auto' or 'freeze-thaw', or another policy",
                rule="no-model-of-curves",
                field="policy",
                value=self.method.name,
            )

    def _trials_so_far(self) -> TrialsSoFar:
        """Return all trials, with their curves if a model of curves decides."""
        policy, race = self._racing.policy, self._racing.race
        steps = policy.steps(race) if isinstance(policy, ModelPolicy) else None
        if steps is None or not isinstance(policy, ModelPolicy):
            return self._all_trials()
        curves = self._racing.seen_curves(policy.goals(race, set()), steps)
        return replace(self._all_trials(), curves=curves)

    def _all_trials(self) -> TrialsSoFar:
        reported = self._racing.reported_losses(self._pending.ids)
        return TrialsSoFar(self._told, tuple(self._pending.configs), reported)
