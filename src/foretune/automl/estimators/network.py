"""A compact network for tables, in NumPy.

It follows the findings of RealMLP (Holzmueller et al., 2024): robust scales with smooth clipping,
periodic embeddings of numbers, activations with learnt shares, a learnt scale for each input, Adam
with a second momentum of 0.95, and a learning rate that rises, then falls along a cosine. The
parameters after the epoch with the lowest loss on the judging rows are kept.
"""

import time
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from foretune._base.arrays import Floats
from foretune.automl.estimators.network_columns import NetworkColumns
from foretune.automl.estimators.network_layers import (
    WAVES,
    NetworkShape,
    Singles,
    predict_outputs,
    run_backward,
    run_forward,
)
from foretune.automl.estimators.stepped import LearningRows, StepLimits, StepTrainer, StepWatch

VISITS = 250_000
"""The rows that all epochs together learn from."""
LEAST_EPOCHS, MOST_EPOCHS = 6, 150
LEAST_BATCH, USUAL_BATCH, MOST_BATCH = 32, 256, 1024
BATCHES, MANY_BATCHES = 16, 200
"""The batches of an epoch up to the usual batch, and beyond it, where large ones save time."""
WARM = 0.05
"""The share of the learning in which the learning rate rises."""
MOMENTA = (0.9, 0.95)
SCALE_RATE = 5.0
"""The inputs' scales learn so many times faster."""
MOST_WAVED = 100
"""With more columns of numbers than this, numbers have no waves, because these take time."""
ROWS_AT_ONCE = 4096
PATIENCE_OF_NUMBERS = 40
"""For numbers, most is learnt when the learning rate falls; classes are soon learnt too well."""


class _Network(BaseEstimator):  # type: ignore[misc]
    """What both kinds of networks share."""

    def __init__(
        self,
        learning_rate_init: float = 0.01,
        alpha: float = 0.01,
        layers: int = 2,
        units: int = 128,
        dropout: float = 0.1,
        random_state: int = 0,
    ) -> None:
        self.learning_rate_init = learning_rate_init
        self.alpha = alpha
        self.layers = layers
        self.units = units
        self.dropout = dropout
        self.random_state = random_state

    def fit(self, X: Floats, y: Any, sample_weight: Floats | None = None) -> "_Network":
        """Learn for all epochs; columns of codes count as numbers."""
        rows = LearningRows(X, y, sample_weight)
        fitted: _Network = NetworkTrainer().fit(self, rows, StepLimits()).estimator
        return fitted

    def _outputs(self, X: Floats) -> Floats:
        """Return the outputs (n, outputs) of rows."""
        shape = self._shape()
        parts = shape.split(self.parameters_)
        found = [
            predict_outputs(shape, parts, *self._columns().transform(X[first:][:ROWS_AT_ONCE]))
            for first in range(0, len(X), ROWS_AT_ONCE)
        ]
        outputs: Floats = np.concatenate(found).astype(np.float64)
        return outputs

    def _shape(self) -> NetworkShape:
        return NetworkShape(*(int(size) for size in self.shape_))

    def _columns(self) -> NetworkColumns:
        return NetworkColumns(
            self.numbers_, self.centres_, self.spreads_, self.lacking_, self.categories_
        )

    def _keep(self, columns: NetworkColumns, shape: NetworkShape, parameters: Singles) -> None:
        """Keep what was learnt, as plain arrays and numbers, which model files can hold."""
        self.numbers_, self.lacking_ = columns.numbers, columns.lacking
        self.centres_, self.spreads_ = columns.centres, columns.spreads
        self.categories_ = columns.categories
        self.shape_ = (shape.numbers, shape.indicators, shape.units, shape.layers,
                       shape.outputs, shape.waves)  # fmt: skip
        self.parameters_ = parameters


class NetworkClassifier(ClassifierMixin, _Network):  # type: ignore[misc]
    """Predicts classes; `NetworkTrainer` fits it."""

    def predict_proba(self, X: Floats) -> Floats:
        """Return probabilities (n, classes)."""
        return shares_of(self._outputs(X))

    def predict(self, X: Floats) -> Any:
        """Return the most probable classes."""
        return self._outputs(X).argmax(axis=1)


