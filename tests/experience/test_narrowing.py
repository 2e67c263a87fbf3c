import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.errors import ExperienceError
from foretune.experience.alignment.restriction import reencode, restrict_experience
from foretune.space import Space
from tests.experience.whole_and_part import CONFIGS, PART, WHOLE, experience


def test_configurations_that_both_spaces_have_stay_exactly_the_same():
    there, rows = reencode(WHOLE.encode(CONFIGS), PART)
    assert rows.tolist() == [1, 2]
    assert there.dicts() == PART.encode(CONFIGS[1:]).dicts()


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_there_and_back_again_is_the_same(seed):
    batch = PART.sample(20, seed=seed)
    larger, all_rows = reencode(batch, WHOLE)
    assert len(all_rows) == 20
    back, rows = reencode(larger, PART)
    assert len(rows) == 20
    assert back == batch


@pytest.mark.parametrize(
    ("notation", "configs", "left"),
    [
        ({"x": (0.0, 1.0)}, [{"x": 0.5}, {"x": 2.0}], [{"x": 0.5}]),
        ({"x": (0, 3)}, [{"x": 1.0}, {"x": 2.5}], [{"x": 1}]),
        ({"x": ["a", 1.0]}, [{"x": 1.0}, {"x": 2.0}], [{"x": 1.0}]),
        ({"x": 2.0}, [{"x": 1.0}, {"x": 2.0}], [{"x": 2.0}]),
        ({"x": (0.0, 5.0), "new": (1, 9)}, [{"x": 1.0}], [{"x": 1.0, "new": 5}]),
    ],
)
def test_values_outside_are_dropped_and_what_is_new_gets_its_default(notation, configs, left):
    source = Space.of({"x": (0.0, 5.0)})
    there, _ = reencode(source.encode(configs), Space.of(notation))
    assert there.dicts() == left


@pytest.mark.parametrize(
    ("notation", "to", "values", "left"),
    [
        ({"x": [2, "b", True]}, {"x": (0, 5)}, [2, "b", True], [{"x": 2}]),
        ({"x": [2.0, 2.5]}, {"x": (0, 5)}, [2.0, 2.5], [{"x": 2}]),
        ({"x": ["a", "b"]}, {"x": ["b", "c"]}, ["a", "b"], [{"x": "b"}]),
        ({"x": {"ordinal": [1, 2, 4]}}, {"x": (1.0, 2.0)}, [1, 2, 4], [{"x": 1.0}, {"x": 2.0}]),
    ],
)
def test_choices_become_what_they_stand_for(notation, to, values, left):
    batch = Space.of(notation).encode([{"x": value} for value in values])
    assert reencode(batch, Space.of(to))[0].dicts() == left


def test_a_hyperparameter_that_is_active_and_unknown_there_drops_the_row():
    there, rows = reencode(WHOLE.encode(CONFIGS), Space.of({"model": ["svm", "forest", "naive"]}))
    assert (len(there), rows.tolist()) == (0, [])


def test_forbidden_combinations_and_changed_conditions_drop_the_row():
    flat = Space.of({"a": ["x", "y"], "b": (0.0, 1.0)})
    batch = flat.encode([{"a": "x", "b": 0.5}, {"a": "y", "b": 0.5}])
    conditional = Space.of({"a": {"x": {}, "y": {}}, "b": (0.0, 1.0)}).config_space
    clauses = ConfigurationSpace({"a": ["x", "y"], "b": (0.0, 1.0)})
    clauses.add(ForbiddenEqualsClause(clauses["a"], "y"))
    assert reencode(batch, Space.of(clauses))[1].tolist() == [0]
    assert reencode(batch, Space.of(conditional))[1].tolist() == [0, 1]
    child = Space.of({"a": {"x": {}, "y": {"b": (0.0, 1.0)}}})
    renamed = Space.of({"a": ["x", "y"], "a:y:b": (0.0, 1.0)})
    given = renamed.encode([{"a": "x", "a:y:b": 0.5}, {"a": "y", "a:y:b": 0.5}])
    assert reencode(given, child)[1].tolist() == [1]


def test_experience_keeps_its_rows_notes_and_times():
    left = restrict_experience(experience(), PART)
    assert left.space == PART
    assert left.tasks == ("t0", "t1")
    assert [config["model"] for config in left.configs.dicts()] == ["forest", "naive"]
    np.testing.assert_allclose(left.task("t1").losses[:, 0], [0.5, 0.6])
    np.testing.assert_allclose(left.task("t0").seconds, [2.0, 3.0], rtol=1e-6)
    assert left.meta_features == {"t0": {"rows": 5.0}}
    assert left.splits["s"]["test"] == ("t1",)
    assert left.starts == {"t0": {"a": (1,)}}


def test_tasks_without_anything_left_are_left_out():
    nan = np.nan
    left = restrict_experience(experience([[0.1, nan, nan], [nan, 0.2, nan]]), PART)
    assert left.tasks == ("t1",)


def test_nothing_left_is_said():
    only = Space.of({"model": {"boosting": {}}, "scale": ["none"]}, stages=("model", "scale"))
    with pytest.raises(ExperienceError, match="none of 3 lies in"):
        restrict_experience(experience(), only)


# Priors of the whole in a part
