"""Asking and telling again and again leaves nothing behind but the trials.

2,000 rounds are a benchmark: `benchmarks/reliability/many_trials.py --rounds 2000`.
"""

import gc
import threading
import tracemalloc
from pathlib import Path

import pytest

from foretune.search import Optimizer, Told
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0), "kind": ["a", "b", "c"]})


def go_on(optimizer: Optimizer, rounds: int) -> None:
    for _ in range(rounds):
        suggestion = optimizer.ask()[0]
        optimizer.tell([Told(suggestion.config["x"] ** 2, id=suggestion.id)])


def held() -> tuple[int, int]:
    """Open files and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux")
@pytest.mark.parametrize(
    ("method", "rounds", "kilobytes"), [("random", 120, 200), ("gp", 10, 200), ("auto", 10, 200)]
)
def test_rounds_leave_trials_alone_behind(method: str, rounds: int, kilobytes: int) -> None:
    optimizer = Optimizer.of(SPACE, method=method)
    go_on(optimizer, rounds // 2)
    before = held()
    gc.collect()
    tracemalloc.start()
    try:
        go_on(optimizer, rounds)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held() == before
    assert len(optimizer.told) == rounds // 2 + rounds
    assert not optimizer.pending
    assert grown < kilobytes * 1000
