"""Folders of knowledge from experience: priors and portfolios, learnt within a time."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from foretune.automl.bundle import Bundle, Kept, Learnt
from foretune.automl.lessons import Lesson, learn_apart
from foretune.automl.measures import content_of
from foretune.experience import Experience
from foretune.methods.zero_shot.build import Recipe, build
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.methods.zero_shot.table import LEAST_SHARE
from foretune.progress import SILENT, Progress
from foretune.run.sites import HERE, Site

KEPT_METHODS = ("auto", "gcp-prior")
"""Methods whose priors are shipped, and refreshed where nothing else is asked for."""
PORTFOLIO_LENGTH = 20
UP_TO_DATE = "up to date"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is learnt about one space."""

    name: str
    """Of the space."""
    methods: tuple[str, ...] = KEPT_METHODS
    seconds: float = math.inf
    seed: int = 0
    site: Site = HERE
    """Where it is learnt."""
    jobs: int = 1
    """How many priors at the same time."""


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was learnt, or not."""

    what: str
    """`portfolio`, or the name of a method."""
    metric: str
    seconds: float = 0.0
    note: str = ""
    """Empty where it is new; else why it is not."""


def learn_bundle(
    views: Mapping[str, Experience],
    plan: Plan,
    bundle: Bundle,
    *,
    ships: Experience | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
) -> tuple[Bundle, list[Done]]:
    """Bring what `bundle` knows about a space up to its experience, and save it.

    What was learnt from the same experience before stays as it is. Portfolios come first, for
    they take no time; each prior is kept as soon as it is learnt.

    views: the experience by each metric, all in one space. ships: what the folder keeps of it, so
    that it can stand alone; nothing if None.
    """
    learnt = _described(views, plan, bundle, ships, about or {})
    done = []
    for metric, view in views.items():
        learnt, made = _with_portfolio(learnt, plan, bundle, metric, view)
        done.append(made)
    # Now, for some of its files are new: whatever ends the learning leaves a folder that is whole.
    bundle.with_space(plan.name, learnt).save()
    progress.start(f"learning {plan.name}", len(plan.methods) * len(views))
    try:
        for made, kept in _priors(learnt, plan, bundle, views):
            if kept is not None:
                of_method = {**learnt.priors.get(made.what, {}), made.metric: kept}
                learnt = replace(learnt, priors={**learnt.priors, made.what: of_method})
                bundle.with_space(plan.name, learnt).save()
            done.append(made)
            progress.step(note=f"{made.what}, {made.metric}")
    finally:
        progress.stop()
    bundle = bundle.with_space(plan.name, learnt)
    bundle.save()
    return bundle, done


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


def _described(
    views: Mapping[str, Experience],
    plan: Plan,
    bundle: Bundle,
    ships: Experience | None,
    about: Mapping[str, Any],
) -> Learnt:
    """What is known without learning; what was learnt before, if it holds for the same space."""
    largest = max(views.values(), key=len)
    space = largest.space
    before = bundle.spaces.get(plan.name)
    file = f"{plan.name}.space.json"
    definition = bundle.keep(file, partial(_write, content=f"{space.to_json()}\n".encode()))
    whole = None if ships is None else bundle.keep(f"{plan.name}.parquet", ships.save)
    holds = before is not None and before.space == space.fingerprint
    return Learnt(
        space=space.fingerprint,
        tasks=len(largest.tasks),
        evaluations=len(largest),
        metrics=tuple(views),
        definition=definition,
        experience=whole,
        priors=before.priors if before is not None and holds else {},
        portfolios=before.portfolios if before is not None and holds else {},
        about={
            "date": datetime.now(UTC).date().isoformat(),
            "foretune": version("foretune"),
            **about,
        },
    )


def _with_portfolio(
    learnt: Learnt, plan: Plan, bundle: Bundle, metric: str, view: Experience
) -> tuple[Learnt, Done]:
    content = content_of(view)
    before = learnt.portfolios.get(metric)
    if before is not None and before.content == content:
        return learnt, Done("portfolio", metric, note=UP_TO_DATE)
    source = f"{len(view.tasks)} datasets, {plan.name}, {metric}"
    found = portfolio_of(view, PORTFOLIO_LENGTH, source=source)
    kept = bundle.keep(f"{plan.name}.portfolio.{metric}.json", found.save, content=content)
    return replace(learnt, portfolios={**learnt.portfolios, metric: kept}), Done(
        "portfolio", metric
    )


def _priors(
    learnt: Learnt, plan: Plan, bundle: Bundle, views: Mapping[str, Experience]
) -> Iterator[tuple[Done, Kept | None]]:
    """Each prior that is up to date, then each that has to be learnt, as it is done."""
    contents = {metric: content_of(view) for metric, view in views.items()}
    lessons = []
    for method, metric in product(plan.methods, views):
        before = learnt.priors.get(method, {}).get(metric)
        if before is not None and before.content == contents[metric]:
            yield Done(method, metric, note=UP_TO_DATE), before
        else:
            lessons.append(Lesson(metric, method, plan.seed))
    for ended in learn_apart(views, lessons, site=plan.site, jobs=plan.jobs, seconds=plan.seconds):
        method, metric = ended.lesson.method, ended.lesson.view
        kept = None
        if not ended.failure:
            file = f"{plan.name}.{method}.{metric}.safetensors"
            write = partial(_write, content=ended.prior)
            kept = bundle.keep(file, write, content=contents[metric])
        yield Done(method, metric, ended.seconds, ended.failure), kept


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
