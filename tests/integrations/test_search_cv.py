import pickle
import warnings

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from joblib import parallel_config
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from foretune.errors import (
    ExperienceError,
    ForetuneWarning,
    MethodError,
    SpaceError,
    UsageError,
)
from foretune.experience import Status
from foretune.integrations import search_cv
from foretune.integrations.estimator_space import SearchSpace
from foretune.integrations.scipy_distributions import range_of
from foretune.integrations.search_cv import ForetuneSearchCV
from foretune.integrations.search_loop import batch_size
from foretune.search import METHODS, method
from foretune.space import Space
from tests.refusals import refuses, warns

X, Y = load_iris(return_X_y=True)
X_FIRST = X[0]
DEPTH = {"max_depth": (1, 3)}
TREE = {"max_depth": (1, 6), "ccp_alpha": (1e-4, 0.5, "log")}


def a_search(estimator=None, space=TREE, **given):
    estimator = DecisionTreeClassifier(random_state=0) if estimator is None else estimator
    settings = {"n_iter": 6, "cv": 3, "random_state": 0, "method": "random"}
    return ForetuneSearchCV(estimator, space, **settings | given)


def double(x):
    return 2 * x


class Watched(ForetuneSearchCV):
    """A search that keeps its last optimiser."""

    def _optimizer(self, space, metrics):
        self.optimizer_ = super()._optimizer(space, metrics)
        return self.optimizer_


class Moody(ClassifierMixin, BaseEstimator):
    """Scores best at level 0.7, does not take other levels than 0 to 1, and has other settings."""

    def __init__(self, level=0.5, extra=0, mode="plain"):
        self.level = level
        self.extra = extra
        self.mode = mode

    def fit(self, X, y):
        if self.level < 0:
            raise ValueError(f"level {self.level} is below 0")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        return 1.0 - (self.level - 0.7) ** 2


