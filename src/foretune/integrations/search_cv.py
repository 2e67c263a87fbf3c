"""A drop-in for scikit-learn's RandomizedSearchCV that learns while it searches, and from the past.

scikit-learn evaluates, ranks and refits; which candidates it evaluates is chosen here, batch by
batch.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from foretune.errors import ExperienceError, ForetuneWarning, UsageError
from foretune.experience import Direction, Experience, Metric, Status
from foretune.experience.alignment.restriction import in_other_space
from foretune.integrations.estimator_space import SearchSpace
from foretune.integrations.search_loop import Candidate, CandidateLoop, metric_names, scores_of
from foretune.methods.contracts import Prior, Target
from foretune.search import Method, Optimizer, method
from foretune.search.arguments import carry_over_past, load_experience, load_prior
from foretune.search.prior_cache import prior_of
from foretune.space import Space

DEFAULT = "auto"
"""The method that is used where none is named."""
SCORE = "score"
"""What scikit-learn calls the only metric."""
CHOSEN_BY = "chosen_by"
"""The column of `cv_results_` that says what chose a candidate."""
NO_SPLITS = "No fits were performed"
"""How scikit-learn begins its error where `cv` gives no splits, as a used-up generator does."""
ON_THE_WAY = ("foretune", "sklearn", "joblib")
"""Packages whose functions lie between a line of the user's and the search."""

Results: TypeAlias = dict[str, Any]
Evaluate: TypeAlias = Callable[..., Results]


class ForetuneSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Searches the hyperparameters of any estimator by cross-validation.

    Arguments:
        estimator: anything with `fit`, and with `score` unless `scoring` is given.
        space: what may be set: a dict of lists (choices), tuples (ranges) and distributions of
            scipy.stats; a `Space`; or a ConfigurationSpace. Names are scikit-learn's (`clf__C`).
            What a choice brings along stands in a dict: {"kernel": {"rbf": {}, "poly":
            {"degree": (2, 5)}}}; other choices leave it as the estimator has it.
        experience: what earlier searches found, or the path of it; see `to_experience`. The space
            may have changed since: a warning says what of it is used. What earlier searches did not
            set was as the estimator has it.
        prior: what a method has learnt from experience before, or the path of it.
        method: an entry of the registry (`foretune methods`); `auto` if not given.
        n_iter: how many candidates; fewer where the space has fewer.
        missing: what to do with past runs that lack a value, as for `Experience.in_space`.

    All other arguments are those of `RandomizedSearchCV`. Of several metrics the one that `refit`
    names is optimised; all of them where it names none. Ctrl-C ends the search with what was found.

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

    def to_experience(
        self, task_name: str, *, meta_features: Mapping[str, float] | None = None
    ) -> Experience:
        """What this search has found, for later ones.

        Join several with `Experience.merge`.
        """
        check_is_fitted(self, "cv_results_")
        results, n = self.cv_results_, len(self.configs_)
        names = metric_names(results)
        # What stands in for the score of a failed fit is a wish of the user's, not a score.
        values = np.where(self.failed_[:, None], np.nan, scores_of(results, names))
        done = np.isfinite(values).any(axis=1)
        return Experience.build(
            self.space_,
            [Metric(self._metric_record_name(name), Direction.MAX) for name in names],
            [task_name],
            np.zeros(n, dtype=np.int64),
            self.space_.encode(self.configs_),
            np.arange(n),
            values,
            status=np.where(done, Status.DONE, Status.FAILED),
            seconds=self.n_splits_ * (results["mean_fit_time"] + results["mean_score_time"]),
            meta_features={task_name: dict(meta_features)} if meta_features else None,
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
        loop = CandidateLoop(optimizer, space, metrics, effective_n_jobs(self.n_jobs))
        results = self._evaluate_batches(loop, evaluate_candidates)
        if loop.missing:
            results.update(self._with_failures(loop))
        del self._formatted, self._seed
        self.space_: Space = space.space
        self.failed_ = np.array(loop.failed)
        self.configs_ = [candidate.suggestion.config for candidate in loop.tried]

    def _format_results(
        self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None
    ) -> Results:
        """The tables of what was evaluated so far; kept, because failures are added at the end."""
        self._formatted = (candidate_params, n_splits, out, more_results)
        results: Results = super()._format_results(candidate_params, n_splits, out, more_results)
        return results

    # Trials

    def _evaluate_batches(self, loop: CandidateLoop, evaluate_candidates: Evaluate) -> Results:
        """The tables of all batches that scikit-learn could evaluate."""
        # What is no splitter may be a generator, which scikit-learn has used up and keeps.
        kept = isinstance(self.cv, Iterable) and not hasattr(self.cv, "split")
        splits = None if kept else SameSplits(self.cv, is_classifier(self.estimator))
        results: Results = {}
        errors: list[ValueError] = []
        try:
            for batch in loop.batches(self.n_iter):
                parameters = [candidate.parameters for candidate in batch]
                chosen_by = [candidate.suggestion.reason for candidate in batch]
                try:
                    results = evaluate_candidates(
                        parameters, cv=splits, more_results={CHOSEN_BY: chosen_by}
                    )
                except ValueError as error:
                    if str(error).startswith(NO_SPLITS):
                        raise _no_splits() from error
                    if splits is not None and not splits.drawn:
                        raise  # how the rows are split is no matter of the candidates
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
            raise _no_result_error(errors, len(loop.tried))
        return results

    def _follow(self, loop: CandidateLoop, batch: Sequence[Candidate], results: Results) -> None:
        """Optimise what the results hold, where only they tell: a function scored."""
        metrics = self._metrics(metric_names(results))
        if metrics != loop.metrics:
            optimizer = self._optimizer(loop.space, metrics)
            loop.change(optimizer, metrics, batch)

    def _failure_mask(self) -> list[bool]:
        """Of each candidate in the tables, whether one of its fits failed."""
        _, n_splits, out, _ = self._formatted
        failed = [fit["fit_error"] is not None for fit in out]
        return [any(failed[first : first + n_splits]) for first in range(0, len(out), n_splits)]

    def _failure(self, error: ValueError, parameters: Sequence[Mapping[str, Any]]) -> ValueError:
        """Judge the error by which scikit-learn refuses a batch of which every fit has failed.

        It may have one candidate only, and the next ones may do better.
        """
        if self.error_score == "raise":
            raise error
        for each in parameters:
            clone(self.estimator).set_params(**each)  # a name that does not exist is a mistake
        warnings.warn(str(error), FitFailedWarning, stacklevel=_level_of_the_user())
        return error

    def _with_failures(self, loop: CandidateLoop) -> Results:
        """The tables with the candidates of failed batches in their places."""
        candidates, n_splits, out, more = self._formatted
        failure = self._like_a_failure(out[0])
        candidates, out, chosen_by = list(candidates), list(out), list(more[CHOSEN_BY])
        for position in loop.missing:
            candidate = loop.tried[position]
            candidates.insert(position, candidate.parameters)
            chosen_by.insert(position, candidate.suggestion.reason)
            out[position * n_splits : position * n_splits] = [failure] * n_splits
        results: Results = super()._format_results(
            candidates, n_splits, out, {CHOSEN_BY: chosen_by}
        )
        return results

    def _like_a_failure(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        """The outcome of one fit as it had been if the fit had failed, in a time unknown."""
        error = self.error_score
        scores = {
            name: dict.fromkeys(of, error) if isinstance(of, dict) else error
            for name, of in outcome.items()
            if name in ("test_scores", "train_scores")
        }
        return {**outcome, **scores, "fit_time": np.nan, "score_time": np.nan}

    # What is optimised, and how

    def _metrics(self, known: Sequence[str] = (SCORE,)) -> tuple[str, ...]:
        """The names of scikit-learn for what is optimised.

        known: what was measured; a function that scores names its metrics only in its results.
        """
        several = isinstance(self.scoring, Iterable) and not isinstance(self.scoring, str)
        if isinstance(self.refit, str) and (several or callable(self.scoring)):
            return (self.refit,)
        if several:
            return tuple(self.scoring)
        # With refit=True there can only be one metric, as scikit-learn has it.
        free = callable(self.refit) or not self.refit
        return tuple(known) if callable(self.scoring) and free else (SCORE,)

    def _metric_record_name(self, metric: str) -> str:
        """The name by which searches with and without other metrics know the same one."""
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
        """What earlier searches say about this one: in its space, by its metrics."""
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
        level = _level_of_the_user()
        past = _drop_ambiguous_counts(
            past.with_metrics(wanted), space, self.estimator, stacklevel=level + 1
        )
        return carry_over_past(
            past, space.space, assumed=unset, missing=self.missing, stacklevel=level + 1
        )


def _drop_ambiguous_counts(
    past: Experience, space: SearchSpace, estimator: Any, *, stacklevel: int
) -> Experience:
    """Past runs without those that have a count for a share, or a share for a count."""
    confused = space.find_ambiguous_counts(past.configs, estimator)
    runs = {name: int(which[past.config_index].sum()) for name, which in confused.items()}
    if not any(runs.values()):
        return past
    kept = np.flatnonzero(~np.any(list(confused.values()), axis=0))
    known = in_other_space(past, past.configs.take(kept), kept)
    which = ", ".join(f"{n:,} of {len(past):,} by '{name}'" for name, n in runs.items() if n)
    if known is None:
        raise ExperienceError(
            "an experience must hold counts (1) where the space has counts, and shares (1.0) where "
            f"it has shares, but it holds no such run ({which}): search what it holds, or leave "
            "the experience out",
            rule="counts-and-shares",
            field="experience",
            value=runs,
        )
    said = (
        "past runs are left out that have a count (1) where the space has shares (1.0), or the "
        f"other way round: {which}"
    )
    warnings.warn(
        ForetuneWarning(said, rule="counts-and-shares", value=runs), stacklevel=stacklevel
    )
    return known


def _level_of_the_user() -> int:
    """The stack level, for a warning of the caller's, of the line that asked for the search.

    How far that is depends on scikit-learn: its versions wrap `fit`, and so do its searches.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def _no_splits() -> UsageError:
    return UsageError(
        "a search needs at least one split of the rows, but cv gives none: give splits as a list, "
        "for a generator gives them to one fit only",
        rule="no-splits",
        field="cv",
    )


def _no_result_error(errors: Sequence[ValueError], candidates: int) -> ValueError:
    """The error of a search without any result; scikit-learn counts the fits of one batch only."""
    if len(errors) == 1:
        return errors[0]
    return ValueError(
        f"None of the {candidates} candidates could be evaluated, in {len(errors)} batches. Of the "
        f"first batch scikit-learn says:\n{errors[0]}"
    )


class SameSplits:
    """The splits that `cv` stands for, drawn once: candidates of all batches meet the same ones."""

    def __init__(self, cv: Any, classifier: bool) -> None:
        self._cv, self._classifier = cv, classifier
        self.drawn: list[Any] = []

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        """(rows to learn from, rows to score on), as at the first call."""
        if not self.drawn:
            splitter = check_cv(self._cv, y, classifier=self._classifier)
            self.drawn = list(splitter.split(X, y, **params))
        return self.drawn
