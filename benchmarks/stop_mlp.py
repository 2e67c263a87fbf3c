"""Tunes scikit-learn's MLP on the digits with and without early stopping.

    python benchmarks/stop_mlp.py [--seeds 3] [--trials 30] [--epochs 27]

For each seed, the same configurations are tried with each policy. A line says what all trials cost,
what the best error of a complete network is, and after how many CPU seconds of training the search
had a network (complete or not) that is as good as the best one without stopping.
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

from foretune.experience import Metric, Status
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


class Training:
    """Trains one network an epoch at a time, and goes on from its checkpoint."""

    def __init__(self, epochs: int, seed: int) -> None:
        x, y = load_digits(return_X_y=True)
        self.parts = train_test_split(x / 16, y, test_size=0.3, random_state=seed, stratify=y)
        self.epochs, self.seed = epochs, seed
        self.began, self.errors = time.process_time(), []

    def __call__(self, config, trial):
        train_x, valid_x, train_y, valid_y = self.parts
        checkpoint: Path = trial.folder / "network.pickle"
        begin = int(trial.resumed_from or 0)
        if begin:
            network = pickle.loads(checkpoint.read_bytes())
        else:
            network = MLPClassifier(
                hidden_layer_sizes=(int(config["width"]),),
                learning_rate_init=config["learning_rate"],
                alpha=config["alpha"],
                batch_size=int(config["batch"]),
                random_state=self.seed,
            )
        error = 1.0
        for epoch in range(begin + 1, self.epochs + 1):
            network.partial_fit(train_x, train_y, classes=np.arange(10))
            error = 1.0 - network.score(valid_x, valid_y)
            self.errors.append((time.process_time() - self.began, error))
            trial.report(epoch, error)
            if trial.should_stop():
                checkpoint.write_bytes(pickle.dumps(network))
                return None
        return error


def search(stop: str, seed: int, trials: int, epochs: int) -> dict:
    """Return what one search cost and found."""
    study, training = MemoryStudy("digits", SPACE, [Metric("error")]), Training(epochs, seed)
    optimizer = Optimizer.of(SPACE, method="random", objectives=("error",), seed=seed)
    began = time.process_time()
    tune(study, optimizer, InlineExecutor(training), Budget(trials), stop=stop)
    done = [trial for trial in study.trials() if trial.status is Status.DONE]
    return {
        "stop": stop,
        "seed": seed,
        "cpu_s": round(time.process_time() - began, 1),
        "epochs": len(training.errors),
        "complete": len(done),
        "best": min(trial.values["error"] for trial in done),
        "errors": training.errors,
    }


def main() -> None:
    """Print a line for each search, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=27)
    given = parser.parse_args()
    for seed in range(given.seeds):
        goal = None
        for stop in ("none", "asha", "hyperband", "median"):
            found = search(stop, seed, given.trials, given.epochs)
            errors = found.pop("errors")
            goal = found["best"] if goal is None else goal
            reached = [seconds for seconds, error in errors if error <= goal]
            found["reached_s"] = round(reached[0], 1) if reached else None
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
