"""Learning a DeepPipe from past tasks, and its prior."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from sys import maxsize
from typing import ClassVar

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import Progress
from foretune.errors import ForetuneWarning, MethodError, SpaceError
from foretune.experience import Experience, learning_split
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.past_data import (
    PastTask,
    past_tasks,
    require_experience,
    split_tasks,
    trial_shares,
)
from foretune.methods.pipeline.described import Described
from foretune.methods.pipeline.growth import extend_network
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.model import GROWTH, DeepPipe, DeepPipeSurrogate, FixedNetwork
from foretune.methods.pipeline.opening import portfolio
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.space import Encoded, Space

VERSION = 1
FIRST_LOOK = 2000
"""The number of configurations that set the lengthscale at the start of training."""
DESCRIBED = "described."
"""Before the names of its arrays."""


@dataclass(frozen=True, slots=True)
class DeepPipePrior(Prior):
    """The network and kernel of past tasks, and the pipelines to begin with."""

    model: DeepPipe
    first: Encoded
    kind: str = "foretune-deeppipe"
    can_continue: ClassVar[bool] = True
    """The artifact's kind, which keeps priors of different variants apart."""
    described: Described | None = None
    """The effect of meta-features, if past tasks have some and it helps."""

    def surrogate(self, target: Target) -> Surrogate:
        """The learnt network; on a larger space, with new encoders that the target's trials train.

        What is new is named in a warning and in the surrogate's `notes`.
        """
        model = replace(self.model, shares=trial_shares(target))
        if self.described is not None:
            model = self.described.apply(model, target.meta_features)
        if target.space == model.layout.space:
            return DeepPipeSurrogate(FixedNetwork.on(model, target.pool))
        from foretune.methods.pipeline.training import CAREFUL_RATE, TUNING_RATE, TunedNetwork

        larger = extend_network(model, target.space)
        if not larger.notes:
            return DeepPipeSurrogate(FixedNetwork.on(larger.model, target.pool))
        warnings.warn(
            f"past tasks have no values of {', '.join(larger.notes)}: these are learnt from "
            "the target's own trials",
            ForetuneWarning,
            stacklevel=2,
        )
        # Without encoders nothing belongs to the new algorithm alone, so all is tuned.
        has_encoders = model.layout.sizes.encoder_layers > 0
        parts, rate = (larger.new, TUNING_RATE) if has_encoders else (None, CAREFUL_RATE)
        tuned = TunedNetwork(larger.model, target.pool, parts, growth=GROWTH, rate=rate)
        return DeepPipeSurrogate(tuned, larger.notes)

    def opening(self, target: Target) -> Encoded:
        """Return the part of the portfolio whose algorithms the target's space has."""
        if target.space == self.first.space:
            return self.first
        names = set(target.space.names)
        kept = target.space.from_values(np.empty((0, len(target.space))))
        for config in self.first.dicts():
            shared = {name: value for name, value in config.items() if name in names}
            try:
                one = target.space.encode([shared], fill_defaults=True)
            except SpaceError:
                continue
            kept = Encoded.concat([kept, one])
        return kept

    def save(self, path: Path) -> None:
        """Write the network, the kernel and the portfolio."""
        arrays = self.first.pack()
        for number, (weights, biases) in enumerate(self.model.layers):
            arrays |= {f"weights{number}": weights, f"biases{number}": biases}
        meta = {
            "space": self.first.space.to_json(),
            "sizes": asdict(self.model.layout.sizes),
            "kernel": [self.model.log_lengthscale, self.model.log_signal, self.model.log_noise],
        }
        if self.described is not None:
            meta["described"] = {
                "names": list(self.described.reading.names),
                "left": self.described.left,
            }
            numbers = self.described.arrays()
            arrays |= {f"{DESCRIBED}{name}": value for name, value in numbers.items()}
        save_artifact(path, kind=self.kind, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class DeepPipeLearner(Learner):
    """Meta-trains the network; each task's losses are transformed on their own."""

    sizes: Sizes
    scores: Callable[[Floats], Floats]
    """Turns a past task's losses into the scores that the network learns to predict."""
    kind: str = "foretune-deeppipe"
    can_continue: ClassVar[bool] = True

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> DeepPipePrior:
        """Learn the network (Algorithm 1) and the greedy portfolio."""
        experience = require_experience(experience)
        start = self.first_network(experience, seed=seed)
        return self._train(start, experience, seed=seed, progress=progress)

    def first_network(self, experience: Experience, *, seed: int) -> DeepPipe:
        """Return the random network from which training starts."""
        from foretune.methods.pipeline.training import initial_network

        configs = experience.configs
        rng = np.random.default_rng(seed)
        looked_at = configs.take(rng.permutation(len(configs))[:FIRST_LOOK])
        return initial_network(NetworkLayout.of(experience.space, self.sizes), looked_at, seed)

    def continue_from(
        self, earlier: Prior, experience: Experience, *, seed: int, progress: Progress
    ) -> DeepPipePrior:
        """Train a few more steps on all tasks, at the last and lowest rate."""
        if not isinstance(earlier, DeepPipePrior) or earlier.first.space != experience.space:
            return self.learn(experience, seed=seed, progress=progress)
        start = earlier.model
        return self._train(start, experience, seed=seed, progress=progress, briefly=True)

    def _train(
        self,
        start: DeepPipe,
        experience: Experience,
        *,
        seed: int,
        progress: Progress,
        briefly: bool = False,
    ) -> DeepPipePrior:
        from foretune.methods.pipeline.training import refreshing, train_on_past_tasks

        configs = experience.configs
        train, validation = parts(experience, self.scores, seed)
        schedules = refreshing(train) if briefly else None
        model = train_on_past_tasks(
            start, configs, train, validation, seed=seed, progress=progress, schedules=schedules
        )
        first = configs.take(portfolio([*train, *validation]))
        described = Described.learn(model, configs, *self._all(experience), seed=seed)
        return DeepPipePrior(model, first, self.kind, described)

    def _all(self, experience: Experience) -> tuple[list[PastTask], list[Mapping[str, float]]]:
        """Return all tasks with a success, and their meta-features."""
        named = tasks_with_success(experience, experience.tasks)
        tasks = past_tasks(experience.only(named), self.scores)
        return tasks, [experience.meta_features.get(name, {}) for name in named]

    def load(self, path: Path) -> DeepPipePrior:
        """Read a saved prior."""
        meta, arrays = load_artifact(path, kind=self.kind, newest_version=VERSION)
        # Older priors say nothing of a limit: they had none.
        space, sizes = Space.from_json(meta["space"]), Sizes(**{"widest": maxsize, **meta["sizes"]})
        layers = tuple(
            (arrays[f"weights{number}"], arrays[f"biases{number}"])
            for number in range(sizes.layers + 1)
        )
        model = DeepPipe(NetworkLayout.of(space, sizes), layers, *meta["kernel"])
        first = space.unpack(arrays)
        described = None
        if "described" in meta:
            numbers = {
                name.removeprefix(DESCRIBED): value
                for name, value in arrays.items()
                if name.startswith(DESCRIBED)
            }
            described = Described.of_arrays(arrays=numbers, **meta["described"])
        return DeepPipePrior(model, first, self.kind, described)


def tasks_with_success(experience: Experience, names: Iterable[str]) -> list[str]:
    """Return the tasks that have a success. Nothing is learnt from the others."""
    return [name for name in names if experience.task(name).is_success.any()]


def parts(
    experience: Experience, transform: Callable[[Floats], Floats], seed: int
) -> tuple[list[PastTask], list[PastTask]]:
    """Return the tasks that train and those that validate. A single task does both."""
    split = learning_split(experience)
    train = tasks_with_success(experience, split.train)
    validation = tasks_with_success(experience, split.validation)
    if not train and not validation:
        raise MethodError(
            "a network learns from past tasks with a successful evaluation, but none of the "
            f"{len(split.train) + len(split.validation)} tasks for training and validation has "
            "one: give other experience",
            rule="no-success",
            field="experience",
            value=len(split.train) + len(split.validation),
        )
    train = train or validation
    if not validation:
        # In the order of the experience: batches are drawn by place.
        parted = [set(names) for names in split_tasks(train, np.random.default_rng(seed))]
        train, validation = [[name for name in train if name in part] for part in parted]
    return (
        past_tasks(experience.only(train), transform),
        past_tasks(experience.only(validation), transform),
    )
