"""Configurations that should beat the earlier ones: one round of optimisation on every dataset.

A list that is the same for all datasets covers a large space thinly. The configuration that a
process expects to be best on one dataset is often good on others, so it is worth an evaluation on
all of them.
"""

from itertools import chain

from foretune.experience import Experience, Status
from foretune.methods import Target
from foretune.search import Optimizer, Told, derive_seed, method
from foretune.space import Encoded

METHOD = "gcp"


def propose_refinements(experience: Experience, n: int, *, seed: int) -> Encoded:
    """Return at most `n` new configurations, proposed by all tasks in turn, by the first metric."""
    tasks = experience.tasks
    each = -(-n // len(tasks))
    proposed = [
        _propose_for_task(experience, task, each, seed=derive_seed(seed, number))
        for number, task in enumerate(tasks)
    ]
    turns = list(chain.from_iterable(zip(*proposed, strict=True)))
    found = experience.space.encode(turns)
    found = found.take(found.first_occurrences())
    new = ~found.isin(experience.configs)
    return found.take(new.nonzero()[0][:n])


def _propose_for_task(
    experience: Experience, task: str, n: int, *, seed: int
) -> list[dict[str, object]]:
    """Return the configurations that a process which knows only one task would try next."""
    chosen = method(METHOD)
    records = experience.task(task)
    optimizer = Optimizer(
        Target(experience.space), chosen, chosen.learn(None, seed=seed), seed=seed
    )
    optimizer.tell(
        Told((float(loss),), config=config, status=Status(int(status)))
        for loss, config, status in zip(
            records.losses[:, 0], records.configs.dicts(), records.status, strict=True
        )
    )
    return [suggestion.config for suggestion in optimizer.ask(n)]
