"""What copula transfer learns: the distribution of the scores z given a configuration.

P(z | x) = N(mu(x), sigma(x)²), where mu and sigma are two heads of one network (paper, section 3).
A second network has one head a past task; how those differ from each other says along which
directions tasks vary, which the target uses as columns that its scores may depend on linearly.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune.arrays import Floats
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.networks import Layers, rectified, softplus
from foretune.space import Space

VERSION = 1
LEAST_SIGMA = 1e-3


@dataclass(frozen=True, slots=True)
class Belief:
    """What past tasks say about n configurations."""

    mu: Floats
    """(n,), the expected score."""
    sigma: Floats
    """(n,), its standard deviation over tasks and noise."""
    directions: Floats
    """(n, k), how the scores move along the directions in which past tasks differ."""


@dataclass(frozen=True, slots=True)
class Networks:
    """The weights: a trunk with heads for mu and sigma, and a trunk for the directions."""

    pooled: Layers
    """Hidden layers, then one layer with two outputs: mu, and sigma before its activation."""
    by_task: Layers
    """Hidden layers, then one layer with the k directions; empty where they are not used."""

    def believe(self, x: Floats) -> Belief:
        """mu, sigma and directions at encoded configurations x (n, W)."""
        mu, raw = _heads(self.pooled, x).T
        directions = _heads(self.by_task, x) if self.by_task else np.empty((len(x), 0))
        return Belief(mu, softplus(raw) + LEAST_SIGMA, directions)

    def save(self, path: Path, *, kind: str, space: Space) -> None:
        """Write one safetensors file."""
        arrays = {
            f"{part}.{number}.{name}": array
            for part, layers in (("pooled", self.pooled), ("by_task", self.by_task))
            for number, layer in enumerate(layers)
            for name, array in zip(("weights", "biases"), layer, strict=True)
        }
        meta = {"space": space.to_json()}
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_networks(path: Path, *, kind: str) -> tuple[Networks, Space]:
    """What `Networks.save` wrote, and the space it holds for."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)

    def layers(part: str) -> Layers:
        count = sum(name.startswith(f"{part}.") for name in arrays) // 2
        return tuple(
            (arrays[f"{part}.{number}.weights"], arrays[f"{part}.{number}.biases"])
            for number in range(count)
        )

    return Networks(layers("pooled"), layers("by_task")), Space.from_json(meta["space"])


def _heads(layers: Layers, x: Floats) -> Floats:
    weights, biases = layers[-1]
    heads: Floats = rectified(layers[:-1], x) @ weights + biases
    return heads
