"""The final model that is made of the pipelines of the folds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.fold_build import FoldModelRequest, build_from_folds
from foretune.automl.final_model.fold_models import fold_models_path, load_incumbent
from foretune.automl.metrics import Predictions, scorer
from foretune.automl.out_of_fold import load_predictions
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.trial_evaluator import InMemoryEvaluator
from foretune.experience import Status
from foretune.experience.trial import Trial
from foretune.tables.target import Task

from .samples import mixed_table


@pytest.fixture
def request_of_folds(tmp_path: Path) -> FoldModelRequest:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions(only=("knn", "lda")))
    evaluator = InMemoryEvaluator(plan.table, plan.protocol, tmp_path, keeps_models=True)
    trials = []
    for number, config in enumerate(plan.space.sample(4, seed=0).dicts()):
        trials.append(Trial(number, config, Status.DONE, evaluator(config), 1.0))
    return FoldModelRequest(plan=plan, target="class", trials=trials, most=3, folder=tmp_path)


def _best(request: FoldModelRequest) -> Trial:
    return min(request.trials, key=lambda trial: trial.values["log_loss"])


def test_the_blend_scores_what_its_weights_say_and_no_worse_than_the_best(
    request_of_folds: FoldModelRequest,
) -> None:
    made = build_from_folds(request_of_folds)
    assert made is not None
    plan, folds = request_of_folds.plan, request_of_folds.plan.protocol.splits
    parts = [held for _, held in folds(plan.table)]
    shape = (len(plan.table), 3)
    mean = sum(
        each.weight * load_predictions(request_of_folds.folder, each.trial.config, shape)
        for each in made.members
    )
    scores, start = [], 0
    for held in parts:
        given = Predictions(plan.table.y[held], held, mean[start : start + len(held)])
        scores.append(scorer("log_loss", Task.CLASSIFICATION).score(given))
        start += len(held)
    best = _best(request_of_folds)
    score = best.values["log_loss"] if made.blended is None else made.blended
    assert score == pytest.approx(np.mean(scores), abs=1e-5)
    assert score <= best.values["log_loss"] + 1e-6
    assert made.best is best
    assert len(made.members) == len(made.model.members) <= 3
    made.model.save(request_of_folds.folder / "model")
    known = load_incumbent(request_of_folds.folder)
    assert sum(known.values()) == pytest.approx(1.0)


def test_without_the_pipelines_of_the_best_trial_there_is_no_such_model(
    request_of_folds: FoldModelRequest,
) -> None:
    path = fold_models_path(request_of_folds.folder, _best(request_of_folds).config)
    path.unlink()
    assert build_from_folds(request_of_folds) is None


def test_a_member_whose_pipelines_cannot_be_read_is_replaced(
    request_of_folds: FoldModelRequest,
) -> None:
    whole = build_from_folds(request_of_folds)
    assert whole is not None
    lost = whole.members[-1].trial
    path = fold_models_path(request_of_folds.folder, lost.config)
    content = bytearray(path.read_bytes())
    place = content.index(b"schema.json") + 200
    content[place : place + 40] = bytes(40)
    path.write_bytes(bytes(content))
    made = build_from_folds(request_of_folds)
    if len(whole.members) == 1:
        assert made is None or made.members[0].trial is not lost
    else:
        assert made is not None
        assert lost not in [each.trial for each in made.members]


def test_when_the_time_is_over_one_member_is_read(request_of_folds: FoldModelRequest) -> None:
    made = build_from_folds(replace(request_of_folds, deadline=-1.0, now=lambda: 0.0))
    assert made is not None
    assert len(made.members) == 1


def test_more_trials_replace_a_model_only_if_they_are_clearly_better(
    request_of_folds: FoldModelRequest,
) -> None:
    """Two trials, and then two more of nearly the same."""
    few = replace(request_of_folds, trials=request_of_folds.trials[:2])
    before = build_from_folds(few)
    after = build_from_folds(request_of_folds)
    assert before is not None
    assert after is not None
    score = [each.blended or each.best.values["log_loss"] for each in (before, after)]
    assert score[1] <= score[0] + 1e-9


@pytest.mark.parametrize("estimator", ["knn", "lightgbm"])
def test_steady_estimators_learn_from_all_rows_and_others_are_averaged(
    tmp_path: Path, estimator: str
) -> None:
    plan = make_plan(mixed_table(Task.CLASSIFICATION), FitOptions(only=(estimator,)))
    evaluator = InMemoryEvaluator(plan.table, plan.protocol, tmp_path, keeps_models=True)
    config = plan.space.defaults().dicts()[0]
    trial = Trial(0, config, Status.DONE, evaluator(config), 1.0)
    made = build_from_folds(
        FoldModelRequest(plan=plan, target="class", trials=[trial], most=3, folder=tmp_path)
    )
    assert made is not None
    [member] = made.model.members
    if estimator == "knn":
        expected = refit(config, plan.table, seed=plan.protocol.seed)
        x = plan.table.x
        assert member.probabilities(x, 3) == pytest.approx(expected.probabilities(x, 3))
    else:
        assert len(member.pipeline.pipelines) == len(plan.protocol.splits(plan.table))
