"""The report of a fit: what the page needs, gathered from what the job did."""

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from foretune.arrays import Floats
from foretune.automl.fit import Fit, Searched
from foretune.automl.models.scores import SCORERS, of_the_model
from foretune.automl.models.worth import Worth
from foretune.automl.search import ranked
from foretune.automl.tables.columns import counted_kinds
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task
from foretune.contracts import Observations, Target
from foretune.experience import Direction, Metric
from foretune.report.curves import expected_best
from foretune.report.embedding import flattened
from foretune.report.story import ColumnLoss, MapPoint, Source, Story, StoryTrial, steps_of
from foretune.search.registry import METHODS
from foretune.space import Encoded, Space

STEPS = ("imputer", "encoder", "scaler", "reducer", "estimator")
"""The stages in the order in which data flows through them."""
FEWEST_TO_EXTRAPOLATE = 8
"""Trials below which a guess at random search would be worth nothing."""
GUESSED = 1000
MAPPED = 200
PACKAGES = ("foretune", "scikit-learn", "lightgbm", "xgboost", "catboost", "numpy")


@dataclass(frozen=True, slots=True)
class Words:
    """What the caller knows about the run beside its result."""

    title: str
    when: str = ""
    command: str = ""
    assumptions: Sequence[str] = ()
    test_score: float | None = None
    without_columns: float | None = None
    """What a guess scores that knows no column."""
    columns: Sequence[Worth] = ()
    """What columns are worth to the best pipeline, the most first."""
    next_steps: Sequence[tuple[str, str]] = ()


def story(found: Searched, table: Table, words: Words) -> Story:
    """The story of a fit, or of a search of which no model could be made."""
    plan, knowledge = found.plan, found.knowledge
    conclusion = found.conclusion if isinstance(found, Fit) else None
    best = conclusion.best if conclusion else next(iter(ranked(found.trials, plan)), None)
    members = conclusion.members if conclusion else ()
    remarks = [conclusion.remark] if conclusion and conclusion.remark else []
    sources = () if knowledge is None else knowledge.sources
    return Story(
        title=words.title,
        space=plan.space,
        metrics=[SCORERS[name].metric for name in plan.protocol.metrics],
        trials=[
            StoryTrial(
                t.number,
                t.config,
                t.status,
                of_the_model(t.values, plan.shares),
                t.seconds,
                t.reason,
                t.chosen_by,
            )
            for t in found.trials
        ],
        when=words.when,
        command=words.command,
        facts=facts(table),
        assumptions=[*words.assumptions, *plan.notes, *remarks],
        best=best.number if best else None,
        stands_in=conclusion is not None and conclusion.stands_in,
        choice=plan.shipped.choice,
        pipeline=steps_of(plan.space, best.config, STEPS) if best else (),
        test_score=words.test_score,
        ensemble=[(m.weight, m.trial.number) for m in members] if len(members) > 1 else (),
        without_model=conclusion is None,
        blended=conclusion.blended if conclusion else None,
        without_columns=words.without_columns,
        columns=[ColumnLoss(each.column, each.lost, each.is_sure) for each in words.columns],
        transferred=[Source(s.kind, s.tasks, s.evaluations) for s in sources],
        advice=advice(found),
        expected_random=_expected_random(found),
        embedding=_map(found),
        timings=found.timings,
        versions=_versions(),
        next_steps=words.next_steps,
    )


def facts(table: Table) -> list[tuple[str, str]]:
    """What a reader wants to know about the data first."""
    kinds = Counter(column.kind for column in table.schema.columns)
    missing = float(table.schema.gaps(table.x).mean()) if table.x.size else 0.0
    about = [
        ("rows", f"{len(table):,}"),
        ("columns", f"{kinds.total()} ({counted_kinds(kinds)})"),
        ("missing values", f"{missing:.1%}"),
        ("task", str(table.task)),
    ]
    if table.task is Task.CLASSIFICATION:
        about.append(("classes", str(len(table.classes))))
    return about


def advice(found: Searched) -> list[str]:
    """What the method did and why, a sentence each."""
    chosen = METHODS[found.wishes.method]
    said = [f"{chosen.name}: {chosen.summary}."]
    if found.knowledge is None:
        said.append("It started from nothing, because it was not given any experience.")
    else:
        said += [f"{note}." for note in found.knowledge.notes]
    by = [trial.chosen_by for trial in found.trials]
    opened = by.count("start")
    if opened:
        said.append(f"{_opening(opened)}; the model chose the other {len(by) - opened}.")
    return [*said, found.relied_on] if found.relied_on else said


def _opening(trials: int) -> str:
    if trials == 1:
        return "The first trial was a configuration that suited past datasets"
    return (
        f"The first {trials} trials were configurations that suited past datasets and complement "
        "each other"
    )


def _expected_random(found: Searched) -> Sequence[float] | None:
    """The best that random search is expected to find, by a Gaussian process of the trials."""
    good = ranked(found.trials, found.plan)
    if len(good) < FEWEST_TO_EXTRAPOLATE:
        return None
    space, metric = found.plan.space, found.plan.metric
    configs = space.encode([trial.config for trial in good])
    losses = np.array([[metric.sign * trial.values[metric.name]] for trial in good])
    values = _guessed(space, configs, losses, seed=found.wishes.seed)
    return list(
        expected_best(_in_range(metric, metric.sign * values), len(found.trials), metric.direction)
    )


def _guessed(space: Space, configs: Encoded, losses: Floats, *, seed: int) -> Floats:
    """(GUESSED,): losses of random configurations, drawn from what the trials let expect."""
    gp = METHODS["gp"]
    seen = Observations(configs, losses, np.zeros(len(losses), dtype=bool))
    posterior = gp.learn(None, seed=seed).surrogate(Target(space)).condition(seen, seed=seed)
    belief = posterior.predict(space.sample(GUESSED, seed=seed))
    noise = np.random.default_rng(seed).standard_normal(GUESSED)
    centre, spread = losses.mean(), losses.std() or 1.0
    guessed: Floats = centre + spread * (belief.mean + belief.std * noise)
    # What the process makes up beyond the best that was seen is no evidence for random search.
    cut: Floats = np.maximum(guessed, losses.min())
    return cut


def _in_range(metric: Metric, values: Floats) -> Floats:
    if metric.direction is Direction.MIN:
        return np.maximum(values, 0.0)
    return np.minimum(values, 1.0)


def _map(found: Searched) -> list[MapPoint] | None:
    space, metric = found.plan.space, found.plan.metric
    done = ranked(found.trials, found.plan)
    choice = found.plan.shipped.choice
    drawn = space.sample(MAPPED, seed=found.wishes.seed)
    tried = space.encode([trial.config for trial in done])
    flat = flattened(np.concatenate([drawn.x, tried.x]), seed=found.wishes.seed)
    known: list[tuple[float | None, int | None]] = [(None, None)] * len(drawn)
    known += [(trial.values[metric.name], trial.number) for trial in done]
    configs = [*drawn.dicts(), *(trial.config for trial in done)]
    return [
        MapPoint(float(x), float(y), str(config[choice]), value, number)
        for (x, y), config, (value, number) in zip(flat, configs, known, strict=True)
    ]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
