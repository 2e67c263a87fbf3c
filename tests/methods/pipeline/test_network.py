import jax
import numpy as np
import pytest

from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.space import Encoded
from tests.methods.pipeline.spaces import CASH, FLAT, PIPELINE

SPACES = {"pipeline": PIPELINE, "cash": CASH, "flat": FLAT}


def random_layers(embedding: PipelineEmbedding):
    """Random weights and biases, also where a mask should hide them."""
    rng = np.random.default_rng(1)
    return [
        tuple(rng.standard_normal(part.shape).astype(np.float32) for part in layer)
        for layer in embedding.initial(rng)
    ]


def naive(embedding: PipelineEmbedding, layers, configs: Encoded) -> np.ndarray:
    """One pipeline after the other, one encoder after the other, as Equations 4 and 5 read."""
    layout, encoding = embedding.layout, embedding.layout.sizes.encoder_layers
    chosen = configs.space.structure.algorithm_of(configs.values)
    embedded = []
    for row in range(len(configs)):
        outputs, one_hots, every_input = [], [], []
        for place, stage in enumerate(layout.stages):
            columns = [
                c for c, key in enumerate(layout.selected_neuron_keys) if key[0] == stage.name
            ]
            one_hots += [float(a == chosen[row, place]) for a in range(len(stage.algorithms))]
            for encoder in stage.encoders:
                is_open = chosen[row, place] in encoder.algorithms
                hidden = np.array(
                    [_value(configs, row, i, one_hots, is_open) for i in encoder.inputs]
                )
                every_input += list(hidden)
                if not is_open:
                    continue
                key = (stage.name, encoder.name)
                for number, (weights, biases) in enumerate(layers[:encoding]):
                    rows = [r for r, k in enumerate(embedding.rows(number)) if k[:2] == key]
                    bias = biases[layout.encoder_keys.index(key)]
                    hidden = np.maximum(hidden @ weights[np.ix_(rows, columns)] + bias[columns], 0)
                outputs += list(hidden)
        hidden = np.array([*(outputs if encoding else every_input), *one_hots])
        for weights, biases in layers[encoding:-1]:
            hidden = np.maximum(hidden @ weights + biases, 0.0)
        embedded.append(hidden @ layers[-1][0] + layers[-1][1])
    return np.array(embedded)


def _value(configs: Encoded, row: int, wanted, one_hots: list[float], is_open: bool) -> float:
    if wanted.parameter is None:
        return one_hots[wanted.column]
    active = is_open and configs.active[row, wanted.parameter]
    return configs.x[row, wanted.column] if active else 0.0


@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.parametrize("encoder_layers", [0, 1, 2])
def test_a_mixed_batch_equals_pipeline_by_pipeline(kind: str, encoder_layers: int) -> None:
    space = SPACES[kind]
    embedding = PipelineEmbedding(
        NetworkLayout.of(space, Sizes(2, encoder_layers, latent=3, learns_mean=True))
    )
    layers = random_layers(embedding)
    configs = space.sample(40, seed=0)
    together = np.column_stack(embedding.embed(layers, configs))
    assert together.shape == (40, 4)
    np.testing.assert_allclose(together, naive(embedding, layers, configs), rtol=2e-4, atol=2e-4)


def test_numpy_and_jax_agree() -> None:
    embedding = PipelineEmbedding(NetworkLayout.of(PIPELINE, Sizes(encoder_layers=2)))
    layers, configs = random_layers(embedding), PIPELINE.sample(20, seed=0)
    by_jax, _ = jax.jit(embedding)(layers, embedding.layout.read(configs))
    by_numpy, _ = embedding.embed(layers, configs)
    np.testing.assert_allclose(by_jax, by_numpy, rtol=1e-3, atol=1e-3 * np.abs(by_numpy).max())


def test_algorithms_that_were_not_chosen_have_no_say() -> None:
    embedding = PipelineEmbedding(NetworkLayout.of(PIPELINE, Sizes(encoder_layers=1)))
    layers, configs = random_layers(embedding), PIPELINE.sample(50, seed=0)
    before, _ = embedding.embed(layers, configs)
    rows = [r for r, key in enumerate(embedding.rows(0)) if key[:2] == ("model", "svm")]
    layers[0][0][rows] += 1.0
    moved = np.abs(embedding.embed(layers, configs)[0] - before).max(axis=1) > 0
    is_svm = configs.values[:, PIPELINE.names.index("model")] == 0
    np.testing.assert_array_equal(moved, is_svm)


def test_first_weights_have_the_scale_of_their_own_inputs() -> None:
    sizes = Sizes(factor=200, encoder_layers=2, latent=2, widest=1200)
    embedding = PipelineEmbedding(NetworkLayout.of(PIPELINE, sizes))
    layers = embedding.initial(np.random.default_rng(0))
    first, mask = layers[0][0], embedding.masks(0)[0]
    svm = [r for r, key in enumerate(embedding.rows(0)) if key[:2] == ("model", "svm")]
    assert (first[mask == 0] == 0).all()
    assert first[svm][mask[svm] > 0].std() == pytest.approx(np.sqrt(2 / 3), rel=0.1)


def test_no_configurations_have_no_embeddings() -> None:
    embedding = PipelineEmbedding(NetworkLayout.of(FLAT, Sizes()))
    nothing = FLAT.from_values(np.empty((0, 2)))
    phi, mean = embedding.embed(embedding.initial(np.random.default_rng(0)), nothing)
    assert phi.shape == (0, 20)
    assert mean.shape == (0,)


def test_nothing_is_expected_before_training() -> None:
    embedding = PipelineEmbedding(NetworkLayout.of(FLAT, Sizes(learns_mean=True)))
    layers = embedding.initial(np.random.default_rng(0))
    assert (embedding.embed(layers, FLAT.sample(9, seed=0))[1] == 0).all()
