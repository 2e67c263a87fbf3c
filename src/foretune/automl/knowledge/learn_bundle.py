"""Folders of knowledge from experience: priors and portfolios, learnt within a time."""

import math
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from foretune._base.progress import SILENT, Progress
from foretune.automl.knowledge.bundle import Bundle, SpaceLessons
from foretune.automl.knowledge.learning_processes import LearningJob, learn_apart
from foretune.experience import Experience
from foretune.methods.zero_shot.build import Recipe, build
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.methods.zero_shot.table import LEAST_SHARE
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.search.prior_cache import taught_by
from foretune.tables.identity import identity

KEPT_METHODS = ("auto", "gcp-prior")
"""Methods whose priors are shipped, and refreshed where nothing else is asked for."""
PORTFOLIO_LENGTH = 20
UP_TO_DATE = "up to date"
OVERTAKEN = "not kept: its datasets were forgotten, or learnt from anew, meanwhile"
PORTFOLIO = "portfolio"


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """What is learnt about one space."""

    name: str
    """Of the space."""
    methods: tuple[str, ...] = KEPT_METHODS
    seconds: float = math.inf
    seed: int = 0
    site: ExecutorChoice = HERE
    """Where it is learnt."""
    jobs: int = 1
    """How many priors at the same time."""


@dataclass(frozen=True, slots=True)
class LearningReport:
    """One thing that was learnt, or not."""

    what: str
    """`portfolio`, or the name of a method."""
    metric: str
    seconds: float = 0.0
    note: str = ""
    """Empty where it is new; else why it is not."""


def learn_bundle(
    views: Mapping[str, Experience],
    plan: LearningPlan,
    bundle: Bundle,
    *,
    ships: Experience | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
) -> tuple[Bundle, list[LearningReport]]:
    """Bring what `bundle` knows about a space up to its experience, and save it.

    What was learnt from the same experience before, by the same seed and release, stays as it
    is. Portfolios come first, for they take no time; each prior is kept as soon as it is learnt.
    Others may change the folder meanwhile: what they add stays, and what they forget does not come
    back.

    views: the experience by each metric, all in one space. bundle: opened before that was read.
    ships: what the folder keeps of it, so that it can stand alone; nothing if None.
    """
    try:
        return _learnt(views, plan, bundle, ships, about or {}, progress)
    except _OvertakenError:
        lost = product((PORTFOLIO, *plan.methods), views)
        now = Bundle.open(bundle.folder)
        return now, [LearningReport(what, metric, note=OVERTAKEN) for what, metric in lost]


class _OvertakenError(Exception):
    """The folder no longer has a place for what is being learnt."""


def _learnt(
    views: Mapping[str, Experience],
    plan: LearningPlan,
    bundle: Bundle,
    ships: Experience | None,
    about: Mapping[str, Any],
    progress: Progress,
) -> tuple[Bundle, list[LearningReport]]:
    contents = {metric: taught_by(view, plan.seed) for metric, view in views.items()}
    done: list[LearningReport] = []

    def begun(now: Bundle) -> Bundle:
        if now.has_forgotten(plan.name, since=bundle):
            raise _OvertakenError
        learnt = _describe_lessons(views, contents, plan, now, ships, about)
        for metric, view in views.items():
            learnt, made = _with_portfolio(learnt, plan, now, metric, view, contents[metric])
            done.append(made)
        return now.with_space(plan.name, learnt)

    # All at once, for some of its files are new: whatever ends the learning leaves it whole.
    now = bundle.change(begun)
    learnt = now.spaces[plan.name]
    progress.start(f"learning {plan.name}", len(plan.methods) * len(views))
    try:
        with closing(_priors(learnt, plan, views, contents)) as priors:
            for made, prior in priors:
                if prior:
                    content = contents[made.metric]
                    add = partial(_with_prior, plan, bundle, learnt, made, prior, content)
                    now = bundle.change(add)
                done.append(made)
                progress.step(note=f"{made.what}, {made.metric}")
    finally:
        progress.stop()
    return now, done


def portfolio_of(experience: Experience, k: int, *, source: str) -> Portfolio:
    """The first k configurations to try, by experience of one metric."""
    # Ranks chose better than errors relative to the best on datasets left out (decision 013).
    recipe = Recipe(k=k, normalisation="rank")
    return build(comparable(experience), recipe).portfolio(recipe, source)


