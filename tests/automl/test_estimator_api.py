import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, cross_val_score, cross_validate, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.knowledge.memory import HOME_VARIABLE, Memory
from foretune.automl.sklearn_api import ForetuneClassifier, ForetuneRegressor
from foretune.errors import UsageError
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.inline import InlineExecutor
from tests.refusals import refuses, warns

CHEAP = {"trials": 2, "method": "random", "only": ("logistic", "knn"), "transfer": False}


def a_classifier(**given):
    return ForetuneClassifier(**CHEAP | given)


def a_regressor(**given):
    cheap = {"trials": 2, "method": "random", "only": ("elastic_net", "knn"), "transfer": False}
    return ForetuneRegressor(**cheap | given)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X[:, :3], y, train_size=100, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def fitted(cancer):
    X, _, y, _ = cancer
    return a_classifier(trials=3).fit(X, y)


def people(n=200, seed=0):
    """Columns of every kind, and a target that follows from the city and the age."""
    rng = np.random.default_rng(seed)
    age = rng.normal(40, 10, n)
    city = rng.choice(["Bonn", "Oslo", "Rome"], n)
    frame = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "city": pd.Categorical(city),
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "remark": [f"person {number} of many" for number in range(n)],
            "empty": [None] * n,
            "target": rng.normal(size=n),
        }
    )
    labels = np.where((city == "Rome") | (age > 45), "yes", "no")
    return frame, labels


@parametrize_with_checks(
    [
        a_classifier(trials=1, space="cash", only=("gaussian_nb",)),
        a_regressor(trials=1, method="sobol", only=("elastic_net",)),
    ],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "a row of weight 2 is in one fold, two "
        "rows may be in two: other scores, and another search"
    },
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_it_beats_the_majority_and_finds_what_it_scored(cancer, fitted):
    _, X, _, y = cancer
    majority = max(np.mean(y), 1 - np.mean(y))
    assert fitted.score(X, y) > majority + 0.2
    assert fitted.best_score_ == pytest.approx(fitted.trials_["log_loss"].min())
    shares = fitted.predict_proba(X)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert fitted.classes_.tolist() == [0, 1]
    assert fitted.best_config_["estimator"] in ("logistic", "knn")


def test_regression_beats_the_mean():
    X, y = load_diabetes(return_X_y=True)
    X = X[:, [2, 8]]
    regressor = a_regressor().fit(X[:300], y[:300])
    assert regressor.score(X[300:], y[300:]) > 0.25
    assert regressor.best_score_ == pytest.approx(regressor.trials_["r2"].max())


def test_the_same_seed_gives_the_same_search(cancer, fitted):
    X, X_new, y, _ = cancer
    again = clone(fitted).fit(X, y)
    columns = [name for name in fitted.trials_ if "seconds" not in name]
    pd.testing.assert_frame_equal(again.trials_[columns], fitted.trials_[columns])
    assert again.predict_proba(X_new).tolist() == fitted.predict_proba(X_new).tolist()
    other = clone(fitted).set_params(random_state=np.random.RandomState(3), trials=1).fit(X, y)
    assert not other.trials_["log_loss"].isin(fitted.trials_["log_loss"]).any()


def test_trials_tell_what_was_tried(fitted):
    trials = fitted.trials_
    assert len(trials) == 3
    assert set(trials["status"]) == {"DONE"}
    assert set(trials["chosen_by"]) == {"random"}
    assert {"estimator", "accuracy", "seconds", "reason"} <= set(trials.columns)
    assert "task" not in trials


def test_a_pickle_predicts_the_same_and_carries_no_rows(cancer, fitted):
    _, X, _, _ = cancer
    packed = pickle.dumps(fitted)
    unpacked = pickle.loads(packed)
    assert unpacked.predict(X).tolist() == fitted.predict(X).tolist()
    assert unpacked.best_config_ == fitted.best_config_
    assert len(unpacked.fit_.plan.table) == 0


def test_the_report_is_a_page_of_all_trials(fitted, tmp_path):
    text = fitted.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    assert text.startswith("<!doctype html>")
    assert "100" in text  # rows, though the estimator no longer holds them


def test_a_report_needs_a_folder_that_exists(fitted, tmp_path):
    with refuses("missing-folder"):
        fitted.report(tmp_path / "nowhere" / "report.html")
    with refuses("file-is-folder"):
        fitted.report(tmp_path)
    assert not list(tmp_path.iterdir())


def test_columns_of_every_kind():
    frame, labels = people()
    classifier = a_classifier(only=("logistic",)).fit(frame, labels)
    assert classifier.feature_names_in_.tolist() == list(frame.columns)
    assert classifier.n_features_in_ == 7
    new, expected = people(seed=1)
    predicted = classifier.predict(new)
    assert set(predicted) <= {"yes", "no"}
    assert np.mean(predicted == expected) > 0.75
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(new[["city", *new.columns.drop("city")]])


