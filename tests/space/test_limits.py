"""Spaces of any size: what grows with them grows in proportion, and too large ones are refused."""

import json

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace

from foretune.cli.tune_options import resolve_space
from foretune.errors import SpaceError
from foretune.space import Space, limits
from foretune.space.neighbours import MOST_CELLS
from foretune.space.text_format import parse_space
from tests.refusals import refuses


def deep(levels):
    notation = {"x": (0.0, 1.0)}
    for _ in range(levels):
        notation = {"m": {"a": notation, "b": {}}}
    return notation


def deep_json(levels):
    return '{"m":{"a":' * levels + '{"x":{"range":[0.0,1.0]}}' + ',"b":{}}}' * levels


def counted_lookups(levels, monkeypatch):
    """How often names of hyperparameters are asked for while a space is made."""
    from ConfigSpace.hyperparameters import Hyperparameter

    asked = 0
    usual = Hyperparameter.__getattribute__

    def counting(self, name):
        nonlocal asked
        asked += 1
        return usual(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(Hyperparameter, "__getattribute__", counting)
        Space.of(deep(levels))
    return asked


def test_the_work_for_nested_choices_is_proportional_to_their_depth(monkeypatch):
    counted_lookups(1, monkeypatch)  # what is loaded and kept once
    few, many = (counted_lookups(levels, monkeypatch) for levels in (3, 12))
    # ConfigSpace's own graph asks 3 ** 9 times as often.
    assert many < 4.5 * few


@pytest.mark.parametrize("given", ["dict", "json"])
def test_two_hundred_levels_of_choices_work_throughout(given):
    space = Space.of(deep(200)) if given == "dict" else parse_space(deep_json(200))
    assert len(space) == 201
    assert [p.name.count(":") for p in space.parameters] == [2 * i for i in range(201)]
    batch = space.sample(50, seed=0)
    assert space.encode(batch.dicts()) == batch
    assert Space.from_json(space.to_json()) == space
    # By hand: level k is there with probability 2 ** -k, and nothing without its parent.
    for row in batch.active:
        assert row.tolist() == sorted(row.tolist(), reverse=True)
    assert 0.2 < batch.active[:, 1].mean() < 0.8
    everything = dict.fromkeys(space.names[:-1], "a") | {space.names[-1]: 0.25}
    whole = space.encode([everything])
    assert whole.active.all()
    near = space.neighbours(whole, seed=0)
    assert len(near) >= 200
    assert space.structure.kind == "cash"
    assert len(space.structure.stages[0].algorithms[0].parameters) == 200
    renamed = space.renamed({}, choices={"m": {"a": "A"}})
    assert renamed.names[-1].startswith("m:A:m:a:")
    assert set(space.union(Space.of({"y": (0, 9)})).names) == {*space.names, "y"}


@pytest.mark.parametrize("levels", [401, 900, 5_000, 100_000])
def test_deeper_choices_are_refused_with_the_limit(levels):
    notation = deep(levels)
    with refuses("too-deep"):
        Space.of(notation)
    with refuses("too-deep"):
        parse_space(deep_json(levels))


@pytest.mark.parametrize("levels", [401, 100_000])
def test_tune_refuses_a_deep_file_with_the_limit(levels, tmp_path):
    (tmp_path / "space.json").write_text(deep_json(levels))
    with refuses("too-deep"):
        resolve_space(tmp_path / "space.json", None)


@pytest.mark.parametrize("levels", [60, 400, 100_000])
def test_rules_inside_of_rules_end_somewhere(levels):
    space = Space.of({"a": ["x", "y"], "b": (0, 9), "c": (0, 9)})
    document = json.loads(space.to_json())
    leaf = {"type": "EQ", "child": "b", "parent": "a", "value": "x"}
    document["conditions"] = ["@"]
    rule = '{"type": "AND", "child": "b", "conditions": ['
    text = rule * levels + json.dumps(leaf) + f", {json.dumps(leaf)}]}}" * levels
    with pytest.raises(SpaceError):
        Space.from_json(json.dumps(document).replace('"@"', text))


@pytest.mark.parametrize("kind", ["list", "ordinal", "config_space", "json", "optuna"])
def test_a_million_choices_are_refused_with_the_limit_and_the_remedy(kind):
    # ConfigSpace and Optuna themselves take seconds for a million.
    count = 10_001 if kind in ("config_space", "optuna") else 1_000_000
    given = _choices_as(kind, [str(i) for i in range(count)])
    with refuses("too-many-choices", value=count):
        Space.from_json(given) if kind == "json" else Space.of(given)


def _choices_as(kind, many):
    if kind == "config_space":
        space = ConfigurationSpace()
        space.add(CategoricalHyperparameter("kind", many))
        return space
    if kind == "json":
        item = {"type": "categorical", "name": "kind", "choices": many}
        return json.dumps({"hyperparameters": [item]})
    if kind == "optuna":
        optuna = pytest.importorskip("optuna")
        return {"kind": optuna.distributions.CategoricalDistribution(many)}
    return {"kind": {"ordinal": many} if kind == "ordinal" else many}


def test_spaces_within_the_limits_are_accepted():
    wide = Space.of({"kind": [str(i) for i in range(limits.MOST_CHOICES - 1)], "x": (0.0, 1.0)})
    assert wide.width == limits.MOST_COLUMNS
    batch = wide.sample(5, seed=0)
    assert wide.encode(batch.dicts()) == batch
    with refuses("too-many-hyperparameters", value=10_001):
        Space.of({f"h{i}": (0, 9) for i in range(limits.MOST_HYPERPARAMETERS + 1)})
    with refuses("too-many-columns", value=10_002):
        Space.of({"a": [str(i) for i in range(5_001)], "b": [str(i) for i in range(5_001)]})


def test_neighbours_of_many_hyperparameters_are_a_random_part():
    space = Space.of({f"h{i}": (0.0, 1.0) for i in range(1_500)})
    one = space.sample(1, seed=0)
    near, owners = space.neighbourhoods(one, seed=1)
    assert len(near) == MOST_CELLS // 1_500
    assert not owners.any()
    changed = near.values != one.values
    assert (changed.sum(axis=1) == 1).all()
    assert len(set(np.nonzero(changed)[1].tolist())) > 400  # of 699 steps on 1,500 columns


def test_a_message_about_a_huge_value_is_short():
    with pytest.raises(SpaceError) as refusal:
        Space.of({"kind": "x" * 10**6, "other": {"a": [1], "b": deep(10_000)}})
    assert len(str(refusal.value)) < 1_000


def test_config_space_of_a_space_is_equal_to_it():
    space = Space.of(deep(3))
    assert Space.of(space.config_space) == space
