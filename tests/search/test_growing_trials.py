"""Configurations that grow in number say the same as if they had come at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.search.trials import GrowingConfigs, GrowingRows
from foretune.space import Encoded, Space
from foretune.space.rows import find_rows, row_hashes

SPACE = Space.of(
    {"a": (0.0, 1.0), "n": (1, 9), "model": {"svm": {"c": (1e-3, 1e3, "log")}, "naive": {}}}
)
SIZES = st.lists(st.integers(0, 40), max_size=8)


@settings(max_examples=40, deadline=None)
@given(sizes=SIZES, seed=st.integers(0, 100))
def test_batches_that_were_added_are_those_that_were_joined(sizes: list[int], seed: int) -> None:
    parts = [SPACE.sample(n, seed=seed + i) for i, n in enumerate(sizes) if n]
    growing = GrowingConfigs(SPACE)
    seen = [growing.batch()]
    for part in parts:
        growing.extend(part)
        seen.append(growing.batch())
    for n, batch in enumerate(seen):
        joined = Encoded.concat([SPACE.encode([]), *parts[:n]])
        assert batch == joined
        assert np.array_equal(batch.x, joined.x)
        assert np.array_equal(batch.codes, joined.codes)
        assert np.array_equal(batch.hashes, joined.hashes)
        assert batch.dicts() == joined.dicts()


def test_rows_that_were_given_out_cannot_be_changed() -> None:
    growing = GrowingConfigs(SPACE)
    growing.extend(SPACE.sample(3, seed=0))
    with pytest.raises(ValueError, match="read-only"):
        growing.batch().values[0, 0] = 2.0


def test_buffers_are_replaced_as_often_as_the_number_of_rows_doubles() -> None:
    rows, places = GrowingRows((2,)), set()
    for number in range(5_000):
        rows.extend(np.full((1, 2), float(number)))
        places.add(rows.first(1).__array_interface__["data"][0])
    assert len(places) <= 11  # 16, 32, ..., 8192; an address may be used again
    assert np.array_equal(rows.first(5_000)[:, 0], np.arange(5_000.0))


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 60), m=st.integers(0, 60), shared=st.integers(0, 20))
def test_isin_finds_exactly_the_equal_rows(n: int, m: int, shared: int) -> None:
    both = SPACE.sample(shared, seed=1) if shared else SPACE.encode([])
    mine = Encoded.concat([SPACE.encode([]), *([SPACE.sample(n, seed=2)] if n else []), both])
    other = Encoded.concat([both, *([SPACE.sample(m, seed=3)] if m else [])])
    keys = set(other.keys().tolist())
    expected = [key in keys for key in mine.keys().tolist()]
    assert mine.isin(other).tolist() == expected


@given(n=st.integers(0, 20), m=st.integers(0, 20), shared=st.integers(0, 9))
def test_different_rows_with_one_hash_are_told_apart(n: int, m: int, shared: int) -> None:
    both = np.arange(2.0 * shared).reshape(shared, 2)
    mine = np.concatenate([both, np.full((n, 2), 100.5)])
    other = np.concatenate([np.full((m, 2), 200.5), both])
    hashes = np.zeros(len(mine), np.uint64), np.zeros(len(other), np.uint64)
    found = find_rows(mine, hashes[0], other, hashes[1])
    assert found.tolist() == [True] * shared + [False] * n


def test_small_whole_numbers_have_hashes_of_their_own() -> None:
    values = np.stack(np.meshgrid(*[np.arange(8.0)] * 5), axis=-1).reshape(-1, 5)
    assert len(np.unique(row_hashes(values))) == len(values)
