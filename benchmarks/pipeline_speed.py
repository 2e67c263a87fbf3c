"""Measures the time of DeepPipe: meta-training, and a suggestion over a whole pool.

Priors that lie in `--priors` as METHOD.safetensors are read instead of learnt.

    python benchmarks/pipeline_speed.py --experience tensor-oboe.parquet --split paper
"""

import argparse
import time
from pathlib import Path

import numpy as np

from foretune._base.progress import TerminalProgress
from foretune.experience import Experience, for_learning, recorded_split
from foretune.methods.contracts import Target
from foretune.search import Optimizer, Told, method
from foretune_lab.bench.pools import pool_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--split", default="paper")
    parser.add_argument("--methods", nargs="+", default=["deeppipe", "deeppipe-ri", "gp"])
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--priors", type=Path, default=Path("priors"))
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    split = recorded_split(experience, given.split)
    past = for_learning(experience, split)
    pool = pool_of(experience, split.test[0])
    target = Target(experience.space, pool=pool.configs)
    for name in given.methods:
        saved = given.priors / f"{name}.safetensors"
        began, cpu = time.perf_counter(), time.process_time()
        if saved.exists():
            prior = method(name).load(saved)
        else:
            prior = method(name).learn(past, seed=0, progress=TerminalProgress())
        learning = f"{time.perf_counter() - began:.1f} s ({time.process_time() - cpu:.1f} s CPU)"
        optimizer = Optimizer(target, method(name), prior, seed=0)
        seconds = []
        for _ in range(given.trials + 10):
            began = time.process_time()
            suggestion = optimizer.ask()[0]
            seconds.append(time.process_time() - began)
            loss = tuple(pool.losses[suggestion.pool_index])
            optimizer.tell([Told(loss, id=suggestion.id)])
        late, whole = np.median(seconds[-10:]), np.mean(seconds)
        print(
            f"{name}: prior {learning}; a suggestion among {len(pool.configs)} after "
            f"{given.trials} trials {late:.3f} s CPU, on average {whole:.3f}, at most "
            f"{max(seconds):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
