import pytest
from ConfigSpace import ConfigurationSpace
from ConfigSpace import conditions as given

from foretune.space import Algorithm, Space, Stage
from tests.refusals import refuses
from tests.space.spaces import CASH, EVERY_KIND

Shape = dict[str, dict[str, set[str]]]

PIPELINE = {
    "scaler": {"none": {}, "minmax": {"low": (0.0, 1.0)}},
    "model": {"svm": {"C": (1.0, 9.0)}, "tree": {"depth": (1, 9)}},
    "budget": (0, 9),
}


def shape(space: Space) -> Shape:
    """The structure by names."""
    return {
        stage.name: {
            algorithm.name: {space.names[i] for i in algorithm.parameters}
            for algorithm in stage.algorithms
        }
        for stage in space.structure.stages
    }


def build(hyperparameters: dict, *conditions: object) -> Space:
    config_space = ConfigurationSpace(hyperparameters)
    config_space.add([condition(config_space) for condition in conditions])  # type: ignore[operator]
    return Space.of(config_space)


def equals(child: str, parent: str, value: object) -> object:
    return lambda c: given.EqualsCondition(c[child], c[parent], value)


def test_flat() -> None:
    space = Space.of(EVERY_KIND)
    assert space.structure.kind == "flat"
    assert space.structure.fits
    everything = tuple(range(len(space)))
    assert space.structure.stages == (Stage("common", None, (Algorithm("common", everything),)),)


def test_cash() -> None:
    space = Space.of(CASH)
    assert space.structure.kind == "cash"
    assert shape(space) == {
        "model": {
            "svm": {"model:svm:C"},
            "forest": {"model:forest:trees", "model:forest:depth"},
        },
        "common": {"common": {"budget"}},
    }
    stage = space.structure.stages[0]
    assert stage.choice == space.names.index("model")


def test_pipeline_with_the_common_stage_last() -> None:
    space = Space.of(PIPELINE)
    assert space.structure.kind == "pipeline"
    assert shape(space) == {
        "model": {"svm": {"model:svm:C"}, "tree": {"model:tree:depth"}},
        "scaler": {"none": set(), "minmax": {"scaler:minmax:low"}},
        "common": {"common": {"budget"}},
    }
    assert space.structure.stages[-1].name == "common"


def test_chosen_algorithms() -> None:
    space = Space.of(PIPELINE)
    batch = space.encode(
        [
            {"scaler": "none", "model": "tree", "model:tree:depth": 2, "budget": 0},
            {
                "scaler": "minmax",
                "scaler:minmax:low": 0,
                "model": "svm",
                "model:svm:C": 2,
                "budget": 0,
            },
        ]
    )
    assert [stage.name for stage in space.structure.stages] == ["model", "scaler", "common"]
    assert space.structure.algorithm_of(batch.values).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_a_hyperparameter_may_be_shared_among_algorithms() -> None:
    space = build(
        {"m": ["a", "b", "c"], "x": (0, 9), "y": (0, 9)},
        lambda c: given.InCondition(c["x"], c["m"], ["a", "c"]),
        lambda c: given.NotEqualsCondition(c["y"], c["m"], "a"),
    )
    assert shape(space) == {"m": {"a": {"x"}, "b": {"y"}, "c": {"x", "y"}}}


def test_nested_children_belong_to_the_root() -> None:
    space = Space.of({"m": {"svm": {"kernel": {"rbf": {"g": (0, 9)}, "poly": {}}}, "tree": {}}})
    assert space.structure.kind == "cash"
    assert shape(space) == {"m": {"svm": {"m:svm:kernel", "m:svm:kernel:rbf:g"}, "tree": set()}}


