"""Runs the search of a fit: loads the knowledge that it starts from, then runs its trials."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from foretune._base.progress import SILENT, Progress
from foretune.automl.equivalent_configs import PipelineEquivalence
from foretune.automl.family_choice import FamilyContest, FamilyOptimizer
from foretune.automl.knowledge.default_configs import default_config
from foretune.automl.knowledge.family_opening import families_of, open_families
from foretune.automl.knowledge.fit_journal import FitDescription
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.knowledge.relevant_experience import is_beyond
from foretune.automl.metrics import SCORERS
from foretune.automl.plan import DEFAULT_METHOD, FitOptions, FitPlan, is_wide
from foretune.automl.wide_tables import opening_of_wide_table
from foretune.methods.auto.learn import PORTFOLIO_TRIALS
from foretune.methods.contracts import Prior, Target
from foretune.run.budget import Budget
from foretune.run.executor import Executor
from foretune.run.stopping import StoppedBeforeAnyTrial
from foretune.run.study import Study
from foretune.run.tuning_loop import tune
from foretune.run.watch import SILENT_WATCH, Watch
from foretune.search.early_opening import EarlyPrior
from foretune.search.optimizer import Optimizer
from foretune.search.registry import method
from foretune.space import Encoded
from foretune.tables import description

TrialExecutor: TypeAlias = Executor[dict[str, Any], dict[str, float]]
"""Runs trials in this process, in worker processes, or on a Ray cluster."""
Ending: TypeAlias = Literal["trials", "time", "exhausted", "stopped"]
"""The reason why a search ended; `stopped` is Ctrl-C."""


@dataclass(frozen=True, slots=True)
class StartKnowledge:
    """The knowledge with which a search begins."""

    prior: Prior
    start: Encoded | None
    """The first configurations; None if the method chooses them itself."""
    meta_features: Mapping[str, float]
    """The meta-features of the table."""
    families: tuple[str, ...] = ()
    """The families of estimators that compete for the time; empty if the method alone chooses."""


def describe_fit(plan: FitPlan, task: str) -> FitDescription:
    """Describe the table of a plan as later fits may find it in the memory."""
    metrics = tuple(SCORERS[name].metric for name in plan.protocol.metrics)
    return FitDescription(plan.shipped.name, plan.space, metrics, task, description(plan.table))


def load_knowledge(plan: FitPlan, task: str, *, own: bool) -> FitKnowledge | None:
    """Load the knowledge from past datasets; return None if there are none.

    task: the task of the table itself, whose records are left out. own: whether the user's own fits
    teach the search.
    """
    found = FitKnowledge.for_space(
        plan.shipped.name, metric=plan.metric.name, own=own, without=task, space=plan.space
    )
    return found if found.sources else None


def load_start_knowledge(
    options: FitOptions,
    knowledge: FitKnowledge | None,
    meta_features: Mapping[str, float],
    *,
    progress: Progress = SILENT,
) -> StartKnowledge:
    """Load the prior of the chosen method and its first configurations, for this table."""
    chosen = method(options.method)
    if knowledge is None:
        prior = chosen.learn(None, seed=options.seed, progress=progress)
        return StartKnowledge(prior, None, meta_features)
    start = opening_configs(options, knowledge, meta_features)
    load = partial(
        knowledge.prior, chosen, seed=options.seed, progress=progress, begins=start is None
    )
    # The first trials run while the prior is loaded, if they do not depend on it.
    prior = load() if start is None else EarlyPrior(start, load)
    return StartKnowledge(prior, start, meta_features)


def let_families_compete(
    known: StartKnowledge, plan: FitPlan, options: FitOptions, knowledge: FitKnowledge | None
) -> StartKnowledge:
    """Let the default method begin with one configuration of each family of estimators."""
    if options.method != DEFAULT_METHOD:
        return known
    first = open_families(plan, knowledge, known.meta_features)
    if first is None:
        return known
    start = first
    if known.start is not None and known.start.space == first.space:
        start = Encoded.concat([first, known.start])
        start = start.take(start.first_occurrences())
    return replace(known, start=start, families=families_of(plan))


def opening_configs(
    options: FitOptions, knowledge: FitKnowledge, meta_features: Mapping[str, float]
) -> Encoded | None:
    """Return the default method's first configurations, from similar datasets, cheapest first.

    Default pipelines follow if few past datasets were as large as this one. None if the method
    begins in its own way, or nothing is known.
    """
    if options.method != DEFAULT_METHOD or knowledge.experience is None:
        return None
    found = knowledge.suggest(PORTFOLIO_TRIALS, meta_features)
    first = found.configs.take(np.argsort(found.seconds, kind="stable"))
    other = default_config(first.space) if is_beyond(knowledge.experience, meta_features) else None
    return first if other is None else Encoded.concat([first, other])


def run_trials(
    plan: FitPlan,
    options: FitOptions,
    known: StartKnowledge,
    study: Study,
    executor: TrialExecutor,
    budget: Budget,
    *,
    watch: Watch = SILENT_WATCH,
) -> tuple[Ending, str]:
    """Run trials until the budget is used up or Ctrl-C is pressed; they are in the study.

    Returns why the search ended, and a sentence on the sources of the method. Ctrl-C before any
    trial has ended is passed on, because there is nothing to make a model of.
    """
    target = Target(
        plan.space,
        (plan.metric.name,),
        meta_features=known.meta_features,
        effect=PipelineEquivalence.on(plan.table),
    )
    chosen, start = method(options.method), known.start
    is_hurried = options.seconds is not None and options.method == DEFAULT_METHOD
    if is_hurried and is_wide(plan.table.x.shape[1]):
        start = opening_of_wide_table(plan.space, start)
    seed = options.seed
    if known.families and start is not None:
        optimizer: Optimizer = FamilyOptimizer(
            FamilyContest(plan, known.families, study.trials, options.seconds is not None),
            target,
            chosen,
            known.prior,
            seed=seed,
            start=start,
        )
    else:
        optimizer = Optimizer(target, chosen, known.prior, seed=seed, start=start)
    try:
        ending: Ending = tune(study, optimizer, executor, budget, watch=watch)
    except KeyboardInterrupt:
        if not any(trial.is_over for trial in study.trials()):
            raise StoppedBeforeAnyTrial from None
        ending = "stopped"
    return ending, optimizer.explain()
