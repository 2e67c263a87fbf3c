"""Compares encoding and decoding of 20,000 configurations with ConfigSpace: 50 hyperparameters.

In both libraries, encoding includes the unit cube, and decoding returns plain dicts.

Run:  python benchmarks/encoding.py
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from ConfigSpace import Configuration

from foretune.space import Space

ROWS = 20_000
REPEATS = 5


def conditional_space() -> Space:
    """Return 50 hyperparameters: two stages of four algorithms with five each, and eight common."""
    stage = {
        f"algorithm{i}": {
            "rate": (1e-5, 1.0, "log"),
            "share": (0.0, 1.0),
            "count": (1, 1000, "log"),
            "depth": (1, 20),
            "mode": ["fast", "exact", "auto"],
        }
        for i in range(4)
    }
    common = {f"common{i}": (0.0, 1.0) for i in range(4)}
    flags = {f"flag{i}": [True, False] for i in range(2)}
    sizes = {f"size{i}": {"ordinal": [16, 32, 64, 128]} for i in range(2)}
    return Space.of({"first": stage, "second": stage, **common, **flags, **sizes})


def seconds(work: Callable[[], Any], repeats: int) -> float:
    """Return the median time of `repeats` runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    """Measure both and print the ratio."""
    space = conditional_space()
    configs = space.sample(ROWS, seed=0).dicts()
    encoded = space.encode(configs)
    assert space.decode(encoded) == configs

    config_space = space.config_space
    vectors = [Configuration(config_space, values=c).get_array() for c in configs]
    measured = {
        "encode": (
            seconds(lambda: space.encode(configs).x, REPEATS),
            seconds(
                lambda: [Configuration(config_space, values=c).get_array() for c in configs], 1
            ),
        ),
        "decode": (
            seconds(lambda: space.decode(encoded), REPEATS),
            seconds(lambda: [dict(Configuration(config_space, vector=v)) for v in vectors], 1),
        ),
    }
    print(f"{ROWS} configurations, {len(space)} hyperparameters, {space.width} columns")
    for what, (ours, theirs) in measured.items():
        print(f"{what:>8}: {ours:.3f} s, ConfigSpace {theirs:.3f} s, ratio {theirs / ours:.0f}")
    ours = measured["encode"][0] + measured["decode"][0]
    theirs = measured["encode"][1] + measured["decode"][1]
    print(f"{'both':>8}: {ours:.3f} s, ConfigSpace {theirs:.3f} s, ratio {theirs / ours:.0f}")


if __name__ == "__main__":
    main()
