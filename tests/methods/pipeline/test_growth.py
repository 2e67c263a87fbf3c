import numpy as np
import pytest

from foretune.errors import MethodError
from foretune.methods.pipeline.growth import LOOKED_AT, extend_network
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.model import DeepPipe, LatentPoints
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.numerics.kernels import squared_distances
from foretune.space import Space
from tests.refusals import refuses

SMALL = {
    "scaler": {"none": {}, "standard": {}, "quantile": {"n": (1, 9)}},
    "model": {"svm": {"C": (0.0, 1.0)}, "tree": {"depth": (1, 9), "leaf": (1, 9)}},
}
FOREST = {"forest": {"trees": (1, 9), "share": (0.0, 1.0), "kind": ["a", "b"]}}


def learnt_on(space: Space, encoder_layers: int = 1, *, learns_mean: bool = True) -> DeepPipe:
    layout = NetworkLayout.of(
        space, Sizes(factor=3, encoder_layers=encoder_layers, latent=4, learns_mean=learns_mean)
    )
    rng = np.random.default_rng(0)
    layers = tuple(
        tuple(rng.standard_normal(part.shape).astype(np.float32) for part in layer)
        for layer in PipelineEmbedding(layout).initial(rng)
    )
    return DeepPipe(layout, layers, 0.0, 0.0, -4.0)


def learnt_units(model: DeepPipe, at: LatentPoints) -> np.ndarray:
    """Places in lengthscales of the process."""
    return at.u * np.exp(-model.start.log_lengthscales)


@pytest.mark.parametrize("encoder_layers", [0, 1, 2])
@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"model": {**SMALL["model"], **FOREST}}, "algorithm 'forest' of stage 'model'"),
        ({"scaler": {**SMALL["scaler"], "robust": {}}}, "algorithm 'robust' of stage 'scaler'"),
        (
            {"model": {**SMALL["model"], "svm": {"C": (0.0, 1.0), "kernel": ["rbf", "poly"]}}},
            "hyperparameter 'model:svm:kernel', or values of it",
        ),
        ({"encoder": {"one-hot": {"least": (0.0, 1.0)}, "none": {}}}, "stage 'encoder'"),
        ({"budget": (1, 5)}, "stage 'common'"),
    ],
)
def test_known_pipelines_keep_their_embeddings(
    encoder_layers: int, change: dict, note: str
) -> None:
    small, large = Space.of(SMALL), Space.of({**SMALL, **change})
    learnt = learnt_on(small, encoder_layers)
    larger = extend_network(learnt, large)
    assert larger.notes == (note,)
    known = small.sample(30, seed=0)
    before = learnt.place(known)
    after = larger.model.place(large.encode(known.dicts(), fill_defaults=True))
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-4, atol=1e-4)
    distances = [
        squared_distances(learnt_units(m, at), learnt_units(m, at))
        for m, at in ((learnt, before), (larger.model, after))
    ]
    np.testing.assert_allclose(distances[1], distances[0], rtol=1e-3, atol=1e-3)


def test_only_what_is_new_may_be_trained() -> None:
    small = Space.of(SMALL)
    large = Space.of({**SMALL, "model": {**SMALL["model"], **FOREST}})
    larger = extend_network(learnt_on(small), large)
    embedding = PipelineEmbedding(larger.model.layout)
    new_rows = [key[1] == "forest" for key in embedding.rows(0)]
    np.testing.assert_array_equal(larger.new[0][0].all(axis=1), new_rows)
    np.testing.assert_array_equal(larger.new[0][0].any(axis=1), new_rows)
    new_biases = [key[1] == "forest" for key in larger.model.layout.encoder_keys]
    np.testing.assert_array_equal(larger.new[0][1].any(axis=1), new_biases)
    choices = [key == ("model", "forest") for key in embedding.rows(1)]
    np.testing.assert_array_equal(larger.new[1][0].any(axis=1), choices)
    assert not any(part.any() for layer in larger.new[2:] for part in layer)
    assert larger.model.new.uses_any(large.sample(50, seed=0)).tolist() == [
        config["model"] == "forest" for config in large.sample(50, seed=0).dicts()
    ]