class TestSpaces:
    def test_distributions_become_ranges(self):
        assert range_of("a", stats.uniform(2, 3)) == (2.0, 5.0)
        assert range_of("a", stats.loguniform(1e-3, 10.0)) == (1e-3, 10.0, "log")
        assert range_of("a", stats.reciprocal(1e-3, 10.0)) == (1e-3, 10.0, "log")
        assert range_of("a", stats.randint(2, 6)) == (2, 5)
        assert isinstance(range_of("a", stats.randint(2, 6))[0], int)

    def test_other_distributions_are_refused_by_name(self):
        with refuses("unknown-distribution", field="C", value="norm", kind=SpaceError):
            SearchSpace.of({"C": stats.norm(0, 1)})

    def test_the_style_of_randomized_search(self):
        given = {
            "C": stats.loguniform(1e-2, 1e2),
            "penalty": ["l1", "l2", None],
            "depth": range(1, 4),
            "alpha": np.array([0.5, 0.1]),
        }
        expected = {
            "C": (1e-2, 1e2, "log"),
            "penalty": ["l1", "l2", None],
            "depth": {"ordinal": [1, 2, 3]},
            "alpha": [0.5, 0.1],
        }
        assert SearchSpace.of(given).space == Space.of(expected)

    def test_objects_are_choices(self):
        scaler = StandardScaler()
        space = SearchSpace.of({"scale": [scaler, MinMaxScaler(), "passthrough"]})
        assert space.space.parameters[0].choices == (
            "StandardScaler()", "MinMaxScaler()", "passthrough",
        )  # fmt: skip
        assert space.parameters({"scale": "StandardScaler()"})["scale"] is scaler
        assert space.parameters({"scale": "passthrough"}) == {"scale": "passthrough"}

    def test_objects_that_look_alike_are_refused(self):
        with refuses("choices-alike", field="scale", value="StandardScaler()"):
            SearchSpace.of({"scale": [StandardScaler(), StandardScaler()]})

    def test_objects_with_functions_are_written_alike_in_every_process(self):
        space = SearchSpace.of({"scale": [FunctionTransformer(double), StandardScaler()]})
        text = space.space.parameters[0].choices[0]
        assert text == "FunctionTransformer(func=<function double>)"

    def test_functions_without_names_are_told_apart(self):
        given = [FunctionTransformer(lambda x: x), FunctionTransformer(lambda x: -x)]
        space = SearchSpace.of({"scale": given})
        texts = space.space.parameters[0].choices
        assert [space.parameters({"scale": each})["scale"] for each in texts] == given

    @pytest.mark.parametrize("choices", [[1, 1.0, 0.1], [True, 1], [None, 0, "0", 0.0, False]])
    def test_equal_numbers_are_choices_of_their_own(self, choices):
        space = SearchSpace.of({"size": choices})
        found = space.space.parameters[0].choices
        assert len(found) == len(choices)
        back = [space.parameters({"size": each})["size"] for each in found]
        assert [(type(each), each) for each in back] == [(type(each), each) for each in choices]

    def test_a_number_that_is_named_twice_is_refused(self):
        for choices in ([1, 1, 2], [1, 1, 1.0]):
            with pytest.raises(SpaceError, match="'size'"):
                SearchSpace.of({"size": choices})

    @pytest.mark.parametrize(
        ("choices", "said"),
        [
            ([1, 1.0, float("nan")], "'size' must be other than NaN"),
            ([1, 1.0, "sq", "".join("sq")], r"`sq` 2 times.*'size': \['sq', 'sq'\]"),
            ([True, 1, None, None], r"`None` 2 times.*'size': \[None, None\]"),
        ],
    )
    def test_beside_equal_numbers_the_same_is_refused_as_elsewhere(self, choices, said):
        for given in (choices, np.array(choices, dtype=object)):
            with pytest.raises(SpaceError, match=said):
                SearchSpace.of({"size": given})

    def test_arrays_hold_any_choices_as_lists_do(self):
        scaler = StandardScaler()
        given = {
            "size": np.array([1, 1.0, 0.1], dtype=object),
            "scale": np.array([scaler, None], dtype=object),
            "grams": np.array([[1, 2], [1, 1]]),
            "depth": np.array([np.int64(1), np.float64(2.5)], dtype=object),
            "fixed": np.array(5),
        }
        found = SearchSpace.of(given)
        expected = {
            "size": ["1", "1.0", "0.1"],
            "scale": ["StandardScaler()", None],
            "grams": [(1, 2), (1, 1)],
            "depth": {"ordinal": [1, 2.5]},
            "fixed": 5,
        }
        assert found.space == Space.of(expected)
        back = found.parameters({"size": "1.0", "scale": "StandardScaler()"})
        assert type(back["size"]) is float
        assert back["scale"] is scaler

    def test_choices_that_bring_something_along_may_be_numbers_of_numpy(self):
        space = SearchSpace.of({"degree": {np.int64(2): {"coef": [0, 1]}, 3: {}}})
        assert space.parameters({"degree": 2, "degree:2:coef": 1}) == {"degree": 2, "coef": 1}

    def test_hyperparameters_of_a_choice_keep_their_names(self):
        tree, neighbours = DecisionTreeClassifier(), KNeighborsClassifier()
        space = SearchSpace.of(
            {"clf": {tree: {"clf__max_depth": (1, 5)}, neighbours: {"clf__p": [1, 2]}, "x": {}}}
        )
        config = {"clf": "KNeighborsClassifier()", "clf:KNeighborsClassifier():clf__p": 2}
        assert space.parameters(config) == {"clf": neighbours, "clf__p": 2}
        assert space.parameters({"clf": "x"}) == {"clf": "x"}

    def test_a_parameter_is_set_once(self):
        space = SearchSpace.of({"a": {"x": {"C": (1, 5)}}, "b": {"y": {"C": (1, 5)}}})
        with refuses("set-twice", field="C"):
            space.parameters({"a": "x", "a:x:C": 1, "b": "y", "b:y:C": 2})

    def test_a_list_of_spaces_is_refused(self):
        with refuses("list-of-spaces", kind=SpaceError):
            SearchSpace.of([{"C": [1]}])


