"""The average of the pipelines of the folds, and the files that keep them."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline

from foretune.automl.estimators.fitted_pipeline import Member
from foretune.automl.estimators.fold_average import FoldAverage, average_members
from foretune.automl.evaluation import FoldEvaluation, Protocol
from foretune.automl.final_model.damaged_part import DamagedPartError
from foretune.automl.final_model.fold_models import (
    drop_fold_models,
    fold_costs,
    fold_models_path,
    load_fold_models,
    load_incumbent,
    save_fold_models,
    save_incumbent,
)
from foretune.automl.final_model.model_file import read_model, write_model
from foretune.automl.final_model.packed_forest import COLUMNS, PackedForest, pack_forests
from foretune.automl.spaces import load_shipped_space
from foretune.tables.target import Task
from tests.automl.samples import mixed_table

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1.0)


def _fitted(x, y):
    known, codes = np.unique(y, return_inverse=True)
    return Member({"estimator": "nb"}, GaussianNB().fit(x, codes), tuple(known.tolist()))


def test_the_mean_of_folds_is_that_of_their_probabilities_also_if_a_fold_lacks_a_class() -> None:
    whole, part = _fitted(X, Y), _fitted(X[Y != 1], Y[Y != 1])
    assert part.known == (0, 2)
    made = average_members([whole, part], columns=3)
    mean = (whole.probabilities(X, 3) + part.probabilities(X, 3)) / 2
    assert made.probabilities(X, 3) == pytest.approx(mean)
    assert made.predict(X).tolist() == mean.argmax(axis=1).tolist()


def test_a_fold_with_one_class_is_sure_of_it() -> None:
    whole, sure = _fitted(X, Y), Member({}, GaussianNB(), (2,))
    found = average_members([whole, sure], columns=3).probabilities(X, 3)
    assert found == pytest.approx((whole.probabilities(X, 3) + np.eye(3)[2]) / 2)


def test_numbers_are_averaged() -> None:
    members = [
        Member({}, ExtraTreesRegressor(3, random_state=seed).fit(X, X[:, 0])) for seed in (0, 1)
    ]
    made = average_members(members, columns=3)
    assert made.predict(X) == pytest.approx(np.mean([m.predict(X) for m in members], axis=0))


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(7, max_depth=3, random_state=0),
        ExtraTreesRegressor(5, random_state=0),
    ],
)
def test_a_packed_forest_comes_back_bit_for_bit(tmp_path, forest) -> None:
    fitted = Pipeline([("estimator", forest.fit(X, Y))])
    before = fitted.predict(X).tolist()
    path = tmp_path / "model"
    write_model(path, {}, [FoldAverage([fitted, fitted], [[], []], 0, 3)])
    _, [again] = read_model(path)
    assert fitted.predict(X).tolist() == before  # It was not changed.
    for each in again.pipelines:
        assert each.predict(X).tolist() == before
        for tree, other in zip(each[-1].estimators_, forest.estimators_, strict=True):
            mine, its = (each.tree_.__getstate__()["nodes"] for each in (tree, other))
            assert all(np.array_equal(mine[name], its[name]) for name in COLUMNS)


def test_a_packed_forest_of_other_trees_than_it_says_is_refused() -> None:
    [packed] = pack_forests([RandomForestClassifier(3, random_state=0).fit(X, Y)])
    assert isinstance(packed, PackedForest)
    packed.counts[0] += 1
    with pytest.raises(DamagedPartError):
        packed.unpack()


@pytest.mark.parametrize("task", list(Task))
def test_the_models_of_the_folds_are_kept_and_predict_their_rows_as_in_the_trial(
    tmp_path, task
) -> None:
    table = mixed_table(task)
    [config] = load_shipped_space(f"pipeline-{task}").build(["knn"]).sample(1, seed=0).dicts()
    metric = "log_loss" if task is Task.CLASSIFICATION else "r2"
    evaluation = FoldEvaluation(config, table, Protocol((metric,), folds=3), is_kept=True)
    for place in range(3):
        evaluation.run_fold(place)
    score = evaluation.score()
    save_fold_models(tmp_path, score.members, columns=table.x.shape[1], predict_seconds=0.5)
    path = fold_models_path(tmp_path, config)
    assert path.stat().st_mode & 0o077 == 0
    assert fold_costs(tmp_path, config).predict_seconds == 0.5
    found = load_fold_models(tmp_path, config)
    first = table.x[evaluation.splits[0][1]]
    each = [
        member.predict(first) if task is Task.REGRESSION else member.probabilities(first, 3)
        for member in score.members
    ]
    given = found.predict(first) if task is Task.REGRESSION else found.probabilities(first, 3)
    assert given == pytest.approx(np.mean(each, axis=0))
    path.write_bytes(path.read_bytes()[:-100])
    assert load_fold_models(tmp_path, config) is None
    assert fold_costs(tmp_path, config) is None


def test_the_poorest_trials_lose_their_models_when_the_disk_would_fill(tmp_path) -> None:
    configs = [{"a": number} for number in range(9)]
    for config in configs:
        fold_models_path(tmp_path, config).write_bytes(b"x" * 10)
    drop_fold_models(tmp_path, configs, most_bytes=60)
    left = [fold_models_path(tmp_path, config).exists() for config in configs]
    assert left == [True] * 6 + [False] * 3
    drop_fold_models(tmp_path, configs, most_bytes=10)
    assert sum(fold_models_path(tmp_path, config).exists() for config in configs) == 5


def test_early_stopping_uses_one_number_of_rounds_for_all_folds() -> None:
    table = mixed_table(Task.REGRESSION)
    space = load_shipped_space("pipeline-regression").build(["lightgbm"])
    config = space.sample(1, seed=0).dicts()[0]
    evaluation = FoldEvaluation(config, table, Protocol(("r2",), folds=3), is_kept=True)
    own = []
    for place in range(3):
        evaluation.run_fold(place)
        own.append(evaluation._members[-1])
    score = evaluation.score()
    assert len({member.steps for member in score.members} | {None}) == 2
    rows = np.concatenate([held for _, held in evaluation.splits])
    predicted = [
        member.predict(table.x[held])
        for member, (_, held) in zip(score.members, evaluation.splits, strict=True)
    ]
    assert score.predictions[:, 0] == pytest.approx(np.concatenate(predicted))
    assert score.rows.tolist() == rows.tolist()
    longest = max(map(len, (member.curve for member in own)))
    mean = np.mean([np.pad(m.curve, (0, longest - len(m.curve)), mode="edge") for m in own], axis=0)
    assert score.members[0].steps == min(np.argmin(mean) + 1, len(own[0].curve))


def test_the_incumbent_is_what_was_written_or_nothing(tmp_path) -> None:
    members = [({"a": 1}, 0.75), ({"a": 2}, 0.25)]
    assert load_incumbent(tmp_path) == {}
    save_incumbent(tmp_path, members)
    known = load_incumbent(tmp_path)
    assert known == {fold_models_path(tmp_path, c).stem: w for c, w in members}
    for damaged in ("[", "[1]", '{"a": -1}', '{"a": "x"}'):
        (tmp_path / "incumbent.json").write_text(damaged)
        assert load_incumbent(tmp_path) == {}


def test_what_is_kept_of_boosting_has_no_history_of_its_rounds(tmp_path) -> None:
    table = mixed_table(Task.REGRESSION)
    [config] = load_shipped_space("pipeline-regression").build(["lightgbm"]).defaults().dicts()
    evaluation = FoldEvaluation(config, table, Protocol(("r2",), folds=2), is_kept=True)
    for place in range(2):
        evaluation.run_fold(place)
    score = evaluation.score()
    before = [member.predict(table.x) for member in score.members]
    save_fold_models(tmp_path, score.members, columns=table.x.shape[1], predict_seconds=0.1)
    found = load_fold_models(tmp_path, config)
    assert found.predict(table.x) == pytest.approx(np.mean(before, axis=0))
    assert [each[-1]._evals_result for each in found.pipeline.pipelines] == [{}, {}]
    assert score.members[0].pipeline[-1]._evals_result  # That of the trial stays as it is.
