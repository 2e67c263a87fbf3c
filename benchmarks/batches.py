"""Tests several trials at a time, on functions that a good search refines to many digits.

    python -m benchmarks.batches --size 8 --rounds 8 --targets 4
    python -m benchmarks.batches --size 64 --rounds 4 --targets 2

Every tuner suggests `size` trials at once and is told their results together. The families are
those of `benchmarks/peers/functions.py`; there are no past tasks. The report after every round has
the mean over targets of the logarithm (base 10) of the value, without noise, of the best trial so
far. It also has the median distance in the unit cube from a trial of the round to the nearest other
one. `one by one` is `auto` that is told the result of each trial before the next.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from benchmarks.peers.functions import FAMILIES, FunctionProblem
from benchmarks.peers.objective import Parameter
from benchmarks.smooth_functions import LEAST, best_so_far, space_of
from scipy.spatial import KDTree

from foretune._base.arrays import Floats
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told

Ask = Callable[[int], Floats]
Tell = Callable[[Floats], None]


def ours(name: str, parameters: tuple[Parameter, ...], seed: int) -> tuple[Ask, Tell]:
    """Return how a method of the registry asks and is told."""
    method = METHODS[name]
    target = Target(space_of(parameters))
    optimizer = Optimizer(target, method, method.learn(None, seed=0), seed=seed)

    def ask(n: int) -> Floats:
        configs = [suggestion.config for suggestion in optimizer.ask(n)]
        return np.array([[float(config[p.name]) for p in parameters] for config in configs])

    def tell(losses: Floats) -> None:
        ids = list(optimizer.pending)
        optimizer.tell(Told(loss, id=id_) for loss, id_ in zip(losses, ids, strict=True))

    return ask, tell


def optuna_tpe(parameters: tuple[Parameter, ...], seed: int) -> tuple[Ask, Tell]:
    """Return how Optuna's TPE, set for trials that run at the same time, asks and is told."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")
    space = {p.name: _distribution(p) for p in parameters}
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    study = optuna.create_study(sampler=sampler)
    asked: list[optuna.Trial] = []

    def ask(n: int) -> Floats:
        asked[:] = [study.ask(space) for _ in range(n)]
        return np.array([[float(trial.params[p.name]) for p in parameters] for trial in asked])

    def tell(losses: Floats) -> None:
        for trial, loss in zip(asked, losses.tolist(), strict=True):
            study.tell(trial, loss)

    return ask, tell


def _distribution(parameter: Parameter) -> object:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if parameter.kind == "categorical":
        return CategoricalDistribution([str(choice) for choice in range(parameter.choices)])
    if parameter.kind == "int":
        return IntDistribution(int(parameter.low), int(parameter.high))
    return FloatDistribution(parameter.low, parameter.high)


def tuner(name: str, parameters: tuple[Parameter, ...], seed: int) -> tuple[Ask, Tell]:
    """Return the tuner of a row of the table."""
    if name == "optuna-tpe":
        return optuna_tpe(parameters, seed)
    return ours("auto" if name == "one by one" else name, parameters, seed)


def play_task(name: str, task: str, size: int, rounds: int) -> tuple[Floats, Floats]:
    """Return for each round the logarithm of the value reached, and how near trials lie."""
    problem = FunctionProblem.called(task)
    # The seed is not that of the function, which draws its centre.
    ask, tell = tuner(name, problem.parameters, int(task.partition(":")[2]) + 1_000)
    at_once = 1 if name == "one by one" else size
    rows: list[Floats] = []
    losses: list[float] = []
    for _ in range(rounds * size // at_once):
        batch = ask(at_once)
        found = [problem.loss(row) for row in batch]
        tell(np.array(found))
        rows.extend(batch)
        losses.extend(found)
    values = best_so_far({"rows": np.array(rows), "losses": np.array(losses)}, problem)
    each = np.array(rows).reshape(rounds, size, -1)
    near = np.array([nearness(batch, problem.parameters) for batch in each])
    return np.log10(np.maximum(values[size - 1 :: size], LEAST)), near


def nearness(batch: Floats, parameters: tuple[Parameter, ...]) -> float:
    """Return the median distance in the unit cube to the nearest other trial of a batch (n, d)."""
    low, high = (np.array([getattr(p, end) for p in parameters]) for end in ("low", "high"))
    distances, _ = KDTree((batch - low) / (high - low)).query((batch - low) / (high - low), k=2)
    return float(np.median(distances[:, 1]))


def table(found: dict[str, list[tuple[Floats, Floats]]]) -> str:
    """Return the table with one row for each tuner and one column for each round."""
    first = next(iter(found.values()))
    rounds = len(first[0][0])
    lines = [f"| after round | {' | '.join(str(n + 1) for n in range(rounds))} |"]
    lines.append("|---|" + "---|" * rounds)
    for name, runs in found.items():
        values, near = (np.stack(part) for part in zip(*runs, strict=True))
        cells = [
            f"{value:.2f} ({distance:.3f})"
            for value, distance in zip(values.mean(axis=0), np.median(near, axis=0), strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the tuners and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tuners", default="auto,one by one,optuna-tpe,random")
    parser.add_argument("--size", type=int, default=8, help="trials at once")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--targets", type=int, default=4, help="of each family")
    given = parser.parse_args(arguments)
    tasks = [f"{family}:{seed}" for family in FAMILIES for seed in range(given.targets)]
    found = {
        name: [play_task(name, task, given.size, given.rounds) for task in tasks]
        for name in given.tuners.split(",")
    }
    print(f"{len(tasks)} targets, {given.size} trials at once; in brackets how near they lie\n")
    print(table(found))


if __name__ == "__main__":
    main()
