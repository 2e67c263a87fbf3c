"""Which trials a model is made of."""

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest

from foretune._base.arrays import Floats, Ints
from foretune.automl.estimators.fitted_pipeline import Member, refit
from foretune.automl.evaluation import evaluate
from foretune.automl.final_model import member_selection, model_file
from foretune.automl.final_model.build import INTERRUPTED, NONE_SOUND, FinalModel, build_model
from foretune.automl.final_model.fitting import NO_TIME, NOT_SOUND, FitLimits
from foretune.automl.final_model.member_selection import BlendOptions, ChosenMember
from foretune.automl.final_model.model import Model
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.fit_time_model import FitTimeModel
from foretune.automl.out_of_fold import predictions_path, save_predictions
from foretune.automl.plan import FitOptions, FitPlan, make_plan
from foretune.automl.trial_evaluator import InMemoryEvaluator
from foretune.errors import ForetuneError
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.run.executor import Limits
from foretune.tables.row_weights import RowWeights
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.refusals import refuses

from .samples import mixed_table

ESTIMATORS = ("knn", "lda", "svm")


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table(Task.CLASSIFICATION)


@pytest.fixture(scope="module")
def plan(table: Table) -> FitPlan:
    return make_plan(table, FitOptions(only=ESTIMATORS))


@pytest.fixture
def trials(plan: FitPlan, tmp_path) -> list[Trial]:
    """One of each estimator, the best first; their predictions are in the folder.

    The predictions are made up: each errs in its own way, so that the mean of all is better.
    """
    rng = np.random.default_rng(0)
    rows = _held(plan)
    y = plan.table.y[rows].astype(int)
    found = []
    for number, config in enumerate(_one_of_each(plan)):
        certain = np.exp(np.eye(3)[y] + rng.normal(size=(len(y), 3)))
        certain /= certain.sum(axis=1, keepdims=True)
        save_predictions(tmp_path, config, certain)
        values = {"log_loss": _log_loss(certain, y)}
        found.append(Trial(number, config, Status.DONE, values, 1.0))
    return sorted(found, key=lambda trial: trial.values["log_loss"])


def _held(plan: FitPlan) -> Ints:
    return np.concatenate([held for _, held in plan.protocol.splits(plan.table)])


def _log_loss(certain: Floats, y: Ints) -> float:
    return float(-np.log(certain[np.arange(len(y)), y]).mean())


def _one_of_each(plan: FitPlan) -> list[dict[str, object]]:
    drawn = plan.space.sample(40, seed=0).dicts()
    return [next(c for c in drawn if c["estimator"] == each) for each in ESTIMATORS]


