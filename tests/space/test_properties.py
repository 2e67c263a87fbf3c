"""What must hold in every space, checked on random conditional ones."""

import contextlib
import io
import pickle

import numpy as np
import pytest
from ConfigSpace import Configuration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foretune.errors import SpaceError
from foretune.space import Encoded, Kind, Space
from tests.space.spaces import conditional_spaces

pytestmark = pytest.mark.filterwarnings("ignore")

thorough = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**16)


def accepted_by_config_space(space: Space, config: dict) -> bool:
    with contextlib.redirect_stdout(io.StringIO()):  # one of its clauses prints
        try:
            Configuration(space.config_space, values=config)
        except ValueError:
            return False
    return True


@thorough
@given(conditional_spaces(), seeds)
def test_samples_are_legal_by_config_space_own_check(space: Space, seed: int) -> None:
    for how in ("random", "sobol"):
        batch = space.sample(8, seed=seed, how=how)
        assert len(batch) == 8
        for config in batch.dicts():
            assert accepted_by_config_space(space, config), config


@thorough
@given(conditional_spaces(), seeds)
def test_round_trip_is_exact(space: Space, seed: int) -> None:
    batch = space.sample(10, seed=seed)
    configs = space.decode(batch)
    again = space.encode(configs)
    assert again == batch
    for config, same in zip(configs, again.dicts(), strict=True):
        assert config == same
        assert [type(v) for v in config.values()] == [type(v) for v in same.values()]
    assert space.from_values(batch.values) == batch
    packed = batch.pack()
    assert not any(np.isnan(array).any() for array in packed.values())
    assert space.unpack(packed) == batch
    columns = {name: [c.get(name) for c in configs] for name in space.names}
    assert space.from_columns(columns, len(configs)) == batch


@thorough
@given(conditional_spaces(), seeds)
def test_the_unit_cube_is_a_unit_cube_and_leads_back(space: Space, seed: int) -> None:
    batch = space.sample(10, seed=seed)
    assert batch.x.shape == (10, space.width)
    assert ((batch.x >= 0) & (batch.x <= 1)).all()
    assert ((batch.codes >= 0) == batch.active).all()
    assert (batch.codes[~batch.active] == -1).all()
    back = space.from_unit(batch.x).values
    exact = [p.kind is not Kind.FLOAT for p in space.parameters]
    np.testing.assert_array_equal(back[:, exact], batch.values[:, exact])
    np.testing.assert_allclose(back, batch.values, rtol=1e-9, atol=1e-12)


@thorough
@given(conditional_spaces(), seeds)
def test_conditions_agree_with_config_space(space: Space, seed: int) -> None:
    config_space = space.config_space
    for row, config in zip(*_rows_and_configs(space, seed), strict=True):
        vector = Configuration(config_space, values=config).get_array()
        ours = {p.name for p, value in zip(space.parameters, row, strict=True) if value == value}
        assert ours == config_space.get_active_hyperparameters(vector)


def _rows_and_configs(space: Space, seed: int) -> tuple[np.ndarray, list[dict]]:
    batch = space.sample(6, seed=seed)
    return batch.values, batch.dicts()


@thorough
@given(conditional_spaces(), seeds)
def test_we_refuse_exactly_what_config_space_refuses(space: Space, seed: int) -> None:
    """Mix the cells of two samples: many mixtures break a condition or a forbidden clause.

    None is left out: to us it says that nothing is given, to ConfigSpace it is a value.
    """
    rng = np.random.default_rng(seed)
    first, second = space.sample(12, seed=seed).dicts(), space.sample(12, seed=seed + 1).dicts()
    for one, other in zip(first, second, strict=True):
        mixed = {
            name: config[name]
            for name in space.names
            if (config := one if rng.random() < 0.7 else other).get(name) is not None
        }
        try:
            space.encode([mixed])
        except SpaceError:
            assert not accepted_by_config_space(space, mixed), mixed
        else:
            assert accepted_by_config_space(space, mixed), mixed


@thorough
@given(conditional_spaces(), seeds)
def test_neighbours_are_legal_different_and_unique(space: Space, seed: int) -> None:
    one = space.sample(1, seed=seed)
    near = space.neighbours(one, seed=seed, per_parameter=4)
    assert not near.isin(one).any()
    assert len(set(near.keys().tolist())) == len(near)
    for config in near.dicts():
        assert accepted_by_config_space(space, config), config


@thorough
@given(conditional_spaces())
def test_json_pickle_and_fingerprint_keep_a_space(space: Space) -> None:
    again = Space.from_json(space.to_json())
    assert again == space
    assert hash(again) == hash(space)
    assert again.parameters == space.parameters
    assert again.structure == space.structure
    batch = space.sample(3, seed=1)
    copy = pickle.loads(pickle.dumps(batch))
    assert copy == batch
    assert Encoded.concat([copy, batch]).first_occurrences().max() < 3


@thorough
@given(conditional_spaces())
def test_every_hyperparameter_has_one_place_in_the_structure(space: Space) -> None:
    stages = space.structure.stages
    choices = {stage.choice for stage in stages} - {None}
    members = {i for s in stages for a in s.algorithms for i in a.parameters}
    homeless = set(range(len(space))) - choices - members
    assert not space.sample(50, seed=0).active[:, sorted(homeless)].any()
    assert not choices & members
    homes = [{i for a in s.algorithms for i in a.parameters} for s in stages]
    assert sum(map(len, homes)) == len(set().union(*homes))


@thorough
@given(conditional_spaces(), seeds)
def test_an_algorithm_holds_all_that_is_active_when_it_is_chosen(space: Space, seed: int) -> None:
    batch = space.sample(20, seed=seed)
    chosen = space.structure.algorithm_of(batch.values)
    for row in range(len(batch)):
        allowed: set[int] = set()
        for stage, algorithm in zip(space.structure.stages, chosen[row], strict=True):
            allowed |= set() if stage.choice is None else {stage.choice}
            allowed |= set(stage.algorithms[algorithm].parameters) if algorithm >= 0 else set()
        assert set(np.flatnonzero(batch.active[row]).tolist()) <= allowed


def _refusal_of(union: Space, batch: Encoded) -> list[str]:
    try:
        union.adopt(batch)
    except SpaceError as error:
        return [str(error)]
    return []


@thorough
@given(conditional_spaces(), conditional_spaces(), seeds)
def test_a_union_holds_both(first: Space, second: Space, seed: int) -> None:
    try:
        union = first.union(second)
    except SpaceError:
        return  # of different kinds, which the unit tests look at
    for space in (first, second):
        batch = space.sample(5, seed=seed)
        if any("is forbidden" in message for message in _refusal_of(union, batch)):
            continue  # a clause that hits a default, of which the batch does not know
        adopted = union.adopt(batch)
        for config, larger in zip(batch.dicts(), adopted.dicts(), strict=True):
            assert config.items() <= larger.items()


@thorough
@given(conditional_spaces())
def test_a_space_joined_with_itself_is_itself(space: Space) -> None:
    assert space.union(space) == space
