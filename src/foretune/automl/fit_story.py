"""Collects the content of the report of a fit."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from foretune.automl.column_importance import ColumnImportance
from foretune.automl.fit_result import FitResult, SearchResult
from foretune.automl.metrics import SCORERS, of_the_model
from foretune.experience import Direction
from foretune.experience.trial import best_first
from foretune.report.story import ColumnLoss, MapPoint, Story, StorySource, steps_of
from foretune.run.study_story import draw_map, expect_random_search, opening, versions
from foretune.search.registry import method
from foretune.tables import Table, Task, count_kinds

STEPS = ("imputer", "encoder", "scaler", "reducer", "estimator")
"""The stages in the order in which data flows through them."""
PACKAGES = ("foretune", "scikit-learn", "lightgbm", "xgboost", "catboost", "numpy")


@dataclass(frozen=True, slots=True)
class ReportTexts:
    """The texts of a report that are not in the result of the fit."""

    title: str
    when: str = ""
    command: str = ""
    assumptions: Sequence[str] = ()
    test_score: float | None = None
    without_columns: float | None = None
    """The score of a guess without any column."""
    columns: Sequence[ColumnImportance] = ()
    """The importance of columns to the best pipeline, the highest first."""
    next_steps: Sequence[tuple[str, str]] = ()


def story(found: SearchResult, table: Table, words: ReportTexts, *, with_map: bool = True) -> Story:
    """Return the story of a fit, or of a search without a model.

    with_map: whether to draw the map of the configurations, which takes seconds.
    """
    plan, knowledge = found.plan, found.knowledge
    final = found.final if isinstance(found, FitResult) else None
    best = final.best if final else next(iter(best_first(found.trials, plan.metric)), None)
    members = final.members if final else ()
    remarks = [final.remark] if final and final.remark else []
    sources = () if knowledge is None else knowledge.sources
    return Story(
        title=words.title,
        space=plan.space,
        metrics=[SCORERS[name].metric for name in plan.protocol.metrics],
        trials=[
            replace(trial, values=of_the_model(trial.values, plan.shares)) for trial in found.trials
        ],
        when=words.when,
        command=words.command,
        facts=facts(table),
        assumptions=[*words.assumptions, *plan.notes, *remarks],
        best=best.number if best else None,
        stands_in=final is not None and final.stands_in,
        choice=plan.shipped.choice,
        pipeline=steps_of(plan.space, best.config, STEPS) if best else (),
        test_score=words.test_score,
        ensemble=[(m.weight, m.trial.number) for m in members] if len(members) > 1 else (),
        without_model=final is None,
        blended=final.blended if final else None,
        without_columns=words.without_columns,
        columns=[ColumnLoss(each.column, each.lost, each.is_sure) for each in words.columns],
        transferred=[StorySource(s.kind, s.tasks, s.evaluations) for s in sources],
        advice=advice(found),
        expected_random=_expect_random(found),
        embedding=_map(found) if with_map else None,
        timings=found.timings,
        versions=versions(PACKAGES),
        next_steps=words.next_steps,
    )


def facts(table: Table) -> list[tuple[str, str]]:
    """Return the facts about a table that a reader wants to know first."""
    kinds = Counter(column.kind for column in table.schema.columns)
    missing = float(table.schema.gaps(table.x).mean()) if table.x.size else 0.0
    about = [
        ("rows", f"{len(table):,}"),
        ("columns", f"{kinds.total()} ({count_kinds(kinds)})"),
        ("missing values", f"{missing:.1%}"),
        ("task", str(table.task)),
    ]
    if table.task is Task.CLASSIFICATION:
        about.append(("classes", str(len(table.classes))))
    return about


def advice(found: SearchResult) -> list[str]:
    """Return sentences about the decisions of the method and their reasons."""
    chosen = method(found.options.method)
    said = [f"{chosen.name}: {chosen.summary}."]
    if found.knowledge is None:
        said.append("It started from nothing, because it was not given any experience.")
    else:
        said += [f"{note}." for note in found.knowledge.notes]
    by = [trial.chosen_by for trial in found.trials]
    opened = opening(by, None if found.knowledge is None else "datasets")
    return [*said, *filter(None, (opened, found.relied_on))]


def _map(found: SearchResult) -> list[MapPoint] | None:
    """Return the map of tried and untried configurations; None if no trial succeeded."""
    plan = found.plan
    good = best_first(found.trials, plan.metric)
    if not good:
        return None
    return draw_map(plan.space, plan.metric, good, plan.shipped.choice, seed=found.options.seed)


def _expect_random(found: SearchResult) -> list[float] | None:
    """Return the best values that random search is expected to find."""
    plan = found.plan
    # No score that is minimised is below 0, and none that is maximised above 1.
    bounds = (0.0, math.inf) if plan.metric.direction is Direction.MIN else (-math.inf, 1.0)
    return expect_random_search(
        plan.space, plan.metric, found.trials, seed=found.options.seed, within=bounds
    )
