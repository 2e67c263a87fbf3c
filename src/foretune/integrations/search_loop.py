"""The loop of a search by cross-validation: which candidates are evaluated, in what batches."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import ExhaustedError, UsageError
from foretune.experience import Status
from foretune.integrations.estimator_space import SearchSpace
from foretune.integrations.search_resource import Resource
from foretune.methods.stopping.halving import best_of
from foretune.search import Optimizer, Suggestion, Told

USUAL_SPLITS = 5
"""The number of splits until the first results tell it: scikit-learn's default."""
MOST_IDLE = 0.2
"""A batch is the smallest one that leaves workers idle for at most this share of the time."""
MEAN = "mean_test_"
"""How scikit-learn's columns of scores begin."""
CHOSEN_BY = "chosen_by"
"""The column of `cv_results_` that says what chose a candidate."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A suggestion with what it sets on the estimator: a row of `cv_results_`."""

    suggestion: Suggestion
    parameters: dict[str, Any]
    iteration: int = 0
    """How often the suggestion was evaluated before, with fewer resources."""


@dataclass
class CandidateLoop:
    """Asks an optimiser for batches of candidates, and tells it their losses.

    With a resource, the candidates of all batches are evaluated with the fewest resources first.
    The best of them are evaluated again with more. The optimiser is not told their losses: with few
    resources, candidates that learn fast look best, and it would suggest only more of these.
    """

    optimizer: Optimizer
    space: SearchSpace
    metrics: Sequence[str]
    """scikit-learn's names, one for each objective."""
    workers: int
    resource: Resource | None = None
    tried: list[Candidate] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    """For each of `tried`, whether one of its fits failed: part of its score is `error_score`."""
    missing: list[int] = field(default_factory=list)
    """Places in `tried` of candidates without results, because all fits of their batch failed."""
    splits: int = USUAL_SPLITS
    _losses: list[float] = field(default_factory=list)
    """For each of `tried`, the loss of the first metric; NaN if it failed."""

    def batches(self, candidates: int) -> Iterator[list[Candidate]]:
        """Yield batches until there were this many candidates, or as many as the space has.

        Each batch must be recorded, or given up, before the next one.
        """
        while (left := candidates - len(self.tried)) > 0:
            batch = self._batch(min(left, batch_size(self.workers, self.splits)))
            if not batch:
                break
            yield batch
        if self.resource is None:
            return
        for iteration in range(1, len(self.resource.amounts)):
            batch = self._best_of_iteration(iteration - 1)
            if not batch:
                return
            yield batch

    def columns(self, batch: Sequence[Candidate]) -> dict[str, list[Any]]:
        """Return the columns of `cv_results_` that scikit-learn does not know."""
        columns: dict[str, list[Any]] = {CHOSEN_BY: [each.suggestion.reason for each in batch]}
        if self.resource is not None:
            columns["iter"] = [each.iteration for each in batch]
            columns["n_resources"] = [self.resource.amounts[each.iteration] for each in batch]
        return columns

    def record(self, batch: Sequence[Candidate], failed: Sequence[bool]) -> None:
        """Note that a batch was evaluated, and which of its candidates had failing fits."""
        self.tried += batch
        self.failed += failed

    def learn(self, batch: Sequence[Candidate], results: Mapping[str, Any]) -> None:
        """Learn from the results of the batch that was recorded last.

        results: tables that end with the batch.
        """
        ends = f"_test_{self.metrics[0]}"
        self.splits = sum(n.startswith("split") and n.endswith(ends) for n in results)
        losses = -scores_of(results, self.metrics)[-len(batch) :]
        failed = self.failed[-len(batch) :]
        self._losses += np.where(failed, np.nan, losses[:, 0]).tolist()
        if self.resource is None:
            self.optimizer.tell(
                Told(tuple(row), id=candidate.suggestion.id, status=_status(bad))
                for candidate, row, bad in zip(batch, losses.tolist(), failed, strict=True)
            )

    def give_up(self, batch: Sequence[Candidate]) -> None:
        """Record a batch whose fits all failed, and learn from that."""
        self.missing += range(len(self.tried), len(self.tried) + len(batch))
        self.record(batch, [True] * len(batch))
        self._losses += [math.nan] * len(batch)
        if self.resource is None:
            self.optimizer.tell(
                Told(np.nan, id=each.suggestion.id, status=Status.FAILED) for each in batch
            )

    def change(
        self, optimizer: Optimizer, metrics: Sequence[str], running: Sequence[Candidate]
    ) -> None:
        """Continue with other objectives. Only failures were told before."""
        optimizer.tell(
            Told(np.nan, config=self.tried[place].suggestion.config, status=Status.FAILED)
            for place in self.missing
        )
        optimizer.assume_pending(candidate.suggestion for candidate in running)
        self.optimizer, self.metrics = optimizer, metrics

    def _batch(self, size: int) -> list[Candidate]:
        batch: list[Candidate] = []
        for _ in range(size):
            try:
                suggestion = self.optimizer.ask()[0]
            except ExhaustedError:
                break
            parameters = self.space.parameters(suggestion.config)
            batch.append(self._at(Candidate(suggestion, parameters), 0))
        return batch

    def _best_of_iteration(self, iteration: int) -> list[Candidate]:
        """Return the candidates that go on from an iteration, for the next one."""
        assert self.resource is not None
        losses = {
            place: self._losses[place]
            for place, each in enumerate(self.tried)
            if each.iteration == iteration
        }
        best = best_of(losses, math.ceil(len(losses) / self.resource.factor))
        return [self._at(self.tried[place], iteration + 1) for place in sorted(best)]

    def _at(self, candidate: Candidate, iteration: int) -> Candidate:
        """Return a candidate with the resources of an iteration."""
        if self.resource is None:
            return candidate
        parameters = candidate.parameters | self.resource.parameters(iteration)
        return replace(candidate, parameters=parameters, iteration=iteration)


def batch_size(workers: int, splits: int) -> int:
    """Return the smallest number of candidates that keeps the workers busy.

    The optimiser learns less from larger batches.
    """
    for size in range(1, workers):
        rounds = -(-size * splits // workers)
        if size * splits >= (1 - MOST_IDLE) * rounds * workers:
            return size
    return workers


def _status(failed: bool) -> Status:
    return Status.FAILED if failed else Status.DONE


def metric_names(results: Mapping[str, Any]) -> list[str]:
    """Return the names of the metrics."""
    return [name.removeprefix(MEAN) for name in results if name.startswith(MEAN)]


def scores_of(results: Mapping[str, Any], metrics: Sequence[str]) -> Floats:
    """Return (candidates, metrics), the mean scores; higher is better."""
    known = metric_names(results)
    lacking = [name for name in metrics if name not in known]
    if lacking:
        raise UsageError(
            f"a search must optimise a metric that is measured ({', '.join(known)}), but got "
            f"'{lacking[0]}': name one of them in `refit`",
            rule="unknown-metric",
            field="refit",
            value=lacking[0],
        )
    return np.column_stack([results[f"{MEAN}{name}"] for name in metrics])