def test_a_blend_scores_what_its_weights_say_and_no_worse_than_the_best(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    made = build_model(plan, table, trials, target="class", blending=BlendOptions(3, tmp_path))
    assert len(made.members) > 1
    mean = sum(
        chosen.weight * np.load(predictions_path(tmp_path, chosen.trial.config))
        for chosen in made.members
    )
    y = table.y[_held(plan)].astype(int)
    assert made.blended == pytest.approx(_log_loss(mean, y), abs=1e-5)
    assert made.blended < trials[0].values["log_loss"]


def test_a_blend_is_scored_by_weighed_rows(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    given = np.where(np.arange(len(table)) % 2, 1.9, 0.1)
    heavy = replace(plan, table=replace(plan.table, weighting=RowWeights("w", given)))
    made = build_model(
        heavy, heavy.table, trials, target="class", blending=BlendOptions(3, tmp_path)
    )
    mean = sum(
        chosen.weight * np.load(predictions_path(tmp_path, chosen.trial.config))
        for chosen in made.members
    )
    rows = _held(plan)
    lost = -np.log(mean[np.arange(len(rows)), table.y[rows].astype(int)])
    ends = np.cumsum([len(held) for _, held in plan.protocol.splits(plan.table)])[:-1]
    parts = zip(np.split(lost, ends), np.split(given[rows], ends), strict=True)
    expected = np.mean([np.average(each, weights=weights) for each, weights in parts])
    assert len(made.members) > 1
    assert made.blended == pytest.approx(expected, abs=1e-5)


def test_without_a_wish_for_a_blend_the_best_is_alone(
    plan: FitPlan, table: Table, trials: list[Trial]
) -> None:
    made = build_model(plan, table, trials, target="class")
    assert [chosen.trial for chosen in made.members] == [trials[0]]
    assert (made.blended, made.remark) == (None, "")


def test_no_blend_leaves_out_the_best(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    predictions_path(tmp_path, trials[0].config).unlink()
    made = build_model(plan, table, trials, target="class", blending=BlendOptions(3, tmp_path))
    assert [chosen.trial for chosen in made.members] == [trials[0]]
    assert made.blended is None
    assert "the predictions of the best trial were not kept" in made.remark


def test_predictions_that_are_no_numbers_have_no_part_in_it(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    path = predictions_path(tmp_path, trials[1].config)
    np.save(path, np.full_like(np.load(path), np.inf))
    made = build_model(plan, table, trials, target="class", blending=BlendOptions(3, tmp_path))
    assert trials[1] not in [chosen.trial for chosen in made.members]


@pytest.mark.parametrize("room", [1, 2**30])
def test_large_predictions_limit_the_trials_of_a_blend(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path, room: int
) -> None:
    rows = _held(plan)
    right = np.eye(3)[table.y[rows].astype(int)]
    for trial, certain in ((trials[1], right[:, [1, 2, 0]]), (trials[2], right)):
        save_predictions(tmp_path, trial.config, certain)
    options = BlendOptions(2, tmp_path, room)
    made = build_model(plan, table, trials, target="class", blending=options)
    assert (trials[2] in [chosen.trial for chosen in made.members]) == (room > 1)


@pytest.mark.parametrize(("columns", "size"), [(1, 8), (3, 4)])
def test_predictions_of_a_regression_count_in_double_precision(
    tmp_path: Path, columns: int, size: int
) -> None:
    options = BlendOptions(2, tmp_path, 7 * 100 * columns * size)
    assert member_selection._most_candidates(options, (100, columns)) == 7


@pytest.mark.parametrize(("seconds", "joins"), [(20.0, False), (1.0, True)])
def test_pipelines_too_slow_on_all_rows_do_not_join_the_best(
    plan: FitPlan,
    table: Table,
    trials: list[Trial],
    tmp_path: Path,
    seconds: float,
    joins: bool,
) -> None:
    """Ten times as many rows: a support vector machine takes a hundred times as long."""
    ordered = sorted(trials, key=lambda trial: trial.config["estimator"] == "svm")
    told = [
        replace(trial, values={"log_loss": 0.1 * place}, seconds=seconds)
        for place, trial in enumerate(ordered)
    ]
    many = table.rows(np.arange(10 * len(table)) % len(table))
    made = build_model(plan, many, told, target="class", blending=BlendOptions(3, tmp_path))
    same = build_model(plan, table, told, target="class", blending=BlendOptions(3, tmp_path))

    def estimators(of: object) -> set[object]:
        return {chosen.trial.config["estimator"] for chosen in of.members}

    assert "svm" in estimators(same)
    assert ("svm" in estimators(made)) == joins


@dataclass(frozen=True)
class Unlucky(FitWorkers):
    """Fits all pipelines but the second."""

    asked: list[dict[str, object]] = field(default_factory=list)

    def fit_each(self, configs, table, *, seed, **_):
        self.asked.extend(configs)
        for place, config in enumerate(configs):
            yield place, "no luck" if place == 1 else refit(config, table, seed=seed)


@pytest.mark.parametrize("slow", [True, False])
def test_slow_fits_are_left_to_workers(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path, slow: bool
) -> None:
    workers = Unlucky(2, tmp_path)
    told = [replace(trial, seconds=100.0 if slow else 1.0) for trial in trials]
    made = build_model(
        plan,
        table,
        told,
        target="class",
        blending=BlendOptions(3, tmp_path),
        limits=FitLimits(workers=workers),
    )
    assert len(workers.asked) == (3 if slow else 0)
    assert len(made.members) == len(made.model.members) == (2 if slow else 3)
    assert ("no luck" in made.remark) == slow
    assert made.best is told[0]


@dataclass(frozen=True)
class UnableWorkers(FitWorkers):
    """Fits one pipeline, and then no process starts any more."""

    def fit_each(self, configs, table, *, seed, **_):
        yield 0, refit(configs[0], table, seed=seed)
        raise ForetuneError("a worker process ended while starting")


def test_pipelines_that_no_worker_fits_are_fitted_in_process(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    told = [replace(trial, seconds=100.0) for trial in trials]
    made = build_model(
        plan,
        table,
        told,
        target="class",
        blending=BlendOptions(3, tmp_path),
        limits=FitLimits(workers=UnableWorkers(2, tmp_path)),
    )
    assert (len(made.model.members), made.remark) == (3, "")


@dataclass(frozen=True)
class Late(FitWorkers):
    """Gets the best pipeline ready last, or never."""

    why: BaseException | str | None = None
    """What becomes of it, if anything does."""
    asked: list[dict[str, object]] = field(default_factory=list)
    limits: list[Limits] = field(default_factory=list)

    def fit_each(self, configs, table, *, seed, limits, **_):
        self.limits.append(limits)
        self.asked.extend(configs)
        for place in (*range(1, len(configs)), 0):
            if place or self.why is None or len(self.limits) > 1:
                yield place, refit(configs[place], table, seed=seed)
            elif isinstance(self.why, str):
                yield place, self.why
            else:
                raise self.why


def _slow(plan: FitPlan, trials: list[Trial], *seconds: float) -> list[Trial]:
    """The same, so that they are expected to learn from all rows for so long."""
    pace = FitTimeModel.of(plan, rows=len(plan.table))
    return [
        replace(trial, seconds=each / pace.seconds(replace(trial, seconds=1.0)))
        for trial, each in zip(trials, seconds, strict=True)
    ]


def test_ready_members_are_fitted_once_if_the_best_is_lost(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    told, blending = _slow(plan, trials, 9.0, 9.0, 9.0), BlendOptions(3, tmp_path)
    expected = build_model(plan, table, told[1:], target="class", blending=blending)
    workers = Late(2, tmp_path, why="over its limit of 60 s of CPU time")
    made = build_model(
        plan, table, told, target="class", blending=blending, limits=FitLimits(workers)
    )
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert made.stands_in
    assert made.remark == (
        f"Left out of the model: trial {told[0].number} (over its limit of 60 s of CPU time)."
    )
    assert len(workers.asked) == 3


def test_ctrl_c_leaves_what_is_ready_also_without_the_best(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    told, blending = _slow(plan, trials, 9.0, 9.0, 9.0), BlendOptions(3, tmp_path)
    expected = build_model(plan, table, told[1:], target="class", blending=blending)
    limits = FitLimits(Late(2, tmp_path, why=KeyboardInterrupt()))
    made = build_model(plan, table, told, target="class", blending=blending, limits=limits)
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert (made.interrupted, made.stands_in, made.remark) == (True, True, INTERRUPTED)


@pytest.mark.parametrize(("seconds", "limit"), [(9.0, 60.0), (100.0, 300.0)])
def test_workers_have_limits_by_what_the_trials_took(
    plan: FitPlan,
    table: Table,
    trials: list[Trial],
    tmp_path: Path,
    seconds: float,
    limit: float,
) -> None:
    """Three times the slowest, but a minute; as much more memory as a fold of a trial has rows."""
    workers = Late(2, tmp_path, memory_bytes=1000)
    told = _slow(plan, trials, 5.0, seconds, 5.0)
    build_model(
        plan,
        table,
        told,
        target="class",
        blending=BlendOptions(3, tmp_path),
        limits=FitLimits(workers),
    )
    assert workers.limits[0] == Limits(10.0 * limit, limit, memory_bytes=1250)


def test_many_more_rows_than_trials_had_are_left_to_workers(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    """However quick it may be: a trial says little about the memory that they take."""
    workers = Late(2, tmp_path)
    many = table.rows(np.arange(2 * len(table)) % len(table))
    build_model(plan, many, trials, target="class", limits=FitLimits(workers))
    assert len(workers.asked) == 1


def _until(seconds: float) -> FitLimits:
    return FitLimits(deadline=time.monotonic() + seconds)


def test_a_best_trial_that_would_take_longer_than_is_left_is_passed_over(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    told, blending = _slow(plan, trials, 900.0, 1.0, 1.0), BlendOptions(3, tmp_path)
    expected = build_model(plan, table, told[1:], target="class", blending=blending)
    made = build_model(plan, table, told, target="class", blending=blending, limits=_until(60.0))
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert (made.best, made.stands_in) == (told[1], True)
    assert re.fullmatch(
        rf"Trial {told[0].number} scored best, log_loss [\d.]+, but is expected to learn from all "
        r"rows for 15 min 0 s, and \S+ s were left: give more time, such as 30 min 0 s, for a "
        r"model with it\.",
        made.remark,
    )


def test_if_no_trial_is_quick_the_model_is_the_quickest(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    told, blending = _slow(plan, trials, 900.0, 800.0, 850.0), BlendOptions(3, tmp_path)
    made = build_model(plan, table, told, target="class", blending=blending, limits=_until(60.0))
    assert [each.trial for each in made.members] == [told[1]]


def test_a_trial_of_an_unknown_time_is_not_passed_over(
    plan: FitPlan, table: Table, trials: list[Trial]
) -> None:
    told = _slow(plan, trials, math.nan, 1.0, 1.0)
    assert build_model(plan, table, told, target="class", limits=_until(60.0)).best is told[0]


def test_members_beside_the_best_are_not_awaited_after_the_time(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path: Path
) -> None:
    """The best takes all of it; a second one that is quick would be in time."""
    told, blending = _slow(plan, trials, 10.0, 1.0, 10.0), BlendOptions(3, tmp_path)
    expected = build_model(plan, table, told[:2], target="class", blending=blending)
    clock = [0.0]

    def fit(*given: object, **named: object) -> Member:
        clock[0] = 58.0
        return refit(*given, **named)

    limits = FitLimits(deadline=60.0, fit=fit, now=lambda: clock[0])
    made = build_model(plan, table, told, target="class", blending=blending, limits=limits)
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert made.remark == f"Left out of the model: trial {told[2].number} ({NO_TIME})."


class SureOfOneClass:
    """A pipeline that has gone astray: it is sure of the first class, whatever the row."""

    def predict_proba(self, x: Floats) -> Floats:
        return np.tile([1.0, 0.0, 0.0], (len(x), 1))

    def predict(self, x: Floats) -> Floats:
        return np.zeros(len(x))


@pytest.mark.parametrize(("astray", "best"), [((2,), 0), ((0,), 1), ((0, 1), 2), ((0, 1, 2), 0)])
def test_a_pipeline_that_goes_astray_on_all_rows_is_no_part_of_the_model(
    plan: FitPlan,
    table: Table,
    trials: list[Trial],
    tmp_path: Path,
    astray: tuple[int, ...],
    best: int,
) -> None:
    """Where all do, it is the best all the same: rather such a model than none."""
    configs = [trials[place].config for place in astray]

    def fit(config: dict[str, object], *given: object, **named: object) -> Member:
        made = refit(config, *given, **named)
        return replace(made, pipeline=SureOfOneClass()) if config in configs else made

    limits, blending = FitLimits(fit=fit), BlendOptions(3, tmp_path)
    made = build_model(plan, table, trials, target="class", blending=blending, limits=limits)
    assert made.best is trials[best]
    assert made.stands_in == (best > 0)
    if len(astray) == 3:
        assert (len(made.members), made.remark) == (3, NONE_SOUND)
    else:
        assert all(chosen.trial.config not in configs for chosen in made.members)
        assert made.remark.count(NOT_SOUND) == len(astray)


class Counted:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def start(self, what: str, total: int | None) -> None:
        self.heard.append((what, total))

    def step(self, n: int = 1, note: str = "") -> None:
        self.heard.append(n)

    def stop(self) -> None:
        self.heard.append("stop")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(1.0, "fitting the model"), (598.0, "fitting the model, about 10 min 0 s")],
)
def test_fitting_several_pipelines_shows_how_far_it_is(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path, seconds: float, said: str
) -> None:
    progress = Counted()
    blending, told = BlendOptions(3, tmp_path), _slow(plan, trials, seconds, 1.0, 1.0)
    made = build_model(
        plan, table, told, target="class", blending=blending, limits=FitLimits(progress=progress)
    )
    n = len(made.members)
    assert progress.heard == [(said, n), *[1] * n, "stop"]


def test_a_machine_that_does_not_see_the_folder_scores_trials_all_the_same(
    plan: FitPlan, table: Table, tmp_path
) -> None:
    config = _one_of_each(plan)[0]
    seen = InMemoryEvaluator(table, plan.protocol, tmp_path)(config)
    assert predictions_path(tmp_path, config).exists()
    assert InMemoryEvaluator(table, plan.protocol, tmp_path / "elsewhere")(config) == seen
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("task", list(Task))
def test_the_best_trial_is_part_of_every_blend_and_no_score_is_worse_than_its_own(
    task: Task, tmp_path
) -> None:
    """By metrics whose value on all rows is not the mean over the folds, as trials have it."""
    table = mixed_table(task)
    metric = "r2" if task is Task.REGRESSION else "balanced_accuracy"
    plan = make_plan(table, FitOptions(only=("knn",), metric=metric))
    told = []
    for number, config in enumerate(plan.space.sample(8, seed=1).dicts()):
        score = evaluate(config, plan.table, plan.protocol, keep_predictions=True)
        save_predictions(tmp_path, config, score.predictions)
        told.append(Trial(number, config, Status.DONE, score.values, 1.0))
    made = build_model(plan, table, told, target="y", blending=BlendOptions(3, tmp_path))
    assert made.best in [chosen.trial for chosen in made.members]
    assert made.blended is not None
    assert made.blended >= made.best.values[metric] - 1e-9


def test_numbers_with_a_large_offset_are_kept_whole(tmp_path) -> None:
    predicted = 1.7e9 + np.array([[0.25], [0.5]])
    save_predictions(tmp_path, {"a": 1}, predicted)
    np.testing.assert_array_equal(np.load(predictions_path(tmp_path, {"a": 1})), predicted)


def test_pipelines_that_cannot_learn_from_all_rows_are_named_and_left_out(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    blending = BlendOptions(3, tmp_path)
    whole = build_model(plan, table, trials, target="class", blending=blending)
    lost = whole.members[1].trial
    limits = FitLimits(fit=Unable.to_fit(lost))
    made = build_model(plan, table, trials, target="class", blending=blending, limits=limits)
    assert [chosen.trial for chosen in made.members] == [
        chosen.trial for chosen in whole.members if chosen.trial is not lost
    ]
    assert len(made.model.members) == len(made.members)
    assert f"trial {lost.number} (MemoryError: no room)" in made.remark


def test_without_a_member_the_others_are_weighed_anew(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    blending = BlendOptions(3, tmp_path)
    without = [trials[0], trials[2]]
    expected = build_model(plan, table, without, target="class", blending=blending)
    limits = FitLimits(fit=Unable.to_fit(trials[1]))
    made = build_model(plan, table, trials, target="class", blending=blending, limits=limits)
    assert len(made.members) == 2
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert [m.weight for m in made.model.members] == [each.weight for each in made.members]


class Unable(NamedTuple):
    """Cannot fit these trials, and notes the configurations of all that it begins."""

    lost: Sequence[Trial]
    begun: list[object]

    @classmethod
    def to_fit(cls, *lost: Trial) -> "Unable":
        return cls(lost, [])

    def __call__(self, config: dict[str, object], *given: object, **named: object) -> Member:
        self.begun.append(config)
        if config in [trial.config for trial in self.lost]:
            raise MemoryError("no room")
        return refit(config, *given, **named)


@pytest.mark.parametrize("blended", [True, False])
def test_the_next_best_stands_in_for_the_best_where_that_cannot_be_fitted(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path, blended: bool
) -> None:
    blending = BlendOptions(3, tmp_path) if blended else None
    expected = build_model(plan, table, trials[1:], target="class", blending=blending)
    fit = Unable.to_fit(trials[0])
    made = build_model(
        plan, table, trials, target="class", blending=blending, limits=FitLimits(fit=fit)
    )
    assert made.best is trials[1]
    assert (made.members, made.blended) == (expected.members, expected.blended)
    assert f"trial {trials[0].number} (MemoryError: no room)" in made.remark
    assert len(fit.begun) == 1 + len(made.members)


def test_an_error_with_a_remedy_if_no_trial_can_be_fitted(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    limits, blending = FitLimits(fit=Unable.to_fit(*trials)), BlendOptions(3, tmp_path)
    with refuses("no-trial-can-be-fitted", value=3) as failed:
        build_model(plan, table, trials, target="class", blending=blending, limits=limits)
    assert "(MemoryError: no room)" in str(failed.value)


def test_after_a_few_trials_that_cannot_be_fitted_no_more_are_tried(
    plan: FitPlan, table: Table, trials: list[Trial]
) -> None:
    fit = Unable.to_fit(*trials)
    many = [
        replace(trials[number % len(trials)], number=number, values={"log_loss": 0.1 * number})
        for number in range(8)
    ]
    with refuses("no-trial-can-be-fitted", value=5):
        build_model(plan, table, many, target="class", limits=FitLimits(fit=fit))
    assert len(fit.begun) == 5


def test_a_model_is_made_of_what_has_room_in_a_file(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path
) -> None:
    fit = Unable.to_fit()

    def made(room: int) -> FinalModel:
        blending, limit = BlendOptions(3, tmp_path), room / model_file.SHARE_OF_PIPELINES
        limits = FitLimits(is_saved=True, largest_file=limit, fit=fit)
        return build_model(plan, table, trials, target="class", blending=blending, limits=limits)

    everything = made(2**32)
    sizes = {each.trial.number: _size(everything.model, each) for each in everything.members}
    least = min(everything.members[1:], key=lambda each: each.weight)
    fit.begun.clear()
    fewer = made(sum(sizes.values()) - 1)
    assert [each.trial for each in fewer.members] == [
        each.trial for each in everything.members if each is not least
    ]
    assert f"trial {least.trial.number} (too large for a model file)" in fewer.remark
    assert len(fit.begun) == len(everything.members)
    fewer.model.save(tmp_path / "model.foretune")
    assert len(Model.open(tmp_path / "model.foretune").members) == len(fewer.members)
    with refuses("no-trial-can-be-fitted", value=3) as failed:
        made(1)
    assert "(too large for a model file)" in str(failed.value)


def _size(model: Model, chosen: ChosenMember) -> int:
    """Of a member's pipeline in a file, unpacked."""
    import skops.io

    [member] = [each for each in model.members if each.config == chosen.trial.config]
    content = skops.io.dumps([member.pipeline])
    with ZipFile(BytesIO(content)) as archive:
        return sum(entry.file_size for entry in archive.infolist())


def test_a_disk_that_keeps_no_predictions_costs_no_trial(
    plan: FitPlan, table: Table, tmp_path: Path
) -> None:
    [config, *_] = _one_of_each(plan)
    predictions_path(tmp_path, config).mkdir()  # A file cannot take its place.
    assert "log_loss" in InMemoryEvaluator(table, plan.protocol, tmp_path)(config)


@pytest.mark.parametrize("spoilt", [b"", b"no numbers", "half", "other rows"])
def test_damaged_predictions_have_no_part_in_it(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path, spoilt: bytes | str
) -> None:
    def spoil(trial: Trial) -> None:
        path = predictions_path(tmp_path, trial.config)
        if spoilt == "other rows":
            np.save(path, np.load(path)[1:])
        else:
            path.write_bytes(path.read_bytes()[:200] if isinstance(spoilt, str) else spoilt)

    blending = BlendOptions(3, tmp_path)
    spoil(trials[1])
    made = build_model(plan, table, trials, target="class", blending=blending)
    assert trials[1] not in [chosen.trial for chosen in made.members]
    spoil(trials[0])
    made = build_model(plan, table, trials, target="class", blending=blending)
    assert [chosen.trial for chosen in made.members] == [trials[0]]
    assert "the predictions of the best trial are damaged or not finite" in made.remark


@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupt_leaves_what_is_fitted(
    plan: FitPlan, table: Table, trials: list[Trial], tmp_path, after: int
) -> None:
    calls = []

    def fit(*given: object, **named: object) -> Member:
        calls.append(given)
        if len(calls) > after:
            raise KeyboardInterrupt
        return refit(*given, **named)

    limits, blending = FitLimits(fit=fit), BlendOptions(3, tmp_path)
    if after == 0:
        with pytest.raises(KeyboardInterrupt):
            build_model(plan, table, trials, target="class", blending=blending, limits=limits)
        return
    made = build_model(plan, table, trials, target="class", blending=blending, limits=limits)
    assert [chosen.trial for chosen in made.members] == [trials[0]]
    assert made.interrupted
    assert len(calls) == 2
    assert (made.blended, made.remark) == (None, INTERRUPTED)