def comparable(experience: Experience) -> Experience:
    """The tasks that have tried most of what most tasks have tried; all where there are none.

    A search tries configurations of its own, few of which any other task has: it says nothing
    about the others.
    """
    tried = np.zeros((len(experience.tasks), len(experience.configs)), dtype=bool)
    tried[experience.task_index, experience.config_index] = True
    counts = tried.sum(axis=0)
    common = tried[:, counts >= LEAST_SHARE * counts.max()]
    tasks = np.flatnonzero(common.mean(axis=1) >= LEAST_SHARE)
    return experience.only(experience.tasks[task] for task in tasks) if len(tasks) else experience


def _describe_lessons(
    views: Mapping[str, Experience],
    contents: Mapping[str, str],
    plan: LearningPlan,
    bundle: Bundle,
    ships: Experience | None,
    about: Mapping[str, Any],
) -> SpaceLessons:
    """What is known without learning; what was learnt before, if it holds for the same space."""
    largest = max(views.values(), key=len)
    space = largest.space
    before = bundle.spaces.get(plan.name)
    file = f"{plan.name}.space.json"
    definition = bundle.keep(file, partial(_write, content=f"{space.to_json()}\n".encode()))
    whole = None if ships is None else bundle.keep(f"{plan.name}.parquet", ships.save)
    kept = before if before is not None and before.space == space.fingerprint else None
    datasets = {contents[metric]: _identities(view) for metric, view in views.items()}
    return SpaceLessons(
        space=space.fingerprint,
        tasks=len(largest.tasks),
        evaluations=len(largest),
        metrics=tuple(views),
        definition=definition,
        experience=whole,
        priors={} if kept is None else kept.priors,
        portfolios={} if kept is None else kept.portfolios,
        datasets={**({} if kept is None else kept.datasets_in_use), **datasets},
        about={
            "date": datetime.now(UTC).date().isoformat(),
            "foretune": version("foretune"),
            **about,
        },
    )


def _identities(view: Experience) -> tuple[str, ...]:
    return tuple(sorted({identity(task) for task in view.tasks}))


def _with_portfolio(
    learnt: SpaceLessons,
    plan: LearningPlan,
    bundle: Bundle,
    metric: str,
    view: Experience,
    content: str,
) -> tuple[SpaceLessons, LearningReport]:
    before = learnt.portfolios.get(metric)
    if before is not None and before.content == content:
        return learnt, LearningReport(PORTFOLIO, metric, note=UP_TO_DATE)
    source = f"{len(view.tasks)} datasets, {plan.name}, {metric}"
    found = portfolio_of(view, PORTFOLIO_LENGTH, source=source)
    kept = bundle.keep(f"{plan.name}.portfolio.{metric}.json", found.save, content=content)
    return replace(learnt, portfolios={**learnt.portfolios, metric: kept}), LearningReport(
        PORTFOLIO, metric
    )


def _with_prior(
    plan: LearningPlan,
    since: Bundle,
    learnt: SpaceLessons,
    made: LearningReport,
    prior: bytes,
    content: str,
    now: Bundle,
) -> Bundle:
    """The folder as it is now with one prior more, if it still knows the space from before."""
    known = now.spaces.get(plan.name)
    if now.has_forgotten(plan.name, since=since) or known is None or known.space != learnt.space:
        raise _OvertakenError
    file = f"{plan.name}.{made.what}.{made.metric}.safetensors"
    kept = now.keep(file, partial(_write, content=prior), content=content)
    of_method = {**known.priors.get(made.what, {}), made.metric: kept}
    more = replace(
        known,
        priors={**known.priors, made.what: of_method},
        datasets={**known.datasets, content: learnt.datasets[content]},
    )
    return now.with_space(plan.name, more)


def _priors(
    learnt: SpaceLessons,
    plan: LearningPlan,
    views: Mapping[str, Experience],
    contents: Mapping[str, str],
) -> Generator[tuple[LearningReport, bytes], None, None]:
    """Each prior that is up to date, then each that has to be learnt, as it is done, as a file.

    Empty where it is up to date, or could not be learnt.
    """
    lessons = []
    for method, metric in product(plan.methods, views):
        before = learnt.priors.get(method, {}).get(metric)
        if before is not None and before.content == contents[metric]:
            yield LearningReport(method, metric, note=UP_TO_DATE), b""
        else:
            lessons.append(LearningJob(metric, method, plan.seed))
    for ended in learn_apart(views, lessons, site=plan.site, jobs=plan.jobs, seconds=plan.seconds):
        method, metric = ended.lesson.method, ended.lesson.view
        yield LearningReport(method, metric, ended.seconds, ended.failure), ended.prior


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
