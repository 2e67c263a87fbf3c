"""The effect of a task's meta-features on which pipelines suit it.

Strong regularisation wins on a small noisy table and loses on a large clean one. The scores of
very cheap models tell the two apart before the first trial. So the mean that the network learnt
over all past tasks is corrected for the current task: the weights of its last layer move by a
linear function of the task's meta-features. Ridge regression finds this function from the
residuals of the mean on past tasks. It is used only if it helps on past tasks that it has not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from foretune._base.arrays import Floats
from foretune.methods.past_data import PastTask
from foretune.methods.pipeline.model import DeepPipe
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.space import Encoded

THEMSELVES = (
    "landmark_stump",
    "landmark_tree",
    "landmark_nearest",
    "landmark_linear",
    "landmark_bayes",
    "log_rows",
    "log_columns",
)
"""The meta-features that are read directly: scores of cheap models, and the size of the task."""
COMPONENTS = 6
"""The number of principal components of all meta-features. Single ones would overfit."""
FARTHEST = 2.5
"""The largest distance from past tasks that counts, in standard deviations."""
LEAST_TASKS = 10
"""With fewer tasks, nothing is learnt from meta-features."""
FOLDS = 5
PENALTIES = (1.0, 10.0, 100.0)
"""The penalties of the ridge regression, in tasks."""
LEAST_SPREAD = 1e-9
MOST_AXES = 136
"""The number of neurons of the shipped spaces' networks. The regression costs the cube of this
number, so wider networks are read along this number of principal axes."""
ENOUGH = 0.97
"""The largest share of squared residuals on unseen tasks after a useful correction."""


@dataclass(frozen=True, slots=True)
class FeatureReading:
    """Turns the meta-features of a task into a few linear functions of them."""

    names: tuple[str, ...]
    centre: Floats
    """(m,), the mean over past tasks."""
    scale: Floats
    """(m,), their standard deviation; infinite if all past tasks agree."""
    functions: Floats
    """(m, p)"""

    @classmethod
    def of(cls, descriptions: Sequence[Mapping[str, float]]) -> Self:
        """Read the meta-features that all past tasks have. The important ones must be among them.

        A meta-feature that could not be measured (NaN or infinite) counts as missing.
        """
        names = tuple(n for n in descriptions[0] if all(_has(each, n) for each in descriptions))
        raw = np.array([[each[name] for name in names] for each in descriptions])
        spread = raw.std(axis=0)
        scale = np.where(spread > LEAST_SPREAD, spread, np.inf)
        known = cls(names, raw.mean(axis=0), scale, np.eye(len(names)))
        every = np.array([known(each) for each in descriptions])
        size, axes = np.linalg.svd(every - every.mean(axis=0), full_matrices=False)[1:]
        used = min(COMPONENTS, int((size > LEAST_SPREAD).sum()))
        components = axes[:used].T * (len(every) ** 0.5 / size[:used])
        themselves = np.eye(len(names))[:, [names.index(name) for name in THEMSELVES]]
        return replace(known, functions=np.hstack([themselves, components]))

    def __call__(self, description: Mapping[str, float]) -> Floats | None:
        """Return (p,), or None if the description lacks a meta-feature."""
        if not all(_has(description, name) for name in self.names):
            return None
        raw = np.array([description[name] for name in self.names])
        values: Floats = np.clip((raw - self.centre) / self.scale, -FARTHEST, FARTHEST)
        return values @ self.functions


def _is_complete(description: Mapping[str, float]) -> bool:
    """Return whether the description has all meta-features that are read directly."""
    return all(_has(description, name) for name in THEMSELVES)


def _has(description: Mapping[str, float], name: str) -> bool:
    return name in description and bool(np.isfinite(description[name]))


@dataclass(frozen=True, slots=True)
class Described:
    """A linear map from the meta-features of a task to a change of the mean's last layer."""

    reading: FeatureReading
    weights: Floats
    """(hidden + 1, p), for the weights of the last layer and then for its bias."""
    left: float
    """The share of the squared residuals that remains on unseen tasks after the correction."""

    @classmethod
    def learn(
        cls,
        model: DeepPipe,
        configs: Encoded,
        tasks: Sequence[PastTask],
        descriptions: Sequence[Mapping[str, float]],
        *,
        seed: int,
    ) -> Self | None:
        """Return the map that explains most of unseen tasks, or None if no map helps.

        tasks: their rows are rows of `configs`. Tasks whose description lacks an important
        meta-feature are left out.
        """
        known = [place for place, each in enumerate(descriptions) if _is_complete(each)]
        if not model.layout.sizes.learns_mean or len(known) < LEAST_TASKS:
            return None
        tasks, descriptions = [tasks[k] for k in known], [descriptions[k] for k in known]
        reading = FeatureReading.of(descriptions)
        hidden, mean = _last_hidden(model, configs)
        spread = hidden.std(axis=0)
        # All neurons that differ among pipelines count together as much as the constant.
        unit = np.where(spread > LEAST_SPREAD, spread * len(spread) ** 0.5, np.inf)
        hidden /= unit
        axes = _axes(hidden)
        read = hidden if axes is None else hidden @ axes
        past = [
            _Past.of(read, mean, task, np.asarray(reading(description)))
            for task, description in zip(tasks, descriptions, strict=True)
        ]
        if not any(each.squares for each in past):
            return None  # The mean leaves nothing over, as on tasks of one trial each.
        whole = _Normal.of(past)
        left = _held_out_loss(past, whole, seed)
        penalty = min(left, key=lambda each: left[each])
        if not left[penalty] < ENOUGH:
            return None
        weights = whole.solve(penalty)
        of_neurons = weights[:-1] if axes is None else axes @ weights[:-1]
        weights = np.vstack([of_neurons / unit[:, None], weights[-1:]])
        return cls(reading, weights, left[penalty])

    def apply(self, model: DeepPipe, description: Mapping[str, float]) -> DeepPipe:
        """Return the network with the corrected mean, or the same one without a description."""
        read = self.reading(description)
        if read is None:
            return model
        change = self.weights @ read
        weights, biases = (array.copy() for array in model.layers[-1])
        mean = model.layout.sizes.latent
        weights[:, mean] += change[:-1]
        biases[mean] += change[-1]
        return replace(
            model,
            layers=(*model.layers[:-1], (weights, biases)),
            log_signal=model.log_signal + float(np.log(self.left)),
        )

    def arrays(self) -> dict[str, Floats]:
        """Return all numbers by name, for a file. An infinite scale is written as 0."""
        return {
            "centre": self.reading.centre,
            "scale": np.where(np.isfinite(self.reading.scale), self.reading.scale, 0.0),
            "functions": self.reading.functions,
            "weights": self.weights,
        }

    @classmethod
    def of_arrays(cls, names: Sequence[str], arrays: Mapping[str, Floats], left: float) -> Self:
        """Read what `arrays` returned."""
        scale = np.where(arrays["scale"] > 0, arrays["scale"], np.inf)
        reading = FeatureReading(tuple(names), arrays["centre"], scale, arrays["functions"])
        return cls(reading, arrays["weights"], left)