@pytest.mark.parametrize("of_time", [pd.to_datetime, pd.to_timedelta])
def test_dates_and_durations_stand_beside_numbers(of_time):
    days = np.random.default_rng(0).integers(0, 400, 60)
    X = pd.DataFrame({"when": of_time(days, unit="D"), "number": days % 7.0})
    regressor = a_regressor(trials=1, only=("elastic_net",)).fit(X, days)
    assert regressor.score(X, days) > 0.5
    gap = X.assign(when=[None, *X["when"][1:]])
    assert np.isfinite(regressor.predict(gap)).all()


def test_columns_go_by_position_where_one_side_has_no_names(cancer):
    X, new, y, _ = cancer
    names = [f"measure {column}" for column in range(X.shape[1])]
    frame, new_frame = pd.DataFrame(X, columns=names), pd.DataFrame(new, columns=names)
    by_name, by_number = a_classifier(trials=1).fit(frame, y), a_classifier(trials=1).fit(X, y)
    expected = by_name.predict_proba(new_frame)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_array_equal(by_name.predict_proba(new), expected)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        assert_array_equal(by_number.predict_proba(new_frame), expected)
    assert_array_equal(by_number.predict_proba(pd.DataFrame(new)), expected)


def test_columns_that_are_numbered_go_by_their_number(cancer):
    X, new, y, _ = cancer
    fitted = a_classifier(trials=1).fit(pd.DataFrame(X), y)
    turned = pd.DataFrame(new)[list(range(X.shape[1]))[::-1]]
    assert_array_equal(fitted.predict_proba(turned), fitted.predict_proba(pd.DataFrame(new)))


def test_labels_come_back_as_they_were():
    X, y = load_iris(return_X_y=True)
    for labels in (y + 7, y * 2.0, np.array(["c", "a", "b"])[y], y > 0):
        classifier = a_classifier(trials=1, space="cash", only=("gaussian_nb",)).fit(X, labels)
        assert classifier.classes_.tolist() == np.unique(labels).tolist()
        predicted = classifier.predict(X)
        assert predicted.dtype == labels.dtype
        assert np.mean(predicted == labels) > 0.8


@pytest.mark.parametrize(("dtype", "expected"), [("Int64", np.int64), ("boolean", np.bool_)])
def test_labels_of_pandas_that_could_have_gaps_come_back_without(dtype, expected):
    X, y = load_iris(return_X_y=True)
    labels = pd.Series(y > 0).astype(dtype)
    classifier = a_classifier(trials=1, space="cash", only=("gaussian_nb",)).fit(X, labels)
    assert classifier.classes_.dtype == expected
    assert classifier.predict(X).dtype == expected
    assert classifier.score(X, labels) > 0.8
    with pytest.raises(ValueError, match="NaN"):
        a_classifier().fit(X, labels.mask(labels.index == 3))


def test_an_ensemble_blends_and_is_no_worse_on_what_it_was_chosen_by(cancer):
    X, X_new, y, _ = cancer
    blended = a_classifier(trials=4, ensemble=3, metric="log_loss").fit(X, y)
    weights = [member.weight for member in blended.model_.members]
    assert 1 < len(weights) <= 3
    assert sum(weights) == pytest.approx(1.0)
    assert blended.fit_.final.blended <= blended.best_score_ + 1e-6
    assert blended.predict_proba(X_new).sum(axis=1) == pytest.approx(np.ones(len(X_new)))


def test_trials_in_other_processes_give_the_same(cancer, fitted):
    X, X_new, y, _ = cancer
    apart = clone(fitted).set_params(jobs=1, trials=2, ensemble=2).fit(X, y)
    assert apart.trials_["accuracy"].tolist() == fitted.trials_["accuracy"].tolist()[:2]
    assert set(apart.predict(X_new)) <= {0, 1}


class InterruptedExecutor(InlineExecutor):
    """The user presses Ctrl-C in the third trial."""

    calls = 0

    def start(self):
        pass

    def results(self, timeout=None):
        self.calls += 1
        if self.calls == 3:
            raise KeyboardInterrupt
        return super().results(timeout)


class InterruptedSite(ExecutorChoice):
    def pool(self, function, *, workers, limits):
        return InterruptedExecutor(function)


class Interrupted(ForetuneClassifier):
    def _describe_job(self, table, target):
        return replace(super()._describe_job(table, target), executor=InterruptedSite())


def test_ctrl_c_keeps_what_is_there(cancer):
    X, X_new, y, _ = cancer
    classifier = Interrupted(**CHEAP | {"trials": 50}).fit(X, y)
    assert classifier.fit_.ending == "stopped"
    assert len(classifier.trials_) == 2
    assert len(classifier.predict(X_new)) == len(X_new)


