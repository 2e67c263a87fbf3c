"""A fit as scikit-learn estimators: a classifier and a regressor."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from foretune._base.arrays import Floats
from foretune._base.data_frames import with_columns
from foretune._base.files import write_text
from foretune._base.names import quote_names
from foretune.automl.final_model.fit import FinalModel
from foretune.automl.fit_data import TableInMemory
from foretune.automl.fit_result import FitResult
from foretune.automl.fit_story import ReportTexts, facts, story
from foretune.automl.job import Job
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import FitOptions
from foretune.automl.sklearn_input import (
    as_array,
    as_frame,
    new_name,
    with_roles,
    without_times,
)
from foretune.errors import ForetuneWarning, UsageError
from foretune.experience import Experience
from foretune.report.page import page
from foretune.run.executor_choice import HERE
from foretune.tables import LEAST_ROWS, ColumnRoles, Table, Task, no_mark

TARGET = "target"
ESTIMATOR_TRIALS = 20
"""Fewer trials than the command runs, because an estimator is often fitted many times."""


class _ForetuneEstimator(BaseEstimator):  # type: ignore[misc]
    """The common parts of the classifier and the regressor."""

    _task: Task

    def __init__(  # noqa: PLR0913 - one argument a setting, as scikit-learn wants it
        self,
        *,
        trials: int | None = ESTIMATOR_TRIALS,
        seconds: float | None = None,
        metric: str | None = None,
        space: str | None = None,
        only: tuple[str, ...] = (),
        method: str = "auto",
        jobs: int | None = None,
        ensemble: int | None = None,
        refit: bool = False,
        transfer: bool = True,
        remember: bool = False,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.trials = trials
        self.seconds = seconds
        self.metric = metric
        self.space = space
        self.only = only
        self.method = method
        self.jobs = jobs
        self.ensemble = ensemble
        self.refit = refit
        self.transfer = transfer
        self.remember = remember
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Search for a pipeline and fit it to all rows.

        sample_weight: (n,), how much rows count, in learning and in scores; 0 omits a row.
        groups: (n,), rows of one value are scored by pipelines that have seen none of them. order:
        (n,), numbers or dates; rows are scored by pipelines that have seen only earlier ones.
        """
        frame, target, roles = self._training(
            X, y, sample_weight=sample_weight, groups=groups, order=order
        )
        table = Table.of(frame, target, name=type(self).__name__, task=self._task, roles=roles)
        self._search(table, target)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return predictions (n,)."""
        check_is_fitted(self)
        return self.model_.predict(self._frame(X))

    @property
    def _final(self) -> FinalModel:
        check_is_fitted(self)
        if self.fit_.final is None:
            raise ValueError("the job of an estimator always fits a final model")
        return self.fit_.final

    @property
    def best_config_(self) -> dict[str, Any]:
        """The configuration of the best trial that could be fitted to all rows."""
        check_is_fitted(self)
        return dict(self._final.best.config)

    @property
    def best_score_(self) -> float:
        """The metric of that trial, on rows that it had not learnt from."""
        check_is_fitted(self)
        return float(self._final.best.values[self.fit_.plan.metric.name])

    @property
    def trials_(self) -> pd.DataFrame:
        """One row for each trial that ended: its configuration, values and reason."""
        check_is_fitted(self)
        ended = [trial for trial in self.fit_.trials if trial.is_over]
        frame = self.fit_.experience().to_frame().drop(columns="task")
        return frame.assign(
            chosen_by=[trial.chosen_by for trial in ended],
            reason=[trial.reason for trial in ended],
        )

    def report(self, path: str | Path | None = None) -> str:
        """Return the report of the search, an HTML page, and write it to `path` if given."""
        check_is_fitted(self)
        if path is not None:
            _check_page(Path(path))
        fit, words = self.fit_, ReportTexts(title=type(self).__name__)
        told = story(fit, fit.plan.table, words)
        text = page(replace(told, facts=self.facts_))
        if path is not None:
            write_text(Path(path), text)
        return text

    # Searching

    def _search(self, table: Table, target: str) -> None:
        """Run the job that these arguments describe."""
        result = self._describe_job(table, target).run()
        if result.final is not None and result.final.remark:
            warnings.warn(ForetuneWarning(result.final.remark, rule="model-remark"), stacklevel=3)
        self._keep(result, facts(table))

    def _describe_job(self, table: Table, target: str) -> Job:
        return Job(
            data=TableInMemory(table, target),
            options=self._options(),
            transfer=self.transfer,
            remember=self.remember,
            executor=None if self.jobs is None else HERE,
        )

    def _keep(self, fit: FitResult, about_table: list[tuple[str, str]]) -> None:
        """Keep the result without rows and open files, so that the estimator can be pickled."""
        no_rows = fit.plan.table.rows(np.empty(0, dtype=np.int64))
        knowledge = None if fit.knowledge is None else _detach_from_files(fit.knowledge)
        self.model_ = fit.model
        self.facts_ = about_table
        self.fit_ = replace(fit, plan=replace(fit.plan, table=no_rows), knowledge=knowledge)

    def _options(self) -> FitOptions:
        if isinstance(self.only, str):
            raise UsageError(
                f"only must be a sequence of estimators, but got the text '{self.only}': write "
                f"({self.only!r},)",
                rule="text-for-sequence",
                field="only",
                value=self.only,
            )
        return FitOptions(
            trials=self.trials,
            seconds=self.seconds,
            metric=self.metric,
            space=self.space,
            only=tuple(self.only),
            method=self.method,
            jobs=1 if self.jobs is None else self.jobs,
            ensemble=self.ensemble,
            refit=self.refit,
            seed=_seed(self.random_state),
        )

    # Arguments from scikit-learn

    def _training(
        self, X: ArrayLike, y: ArrayLike, **given: ArrayLike | None
    ) -> tuple[pd.DataFrame, str, ColumnRoles]:
        """Return all columns in one table, the name of the target, and the roles of columns.

        given: groups, order or weights of the rows.
        """
        x, target = validate_data(
            self,
            without_times(X),
            as_array(y),
            dtype=None,
            ensure_all_finite="allow-nan",
            ensure_min_samples=LEAST_ROWS,
            y_numeric=self._task is Task.REGRESSION,
        )
        frame = as_frame(X, x)
        self._columns, self._from_frame = tuple(frame.columns), isinstance(X, pd.DataFrame)
        frame, roles = with_roles(frame, **given)
        # Rows of weight 0 are removed before the classes are counted.
        counts = roles.find_weighted_rows(frame, np.ones(len(frame), dtype=np.bool_), no_mark)
        name = new_name(TARGET, frame)
        return with_columns(frame[counts], {name: self._target(target[counts])}), name, roles

    def _frame(self, X: ArrayLike) -> pd.DataFrame:
        """Return X with the columns of the fit: by name if both have names, else by position."""
        x = validate_data(
            self, without_times(X), dtype=None, ensure_all_finite="allow-nan", reset=False
        )
        frame = as_frame(X, x)
        named = self._from_frame and isinstance(X, pd.DataFrame)
        if named and set(frame.columns) == set(self._columns):
            return frame
        return frame.set_axis(list(self._columns), axis="columns")

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


class ForetuneClassifier(ClassifierMixin, _ForetuneEstimator):  # type: ignore[misc]
    """A classifier that finds its own pipeline, starting from what worked on other datasets.

    Arguments:
        trials, seconds: the limits of the fit, with time left for the model; either may be None.
        metric: log_loss, accuracy, balanced_accuracy, auc, f1_macro, matthews or brier. The
            default is log_loss. If a class is rare, a class is chosen by how far its probability
            exceeds its share of the rows.
        space, only: a shipped space, and the estimators to which it is narrowed.
        method: an entry of the registry.
        jobs: worker processes with limits of time and memory; None runs trials in this process.
        ensemble: the most pipelines in a blend; 1 means the best one alone. Default: 25, or 5 with
            `refit`.
        refit: whether the pipelines of the model learn from all rows once more. Otherwise the
            model averages the pipelines that the trials fitted to their folds.
        transfer: whether past datasets teach the search.
        remember: whether this search learns from earlier ones of the user, and teaches later ones.

    Example:
        >>> classifier = ForetuneClassifier(trials=10).fit(X, y)
        >>> classifier.predict_proba(X_new)
    """

    _task = Task.CLASSIFICATION

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return probabilities (n, classes), in the order of `classes_`."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._frame(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return labels (n,)."""
        codes = super().predict(X)
        labels: NDArray[Any] = self.classes_[codes.astype(np.int64)]
        return labels

    def _target(self, y: NDArray[Any]) -> NDArray[Any]:
        try:
            classes, codes = np.unique(y, return_inverse=True)
        except TypeError:
            kinds = sorted({type(label).__name__ for label in y})
            raise UsageError(
                f"the labels in y must be of one type, but got {quote_names(kinds)}: write all of "
                "them "
                "as texts, or all as numbers",
                rule="mixed-labels",
                field="y",
                value=kinds,
            ) from None
        check_classification_targets(y)
        if len(classes) < 2:
            # The error is raised here, because the table has only codes.
            raise UsageError(
                f"a classification needs at least two classes, but y holds only '{classes[0]}': "
                "add rows of another class",
                rule="one-class",
                field="y",
                value=classes[0],
            )
        self.classes_ = classes
        return codes


