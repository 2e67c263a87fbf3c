import numpy as np
import pytest

pytest.importorskip("matplotlib")

from foretune.report.embedding import flatten_embeddings
from foretune_lab.drawing.embedding import (
    ByLoss,
    ByName,
    draw_embedding,
    spread_sample,
)


def two_groups() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0.0, 1.0, (20, 5)), rng.normal(50.0, 1.0, (20, 5))])


@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_distant_labels_stay_apart(how: str) -> None:
    flat = flatten_embeddings(two_groups(), how=how)
    assert flat.shape == (40, 2)
    first, second = flat[:20], flat[20:]
    within = max(np.ptp(first, axis=0).max(), np.ptp(second, axis=0).max())
    assert np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)) > within / 2


def test_every_colouring_has_its_panel() -> None:
    losses = np.append(np.full(3, np.nan), np.arange(37.0))
    colourings = [ByName("estimator", ["svm"] * 20 + ["tree"] * 20), ByLoss("task 3", losses)]
    figure = draw_embedding(two_groups()[:, :2], colourings)
    by_name, by_loss = figure.axes[:2]
    assert [text.get_text() for text in by_name.get_legend().get_texts()] == ["svm", "tree"]
    [drawn] = by_loss.collections
    # Unknown losses are left out, and the best point is drawn last.
    assert len(drawn.get_offsets()) == 37
    assert drawn.get_array()[-1] == 0.0


def test_a_sample_is_drawn_once_and_in_order() -> None:
    drawn = spread_sample(100, seed=0, most=10)
    assert len(np.unique(drawn)) == 10
    assert (np.diff(drawn) > 0).all()
    assert spread_sample(5, seed=0, most=10).tolist() == [0, 1, 2, 3, 4]
