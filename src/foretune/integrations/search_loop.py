"""The course of a search by cross-validation: which candidates, in what batches, to what end."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import ExhaustedError, UsageError
from foretune.experience import Status
from foretune.integrations.estimator_space import SearchSpace
from foretune.search import Optimizer, Suggestion, Told

USUAL_SPLITS = 5
"""Of scikit-learn, until the first results tell how many there are."""
MOST_IDLE = 0.2
"""A batch is the smallest one that leaves workers idle for at most this share of the time."""
MEAN = "mean_test_"
"""How scikit-learn's columns of scores begin."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A suggestion, and what it sets on the estimator."""

    suggestion: Suggestion
    parameters: dict[str, Any]


@dataclass
class CandidateLoop:
    """Asks an optimiser for batches of candidates and tells it what came of them."""

    optimizer: Optimizer
    space: SearchSpace
    metrics: Sequence[str]
    """The names of scikit-learn, one for each objective."""
    workers: int
    tried: list[Candidate] = field(default_factory=list)
    failed: list[bool] = field(default_factory=list)
    """Of each of `tried`, whether one of its fits failed: its score is `error_score` in part."""
    missing: list[int] = field(default_factory=list)
    """Which of `tried` are in no table, for no fit of their batch succeeded."""
    splits: int = USUAL_SPLITS

    def batches(self, candidates: int) -> Iterator[list[Candidate]]:
        """So many candidates in all, or as many as the space has."""
        while (left := candidates - len(self.tried)) > 0:
            batch = self._batch(min(left, batch_size(self.workers, self.splits)))
            if not batch:
                return
            yield batch

    def record(self, batch: Sequence[Candidate], failed: Sequence[bool]) -> None:
        """Note that a batch was evaluated, and which of its candidates had failing fits."""
        self.tried += batch
        self.failed += failed

    def learn(self, batch: Sequence[Candidate], results: Mapping[str, Any]) -> None:
        """Learn what came of a batch that was recorded just now: tables that end with it."""
        ends = f"_test_{self.metrics[0]}"
        self.splits = sum(n.startswith("split") and n.endswith(ends) for n in results)
        losses = -scores_of(results, self.metrics)[-len(batch) :]
        failed = self.failed[-len(batch) :]
        self.optimizer.tell(
            Told(tuple(row), id=candidate.suggestion.id, status=_status(bad))
            for candidate, row, bad in zip(batch, losses.tolist(), failed, strict=True)
        )

    def give_up(self, batch: Sequence[Candidate]) -> None:
        """Record a batch of which every fit failed, and learn from that."""
        self.missing += range(len(self.tried), len(self.tried) + len(batch))
        self.record(batch, [True] * len(batch))
        self.optimizer.tell(
            Told(np.nan, id=candidate.suggestion.id, status=Status.FAILED) for candidate in batch
        )

    def change(
        self, optimizer: Optimizer, metrics: Sequence[str], running: Sequence[Candidate]
    ) -> None:
        """Go on with other objectives, before anything but failures was told."""
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
            batch.append(Candidate(suggestion, self.space.parameters(suggestion.config)))
        return batch


def batch_size(workers: int, splits: int) -> int:
    """How many candidates keep the workers busy, though no more than that: each learns less."""
    for size in range(1, workers):
        rounds = -(-size * splits // workers)
        if size * splits >= (1 - MOST_IDLE) * rounds * workers:
            return size
    return workers


def _status(failed: bool) -> Status:
    return Status.FAILED if failed else Status.DONE


def metric_names(results: Mapping[str, Any]) -> list[str]:
    """The names of the metrics."""
    return [name.removeprefix(MEAN) for name in results if name.startswith(MEAN)]


def scores_of(results: Mapping[str, Any], metrics: Sequence[str]) -> Floats:
    """(candidates, metrics), the more the better."""
    known = metric_names(results)
    lacking = [name for name in metrics if name not in known]
    if lacking:
        raise UsageError(
            f"a search optimises a metric that is measured ({', '.join(known)}), but got "
            f"'{lacking[0]}': name one of them in `refit`",
            rule="unknown-metric",
            field="refit",
            value=lacking[0],
        )
    return np.column_stack([results[f"{MEAN}{name}"] for name in metrics])