class ForetuneRegressor(RegressorMixin, _ForetuneEstimator):  # type: ignore[misc]
    """A regressor that finds its own pipeline, with the arguments of `ForetuneClassifier`.

    The metrics are r2 (by default), rmse, mae, median_absolute_error and mape.
    """

    _task = Task.REGRESSION


def _check_page(path: Path) -> None:
    """Refuse a path where no page can be written."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise UsageError(
            f"the folder of a report must exist, but there is no '{folder}': make it first",
            rule="missing-folder",
            field="path",
            value=str(folder),
        )
    if path.is_dir():
        raise UsageError(
            f"a report must be a file, but '{path}' is a folder: name a file in it",
            rule="file-is-folder",
            field="path",
            value=str(path),
        )


def _seed(state: int | np.random.RandomState | None) -> int:
    """Return the number itself, or a number drawn from the state."""
    if isinstance(state, int | np.integer):
        return int(state)
    return int(check_random_state(state).randint(np.iinfo(np.int32).max))


def _detach_from_files(knowledge: FitKnowledge) -> FitKnowledge:
    """Return the knowledge without the files it was read from."""
    sources = tuple(replace(source, open=_open_shipped_experience) for source in knowledge.sources)
    return replace(knowledge, sources=sources, shelves=())


def _open_shipped_experience() -> Experience:
    raise ValueError("the experience of a fit is not kept with it")