@dataclass(frozen=True, slots=True)
class _Past:
    """The sums that the regression reads of one past task, whose rows weigh 1 together."""

    psi: Floats
    """(p,), the numbers that are read from its meta-features."""
    gram: Floats
    """(hidden + 1, hidden + 1), mean products of the inputs of the last layer and a constant 1."""
    moment: Floats
    """(hidden + 1,), mean products of the inputs with the residuals of the learnt mean."""
    squares: float
    """The mean square of the residuals."""

    @classmethod
    def of(cls, hidden: Floats, mean: Floats, task: PastTask, psi: Floats) -> Self:
        """Sum up the rows of one task, given (n, h) and (n,) of all configurations."""
        rows = np.hstack([hidden[task.rows], np.ones((len(task.rows), 1))])
        over = task.z - mean[task.rows]
        n = len(over)
        return cls(psi, rows.T @ rows / n, rows.T @ over / n, float(over @ over) / n)

    def remaining_loss(self, weights: Floats) -> float:
        """Return the mean square after the correction by weights (hidden + 1, p)."""
        change = weights @ self.psi
        return float(self.squares - 2.0 * self.moment @ change + change @ self.gram @ change)


@dataclass(frozen=True, slots=True)
class _Normal:
    """The normal equations, whose inputs are products of a neuron and a meta-feature."""

    gram: Floats
    moment: Floats
    read: int
    """The number of functions of the meta-features."""

    @classmethod
    def of(cls, past: Sequence[_Past]) -> Self:
        """Return the equations of all rows of these tasks."""
        # The Gram matrix of products is the Kronecker product of the Gram matrices.
        size = len(past[0].moment) * len(past[0].psi)
        gram: Floats = np.zeros((size, size))
        moment: Floats = np.zeros(size)
        for each in past:
            gram += np.kron(each.gram, np.outer(each.psi, each.psi))
            moment += np.kron(each.moment, each.psi)
        return cls(gram, moment, len(past[0].psi))

    def without(self, other: "_Normal") -> "_Normal":
        """Return the equations without those tasks."""
        return _Normal(self.gram - other.gram, self.moment - other.moment, self.read)

    def solve(self, penalty: float) -> Floats:
        """Return the weights (hidden + 1, p) of the ridge regression."""
        gram = self.gram.copy()
        gram[np.diag_indices_from(gram)] += penalty
        weights = np.asarray(np.linalg.solve(gram, self.moment), dtype=np.float64)
        return weights.reshape(-1, self.read)


def _held_out_loss(past: Sequence[_Past], whole: _Normal, seed: int) -> dict[float, float]:
    """Return {penalty: the share of the squares that is left on unseen tasks}."""
    fold = np.random.default_rng(seed).permutation(len(past)) % FOLDS
    left = dict.fromkeys(PENALTIES, 0.0)
    for k in range(FOLDS):
        unseen = [each for each, number in zip(past, fold, strict=True) if number == k]
        others = whole.without(_Normal.of(unseen))
        for penalty in PENALTIES:
            weights = others.solve(penalty)
            left[penalty] += sum(each.remaining_loss(weights) for each in unseen)
    before = sum(each.squares for each in past)
    return {penalty: after / before for penalty, after in left.items()}


def _axes(hidden: Floats) -> Floats | None:
    """Return (neurons, axes), the orthonormal axes of most variance, or None for few neurons."""
    if hidden.shape[1] <= MOST_AXES:
        return None
    centred = hidden - hidden.mean(axis=0)
    # Ascending by eigenvalue.
    return np.asarray(np.linalg.eigh(centred.T @ centred)[1][:, -MOST_AXES:])


def _last_hidden(model: DeepPipe, configs: Encoded) -> tuple[Floats, Floats]:
    """Return the inputs (n, hidden) of the last layer for configurations, and its mean (n,)."""
    embedding = PipelineEmbedding(model.layout)
    hidden = embedding.hidden(model.layers, model.layout.read(configs)).astype(np.float64)
    return hidden, embedding.embed(model.layers, configs)[1]
