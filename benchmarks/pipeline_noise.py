"""What honest noise does to the search of `deeppipe-ri`, on recorded tasks without past ones.

The variants: `deeppipe-ri` fits its kernel to trials that networks have not learnt;
`learnt-noise` fits it to all trials, as before; `untrained` leaves the network as it was drawn.

Example: python benchmarks/pipeline_noise.py --experience zap.parquet --tasks 20 --out noise.parquet
"""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

from foretune.experience import Experience
from foretune.methods import StatelessLearner, Surrogate, Target
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.model import DeepPipeSurrogate, FixedNetwork
from foretune.methods.pipeline.random_network import FIRST_LOOK, RandomNetworkPrior
from foretune.methods.pipeline.training import TunedNetwork, initial_network
from foretune.numerics import Floats
from foretune.search import METHODS, Method
from foretune.space import Encoded
from foretune_lab.bench.replay import replay

SIZES = Sizes(encoder_layers=2)


@dataclass(frozen=True)
class LearntNoise(TunedNetwork):
    """Fits the kernel to the trials that the network has learnt."""

    def halves(self, configs: Encoded, losses: Floats) -> None:  # type: ignore[override]
        """Return None: then all trials are used."""


def _learnt_noise(target: Target) -> Surrogate:
    surrogate = RandomNetworkPrior(SIZES, 0).surrogate(target)
    assert isinstance(surrogate, DeepPipeSurrogate)
    tuned = surrogate.source
    assert isinstance(tuned, TunedNetwork)
    source = LearntNoise(tuned.start, tuned.pool, steps=tuned.steps, growth=tuned.growth)
    return replace(surrogate, source=source)


def _untrained(target: Target) -> Surrogate:
    layout = NetworkLayout.of(target.space, SIZES)
    start = initial_network(layout, target.space.sample(FIRST_LOOK, seed=0), 0)
    return DeepPipeSurrogate(FixedNetwork.on(start, target.pool))


for name, make in (("learnt-noise", _learnt_noise), ("untrained", _untrained)):
    METHODS[name] = Method(name, name, lambda n=name, m=make: StatelessLearner(n, m))  # type: ignore[misc]


def main() -> None:
    """Play the variants and their rivals, and write the results for `foretune bench report`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--methods", default="deeppipe-ri,learnt-noise,untrained,gp,random")
    parser.add_argument("--split", default="paper")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", default="0", help="such as 0 or 0,1,2")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    replay(
        Experience.open(options.experience),
        options.methods.split(","),
        trials=options.trials,
        seeds=[int(seed) for seed in options.seeds.split(",")],
        tasks_limit=options.tasks,
        split=options.split,
        start="recorded",
        suite=Path(options.experience).stem,
        out=options.out,
    )


if __name__ == "__main__":
    main()
