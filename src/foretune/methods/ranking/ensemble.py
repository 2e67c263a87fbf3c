"""The networks of a deep ranking ensemble, read in NumPy: prediction never waits for a compiler.

All scorers have the same shape, so that layer l of all M of them is one array (M, inputs, outputs).
They share the deep set that makes meta-features of the history {(x, y)}.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from foretune._base.arrays import Floats
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.networks import Layers, apply_relu_layers
from foretune.numerics.objectives import scalarise
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import standardise
from foretune.space import Space

VERSION = 1
SCORERS = 10
UNITS = (32, 32, 32, 32)
"""Hidden layers of a scorer."""
SET_UNITS = (32, 32)
"""Layers of the deep set, before and after the average."""
META_FEATURES = 16
CLIP = 3.0
"""The largest standardised loss that the deep set reads."""

NEXT_TO_NOTHING = 1e-6
"""The share of a task's range of losses that single precision can hardly tell apart."""

Singles: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ensemble:
    """M scorers s_m(x, z) of configurations and meta-features; a higher score is better."""

    scorers: Layers
    """Weights (M, inputs, outputs) and biases (M, outputs) of each layer."""
    each: Layers = ()
    """The deep set's layers for one (x, y)."""
    all: Layers = ()
    """Its layers after the average over the history."""

    def meta_features(self, x: Floats, y: Floats) -> Singles:
        """Return (16,), features of a task from its configurations x (n, W) and losses y (n,).

        The array is empty if the ensemble has no deep set. y may have any unit.
        """
        if not self.all:
            return np.empty(0, dtype=np.float32)
        pairs = np.column_stack([centre(x), history_features(y)])
        total = apply_relu_layers(self.each, pairs).sum(axis=0)
        mean = total / max(len(y), 1)
        weights, biases = self.all[-1]
        return np.asarray(
            apply_relu_layers(self.all[:-1], mean[None, :])[0] @ weights + biases, np.float32
        )

    def inputs(self, x: Floats, meta_features: Singles) -> Singles:
        """Return (n, W + 16), the inputs of the scorers."""
        z = np.broadcast_to(meta_features, (len(x), len(meta_features)))
        return np.concatenate([centre(x).astype(np.float32), z], axis=1)

    def save(self, path: Path, *, kind: str, space: Space) -> None:
        """Write one safetensors file."""
        parts = {"scorers": self.scorers, "each": self.each, "all": self.all}
        arrays = {
            f"{part}.{number}.{name}": array
            for part, layers in parts.items()
            for number, layer in enumerate(layers)
            for name, array in zip(("weights", "biases"), layer, strict=True)
        }
        meta = {
            "space": space.to_json(),
            "depths": {part: len(layers) for part, layers in parts.items()},
        }
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_ensemble(path: Path, *, kind: str) -> tuple[Ensemble, Space]:
    """Read what `Ensemble.save` wrote, and its space."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    parts = {
        part: tuple(
            (arrays[f"{part}.{number}.weights"], arrays[f"{part}.{number}.biases"])
            for number in range(depth)
        )
        for part, depth in meta["depths"].items()
    }
    return Ensemble(**parts), Space.from_json(meta["space"])


def random_ensemble(width: int, *, seed: int, meta_features: bool) -> Ensemble:
    """Return scorers of random weights, with or without a deep set, for configurations (., width).

    Random biases spread the kinks of the rectifiers over the whole cube. Without them every
    function would be linear along each ray from the centre.
    """
    rng = np.random.default_rng(seed)
    if not meta_features:
        return Ensemble(_random_layers(rng, (width, *UNITS, 1), (SCORERS,)))
    return Ensemble(
        _random_layers(rng, (width + META_FEATURES, *UNITS, 1), (SCORERS,)),
        _random_layers(rng, (width + 2, *SET_UNITS), ()),
        _random_layers(rng, (SET_UNITS[-1], *SET_UNITS, META_FEATURES), ()),
    )


def _random_layers(
    rng: np.random.Generator, sizes: tuple[int, ...], stack: tuple[int, ...]
) -> Layers:
    layers = []
    for fan_in, out in pairwise(sizes):
        scale = np.sqrt(2.0 / fan_in)
        weights = scale * rng.standard_normal((*stack, fan_in, out))
        biases = scale * rng.standard_normal((*stack, out))
        layers.append((weights.astype(np.float32), biases.astype(np.float32)))
    return tuple(layers)


def activations(scorers: Layers, inputs: Singles) -> list[Singles]:
    """Return the inputs (n, I) and the outputs (M, n, units) of each layer of all scorers.

    The last outputs are the scores, (M, n, 1).
    """
    found = [inputs]
    for weights, biases in scorers[:-1]:
        found.append(np.maximum(found[-1] @ weights + biases[:, None, :], np.float32(0.0)))
    weights, biases = scorers[-1]
    return [*found, found[-1] @ weights + biases[:, None, :]]


def scores(scorers: Layers, inputs: Singles) -> Singles:
    """Return (M, n), the scores of all scorers."""
    return activations(scorers, inputs)[-1][:, :, 0]


def centre(x: Floats) -> Floats:
    """Move the unit cube to the origin, where rectified networks start best."""
    return 2.0 * x - 1.0


def one_loss(losses: Floats) -> Floats:
    """Turn the losses (n, L) of a task into (n,): standardised, or the mean of several scores.

    Beside an enormous loss, which people note for a failure, all others would be equal in single
    precision. Then ranks are used.
    """
    by_rank = losses.shape[1] > 1 or _has_outliers(losses[:, 0])
    return scalarise(losses, midrank_scores) if by_rank else standardise(losses[:, 0])


def _has_outliers(y: Floats) -> bool:
    """Return whether the better half of the losses y (n,) differs by almost nothing."""
    best, middle, worst = np.sort(y)[[0, len(y) // 2, -1]].tolist()
    return bool(0.0 < middle - best < NEXT_TO_NOTHING * (worst - best))


def history_features(y: Floats) -> Floats:
    """Return (n, 2), the Gaussian scores and the standardised values of losses y (n,).

    The deep set reads them. Neither depends on scale or offset. Scores are
    Phi^-1((rank - 1/2) / n), with ties at their mean. Values are clipped, so that no outlier
    reaches the network.
    """
    if len(y) == 0:
        return np.empty((0, 2))
    return np.column_stack([midrank_scores(y), np.clip(standardise(y), -CLIP, CLIP)])
