"""The prior of copula transfer: the distribution of a task's scores z given a configuration.

P(z | x) = N(mu(x), sigma(x)²), where mu and sigma are two heads of one network (paper, section 3).
Each objective has a network of its own. Several objectives have one more, which regresses their
average score (section 5.2).
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
AVERAGE = "average"
"""The name of its network in the file."""


@dataclass(frozen=True, slots=True)
class ScoreBelief:
    """The scores that past tasks predict for n configurations."""

    mu: Floats
    """(n, L), the expected score of each objective."""
    sigma: Floats
    """(n, L), its standard deviation over tasks and noise."""
    average: tuple[Floats, Floats] | None = None
    """Mean and standard deviation (n,) of the average score, from a network of its own."""

    def weighted_sum(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation (n,) of the weighted sum of the scores."""
        if self.average is not None and (weights == weights[0]).all():
            return self.average
        # Taken as independent. Their correlation changed nothing in searches (PAPER.md).
        return self.mu @ weights, np.sqrt(np.square(self.sigma) @ np.square(weights))


@dataclass(frozen=True, slots=True)
class ObjectiveNetworks:
    """A network for each objective: hidden layers, then mu, and sigma before its activation."""

    layers: tuple[Layers, ...]
    average: Layers | None = None
    """The network of the average score; None for one objective."""

    def believe(self, x: Floats) -> ScoreBelief:
        """Return mu and sigma at encoded configurations x (n, W)."""
        each = [_believe(layers, x) for layers in self.layers]
        return ScoreBelief(
            np.column_stack([mu for mu, _ in each]),
            np.column_stack([sigma for _, sigma in each]),
            None if self.average is None else _believe(self.average, x),
        )

    def save(self, path: Path, *, kind: str, space: Space) -> None:
        """Write one safetensors file."""
        networks = {str(objective): layers for objective, layers in enumerate(self.layers)}
        if self.average is not None:
            networks[AVERAGE] = self.average
        arrays = {
            f"{which}.{number}.{name}": array
            for which, layers in networks.items()
            for number, layer in enumerate(layers)
            for name, array in zip(("weights", "biases"), layer, strict=True)
        }
        meta = {"space": space.to_json(), "shape": [len(layers) for layers in self.layers]}
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_networks(path: Path, *, kind: str) -> tuple[ObjectiveNetworks, Space]:
    """Read what `ObjectiveNetworks.save` wrote, and its space."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)

    def read(which: str, depth: int) -> Layers:
        return tuple(
            (arrays[f"{which}.{number}.weights"], arrays[f"{which}.{number}.biases"])
            for number in range(depth)
        )

    layers = tuple(read(str(objective), depth) for objective, depth in enumerate(meta["shape"]))
    # Older priors of several objectives have none.
    average = read(AVERAGE, meta["shape"][0]) if f"{AVERAGE}.0.weights" in arrays else None
    return ObjectiveNetworks(layers, average), Space.from_json(meta["space"])


def _believe(layers: Layers, x: Floats) -> tuple[Floats, Floats]:
    weights, biases = layers[-1]
    outputs: Floats = apply_relu_layers(layers[:-1], x) @ weights + biases
    return outputs[:, 0], softplus(outputs[:, 1]) + LEAST_SIGMA