class TestBatches:
    @pytest.mark.parametrize(
        ("workers", "splits", "size"),
        [(1, 5, 1), (2, 5, 1), (4, 5, 2), (8, 5, 3), (16, 5, 3), (4, 1, 4), (3, 3, 1), (64, 5, 11)],
    )
    def test_the_smallest_batch_that_keeps_workers_busy(self, workers, splits, size):
        assert batch_size(workers, splits) == size

    def test_batches_fill_the_workers(self):
        sizes = []

        class Counting(ForetuneSearchCV):
            def _run_search(self, evaluate_candidates):
                def counted(candidates, **given):
                    sizes.append(len(candidates))
                    return evaluate_candidates(candidates, **given)

                super()._run_search(counted)

        search = Counting(Moody(), {"level": (0.0, 1.0)}, method="random", n_iter=5, cv=5)
        with parallel_config("threading", n_jobs=4):
            search.fit(X, Y)
        assert sizes == [2, 2, 1]


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        a_search(LogisticRegression(), {"C": (0.1, 10.0, "log")}, n_iter=1, cv=2),
        a_search(BayesianRidge(), {"alpha_1": (1e-7, 1e-5, "log")}, n_iter=1, cv=2),
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_results_look_like_those_of_randomized_search():
    given = {"max_depth": stats.randint(1, 6), "criterion": ["gini", "entropy"]}
    settings = {"n_iter": 4, "cv": 3, "random_state": 0, "return_train_score": True}
    theirs = RandomizedSearchCV(DecisionTreeClassifier(random_state=0), given, **settings)
    ours = a_search(space=given, **settings).fit(X, Y)
    assert set(ours.cv_results_) == {*theirs.fit(X, Y).cv_results_, "chosen_by"}
    for name, column in ours.cv_results_.items():
        assert len(column) == 4, name
    best = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {name: [value] for name, value in ours.best_params_.items()},
        cv=3,
    ).fit(X, Y)
    assert ours.best_score_ == best.best_score_
    assert ours.best_estimator_.get_params()["max_depth"] == ours.best_params_["max_depth"]
    assert ours.score(X, Y) > 0.9
    assert ours.n_features_in_ == 4


def test_the_model_chooses_after_the_first_trials():
    search = a_search(Moody(), {"level": (0.0, 1.0)}, n_iter=12, method=None).fit(X, Y)
    assert search.cv_results_["chosen_by"].tolist() == ["start"] * 5 + ["mixture-ei"] * 7
    assert abs(search.best_params_["level"] - 0.7) < 0.02


def test_the_same_seed_gives_the_same_search():
    first, again = a_search().fit(X, Y), a_search().fit(X, Y)
    assert first.cv_results_["params"] == again.cv_results_["params"]
    other = a_search(random_state=np.random.RandomState(5)).fit(X, Y)
    assert first.cv_results_["params"] != other.cv_results_["params"]


def test_inactive_hyperparameters_stay_as_the_estimator_has_them():
    space = {"mode": {"plain": {}, "other": {"extra": (1, 9)}}, "level": (0.0, 1.0)}
    search = a_search(Moody(extra=42), space, n_iter=8).fit(X, Y)
    for parameters in search.cv_results_["params"]:
        assert ("extra" in parameters) == (parameters["mode"] == "other")
    masked = np.ma.getmaskarray(search.cv_results_["param_extra"])
    assert masked.tolist() == [p["mode"] == "plain" for p in search.cv_results_["params"]]
    assert 0 < masked.sum() < 8
    plain = clone(search).set_params(space={"mode": {"plain": {}}, "level": (0.0, 1.0)})
    assert plain.fit(X, Y).best_estimator_.extra == 42


def test_config_space_with_conditions():
    space = ConfigurationSpace()
    mode, extra = Categorical("mode", ["plain", "other"]), Integer("extra", (1, 9))
    space.add(mode, extra, Float("level", (0.0, 1.0)))
    space.add(EqualsCondition(extra, mode, "other"))
    search = a_search(Moody(), space, n_iter=8).fit(X, Y)
    assert {"extra" in p for p in search.cv_results_["params"]} == {True, False}


