import numpy as np

from foretune.space import Space
from foretune.space.algorithms import Algorithms
from foretune.testing import problem


def test_a_flat_space_is_one_algorithm_that_reads_everything() -> None:
    space = Space.of({"a": (0.0, 1.0), "b": ["p", "q"]})
    algorithms = Algorithms.of(space)
    batch = space.encode([{"a": 0.25, "b": "q"}])
    assert len(algorithms) == 1
    assert algorithms.algorithm_of(batch).tolist() == [0]
    np.testing.assert_array_equal(algorithms.inputs(batch), batch.x)


def test_each_algorithm_reads_its_own_hyperparameters_and_the_common_ones() -> None:
    space = Space.of(
        {
            "model": {"svm": {"C": (0.0, 1.0), "g": (0.0, 1.0)}, "knn": {"k": (0, 10)}, "nb": {}},
            "share": (0.0, 1.0),
        }
    )
    algorithms = Algorithms.of(space)
    batch = space.encode(
        [
            {"model": "knn", "model:knn:k": 5, "share": 0.25},
            {"model": "svm", "model:svm:C": 0.125, "model:svm:g": 0.75, "share": 0.5},
            {"model": "nb", "share": 1.0},
        ]
    )
    assert algorithms.names == ("svm", "knn", "nb")
    assert algorithms.algorithm_of(batch).tolist() == [1, 0, 2]
    by_value = [sorted(row) for row in algorithms.inputs(batch).tolist()]
    assert by_value == [[0.0, 0.25, 0.5], [0.125, 0.5, 0.75], [0.0, 0.0, 1.0]]


def test_hyperparameters_that_an_algorithm_lacks_are_0() -> None:
    space = Space.of({"a": (0.0, 1.0), "model": {"knn": {"k": (0, 10), "p": (0, 4)}, "nb": {}}})
    batch = space.encode([{"a": 0.5, "model": "nb"}])
    assert batch.x[0, 0] == 0.5
    assert Algorithms.of(space).inputs(batch).tolist() == [[0.5, 0.0, 0.0]]


def test_in_a_pipeline_the_largest_stage_chooses_and_the_others_are_inputs() -> None:
    space = problem("pipeline").space
    algorithms = Algorithms.of(space)
    assert algorithms.names == ("svm", "forest")
    batch = space.sample(1, seed=0)
    (row,) = algorithms.algorithm_of(batch)
    read = set(algorithms.columns[row].tolist())
    of_svm = {"model:svm:C", "model:svm:kernel"}
    of_forest = {"model:forest:trees", "model:forest:share"}
    expected = {"scaler", "scaler:quantile:quantiles"} | (of_forest if row else of_svm)
    named = {p.name for p in space.parameters if read & set(range(p.columns.start, p.columns.stop))}
    assert named == expected
    own = algorithms.columns[row]
    np.testing.assert_array_equal(algorithms.inputs(batch)[0, : len(own)], batch.x[0, own])


def test_an_algorithm_without_hyperparameters_reads_one_zero() -> None:
    space = Space.of({"model": {"nb": {}, "dummy": {}}}, stages=["model"])
    algorithms = Algorithms.of(space)
    assert algorithms.inputs(space.encode([{"model": "dummy"}])).tolist() == [[0.0]]


def test_a_choice_that_is_not_always_made_does_not_decide() -> None:
    kernels = {"rbf": {"g": (0.0, 1.0), "C": (0.0, 1.0)}, "poly": {"d": (1, 5)}}
    space = Space.of({"model": {"svm": {"kernel": kernels}, "nb": {}}}, stages=["model:svm:kernel"])
    assert space.structure.kind == "pipeline"
    algorithms = Algorithms.of(space)
    assert algorithms.names == ("svm", "nb")
