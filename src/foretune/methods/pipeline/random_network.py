"""DeepPipe without past tasks: a random network that is trained on the target's own trials."""

from dataclasses import dataclass
from pathlib import Path

from foretune._base.progress import Progress
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.model import GROWTH, DeepPipeSurrogate
from foretune.numerics.artifact import load_artifact, save_artifact

VERSION = 1
KIND = "foretune-deeppipe-ri"
FIRST_LOOK = 500
STEPS = 300


@dataclass(frozen=True, slots=True)
class RandomNetworkPrior(Prior):
    """A prior without knowledge: the seed of the network's first weights."""

    sizes: Sizes
    seed: int

    def surrogate(self, target: Target) -> Surrogate:
        """Return a surrogate whose network learns from the target's trials."""
        from foretune.methods.pipeline.training import TunedNetwork, initial_network

        layout = NetworkLayout.of(target.space, self.sizes)
        start = initial_network(layout, target.space.sample(FIRST_LOOK, seed=0), self.seed)
        tuned = TunedNetwork(start, target.pool, steps=STEPS, growth=GROWTH)
        return DeepPipeSurrogate(tuned)

    def save(self, path: Path) -> None:
        """Write the seed."""
        save_artifact(path, kind=KIND, version=VERSION, meta={"seed": self.seed}, arrays={})


@dataclass(frozen=True, slots=True)
class RandomNetworkLearner(Learner):
    """Learns nothing from past tasks."""

    sizes: Sizes

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> RandomNetworkPrior:
        """Return a prior that keeps the seed."""
        del experience, progress
        return RandomNetworkPrior(self.sizes, seed)

    def load(self, path: Path) -> RandomNetworkPrior:
        """Read the seed."""
        meta, _ = load_artifact(path, kind=KIND, newest_version=VERSION)
        return RandomNetworkPrior(self.sizes, int(meta["seed"]))