def test_steps_of_a_pipeline():
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", GaussianNB())])
    space = {
        "scale": [MinMaxScaler(), "passthrough"],
        "clf": {
            GaussianNB(): {"clf__var_smoothing": (1e-9, 1e-1, "log")},
            KNeighborsClassifier(): {"clf__n_neighbors": stats.randint(1, 20)},
        },
    }
    search = a_search(pipeline, space, n_iter=8).fit(X, Y)
    assert search.best_score_ > 0.9
    assert {type(p["clf"]) for p in search.cv_results_["params"]} == {
        GaussianNB, KNeighborsClassifier,
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(search)).predict(X).tolist() == search.predict(X).tolist()


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_failed_candidates_are_in_the_results_and_teach():
    with pytest.warns(FitFailedWarning, match="below 0"):
        search = a_search(Moody(), {"level": (-1.0, 1.0)}, n_iter=10).fit(X, Y)
    levels = np.array([p["level"] for p in search.cv_results_["params"]])
    scores = search.cv_results_["mean_test_score"]
    assert len(levels) == 10
    assert (np.isnan(scores) == (levels < 0)).all()
    assert 0 < np.isnan(scores).sum() < 10
    assert scores[~np.isnan(scores)] == pytest.approx(1 - (levels[levels >= 0] - 0.7) ** 2)
    assert search.best_index_ == np.nanargmax(scores)
    known = search.to_experience("iris").task("iris")
    assert (known.status == np.where(levels < 0, Status.FAILED, Status.DONE)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize("jobs", [1, 4])
def test_failures_are_failures_whatever_they_score(jobs):
    # Alone in a batch, and (with several workers) in one where others succeed.
    settings = {"n_iter": 10, "cv": 2, "random_state": 0, "method": "random"}
    search = Watched(Moody(), {"level": (-1.0, 1.0)}, error_score=0.0, **settings)
    with parallel_config("threading", n_jobs=jobs):
        search.fit(X, Y)
    levels = np.array([p["level"] for p in search.cv_results_["params"]])
    assert 0 < (levels < 0).sum() < 10
    assert (search.cv_results_["mean_test_score"][levels < 0] == 0.0).all()
    expected = np.where(levels < 0, Status.FAILED, Status.DONE)
    told = search.optimizer_.told
    assert (np.isnan(told.losses[:, 0]) == (levels < 0)).all()
    known = search.to_experience("iris")
    assert (known.status == expected).all()
    assert (np.isnan(known.values[:, 0]) == (levels < 0)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_candidate_of_which_one_fit_fails_has_failed():
    class Choosy(Moody):
        def fit(self, X, y):
            if self.level > 0.5 and len(X) and (X[0] == X_FIRST).all():
                raise ValueError("not with this row")
            return super().fit(X, y)

    search = a_search(Choosy(), {"level": (0.0, 1.0)}, error_score=0.0, cv=KFold(3)).fit(X, Y)
    levels = np.array([p["level"] for p in search.cv_results_["params"]])
    status = search.to_experience("iris").status
    assert (status == np.where(levels > 0.5, Status.FAILED, Status.DONE)).all()
    assert 0 < (levels > 0.5).sum() < len(levels)


def test_a_failure_may_raise():
    with pytest.raises(ValueError, match="below 0"):
        a_search(Moody(), {"level": (-1.0, -0.5)}, error_score="raise").fit(X, Y)


def test_a_search_without_success_raises_what_happened():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        with pytest.raises(ValueError, match="below 0"):
            a_search(Moody(), {"level": (-1.0, -0.5)}, n_iter=2).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_a_search_without_success_counts_all_candidates():
    with pytest.raises(ValueError, match=r"(?s)None of the 4 candidates .* in 4 batches.*below 0"):
        a_search(Moody(), {"level": (-1.0, -0.5)}, n_iter=4).fit(X, Y)


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="levle"):
        a_search(Moody(), {"levle": (0.0, 1.0)}).fit(X, Y)


def test_several_metrics_follow_refit():
    scoring = {"right": "accuracy", "balance": "balanced_accuracy"}
    search = a_search(scoring=scoring, refit="balance").fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_balance"].max()
    known = search.to_experience("iris")
    assert [metric.name for metric in known.metrics] == ["right", "balance"]
    both = a_search(scoring=scoring, refit=False, method="gcp", n_iter=7).fit(X, Y)
    assert both.cv_results_["chosen_by"].tolist()[-1] == "ei"


def test_scoring_may_be_a_function():
    def scored(estimator, X, y):
        return {"a": estimator.score(X, y), "b": 0.0}

    search = a_search(Moody(), {"level": (0.0, 1.0)}, scoring=scored, refit="a").fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_a"].max()
    with refuses("unknown-metric", field="refit", value="score"):
        a_search(Moody(), {"level": (0.0, 1.0)}, scoring=scored, refit=True).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.parametrize(
    "refit", [False, lambda results: results["rank_test_near"].argmin()], ids=["none", "a function"]
)
def test_all_that_a_function_scores_is_optimised_where_refit_names_none(refit):
    def scored(estimator, X, y):
        return {"near": -abs(estimator.level), "far": abs(estimator.level)}

    # The first candidates fail, so that nothing is known about the metrics for a while.
    space = {"level": {"ordinal": [-4.0, -3.0, -2.0, -1.0, 0.1, 0.2]}}
    settings = {"n_iter": 6, "cv": 3, "random_state": 9, "method": "gcp", "error_score": -9.0}
    search = Watched(Moody(), space, scoring=scored, refit=refit, **settings).fit(X, Y)
    assert search.cv_results_["params"][0]["level"] < 0
    told = search.optimizer_.told
    levels = np.array([p["level"] for p in search.cv_results_["params"]])[: len(told)]
    losses = np.column_stack([levels, -levels])
    losses[levels < 0] = np.nan
    np.testing.assert_allclose(told.losses, losses)
    assert [m.name for m in search.to_experience("iris").metrics] == ["near", "far"]


def test_all_candidates_meet_the_same_splits():
    search = a_search(
        GaussianNB(), {"var_smoothing": {"ordinal": [1e-9, 2e-9, 3e-9]}}, n_iter=3,
        cv=ShuffleSplit(2, random_state=np.random.RandomState(0)),
    ).fit(X, Y)  # fmt: skip
    # The setting hardly matters, so that different scores would come from different splits.
    for split in range(2):
        assert len(set(search.cv_results_[f"split{split}_test_score"])) == 1


def test_splits_may_be_given_as_a_generator():
    splits = KFold(4, shuffle=True, random_state=0).split(X)
    assert a_search(cv=splits).fit(X, Y).n_splits_ == 4


@pytest.mark.parametrize(
    ("cv", "said"), [(60, "n_splits=60 cannot be greater"), (GroupKFold(3), "'groups' parameter")]
)
def test_rows_that_cannot_be_split_are_no_failure_of_a_candidate(cv, said):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitFailedWarning)
        with pytest.raises(ValueError, match=f"^[^\\n]*{said}"):
            a_search(cv=cv).fit(X, Y)


