import numpy as np
import pytest

from foretune.methods.pipeline.layout import (
    LEAST_HIDDEN,
    SHARED,
    Encoder,
    Input,
    NetworkLayout,
    Sizes,
    StageLayout,
)
from foretune.space import Space
from tests.methods.pipeline.spaces import CASH, FLAT, PIPELINE


def by_hand(sizes: Sizes, stages: list[list[int]]) -> NetworkLayout:
    """A layout from the number of inputs of each encoder of each stage."""
    laid = []
    for stage, counts in enumerate(stages):
        encoders = tuple(
            Encoder(str(e), tuple(Input((str(i),), i, 0) for i in range(count)), (e,))
            for e, count in enumerate(counts)
        )
        names = tuple(encoder.name for encoder in encoders)
        laid.append(StageLayout(str(stage), max(counts), encoders, names))
    hidden = sizes.factor * sum(stage.size for stage in laid)
    return NetworkLayout(FLAT, sizes, tuple(laid), hidden)


def test_encoders_follow_stages_and_algorithms() -> None:
    layout = NetworkLayout.of(PIPELINE, Sizes())
    assert layout.encoder_keys == (
        ("model", "svm"),
        ("model", "forest"),
        ("scaler", "quantile"),
        ("scaler", SHARED),
        ("common", "common"),
    )
    # svm: C and two kernels; two scalers without hyperparameters share an encoder of two inputs.
    assert [stage.size for stage in layout.stages] == [3, 2, 1]
    assert layout.hidden == 8 * (3 + 2 + 1)


def test_a_flat_space_has_one_encoder_and_cash_one_stage() -> None:
    assert NetworkLayout.of(FLAT, Sizes()).encoder_keys == (("common", "common"),)
    assert NetworkLayout.of(CASH, Sizes()).encoder_keys == (("model", "svm"), ("model", SHARED))


def test_a_constant_is_not_read() -> None:
    layout = NetworkLayout.of(Space.of({"rate": (0.0, 1.0), "depth": 3}), Sizes())
    [stage] = layout.stages
    assert [given.key[0] for given in stage.encoders[0].inputs] == ["rate"]


def test_the_parts_of_a_pipeline_that_are_read() -> None:
    layout = NetworkLayout.of(PIPELINE, Sizes())
    configs = PIPELINE.encode(
        [
            {"budget": 10, "model": "svm", "scaler": "standard", "model:svm:C": 1.0}
            | {"model:svm:kernel": "poly"},
            {"budget": 1, "model": "forest", "scaler": "quantile", "model:forest:share": 1.0}
            | {"model:forest:trees": 10, "scaler:quantile:quantiles": 1000},
        ]
    )
    svm, forest, quantile, shared, budget = [0.5, 0, 1], [0, 0], [0], [0, 1], [1]
    choices = [1, 0, 0, 1, 0, 1]
    np.testing.assert_allclose(
        layout.read(configs)[0], [*svm, *forest, *quantile, *shared, *budget, *choices]
    )
    svm, forest, quantile, shared, budget = [0, 0, 0], [1, 0], [1], [0, 0], [0]
    choices = [0, 1, 0, 0, 1, 1]
    np.testing.assert_allclose(
        layout.read(configs)[1], [*svm, *forest, *quantile, *shared, *budget, *choices]
    )


def test_a_shared_hyperparameter_reaches_the_chosen_encoder_only() -> None:
    from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition

    config_space = ConfigurationSpace()
    model, rate = Categorical("model", ["a", "b", "c"]), Float("rate", (0.0, 1.0))
    config_space.add(model, rate, InCondition(rate, model, ["a", "b"]))
    space = Space.of(config_space)
    layout = NetworkLayout.of(space, Sizes())
    read = layout.read(space.encode([{"model": "b", "rate": 0.25}]))
    assert layout.input_keys[0][:3] == ("model", "a", "rate")
    np.testing.assert_allclose(read[0], [0.0, 0.25, 0.0, 0.0, 1.0, 0.0])


