import numpy as np
import pytest

from foretune.errors import MethodError
from foretune.methods.pipeline.growth import grown
from foretune.methods.pipeline.layout import Layout, Sizes
from foretune.methods.pipeline.model import DeepPipe
from foretune.methods.pipeline.network import Embedding
from foretune.space import Space

SMALL = {
    "scaler": {"none": {}, "standard": {}, "quantile": {"n": (1, 9)}},
    "model": {"svm": {"C": (0.0, 1.0)}, "tree": {"depth": (1, 9), "leaf": (1, 9)}},
}
FOREST = {"forest": {"trees": (1, 9), "share": (0.0, 1.0), "kind": ["a", "b"]}}


def learnt_on(space: Space, encoder_layers: int = 1) -> DeepPipe:
    layout = Layout.of(
        space, Sizes(factor=3, encoder_layers=encoder_layers, latent=4, learns_mean=True)
    )
    rng = np.random.default_rng(0)
    layers = tuple(
        tuple(rng.standard_normal(part.shape).astype(np.float32) for part in layer)
        for layer in Embedding(layout).initial(rng)
    )
    return DeepPipe(layout, layers, 0.0, 0.0, -4.0)


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
    larger = grown(learnt, large)
    assert larger.notes == (note,)
    known = small.sample(30, seed=0)
    before = learnt.place(known).u
    after = larger.model.place(large.encode(known.dicts(), fill_defaults=True)).u
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_only_what_is_new_may_be_trained() -> None:
    small = Space.of(SMALL)
    large = Space.of({**SMALL, "model": {**SMALL["model"], **FOREST}})
    larger = grown(learnt_on(small), large)
    embedding = Embedding(larger.model.layout)
    new_rows = [key[1] == "forest" for key in embedding.rows(0)]
    np.testing.assert_array_equal(larger.new[0][0].all(axis=1), new_rows)
    np.testing.assert_array_equal(larger.new[0][0].any(axis=1), new_rows)
    new_biases = [key[1] == "forest" for key in larger.model.layout.encoder_keys]
    np.testing.assert_array_equal(larger.new[0][1].any(axis=1), new_biases)
    choices = [key == ("model", "forest") for key in embedding.rows(1)]
    np.testing.assert_array_equal(larger.new[1][0].any(axis=1), choices)
    assert not any(part.any() for layer in larger.new[2:] for part in layer)
    assert larger.algorithms.used(large.sample(50, seed=0)).tolist() == [
        config["model"] == "forest" for config in large.sample(50, seed=0).dicts()
    ]


def test_the_algorithms_of_a_new_stage_are_no_newcomers() -> None:
    larger = grown(learnt_on(Space.of(SMALL)), Space.of({**SMALL, "encoder": {"a": {}, "b": {}}}))
    assert larger.algorithms.places == ()


def test_what_the_space_lacks_is_left_out() -> None:
    large = Space.of({**SMALL, "model": {**SMALL["model"], **FOREST}})
    small = Space.of(SMALL)
    learnt = learnt_on(large)
    smaller = grown(learnt, small)
    assert smaller.notes == ()
    assert not any(part.any() for layer in smaller.new for part in layer)
    known = small.sample(20, seed=0)
    np.testing.assert_allclose(
        smaller.model.place(known).u, learnt.place(large.adopt(known)).u, rtol=1e-4, atol=1e-4
    )


def test_another_range_is_another_hyperparameter() -> None:
    wider = {**SMALL, "model": {**SMALL["model"], "svm": {"C": (0.0, 10.0)}}}
    notes = grown(learnt_on(Space.of(SMALL)), Space.of(wider)).notes
    assert notes == ("hyperparameter 'model:svm:C', or values of it",)


def test_spaces_with_nothing_in_common_are_refused() -> None:
    other = Space.of({"booster": {"linear": {}, "tree": {"depth": (1, 5)}}})
    with pytest.raises(MethodError, match="share none"):
        grown(learnt_on(Space.of(SMALL)), other)
