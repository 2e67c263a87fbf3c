"""Repeats DeepPipe's Experiment 5: the worth of the encoders' inductive bias.

For every share of the meta-training tasks and every number of encoder layers, a network is trained
and replayed on test tasks. A report gives average ranks among the numbers of layers (Figure 5). The
option --clusters prints the cluster metric of random networks (Figure 4).

    python benchmarks/pipeline_bias.py --experience tensor-oboe.parquet --out bias.jsonl
    python benchmarks/pipeline_bias.py --experience tensor-oboe.parquet --clusters
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from foretune._base.progress import TerminalProgress
from foretune.experience import Experience, Split, for_learning, recorded_split
from foretune.methods.contracts import Prior, Target
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.methods.pipeline.variants import deeppipe
from foretune.search import Design, Method, Optimizer, Told
from foretune_lab.bench.metrics import best_so_far
from foretune_lab.bench.pools import TaskPool, pool_of
from foretune_lab.drawing.clusters import cluster_metric

SHARES = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0)
LAYERS = (0, 1, 2)


def take_share(split: Split, share: float, seed: int) -> Split:
    """Return the split with a share of its training tasks, at least one of them."""
    count = max(1, round(share * len(split.train)))
    chosen = np.random.default_rng(seed).permutation(len(split.train))[:count]
    train = tuple(split.train[place] for place in np.sort(chosen))
    return Split(split.name, train, split.validation, split.test)


def replay_task(
    prior: Prior, pool: TaskPool, start: tuple[int, ...], seed: int, trials: int
) -> list:
    """Return the best loss so far after each trial."""
    target = Target(pool.configs.space, pool=pool.configs)
    method = Method("variant", "", deeppipe, design=Design("random", 0), needs_experience=True)
    first = pool.configs.take(list(start)) if start else None
    optimizer = Optimizer(target, method, prior, seed=seed, start=first)
    for _ in range(min(trials, len(pool.configs))):
        suggestion = optimizer.ask()[0]
        loss = tuple(pool.losses[suggestion.pool_index])
        optimizer.tell([Told(loss, id=suggestion.id)])
    return best_so_far(optimizer.told.losses[:, 0]).tolist()


def recorded_start(experience: Experience, pool: TaskPool) -> tuple[int, ...]:
    """Return the members of the pool that the task's recorded design names; empty if none."""
    designs = list(experience.starts.get(pool.task, {}).values())
    if not designs:
        return ()
    wanted = experience.configs.take(list(designs[0]))
    places = {key: place for place, key in enumerate(pool.configs.keys().tolist())}
    return tuple(places[key] for key in wanted.keys().tolist() if key in places)


def done(out: Path) -> set[tuple[object, ...]]:
    if not out.exists():
        return set()
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    return {(row["share"], row["layers"], row["seed"], row["task"]) for row in rows}


def runs(given: argparse.Namespace, experience: Experience) -> Iterator[dict]:
    split = recorded_split(experience, given.split)
    tasks = split.test[: given.tasks]
    finished = done(given.out)
    pools = {task: pool_of(experience, task) for task in tasks}
    for share in given.shares:
        for layers in given.layers:
            for seed in range(given.seeds):
                left = [t for t in tasks if (share, layers, seed, t) not in finished]
                if not left:
                    continue
                started = time.perf_counter()
                sizes = Sizes(given.factor, layers, learns_mean=deeppipe().sizes.learns_mean)
                learner = DeepPipeLearner(sizes, deeppipe().scores)
                past = for_learning(experience, take_share(split, share, seed))
                prior = learner.learn(past, seed=seed, progress=TerminalProgress())
                learning = time.perf_counter() - started
                for task in left:
                    start = recorded_start(experience, pools[task])
                    best = replay_task(prior, pools[task], start, seed, given.trials)
                    yield {"share": share, "layers": layers, "seed": seed, "task": task} | {
                        "learn_seconds": round(learning, 1),
                        "best": best,
                    }


def report(out: Path) -> None:
    """Print the average rank among numbers of layers, over tasks and trials, for each share."""
    from scipy.stats import rankdata

    rows = [json.loads(line) for line in out.read_text().splitlines()]
    for share in sorted({row["share"] for row in rows}):
        curves = {
            (row["task"], row["seed"], row["layers"]): row["best"]
            for row in rows
            if row["share"] == share
        }
        layers = sorted({key[2] for key in curves})
        whole = [k[:2] for k in curves if all((*k[:2], other) in curves for other in layers)]
        ranks = [
            rankdata([curves[*key, other] for other in layers], axis=0).mean(axis=1)
            for key in sorted(set(whole))
        ]
        if ranks:
            shown = zip(layers, np.mean(ranks, axis=0), strict=True)
            line = ", ".join(f"{number} encoder layers {rank:.3f}" for number, rank in shown)
            print(f"share {share:g}: {line} ({len(ranks)} runs)")


def clusters(experience: Experience, stage: str, seed: int) -> None:
    """Print the cluster metric of networks with standard-normal weights."""
    space = experience.space
    names = [s.name for s in space.structure.stages]
    place = names.index(stage)
    chosen = space.structure.algorithm_of(experience.configs.values)[:, place]
    rng = np.random.default_rng(seed)
    five = rng.permutation(np.unique(chosen[chosen >= 0]))[:5]
    rows = rng.permutation(np.flatnonzero(np.isin(chosen, five)))[:2000]
    for layers in LAYERS:
        embedding = PipelineEmbedding(NetworkLayout.of(space, Sizes(8, layers)))
        weights = [
            tuple(rng.standard_normal(part.shape).astype(np.float32) for part in layer)
            for layer in embedding.initial(rng)
        ]
        phi, _ = embedding.embed(tuple(weights), experience.configs.take(rows))
        metric = cluster_metric(phi, chosen[rows], seed=seed)
        print(f"{layers} encoder layers: {metric:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--split", default="paper")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--layers", type=int, nargs="+", default=LAYERS)
    parser.add_argument("--factor", type=int, default=8, help="F")
    parser.add_argument("--tasks", type=int, default=10, help="how many test tasks")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("pipeline_bias.jsonl"))
    parser.add_argument("--clusters", action="store_true", help="only the cluster metric")
    parser.add_argument("--stage", default="estimator", help="whose algorithms are the clusters")
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    if given.clusters:
        clusters(experience, given.stage, seed=0)
    else:
        for row in runs(given, experience):
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print({key: row[key] for key in ("share", "layers", "seed", "task")}, flush=True)
        report(given.out)


if __name__ == "__main__":
    main()