class NoSplits:
    def split(self, X, y=None, groups=None):
        return iter(())

    def get_n_splits(self, X=None, y=None, groups=None):
        return 0


@pytest.mark.parametrize("cv", [[], (), iter(()), NoSplits()], ids=lambda cv: type(cv).__name__)
def test_splits_that_are_none_are_no_failure_of_a_candidate(cv):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitFailedWarning)
        with refuses("no-splits", field="cv", kind=UsageError):
            a_search(cv=cv).fit(X, Y)


def test_a_generator_of_splits_is_refused_by_the_second_fit():
    search = a_search(cv=KFold(3, shuffle=True, random_state=0).split(X)).fit(X, Y)
    with refuses("no-splits", field="cv"):
        search.fit(X, Y)


def test_a_space_may_have_fewer_candidates():
    search = a_search(space={"max_depth": [1, 2, 3]}, n_iter=10).fit(X, Y)
    assert sorted(p["max_depth"] for p in search.cv_results_["params"]) == [1, 2, 3]


def test_ctrl_c_keeps_what_is_there():
    calls = []

    def scored(estimator, X, y):
        calls.append(estimator)
        if len(calls) == 3 * 2 + 1:
            raise KeyboardInterrupt
        return estimator.score(X, y)

    search = a_search(Moody(), {"level": (0.0, 1.0)}, scoring=scored, n_iter=50).fit(X, Y)
    assert len(search.cv_results_["params"]) == 2
    assert len(search.to_experience("iris")) == 2
    assert search.best_estimator_.level == search.best_params_["level"]


def test_experience_starts_the_next_search(tmp_path):
    space = {"level": (0.0, 1.0)}
    first = a_search(Moody(), space, n_iter=8, random_state=1).fit(X, Y)
    second = a_search(Moody(), space, n_iter=8, random_state=2).fit(X, Y)
    described = second.to_experience("two", meta_features={"rows": 150.0})
    known = first.to_experience("one").merge(described)
    assert known.tasks == ("one", "two")
    assert known.meta_features["two"] == {"rows": 150.0}
    known.save(tmp_path / "past.parquet")
    for experience in (known, tmp_path / "past.parquet", str(tmp_path / "past.parquet")):
        third = a_search(Moody(), space, experience=experience, method="ws-gp", n_iter=2)
        third = clone(third).fit(X, Y)
        assert third.cv_results_["chosen_by"][0] == "start"
        assert third.best_params_["level"] in (
            first.best_params_["level"], second.best_params_["level"],
        )  # fmt: skip


def test_counts_and_shares_are_tried_as_what_they_are():
    space = {"max_features": [1, np.float64(1.0), 0.5]}
    search = a_search(space=space).fit(X, Y)
    tried = {repr(each["max_features"]) for each in search.cv_results_["params"]}
    assert tried == {"1", "1.0", "0.5"}
    again = a_search(space=space, experience=search.to_experience("one"), method="ws-gp")
    assert again.fit(X, Y).best_params_ == search.best_params_


