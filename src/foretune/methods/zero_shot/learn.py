"""Portfolios as a method: the list in order, then another method."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from foretune._base.progress import Progress
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.past_data import check_space
from foretune.methods.zero_shot.build import Recipe, build
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.space import Encoded, Space

VERSION = 1
RECIPE = Recipe(k=10)
"""The recipe of the list that a search opens with."""


@dataclass(frozen=True, slots=True)
class PortfolioPrior(Prior):
    """A portfolio, and the method that follows."""

    kind: str
    configs: Encoded
    continuation: Callable[[Target], Surrogate]

    def opening(self, target: Target) -> Encoded:
        """Return the portfolio, in order."""
        check_space(self.configs.space, target)
        return self.configs

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate of the trials after the portfolio."""
        check_space(self.configs.space, target)
        return self.continuation(target)

    def save(self, path: Path) -> None:
        """Write the configurations."""
        meta, arrays = {"space": self.configs.space.to_json()}, self.configs.pack()
        save_artifact(path, kind=self.kind, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class PortfolioLearner(Learner):
    """Builds a portfolio from all past evaluations."""

    kind: str
    continuation: Callable[[Target], Surrogate]
    recipe: Recipe = RECIPE

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> PortfolioPrior:
        """Choose greedily by recorded losses or, if tasks share nothing, by predicted ones."""
        built = build(experience, replace(self.recipe, seed=seed), progress=progress)
        return PortfolioPrior(self.kind, built.configs, self.continuation)

    def load(self, path: Path) -> PortfolioPrior:
        """Read saved configurations."""
        meta, arrays = load_artifact(path, kind=self.kind, newest_version=VERSION)
        configs = Space.from_json(meta["space"]).unpack(arrays)
        return PortfolioPrior(self.kind, configs, self.continuation)


def portfolio_then(name: str, continuation: Callable[[Target], Surrogate]) -> PortfolioLearner:
    """Return the learner of the method `name`: the portfolio, then the continuation."""
    return PortfolioLearner(f"foretune-{name}", continuation)
