"""Learns priors and portfolios from experience within a time, and saves them in a folder."""

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from foretune._base.progress import SILENT, Progress
from foretune.automl.knowledge.bundle import Bundle, SpaceLessons
from foretune.automl.knowledge.learning_processes import (
    LearningJob,
    LearningResult,
    learn_in_processes,
)
from foretune.automl.knowledge.relevant_experience import select_comparable
from foretune.experience import Experience
from foretune.methods.zero_shot.build import Recipe, build
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.search.prior_cache import taught_by
from foretune.tables import task_identity

KEPT_METHODS = ("auto", "gcp-prior")
"""The methods whose priors ship, and which `foretune learn` learns by default."""
PORTFOLIO_LENGTH = 20
UP_TO_DATE = "up to date"
OVERTAKEN = "not kept: its datasets were forgotten, or learnt again meanwhile"
PORTFOLIO = "portfolio"
LearnPriors: TypeAlias = Callable[..., Iterator[LearningResult]]
"""Learns priors as `learn_in_processes` does."""


@dataclass(frozen=True, slots=True)
class LearningPlan:
    """The priors to learn about one space."""

    name: str
    """The name of the space."""
    methods: tuple[str, ...] = KEPT_METHODS
    seconds: float = math.inf
    seed: int = 0
    site: ExecutorChoice = HERE
    """The kind of executor that learns."""
    jobs: int = 1
    """The number of priors that are learnt at the same time."""


@dataclass(frozen=True, slots=True)
class LearningReport:
    """The result for one prior or portfolio."""

    what: str
    """`portfolio`, or the name of a method."""
    metric: str
    seconds: float = 0.0
    note: str = ""
    """The reason why nothing was learnt; empty if something was."""


def learn_bundle(
    views: Mapping[str, Experience],
    plan: LearningPlan,
    bundle: Bundle,
    *,
    ships: Experience | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
    learn: LearnPriors = learn_in_processes,
) -> tuple[Bundle, list[LearningReport]]:
    """Learn the priors and portfolios that the folder lacks from experience, and save them.

    Priors that were learnt from the same experience, with the same seed and release, stay.
    Portfolios come first because they take no time. Each prior is saved as soon as it is learnt.
    Other programs may change the folder at the same time: what they add stays, and what they
    remove does not come back.

    views: the experience by each metric, all in one space. bundle: opened before the experience
    was read. ships: the experience that the folder itself holds; None for none. learn: learns the
    priors.
    """
    try:
        return _update_bundle(views, plan, bundle, ships, about or {}, progress, learn)
    except _OvertakenError:
        names = product((PORTFOLIO, *plan.methods), views)
        now = Bundle.open(bundle.folder)
        return now, [LearningReport(what, metric, note=OVERTAKEN) for what, metric in names]


class _OvertakenError(Exception):
    """The folder no longer has a place for the result of this learning."""


def _update_bundle(
    views: Mapping[str, Experience],
    plan: LearningPlan,
    bundle: Bundle,
    ships: Experience | None,
    about: Mapping[str, Any],
    progress: Progress,
    learn: LearnPriors,
) -> tuple[Bundle, list[LearningReport]]:
    contents = {metric: taught_by(view, plan.seed) for metric, view in views.items()}
    done: list[LearningReport] = []

    def add_portfolios(now: Bundle) -> Bundle:
        if now.has_forgotten(plan.name, since=bundle):
            raise _OvertakenError
        learnt = _describe_lessons(views, contents, plan, now, ships, about)
        for metric, view in views.items():
            learnt, made = _with_portfolio(learnt, plan, now, metric, view, contents[metric])
            done.append(made)
        return now.with_space(plan.name, learnt)

    # All new files are one change, so the folder stays whole if the learning is interrupted.
    now = bundle.change(add_portfolios)
    learnt = now.spaces[plan.name]
    progress.start(f"learning {plan.name}", len(plan.methods) * len(views))
    try:
        with closing(_learn_priors(learnt, plan, views, contents, learn)) as priors:
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


def build_portfolio(experience: Experience, k: int, *, source: str) -> Portfolio:
    """Build the portfolio of k configurations from experience of one metric."""
    # Ranks chose better than relative errors on datasets that were left out (decision 013).
    recipe = Recipe(k=k, normalisation="rank")
    return build(select_comparable(experience), recipe).portfolio(recipe, source)


def _describe_lessons(
    views: Mapping[str, Experience],
    contents: Mapping[str, str],
    plan: LearningPlan,
    bundle: Bundle,
    ships: Experience | None,
    about: Mapping[str, Any],
) -> SpaceLessons:
    """Describe the space and its experience; keep earlier priors if they are for this space."""
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
    return tuple(sorted({task_identity(task) for task in view.tasks}))


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
    found = build_portfolio(view, PORTFOLIO_LENGTH, source=source)
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
    """Return the folder with one more prior, if it still has the same space."""
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


def _learn_priors(
    learnt: SpaceLessons,
    plan: LearningPlan,
    views: Mapping[str, Experience],
    contents: Mapping[str, str],
    learn: LearnPriors,
) -> Generator[tuple[LearningReport, bytes], None, None]:
    """Yield the report of each prior, and the bytes of its file as soon as it is learnt.

    The bytes are empty if the prior is up to date or could not be learnt.
    """
    jobs = []
    for method, metric in product(plan.methods, views):
        before = learnt.priors.get(method, {}).get(metric)
        if before is not None and before.content == contents[metric]:
            yield LearningReport(method, metric, note=UP_TO_DATE), b""
        else:
            jobs.append(LearningJob(metric, method, plan.seed))
    for ended in learn(views, jobs, site=plan.site, workers=plan.jobs, seconds=plan.seconds):
        method, metric = ended.job.method, ended.job.view
        yield LearningReport(method, metric, ended.seconds, ended.failure), ended.prior


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
