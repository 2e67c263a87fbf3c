"""Repeats DeepPipe's Experiment 4 (Table 3): an algorithm that past tasks did not know.

Each algorithm of a stage is left out in turn. The rows of the table:

    left out       encoders, meta-trained, the algorithm in neither past nor target
    random         encoders, not meta-trained, the algorithm in the target
    known          encoders, meta-trained, the algorithm in both
    no encoders    no encoder layers, meta-trained without the algorithm, all tuned on the target
    new encoder    encoders, meta-trained without the algorithm, its encoder tuned on the target

All rows begin with the five configurations recorded for the task, as far as they may use them;
rows that meet an algorithm unknown to past tasks also try one pipeline of it, drawn at random. The
scripts of the paper's authors do the same. With --own-start all rows begin with the portfolio of
the past tasks without the algorithm instead, and none has to try it. Algorithms joined by a
plus sign are left out together, as the paper does with the two that have no hyperparameters.

Each run is one line of JSON, and a run that is there is not done again. The report gives the
average rank among the rows, over tasks and trials, and how many more trials the new encoder won
than it lost against each other row. With --as-published the networks learn no mean and the kernel
is tuned at every trial, as in `deeppipe-paper`.

    python benchmarks/pipeline_new_algorithm.py --experience tensor-oboe.parquet \
        --algorithms mlp --tasks 5 --trials 30 --out new.jsonl
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from foretune._base.progress import SILENT, TerminalProgress
from foretune.experience import Experience, Split, for_learning, recorded_split
from foretune.methods.contracts import Prior, Target
from foretune.methods.pipeline.learn import DeepPipeLearner
from foretune.methods.pipeline.variants import deeppipe, deeppipe_paper, deeppipe_ri
from foretune.search import Design, Method, Optimizer, Told
from foretune.space import Encoded, Space
from foretune_lab.bench.metrics import best_so_far
from foretune_lab.bench.pools import TaskPool, pool_of

ROWS = ("left out", "random", "known", "no encoders", "new encoder")
MEET_IT_ANEW = ("random", "no encoders", "new encoder")
NEWCOMER = "new encoder"
JOIN = "+"
START = 5
"""The number of trials before which rows hardly differ."""


def without_algorithm(space: Space, stage: str, algorithm: str) -> Space:
    """Return the space without one or several algorithms of a stage and their hyperparameters."""
    left_out = algorithm.split(JOIN)
    found = next(s for s in space.structure.stages if s.name == stage)
    used = {a.name: set(a.parameters) for a in found.algorithms}
    others = set().union(*(used[name] for name in used if name not in left_out))
    gone = {space.parameters[index].name for name in left_out for index in used[name] - others}
    document = json.loads(space.to_json())
    kept = [item for item in document["hyperparameters"] if item["name"] not in gone]
    for item in kept:
        if item["name"] == stage:
            item["choices"] = [c for c in item["choices"] if str(c) not in left_out]
            item["weights"] = None
            item["default_value"] = item["choices"][0]
    conditions = [c for c in document["conditions"] if c["child"] not in gone]
    document |= {"hyperparameters": kept, "conditions": conditions}
    return Space.from_json(json.dumps(document))


def uses(configs: Encoded, stage: str, algorithm: str) -> np.ndarray:
    """Return for each pipeline (n,) whether it has the algorithm, or one of several."""
    place = configs.space.names.index(stage)
    parameter = configs.space.parameters[place]
    wanted = [parameter.index_of(name) for name in algorithm.split(JOIN)]
    return np.isin(configs.values[:, place], wanted)


def drop_algorithm(experience: Experience, stage: str, algorithm: str) -> Experience:
    """Return the evaluations of all pipelines without the algorithm, in the space without it."""
    space = without_algorithm(experience.space, stage, algorithm)
    left = np.flatnonzero(~uses(experience.configs, stage, algorithm))
    configs = space.encode(experience.configs.take(left).dicts())
    place = np.full(len(experience.configs), -1)
    place[left] = np.arange(len(left))
    rows = np.flatnonzero(place[experience.config_index] >= 0)
    return Experience.build(
        space,
        experience.metrics,
        experience.tasks,
        experience.task_index[rows],
        configs,
        place[experience.config_index[rows]],
        experience.values[rows],
        status=experience.status[rows],
        splits=experience.splits,
    )


def learner(encoder_layers: int, *, as_published: bool = False) -> DeepPipeLearner:
    own = deeppipe_paper() if as_published else deeppipe()
    return replace(own, sizes=replace(own.sizes, encoder_layers=encoder_layers))


def learnt_without(experience: Experience, split: Split, given: argparse.Namespace) -> dict:
    """Learn the priors of the rows without the algorithm, by row."""
    fewer = for_learning(drop_algorithm(experience, given.stage, given.algorithm), split)
    one, none = (learner(layers, as_published=given.as_published) for layers in (1, 0))
    smaller = one.learn(fewer, seed=0, progress=TerminalProgress())
    return {
        "left out": smaller,
        "no encoders": none.learn(fewer, seed=0, progress=TerminalProgress()),
        "new encoder": smaller,
    }


def learnt_with(
    experience: Experience, split: Split, given: argparse.Namespace
) -> dict[str, Prior]:
    """Learn the priors of the other rows, the same for all algorithms."""
    past = for_learning(experience, split)
    knowing = learner(1, as_published=given.as_published)
    return {
        "random": deeppipe_ri().learn(None, seed=0, progress=SILENT),
        "known": knowing.learn(past, seed=0, progress=TerminalProgress()),
    }


def play_task(prior: Prior, pool: TaskPool, start: Encoded, trials: int) -> list[float]:
    """Return the best loss so far after each trial."""
    method = Method("row", "", deeppipe, design=Design("random", 0))
    target = Target(pool.configs.space, pool=pool.configs)
    optimizer = Optimizer(target, method, prior, seed=0, start=start)
    for _ in range(min(trials, len(pool.configs))):
        suggestion = optimizer.ask()[0]
        loss = float(pool.losses[suggestion.pool_index, 0])
        optimizer.tell([Told((loss,), id=suggestion.id)])
    return best_so_far(optimizer.told.losses[:, 0]).tolist()


def beginning(whole: TaskPool, recorded: Encoded, row: str, given: argparse.Namespace) -> Encoded:
    """Return the recorded start, with a pipeline of the algorithm for rows that do not know it."""
    start = recorded.take(np.flatnonzero(recorded.isin(whole.configs)))
    new = np.flatnonzero(uses(whole.configs, given.stage, given.algorithm))
    if row == "left out":
        return start.take(np.flatnonzero(~uses(start, given.stage, given.algorithm)))
    if row not in MEET_IT_ANEW or not len(new):
        return start
    tried = whole.configs.take(np.random.default_rng(0).choice(new, 1))
    return start if start.isin(tried).any() else Encoded.concat([start, tried])


def run(
    pool: TaskPool,
    priors: dict[str, Prior],
    row: str,
    given: argparse.Namespace,
    recorded: Encoded | None = None,
) -> dict:
    """Run one row on one task; without a recorded start, begin with the portfolio."""
    smaller = priors["left out"]
    start = smaller.first if recorded is None else beginning(pool, recorded, row, given)
    if row == "left out":
        kept = np.flatnonzero(~uses(pool.configs, given.stage, given.algorithm))
        configs = smaller.model.layout.space.encode(pool.configs.take(kept).dicts())
        pool = TaskPool(pool.task, configs, pool.losses[kept])
    wanted = pool.configs.space.encode(start.dicts())
    start = wanted.take(np.flatnonzero(wanted.isin(pool.configs)))
    began = time.perf_counter()
    best = play_task(priors[row], pool, start, given.trials)
    seconds = round(time.perf_counter() - began, 1)
    named = {"algorithm": given.algorithm, "row": row, "task": pool.task}
    return named | {"seconds": seconds, "best": best}


def runs(experience: Experience, given: argparse.Namespace) -> Iterator[dict]:
    finished = {(r["algorithm"], r["row"], r["task"]) for r in rows_of(given.out)}
    split = recorded_split(experience, given.split)
    shared = learnt_with(experience, split, given)
    for algorithm in given.algorithms or algorithms_of(experience.space, given.stage):
        tasks = split.test[: given.tasks]
        left = [(r, t) for t in tasks for r in given.rows if (algorithm, r, t) not in finished]
        if left:
            asked = argparse.Namespace(**vars(given), algorithm=algorithm)
            priors = shared | learnt_without(experience, split, asked)
            for row, task in left:
                recorded = None if given.own_start else recorded_start(experience, task)
                yield run(pool_of(experience, task), priors, row, asked, recorded)


def recorded_start(experience: Experience, task: str) -> Encoded | None:
    """Return the first design recorded for the task, if there is one."""
    designs = list(experience.starts.get(task, {}).values())
    return experience.configs.take(list(designs[0])) if designs else None


def algorithms_of(space: Space, stage: str) -> list[str]:
    found = next(s for s in space.structure.stages if s.name == stage)
    return [algorithm.name for algorithm in found.algorithms]


def rows_of(out: Path) -> list[dict]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def report(out: Path, rows: Sequence[str]) -> None:
    """Print the average rank of each row, as in Table 3, and the duels of the new encoder."""
    found = {(r["algorithm"], r["task"], r["row"]): r["best"] for r in rows_of(out)}
    for algorithm in dict.fromkeys(key[0] for key in found):
        tasks = [t for a, t, row in found if a == algorithm and row == rows[0]]
        whole = [t for t in tasks if all((algorithm, t, row) in found for row in rows)]
        curves = np.array([[found[algorithm, t, row] for row in rows] for t in whole])
        if len(curves):
            ranks = rankdata(curves, axis=1).mean(axis=(0, 2))
            line = ", ".join(f"{r} {rank:.2f}" for r, rank in zip(rows, ranks, strict=True))
            print(f"{algorithm}: {line} ({len(whole)} tasks){_duels(curves[..., START:], rows)}")


def _duels(curves: np.ndarray, rows: Sequence[str]) -> str:
    """Return the new encoder's wins minus losses after the start; curves: (tasks, rows, trials)."""
    if NEWCOMER not in rows:
        return ""
    own = curves[:, [rows.index(NEWCOMER)]]
    net = np.sign(curves - own).mean(axis=(0, 2))
    others = [f"{r} {n:+.2f}" for r, n in zip(rows, net, strict=True) if r != NEWCOMER]
    return f"; it won - lost against {', '.join(others)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--split", default="paper")
    parser.add_argument("--stage", default="estimator")
    parser.add_argument("--algorithms", nargs="+", help="which to leave out; all if not given")
    parser.add_argument("--tasks", type=int, default=5, help="how many test tasks")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--own-start", action="store_true", help="not the recorded start")
    parser.add_argument("--as-published", action="store_true", help="the method of the paper")
    parser.add_argument("--out", type=Path, default=Path("pipeline_new_algorithm.jsonl"))
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    warnings.filterwarnings("ignore", message="past tasks knew nothing")
    for row in runs(experience, given):
        with given.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row["algorithm"], row["row"], row["task"], f"{row['best'][-1]:.4f}", flush=True)
    report(given.out, given.rows)


if __name__ == "__main__":
    main()