@pytest.mark.parametrize("encoder_layers", [1, 2])
def test_a_new_algorithm_begins_as_a_typical_one(encoder_layers: int) -> None:
    """Its code is the mean over algorithms of their mean codes, whatever its hyperparameters."""
    small = Space.of({"model": SMALL["model"]})
    large = Space.of({"model": {**SMALL["model"], **FOREST}})
    learnt = learnt_on(small, encoder_layers)
    larger = extend_network(learnt, large).model
    configs = small.sample(LOOKED_AT, seed=0)
    codes = PipelineEmbedding(learnt.layout).encode(learnt.layers, learnt.layout.read(configs))
    is_svm = configs.values[:, 0] == 0
    typical = 0.5 * (codes[is_svm].mean(axis=0) + codes[~is_svm].mean(axis=0))
    forests = large.encode(
        [{"model": "forest", "model:forest:trees": n, "model:forest:share": 0.1 * n,
          "model:forest:kind": "b"} for n in (1, 5)]
    )  # fmt: skip
    found = PipelineEmbedding(larger.layout).encode(larger.layers, larger.layout.read(forests))
    np.testing.assert_allclose(found, np.stack([typical, typical]), rtol=1e-4)
    svm, tree, forest = larger.layers[encoder_layers][0][-3:]
    np.testing.assert_allclose(forest, 0.5 * (svm + tree), rtol=1e-5)


