import os

import numpy as np

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
