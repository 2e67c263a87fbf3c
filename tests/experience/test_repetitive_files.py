"""Files that shrink very much: what `save` writes, `open` reads."""

import numpy as np
import pytest

from foretune.experience import Experience, Metric
from foretune.experience.parquet_format import FileLimits
from foretune.experience.parquet_reader import read_experience
from foretune.experience.parquet_writer import write_experience
from foretune.space import Space

ROWS = 200_000


def test_an_experience_whose_rows_are_all_equal_is_saved_so_that_it_can_be_opened(tmp_path):
    # As with four million rows, which take more than every file may take in memory.
    limits = FileLimits(small=2**16)
    space = Space.of({"x": (0.0, 1.0)})
    zeros = np.zeros(ROWS, dtype=np.int32)
    whole = Experience.build(
        space, [Metric("loss")], ["a"], zeros, space.encode([{"x": 0.5}]), zeros, np.zeros(ROWS)
    )
    write_experience(whole, tmp_path / "equal.parquet", limits=limits)
    opened = read_experience(Experience, tmp_path / "equal.parquet", limits=limits)
    assert len(opened) == ROWS
    assert opened.configs.dicts() == [{"x": 0.5}]
    assert not opened.values.any()


@pytest.mark.parametrize("step", ["saving", "opening"])
def test_large_files_say_how_far_they_are(step, tmp_path):
    seen = []

    class Seen:
        def start(self, what, total):
            seen.append((what, total))

        def step(self, n=1, note=""):
            seen.append(n)

        def stop(self):
            seen.append("stop")

    space = Space.of({"x": (0.0, 1.0)})
    past = Experience.build(
        space,
        [Metric("loss")],
        ["a"],
        [0, 0],
        space.encode([{"x": 0.1}, {"x": 0.2}]),
        [0, 1],
        [1, 2],
    )
    past.save(tmp_path / "past.parquet", progress=Seen())
    if step == "opening":
        seen.clear()
        Experience.open(tmp_path / "past.parquet", progress=Seen())
    begun, *steps, ended = seen
    assert begun[0].startswith(step)
    assert sum(steps) == len(past)
    assert ended == "stop"