@pytest.mark.parametrize("encoder_layers", [1, 2])
def test_a_first_hyperparameter_leaves_what_is_known_of_its_algorithm(encoder_layers: int) -> None:
    """It shared an encoder with others that had none; now it has its own, and the same code."""
    small = Space.of(SMALL)
    gained = {"standard": {"mean": ["yes", "no"]}}
    large = Space.of({**SMALL, "scaler": {**SMALL["scaler"], **gained}})
    learnt = learnt_on(small, encoder_layers)
    larger = extend_network(learnt, large)
    assert larger.notes == ("hyperparameter 'scaler:standard:mean', or values of it",)
    known = small.sample(30, seed=0).dicts()
    before = learnt.place(small.encode(known))
    for mean in ("yes", "no"):
        said = [
            config | ({"scaler:standard:mean": mean} if config["scaler"] == "standard" else {})
            for config in known
        ]
        after = larger.model.place(large.encode(said))
        np.testing.assert_allclose(after.u, before.u, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(after.mean, before.mean, rtol=1e-4, atol=1e-4)


def mean_codes(learnt: DeepPipe) -> dict[str, np.ndarray]:
    """Of every scaler what its encoder gives on average."""
    configs = learnt.layout.space.sample(LOOKED_AT, seed=0)
    codes = PipelineEmbedding(learnt.layout).encode(learnt.layers, learnt.layout.read(configs))
    codes = codes[:, [key[0] == "scaler" for key in learnt.layout.selected_neuron_keys]]
    chosen = np.array([config["scaler"] for config in configs.dicts()])
    return {name: codes[chosen == name].mean(axis=0) for name in np.unique(chosen)}


def codes_on(model: DeepPipe, scaler: str) -> np.ndarray:
    """What the scaler's encoder gives on the model's space."""
    drawn = model.layout.space.sample(200, seed=0).dicts()
    configs = model.layout.space.encode([each for each in drawn if each["scaler"] == scaler])
    codes = PipelineEmbedding(model.layout).encode(model.layers, model.layout.read(configs))
    return codes[:, [key[0] == "scaler" for key in model.layout.selected_neuron_keys]]


def test_a_new_algorithm_without_hyperparameters_begins_as_a_typical_one() -> None:
    """Also where others without any have an encoder already, which it shares."""
    learnt = learnt_on(Space.of(SMALL))
    large = Space.of({**SMALL, "scaler": {**SMALL["scaler"], "robust": {}}})
    typical = np.mean(list(mean_codes(learnt).values()), axis=0)
    for code in codes_on(extend_network(learnt, large).model, "robust"):
        np.testing.assert_allclose(code, typical, rtol=1e-4, atol=1e-5)


def test_an_algorithm_that_lost_its_hyperparameters_keeps_what_it_had_on_average() -> None:
    scalers = {**SMALL["scaler"], "robust": {"share": (0.0, 1.0)}}
    learnt = learnt_on(Space.of({**SMALL, "scaler": scalers}))
    smaller = extend_network(learnt, Space.of({**SMALL, "scaler": {**scalers, "quantile": {}}}))
    assert smaller.notes == ()
    for scaler in ("none", "standard", "quantile"):
        expected = mean_codes(learnt)[scaler]
        for code in codes_on(smaller.model, scaler):
            np.testing.assert_allclose(code, expected, rtol=1e-4, atol=1e-5)


def test_unused_hyperparameters_are_not_typical() -> None:
    small = Space.of({"model": SMALL["model"]})
    learnt = learnt_on(small)
    space = Space.of({"model": {**SMALL["model"], **FOREST}})
    larger = extend_network(learnt, space, looked_at=1).model
    read = learnt.layout.read(small.sample(1, seed=0))
    typical = PipelineEmbedding(learnt.layout).encode(learnt.layers, read)[0]
    forest = larger.layout.encoder_keys.index(("model", "forest"))
    np.testing.assert_allclose(larger.layers[0][1][forest], typical, rtol=1e-5)


def test_new_encoders_are_not_silent() -> None:
    """Between weights that are all 0 no slope would ever reach them.

    The encoder of a new algorithm begins with a typical code, whatever its first layers give; that
    of a new stage begins at random, and it is the aggregation that does not hear it yet.
    """
    space = Space.of({
        **SMALL,
        "model": {**SMALL["model"], **FOREST},
        "encoder": {"hash": {"bits": (1, 9)}, "none": {}},
    })  # fmt: skip
    larger = extend_network(learnt_on(Space.of(SMALL), encoder_layers=2), space).model
    embedding = PipelineEmbedding(larger.layout)
    expected = [
        {("model", "forest"): True, ("encoder", "hash"): True},
        {("model", "forest"): False, ("encoder", "hash"): True},
    ]
    for number, said in enumerate(expected):
        weights = larger.layers[number][0]
        for encoder, speaks in said.items():
            own = [key[:2] == encoder for key in embedding.rows(number)]
            assert any(own)
            assert (weights[own].any(axis=1) == speaks).all()
    heard = [key[0] != "encoder" for key in embedding.rows(2)]
    np.testing.assert_array_equal(larger.layers[2][0].any(axis=1), heard)


@pytest.mark.parametrize(("learns_mean", "apart"), [(True, 1.0), (False, 2.0)])
def test_a_new_algorithm_lies_apart_and_spreads_by_its_own_hyperparameters(
    learns_mean: bool, apart: float
) -> None:
    """In lengthscales: 2 between the ends of one range; farther where no mean foretells it."""
    large = Space.of({"model": {**SMALL["model"], "forest": {"share": (0.0, 1.0)}}})
    small = learnt_on(Space.of({"model": SMALL["model"]}), learns_mean=learns_mean)
    larger = extend_network(small, large).model
    forests = large.encode([{"model": "forest", "model:forest:share": x} for x in (0.0, 0.5, 1.0)])
    svm = large.encode([{"model": "svm", "model:svm:C": 0.5}])
    extra = learnt_units(larger, larger.place(forests))[:, 4:]
    np.testing.assert_allclose(extra, [[apart, x] for x in (-1.0, 0.0, 1.0)], atol=1e-9)
    np.testing.assert_array_equal(larger.place(svm).u[:, 4:], 0.0)


def test_the_algorithms_of_a_new_stage_are_no_newcomers() -> None:
    """There is nothing that would be typical of them."""
    stage = {"encoder": {"one-hot": {"least": (0.0, 1.0)}, "none": {}}}
    larger = extend_network(learnt_on(Space.of(SMALL)), Space.of({**SMALL, **stage}))
    assert larger.model.new.places == ()
    of_stage = [key[0] == "encoder" for key in larger.model.layout.encoder_keys]
    assert sum(of_stage) == 2
    assert not larger.model.layers[0][1][of_stage].any()


def test_hyperparameters_outside_the_space_are_left_out() -> None:
    large = Space.of({**SMALL, "model": {**SMALL["model"], **FOREST}})
    small = Space.of(SMALL)
    learnt = learnt_on(large)
    smaller = extend_network(learnt, small)
    assert smaller.notes == ()
    assert not any(part.any() for layer in smaller.new for part in layer)
    known = small.sample(20, seed=0)
    np.testing.assert_allclose(
        smaller.model.place(known).u, learnt.place(large.adopt(known)).u, rtol=1e-4, atol=1e-4
    )


def test_another_range_is_another_hyperparameter() -> None:
    wider = {**SMALL, "model": {**SMALL["model"], "svm": {"C": (0.0, 10.0)}}}
    notes = extend_network(learnt_on(Space.of(SMALL)), Space.of(wider)).notes
    assert notes == ("hyperparameter 'model:svm:C', or values of it",)


def test_spaces_with_nothing_in_common_are_refused() -> None:
    other = Space.of({"booster": {"linear": {}, "tree": {"depth": (1, 5)}}})
    with refuses("no-shared-algorithm", kind=MethodError):
        extend_network(learnt_on(Space.of(SMALL)), other)
