import pytest

from foretune.automl import spaces
from foretune.automl.spaces import SPACES, load_shipped_space
from tests.refusals import refuses

TABLE_1 = {
    "adaboost": 2,
    "bagging": 3,
    "decision_tree": 4,
    "extra_trees": 5,
    "gaussian_nb": 1,
    "gradient_boosting": 5,
    "knn": 3,
    "logistic": 1,
    "mlp": 5,
    "qda": 1,
    "rf": 5,
    "svc": 2,
}


def test_cash_is_table_1_of_the_paper():
    space = load_shipped_space("cash").build()
    [stage] = space.structure.stages
    assert {a.name: len(a.parameters) for a in stage.algorithms} == TABLE_1
    assert space.structure.kind == "cash"


@pytest.mark.parametrize("name", ["pipeline-classification", "pipeline-regression"])
def test_pipelines_have_five_stages(name):
    structure = load_shipped_space(name).build().structure
    assert {stage.name for stage in structure.stages} == {
        "imputer",
        "encoder",
        "scaler",
        "reducer",
        "estimator",
    }
    assert structure.fits


@pytest.mark.parametrize("name", list(SPACES))
def test_a_space_can_be_narrowed_and_its_configurations_belong_to_the_whole(name):
    chosen = load_shipped_space(name)
    whole, narrow = chosen.build(), chosen.build(["rf", "knn"])
    picked = {config[chosen.choice] for config in narrow.sample(40, seed=0).dicts()}
    assert picked == {"rf", "knn"}
    sample = narrow.sample(20, seed=1)
    assert whole.adopt(sample).dicts() == sample.dicts()


def test_packages_that_are_not_installed_are_left_out():
    everything = list(spaces.CLASSIFIERS)
    without = list(spaces.select_installed(spaces.CLASSIFIERS, lambda name: None))
    assert set(everything) - set(without) == set(spaces.OPTIONAL)
    assert list(spaces.select_installed(spaces.CLASSIFIERS, lambda name: name)) == everything


def test_mistakes():
    with refuses("unknown-space"):
        load_shipped_space("cas")
    with refuses("unknown-estimator", value="svmm"):
        load_shipped_space("pipeline-regression").build(["svmm"])
