"""Measures seconds, memory and file size of an experience with a million curve points.

Run it:  python benchmarks/curve_storage.py
"""

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from foretune.experience import Experience, Metric
from foretune.experience.curves import build_curves
from foretune.space import Space

TASKS, CONFIGS, STEPS = 20, 1_000, 50
MIB = 1 << 20


def make() -> Experience:
    """Return 20 tasks of 1,000 configurations with 50 steps each, in one metric."""
    rng = np.random.default_rng(0)
    space = Space.of({"lr": (1e-4, 1.0, "log"), "depth": (1, 8), "drop": (0.0, 0.5)})
    n = TASKS * CONFIGS
    losses = np.sort(rng.random((n, STEPS)), axis=1)[:, ::-1]
    curves = build_curves(
        np.full(n, STEPS),
        np.tile(np.arange(1.0, STEPS + 1), n),
        losses.ravel(),
        np.cumsum(rng.random((n, STEPS)), axis=1).ravel(),
    )
    return Experience.build(
        space,
        [Metric("loss")],
        [f"task {number}" for number in range(TASKS)],
        np.repeat(np.arange(TASKS), CONFIGS),
        space.sample(CONFIGS, seed=0),
        np.tile(np.arange(CONFIGS), TASKS),
        losses[:, -1],
        curves=curves,
    )


def main() -> None:
    """Print the cost of saving and opening."""
    made = make()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "curves.parquet"
        began = time.perf_counter()
        made.save(path)
        saved = time.perf_counter() - began
        times = []
        for _ in range(5):
            began, cpu = time.perf_counter(), time.process_time()
            opened = Experience.open(path)
            times.append((time.perf_counter() - began, time.process_time() - cpu))
        size = path.stat().st_size / MIB
    curves = opened.curves
    assert curves is not None
    held = sum(each.nbytes for each in (curves.offsets, curves.steps, curves.values))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"points          {len(curves.steps):,}")
    print(f"file            {size:.1f} MiB")
    print(f"save            {saved:.2f} s")
    print(f"open, median    {sorted(times)[2][0]:.2f} s, {sorted(times)[2][1]:.2f} CPU seconds")
    print(f"curves held     {(held + curves.seconds.nbytes) / MIB:.1f} MiB")
    print(f"process, peak   {peak:.0f} MiB")


if __name__ == "__main__":
    main()