def test_experience_of_a_wider_space_and_another_metric():
    wide = a_search(Moody(), {"level": (0.0, 1.0)}, n_iter=12).fit(X, Y).to_experience("one")
    narrow = a_search(
        Moody(), {"level": (0.5, 1.0)}, experience=wide, method="ws-gp", scoring="accuracy",
        n_iter=2,
    )  # fmt: skip
    with warns("past-runs-of-another-space"):
        narrow.fit(X, Y)
    assert narrow.cv_results_["chosen_by"][0] == "start"
    assert [m.name for m in narrow.to_experience("two").metrics] == ["accuracy"]
    with refuses("no-run-inside", field="level", kind=ExperienceError):
        a_search(Moody(), {"level": (2.0, 3.0)}, experience=wide, method="ws-gp").fit(X, Y)


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_warnings_name_the_line_that_asked_for_the_search():
    past = a_search(Moody(), {"level": (0.0, 1.0)}, n_iter=12).fit(X, Y).to_experience("one")
    narrow = a_search(Moody(), {"level": (0.5, 1.0)}, experience=past, method="ws-gp", n_iter=1)
    failing = a_search(Moody(), {"level": [-1.0, 0.5]})
    searches = [
        (lambda: narrow.fit(X, Y), ForetuneWarning),
        (lambda: cross_val_score(narrow, X, Y, cv=2), ForetuneWarning),
        (lambda: failing.fit(X, Y), FitFailedWarning),
    ]
    for search, category in searches:
        with pytest.warns(category) as said:
            search()
        own = [each.filename for each in said if each.category is category]
        assert set(own) == {__file__}


