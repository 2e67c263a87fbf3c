"""ForetuneSearchCV with a resource, beside scikit-learn's HalvingRandomSearchCV."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import HalvingRandomSearchCV, KFold
from sklearn.tree import DecisionTreeClassifier

from foretune import ForetuneSearchCV
from foretune.experience import Status
from foretune.integrations.search_resource import SameSplits, plan_resource
from tests.refusals import refuses

X, Y = make_classification(270, 5, flip_y=0.2, random_state=0)


class Constant(ClassifierMixin, BaseEstimator):
    """Its score is `quality`, and remembers with how many rows it was fitted."""

    def __init__(self, quality: float = 0.0, rounds: int = 1, breaks_at: int = 10**9) -> None:
        self.quality, self.rounds, self.breaks_at = quality, rounds, breaks_at

    def fit(self, X, y):
        if self.rounds >= self.breaks_at:
            raise ValueError("broken")
        self.classes_, self.rows_ = np.unique(y), len(X)
        return self

    def score(self, X, y):
        return self.quality + self.rows_ / 1e6


def plan(name: str = "rounds", **options):
    usual = {"least": "exhaust", "most": 27, "factor": 3, "candidates": 27, "rows": 0, "classes": 1}
    return plan_resource(name, **(usual | options)).amounts


def test_amounts_end_with_all_resources_and_one_promotion_for_each_factor_of_candidates():
    assert plan() == (1, 3, 9, 27)
    assert plan(most=100) == (4, 11, 33, 100)
    assert plan(candidates=10) == (3, 9, 27)
    assert plan(candidates=2) == (27,)
    assert plan(most=20) == (2, 7, 20)  # a fourth one would have less than one round
    assert plan("n_samples", most="auto", rows=810, classes=3) == (30, 90, 270, 810)
    assert plan("n_samples", most="auto", rows=8, classes=2) == (8,)


@pytest.mark.parametrize("least", ["smallest", 2])
def test_amounts_that_begin_low_are_those_of_scikit_learn(least):
    estimator = DecisionTreeClassifier()
    options = {"min_resources": least, "max_resources": 20, "n_candidates": 9}
    theirs = HalvingRandomSearchCV(
        estimator, {"min_samples_leaf": range(1, 19)}, resource="max_depth", **options
    ).fit(X, Y)
    assert list(plan(least=least, most=20, candidates=9)) == theirs.n_resources_


def test_one_of_three_candidates_goes_on_with_three_times_the_rounds():
    search = ForetuneSearchCV(
        Constant(), {"quality": (0.0, 1.0)}, n_iter=9, method="random", random_state=0, cv=3,
        resource="rounds", max_resources=9,
    ).fit(X, Y)  # fmt: skip
    results = search.cv_results_
    assert results["iter"].tolist() == [0] * 9 + [1] * 3 + [2]
    assert results["n_resources"].tolist() == [1] * 9 + [3] * 3 + [9]
    assert [params["rounds"] for params in results["params"]] == [1] * 9 + [3] * 3 + [9]
    quality = np.array([params["quality"] for params in results["params"]])
    assert set(quality[9:12]) == set(np.sort(quality[:9])[-3:])
    assert quality[12] == quality.max()
    assert search.best_params_ == {"quality": quality.max(), "rounds": 9}
    assert search.best_index_ == 12
    assert search.best_estimator_.rounds == 9
    assert (search.n_candidates_, search.n_resources_) == ([9, 3, 1], [1, 3, 9])


def test_the_best_is_one_of_the_last_iteration_even_if_an_earlier_score_was_higher():
    class Fading(Constant):
        def score(self, X, y):
            return self.quality - self.rounds

    search = ForetuneSearchCV(
        Fading(), {"quality": (0.0, 1.0)}, n_iter=3, random_state=0, cv=2, resource="rounds",
        max_resources=3, method="random",
    ).fit(X, Y)  # fmt: skip
    assert search.best_index_ == 3
    assert search.best_score_ < max(search.cv_results_["mean_test_score"])


def test_rows_are_fewer_to_learn_from_and_the_same_to_score_on():
    search = ForetuneSearchCV(
        Constant(), {"quality": (0.0, 1.0)}, n_iter=9, method="random", random_state=0, cv=3,
        resource="n_samples",
    ).fit(X, Y)  # fmt: skip
    results = search.cv_results_
    assert search.n_resources_ == [30, 90, 270]
    quality = np.array([params["quality"] for params in results["params"]])
    rows = (results["mean_test_score"] - quality) * 1e6
    # Of three folds, two are learnt from.
    np.testing.assert_allclose(rows, np.array(results["n_resources"]) * 2 / 3, rtol=1e-6)
    assert search.best_estimator_.rows_ == 270


def test_shares_of_rows_are_nested_and_keep_the_proportions_of_classes():
    y = np.repeat([0, 1, 2], [200, 80, 20])
    splits = SameSplits(KFold(4, shuffle=True, random_state=0), classifier=True)
    whole = splits.split(np.zeros((300, 1)), y)
    half, tenth = (splits.split_share(share, np.zeros((300, 1)), y) for share in (0.5, 0.1))
    for (train, test), (train_half, test_half), (train_tenth, _) in zip(
        whole, half, tenth, strict=True
    ):
        assert set(train_tenth) <= set(train_half) <= set(train)
        assert (len(train_half), len(train_tenth)) == (113, 23)
        np.testing.assert_array_equal(test, test_half)
        for label in range(3):
            share = (y[train] == label).mean()
            assert abs((y[train_half] == label).mean() - share) < 2 / 113


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_candidates_that_break_later_do_not_end_the_search():
    search = ForetuneSearchCV(
        Constant(breaks_at=9), {"quality": (0.0, 1.0)}, n_iter=9, random_state=0, cv=2,
        resource="rounds", max_resources=9, refit=False, method="random",
    )  # fmt: skip
    with pytest.warns(FitFailedWarning):
        search.fit(X, Y)
    assert search.cv_results_["n_resources"][-1] == 9
    assert np.isnan(search.cv_results_["mean_test_score"][-1])
    assert search.cv_results_["n_resources"][search.best_index_] == 3


def test_candidates_are_experience_with_curves():
    search = ForetuneSearchCV(
        GradientBoostingClassifier(random_state=0), {"learning_rate": (0.01, 1.0, "log")},
        n_iter=9, random_state=0, cv=2, resource="n_estimators", max_resources=9, method="random",
    ).fit(X, Y)  # fmt: skip
    experience = search.to_experience("mine")
    assert sorted(experience.curves.lengths) == [1] * 6 + [2] * 2 + [3]
    assert (experience.status == Status.STOPPED).sum() == 8
    [best] = np.flatnonzero(experience.status == Status.DONE)
    steps, values = experience.curves.at_steps(best, 0)
    rows = [i for i, p in enumerate(search.cv_results_["params"])
            if p["learning_rate"] == search.best_params_["learning_rate"]]  # fmt: skip
    assert steps.tolist() == [1, 3, 9]
    np.testing.assert_array_equal(values, search.cv_results_["mean_test_score"][rows])
    assert experience.values[best, 0] == search.best_score_


def test_without_a_resource_nothing_changes():
    search = ForetuneSearchCV(LogisticRegression(), {"C": (0.1, 1.0)}, n_iter=2, cv=2).fit(X, Y)
    assert "iter" not in search.cv_results_
    assert not hasattr(search, "n_resources_")
    assert search.to_experience("mine").curves is None


def test_regressors_and_distributions_of_scipy():
    search = ForetuneSearchCV(
        Ridge(), {"alpha": uniform(0, 1)}, n_iter=9, cv=3, resource="n_samples", random_state=1
    ).fit(X, X @ np.arange(5))
    assert search.n_resources_ == [30, 90, 270]
    assert clone(search).get_params()["resource"] == "n_samples"


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"resource": "rounds"}, "unknown-resource"),
        ({"resource": "C", "max_resources": 9}, "resource-in-space"),
        ({"resource": "max_iter"}, "max-resources"),
        ({"resource": "n_samples", "max_resources": 271}, "max-resources"),
        ({"resource": "n_samples", "min_resources": "least"}, "min-resources"),
        ({"resource": "n_samples", "min_resources": 271}, "min-resources"),
        ({"resource": "n_samples", "factor": 1}, "factor"),
    ],
)
def test_mistakes_are_named_before_the_first_fit(options, rule):
    search = ForetuneSearchCV(LogisticRegression(), {"C": (0.1, 1.0)}, cv=2, **options)
    with refuses(rule):
        search.fit(X, Y)


class ByFold(ClassifierMixin, BaseEstimator):
    """Its score is `quality`, plus the number of its fold, which the first column holds."""

    fits = 0

    def __init__(self, quality: float = 0.0, breaks: bool = False) -> None:
        self.quality, self.breaks = quality, breaks

    def fit(self, X, y):
        if self.breaks:
            raise ValueError("broken")
        type(self).fits += 1
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return self.quality + X[0, 0]


FOLD_OF_ROW = np.repeat(np.arange(6.0), 10)


def test_folds_are_a_resource_and_none_is_fitted_twice():
    ByFold.fits = 0
    x = np.column_stack([FOLD_OF_ROW, FOLD_OF_ROW])
    search = ForetuneSearchCV(
        ByFold(), {"quality": (0.0, 1.0)}, n_iter=9, method="random", random_state=0,
        cv=KFold(6), resource="n_splits", factor=3, min_resources=1, max_resources=6,
    ).fit(x, np.tile([0, 1], 30))  # fmt: skip
    results = search.cv_results_
    quality = np.array([params["quality"] for params in results["params"]])
    assert results["n_resources"].tolist() == [1] * 9 + [3] * 3
    assert results["iter"].tolist() == [0] * 9 + [1] * 3
    assert ByFold.fits == 9 * 1 + 3 * 2 + 1  # the last one is of all rows
    np.testing.assert_allclose(results["mean_test_score"], quality + np.repeat([0.0, 1.0], [9, 3]))
    np.testing.assert_allclose(results["std_test_score"][9:], np.std([0, 1, 2]))
    np.testing.assert_allclose(results["split2_test_score"][9:], quality[9:] + 2)
    assert np.isnan(results["split1_test_score"][:9]).all()
    assert np.isnan(results["split3_test_score"]).all()
    assert search.best_index_ >= 9
    assert search.n_splits_ == 6
    assert isinstance(search.cv, KFold)
    found = search.to_experience("t")
    assert found.curves.lengths.tolist().count(2) == 3
    assert (found.status == Status.STOPPED).sum() == 6


def test_candidates_that_break_on_folds_are_failures():
    space = {"breaks": [True, False], "quality": (0.0, 1.0)}
    x = np.column_stack([FOLD_OF_ROW, FOLD_OF_ROW])
    search = ForetuneSearchCV(
        ByFold(), space, n_iter=8, method="random", random_state=0,
        cv=KFold(3), resource="n_splits", factor=2,
    )  # fmt: skip
    with pytest.warns(FitFailedWarning):
        search.fit(x, np.tile([0, 1], 30))
    broken = np.array([params["breaks"] for params in search.cv_results_["params"]])
    assert 0 < broken.sum() < len(broken)
    assert search.failed_.tolist() == broken.tolist()
    assert np.isnan(search.cv_results_["mean_test_score"][broken]).all()
    assert search.cv_results_["n_resources"].tolist()[-1] == 3
    assert not search.best_params_["breaks"]
    assert "mean_fit_time" in search.cv_results_
