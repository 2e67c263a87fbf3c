"""Tunes scikit-learn's MLP on the digits with and without early stopping.

    python benchmarks/stop_mlp.py --seeds 10 --out mlp.jsonl
    python benchmarks/stop_mlp.py --summarise mlp.jsonl

A search without stopping trains `--trials` networks to their end. A search with a policy draws the
same configurations first, and then more, until it has spent the epochs of the first one. Only
complete networks count as results. The summary says what the best of them was, in the mean over
seeds, after a share of the cost, and at which share a policy had what the search without stopping
has in the end: in epochs, and in processor time of training.
"""

import argparse
import json
import pickle
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from foretune.experience import Metric
from foretune.run import Budget, InlineExecutor, MemoryStudy, tune
from foretune.search import Optimizer
from foretune.space import Space

SPACE = Space.of(
    {
        "learning_rate": (1e-4, 1e-1, "log"),
        "alpha": (1e-6, 1e-1, "log"),
        "width": (8, 128, "log"),
        "batch": (16, 256, "log"),
    }
)
SHARES = (0.1, 0.2, 1 / 3, 0.5, 1.0)
MANY = 2_000
"""More trials than a search with a policy can pay for."""


class Training:
    """Trains one network an epoch at a time, and goes on from its checkpoint."""

    def __init__(self, epochs: int, seed: int, most: float) -> None:
        x, y = load_digits(return_X_y=True)
        self.parts = train_test_split(x / 16, y, test_size=0.3, random_state=seed, stratify=y)
        self.epochs, self.seed, self.most = epochs, seed, most
        self.taken, self.seconds = 0, 0.0
        self.found: list[tuple[int, float, float]] = []
        """Epochs and seconds so far, and the error, of each complete network."""

    def __call__(self, config, trial):
        checkpoint: Path = trial.folder / "network.pickle"
        begin = int(trial.resumed_from or 0)
        network = pickle.loads(checkpoint.read_bytes()) if begin else self.make(config)
        error = 1.0
        for epoch in range(begin + 1, self.epochs + 1):
            if self.taken >= self.most:
                raise KeyboardInterrupt
            error = self.train(network)
            trial.report(epoch, error)
            if trial.should_stop():
                checkpoint.write_bytes(pickle.dumps(network))
                return None
        self.found.append((self.taken, self.seconds, error))
        return error

    def make(self, config):
        return MLPClassifier(
            hidden_layer_sizes=(int(config["width"]),),
            learning_rate_init=config["learning_rate"],
            alpha=config["alpha"],
            batch_size=int(config["batch"]),
            random_state=self.seed,
        )

    def train(self, network) -> float:
        """Train for an epoch, and return the error on the other rows."""
        train_x, valid_x, train_y, valid_y = self.parts
        began = time.process_time()
        network.partial_fit(train_x, train_y, classes=np.arange(10))
        error = 1.0 - network.score(valid_x, valid_y)
        self.taken, self.seconds = self.taken + 1, self.seconds + time.process_time() - began
        return error


def search(stop: str, seed: int, trials: int, epochs: int) -> dict:
    """Return what one search found, and at what cost."""
    training = Training(epochs, seed, trials * epochs)
    study = MemoryStudy("digits", SPACE, [Metric("error")])
    optimizer = Optimizer.of(SPACE, method="random", objectives=("error",), seed=seed)
    try:
        count = trials if stop == "none" else MANY
        tune(study, optimizer, InlineExecutor(training), Budget(count), stop=stop)
    except KeyboardInterrupt:
        pass  # the budget is spent
    return {
        "stop": stop,
        "seed": seed,
        "trials": len(study.trials()),
        "epochs": training.taken,
        "seconds": training.seconds,
        "found": training.found,
    }


def best_after(found: list[list[float]], column: int, cost: float) -> float:
    """Return the lowest error of the networks that were complete by then."""
    return min((each[2] for each in found if each[column] <= cost * (1 + 1e-9)), default=1.0)


def share_needed(runs: list[dict], base: list[dict], column: int, cost: str) -> float:
    """Return the share of the cost after which the mean error is that of `base` in the end."""
    goal = np.mean([best_after(b["found"], column, b[cost]) for b in base])
    for share in np.linspace(0.01, 1.0, 100):
        errors = [
            best_after(run["found"], column, share * b[cost])
            for run, b in zip(runs, base, strict=True)
        ]
        if np.mean(errors) <= goal + 1e-12:
            return float(share)
    return float("inf")


def summarise(rows: list[dict]) -> None:
    """Print a line for each policy, with the interval of a bootstrap over seeds."""
    by = {(row["stop"], row["seed"]): row for row in rows}
    seeds = sorted({seed for stop, seed in by if stop == "none"})
    base = [by["none", seed] for seed in seeds]
    draws = np.random.default_rng(0).integers(len(seeds), size=(1000, len(seeds)))
    print(f"{len(seeds)} seeds; mean best error after a share of the epochs of no stopping")
    for stop in dict.fromkeys(row["stop"] for row in rows):
        runs = [by[stop, seed] for seed in seeds]
        errors = [
            np.mean(
                [
                    best_after(r["found"], 0, share * b["epochs"])
                    for r, b in zip(runs, base, strict=True)
                ]
            )
            for share in SHARES
        ]
        line = " ".join(f"{share:.2f}: {e:.4f}" for share, e in zip(SHARES, errors, strict=True))
        print(f"{stop:10} {line}; trials {np.mean([run['trials'] for run in runs]):.0f}")
        for column, cost in enumerate(("epochs", "seconds")):
            needed = [
                share_needed([runs[i] for i in draw], [base[i] for i in draw], column, cost)
                for draw in draws
            ]
            low, high = np.quantile(needed, [0.025, 0.975], method="nearest")
            share = share_needed(runs, base, column, cost)
            print(
                f"{'':10} the same after {share:.0%} of the {cost} (95%: {low:.0%} to {high:.0%})"
            )


def main() -> None:
    """Run searches, or print their summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--stops", default="none,asha,hyperband,median")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=81)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--summarise", type=Path, nargs="+")
    given = parser.parse_args()
    if given.summarise:
        lines = [line for file in given.summarise for line in file.read_text().splitlines()]
        summarise([json.loads(line) for line in lines])
        return
    rows = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        for stop in given.stops.split(","):
            rows.append(search(stop, seed, given.trials, given.epochs))
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    summarise(rows)


if __name__ == "__main__":
    main()