class NetworkRegressor(RegressorMixin, _Network):  # type: ignore[misc]
    """Predicts numbers, none beyond those that it has learnt; `NetworkTrainer` fits it."""

    def predict(self, X: Floats) -> Floats:
        """Return numbers (n,)."""
        numbers = self._outputs(X)[:, 0] * self.spread_ + self.centre_
        bounded: Floats = np.clip(numbers, *self.range_)
        return bounded


def shares_of(outputs: Floats) -> Floats:
    """Return the probabilities (n, classes) of outputs."""
    raised = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


class NetworkTrainer(StepTrainer):
    """Trains both kinds of networks; a step is an epoch."""

    most_steps: ClassVar[int] = MOST_EPOCHS
    patience: ClassVar[int] = 15

    def _run_steps(
        self,
        estimator: Any,
        learning: LearningRows,
        judging: LearningRows | None,
        most: int,
        watch: StepWatch,
    ) -> Any:
        is_classifier = isinstance(estimator, NetworkClassifier)
        if not is_classifier:
            watch.patience = PATIENCE_OF_NUMBERS
            _keep_target_scale(estimator, learning.y)
        columns = NetworkColumns.learn(learning.x, learning.codes)
        course = _Course(estimator, columns, learning, watch.until)
        held = None if judging is None else (*columns.transform(judging.x), judging)
        best = course.parameters.copy()
        epochs = 0
        for _ in range(min(most, course.epochs)):
            course.run_epoch()
            epochs += 1
            is_over = watch.is_late if held is None else watch.is_over(course.loss(*held))
            if held is None or watch.best == epochs:
                best[...] = course.parameters
            if is_over:
                break
        estimator._keep(columns, course.shape, best)
        estimator.n_features_in_ = learning.x.shape[1]
        estimator.epochs_ = epochs if held is None else watch.best
        return estimator

    def count_steps(self, estimator: Any) -> int:
        """Return the number of epochs."""
        return int(estimator.epochs_)

    def truncate(self, estimator: Any, steps: int) -> Any:  # noqa: ARG002
        """Return the estimator: only the parameters of its best epoch are kept."""
        return estimator


def _keep_target_scale(estimator: Any, y: Floats) -> None:
    spread = float(np.std(y))
    estimator.centre_, estimator.spread_ = float(np.mean(y)), spread if spread > 0.0 else 1.0
    estimator.range_ = (float(np.min(y)), float(np.max(y)))


