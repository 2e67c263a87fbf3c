"""A hundred thousand told trials: how long a suggestion takes, how much memory, and what it costs.

    python benchmarks/reliability/many_trials.py [--trials 1000 10000 100000] [--methods auto gp]
        [--objectives 1 2] [--pending 0 8 64] [--digits 2] [--failing 0.3]
    python benchmarks/reliability/many_trials.py --rounds 2000 [--methods auto random]
    python benchmarks/reliability/many_trials.py --quality [--trials 2000]

Each line is of a process of its own, so that its peak is its own. `--digits` rounds losses, so that
they repeat. `--rounds` asks and tells so often, and prints what memory, open files and threads came
to. `--quality` compares processes of parts of the trials with one of all of them, with the same
hyperparameters. CPU seconds stand beside seconds, for busy machines.
"""

import argparse
import gc
import itertools
import multiprocessing
import resource
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from rows import Row

from foretune.experience import Experience, Metric
from foretune.methods.contracts import Target
from foretune.numerics import anchored
from foretune.numerics.acquisition import log_expected_improvement
from foretune.numerics.gp import GP
from foretune.search import Optimizer, Suggestion, Told, method
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
    """losses: (n,), or (n, objectives)."""
    entry = method(name)
    each = losses.reshape(len(told), -1)
    prior = entry.learn(past() if entry.needs_experience else None, seed=0)
    target = Target(SPACE, tuple(f"loss {place}" for place in range(each.shape[1])))
    # What a method opens with was tried long ago, in a search of so many trials.
    optimizer = Optimizer(target, entry, prior, seed=seed, start=told.take([]))
    pairs = zip(told.dicts(), each.tolist(), strict=True)
    optimizer.tell([Told(tuple(loss), config=config) for config, loss in pairs])
    return optimizer


def time_calls(action: Callable[[], object]) -> tuple[float, float]:
    wall, own = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - wall, time.process_time() - own


@dataclass(frozen=True)
class Case:
    """What one line is about."""

    method: str
    trials: int
    objectives: int = 1
    pending: int = 0
    failing: float = 0.0
    digits: int | None = None

    def losses(self, configs: Encoded) -> np.ndarray:
        columns = [Problem(seed).losses(configs) for seed in range(self.objectives)]
        losses = np.column_stack(columns)
        if self.digits is not None:
            losses = losses.round(self.digits)
        failed = np.random.default_rng(2).random(len(configs)) < self.failing
        return np.where(failed[:, None], np.nan, losses)

    def __str__(self) -> str:
        said = f"{self.method}, {self.objectives} objective(s), {self.pending} pending"
        said += f", {self.failing:.0%} failed" if self.failing else ""
        return said + (f", losses of {self.digits} digits" if self.digits is not None else "")


def speed(case: Case) -> None:
    """The first ask, and later ones after one more trial was told each."""
    configs = SPACE.sample(case.trials, seed=1)
    losses = case.losses(configs)
    optimizer = optimizer_of(case.method, configs, losses)
    waiting = SPACE.sample(case.pending, seed=2).dicts()
    numbered = enumerate(waiting, start=1)
    optimizer.assume_pending([Suggestion(-number, config, "") for number, config in numbered])
    asked = optimizer.ask
    first, told = time_calls(asked), []
    later = []
    for number in range(5):
        pair = tuple(float(case.trials + number + place) for place in range(case.objectives))
        told.append(time_calls(lambda n=number, pair=pair: optimizer.tell([Told(pair, id=n)])))
        later.append(time_calls(asked))
    own = np.median([cpu for _, cpu in later])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = f"CPU s: first {first[1]:.2f}, then {own:.2f}, tell {np.median(told, axis=0)[1]:.4f}"
    slow = max(first[0], *(seconds for seconds, _ in later))
    Row(
        f"ask after told trials: {case}", case.trials,
        longest_s=round(slow, 2), peak_mb=round(peak), note=note,
    ).print()  # fmt: skip


def go_on(name: str, rounds: int) -> None:
    """So many rounds of ask and tell; what has grown in the second half of them."""
    optimizer = Optimizer.of(SPACE, method=name)
    began = time.process_time()
    for number in range(rounds):
        if number == rounds // 2:
            gc.collect()
            before = held()
        suggestion = optimizer.ask()[0]
        loss = float(Problem(0).losses(SPACE.encode([suggestion.config]))[0])
        optimizer.tell([Told(loss, id=suggestion.id)])
    own = time.process_time() - began
    gc.collect()
    after = held()
    grown = ", ".join(f"{what} {before[what]} to {after[what]}" for what in before)
    wrong = int(any(before[what] != after[what] for what in ("files", "threads")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = f"{own:.0f} s of CPU; second half: {grown}"
    Row(f"ask and tell, {name}", rounds, wrong=wrong, peak_mb=round(peak), note=note).print()


def held() -> dict[str, int]:
    """Memory in MiB, open files and threads of this process."""
    status = Path("/proc/self/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if "VmRSS" in line)
    files = len(list(Path("/proc/self/fd").iterdir()))
    return {"MiB": int(kilobytes) // 1024, "files": files, "threads": threading.active_count()}


def apart(action: Callable[..., None], *given: object) -> None:
    """In a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=action, args=given)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{action.__name__}{given} ended with {process.exitcode}")


def quality(trials: int, sizes: list[int], seeds: int) -> None:
    """What a process of a part of the trials loses against one of all of them."""
    for size in sizes:
        rows = [judge_growth(Problem(seed), trials, size, seed) for seed in range(seeds)]
        error, density, loss, own = np.mean(rows, axis=0)
        print(
            f"{trials} trials, process of {min(size, trials)}: error {error:.4f} of the spread, "
            f"log density {density:.3f}, loss of the best candidate {loss:.4f}, CPU {own:.2f} s",
            flush=True,
        )


def judge_growth(problem: Problem, trials: int, size: int, seed: int) -> tuple[float, ...]:
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
    parser.add_argument("--trials", type=int, nargs="+", default=[100_000])
    parser.add_argument("--methods", nargs="+", default=["auto", "gp", "gcp", "random"])
    parser.add_argument("--objectives", type=int, nargs="+", default=[1])
    parser.add_argument("--pending", type=int, nargs="+", default=[0])
    parser.add_argument("--failing", type=float, default=0.0, help="the share of failed trials")
    parser.add_argument("--digits", type=int, help="round losses, so that they repeat")
    parser.add_argument("--rounds", type=int, help="ask and tell so often")
    parser.add_argument("--jobs", type=int, default=1, help="lines at the same time")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 1000, 700, 500])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    if given.quality:
        quality(min(*given.trials, max(given.sizes)), given.sizes, given.seeds)
    elif given.rounds:
        for name in given.methods:
            apart(go_on, name, given.rounds)
    else:
        lists = (given.methods, given.trials, given.objectives, given.pending)
        cases = [Case(*each, given.failing, given.digits) for each in itertools.product(*lists)]
        with ThreadPoolExecutor(max(given.jobs, 1)) as pool:
            list(pool.map(partial(apart, speed), cases))


if __name__ == "__main__":
    main()