def test_values_that_earlier_searches_left_unset_are_the_estimators_defaults():
    past = a_search(Moody(), {"level": (0.0, 1.0)}, n_iter=12).fit(X, Y).to_experience("one")
    best = max(zip(past.values[:, 0], past.configs.dicts(), strict=True), key=lambda of: of[0])[1]
    now = {"level": (0.0, 2.0), "extra": (0, 9), "mode": ["odd", "plain"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ForetuneWarning)
        search = a_search(Moody(extra=4), now, experience=past, method="ws-gp", n_iter=1)
        search.fit(X, Y)
    assert search.best_params_ == {**best, "extra": 4, "mode": "plain"}
    odd = Moody(extra=44)  # a value that is not searched
    search = clone(search).set_params(estimator=odd)
    with warns("past-runs-of-another-space"):
        search.fit(X, Y)


class TestWhatPastRunsDidNotSet:
    """The pipeline has a LogisticRegression(C=7)."""

    PIPELINE = Pipeline([("scale", StandardScaler()), ("clf", LogisticRegression(C=7))])
    SVM, LINEAR = SVC(C=100), LogisticRegression(C=7)
    RANGE = (0.1, 1000.0, "log")

    def assumed(self, past, now):
        past, now = SearchSpace.of(past), SearchSpace.of(now)
        return now.values_of(self.PIPELINE, past=past.space)

    def test_unset_values_of_a_chosen_step_are_its_defaults(self):
        past = {"clf": [self.SVM, self.LINEAR]}
        now = {"clf": {self.SVM: {"clf__C": self.RANGE}, self.LINEAR: {}}}
        assert self.assumed(past, now)["clf:SVC(C=100):clf__C"] == 100
        search = a_search(self.PIPELINE, past).fit(X, Y)
        search.set_params(space=now, experience=search.to_experience("one"), method="zero-shot")
        tried = search.fit(X, Y).cv_results_["params"]
        assert next(each["clf__C"] for each in tried if each["clf"] is self.SVM) == 100

    def test_steps_of_chosen_steps_are_asked_as_well(self):
        inner = Pipeline([("scale", MinMaxScaler()), ("svm", SVC(C=30))])
        same, other = SVC(C=30), SVC(C=5)
        now = {same: {"clf__svm__C": self.RANGE}, other: {"clf__svm__C": self.RANGE}}
        for past in ({inner: {}, self.SVM: {}}, {inner: {"clf__svm": [same, other]}}):
            found = self.assumed({"clf": past}, {"clf": {inner: {"clf__svm": now}}})
            values = [value for name, value in found.items() if name.startswith("clf:")]
            assert sorted(values, key=str) == [30, 5, "SVC(C=30)"]

    def test_what_a_choice_that_is_no_step_brings_along_was_as_the_estimator_has_it(self):
        now = {"clf__penalty": {"l2": {"clf__C": self.RANGE}, None: {}}}
        assert self.assumed({"clf__tol": self.RANGE}, now)["clf__penalty:l2:clf__C"] == 7

    @pytest.mark.parametrize("now", [{}, {"clf": [SVM, LINEAR]}, {"clf": {SVM: {}, "drop": {}}}])
    def test_nobody_knows_what_belonged_to_one_of_several_steps(self, now):
        found = self.assumed({"clf": [self.SVM, self.LINEAR]}, now | {"clf__C": self.RANGE})
        assert "clf__C" not in found

    def test_values_under_another_name_replace_the_estimators_default(self):
        nested = {"clf__penalty": {"l2": {"clf__C": self.RANGE}, None: {}}}
        flat = {"clf__penalty": ["l2", None], "clf__C": self.RANGE}
        assert "clf__C" not in self.assumed(nested, flat)
        assert "clf__penalty:l2:clf__C" not in self.assumed(flat, nested)

    def test_values_of_one_step_do_not_count_for_another(self):
        past = {"clf": {self.SVM: {}, self.LINEAR: {"clf__C": self.RANGE}}}
        now = {"clf": {each: {"clf__C": self.RANGE} for each in (self.SVM, self.LINEAR)}}
        assert self.assumed(past, now)["clf:SVC(C=100):clf__C"] == 100

    def test_a_step_was_the_one_of_the_pipeline(self):
        now = {"scale": [MinMaxScaler(), StandardScaler(), "passthrough"], "clf__C": self.RANGE}
        found = self.assumed({"clf__C": self.RANGE}, now)
        assert found["scale"] == "StandardScaler()"

    def test_a_number_that_is_written_as_a_text_was_what_it_is(self):
        now = SearchSpace.of({"max_features": [1, 1.0, 0.5], "max_depth": [2, 3]})
        forest = RandomForestRegressor(max_features=1.0)
        past = Space.of({"max_depth": (2, 3)})
        assert now.values_of(forest, past=past)["max_features"] == "1.0"

    def test_values_left_by_a_condition_are_the_estimators_defaults(self):
        """Although other runs, which had set it, say something of it."""
        past, now = ConfigurationSpace(), ConfigurationSpace()
        for space in (past, now):
            space.add(Categorical("mode", ["plain", "other"]), Integer("extra", (1, 9)))
            space.add(Float("level", (0.0, 1.0)))
        past.add(EqualsCondition(past["extra"], past["mode"], "other"))
        known = a_search(Moody(extra=4), past, n_iter=8).fit(X, Y).to_experience("one")
        plain = [each for each in known.configs.dicts() if each["mode"] == "plain"]
        assert 0 < len(plain) < 8
        search = a_search(Moody(extra=4), now, experience=known, method="zero-shot", n_iter=8)
        tried = search.fit(X, Y).cv_results_["params"]
        assert all({**each, "extra": 4} in tried for each in plain)


class TestCountsAndShares:
    """To many a parameter of scikit-learn 1 is one, and 1.0 is all."""

    def after(self, past, now, name="max_features"):
        """What is tried in the one space after a search of the other."""
        search = a_search(space={name: past, **DEPTH}, n_iter=8).fit(X, Y)
        known, now = search.to_experience("one"), {name: now, **DEPTH}
        search.set_params(space=now, experience=known, method="zero-shot").fit(X, Y)
        assert search.cv_results_["chosen_by"][0] == "start"  # by what the past has taught
        return [repr(each[name]) for each in search.cv_results_["params"]]

    @pytest.mark.parametrize(
        ("past", "now", "known"),
        [
            ([1.0, 0.5], [1, 0.5], "0.5"),
            ([1, 0.5], [1.0, 0.5], "0.5"),
            ([1.0, 2], (1, 4), "2"),
            ([1, 0.5], (0.4, 1.0), "0.5"),
            (np.array([0.5, 1.0]), {"ordinal": [0.5, 1]}, "0.5"),
        ],
    )
    def test_past_runs_of_the_one_say_nothing_of_the_other(self, past, now, known):
        with warns("counts-and-shares", value={"max_features": 3}) as said:
            assert self.after(past, now)[:3] == [known] * 3
        assert [each.filename for each in said] == [__file__]

    @pytest.mark.parametrize(("past", "now"), [((1, 4), (0.2, 1.0)), ((0.2, 1.0), (1, 4))])
    def test_an_experience_of_nothing_else_is_refused(self, past, now):
        with refuses("counts-and-shares", value={"max_features": 8}):
            self.after(past, now)

    @pytest.mark.parametrize(
        ("past", "now"),
        [((1, 4), (1, 5)), ([0.5, 1.0], (0.2, 1.0)), ((0.5, 1.0), np.array([0.5, 1.0])),
         (["sqrt", 0.5], ["sqrt", 0.5, 1.0])],
    )  # fmt: skip
    def test_past_runs_of_the_same_teach(self, past, now):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ForetuneWarning)
            self.after(past, now)

    def test_what_is_settled_now_leaves_nothing_out(self):
        with warns("past-runs-of-another-space"):
            self.after((1, 4), 1.0)

    def test_other_parameters_take_numbers_as_numbers(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ForetuneWarning)
            self.after([0, 1], (0.0, 1.0), "ccp_alpha")

    def test_values_of_the_estimator_are_distinguished_too(self):
        forest, past = RandomForestRegressor(max_features=1.0), Space.of({"max_depth": (1, 3)})
        for now in ((1, 4), [1, 0.5]):
            assert SearchSpace.of({"max_features": now}).values_of(forest, past=past) == {}
        found = SearchSpace.of({"max_features": (0.5, 1.0)}).values_of(forest, past=past)
        assert found == {"max_features": 1.0}

    @pytest.mark.parametrize("nested", [True, False])
    def test_steps_are_asked_what_they_tell_apart(self, nested):
        tree, line = DecisionTreeClassifier(), LogisticRegression()
        inner = Pipeline([("tree", tree)])

        def space(values):
            if not nested:
                return SearchSpace.of({"clf": [tree, line], "clf__max_features": values})
            brought = {"clf__tree__max_features": values}
            return SearchSpace.of({"clf": {inner: brought, line: {}}})

        past = space((0.5, 1.0)).space.sample(8, seed=0)
        (confused,) = space((1, 4)).find_ambiguous_counts(past, Pipeline([("clf", line)])).values()
        assert confused.tolist() == past.active[:, -1].tolist()
        assert confused.any()


