"""A replacement for scikit-learn's RandomizedSearchCV and HalvingRandomSearchCV that learns.

Candidates are chosen here, batch by batch. scikit-learn evaluates and ranks them, and fits the
best one again.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.integrations.estimator_space import SearchSpace, own_name
from foretune.integrations.search_experience import drop_ambiguous_counts, make_experience
from foretune.integrations.search_folds import OneFold, clear_unused_folds
from foretune.integrations.search_loop import Candidate, CandidateLoop, metric_names
from foretune.integrations.search_messages import (
    NO_SPLITS,
    level_of_the_user,
    no_result_error,
    no_splits_error,
)
from foretune.integrations.search_resource import (
    FOLDS,
    ROWS,
    Resource,
    SameSplits,
    ShareOfSplits,
    check_resource,
    plan_resource,
)
from foretune.methods.contracts import Prior, Target
from foretune.search import Method, Optimizer, method
from foretune.search.arguments import carry_over_past, load_experience, load_prior
from foretune.search.prior_cache import prior_of
from foretune.space import Space

DEFAULT = "auto"
"""The method that is used if none is named."""
SCORE = "score"
"""What scikit-learn calls the only metric."""

Results: TypeAlias = dict[str, Any]
Evaluate: TypeAlias = Callable[..., Results]


class ForetuneSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Searches the hyperparameters of any estimator by cross-validation.

    Arguments:
        estimator: anything with `fit`, and with `score` unless `scoring` is given.
        space: what may be set: a dict of lists (choices), tuples (ranges) and distributions of
            scipy.stats; a `Space`; or a ConfigurationSpace. Names are scikit-learn's (`clf__C`).
            Hyperparameters that belong to a choice are in a dict: {"kernel": {"rbf": {}, "poly":
            {"degree": (2, 5)}}}. With other choices they stay as the estimator has them.
        experience: what earlier searches found, or its path; see `to_experience`. The space may
            have changed since: a warning says which part is used. What earlier searches did not
            set had the value of the estimator.
        prior: what a method has learnt from experience before, or its path.
        method: an entry of the registry (`foretune methods`). Default: `auto`.
        n_iter: the number of candidates, or fewer if the space has fewer.
        missing: what to do with past runs that lack a value, as for `Experience.in_space`.
        resource: stop poor candidates early. All candidates begin with few resources, and one of
            `factor` goes on with more: `n_samples` (rows to learn from), `n_splits` (folds to score
            on), or a hyperparameter of the estimator, such as `n_estimators`. `cv_results_` has the
            columns `iter` and `n_resources`.
        min_resources: of the first iteration: a number, "smallest", or "exhaust", with which the
            last iteration has `max_resources`.
        max_resources: a number, or "auto" for all rows or folds.
        factor: one of `factor` candidates goes on to the next iteration.

    All other arguments are those of `RandomizedSearchCV`. If there are several metrics, the one
    that `refit` names is optimised. If it names none, all of them are; the first one decides which
    candidates go on. Ctrl-C ends the search with what was found.

    Example:
        >>> search = ForetuneSearchCV(SVC(), {"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]})
        >>> search.fit(X, y).best_params_
        >>> search.to_experience("my data").save("svc.parquet")
    """

    def __init__(  # noqa: PLR0913 - the arguments of RandomizedSearchCV and a few more
        self,
        estimator: Any,
        space: Any,
        *,
        experience: Experience | str | Path | None = None,
        prior: Prior | str | Path | None = None,
        method: str | None = None,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        missing: str = "default",
        resource: str | None = None,
        min_resources: int | str = "exhaust",
        max_resources: int | str = "auto",
        factor: float = 3,
    ) -> None:
        super().__init__(
            estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.experience = experience
        self.prior = prior
        self.method = method
        self.n_iter = n_iter
        self.random_state = random_state
        self.missing = missing
        self.resource = resource
        self.min_resources = min_resources
        self.max_resources = max_resources
        self.factor = factor

    def fit(self, X: Any, y: Any = None, **params: Any) -> "ForetuneSearchCV":
        """Search, and fit the best candidate again; arguments as for `RandomizedSearchCV`."""
        if self.resource == ROWS:
            classes = len(np.unique(y)) if is_classifier(self.estimator) else 1
            self._rows, self._classes = _num_samples(X), classes
        if self.resource == FOLDS:
            self._folds = OneFold(self.estimator, self.cv, X, y, params.get("groups"))
            with self._folds.replace_cv(self):
                super().fit(X, y, **params)
            self.n_splits_ = self._folds.count
            del self._folds
        else:
            super().fit(X, y, **params)
        return self

    def to_experience(
        self, task_name: str, *, meta_features: Mapping[str, float] | None = None
    ) -> Experience:
        """Return what this search has found, for later ones.

        Join several with `Experience.merge`. With a resource, the scores of a candidate are its
        curve, and candidates that did not reach the last iteration have the status STOPPED.
        """
        check_is_fitted(self, "cv_results_")
        return make_experience(
            self,
            task_name,
            dict(meta_features or {}),
            {name: self._metric_record_name(name) for name in metric_names(self.cv_results_)},
        )

    # What scikit-learn calls

    def _run_search(self, evaluate_candidates: Evaluate) -> None:
        """Evaluate batch after batch."""
        if not isinstance(self.n_iter, int | np.integer) or self.n_iter < 1:
            raise UsageError(
                "a search needs a whole number of candidates, at least one, but got "
                f"n_iter={self.n_iter!r}: give another",
                rule="not-a-count",
                field="n_iter",
                value=self.n_iter,
            )
        space = SearchSpace.of(self.space)
        self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        metrics = self._metrics()
        optimizer = self._optimizer(space, metrics)
        resource = self._plan_resource(space)
        loop = CandidateLoop(optimizer, space, metrics, effective_n_jobs(self.n_jobs), resource)
        results = self._evaluate_batches(loop, evaluate_candidates)
        if loop.missing:
            results.update(self._with_failures(loop))
        del self._formatted, self._seed
        self.space_: Space = space.space
        self.failed_ = np.array(loop.failed)
        self.configs_ = [candidate.suggestion.config for candidate in loop.tried]
        if resource is not None:
            counts = np.bincount([each.iteration for each in loop.tried]).tolist()
            self.n_candidates_, self.n_iterations_ = counts, len(counts)
            self.n_resources_ = list(resource.amounts[: len(counts)])
            self.min_resources_, self.max_resources_ = resource.amounts[0], resource.amounts[-1]

    def _plan_resource(self, space: SearchSpace) -> Resource | None:
        """Return how many resources each iteration has; None if all candidates have the same."""
        if self.resource is None:
            return None
        check_resource(self.resource, self.estimator, [own_name(n) for n in space.space.names])
        on_rows, on_folds = self.resource == ROWS, self.resource == FOLDS
        return plan_resource(
            self.resource,
            least=self.min_resources,
            most=self.max_resources,
            factor=self.factor,
            candidates=self.n_iter,
            rows=self._rows if on_rows else self._folds.count if on_folds else 0,
            classes=self._classes if on_rows else 1,
        )

    @staticmethod
    def _select_best_index(refit: Any, refit_metric: str, results: Results) -> int:
        """Return the best candidate of the last iteration in which one has a score."""
        if callable(refit) or "iter" not in results:
            return int(BaseSearchCV._select_best_index(refit, refit_metric, results))
        scores, iterations = results[f"mean_test_{refit_metric}"], results["iter"]
        last = max(np.asarray(iterations)[np.isfinite(scores)], default=0)
        return int(np.nanargmax(np.where(np.equal(iterations, last), scores, -np.inf)))

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> Results:
        """Return the tables of all results so far. Failures are added to them at the end."""
        self._formatted = (candidate_params, n_splits, out, more_results)
        results: Results = super()._format_results(candidate_params, n_splits, out, more_results)
        if self.resource == FOLDS and n_splits > 1:
            clear_unused_folds(results, n_splits)
        return results

    # Trials

    def _evaluate_batches(self, loop: CandidateLoop, evaluate_candidates: Evaluate) -> Results:
        """Return the tables of all batches that scikit-learn could evaluate."""
        # A generator is used up now, and scikit-learn keeps what it gave.
        kept = isinstance(self.cv, Iterable) and not hasattr(self.cv, "split")
        own = SameSplits(self.cv, is_classifier(self.estimator), self._seed)
        splits: Any = None if kept and self.resource != ROWS else own
        if self.resource == FOLDS:
            splits = self._folds
        results: Results = {}
        errors: list[ValueError] = []
        try:
            for batch in loop.batches(self.n_iter):
                parameters = [candidate.parameters for candidate in batch]
                try:
                    results = self._evaluate(loop, batch, evaluate_candidates, splits)
                except ValueError as error:
                    if str(error).startswith(NO_SPLITS):
                        raise no_splits_error() from error
                    if splits is not None and not splits.drawn:
                        raise  # the rows could not be split
                    errors.append(self._failure(error, parameters))
                    loop.give_up(batch)
                else:
                    loop.record(batch, self._failure_mask()[-len(batch) :])
                    self._follow(loop, batch, results)
                    loop.learn(batch, results)
        except KeyboardInterrupt:
            if not results:
                raise
        if not results:
            raise no_result_error(errors, len(loop.tried))
        return results

    def _evaluate(
        self, loop: CandidateLoop, batch: Sequence[Candidate], evaluate: Evaluate, splits: Any
    ) -> Results:
        """Evaluate a batch with its resources, and return the tables of all batches."""
        parameters, columns = [each.parameters for each in batch], loop.columns(batch)
        if loop.resource is None or self.resource not in (ROWS, FOLDS):
            return evaluate(parameters, cv=splits, more_results=columns)
        amount = loop.resource.amounts[batch[0].iteration]
        if self.resource == ROWS:
            share = ShareOfSplits(splits, amount / self._rows)
            return evaluate(parameters, cv=share, more_results=columns)

        def evaluate_fold(_: int) -> tuple[Results, Any]:
            return evaluate(parameters, cv=splits, more_results=columns), self._formatted[2]

        results, formatted = self._folds.evaluate(batch, amount, evaluate_fold, columns)
        # scikit-learn goes on with this very dict.
        results.clear()
        results.update(self._format_results(*formatted))
        return results

    def _follow(self, loop: CandidateLoop, batch: Sequence[Candidate], results: Results) -> None:
        """Optimise the metrics that a scoring function returned; only its results name them."""
        metrics = self._metrics(metric_names(results))
        if metrics != loop.metrics:
            optimizer = self._optimizer(loop.space, metrics)
            loop.change(optimizer, metrics, batch)

    def _failure_mask(self) -> list[bool]:
        """Return for each candidate in the tables whether one of its fits failed."""
        _, n_splits, out, _ = self._formatted
        failed = [fit["fit_error"] is not None for fit in out]
        return [any(failed[first : first + n_splits]) for first in range(0, len(out), n_splits)]

    def _failure(self, error: ValueError, parameters: Sequence[Mapping[str, Any]]) -> ValueError:
        """Return the error of a batch whose fits all failed, or raise it if it is a mistake.

        The next candidates may do better.
        """
        if self.error_score == "raise":
            raise error
        for each in parameters:
            clone(self.estimator).set_params(**each)  # a name that does not exist is a mistake
        warnings.warn(str(error), FitFailedWarning, stacklevel=level_of_the_user())
        return error

    def _with_failures(self, loop: CandidateLoop) -> Results:
        """Return the tables with the candidates of failed batches in their places."""
        _, n_splits, out, _ = self._formatted
        failure, out = self._like_a_failure(out[0]), list(out)
        for position in loop.missing:
            out[position * n_splits : position * n_splits] = [failure] * n_splits
        parameters = [candidate.parameters for candidate in loop.tried]
        columns = loop.columns(loop.tried)
        return self._format_results(parameters, n_splits, out, columns)

    def _like_a_failure(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """Return an outcome of one fit as if it had failed in an unknown time."""
        error = self.error_score
        scores = {
            name: dict.fromkeys(of, error) if isinstance(of, dict) else error
            for name, of in outcome.items()
            if name in ("test_scores", "train_scores")
        }
        return {**outcome, **scores, "fit_time": np.nan, "score_time": np.nan}

    # What is optimised, and how

    def _metrics(self, known: Sequence[str] = (SCORE,)) -> tuple[str, ...]:
        """Return scikit-learn's names for the metrics that are optimised.

        known: what was measured. A scoring function names its metrics only in its results.
        """
        several = isinstance(self.scoring, Iterable) and not isinstance(self.scoring, str)
        if isinstance(self.refit, str) and (several or callable(self.scoring)):
            return (self.refit,)
        if several:
            return tuple(self.scoring)
        # With refit=True scikit-learn allows one metric only.
        free = callable(self.refit) or not self.refit
        return tuple(known) if callable(self.scoring) and free else (SCORE,)

    def _metric_record_name(self, metric: str) -> str:
        """Return the name of a metric that does not depend on the other metrics of a search."""
        return self.scoring if metric == SCORE and isinstance(self.scoring, str) else metric

    def _optimizer(self, space: SearchSpace, metrics: Sequence[str]) -> Optimizer:
        chosen = method(self.method or DEFAULT)
        prior = self._prior(chosen, space, metrics)
        target = Target(space.space, tuple(metrics))
        return Optimizer(target, chosen, prior, seed=self._seed)

    def _prior(self, chosen: Method, space: SearchSpace, metrics: Sequence[str]) -> Prior:
        prior = load_prior(self.prior, chosen)
        if prior is not None:
            return prior
        known = load_experience(self.experience)
        past = None if known is None else self._fitting(known, space, metrics)
        return prior_of(chosen, past, seed=self._seed)

    def _fitting(self, past: Experience, space: SearchSpace, metrics: Sequence[str]) -> Experience:
        """Return the past in the space of this search, with its metrics."""
        recorded = [metric.name for metric in past.metrics]
        wanted = [self._metric_record_name(name) for name in metrics]
        if not set(wanted) <= set(recorded):
            if len(wanted) > 1:
                raise UsageError(
                    f"experience must hold the metrics of the search ({', '.join(wanted)}), but "
                    f"holds {', '.join(recorded)}: name one metric in `refit`",
                    rule="no-metric-of-the-search",
                    field="experience",
                    value=recorded,
                )
            wanted = recorded[:1]
        unset = space.values_of(self.estimator, past=past.space)
        level = level_of_the_user()
        past = drop_ambiguous_counts(
            past.with_metrics(wanted), space, self.estimator, stacklevel=level + 1
        )
        return carry_over_past(
            past, space.space, assumed=unset, missing=self.missing, stacklevel=level + 1
        )