def weight_count(layout: NetworkLayout) -> int:
    """The weights as Equations 7 and 8 count them.

    They leave out biases, the one-hot of choices, and the projection to the latent space.
    """
    factor, encoding = layout.sizes.factor, layout.sizes.encoder_layers
    aggregating = layout.sizes.layers - encoding
    if encoding == 0:
        return len(layout.inputs) * layout.hidden + (aggregating - 1) * layout.hidden**2
    first = sum(
        len(encoder.inputs) * factor * stage.size
        for stage in layout.stages
        for encoder in stage.encoders
    )
    inner = sum(len(stage.encoders) * (factor * stage.size) ** 2 for stage in layout.stages)
    return first + (encoding - 1) * inner + aggregating * layout.hidden**2


def test_weights_of_a_toy_space() -> None:
    # Two stages of encoders with 2 + 1 and 3 inputs: L = 2, 3; F = 2; 10 aggregating neurons.
    none = by_hand(Sizes(factor=2, encoder_layers=0), [[2, 1], [3]])
    assert weight_count(none) == 6 * 10 + 3 * 10**2
    one = by_hand(Sizes(factor=2, encoder_layers=1), [[2, 1], [3]])
    assert weight_count(one) == (2 * 4 + 1 * 4 + 3 * 6) + 3 * 10**2
    two = by_hand(Sizes(factor=2, encoder_layers=2), [[2, 1], [3]])
    assert weight_count(two) == (2 * 4 + 1 * 4 + 3 * 6) + (2 * 4**2 + 6**2) + 2 * 10**2


@pytest.mark.parametrize("factor", [4, 8])
def test_weights_of_the_paper_s_tensor_oboe(factor: int) -> None:
    """Table 6 with GaussianNB and Perceptron as two inputs of one encoder (Equations 9 to 11)."""
    stages = [[4], [1], [1], [1, 1, 1], [3, 4, 5, 5, 3, 1, 2, 1, 2, 2]]
    assert sum(map(sum, stages)) == 37
    without = by_hand(Sizes(factor, encoder_layers=0), stages)
    assert weight_count(without) == 444 * factor + 144 * 3 * factor**2
    for layers in (1, 2):
        laid = by_hand(Sizes(factor, encoder_layers=layers), stages)
        aggregating = 4 - layers
        expected = 161 * factor + (271 * (layers - 1) + 144 * aggregating) * factor**2
        assert weight_count(laid) == expected


def test_weights_of_the_paper_s_pmf() -> None:
    """Table 5, naive Bayes in one encoder and the discriminant analyses in another."""
    stages = [[3, 2], [9, 10, 13, 4, 10, 9, 7, 5]]
    assert sum(map(sum, stages)) == 72
    one = by_hand(Sizes(6, encoder_layers=1), stages)
    assert weight_count(one) == 886 * 6 + 256 * 3 * 6**2


@pytest.mark.parametrize(
    ("columns", "factor", "hidden"), [(40, 8, 320), (41, 7, 287), (200, 1, 200), (400, 1, 320)]
)
def test_in_wide_spaces_an_input_has_fewer_neurons(columns: int, factor: int, hidden: int) -> None:
    layout = NetworkLayout.of(Space.of({f"x{n}": (0.0, 1.0) for n in range(columns)}), Sizes())
    assert layout.hidden == hidden
    assert len(layout.selected_neuron_keys) == factor * columns
    again = NetworkLayout.of(layout.space, layout.sizes)
    assert (again.hidden, again.selected_neuron_keys) == (
        layout.hidden,
        layout.selected_neuron_keys,
    )


def test_widths_of_another_layout_are_kept() -> None:
    small = Space.of({"model": {"svm": {"C": (0.0, 1.0)}, "bayes": {}}})
    large = Space.of(
        {"model": {"svm": {"C": (0.0, 1.0)}, "forest": {"a": (0.0, 1.0), "b": (0.0, 1.0)}}}
    )
    learnt = NetworkLayout.of(small, Sizes())
    carried = NetworkLayout.of(large, Sizes(), like=learnt)
    assert NetworkLayout.of(large, Sizes()).stages[0].size == 2
    assert carried.stages[0].size == learnt.stages[0].size == 1
    assert carried.hidden == learnt.hidden == LEAST_HIDDEN