def test_a_prior_may_be_given(tmp_path):
    past = a_search(Moody(), {"level": (0.0, 1.0)}, n_iter=8).fit(X, Y).to_experience("one")
    prior = method("ws-gp").learn(past, seed=0)
    prior.save(tmp_path / "prior")
    for given in (prior, tmp_path / "prior"):
        search = a_search(Moody(), {"level": (0.0, 1.0)}, prior=given, method="ws-gp", n_iter=1)
        assert search.fit(X, Y).cv_results_["chosen_by"].tolist() == ["start"]


def test_the_default_method_begins_where_an_earlier_search_ended(monkeypatch):
    assert METHODS[search_cv.DEFAULT].transfers
    monkeypatch.setattr(search_cv, "DEFAULT", "ws-gp")
    alone = a_search(Moody(), {"level": (0.0, 1.0)}, method="sobol").fit(X, Y)
    past = alone.to_experience("one")
    taught = clone(alone).set_params(method=None, experience=past, n_iter=1).fit(X, Y)
    assert taught.cv_results_["chosen_by"].tolist() == ["start"]
    assert taught.best_params_ == alone.best_params_


def test_settings_that_do_not_fit_are_refused():
    with refuses("not-a-count", field="n_iter", value=0):
        a_search(n_iter=0).fit(X, Y)
    with refuses("not-a-count", field="n_iter", value="a"):
        a_search(n_iter="a").fit(X, Y)
    with refuses("unknown-method", value="gpc", kind=MethodError):
        a_search(method="gpc").fit(X, Y)
    with pytest.raises(MethodError, match="experience"):
        a_search(method="ws-gp").fit(X, Y)
    with refuses("not-an-experience", value=5):
        a_search(experience=5).fit(X, Y)
    with refuses("not-a-prior", value=5):
        a_search(prior=5).fit(X, Y)


def test_it_beats_the_default_settings_on_real_data():
    features, labels = load_breast_cancer(return_X_y=True)
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", KNeighborsClassifier(1))])
    space = {"clf__n_neighbors": (1, 40, "log"), "clf__weights": ["uniform", "distance"]}
    search = a_search(pipeline, space, method="gcp", n_iter=8).fit(features, labels)
    default = a_search(pipeline, {"clf__n_neighbors": [1]}, n_iter=1).fit(features, labels)
    assert search.best_score_ > default.best_score_