class _Course:
    """The parameters of a network while it learns."""

    def __init__(
        self, estimator: Any, columns: NetworkColumns, learning: LearningRows, until: float
    ) -> None:
        self.begun, self.until = time.monotonic(), until
        self.rng = np.random.default_rng(estimator.random_state)
        self.is_classifier = isinstance(estimator, NetworkClassifier)
        self.estimator = estimator
        self.numbers, self.indicators = columns.transform(learning.x)
        self.targets = self._targets(learning)
        weights = np.ones(len(learning.y)) if learning.weights is None else learning.weights
        self.weights = (weights / weights.mean()).astype(np.float32)[:, None]
        width = self.numbers.shape[1]
        outputs = self.targets.shape[1]
        units, layers = int(estimator.units), int(estimator.layers)
        waves = WAVES if width <= MOST_WAVED else 0
        self.shape = NetworkShape(width, self.indicators.shape[1], units, layers, outputs, waves)
        self.parameters = self.shape.draw(self.rng)
        self.parts = self.shape.split(self.parameters)
        self.gradient = np.zeros_like(self.parameters)
        self.slopes = self.shape.split(self.gradient)
        self.first, self.second = np.zeros_like(self.gradient), np.zeros_like(self.gradient)
        self.rates, self.decays = self._factors()
        rows = len(self.targets)
        usual = np.clip(rows // BATCHES, LEAST_BATCH, USUAL_BATCH)
        self.batch = int(max(usual, min(rows // MANY_BATCHES, MOST_BATCH)))
        self.epochs = int(np.clip(VISITS // rows, LEAST_EPOCHS, MOST_EPOCHS))
        self.updates = 0
        self.all_updates = self.epochs * -(-rows // self.batch)

    def _targets(self, rows: LearningRows) -> Singles:
        """Return scaled numbers (n, 1), or indicators of the classes (n, classes)."""
        if self.is_classifier:
            if not hasattr(self, "classes"):
                self.classes = int(rows.y.max()) + 1
            targets: Singles = np.eye(self.classes, dtype=np.float32)[rows.y]
            return targets
        scaled = (rows.y - self.estimator.centre_) / self.estimator.spread_
        return np.asarray(scaled, dtype=np.float32)[:, None]

    def _factors(self) -> tuple[Singles, Singles]:
        """Return factors of the learning rate and of the decay, for each parameter."""
        rates = np.ones_like(self.parameters)
        decays = np.zeros_like(self.parameters)
        self.shape.split(rates)["scale"][...] = SCALE_RATE
        for name, part in self.shape.split(decays).items():
            part[...] = 1.0 if name.startswith(("weight", "mix")) else 0.0
        return rates, decays

    def run_epoch(self) -> None:
        """Learn from all rows once."""
        order = self.rng.permutation(len(self.targets))
        for first in range(0, len(order), self.batch):
            self._learn_batch(order[first : first + self.batch])
            if time.monotonic() >= self.until:
                return

    def _learn_batch(self, rows: Any) -> None:
        masks = self._draw_masks(len(rows))
        kept = run_forward(self.shape, self.parts, self.numbers[rows], self.indicators[rows], masks)
        outputs = kept["outputs"]
        predicted = shares_of(outputs) if self.is_classifier else outputs
        slope = (predicted - self.targets[rows]) * (self.weights[rows] / len(rows))
        run_backward(self.shape, self.parts, kept, slope, self.slopes, masks)
        self._update()

    def _draw_masks(self, rows: int) -> list[Singles] | None:
        dropped = float(self.estimator.dropout)
        if dropped <= 0.0:
            return None
        # Bytes are drawn, because these are several times faster than numbers.
        least, size = round(256 * dropped), (rows, self.shape.units)
        factor = np.float32(256 / (256 - least))
        drawn = (
            self.rng.integers(256, size=size, dtype=np.uint8) for _ in range(self.shape.layers)
        )
        return [(each >= least) * factor for each in drawn]

    def _update(self) -> None:
        """Make one step of Adam with decoupled weight decay."""
        self.updates += 1
        # If the time ends before the epochs do, the rate must have fallen by then.
        spent = (time.monotonic() - self.begun) / max(self.until - self.begun, 1e-9)
        done = max(self.updates / self.all_updates, spent)
        rate = min(done / WARM, 0.5 * (1.0 + np.cos(np.pi * min(done, 1.0))))
        rate *= float(self.estimator.learning_rate_init)
        first = _average(self.first, self.gradient, MOMENTA[0], self.updates)
        second = _average(self.second, self.gradient**2, MOMENTA[1], self.updates)
        step = self.rates * first / (np.sqrt(second) + np.float32(1e-8))
        step += np.float32(self.estimator.alpha) * self.decays * self.parameters
        self.parameters -= np.float32(rate) * step

    def loss(self, numbers: Singles, indicators: Singles, judging: LearningRows) -> float:
        """Return the log loss, or the squared error as a share of the variance."""
        outputs = predict_outputs(self.shape, self.parts, numbers, indicators)
        targets = self._targets(judging)
        if self.is_classifier:
            likely = (shares_of(outputs.astype(np.float64)) * targets).sum(axis=1)
            of_rows = -np.log(np.maximum(likely, 1e-15))
        else:
            of_rows = ((outputs - targets).astype(np.float64) ** 2)[:, 0]
        return float(np.average(of_rows, weights=judging.weights))


def _average(mean: Singles, seen: Singles, share: float, updates: int) -> Singles:
    """Update a running mean in place; return it without its bias towards 0."""
    mean *= np.float32(share)
    mean += np.float32(1.0 - share) * seen
    unbiased: Singles = mean / np.float32(1.0 - share**updates)
    return unbiased
