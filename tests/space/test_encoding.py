import numpy as np
import pytest

from foretune.space import Encoded, Space
from tests.refusals import refuses
from tests.space.spaces import CASH, EVERY_KIND

CONFIG = {
    "rate": 1e-3,
    "share": 0.5,
    "depth": 6,
    "trees": 10,
    "kernel": "poly",
    "size": 128,
    "seed": 7,
}


def column(space: Space, name: str) -> slice:
    return space.parameters[space.names.index(name)].columns


def test_unit_cube_by_hand() -> None:
    space = Space.of(EVERY_KIND)
    x = space.encode([CONFIG]).x[0]
    by_hand = {
        "rate": [1 / 3],
        "share": [0.25],
        "depth": [0.5],
        "trees": [1 / 3],
        "kernel": [0, 1, 0],
        "size": [1],
        "seed": [],
    }
    for name, expected in by_hand.items():
        np.testing.assert_allclose(x[column(space, name)], expected, rtol=1e-12)


def test_values_and_codes_by_hand() -> None:
    space = Space.of(EVERY_KIND)
    batch = space.encode([CONFIG])
    expected = {
        "rate": 1e-3,
        "share": 0.5,
        "depth": 6,
        "trees": 10,
        "kernel": 1,
        "size": 2,
        "seed": 0,
    }
    assert dict(zip(space.names, batch.values[0].tolist(), strict=True)) == expected
    codes = dict(zip(space.names, batch.codes[0].tolist(), strict=True))
    expected = {
        "rate": 1 / 3,
        "share": 0.25,
        "depth": 0.5,
        "trees": 1 / 3,
        "kernel": 0.5,
        "size": 1,
        "seed": 0,
    }
    assert codes == pytest.approx(expected, rel=1e-12)


def test_inactive_columns() -> None:
    space = Space.of({"m": {"a": {"k": ["p", "q"], "f": (1.0, 3.0)}, "b": {}}})
    batch = space.encode([{"m": "b"}, {"m": "a", "m:a:k": "q", "m:a:f": 1.5}])
    assert space.names == ("m", "m:a:f", "m:a:k")
    assert batch.x.tolist() == [[0, 1, 0.5, 0, 0], [1, 0, 0.25, 0, 1]]
    assert batch.codes.tolist() == [[1, -1, -1], [0, 0.25, 1]]
    assert batch.active.tolist() == [[True, False, False], [True, True, True]]


def test_decoding_gives_the_types_of_the_user() -> None:
    space = Space.of({"f": (0.0, 4.0), "i": (1, 3), "c": [True, None, 2, "2", (1, 2)]})
    for choice in (True, None, 2, "2", (1, 2)):
        (config,) = space.encode([{"f": 2, "i": 3.0, "c": choice}]).dicts()
        assert config == {"f": 2.0, "i": 3, "c": choice}
        assert [type(v) for v in (config["f"], config["i"], config["c"])] == [
            float,
            int,
            type(choice),
        ]


def test_a_batch_is_immutable() -> None:
    batch = Space.of(CASH).sample(3, seed=0)
    for array in (batch.values, batch.x, batch.codes, batch.active):
        with pytest.raises(ValueError, match=r"read-only"):
            array[0, 0] = 0
    with pytest.raises(AttributeError):
        batch.values = batch.values


def test_a_batch_does_not_freeze_or_follow_the_callers_array() -> None:
    space = Space.of({"a": (0.0, 1.0)})
    values = np.array([[0.5]])
    batch = space.from_values(values)
    values[0, 0] = 0.75
    assert batch.values[0, 0] == 0.5


def test_take_and_concat() -> None:
    batch = Space.of(CASH).sample(6, seed=0)
    rows = batch.dicts()
    assert batch.take([4, 0, 0]).dicts() == [rows[4], rows[0], rows[0]]
    assert batch.take(np.arange(6) > 3).dicts() == rows[4:]
    assert batch.take([]).dicts() == []
    assert Encoded.concat([batch.take([0, 1]), batch.take([5])]).dicts() == [*rows[:2], rows[5]]
    assert list(batch) == rows


def test_concat_refuses_different_spaces_and_nothing() -> None:
    one, other = Space.of({"a": (0, 1)}), Space.of({"a": (0, 2)})
    with refuses("another-space"):
        Encoded.concat([one.sample(1, seed=0), other.sample(1, seed=0)])
    with refuses("no-batches"):
        Encoded.concat([])


def test_keys_are_equal_exactly_for_equal_configurations() -> None:
    space = Space.of({"f": (-1.0, 1.0), "m": {"a": {"g": (0.0, 1.0)}, "b": {}}})
    batch = space.encode(
        [
            {"f": 0.0, "m": "b"},
            {"f": -0.0, "m": "b"},
            {"f": 0.0, "m": "a", "m:a:g": 0.0},
            {"f": 5e-324, "m": "b"},
        ]
    )
    keys = batch.keys().tolist()
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert batch.first_occurrences().tolist() == [0, 2, 3]
    assert batch.isin(batch.take([1])).tolist() == [True, True, False, False]
    assert batch.isin(batch.take([])).tolist() == [False] * 4


def test_an_empty_batch() -> None:
    space = Space.of(CASH)
    batch = space.encode([])
    assert len(batch) == 0
    assert batch.x.shape == (0, space.width)
    assert batch.codes.shape == batch.values.shape == (0, len(space))
    assert batch.dicts() == []
    assert batch.keys().shape == (0,)


def test_a_space_of_constants_only() -> None:
    space = Space.of({"a": 1, "b": "x"})
    batch = space.sample(3, seed=0)
    assert batch.x.shape == (3, 0)
    assert batch.dicts() == [{"a": 1, "b": "x"}] * 3
    assert space.from_unit(batch.x) == batch


def test_batches_of_different_spaces_are_never_equal() -> None:
    narrow, wide = Space.of({"n": (0, 5)}), Space.of({"n": (0, 9)})
    assert narrow.encode([{"n": 3}]) != wide.encode([{"n": 3}])
    assert narrow.encode([{"n": 3}]) == Space.of({"n": (0, 5)}).encode([{"n": 3}])
