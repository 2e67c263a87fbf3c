"""Foretune's own methods, asked in the whole space like the peers, or among recorded rows.

What a method learns from past tasks is learnt once for each set of them, from all that they
recorded, and kept in the folder `PEERS_PRIORS`.
"""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
from benchmarks.peers.objective import Floats, Problem

from foretune.experience import Experience, Split, for_learning
from foretune.methods.contracts import Prior, Target
from foretune.search import Method, Optimizer, Told, method
from foretune_lab.bench.pools import pool_of

METHODS = ("auto", "gcp-prior", "gp", "random")


class ForetuneTuner:
    """An optimiser that is asked and told."""

    def __init__(self, name: str, problem: Problem, seed: int, *, pooled: bool = False) -> None:
        chosen = method(name)
        experience = Experience.open(Path(problem.experience))
        experience = experience.with_metrics([experience.metrics[0].name])
        prior, self.learn_seconds = _learnt(chosen, experience, problem)
        self._space = experience.space
        self._columns = [i for i, p in enumerate(self._space.parameters) if p.size > 1]
        target = Target(
            space=self._space,
            objectives=(experience.metrics[0].name,),
            pool=pool_of(experience, problem.task).configs if pooled else None,
            meta_features=experience.meta_features.get(problem.task, {}),
        )
        self._optimizer = Optimizer(target, chosen, prior, seed=seed)
        self._asked = -1

    def ask(self) -> Floats:
        suggestion = self._optimizer.ask()[0]
        self._asked = suggestion.id
        values: Floats = self._space.encode([suggestion.config]).values[0, self._columns]
        return values

    def tell(self, row: Floats, loss: float) -> None:
        del row
        self._optimizer.tell([Told((loss,), id=self._asked)])

    def observe(self, rows: Floats, losses: Floats) -> None:
        """Take trials that were made elsewhere."""
        values = np.zeros((len(rows), len(self._space.parameters)))
        values[:, self._columns] = rows
        # Constants are not in the rows: they are settled here, for they may be inactive, too.
        configs = self._space.from_values(self._space.rules.settle(values)).dicts()
        told = zip(configs, losses.tolist(), strict=True)
        self._optimizer.tell([Told((loss,), config=config) for config, loss in told])


def _learnt(chosen: Method, experience: Experience, problem: Problem) -> tuple[Prior, float]:
    """Return the prior, and the seconds in which it was learnt."""
    if not chosen.transfers:
        return chosen.learn(None, seed=0), 0.0
    tasks = hashlib.sha256("\n".join(problem.learnt_from).encode()).hexdigest()[:12]
    stem = Path(problem.experience).stem
    file = Path(os.environ["PEERS_PRIORS"]) / f"{chosen.name}-{stem}-{tasks}.prior"
    seconds = file.with_suffix(".json")
    if not seconds.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        start = process_time()
        split = Split(problem.task, problem.learnt_from, (), (problem.task,))
        chosen.learn(for_learning(experience, split), seed=0).save(file)
        seconds.write_text(json.dumps(process_time() - start))
    return chosen.load(file), float(json.loads(seconds.read_text()))


def _maker(name: str, *, pooled: bool = False) -> Callable[[Problem, int, int], ForetuneTuner]:
    def make(problem: Problem, seed: int, trials: int) -> ForetuneTuner:
        del trials
        return ForetuneTuner(name, problem, seed, pooled=pooled)

    return make


PEERS = {name: _maker(name) for name in METHODS}
POOLED = {name: _maker(name, pooled=True) for name in METHODS}
"""The same tuner, choosing among the recorded configurations."""