class FailsOnce(ForetuneClassifier):
    """Cannot fit the first pipeline of the final model."""

    def _describe_job(self, table, target):
        begun = []

        def fails_once(*given, **named):
            begun.append(given)
            if len(begun) == 1:
                raise MemoryError("no room")
            return refit(*given, **named)

        return replace(super()._describe_job(table, target), fit_pipeline=fails_once)


def test_that_the_best_trial_could_not_be_fitted_is_warned_of(cancer):
    X, _, y, _ = cancer
    with warns("model-remark"):
        classifier = FailsOnce(**CHEAP, refit=True).fit(X, y)
    assert classifier.best_score_ > classifier.trials_["log_loss"].min()


def test_time_ends_the_search(cancer):
    X, _, y, _ = cancer
    classifier = a_classifier(trials=None, seconds=0.2).fit(X, y)
    assert classifier.fit_.ending == "time"
    assert len(classifier.trials_) >= 1


def test_it_remembers_only_if_asked_to(cancer, tmp_path, monkeypatch):
    X, _, y, _ = cancer
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    a_classifier(trials=1).fit(X, y)
    assert Memory.of_user().spaces() == []
    a_classifier(remember=True).fit(X, y)
    known = Memory.of_user().recall("pipeline-classification")
    assert known is not None
    assert len(known) == 2


def test_own_experience_teaches_later_fits(cancer, tmp_path, monkeypatch):
    X, _, y, _ = cancer
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path))
    a_classifier(remember=True).fit(X, y)
    taught = a_classifier(trials=2, method="ws-gp", transfer=True, remember=True)
    taught.fit(X[:100], y[:100])
    assert taught.trials_["chosen_by"].tolist()[0] == "start"
    assert taught.fit_.knowledge.tasks >= 1
    assert pickle.loads(pickle.dumps(taught)).predict(X).tolist() == taught.predict(X).tolist()


