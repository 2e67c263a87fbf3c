"""A hundred thousand told trials: how long a suggestion takes, how much memory, and what it costs.

    python benchmarks/reliability/many_trials.py [--trials 100000] [--methods auto gp gcp gcp-prior]
    python benchmarks/reliability/many_trials.py --quality [--trials 2000]

`--quality` compares processes of parts of the trials with one of all of them, with the same
hyperparameters. CPU seconds stand beside seconds, for busy machines.
"""

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from parallel import run_parts
from rows import Row

from foretune.experience import Experience, Metric
from foretune.methods.contracts import Target
from foretune.numerics import anchored
from foretune.numerics.acquisition import log_expected_improvement
from foretune.numerics.gp import GP
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
    # What a method opens with was tried long ago, in a search of so many trials.
    optimizer = Optimizer(Target(SPACE), entry, prior, seed=seed, start=told.take([]))
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
        slow = max(first[0], *(seconds for seconds, _ in later))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}: {trials} told, {failed.sum()} failed; first ask {first[0]:.2f} s (CPU "
            f"{first[1]:.2f}), then {wall:.2f} s (CPU {own:.2f}); peak {peak:.0f} MiB",
            flush=True,
        )
        Row(
            f"ask after many told trials, {name}", trials,
            longest_s=round(slow, 2), peak_mb=round(peak), note=f"{own:.2f} s of CPU, median",
        ).print()  # fmt: skip


def speed_of(part: tuple[list[str], int, float]) -> None:
    speed(*part)


def quality(trials: int, sizes: list[int], seeds: int) -> None:
    """What a process of a part of the trials loses against one of all of them."""
    for size in sizes:
        rows = [judged(Problem(seed), trials, size, seed) for seed in range(seeds)]
        error, density, loss, own = np.mean(rows, axis=0)
        print(
            f"{trials} trials, process of {min(size, trials)}: error {error:.4f} of the spread, "
            f"log density {density:.3f}, loss of the best candidate {loss:.4f}, CPU {own:.2f} s",
            flush=True,
        )


def judged(problem: Problem, trials: int, size: int, seed: int) -> tuple[float, ...]:
    """Errors on candidates, half of them near the best trials, and the loss of the chosen one."""
    configs = SPACE.sample(trials, seed=seed)
    losses = problem.losses(configs)
    best = configs.take(np.argsort(losses)[:20])
    near, _ = SPACE.neighbourhoods(best, seed=seed)
    candidates = Encoded.concat([SPACE.sample(len(near), seed=seed + 1), near])
    truth = problem.losses(candidates)
    fit = anchored.AnchoredFit(groups=SPACE.column_groups)
    hyper = fit.hyper(configs.x, losses)
    began = time.process_time()
    keep = anchored.informative_subset(configs.x, losses, size)
    model = GP.condition(configs.x[keep], losses[keep], hyper)
    mean, std = model.predict(candidates.x)
    own = time.process_time() - began
    scores = log_expected_improvement(mean, std, float(losses.min()))
    error = float(np.sqrt(np.mean((mean - truth) ** 2)) / truth.std())
    std = np.maximum(std, 1e-6)
    density = float(np.mean(-0.5 * ((truth - mean) / std) ** 2 - np.log(std)))
    return error, density, float(truth[scores.argmax()]), own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--methods", nargs="+", default=["auto", "gp", "gcp", "gcp-prior"])
    parser.add_argument("--failing", type=float, default=0.0, help="the share of failed trials")
    parser.add_argument("--jobs", type=int, default=1, help="methods at the same time")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 1000, 700, 500])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.quality:
        trials = min(arguments.trials, max(arguments.sizes))
        quality(trials, arguments.sizes, arguments.seeds)
    else:
        parts = [([name], arguments.trials, arguments.failing) for name in arguments.methods]
        for _ in run_parts(speed_of, parts, arguments.jobs):
            pass  # each has printed its row


if __name__ == "__main__":
    main()
