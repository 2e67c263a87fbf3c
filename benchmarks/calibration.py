"""Are models as certain as they may be? Squared standardised errors on configurations not tried.

A model is given random trials of a recorded task and predicts other configurations of the task. The
mean of ((loss - predicted) / predicted standard deviation)² is 1 if the model is calibrated, and
larger if it is overconfident. A model may draw in outliers before it standardises the losses of the
trials, as `deeppipe-ri` does. `usual` draws in the outliers among the new losses as well, to the
same limit; `squared` takes them as they are. Models that read past tasks are not compared here.

Example: python benchmarks/calibration.py --experience zap.parquet --methods gp,deeppipe-ri,dngo
"""

import argparse
import json
import warnings
from collections.abc import Iterator
from zlib import crc32

import numpy as np

import foretune
from foretune.experience import Experience
from foretune.methods import Observations, Target
from foretune.numerics import Floats, Standardise
from foretune.numerics.scores import draw_in_outliers
from foretune.plugins import SILENT

UNSEEN = 500
DRAWN_IN = ("deeppipe-ri",)
"""The methods that draw in outliers of the trials."""


def squared_errors(
    experience: Experience, name: str, task: str, trials: int, *, seed: int
) -> tuple[Floats, Floats]:
    """Return the squared standardised errors (m,) of a method after random trials of a task.

    The second ones are those of losses whose outliers are drawn in.
    """
    records = experience.task(task)
    losses = records.losses[:, :1]
    tried = np.flatnonzero(np.isfinite(losses[:, 0]))
    # Tasks draw differently: one bad configuration must not decide all of them.
    order = np.random.default_rng([seed, trials, crc32(task.encode())]).permutation(tried)
    seen, unseen = order[:trials], order[trials : trials + UNSEEN]
    configs = experience.configs.take(records.config_index)
    learner = foretune.method(name).learner()
    surrogate = learner.learn(None, seed=seed, progress=SILENT).surrogate(Target(experience.space))
    observed = Observations(configs.take(seen), losses[seen], np.zeros(trials, dtype=bool))
    believed = surrogate.condition(observed, seed=seed).predict(configs.take(unseen))
    told = draw_in_outliers(losses[seen, 0])
    units = Standardise.fit(told if name in DRAWN_IN else losses[seen, 0])
    truth = losses[unseen, 0]
    each = [units(new) - believed.mean for new in (truth, np.minimum(truth, told.max()))]
    raw, usual = (np.square(error / np.maximum(believed.std, 1e-9)) for error in each)
    return raw, usual


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield a row for each method, task and number of trials."""
    experience = Experience.open(options.experience)
    names = experience.splits[options.split]["test"] if options.split else experience.tasks
    rng = np.random.default_rng(options.draw)
    drawn = sorted(rng.permutation(len(names))[: options.tasks].tolist())
    for task in (names[number] for number in drawn):
        for name in options.methods.split(","):
            for trials in map(int, options.trials.split(",")):
                raw, usual = squared_errors(experience, name, task, trials, seed=options.seed)
                yield {
                    "method": name,
                    "task": task,
                    "trials": trials,
                    "squared": float(raw.mean()),
                    "usual": float(usual.mean()),
                    "median": float(np.median(usual)),
                }


def main() -> None:
    """Print a line of JSON for each row, or a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", required=True)
    parser.add_argument("--methods", default="gp,deeppipe-ri,dngo")
    parser.add_argument("--split", default="")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--draw", type=int, default=0, help="seed of the draw of tasks")
    parser.add_argument("--trials", default="10,20,40,80")
    parser.add_argument("--seed", type=int, default=0)
    warnings.simplefilter("ignore")
    for row in rows(parser.parse_args()):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
