"""Draws the learnt embedding of pipelines in the plane (Figures 6 and 7 of DeepPipe).

It draws two pictures, by t-SNE and by principal components, each coloured by the algorithm of a
stage and by the loss on a test task. The network is learnt once and kept in `--prior`.

    python benchmarks/pipeline_picture.py --experience tensor-oboe.parquet \
        --prior deeppipe.safetensors --figures figures
"""

import argparse
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import TerminalProgress
from foretune.experience import Experience, Split, for_learning, recorded_split
from foretune.methods.pipeline.learn import DeepPipePrior
from foretune.methods.pipeline.variants import deeppipe
from foretune.report.embedding import flatten_embeddings
from foretune.space import Encoded
from foretune_lab.bench.pools import pool_of
from foretune_lab.drawing.clusters import cluster_metric
from foretune_lab.drawing.embedding import (
    ByLoss,
    ByName,
    draw_embedding,
    spread_sample,
)


def learnt(path: Path, experience: Experience, split: Split) -> DeepPipePrior:
    """Return the prior of a file; learn and save it if there is no file."""
    learner = deeppipe()
    if path.exists():
        return learner.load(path)
    prior = learner.learn(for_learning(experience, split), seed=0, progress=TerminalProgress())
    prior.save(path)
    return prior


def algorithms(configs: Encoded, stage: str) -> list[str]:
    """Return the algorithm of each pipeline in a stage."""
    structure = configs.space.structure
    place = next(i for i, found in enumerate(structure.stages) if found.name == stage)
    names = [algorithm.name for algorithm in structure.stages[place].algorithms]
    return [names[index] for index in structure.algorithm_of(configs.values)[:, place]]


def losses(experience: Experience, configs: Encoded, task: str) -> Floats:
    """Return the rank of each pipeline on the task, 0 (best) to 1; NaN if not evaluated."""
    pool = pool_of(experience, task)
    order = np.argsort(np.argsort(pool.losses[:, 0])) / (len(pool.losses) - 1)
    known = dict(zip(pool.configs.keys().tolist(), order, strict=True))
    return np.array([known.get(key, np.nan) for key in configs.keys().tolist()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--split", default="paper")
    parser.add_argument("--stage", default="estimator", help="whose algorithms are coloured")
    parser.add_argument("--task", help="whose losses are coloured; else the first test task")
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--prior", type=Path, required=True, help="of deeppipe; learnt if missing")
    parser.add_argument("--figures", type=Path, required=True, help="a folder for PNG files")
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    split = recorded_split(experience, given.split)
    task = given.task or split.test[0]
    prior = learnt(given.prior, experience, split)
    rows = spread_sample(len(experience.configs), seed=0, most=given.points)
    configs = experience.configs.take(rows)
    u, names = prior.model.place(configs).u, algorithms(configs, given.stage)
    metric = cluster_metric(u, np.unique(names, return_inverse=True)[1], seed=0)
    print(f"share of triples whose own {given.stage} is nearer: {metric:.2f}")
    colourings = [
        ByName(given.stage, names),
        ByLoss(f"rank on task {task}, 0 is best", losses(experience, configs, task)),
    ]
    for how in ("tsne", "pca"):
        figure = draw_embedding(flatten_embeddings(u, how=how), colourings)
        figure.savefig(given.figures / f"pipeline-embedding-{how}.png", dpi=90)


if __name__ == "__main__":
    main()