def test_it_is_part_of_cross_validation():
    X, y = load_iris(return_X_y=True)
    scores = cross_val_score(
        a_classifier(trials=1, space="cash", only=("gaussian_nb",)), X, y, cv=3
    )
    assert scores.min() > 0.7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "r2"}, "r2"),
        ({"space": "pipeline-regression"}, "regression"),
        ({"only": ("forest",)}, "forest"),
        ({"ensemble": 0}, "ensemble"),
        ({"trials": 0}, "trials"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": -3}, "seconds"),
        ({"only": "lda"}, "the text 'lda'"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_settings_that_do_not_fit_are_refused(cancer, given, message):
    X, _, y, _ = cancer
    with pytest.raises(UsageError, match=message):
        a_classifier(**given).fit(X, y)


def test_nothing_is_known_before_the_fit():
    for name in ("best_config_", "best_score_", "trials_"):
        with pytest.raises(NotFittedError):
            getattr(a_classifier(), name)
    with pytest.raises(NotFittedError):
        a_classifier().report()


def test_a_single_class_is_named(cancer):
    X, *_ = cancer
    with refuses("one-class", value="a"):
        a_classifier().fit(X, ["a"] * len(X))


@pytest.mark.parametrize("labels", [("a", 1), ("a", None), (True, "a")])
def test_labels_of_several_types_are_refused(cancer, labels):
    X, *_ = cancer
    y = np.array([*labels] * (len(X) // 2), dtype=object)
    with refuses("mixed-labels", field="y"):
        a_classifier().fit(X, y)


def patients(n=40, rows=6, seed=0):
    """A number tells patients apart, and each has its class by chance: nothing to learn."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n), rows)
    X = rng.normal(size=n)[patient, None] + rng.normal(size=(n * rows, 1)) / 100
    return X, (rng.random(n) < 0.5)[patient], patient


def test_groups_are_scored_by_models_that_have_not_seen_them():
    X, y, patient = patients()
    by_chance = a_classifier(only=("knn",), metric="accuracy").fit(X, y)
    assert by_chance.best_score_ > 0.8
    kept_together = a_classifier(only=("knn",), metric="accuracy").fit(X, y, groups=patient)
    assert kept_together.best_score_ < 0.65
    assert kept_together.n_features_in_ == 1
    assert kept_together.predict(X).shape == y.shape


def test_heavy_rows_are_believed():
    """Half of the rows, of weight 9, say the opposite of the others."""
    rng = np.random.default_rng(0)
    X, heavy = rng.normal(size=(200, 2)), np.arange(200) % 2 == 0
    y = np.where(heavy, X[:, 0] > 0, X[:, 0] < 0)
    given = np.where(heavy, 9.0, 1.0)
    classifier = a_classifier(trials=4, only=("logistic",), metric="accuracy")
    classifier.fit(X, y, sample_weight=given)
    assert classifier.best_score_ > 0.85
    assert classifier.score(X, y, sample_weight=given) > 0.85
    assert classifier.n_features_in_ == 2
    assert "weighed by 'sample_weight'" in classifier.fit_.plan.notes[1]


def test_a_class_that_only_rows_of_weight_0_have_is_none():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[np.arange(60) % 3]
    classifier = a_classifier(only=("logistic",), trials=1)
    classifier.fit(X, y, sample_weight=(y != "b") * 2.0)
    assert classifier.classes_.tolist() == ["a", "c"]
    assert classifier.predict_proba(X).shape == (60, 2)
    assert set(classifier.predict(X)) <= {"a", "c"}


def test_weights_are_one_for_each_row():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    for given, said in (
        (np.ones(19), "sample_weight needs a value for each of the 20 rows, but got 19"),
        (np.ones((20, 2)), "sample_weight must be one column"),
        (-np.ones(20), "weights must be finite numbers of at least 0"),
    ):
        with pytest.raises(UsageError, match=said):
            a_classifier().fit(X, y, sample_weight=given)


def test_scikit_learn_passes_groups_on():
    X, y, patient = patients(n=12, rows=4)
    classifier = a_classifier(only=("naive_bayes",), trials=1, ensemble=1)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(classifier.set_fit_request(groups=True))
        given = {"params": {"groups": patient}, "cv": GroupKFold(2)}
        found = cross_validate(asked, X, y, return_estimator=True, error_score="raise", **given)
    for each in found["estimator"]:
        assert "all of one 'groups' together (6 of them)" in each.fit_.plan.notes[1]


@pytest.mark.parametrize("only", ["logistic", "svm"])
def test_scikit_learn_passes_weights_on(only):
    """Whatever holds another estimator would pass on what the program has asked for alone."""
    rng = np.random.default_rng(0)
    X, heavy = rng.normal(size=(120, 2)), np.arange(120) % 2 == 0
    y, given = np.where(heavy, X[:, 0] > 0, X[:, 0] < 0), np.where(heavy, 9.0, 1.0)
    classifier = a_classifier(only=(only,), trials=1, ensemble=1)
    plainly = clone(classifier).fit(X, y, sample_weight=given)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = clone(classifier).set_fit_request(sample_weight=True)
        asked.set_score_request(sample_weight=True)
        found = cross_validate(
            asked, X, y, params={"sample_weight": given}, cv=2, return_estimator=True
        )
        routed = clone(classifier).fit(X, y, sample_weight=given)
    for each in found["estimator"]:
        assert "weighed by 'sample_weight'" in each.fit_.plan.notes[1]
    assert_array_equal(routed.predict_proba(X), plainly.predict_proba(X))


def test_weights_go_by_place_whatever_the_index():
    rng = np.random.default_rng(0)
    X, y, given = rng.normal(size=(60, 2)), np.arange(60) % 2, rng.integers(0, 5, 60)
    plainly = a_classifier(only=("logistic",), trials=1).fit(X, y, sample_weight=given)
    frame = pd.DataFrame(X, columns=["x0", "x1"], index=[7] * 60)
    labels = pd.Series(y, index=rng.permutation(60))
    weights = pd.Series(given, index=-np.arange(60))
    other = clone(plainly).fit(frame, labels, sample_weight=weights)
    assert_array_equal(other.predict_proba(frame), plainly.predict_proba(X))
    again = pickle.loads(pickle.dumps(other))
    assert_array_equal(again.predict_proba(frame), plainly.predict_proba(X))


def test_rows_in_order_are_scored_by_models_of_earlier_ones():
    days = pd.Series(pd.date_range("2024-01-01", periods=240, freq="D"))
    X, y = np.random.default_rng(0).normal(size=(240, 2)), np.arange(240.0) ** 2
    shuffled = np.random.default_rng(1).permutation(240)
    regressor = a_regressor().fit(X[shuffled], y[shuffled], order=days[shuffled])
    # What grows cannot be foretold from noise, and each part lies above all that came before.
    assert regressor.best_score_ < -1.0
    assert regressor.fit_.plan.protocol.folds == 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"groups": [1, 2]}, "groups needs a value for each of the 240 rows, but got 2"),
        ({"groups": "patient"}, "groups must be one column .* got the text 'patient'"),
        ({"order": np.zeros((240, 2))}, "order must be one column .* got ndarray"),
        ({"order": np.zeros(240)}, "'order' is the same in all"),
        ({"groups": np.arange(240), "order": np.arange(240)}, "got both"),
    ],
)
def test_groups_and_orders_that_cannot_be(given, said):
    X, y, _ = patients()
    with pytest.raises(UsageError, match=said):
        a_classifier().fit(X, y, **given)
