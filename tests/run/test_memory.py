import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foretune.run import memory


def test_both_ways_of_measuring_agree():
    food = np.ones(2**23)
    assert food.sum() == 2**23
    by_proc, by_ps = memory._from_proc(os.getpid()), memory._from_ps(os.getpid())
    assert by_proc > food.nbytes
    assert abs(by_proc - by_ps) < 2**20 * 16


def test_a_process_that_is_gone_has_none():
    nobody = 2**22 + 1
    assert memory.resident_bytes(nobody) is None
    assert memory._from_ps(nobody) is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with 100 kB to spare, and a process in a group in another group."""
    write(tmp_path / "proc/meminfo", "MemTotal: 900 kB\nMemAvailable: 100 kB\nHugePages_Free: 3\n")
    write(tmp_path / "proc/self/cgroup", "1:cpu:/other\n0::/jobs/mine\n")
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def group(root: Path, name: str, most: str, used: int, cached: int, read_again: int = 0) -> None:
    folder = root / "sys/fs/cgroup" / name
    write(folder / "memory.max", f"{most}\n")
    write(folder / "memory.current", f"{used}\n")
    write(folder / "memory.stat", f"anon 1\ninactive_file {cached}\nactive_file {read_again}\n")


@pytest.mark.parametrize(
    ("own", "outer", "free"),
    [
        (("max", 9, 0), ("max", 9, 0), 102_400),
        (("5000", 4000, 300), ("max", 9, 0), 1300),
        (("5000", 4000, 300), ("6000", 5000, 0), 1000),
        (("5000", 6000, 300), ("max", 9, 0), 0),
        (("5000", 4900, 300, 2000), ("max", 9, 0), 2400),
    ],
)
def test_free_memory_is_the_least_that_the_machine_and_its_groups_have_left(
    root: Path, own: tuple[Any, ...], outer: tuple[Any, ...], free: int
) -> None:
    group(root, "jobs/mine", *own)
    group(root, "jobs", *outer)
    assert memory.free_bytes(root) == free


def test_free_memory_is_unknown_without_a_source(root: Path, tmp_path: Path) -> None:
    assert memory.free_bytes(root) == 102_400
    write(root / "proc/meminfo", "MemTotal: 900 kB\n")
    assert memory.free_bytes(root) is None
    assert memory.free_bytes(tmp_path / "elsewhere") is None