def test_conjunctions_within_one_stage_fit() -> None:
    space = build(
        {"m": ["a", "b", "c"], "k": ["p", "q"], "x": (0, 9), "y": (0, 9)},
        equals("k", "m", "a"),
        lambda c: given.AndConjunction(
            given.InCondition(c["x"], c["m"], ["a", "b"]),
            given.EqualsCondition(c["x"], c["k"], "p"),
        ),
        lambda c: given.OrConjunction(
            given.EqualsCondition(c["y"], c["m"], "b"),
            given.EqualsCondition(c["y"], c["m"], "c"),
        ),
    )
    assert space.structure.fits
    assert shape(space) == {"m": {"a": {"k", "x"}, "b": {"y"}, "c": {"y"}}}


def test_not_equals_on_a_nested_parent_reaches_other_algorithms() -> None:
    """An inactive parent differs from every value, so the child is active without it."""
    space = build(
        {"m": ["b", "a"], "k": ["p", "q"], "x": (0, 9)},
        equals("k", "m", "b"),
        lambda c: given.NotEqualsCondition(c["x"], c["k"], "q"),
    )
    assert shape(space) == {"m": {"a": {"x"}, "b": {"k", "x"}}}
    assert {"m": "a", "x": 3} in space.encode([{"m": "a", "x": 3}]).dicts()


@pytest.mark.parametrize(
    "condition",
    [
        lambda c: given.AndConjunction(
            given.EqualsCondition(c["x"], c["m"], "a"), given.EqualsCondition(c["x"], c["k"], "p")
        ),
        lambda c: given.OrConjunction(
            given.EqualsCondition(c["x"], c["m"], "a"), given.EqualsCondition(c["x"], c["k"], "p")
        ),
        lambda c: given.GreaterThanCondition(c["x"], c["n"], 3),
    ],
    ids=["and across stages", "or across stages", "on a number"],
)
def test_a_condition_that_fits_no_structure_makes_a_flat_space(condition: object) -> None:
    space = build({"m": ["a", "b"], "k": ["p", "q"], "n": (0, 9), "x": (0, 9)}, condition)
    assert not space.structure.fits
    assert space.structure.kind == "flat"
    assert shape(space) == {"common": {"common": {"m", "k", "n", "x"}}}
    assert space.structure.algorithm_of(space.sample(3, seed=0).values).tolist() == [[0], [0], [0]]


def test_a_constant_with_children_is_a_stage() -> None:
    space = build({"m": "svm", "x": (0, 9)}, equals("x", "m", "svm"))
    assert shape(space) == {"m": {"svm": {"x"}}}
    assert space.structure.kind == "cash"


def test_stages_named_by_the_user_are_kept_by_json() -> None:
    config_space = ConfigurationSpace({"scaler": ["none", "minmax"], "n": (0, 9)})
    assert Space.of(config_space).structure.kind == "flat"
    space = Space.of(config_space, stages=["scaler"])
    assert shape(space) == {
        "scaler": {"none": set(), "minmax": set()},
        "common": {"common": {"n"}},
    }
    assert Space.from_json(space.to_json()).structure == space.structure
    assert Space.of(space) is space
    assert space != Space.of(config_space)
    assert config_space["scaler"].meta is None


def test_a_stage_that_is_itself_conditional() -> None:
    space = Space.of(
        Space.of({"m": {"svm": {"kernel": {"rbf": {"g": (0, 9)}, "poly": {}}}, "tree": {}}}),
        stages=["m:svm:kernel"],
    )
    assert shape(space) == {
        "m": {"svm": set(), "tree": set()},
        "m:svm:kernel": {"rbf": {"m:svm:kernel:rbf:g"}, "poly": set()},
    }
    assert space.structure.kind == "pipeline"
    batch = space.encode([{"m": "tree"}, {"m": "svm", "m:svm:kernel": "poly"}])
    assert space.structure.algorithm_of(batch.values).tolist() == [[1, -1], [0, 1]]


def test_only_choices_can_be_stages() -> None:
    with refuses("not-a-stage", field="n", value="int"):
        Space.of({"n": (0, 9)}, stages=["n"])
    with refuses("not-a-stage", field="m", value=None):
        Space.of({"n": (0, 9)}, stages=["m"])
