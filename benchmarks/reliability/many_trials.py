"""Ten thousand told trials: how long a suggestion takes, how much memory, and what it costs.

    python benchmarks/reliability/many_trials.py [--trials 10000] [--methods gp gcp gcp-prior]
    python benchmarks/reliability/many_trials.py --quality [--trials 2000]

`--quality` continues from trials that an exact process still takes: with all of them, with the part
that is used now, and with smaller ones. CPU seconds stand beside seconds, for busy machines.
"""

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from foretune.contracts import Target
from foretune.experience import Experience, Metric
from foretune.methods.baselines import gaussian_process
from foretune.numerics import anchored
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space

SPACE = Space.of(
    {
        **{f"x{i}": (0.0, 1.0) for i in range(6)},
        "units": (8, 512, "log"),
        "kind": ["a", "b", "c"],
    }
)


@dataclass(frozen=True)
class Problem:
    """A valley with ripples, at a place of its own."""

    seed: int

    def losses(self, configs: Encoded) -> np.ndarray:
        rng = np.random.default_rng(self.seed)
        centre = rng.uniform(0.2, 0.8, configs.x.shape[1])
        weights = rng.uniform(0.3, 2.0, configs.x.shape[1])
        gap = configs.x - centre
        return (weights * gap**2 + 0.05 * (1 - np.cos(9.0 * gap))).sum(axis=1)


def past(tasks: int = 20, trials: int = 50) -> Experience:
    configs = SPACE.sample(tasks * trials, seed=0)
    task = np.repeat(np.arange(tasks), trials)
    losses = np.concatenate(
        [Problem(1000 + t).losses(configs.take(np.flatnonzero(task == t))) for t in range(tasks)]
    )
    names = [f"task-{t}" for t in range(tasks)]
    return Experience.build(
        SPACE, [Metric("loss")], names, task, configs, np.arange(len(task)), losses
    )


def optimizer_of(name: str, told: Encoded, losses: np.ndarray, seed: int = 0) -> Optimizer:
    entry = method(name)
    prior = entry.learn(past() if entry.needs_experience else None, seed=0)
    optimizer = Optimizer(Target(SPACE), entry, prior, seed=seed)
    pairs = zip(told.dicts(), losses.tolist(), strict=True)
    optimizer.tell([Told((loss,), config=config) for config, loss in pairs])
    return optimizer


def timed(action: Callable[[], object]) -> tuple[float, float]:
    wall, own = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - own


def speed(methods: list[str], trials: int, failing: float) -> None:
    configs = SPACE.sample(trials, seed=1)
    losses = Problem(0).losses(configs)
    failed = np.random.default_rng(2).random(trials) < failing
    losses = np.where(failed, np.nan, losses)
    for name in methods:
        optimizer = optimizer_of(name, configs, losses)
        first = timed(optimizer.ask)
        later = []
        for asked in range(5):
            optimizer.tell([Told((1.0,), id=asked)])
            later.append(timed(optimizer.ask))
        wall, own = np.median(later, axis=0)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}: {trials} told, {failed.sum()} failed; first ask {first[0]:.2f} s (CPU "
            f"{first[1]:.2f}), then {wall:.2f} s (CPU {own:.2f}); peak {peak:.0f} MiB",
            flush=True,
        )


def quality(trials: int, sizes: list[int], seeds: int, more: int) -> None:
    """The mean loss of the suggestions that follow, and CPU seconds, by the part that is used."""
    for size in sizes:
        gaussian_process.LARGEST_GP = anchored.LARGEST_GP = size
        found, seconds = [], []
        for seed in range(seeds):
            problem = Problem(seed)
            configs = SPACE.sample(trials, seed=seed)
            optimizer = optimizer_of("gp", configs, problem.losses(configs), seed)
            began = time.process_time()
            for _ in range(more):
                suggestion = optimizer.ask()[0]
                loss = float(problem.losses(SPACE.encode([suggestion.config]))[0])
                optimizer.tell([Told((loss,), id=suggestion.id)])
            seconds.append((time.process_time() - began) / more)
            found.append(optimizer.told.losses[-more:, 0])
        print(
            f"{trials} trials, process of {min(size, trials)}: mean loss {np.mean(found):.4f}, "
            f"best {np.min(found, axis=1).mean():.4f}, CPU {np.mean(seconds):.2f} s a suggestion",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--methods", nargs="+", default=["gp", "gcp", "gcp-prior"])
    parser.add_argument("--failing", type=float, default=0.0, help="the share of failed trials")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 1000, 500])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--more", type=int, default=8, help="suggestions that are judged")
    arguments = parser.parse_args()
    if arguments.quality:
        trials = min(arguments.trials, max(arguments.sizes))
        quality(trials, arguments.sizes, arguments.seeds, arguments.more)
    else:
        speed(arguments.methods, arguments.trials, arguments.failing)


if __name__ == "__main__":
    main()
