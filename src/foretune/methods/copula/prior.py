"""The prior of copula transfer: the distribution of a task's scores z given a configuration.

P(z | x) = N(mu(x), sigma(x)²), where mu and sigma are two heads of one network (paper, section 3).
Each objective has a network of its own.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.networks import Layers, apply_relu_layers, softplus
from foretune.space import Space

VERSION = 1
LEAST_SIGMA = 1e-3


@dataclass(frozen=True, slots=True)
class ScoreBelief:
    """The scores that past tasks predict for n configurations."""

    mu: Floats
    """(n, L), the expected score of each objective."""
    sigma: Floats
    """(n, L), its standard deviation over tasks and noise."""

    def weighted_sum(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (n,) of the weighted sum of independent scores."""
        return self.mu @ weights, np.sqrt(np.square(self.sigma) @ np.square(weights))


@dataclass(frozen=True, slots=True)
class ObjectiveNetworks:
    """A network for each objective: hidden layers, then mu, and sigma before its activation."""

    layers: tuple[Layers, ...]

    def believe(self, x: Floats) -> ScoreBelief:
        """Return mu and sigma at encoded configurations x (n, W)."""
        outputs = np.stack([_outputs(layers, x) for layers in self.layers], axis=1)
        return ScoreBelief(outputs[:, :, 0], softplus(outputs[:, :, 1]) + LEAST_SIGMA)

    def save(self, path: Path, *, kind: str, space: Space) -> None:
        """Write one safetensors file."""
        arrays = {
            f"{objective}.{number}.{name}": array
            for objective, layers in enumerate(self.layers)
            for number, layer in enumerate(layers)
            for name, array in zip(("weights", "biases"), layer, strict=True)
        }
        meta = {"space": space.to_json(), "shape": [len(layers) for layers in self.layers]}
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_networks(path: Path, *, kind: str) -> tuple[ObjectiveNetworks, Space]:
    """Read what `ObjectiveNetworks.save` wrote, and its space."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    layers = tuple(
        tuple(
            (arrays[f"{objective}.{number}.weights"], arrays[f"{objective}.{number}.biases"])
            for number in range(depth)
        )
        for objective, depth in enumerate(meta["shape"])
    )
    return ObjectiveNetworks(layers), Space.from_json(meta["space"])


def _outputs(layers: Layers, x: Floats) -> Floats:
    weights, biases = layers[-1]
    outputs: Floats = apply_relu_layers(layers[:-1], x) @ weights + biases
    return outputs
