"""Pre-training embeddings on source datasets, and the ranking model that chooses among them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import Progress, track
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior, Surrogate, Target
from foretune.methods.latent.embedding import AlgorithmEmbedding, Stack, random_stack
from foretune.methods.latent.model import ChoosingSurrogate, latent_surrogate
from foretune.methods.latent.sources import MetaFeatures, fit_ranker
from foretune.methods.past_data import PastTask, check_space, past_tasks, require_experience
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.lambdamart import Ranker
from foretune.numerics.normalise import share_of_better
from foretune.space import Encoded, Space
from foretune.space.algorithms import Algorithms

if TYPE_CHECKING:
    from foretune.methods.latent.training import SourceEvaluations

VERSION = 1
MOST_SOURCES = 100
"""The most past tasks to read; if there are more, they are drawn."""
LEAST_RANKED = 3
"""A ranking model needs two sources to compare for a third."""
STEPS, STEPS_IF_LARGE, LARGE = 1000, 4000, 5000
"""The steps of pre-training, those for a large source, and the evaluations that make it large."""


@dataclass(frozen=True, slots=True)
class LatentPrior(Prior):
    """Pre-trained embeddings, and how to choose among them."""

    kind: str
    space: Space
    embeddings: tuple[AlgorithmEmbedding, ...]
    meta_features: MetaFeatures
    ranker: Ranker | None
    """None if the sources have no meta-features, or are too few."""
    one_source: bool = False
    """Whether the ranking model alone chooses the one source, before any trial, as published."""

    def surrogate(self, target: Target) -> Surrogate:
        """Return a surrogate that chooses sources by the first trials and by meta-features."""
        check_space(self.space, target)
        if len(self.embeddings) == 1:
            return latent_surrogate(self.embeddings[0], target)
        if self.one_source:
            first = int(np.argmax(self.preferences(target)))
            return latent_surrogate(self.embeddings[first], target)
        return ChoosingSurrogate(self.embeddings, self.preferences(target), target)

    def preferences(self, target: Target) -> Floats:
        """Return (S,), 1 for the source ranked first, or zeros if no meta-feature is known."""
        known = set(target.meta_features) & set(self.meta_features.names)
        if self.ranker is None or not known:
            return np.zeros(len(self.embeddings))
        scores = self.ranker.scores(self.meta_features.distances(target.meta_features))
        return rankdata(scores) / len(scores)

    def save(self, path: Path) -> None:
        """Write one safetensors file."""
        table = self.meta_features.table
        arrays = {
            "meta_features": np.nan_to_num(table),
            "meta_features_known": ~np.isnan(table),
            "ranker": np.frombuffer((self.ranker.text if self.ranker else "").encode(), np.uint8),
        }
        for number in range(len(self.embeddings[0].stack)):
            layers = [each.stack[number] for each in self.embeddings]
            arrays[f"weights{number}"] = np.stack([weights for weights, _ in layers])
            arrays[f"biases{number}"] = np.stack([biases for _, biases in layers])
        meta = {
            "space": self.space.to_json(),
            "meta_features": list(self.meta_features.names),
            "layers": len(self.embeddings[0].stack),
        }
        save_artifact(path, kind=self.kind, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class LatentLearner(Learner):
    """Pre-trains one embedding for each source."""

    kind: str
    most_sources: int = MOST_SOURCES
    one_source: bool = False
    """Whether priors use the first source of the ranking model alone."""
    pretrain: Callable[..., AlgorithmEmbedding] = field(default_factory=lambda: pretrain)

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> LatentPrior:
        """Pre-train, and learn to rank if the sources have meta-features."""
        experience = require_experience(experience)
        names, tasks = _draw_sources(experience, self.most_sources, seed)
        algorithms = Algorithms.of(experience.space)
        # Drawn, because with consecutive seeds the sources of two seeds would begin alike.
        seeds = np.random.default_rng(seed).integers(2**62, size=len(tasks)).tolist()
        steps = track(tasks, progress, "pre-training embeddings", len(tasks))
        embeddings = tuple(
            self.pretrain(algorithms, experience.configs.take(task.rows), task.z, seed=own)
            for own, task in zip(seeds, steps, strict=True)
        )
        described = [experience.meta_features.get(name, {}) for name in names]
        meta_features = MetaFeatures.of(described)
        ranker = None
        if len(tasks) >= LEAST_RANKED and meta_features.names:
            ranker = fit_ranker(embeddings, tasks, experience.configs, meta_features, seed=seed)
        return LatentPrior(
            self.kind, experience.space, embeddings, meta_features, ranker, self.one_source
        )

    def load(self, path: Path) -> LatentPrior:
        """Read saved embeddings."""
        meta, arrays = load_artifact(path, kind=self.kind, newest_version=VERSION)
        space = Space.from_json(meta["space"])
        algorithms = Algorithms.of(space)
        layers = [(arrays[f"weights{n}"], arrays[f"biases{n}"]) for n in range(meta["layers"])]
        embeddings = tuple(
            AlgorithmEmbedding(
                algorithms, tuple((weights[s], biases[s]) for weights, biases in layers)
            )
            for s in range(len(layers[0][0]))
        )
        table = np.where(arrays["meta_features_known"], arrays["meta_features"], np.nan)
        text = arrays["ranker"].tobytes().decode()
        return LatentPrior(
            self.kind,
            space,
            embeddings,
            MetaFeatures(tuple(meta["meta_features"]), table),
            Ranker.read(text) if text else None,
            self.one_source,
        )


def pretrain(
    algorithms: Algorithms,
    configs: Encoded,
    gaps: Floats,
    *,
    seed: int,
    beta: float | None = None,
) -> AlgorithmEmbedding:
    """Learn the embedding of one source: |phi(configuration)|² grows with its gap to the best.

    gaps: (n,), at least 0. beta: the weight of deceiving the classifiers. Default: the paper's.
    """
    from foretune.methods.latent.training import BETA, pre_train
    from foretune.numerics.training import cache_compilation

    cache_compilation()
    source = pad_source(
        algorithms.inputs(configs), algorithms.algorithm_of(configs), gaps, len(algorithms)
    )
    strength = BETA if beta is None else beta
    networks = pre_train(source, strength, steps=steps_for(len(gaps)), seed=seed)
    sizes = (algorithms.width, None, None)
    stack: Stack = tuple(
        (
            np.asarray(weights, dtype=np.float64)[: len(algorithms), :size],
            np.asarray(biases, dtype=np.float64)[: len(algorithms)],
        )
        for (weights, biases), size in zip(networks.embedding, sizes, strict=True)
    )
    return _in_latent_units(AlgorithmEmbedding(algorithms, stack), configs)


def steps_for(evaluations: int) -> int:
    """Return the number of training steps for a source of this size."""
    return STEPS if evaluations <= LARGE else STEPS_IF_LARGE


def pad_source(inputs: Floats, which: Ints, gaps: Floats, algorithms: int) -> "SourceEvaluations":
    """Return evaluations by algorithm, padded so that few shapes must be compiled."""
    import jax.numpy as jnp

    from foretune.methods.latent.training import SourceEvaluations
    from foretune.numerics.training import bucket

    counts = np.bincount(which, minlength=-(-algorithms // 4) * 4)
    most, width = bucket(int(counts.max()), least=64), -(-inputs.shape[1] // 8) * 8
    x = np.zeros((len(counts), most, width), dtype=np.float32)
    gap = np.zeros((len(counts), most), dtype=np.float32)
    for m, count in enumerate(counts):
        rows = np.flatnonzero(which == m)
        x[m, :count, : inputs.shape[1]] = inputs[rows]
        gap[m, :count] = gaps[rows]
    return SourceEvaluations(jnp.asarray(x), jnp.asarray(gap), jnp.asarray(counts, dtype=jnp.int32))


def _in_latent_units(embedding: AlgorithmEmbedding, configs: Encoded) -> AlgorithmEmbedding:
    """Return the embedding with |u|² = 1 on average."""
    mean = float(np.square(embedding.place(configs)).sum(axis=1).mean())
    scale = 1.0 / np.sqrt(max(mean, 1e-6))
    weights, biases = embedding.stack[-1]
    head = (weights * scale, biases * scale)
    return AlgorithmEmbedding(embedding.algorithms, (*embedding.stack[:-1], head))


def _draw_sources(experience: Experience, most: int, seed: int) -> tuple[list[str], list[PastTask]]:
    """Draw the sources, and return their names and evaluations. z is the share of better ones.

    With several objectives z is the mean of their shares, minus its least value.
    """
    named = [name for name in experience.tasks if experience.task(name).is_success.any()]
    tasks = [
        PastTask(task.rows, task.z - task.z.min())
        for task in past_tasks(experience, share_of_better)
    ]
    drawn = np.sort(np.random.default_rng(seed).permutation(len(tasks))[:most]).tolist()
    return [named[place] for place in drawn], [tasks[place] for place in drawn]


@dataclass(frozen=True, slots=True)
class UntrainedPrior(Prior):
    """No source: all layers of random networks are learnt from the target's trials."""

    kind: str
    seed: int

    def surrogate(self, target: Target) -> Surrogate:
        """Return the surrogate of an embedding that the target's trials train."""
        algorithms = Algorithms.of(target.space)
        stack = random_stack(algorithms, self.seed)
        return latent_surrogate(AlgorithmEmbedding(algorithms, stack, movable=len(stack)), target)

    def save(self, path: Path) -> None:
        """Write the seed."""
        save_artifact(path, kind=self.kind, version=VERSION, meta={"seed": self.seed}, arrays={})


@dataclass(frozen=True, slots=True)
class UntrainedLearner(Learner):
    """Learns nothing from past tasks."""

    kind: str

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> UntrainedPrior:
        """Keep the seed of the first weights."""
        del experience, progress
        return UntrainedPrior(self.kind, seed)

    def load(self, path: Path) -> UntrainedPrior:
        """Read the seed."""
        meta, _ = load_artifact(path, kind=self.kind, newest_version=VERSION)
        return UntrainedPrior(self.kind, int(meta["seed"]))
